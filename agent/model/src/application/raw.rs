//! The Application as it is written: every field of Argo CD's v1alpha1 type, and no other.
//!
//! Every field is optional, since in Go `null`, absent and (but for pointers) empty are one thing. An unknown
//! field is an error. Numbers and booleans where a string belongs become strings in the YAML deserializer
//! (sigs.k8s.io/yaml), not here.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

pub use self::source::{
    RawDirectory, RawHelm, RawHelmFileParameter, RawHelmParameter, RawJsonnet, RawJsonnetVar, RawKustomize,
    RawKustomizePatch, RawKustomizeReplica, RawPlugin, RawPluginEnv, RawPluginParameter, RawSource,
};

mod source;

/// A whole Application document.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawApplication {
    /// `argoproj.io/v1alpha1`.
    pub api_version: Option<String>,
    /// `Application`.
    pub kind: Option<String>,
    /// Name, labels, annotations, finalizers.
    pub metadata: Option<RawMetadata>,
    /// What is wanted.
    pub spec: Option<RawSpec>,
    /// Written by a controller; dropped.
    pub status: Option<IgnoredAny>,
    /// A running operation of an exported object; dropped.
    pub operation: Option<IgnoredAny>,
}

/// `metadata`. What the API server sets on stored objects is accepted, so that an exported Application can be
/// used as it is, and dropped.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawMetadata {
    /// Name.
    pub name: Option<String>,
    /// Namespace; `argocd` when absent.
    pub namespace: Option<String>,
    /// Labels.
    pub labels: Option<BTreeMap<String, Option<String>>>,
    /// Annotations.
    pub annotations: Option<BTreeMap<String, Option<String>>>,
    /// Finalizers; Argo CD's resources finalizer asks for a cascade.
    pub finalizers: Option<Vec<String>>,
    /// Dropped.
    pub generate_name: Option<IgnoredAny>,
    /// Dropped.
    pub uid: Option<IgnoredAny>,
    /// Dropped.
    pub resource_version: Option<IgnoredAny>,
    /// Dropped.
    pub generation: Option<IgnoredAny>,
    /// Dropped.
    pub creation_timestamp: Option<IgnoredAny>,
    /// Dropped.
    pub deletion_timestamp: Option<IgnoredAny>,
    /// Dropped.
    pub deletion_grace_period_seconds: Option<IgnoredAny>,
    /// Dropped.
    pub managed_fields: Option<IgnoredAny>,
    /// Dropped.
    pub owner_references: Option<IgnoredAny>,
    /// Dropped.
    pub self_link: Option<IgnoredAny>,
}

/// `spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawSpec {
    /// The one source.
    pub source: Option<RawSource>,
    /// Several sources.
    pub sources: Option<Vec<RawSource>>,
    /// Hydration (beta in Argo CD).
    pub source_hydrator: Option<RawHydrator>,
    /// Cluster and namespace.
    pub destination: Option<RawDestination>,
    /// Project; `default` when empty.
    pub project: Option<String>,
    /// How to sync.
    pub sync_policy: Option<RawSyncPolicy>,
    /// Fields that are not compared.
    pub ignore_differences: Option<Vec<RawIgnoreDifferences>>,
    /// Free information for people.
    pub info: Option<Vec<RawInfo>>,
    /// History entries kept; 10 when absent, 0 keeps none.
    pub revision_history_limit: Option<i64>,
}

/// `spec.destination`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawDestination {
    /// URL of the API server.
    pub server: Option<String>,
    /// Name of the cluster.
    pub name: Option<String>,
    /// Namespace of objects that name none.
    pub namespace: Option<String>,
}

/// `spec.syncPolicy`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawSyncPolicy {
    /// Present (also as `{}`): automated sync is on. Absent or null: off.
    pub automated: Option<RawAutomated>,
    /// `Option=value` texts.
    pub sync_options: Option<Vec<String>>,
    /// Retry of a failed sync.
    pub retry: Option<RawRetry>,
    /// Labels and annotations of the namespace that `CreateNamespace=true` makes.
    pub managed_namespace_metadata: Option<RawNamespaceMetadata>,
}

/// `spec.syncPolicy.automated`: four pointers, so that null differs from false.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawAutomated {
    /// Delete what left git.
    pub prune: Option<bool>,
    /// Revert drift.
    pub self_heal: Option<bool>,
    /// Allow a render without any object.
    pub allow_empty: Option<bool>,
    /// null and absent mean on.
    pub enabled: Option<bool>,
}

/// `spec.syncPolicy.retry`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawRetry {
    /// Attempts after the first; below zero for ever.
    pub limit: Option<i64>,
    /// Pauses between them.
    pub backoff: Option<RawBackoff>,
    /// Take a newer revision on retry.
    pub refresh: Option<bool>,
}

/// `spec.syncPolicy.retry.backoff`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawBackoff {
    /// First pause.
    pub duration: Option<String>,
    /// Factor of each further pause.
    pub factor: Option<i64>,
    /// Longest pause.
    pub max_duration: Option<String>,
}

/// `spec.syncPolicy.managedNamespaceMetadata`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawNamespaceMetadata {
    /// Labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// One entry of `spec.ignoreDifferences`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawIgnoreDifferences {
    /// API group, a glob; empty is the core group.
    pub group: Option<String>,
    /// Kind, a glob.
    pub kind: Option<String>,
    /// Name; empty for every name.
    pub name: Option<String>,
    /// Namespace; empty for every namespace.
    pub namespace: Option<String>,
    /// JSON pointers (RFC 6901).
    pub json_pointers: Option<Vec<String>>,
    /// jq paths.
    pub jq_path_expressions: Option<Vec<String>>,
    /// Field managers whose fields are ignored.
    pub managed_fields_managers: Option<Vec<String>>,
}

/// One entry of `spec.info`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawInfo {
    /// Name.
    pub name: Option<String>,
    /// Value.
    pub value: Option<String>,
}

/// `spec.sourceHydrator`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawHydrator {
    /// The source to hydrate.
    pub dry_source: Option<RawDrySource>,
    /// Where the hydrated manifests are read.
    pub sync_source: Option<RawSyncSource>,
    /// Where they are written first.
    pub hydrate_to: Option<RawHydrateTo>,
}

/// `spec.sourceHydrator.drySource`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawDrySource {
    /// Repository.
    #[serde(rename = "repoURL")]
    pub repo_url: Option<String>,
    /// Revision.
    pub target_revision: Option<String>,
    /// Path.
    pub path: Option<String>,
    /// Helm settings.
    pub helm: Option<RawHelm>,
    /// Kustomize settings.
    pub kustomize: Option<RawKustomize>,
    /// Directory settings.
    pub directory: Option<RawDirectory>,
    /// Plugin settings.
    pub plugin: Option<RawPlugin>,
}

/// `spec.sourceHydrator.syncSource`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawSyncSource {
    /// Repository, where it is another one.
    #[serde(rename = "repoURL")]
    pub repo_url: Option<String>,
    /// Branch.
    pub target_branch: Option<String>,
    /// Path.
    pub path: Option<String>,
}

/// `spec.sourceHydrator.hydrateTo`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawHydrateTo {
    /// Branch.
    pub target_branch: Option<String>,
}

/// A value of any form that is kept as JSON (`valuesObject`, int-or-string).
pub type Any = Value;
