//! From a source tree to objects: `Done` with the objects, or `Needs` what the agent has to fetch first.
//!
//! A render is whole or nothing: a file that cannot be parsed, an object without kind or name, a label that is no
//! string fails it, with file, line and what to do. Warnings never do.

mod directory;
mod manifest;
#[cfg(test)]
mod tests;
mod tree;

use pintle_model::{DesiredObject, Problem};

pub use tree::{Entry, SourceTree, TreeError};

/// What a directory source is asked for (Argo CD's `source.directory`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DirectoryParams {
    /// Folders below the path too.
    pub recurse: bool,
    /// Glob of paths below the source path that count.
    pub include: Option<String>,
    /// Glob of paths that do not count; asked first.
    pub exclude: Option<String>,
    /// Only `.yaml`, `.yml`, `.json` in any case.
    pub extension_filter: bool,
    /// Duplicate keys are errors.
    pub strict: bool,
}

/// Kinds of sources. Further ones join as they are built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// Plain manifests.
    Directory(DirectoryParams),
}

/// Something outside the tree that a render needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// An object of the cluster.
    Lookup {
        /// `apiVersion`.
        api_version: String,
        /// Kind.
        kind: String,
        /// Namespace.
        namespace: String,
        /// Name; empty for all.
        name: String,
    },
    /// A tree of another repository.
    RemoteBase {
        /// URL.
        url: String,
        /// Revision.
        revision: String,
    },
    /// A chart.
    Chart {
        /// Repository.
        repository: String,
        /// Name.
        name: String,
        /// Version or range.
        version: String,
    },
    /// Version and kinds of the cluster.
    Capabilities,
}

/// The answer to a need, by its digest in the cache key.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To `Lookup`: the object or a list, null when it is not there.
    Object(serde_json::Value),
    /// To `RemoteBase` and `Chart`.
    Tree(SourceTree),
}

/// Everything that a render depends on.
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    /// Files.
    pub tree: &'a SourceTree,
    /// The application's path from the root of the tree.
    pub path: &'a str,
    /// What kind of source it is, with its parameters.
    pub source: SourceKind,
    /// Answers to earlier needs.
    pub answers: &'a [(Need, Answer)],
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Objects.
    Done(Rendered),
    /// Fetch these and ask again.
    Needs(Vec<Need>),
}

/// Objects and warnings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rendered {
    /// In deterministic order: files by path, documents in the order of the file.
    pub objects: Vec<DesiredObject>,
    /// Warnings.
    pub problems: Vec<Problem>,
}

/// Why there is no render.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub String);

/// What a folder holds, by Argo CD's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// Plain manifests.
    Directory,
    /// A kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

/// Tells what kind of source a folder is.
pub fn detect(tree: &SourceTree, path: &str) -> Result<Detected, RenderError> {
    let names = tree.names_in(path);
    let found = pintle_kustomize::find(names.iter().map(String::as_str))
        .map_err(|error| RenderError(format!("{path:?}: {error}")))?;
    if pintle_helm::is_chart(names.iter().map(String::as_str)) {
        return Ok(Detected::Helm);
    }
    Ok(if found.is_some() { Detected::Kustomize } else { Detected::Directory })
}

/// Renders.
pub fn render(inputs: &Inputs<'_>) -> Result<Outcome, RenderError> {
    let what = match detect(inputs.tree, inputs.path)? {
        Detected::Directory => None,
        Detected::Kustomize => Some("a kustomization"),
        Detected::Helm => Some("a Helm chart"),
    };
    if let Some(what) = what {
        return Err(RenderError(format!(
            "path {:?} is {what}: this source type is not supported by this version; render it beforehand and commit \
             the manifests",
            inputs.path
        )));
    }
    match &inputs.source {
        SourceKind::Directory(parameters) => {
            directory::render(inputs.tree, inputs.path, parameters).map(Outcome::Done)
        }
    }
}
