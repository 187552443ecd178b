//! What `pintle doctor` found.

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// All checks, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Doctor {
    /// The checks.
    pub checks: Vec<Check>,
}

impl Document for Doctor {
    const KIND: &'static str = "Doctor";
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// The verdict.
    pub ok: Verdict,
    /// What was found.
    pub detail: String,
    /// What to do; empty when all is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// Verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// All is well.
    Ok,
    /// Works, but look at it.
    Warn,
    /// Does not work.
    Fail,
}
