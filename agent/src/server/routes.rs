//! The routes of `/api/v1`, `/healthz` and `/readyz`.

use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use pintle_api::version::SCHEMA_HEADER;
use pintle_api::{DeleteRequest, Refresh, RefreshRequest, SCHEMA, Version};
use pintle_model::{AppKey, Problem, Reason, limits};
use serde::Deserialize;

use super::answer::{Answer, Failure, body, ok, operation, usage};
use crate::handle::Handle;

/// All routes, asked in the name of whom `handle` carries.
pub(super) fn router(handle: Handle) -> Router {
    let api = Router::new()
        .route("/status", get(status))
        .route("/doctor", get(doctor))
        .route("/store/rebind", post(store_rebind))
        .route("/applications", get(list))
        .route("/applications/{namespace}/{name}", get(app).delete(delete))
        .route("/applications/{namespace}/{name}/refresh", post(refresh))
        .route("/applications/{namespace}/{name}/sync", post(sync))
        .route("/applications/{namespace}/{name}/diff", post(diff))
        .route("/applications/{namespace}/{name}/history", get(history))
        .route("/applications/{namespace}/{name}/rollback", post(rollback))
        .route("/backups", get(backups))
        .route("/backups/{id}", get(backup))
        .route("/backups/{id}/restore", post(restore))
        .route("/applications/{namespace}/{name}/pause", post(pause))
        .route("/applications/{namespace}/{name}/resume", post(resume))
        .route("/applications/{namespace}/{name}/manifests", get(manifests))
        .route("/applications/{namespace}/{name}/terminate", post(terminate))
        .layer(middleware::from_fn(same_schema))
        // Below the check: a client of any schema may ask for the version.
        .route("/version", get(version));
    Router::new()
        .nest("/api/v1", api)
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn(whole_body))
        // `whole_body` is the limit.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(deadline))
        .with_state(handle)
}

/// Ends what a slow client or engine would keep open. The engine's own deadline is shorter.
async fn deadline(request: Request, next: Next) -> Response {
    let limit = Duration::from_secs(limits::REQUEST_SLOW_TIMEOUT_SECS + limits::REQUEST_HEAD_TIMEOUT_SECS);
    tokio::time::timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let message = format!("the request did not end within {} s", limit.as_secs());
        Failure(Problem::new(Reason::AgentUnreachable, message)).into_response()
    })
}

/// Takes in the whole body, within its largest size and its deadline, before a handler runs.
async fn whole_body(request: Request, next: Next) -> Response {
    let too_large = || {
        let mut response =
            usage(format!("the request's body is larger than {} bytes", limits::REQUEST_BODY_MAX_BYTES))
                .into_response();
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        response
    };
    // What the head announces is refused unread.
    if request.body().size_hint().lower() > limits::REQUEST_BODY_MAX_BYTES as u64 {
        return too_large();
    }
    let (head, body) = request.into_parts();
    let read = axum::body::to_bytes(body, limits::REQUEST_BODY_MAX_BYTES);
    let limit = Duration::from_secs(limits::REQUEST_HEAD_TIMEOUT_SECS);
    match tokio::time::timeout(limit, read).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, bytes.into())).await,
        Ok(Err(error)) if is_length_limit(&error) => too_large(),
        Ok(Err(error)) => usage(format!("body of the request: {error}")).into_response(),
        Err(_) => {
            usage(format!("the request's body did not come within {} s", limit.as_secs())).into_response()
        }
    }
}

fn is_length_limit(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>())
}

/// Refuses a client that speaks another schema. A request without the header (curl) is taken at its word.
async fn same_schema(request: Request, next: Next) -> Response {
    let theirs = request.headers().get(SCHEMA_HEADER).map(|value| value.to_str().unwrap_or("?").to_owned());
    match theirs {
        Some(theirs) if theirs != SCHEMA.to_string() => Failure(Problem::new(
            Reason::IncompatibleVersion,
            format!(
                "the command speaks API schema {theirs}, the running agent {} speaks {SCHEMA}",
                env!("CARGO_PKG_VERSION")
            ),
        ))
        .into_response(),
        _ => next.run(request).await,
    }
}

