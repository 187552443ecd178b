//! Differences between git and the cluster, with who made them.

use jiff::Timestamp;
use pintle_model::{AppKey, ObjectKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::Document;

/// All objects of one application that differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The application.
    pub app: AppKey,
    /// Revision that was compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Objects that differ; empty when the cluster equals git.
    pub objects: Vec<ObjectDiff>,
}

impl Document for Diff {
    const KIND: &'static str = "Diff";
}

/// One object that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// The object.
    pub key: ObjectKey,
    /// What a sync would do.
    pub change: Change,
    /// The fields, each with who changed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// The live object as YAML, Secret values masked; empty for a create.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The object after a sync as YAML, Secret values masked; empty for a prune.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
}

/// What a sync would do to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// It does not exist.
    Create,
    /// It exists and differs.
    Update,
    /// Git no longer has it.
    Prune,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Difference {
    /// The field, as `spec.replicas` or `spec.containers[name=web].image`.
    pub path: String,
    /// The value there; null when the field is not there.
    pub live: Value,
    /// The value that git wants; null when git does not want the field.
    pub wanted: Value,
    /// Field manager that last wrote it; empty when unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// `Update` or `Apply`; empty when unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// That manager's last write: the change was made at or before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}
