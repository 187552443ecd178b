//! The command's side of the socket: one connection per request, every step with a deadline.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use pintle_api as api;
use pintle_api::version::SCHEMA_HEADER;
use pintle_api::{Document, SCHEMA};
use pintle_model::{AppKey, Problem, Reason, limits};
use serde::Serialize;
use serde_json::Value;
use tokio::net::UnixStream;

/// A moment longer than the agent's own deadline, so that its message arrives instead of ours.
const TIMEOUT: Duration =
    Duration::from_secs(limits::REQUEST_SLOW_TIMEOUT_SECS + 2 * limits::REQUEST_HEAD_TIMEOUT_SECS);

/// Talks to the agent behind one socket.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

/// Connects to the agent that holds the store, and checks that both sides understand one another.
///
/// `Ok(None)` means that nobody listens: the caller may take the store itself.
///
/// # Errors
/// The socket may not be opened by this user, or the agent is of an incompatible version or does not answer.
pub async fn connect(socket: &Path) -> Result<Option<Client>, Problem> {
    match UnixStream::connect(socket).await {
        Ok(_) => {}
        Err(error) => return nobody(socket, &error).map(|()| None),
    }
    let client = Client { socket: socket.to_owned() };
    let agent = client.version().await?;
    if agent.schema == SCHEMA {
        return Ok(Some(client));
    }
    Err(Problem::new(
        Reason::IncompatibleVersion,
        format!(
            "this command is pintle {} with API schema {SCHEMA}, the agent at {} is pintle {} with schema {}",
            env!("CARGO_PKG_VERSION"),
            socket.display(),
            agent.version,
            agent.schema
        ),
    ))
}

/// Does this error mean that nobody listens?
fn nobody(socket: &Path, error: &io::Error) -> Result<(), Problem> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory => Ok(()),
        io::ErrorKind::PermissionDenied => Err(Problem::new(
            Reason::SocketForbidden,
            format!("cannot open the agent's socket {}: permission denied", socket.display()),
        )),
        _ => Err(unreachable(socket, error)),
    }
}

fn unreachable(socket: &Path, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Reason::AgentUnreachable, format!("the agent at {}: {error}", socket.display()))
}

impl Client {
    /// `GET /api/v1/version`.
    pub async fn version(&self) -> Result<api::Version, Problem> {
        self.get("/version").await
    }

    /// `GET /api/v1/status`.
    pub async fn status(&self) -> Result<api::Status, Problem> {
        self.get("/status").await
    }

    /// `GET /api/v1/doctor`.
    pub async fn doctor(&self) -> Result<api::Doctor, Problem> {
        self.get("/doctor").await
    }

    /// `POST /api/v1/store/rebind`.
    pub async fn store_rebind(&self) -> Result<api::StoreBinding, Problem> {
        self.post("/store/rebind", &()).await
    }

    /// `GET /api/v1/applications`.
    pub async fn list(&self) -> Result<api::ApplicationList, Problem> {
        self.get("/applications").await
    }

    /// One application, as fresh as asked for.
    pub async fn app(&self, app: &AppKey, refresh: api::Refresh) -> Result<api::Application, Problem> {
        let hard = match refresh {
            api::Refresh::None => return self.get(&path(app, "")).await,
            api::Refresh::Normal => false,
            api::Refresh::Hard => true,
        };
        self.post(&path(app, "/refresh"), &api::RefreshRequest { hard }).await
    }

    /// `POST .../sync`.
    pub async fn sync(
        &self,
        app: &AppKey,
        request: &api::SyncRequest,
    ) -> Result<api::OperationReply, Problem> {
        self.operation(Method::POST, &path(app, "/sync"), request).await
    }

    /// `POST .../rollback`.
    pub async fn rollback(
        &self,
        app: &AppKey,
        request: &api::RollbackRequest,
    ) -> Result<api::OperationReply, Problem> {
        self.operation(Method::POST, &path(app, "/rollback"), request).await
    }

    /// `DELETE ...`.
    pub async fn delete(
        &self,
        app: &AppKey,
        request: &api::DeleteRequest,
    ) -> Result<api::OperationReply, Problem> {
        let mode = match request.mode {
            api::DeleteMode::Orphan => "orphan",
            api::DeleteMode::Cascade => "cascade",
        };
        let confirm = request.confirm.as_deref().map(|token| format!("&confirm={}", escape(token)));
        let target = path(app, &format!("?mode={mode}{}", confirm.unwrap_or_default()));
        self.operation(Method::DELETE, &target, &()).await
    }

    /// `POST .../diff`.
    pub async fn diff(&self, app: &AppKey, request: &api::DiffRequest) -> Result<api::Diff, Problem> {
        self.post(&path(app, "/diff"), request).await
    }

    /// `GET .../history`.
    pub async fn history(&self, app: &AppKey) -> Result<api::History, Problem> {
        self.get(&path(app, "/history")).await
    }