async fn no_route(request: Request) -> Failure {
    Failure(Problem::new(Reason::NoSuch, format!("there is no {} in this API", request.uri().path())))
}

async fn no_method(request: Request) -> Response {
    let failure = usage(format!("{} does not take {}", request.uri().path(), request.method()));
    let mut response = failure.into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn version() -> Response {
    ok(Version { version: env!("CARGO_PKG_VERSION").to_owned(), schema: SCHEMA })
}

/// Alive: the engine still takes questions.
async fn healthz(State(handle): State<Handle>) -> Response {
    if handle.open() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the agent is shutting down\n").into_response()
    }
}

/// Ready: the engine answers.
async fn readyz(State(handle): State<Handle>) -> Response {
    match handle.status().await {
        Ok(_) => "ok\n".into_response(),
        Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
    }
}

async fn status(State(handle): State<Handle>) -> Answer {
    Ok(ok(handle.status().await?))
}

async fn doctor(State(handle): State<Handle>) -> Answer {
    Ok(ok(handle.doctor().await?))
}

async fn store_rebind(State(handle): State<Handle>) -> Answer {
    Ok(ok(handle.store_rebind().await?))
}

async fn list(State(handle): State<Handle>) -> Answer {
    Ok(ok(handle.list().await?))
}

type AppPath = Path<(String, String)>;

fn key(Path((namespace, name)): &AppPath) -> AppKey {
    AppKey::new(namespace, name)
}

fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Failure> {
    query.map(|Query(value)| value).map_err(|rejection| usage(rejection.body_text()))
}

async fn app(State(handle): State<Handle>, path: AppPath) -> Answer {
    Ok(ok(handle.get(key(&path), Refresh::None).await?))
}

async fn refresh(State(handle): State<Handle>, path: AppPath, raw: Bytes) -> Answer {
    let request: RefreshRequest = body(&raw)?;
    let refresh = if request.hard { Refresh::Hard } else { Refresh::Normal };
    Ok(ok(handle.get(key(&path), refresh).await?))
}

async fn sync(State(handle): State<Handle>, path: AppPath, raw: Bytes) -> Answer {
    Ok(operation(handle.sync(key(&path), body(&raw)?).await?))
}

async fn diff(State(handle): State<Handle>, path: AppPath, raw: Bytes) -> Answer {
    Ok(ok(handle.diff(key(&path), body(&raw)?).await?))
}

async fn history(State(handle): State<Handle>, path: AppPath) -> Answer {
    Ok(ok(handle.history(key(&path)).await?))
}

async fn rollback(State(handle): State<Handle>, path: AppPath, raw: Bytes) -> Answer {
    Ok(operation(handle.rollback(key(&path), body(&raw)?).await?))
}

async fn pause(State(handle): State<Handle>, path: AppPath, raw: Bytes) -> Answer {
    Ok(ok(handle.pause(key(&path), body(&raw)?).await?))
}

async fn backups(State(handle): State<Handle>) -> Answer {
    Ok(ok(handle.backups().await?))
}

async fn backup(State(handle): State<Handle>, Path(id): Path<String>) -> Answer {
    Ok(ok(handle.backup(id).await?))
}

async fn restore(State(handle): State<Handle>, Path(id): Path<String>, raw: Bytes) -> Answer {
    Ok(ok(handle.restore(id, body(&raw)?).await?))
}

async fn resume(State(handle): State<Handle>, path: AppPath) -> Answer {
    Ok(ok(handle.resume(key(&path)).await?))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ManifestsQuery {
    live: bool,
}

async fn manifests(
    State(handle): State<Handle>,
    path: AppPath,
    parameters: Result<Query<ManifestsQuery>, QueryRejection>,
) -> Answer {
    Ok(ok(handle.manifests(key(&path), query(parameters)?.live).await?))
}

async fn delete(
    State(handle): State<Handle>,
    path: AppPath,
    parameters: Result<Query<DeleteRequest>, QueryRejection>,
) -> Answer {
    Ok(operation(handle.delete(key(&path), query(parameters)?).await?))
}

async fn terminate(State(handle): State<Handle>, path: AppPath) -> Answer {
    Ok(ok(handle.terminate(key(&path)).await?))
}
