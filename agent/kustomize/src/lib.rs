//! `kustomize build` as a library: pure, in process, equal to the reference (sigs.k8s.io/kustomize/api v0.21.2).
//!
//! [`build`] takes the files of a source and a folder in it. It is [`Outcome::Done`] with the objects, or it
//! [`Outcome::Needs`] bases, components or files from elsewhere, which the caller fetches and gives as answers.
//!
//! The way of a build: `load` finds files, `kustfile` reads kustomizations, `target` accumulates objects, `generate`
//! makes ConfigMaps and Secrets, `patch` and `transform` change objects, `refer` and `vars` set references, `write` makes
//! JSON of them.

// The steps of a build share one form, also where one of them needs less of it.
#![allow(clippy::unnecessary_wraps, clippy::unused_self, clippy::struct_field_names, clippy::question_mark)]

mod apply;
mod config;
mod configurations;
mod encode;
mod error;
mod fields;
mod generate;
mod id;
mod kustfile;
mod load;
mod metadata;
mod node;
mod overrides;
mod patch;
mod path;
mod plugins;
mod read;
mod refer;
mod remote;
mod resmap;
mod resource;
mod scalar;
mod schema;
mod selector;
mod tables;
mod target;
#[cfg(test)]
mod tests;
mod transform;
mod vars;
mod write;

use std::sync::Arc;

use serde_json::Value;

pub use error::Error;
pub use overrides::{OverridePatch, OverrideReplica, OverrideTarget, Overrides};

/// Names that a kustomization file may have; exactly one of them in a folder.
pub const KUSTOMIZATION_FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

pub(crate) const NO_HELM: &str = "Helm charts in a kustomization are not supported by this version; render the chart beforehand and commit the result";

/// The files of a tree. Paths are from its root, `/` between parts, without `.` and `..`; the root is the empty path.
pub trait Files {
    /// Content of a file, links followed; none where there is no file.
    fn read(&self, path: &str) -> Option<Arc<[u8]>>;
    /// Whether there is a folder.
    fn is_dir(&self, path: &str) -> bool;
    /// Names of the files directly in a folder.
    fn list(&self, path: &str) -> Vec<String>;
}

/// How to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Files of a kustomization must be in or below its folder (`--load-restrictor LoadRestrictionsRootOnly`).
    pub load_restrictions: bool,
    /// What the label `app.kubernetes.io/managed-by: kustomize-...` names, where `buildMetadata` asks for it.
    pub version: String,
    /// Adds that label everywhere.
    pub managed_by_label: bool,
    /// Changes to the kustomization itself: Argo CD's `source.kustomize`.
    pub overrides: Overrides,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            load_restrictions: true,
            version: "v5.8.1".to_owned(),
            managed_by_label: false,
            overrides: Overrides::default(),
        }
    }
}

/// What a remote thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteKind {
    /// A git repository.
    Repository,
    /// A single file, by HTTP.
    File,
}

/// A base, component or file that lies elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Remote {
    /// URL of the repository or file.
    pub url: String,
    /// Branch, tag or commit; empty for the default branch.
    pub reference: String,
    /// Folder in the repository.
    pub subpath: String,
    /// Repository or file.
    pub kind: RemoteKind,
}

/// What was fetched.
#[derive(Clone)]
pub enum Given<'a> {
    /// The whole repository.
    Tree(&'a dyn Files),
    /// The file.
    File(Arc<[u8]>),
}

/// The answer to a need.
#[derive(Clone)]
pub struct Answer<'a> {
    /// The need, as it was asked.
    pub remote: Remote,
    /// What was fetched.
    pub given: Given<'a>,
}

/// What came of a build.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Objects.
    Done(Built),
    /// Fetch these, and build again with them as answers.
    Needs(Vec<Remote>),
}

/// The objects of a build, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Built {
    /// Objects.
    pub objects: Vec<BuiltObject>,
    /// What is likely a mistake, or old.
    pub warnings: Vec<String>,
}

/// An object and its history.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltObject {
    /// The object.
    pub value: Value,
    /// The file that it was read from, or the kustomization that generated it.
    pub file: String,
    /// Line in that file; 0 where none is known.
    pub line: u32,
    /// Patches that changed it, in order: file, field and, in brackets, the file of the patch.
    pub touched_by: Vec<String>,
}

/// Builds the kustomization in a folder.
///
/// # Errors
/// Whatever the reference refuses, plugins that would execute something, Helm charts, and limits.
pub fn build(
    files: &dyn Files,
    path: &str,
    options: &Options,
    answers: &[Answer<'_>],
) -> Result<Outcome, Error> {
    target::build(files, path, options, answers)
}

/// The text of a build, as the reference prints it.
pub fn to_yaml(built: &Built) -> String {
    let texts: Vec<String> =
        built.objects.iter().map(|object| pintle_yaml::to_string(&object.value)).collect();
    texts.join("---\n")
}

/// More than one kustomization file in a folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {} in one folder; a kustomization has exactly one file", .0.join(" and "))]
pub struct Ambiguous(pub Vec<String>);

/// The kustomization file among these names (files directly in the folder), if there is one.
pub fn find<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Option<&'a str>, Ambiguous> {
    let found: Vec<&str> = names.into_iter().filter(|name| KUSTOMIZATION_FILE_NAMES.contains(name)).collect();
    match found[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Ambiguous(found.into_iter().map(str::to_owned).collect())),
    }
}
