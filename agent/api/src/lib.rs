//! The types that CLI, socket and OpenAPI speak: serde only, no IO, no clock.
//!
//! Every output is a [`Document`]: on the wire it carries `apiVersion` and `kind`. Applications have Argo CD's
//! shape (`argoproj.io/v1alpha1`), everything else is `pintle.dev/v1`. Field names are camelCase. Nothing here
//! ever holds a secret value: whoever fills a text or a difference has masked it before.

pub mod application;
pub mod backup;
pub mod diff;
pub mod doctor;
pub mod document;
pub mod error;
pub mod history;
pub mod manifests;
pub mod operation;
pub mod plan;
pub mod request;
pub mod status;
pub mod store;
pub mod version;

pub use application::{
    Application, ApplicationList, ApplicationStatus, Condition, HealthStatus, Metadata, ResourceHealth,
    ResourceStatus, Summary, SyncState, SyncStatus,
};
pub use backup::{Backup, BackupList, RestoreRequest};
pub use diff::{Change, Diff, Difference, ObjectDiff};
pub use doctor::{Check, Doctor, Verdict};
pub use document::{Document, WrongDocument};
pub use error::ErrorBody;
pub use history::{History, HistoryEntry};
pub use manifests::Manifests;
pub use operation::{
    InitiatedBy, Operation, OperationPhase, OperationReply, OperationState, ResourceResult, ResultCode,
    SyncResult,
};
pub use plan::{Action, Plan, PlanStep, Refusal};
pub use request::{
    DeleteMode, DeleteRequest, DiffRequest, PauseRequest, Refresh, RefreshRequest, ResourceSelector,
    RollbackRequest, SyncRequest,
};
pub use status::{AgentInfo, AppRow, ClockInfo, ClusterInfo, GitInfo, Hold, Status, StoreInfo};
pub use store::{StoreBinding, StoreCheck};
pub use version::{SCHEMA, Version};

/// `apiVersion` of everything that Argo CD has no type for.
pub const PINTLE_V1: &str = "pintle.dev/v1";
/// `apiVersion` of applications.
pub const ARGO_V1ALPHA1: &str = "argoproj.io/v1alpha1";
