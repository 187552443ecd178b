//! The store: the cluster that it belongs to, and whether it is whole.

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Answer of `pintle store rebind`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreBinding {
    /// UID of `kube-system` of the cluster that the store now belongs to.
    pub cluster_uid: String,
    /// The one before; empty when it belonged to none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub previous_cluster_uid: String,
}

impl Document for StoreBinding {
    const KIND: &'static str = "StoreBinding";
}

/// Answer of `pintle store check`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreCheck {
    /// Directory (`store.path`).
    pub path: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Generation.
    pub generation: u64,
    /// Records that were read.
    pub records: u64,
    /// What is damaged; empty when all is well.
    pub problems: Vec<String>,
}

impl Document for StoreCheck {
    const KIND: &'static str = "StoreCheck";
}
