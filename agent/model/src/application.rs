//! Argo CD's Application (v1alpha1): its key, what is written, and what is valid.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::glob;
use crate::key::{InvalidKey, ObjectKey};
use crate::names::DEFAULT_APP_NAMESPACE;

pub use self::compare_options::{CompareOptions, parse_compare_options};
pub use self::raw::RawApplication;
pub use self::settings::{DryRun, RollbackUntil, Settings, parse_settings};
pub use self::sync_options::{Consent, FieldValidation, PropagationPolicy, SyncOptions, parse_sync_options};
pub use self::validate::{Context, IN_CLUSTER_NAME, IN_CLUSTER_SERVER, validate};

mod compare_options;
mod manifest;
pub mod raw;
mod settings;
mod sync_options;
#[cfg(test)]
mod tests;
pub(crate) mod validate;

/// Namespace and name of an Application. Text form `namespace/name`; a bare name is in namespace `argocd`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppKey {
    /// Namespace of the Application object; `argocd` unless it says otherwise.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl AppKey {
    /// From namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AppKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').unwrap_or((DEFAULT_APP_NAMESPACE, text));
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(InvalidKey(text.to_owned()));
        }
        Ok(Self::new(namespace, name))
    }
}

impl Serialize for AppKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AppKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One thing that is wrong in a spec.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpecError {
    /// Path of the field, such as `spec.source.path`.
    pub field: String,
    /// What is wrong and what is valid.
    pub message: String,
}

impl SpecError {
    /// From a field's path and a message.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for SpecError {
    /// `field: message`, or the message alone where it begins with the field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.starts_with(&self.field) {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

impl std::error::Error for SpecError {}

/// A valid Application, ready to run. Made by [`validate`] only (or read back from our own store).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// Namespace and name.
    pub key: AppKey,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations as written, without the configured defaults.
    pub annotations: BTreeMap<String, String>,
    /// It carries Argo CD's resources finalizer: deleting it asks for a cascade.
    pub finalizer_cascade: bool,
    /// AppProject; never empty.
    pub project: String,
    /// Where the manifests come from.
    pub source: Source,
    /// Where they go.
    pub destination: Destination,
    /// Automated sync; `None` is off.
    pub automated: Option<Automated>,
    /// Retry as written; `None` is the edge default (for ever with backoff, for automated sync).
    pub retry: Option<Retry>,
    /// Sync options of the whole application.
    pub sync_options: SyncOptions,
    /// Labels and annotations of the namespace that `CreateNamespace=true` makes.
    pub namespace_metadata: Option<NamespaceMetadata>,
    /// Fields that are not compared.
    pub ignore_differences: Vec<IgnoreRule>,
    /// History entries kept; 0 keeps none.
    pub history_limit: usize,
    /// `pintle.dev/*` settings: the configured defaults and above them the annotations.
    pub settings: Settings,
    /// Free information for people: names and values in their order.
    pub info: Vec<(String, String)>,
    /// What was accepted but has no effect here, one sentence each: to be shown as warnings.
    pub notes: Vec<String>,
}

impl Application {
    /// The digest over what decides how the application is rendered, compared and synced. Labels, annotations
    /// without a setting, `info`, notes and the history limit do not count.
    pub fn spec_digest(&self) -> Digest {
        // The fields one by one, so that a new field is a compile error here and not forgotten.
        let Self {
            key,
            labels: _,
            annotations: _,
            finalizer_cascade: _,
            project,
            source,
            destination,
            automated,
            retry,
            sync_options,
            namespace_metadata,
            ignore_differences,
            history_limit: _,
            settings,
            info: _,
            notes: _,
        } = self;
        Digest::of_json(&serde_json::json!({
            "key": key,
            "project": project,
            "source": source,
            "destination": destination,
            "automated": automated,
            "retry": retry,
            "syncOptions": sync_options,
            "namespaceMetadata": namespace_metadata,
            "ignoreDifferences": ignore_differences,
            "settings": settings,
        }))
    }

    /// Does automated sync prune?
    pub fn prunes(&self) -> bool {
        self.automated.is_some_and(|automated| automated.prune)
    }

    /// Does the application revert drift by itself?
    pub fn self_heals(&self) -> bool {
        self.automated.is_some_and(|automated| automated.self_heal)
    }
}

/// A source of plain manifests in a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `https://` or `http://` URL as written; never with a password in it.
    pub repo_url: String,
    /// Branch, tag, full commit id, `refs/...` or `HEAD`; never empty.
    pub target_revision: String,
    /// Folder below the root with `/` between parts; `.` is the root itself. Without `..`, not absolute.
    pub path: String,
    /// Which files of the folder are read.
    pub directory: Directory,
    /// Name of the source, for people.
    pub name: Option<String>,
}

/// Which files of a folder are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directory {
    /// Folders below, too.
    pub recurse: bool,
    /// Glob of files to read; empty for all.
    pub include: String,
    /// Glob of files to leave out, empty for none; wins over `include`.
    pub exclude: String,
    /// Only `.yaml`, `.yml`, `.json`; `disableExtensionFilter` switches it off.
    pub extension_filter: bool,
}

impl Default for Directory {
    fn default() -> Self {
        Self { recurse: false, include: String::new(), exclude: String::new(), extension_filter: true }
    }
}

/// Where objects go: always the agent's own cluster in this version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// Name of the cluster: the agent's own cluster name, or `in-cluster` where it has none.
    pub cluster: String,
    /// Namespace of objects that name none; may be empty.
    pub namespace: String,
}

/// Automated sync, which is on when this exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Automated {
    /// Delete what left git.
    pub prune: bool,
    /// Revert drift.
    pub self_heal: bool,
    /// A complete render without any object may prune everything.
    pub allow_empty: bool,
}

/// Retry of a failed sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Attempts after the first, a hard stop; below zero for ever; `None` where none was written.
    pub limit: Option<i64>,
    /// First pause.
    pub backoff_duration: Duration,
    /// Factor of each further pause, at least 1.
    pub backoff_factor: u64,
    /// Longest pause.
    pub backoff_max_duration: Duration,
    /// A retry takes a newer revision where there is one.
    pub refresh: bool,
}

/// Labels and annotations of a namespace that we make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceMetadata {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Fields of some objects that are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreRule {
    /// API group, a glob; empty is the core group.
    pub group: String,
    /// Kind, a glob.
    pub kind: String,
    /// Name; empty for every name.
    pub name: String,
    /// Namespace; empty for every namespace.
    pub namespace: String,
    /// JSON pointers (RFC 6901), each beginning with `/`.
    pub json_pointers: Vec<String>,
}

impl IgnoreRule {
    /// Does the rule speak of this object? Group and kind are globs, name and namespace exact or empty.
    pub fn applies_to(&self, key: &ObjectKey) -> bool {
        glob::matches(&self.group, &key.group, None)
            && glob::matches(&self.kind, &key.kind, None)
            && (self.name.is_empty() || *self.name == *key.name)
            && (self.namespace.is_empty() || *self.namespace == *key.namespace)
    }
}
