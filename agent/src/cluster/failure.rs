//! From an API error to a reason: by HTTP status, `Status.reason` and `details.causes`, never by matching English.

use std::time::Duration;

use pintle_model::{Problem, Reason};
use serde_json::Value;

use super::Answer;

/// A failed request.
#[derive(Debug, Clone)]
pub struct ApiFailure {
    /// Reason and text, scrubbed of secret values.
    pub problem: Problem,
    /// HTTP status; 0 when there was no answer.
    pub code: u16,
    /// Fields and what is wrong with them.
    pub causes: Vec<Cause>,
    /// When the server wants to be asked again.
    pub retry_after: Option<Duration>,
    /// Worth asking again within seconds: the server said so, or was away.
    pub retryable: bool,
}

/// One cause of `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Field path.
    pub field: String,
    /// `FieldValueInvalid` and the like.
    pub reason: String,
    /// Text.
    pub message: String,
}

/// No answer.
pub(super) fn unreachable(message: String) -> ApiFailure {
    ApiFailure { retryable: true, ..plain(Reason::ClusterUnreachable, message) }
}

pub(super) fn plain(reason: Reason, message: String) -> ApiFailure {
    ApiFailure {
        problem: Problem::new(reason, message),
        code: 0,
        causes: Vec::new(),
        retry_after: None,
        retryable: false,
    }
}

/// The connection failed: refused, reset, or TLS.
pub(super) fn from_transport(error: &kube::Error, server: &str, kubeconfig: &str) -> ApiFailure {
    let text = chain(error);
    // rustls names what it refuses; there is no status to go by before a connection stands.
    let lower = text.to_lowercase();
    if lower.contains("certificate") || lower.contains("unknownissuer") {
        return unreachable(format!(
            "the TLS connection to {server} ({kubeconfig}) is refused: {text}; the clock says {}",
            jiff::Timestamp::now()
        ));
    }
    unreachable(format!("the API server {server} ({kubeconfig}) cannot be reached: {text}"))
}

/// An answer of 400 and more.
pub(super) fn from_answer(answer: &Answer, method: &str, path: &str) -> ApiFailure {
    let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let secret = is_secret_path(path);
    let causes = causes(&status, secret);
    let reason = reason(answer.status, &status, &causes);
    let mut message = status["message"]
        .as_str()
        .map_or_else(|| format!("HTTP {} to {method} {path}", answer.status), str::to_owned);
    // The server's own text prints whole objects into it: what is wrong, and in which field, is what helps.
    if matches!(answer.status, 400 | 422) && !causes.is_empty() {
        let each: Vec<String> = causes
            .iter()
            .take(10)
            .map(|cause| format!("{}: {}", cause.field, short(&cause.message)))
            .collect();
        let details = &status["details"];
        let text = |name: &str| details[name].as_str().unwrap_or_default();
        message = format!("{} {:?} is refused: {}", text("kind"), text("name"), each.join("; "));
    }
    if secret && matches!(answer.status, 400 | 422 | 500) {
        message = scrubbed(answer.status, path, &causes);
    }
    let retry_after = answer
        .headers
        .get(http::header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok())
        .or_else(|| status["details"]["retryAfterSeconds"].as_u64().filter(|seconds| *seconds > 0))
        .map(Duration::from_secs);
    ApiFailure {
        problem: Problem::new(reason, message),
        code: answer.status,
        causes,
        retry_after,
        retryable: matches!(answer.status, 429 | 500 | 502 | 503 | 504),
    }
}

/// A cause without the value it quotes, where that is long: `Invalid value: ...: field is immutable`.
fn short(message: &str) -> String {
    const LONG: usize = 160;
    if message.len() <= LONG {
        return message.to_owned();
    }
    match (message.split_once(": "), message.rsplit_once(": ")) {
        (Some((what, _)), Some((_, why))) if what.len() + why.len() < LONG => format!("{what}: ...: {why}"),
        _ => message.chars().take(LONG).chain("...".chars()).collect(),
    }
}

fn reason(code: u16, status: &Value, causes: &[Cause]) -> Reason {
    match (code, status["reason"].as_str().unwrap_or_default()) {
        (401, _) => Reason::Unauthorized,
        (403, _) => Reason::Forbidden,
        (404, _) => Reason::NotFound,
        (409, _) => Reason::Conflict,
        (422, _) if is_immutable(causes) => Reason::ImmutableField,
        (400 | 415 | 422, _) => Reason::Invalid,
        (429, _) => Reason::TooManyRequests,
        (503 | 504, _) => Reason::ClusterUnreachable,
        _ => Reason::ServerError,
    }
}

/// The API has no code for "immutable": such fields come back as FieldValueForbidden, or FieldValueInvalid with the
/// constant text of apimachinery's `FieldImmutableErrorMsg`, which is part of the API's validation library and the
/// same in all languages and versions.
fn is_immutable(causes: &[Cause]) -> bool {
    causes.iter().any(|cause| {
        cause.message.ends_with("field is immutable")
            || (cause.reason == "FieldValueForbidden" && cause.message.contains("updates to"))
    })
}

fn causes(status: &Value, secret: bool) -> Vec<Cause> {
    let list = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|cause| Cause {
            field: cause["field"].as_str().unwrap_or_default().to_owned(),
            reason: cause["reason"].as_str().unwrap_or_default().to_owned(),
            message: if secret {
                String::new()
            } else {
                cause["message"].as_str().unwrap_or_default().to_owned()
            },
        })
        .collect()
}

fn is_secret_path(path: &str) -> bool {
    path.starts_with("/api/v1/") && path.split(['/', '?']).any(|part| part == "secrets")
}

/// The server quotes values in its texts; of a Secret only fields and reasons are passed on.
fn scrubbed(code: u16, path: &str, causes: &[Cause]) -> String {
    let name = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let fields: Vec<String> =
        causes.iter().map(|cause| format!("{} ({})", cause.field, cause.reason)).collect();
    let fields = if fields.is_empty() {
        "a value has the wrong type or form; data takes base64 text, stringData takes strings".to_owned()
    } else {
        fields.join(", ")
    };
    format!(
        "the API server refuses Secret {name} (HTTP {code}; its text is left out since it may quote values): {fields}"
    )
}

/// An error with all its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = cause.source();
    }
    text
}
