//! Rendered or live objects.

use pintle_model::{AppKey, Object};
use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Objects of one application, Secret values masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifests {
    /// The application.
    pub app: AppKey,
    /// Revision of the render; empty for live objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The objects, in the order in which they are applied.
    pub manifests: Vec<Object>,
}

impl Document for Manifests {
    const KIND: &'static str = "Manifests";
}
