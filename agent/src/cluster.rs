//! The Kubernetes API: client, discovery, objects as raw JSON, watches, events. It classifies failures and holds no
//! policy: it never reorders, skips or tries again on its own.
//!
//! Guarantees
//! - Every request but a watch ends within [`limits::API_TIMEOUT_SECS`].
//! - No secret value of a Secret reaches an error text.
//! - A watch asks for nothing at rest: one list when it starts or has expired, then one long request.

mod discovery;
mod failure;
mod kubeconfig;
mod objects;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use pintle_model::{ObjectKey, Problem, Reason, limits};
use tokio::sync::Semaphore;

pub use discovery::{ApiResource, Discovery};
pub use failure::ApiFailure;
pub use kubeconfig::{Found, find_kubeconfig};
pub use objects::{Applied, ApplyOptions, Deleted, FieldValidation};
pub use watch::{WatchEvent, WatchGuard};

/// A client of one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    server: Arc<str>,
    description: Arc<str>,
    requests: Arc<AtomicU64>,
    /// Every request under way takes one connection, and the pool keeps what was ever opened: hundreds of them cost
    /// more memory than everything else.
    connections: Arc<Semaphore>,
}

/// A Kubernetes event to be written on an object.
#[derive(Debug, Clone)]
pub struct EventRecord {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// The object.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// CamelCase reason.
    pub reason: String,
    /// What was done.
    pub action: String,
    /// For a person, at most 1,024 bytes are sent.
    pub message: String,
}

/// A whole answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Cluster {
    /// Makes the client; nothing is asked yet.
    pub fn new(found: &Found) -> Result<Self, Problem> {
        crate::tls::install_crypto_provider();
        let mut config = found.config.clone();
        // Retries are the engine's to decide; a retried write would also hide what happened.
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(10));
        // A watch must outlive any read timeout; every other request has a deadline of its own.
        config.read_timeout = None;
        let server = config.cluster_url.to_string();
        let client = kube::Client::try_from(config).map_err(|error| {
            Problem::new(
                Reason::KubeconfigInvalid,
                format!("{} cannot be used: {}", found.description, failure::chain(&error)),
            )
        })?;
        Ok(Self {
            client,
            server: server.trim_end_matches('/').into(),
            description: found.description.as_str().into(),
            requests: Arc::default(),
            connections: Arc::new(Semaphore::new(limits::API_CONNECTIONS)),
        })
    }

    /// URL of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Where the kubeconfig came from.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Requests sent so far, watches included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The server's version, such as `v1.36.3`.
    pub async fn version(&self) -> Result<String, Problem> {
        let answer = self.call(Method::GET, "/version", None, "").await.map_err(|failure| failure.problem)?;
        let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        Ok(value["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    /// UID of the namespace `kube-system`, which identifies a cluster.
    pub async fn uid(&self) -> Result<String, Problem> {
        let path = "/api/v1/namespaces/kube-system";
        let answer = self.call(Method::GET, path, None, "").await.map_err(|failure| failure.problem)?;
        let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match value["metadata"]["uid"].as_str() {
            Some(uid) if !uid.is_empty() => Ok(uid.to_owned()),
            _ => Err(Problem::new(Reason::ServerError, "the namespace kube-system has no UID")),
        }
    }

    /// One request within the deadline; an answer of 400 and more is a failure.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
        accept: &str,
    ) -> Result<Answer, ApiFailure> {
        let answer = self.call_raw(method.clone(), path, body, accept).await?;
        if answer.status >= 400 {
            return Err(failure::from_answer(&answer, method.as_str(), path));
        }
        Ok(answer)
    }

    async fn call_raw(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
        accept: &str,
    ) -> Result<Answer, ApiFailure> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Self::build(method, path, body, accept)?;
        // Never closed, so that this cannot fail.
        let _connection = self.connections.acquire().await;
        let deadline = Duration::from_secs(limits::API_TIMEOUT_SECS);
        match tokio::time::timeout(deadline, self.exchange(request)).await {
            Ok(result) => result,
            Err(_) => Err(failure::unreachable(format!(
                "the API server {} did not answer within {} s",
                self.server,
                deadline.as_secs()
            ))),
        }
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Answer, ApiFailure> {
        let response: Response<Body> = self
            .client
            .send(request)
            .await
            .map_err(|error| failure::from_transport(&error, &self.server, &self.description))?;
        let (parts, body) = response.into_parts();
        let body = body.collect_bytes().await.map_err(|error| {
            failure::unreachable(format!(
                "the answer of {} broke off: {}",
                self.server,
                failure::chain(&error)
            ))
        })?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_vec() })
    }

    fn build(
        method: Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
        accept: &str,
    ) -> Result<Request<Body>, ApiFailure> {
        let accept = if accept.is_empty() { "application/json" } else { accept };
        let mut builder = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, accept)
            .header(http::header::USER_AGENT, concat!("pintle/", env!("CARGO_PKG_VERSION")));
        let bytes = match body {
            Some((content_type, bytes)) => {
                builder = builder.header(http::header::CONTENT_TYPE, content_type);
                bytes
            }
            None => Vec::new(),
        };
        builder.body(Body::from(bytes)).map_err(|error| {
            failure::plain(Reason::Internal, format!("the request for {path} cannot be made: {error}"))
        })
    }
}
