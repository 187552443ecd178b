//! A plan as a value: what a sync, rollback or delete would do.

use jiff::Timestamp;
use pintle_model::{AppKey, ObjectKey, Reason};
use serde::{Deserialize, Serialize};

use crate::document::Document;

/// What would be done, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The application.
    pub app: AppKey,
    /// Revision that is planned; empty for a delete.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The steps, in the order in which they would be done.
    pub steps: Vec<PlanStep>,
    /// What a guard refuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// What waits for other applications (the prune barrier).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<Refusal>,
    /// Repeat the command with `--confirm TOKEN` to go on; empty where nothing has to be confirmed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
}

impl Document for Plan {
    const KIND: &'static str = "Plan";
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// What is done.
    pub action: Action,
    /// To which object.
    pub key: ObjectKey,
    /// In which wave.
    pub wave: i64,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// Apply an object that does not exist.
    Create,
    /// Apply an object that exists and differs.
    Update,
    /// Put the whole object.
    Replace,
    /// Delete and create.
    Recreate,
    /// Take an existing object into the inventory.
    Adopt,
    /// Run a hook.
    Hook,
    /// Wait for health.
    Wait,
    /// Delete.
    Prune,
    /// Give up ownership of an object without deleting it.
    Release,
    /// Leave as it is.
    Skip,
}

/// A refused or deferred step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The object; none when the whole is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectKey>,
    /// Which guard.
    pub reason: Reason,
    /// For a person.
    pub message: String,
    /// Since when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}
