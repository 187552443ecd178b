//! From results to HTTP answers: the one table from reason to HTTP status.

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pintle_api::{Document, ErrorBody, OperationReply};
use pintle_model::{Problem, Reason};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A failure on its way to the client.
#[derive(Debug)]
pub(super) struct Failure(pub(super) Problem);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        json(status_of(self.0.reason), &ErrorBody::from(&self.0).to_document())
    }
}

/// What a handler returns.
pub(super) type Answer = Result<Response, Failure>;

/// 200 with a document.
pub(super) fn ok(document: impl Document) -> Response {
    json(StatusCode::OK, &document.to_document())
}

/// 202 with the operation that runs, or 200 with the plan.
pub(super) fn operation(reply: OperationReply) -> Response {
    match reply {
        OperationReply::Started(operation) => json(StatusCode::ACCEPTED, &operation.to_document()),
        OperationReply::Planned(plan) => json(StatusCode::OK, &plan.to_document()),
    }
}

/// An error that a person made in the request.
pub(super) fn usage(message: impl Into<String>) -> Failure {
    Failure(Problem::new(Reason::Usage, message))
}

/// The request's body; an empty one is `{}`.
pub(super) fn body<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Failure> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).map_err(|error| usage(format!("body of the request: {error}")))
}

fn json(status: StatusCode, document: &Value) -> Response {
    let mut response = (status, document.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// HTTP status of a reason. 4xx: the request must change. 409: a hold or a guard. 5xx: it may succeed later.
pub(super) fn status_of(reason: Reason) -> StatusCode {
    match reason {
        Reason::InvalidSpecError
        | Reason::InvalidConfig
        | Reason::RenderError
        | Reason::RepeatedResourceWarning
        | Reason::Invalid
        | Reason::ImmutableField
        | Reason::UnknownKind => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::Usage => StatusCode::BAD_REQUEST,
        Reason::SocketForbidden => StatusCode::FORBIDDEN,
        Reason::NoSuch | Reason::RevisionNotFound | Reason::NotFound => StatusCode::NOT_FOUND,
        Reason::Conflict
        | Reason::WrongCluster
        | Reason::ClaimedByAnother
        | Reason::OwnedByAnother
        | Reason::SharedResourceWarning
        | Reason::PruneRefused
        | Reason::PruneDeferred
        | Reason::Pinned
        | Reason::Terminated
        | Reason::StoreHeld => StatusCode::CONFLICT,
        Reason::IncompatibleVersion => StatusCode::UPGRADE_REQUIRED,
        // The agent's credentials were refused, not the client's.
        Reason::GitUnreachable
        | Reason::GitUnauthorized
        | Reason::GitCertificate
        | Reason::GitNotFound
        | Reason::ClusterUnreachable
        | Reason::ServerError
        | Reason::Forbidden
        | Reason::Unauthorized => StatusCode::BAD_GATEWAY,
        Reason::TooManyRequests | Reason::AgentUnreachable => StatusCode::SERVICE_UNAVAILABLE,
        Reason::FetchTimeout | Reason::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Reason::SourceError
        | Reason::ComparisonError
        | Reason::SyncError
        | Reason::KubeconfigInvalid
        | Reason::StoreError
        | Reason::StoreNewer
        | Reason::OutputError
        | Reason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
