//! Errors on the wire.

use pintle_model::{Problem, Reason};
use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Body of every answer that is an error, and what `-o json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// The reason.
    pub reason: Reason,
    /// What happened and where.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// May the same request succeed later?
    #[serde(default)]
    pub retryable: bool,
}

impl Document for ErrorBody {
    const KIND: &'static str = "Error";
}

impl From<&Problem> for ErrorBody {
    fn from(problem: &Problem) -> Self {
        Self {
            reason: problem.reason,
            message: problem.message.clone(),
            hint: problem.reason.hint().to_owned(),
            retryable: problem.reason.retryable(),
        }
    }
}

impl From<ErrorBody> for Problem {
    fn from(body: ErrorBody) -> Self {
        Self::new(body.reason, body.message)
    }
}
