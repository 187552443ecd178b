//! The AppProject as it is written: every field of Argo CD's v1alpha1 type, and no other.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::application::raw::RawMetadata;

/// A whole AppProject document.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawAppProject {
    /// `argoproj.io/v1alpha1`.
    pub api_version: Option<String>,
    /// `AppProject`.
    pub kind: Option<String>,
    /// Name.
    pub metadata: Option<RawMetadata>,
    /// The fence.
    pub spec: Option<RawProjectSpec>,
    /// Written by a controller; dropped.
    pub status: Option<IgnoredAny>,
}

/// `spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawProjectSpec {
    /// Globs of repositories.
    pub source_repos: Option<Vec<String>>,
    /// Namespaces of Applications.
    pub source_namespaces: Option<Vec<String>>,
    /// Clusters and namespaces.
    pub destinations: Option<Vec<RawProjectDestination>>,
    /// Free text.
    pub description: Option<String>,
    /// Cluster-scoped kinds allowed.
    pub cluster_resource_whitelist: Option<Vec<RawClusterResource>>,
    /// Cluster-scoped kinds denied.
    pub cluster_resource_blacklist: Option<Vec<RawClusterResource>>,
    /// Namespaced kinds allowed.
    pub namespace_resource_whitelist: Option<Vec<RawGroupKind>>,
    /// Namespaced kinds denied.
    pub namespace_resource_blacklist: Option<Vec<RawGroupKind>>,
    /// Roles of people and tokens.
    pub roles: Option<Vec<RawRole>>,
    /// Watch of objects that no application owns.
    pub orphaned_resources: Option<RawOrphanedResources>,
    /// Times in which syncs are allowed or denied.
    pub sync_windows: Option<Vec<RawSyncWindow>>,
    /// OpenPGP keys.
    pub signature_keys: Option<Vec<RawSignatureKey>>,
    /// Signature policies.
    pub source_integrity: Option<RawSourceIntegrity>,
    /// Only clusters of the project.
    pub permit_only_project_scoped_clusters: Option<bool>,
    /// Impersonated service accounts.
    pub destination_service_accounts: Option<Vec<RawDestinationServiceAccount>>,
}

/// One destination.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawProjectDestination {
    /// API server URL.
    pub server: Option<String>,
    /// Cluster name.
    pub name: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
}

/// A cluster-scoped kind and its names.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawClusterResource {
    /// API group.
    pub group: Option<String>,
    /// Kind.
    pub kind: Option<String>,
    /// Glob of names.
    pub name: Option<String>,
}

/// A namespaced kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawGroupKind {
    /// API group.
    pub group: Option<String>,
    /// Kind.
    pub kind: Option<String>,
}

/// One role.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawRole {
    /// Name.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Lines of policy.csv.
    pub policies: Option<Vec<String>>,
    /// Tokens issued.
    pub jwt_tokens: Option<Vec<IgnoredAny>>,
    /// OIDC groups.
    pub groups: Option<Vec<String>>,
}

/// `orphanedResources`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawOrphanedResources {
    /// Show a condition.
    pub warn: Option<bool>,
    /// What is left out.
    pub ignore: Option<Vec<RawOrphanedKey>>,
}

/// One `orphanedResources.ignore` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawOrphanedKey {
    /// API group.
    pub group: Option<String>,
    /// Kind.
    pub kind: Option<String>,
    /// Name.
    pub name: Option<String>,
}

/// One sync window.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawSyncWindow {
    /// `allow` or `deny`.
    pub kind: Option<String>,
    /// Cron expression.
    pub schedule: Option<String>,
    /// How long it is open.
    pub duration: Option<String>,
    /// Globs of applications.
    pub applications: Option<Vec<String>>,
    /// Globs of namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Globs of clusters.
    pub clusters: Option<Vec<String>>,
    /// A person may sync all the same.
    pub manual_sync: Option<bool>,
    /// Zone of the schedule.
    pub time_zone: Option<String>,
    /// All of the lists must match.
    pub and_operator: Option<bool>,
    /// Free text.
    pub description: Option<String>,
    /// A sync that began inside may end outside.
    pub sync_overrun: Option<bool>,
}

/// One signature key.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSignatureKey {
    /// Id of the key.
    #[serde(rename = "keyID")]
    pub key_id: Option<String>,
}

/// `sourceIntegrity`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawSourceIntegrity {
    /// Policies for git.
    pub git: Option<RawGitIntegrity>,
}

/// `sourceIntegrity.git`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawGitIntegrity {
    /// Policies in their order.
    pub policies: Option<Vec<RawIntegrityPolicy>>,
}

/// One policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawIntegrityPolicy {
    /// Repositories that it speaks of.
    pub repos: Option<Vec<RawIntegrityRepo>>,
    /// OpenPGP rules.
    pub gpg: Option<RawGpg>,
}

/// One repository of a policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawIntegrityRepo {
    /// Glob of the URL.
    pub url: Option<String>,
}

/// OpenPGP rules of a policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawGpg {
    /// `none`, `head` or `strict`.
    pub mode: Option<String>,
    /// Ids of keys.
    pub keys: Option<Vec<String>>,
}

/// One impersonated service account.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawDestinationServiceAccount {
    /// API server URL.
    pub server: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
    /// Service account.
    pub default_service_account: Option<String>,
}
