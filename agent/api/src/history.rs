//! Earlier deployments.

use jiff::Timestamp;
use pintle_model::AppKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::Document;
use crate::operation::{InitiatedBy, OperationPhase};

/// Earlier deployments of one application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The application.
    pub app: AppKey,
    /// Oldest first.
    pub items: Vec<HistoryEntry>,
}

impl Document for History {
    const KIND: &'static str = "History";
}

/// One deployment: an entry of `status.history`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryEntry {
    /// Number for `rollback APP ID`; grows, is never used again.
    pub id: u64,
    /// Resolved revision.
    pub revision: String,
    /// When the operation ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<Timestamp>,
    /// When the operation began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_started_at: Option<Timestamp>,
    /// Who or what started it.
    pub initiated_by: InitiatedBy,
    /// The source as in the spec.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub source: Value,
    /// How it ended (Pintle's).
    pub phase: OperationPhase,
    /// Summary (Pintle's).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// First line of the commit's message (Pintle's).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The commit's author (Pintle's).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// How often it was tried again with the same failure (Pintle's).
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Reverted drift and hand-overs since the entry before (Pintle's).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
