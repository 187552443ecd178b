//! The handshake: a client and an agent of different versions must not misread one another.

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Number of this API. Grows when a client of before could misread an answer or send a request that means
/// something else now; a new optional field does not change it.
pub const SCHEMA: u32 = 1;

/// Header in which a client tells its schema.
pub const SCHEMA_HEADER: &str = "pintle-schema";

/// Answer of `GET /api/v1/version`, which is answered to clients of every schema.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Version {
    /// Version of the binary.
    pub version: String,
    /// Its [`SCHEMA`].
    pub schema: u32,
}

impl Document for Version {
    const KIND: &'static str = "Version";
}
