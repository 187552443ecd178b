//! `pintle status`: everything on one screen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_model::AppKey;
use serde::{Deserialize, Serialize};

use crate::application::{HealthStatus, SyncStatus};
use crate::document::Document;
use crate::operation::OperationPhase;

/// The agent at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// When this was true, by the agent's clock. Ages are counted from here.
    pub now: Timestamp,
    /// The agent.
    pub agent: AgentInfo,
    /// The cluster.
    pub cluster: ClusterInfo,
    /// One entry per repository and ref.
    #[serde(default)]
    pub git: Vec<GitInfo>,
    /// One row per application.
    #[serde(default)]
    pub apps: Vec<AppRow>,
    /// The store.
    pub store: StoreInfo,
    /// The clock.
    pub clock: ClockInfo,
}

impl Document for Status {
    const KIND: &'static str = "Status";
}

/// The agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentInfo {
    /// Version of the binary that answers.
    pub version: String,
    /// Agent id (`agent.id`).
    pub id: String,
    /// Name of the cluster (`cluster.name`); empty when not set.
    pub cluster: String,
    /// Labels of the cluster (`cluster.labels`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The agent's namespace.
    pub namespace: String,
    /// Process id.
    pub pid: u32,
    /// Since when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// What a person should know about the agent as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInfo {
    /// Does the API server answer?
    pub reachable: bool,
    /// Since when it does or does not; none before the first attempt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The API server's URL.
    pub server: String,
    /// Its version; empty before the first answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// UID of `kube-system`, to which the store is bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Why it does not answer, or why nothing is touched.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One ref of one repository.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitInfo {
    /// URL without credentials.
    pub url: String,
    /// Ref as in `targetRevision`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Resolved revision that is in use; empty before the first fetch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// When the server last told what the ref is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<Timestamp>,
    /// When it was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<Timestamp>,
    /// Why the last attempt failed; empty when it did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
}

/// One application in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppRow {
    /// The application.
    pub name: AppKey,
    /// Project.
    pub project: String,
    /// Sync status.
    pub sync: SyncStatus,
    /// Health status.
    pub health: HealthStatus,
    /// Resolved revision; empty before the first render.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Phase of the last operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationPhase>,
    /// Objects that were changed by somebody else and not yet put back.
    #[serde(default)]
    pub drift: u64,
    /// What keeps it from following git.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
    /// The most important thing to know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What keeps an application from following git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Hold {
    /// A rollback holds it.
    Pinned,
    /// A person paused it.
    Paused,
    /// Its file vanished.
    Detached,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreInfo {
    /// Directory (`store.path`).
    pub path: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Generation: grows with every commit.
    pub generation: u64,
    /// What happened to it (quarantined, rebuilt, ...).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClockInfo {
    /// Is wall time trusted?
    pub trusted: bool,
    /// Why, or why not.
    pub detail: String,
}
