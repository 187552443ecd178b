//! Operations: what runs, and what it did to each object.

use jiff::Timestamp;
use pintle_model::AppKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::Document;
use crate::plan::Plan;

/// An operation that was started by a request. Its course is `status.operationState` of the application with
/// the same `id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The application.
    pub app: AppKey,
    /// Identity of this operation; also in `operationState.id`.
    pub id: String,
    /// Its state when the answer was made; `Succeeded` at once where nothing had to be done.
    pub state: OperationState,
}

impl Document for Operation {
    const KIND: &'static str = "Operation";
}

/// The answer to a request that may change the cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationReply {
    /// It runs (or is already done).
    Started(Operation),
    /// Nothing was started: a dry run, or a cascade that waits for the token printed in the plan.
    Planned(Plan),
}

/// `status.operationState`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationState {
    /// Identity of the operation (Pintle's).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// How far it is.
    pub phase: OperationPhase,
    /// For a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// What was asked for: `{sync: {...}, initiatedBy: {...}}` as in Argo CD.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub operation: Value,
    /// Results per object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_result: Option<SyncResult>,
    /// How often it was tried again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_count: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum OperationPhase {
    /// Under way.
    #[default]
    Running,
    /// Being ended by a person.
    Terminating,
    /// Ended: some objects failed.
    Failed,
    /// Ended: it could not be carried out.
    Error,
    /// Ended well.
    Succeeded,
}

impl OperationPhase {
    /// Has it ended?
    pub fn ended(self) -> bool {
        matches!(self, Self::Failed | Self::Error | Self::Succeeded)
    }
}

/// What an operation did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncResult {
    /// Resolved revision.
    pub revision: String,
    /// One entry per object, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceResult>,
}

/// What an operation did to one object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceResult {
    /// API group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version without the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Result; none while a hook runs or the object waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ResultCode>,
    /// `deployment.apps/web created`, or what went wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For a hook: how far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_phase: Option<OperationPhase>,
    /// For a hook: `PreSync`, `Sync`, ...
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hook_type: String,
    /// Phase of the sync in which the object stands.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sync_phase: String,
}

/// Argo CD's result codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ResultCode {
    /// Applied.
    Synced,
    /// Apply or delete failed.
    SyncFailed,
    /// Deleted.
    Pruned,
    /// Left although git no longer has it.
    PruneSkipped,
}

/// Who or what started an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitiatedBy {
    /// The user: for the socket `uid:N`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Started by the agent itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automated: bool,
}
