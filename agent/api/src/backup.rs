//! Backups: what objects were before they were deleted, replaced or made anew.

use jiff::Timestamp;
use pintle_model::{AppKey, ObjectKey};
use serde::{Deserialize, Serialize};

use crate::document::Document;

/// One backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Its id, sorted by time.
    pub id: String,
    /// The application that deleted or changed the object.
    pub app: AppKey,
    /// Object.
    pub key: ObjectKey,
    /// `pruned`, `replaced`, `made anew`.
    pub why: String,
    /// When.
    pub at: Timestamp,
    /// The object as YAML, secret values masked; left out of lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
}

impl Document for Backup {
    const KIND: &'static str = "Backup";
}

/// All backups, oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupList {
    /// Backups without their manifests.
    pub items: Vec<Backup>,
}

impl Document for BackupList {
    const KIND: &'static str = "BackupList";
}

/// Query of `POST /backups/{id}/restore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RestoreRequest {
    /// Put it over an object that is there.
    pub force: bool,
}