    /// `POST .../pause`.
    pub async fn pause(
        &self,
        app: &AppKey,
        request: &api::PauseRequest,
    ) -> Result<api::Application, Problem> {
        self.post(&path(app, "/pause"), request).await
    }

    /// `GET /backups`.
    pub async fn backups(&self) -> Result<api::BackupList, Problem> {
        self.get("/backups").await
    }

    /// `GET /backups/{id}`.
    pub async fn backup(&self, id: &str) -> Result<api::Backup, Problem> {
        self.get(&format!("/backups/{}", escape(id))).await
    }

    /// `POST /backups/{id}/restore`.
    pub async fn restore(&self, id: &str, request: &api::RestoreRequest) -> Result<api::Backup, Problem> {
        self.post(&format!("/backups/{}/restore", escape(id)), request).await
    }

    /// `POST .../resume`.
    pub async fn resume(&self, app: &AppKey) -> Result<api::Application, Problem> {
        self.post(&path(app, "/resume"), &()).await
    }

    /// `GET .../manifests`.
    pub async fn manifests(&self, app: &AppKey, live: bool) -> Result<api::Manifests, Problem> {
        self.get(&path(app, if live { "/manifests?live=true" } else { "/manifests" })).await
    }

    /// `POST .../terminate`.
    pub async fn terminate(&self, app: &AppKey) -> Result<api::Operation, Problem> {
        self.post(&path(app, "/terminate"), &()).await
    }

    async fn get<T: Document>(&self, target: &str) -> Result<T, Problem> {
        self.read(self.request(Method::GET, target, Bytes::new()).await?)
    }

    async fn post<T: Document>(&self, target: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.read(self.request(Method::POST, target, encode(body)?).await?)
    }

    async fn operation(
        &self,
        method: Method,
        target: &str,
        body: &impl Serialize,
    ) -> Result<api::OperationReply, Problem> {
        let value = self.request(method, target, encode(body)?).await?;
        if value.get("kind").and_then(Value::as_str) == Some(api::Plan::KIND) {
            return Ok(api::OperationReply::Planned(self.read(value)?));
        }
        Ok(api::OperationReply::Started(self.read(value)?))
    }

    fn read<T: Document>(&self, value: Value) -> Result<T, Problem> {
        T::from_document(value).map_err(|error| unreachable(&self.socket, &error))
    }

    /// One request; an `Error` document becomes its [`Problem`].
    async fn request(&self, method: Method, target: &str, body: Bytes) -> Result<Value, Problem> {
        tokio::time::timeout(TIMEOUT, self.exchange(method, target, body)).await.unwrap_or_else(|_| {
            Err(unreachable(&self.socket, &format!("no answer within {} s", TIMEOUT.as_secs())))
        })
    }

    async fn exchange(&self, method: Method, target: &str, body: Bytes) -> Result<Value, Problem> {
        let failed = |error: &dyn std::fmt::Display| unreachable(&self.socket, error);
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| failed(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{target}"))
            .header(header::HOST, "pintle")
            .header(header::USER_AGENT, concat!("pintle/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_TYPE, "application/json")
            .header(SCHEMA_HEADER, SCHEMA)
            .body(Full::new(body))
            .map_err(|error| Problem::new(Reason::Usage, format!("request {target}: {error}")))?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
            let ok = response.status().is_success();
            let body = Limited::new(response.into_body(), limits::ANSWER_MAX_BYTES);
            let body = body.collect().await.map_err(|error| failed(&error))?.to_bytes();
            let value: Value = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
            Ok((ok, value))
        };
        // The connection is driven here, not in a task of its own, so that nothing outlives the request.
        tokio::pin!(answer);
        let (ok, value) = tokio::select! {
            answer = &mut answer => answer,
            Err(error) = connection => Err(failed(&error)),
        }?;
        if ok {
            return Ok(value);
        }
        Err(self.read::<api::ErrorBody>(value).map_or_else(|problem| problem, Problem::from))
    }
}

fn encode(body: &impl Serialize) -> Result<Bytes, Problem> {
    match serde_json::to_vec(body) {
        Ok(bytes) if bytes == b"null" => Ok(Bytes::new()),
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => Err(Problem::new(Reason::Internal, format!("request: {error}"))),
    }
}

fn path(app: &AppKey, rest: &str) -> String {
    format!("/applications/{}/{}{rest}", escape(&app.namespace), escape(&app.name))
}

/// Percent-encodes what RFC 3986 does not allow unescaped in a path segment or query value.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_paths() {
        assert_eq!(path(&AppKey::new("a b", "c/d?e"), "/sync"), "/applications/a%20b/c%2Fd%3Fe/sync");
    }

    #[tokio::test]
    async fn nobody_at_the_socket_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(connect(&dir.path().join("none.sock")).await.unwrap().is_none());
        let stale = dir.path().join("stale.sock");
        drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
        assert!(connect(&stale).await.unwrap().is_none());
    }

    #[test]
    fn a_socket_of_another_user_says_so() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(nobody(Path::new("/s"), &denied).unwrap_err().reason, Reason::SocketForbidden);
    }
}
