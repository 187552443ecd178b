//! The cluster that the store belongs to.

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
