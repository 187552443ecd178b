//! One watch: list, then follow; list again when it has expired. Nothing of an object is kept after it was delivered.

use std::time::Duration;

use futures::AsyncBufReadExt as _;
use http::{Method, Request};
use pintle_model::{GroupKind, Object, ObjectKey, Problem, Reason};
use serde_json::Value;
use tokio::sync::mpsc;

use super::objects::{path, with_kind};
use super::{ApiFailure, ApiResource, Cluster, failure};

/// What a watch delivers.
#[derive(Debug)]
pub enum WatchEvent {
    /// An object is there, new or changed.
    Applied {
        /// Kind.
        gk: GroupKind,
        /// Object.
        object: Box<Object>,
    },
    /// An object is no longer selected: deleted, or its label is gone.
    Left {
        /// Kind.
        gk: GroupKind,
        /// Which.
        key: ObjectKey,
        /// Its last state.
        last: Box<Object>,
    },
    /// A list is complete: this is all that is selected.
    Synced {
        /// Kind.
        gk: GroupKind,
        /// Keys and UIDs.
        keys: Vec<(ObjectKey, String)>,
    },
    /// The watch is broken and is being renewed.
    Failed {
        /// Kind.
        gk: GroupKind,
        /// Why.
        problem: Problem,
    },
}

/// Ends the watch when dropped.
#[derive(Debug)]
pub struct WatchGuard(tokio::task::JoinHandle<()>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The server ends a watch by itself after 30 to 60 minutes by default; this is asked for, and it spreads renewals.
const WATCH_SECS: u64 = 50 * 60;
/// The server sends a bookmark about once a minute: silence for longer means that the connection is half dead.
const SILENCE: Duration = Duration::from_secs(150);
/// Pause before a broken watch is renewed, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(15);

impl Cluster {
    /// Starts a watch.
    pub fn watch(
        &self,
        resource: ApiResource,
        namespace: Option<String>,
        selector: String,
        sink: mpsc::Sender<WatchEvent>,
    ) -> WatchGuard {
        let watch = Watch {
            gk: GroupKind::new(&resource.group, &resource.kind),
            cluster: self.clone(),
            resource,
            namespace,
            selector,
            sink,
        };
        WatchGuard(tokio::spawn(watch.run()))
    }
}

struct Watch {
    cluster: Cluster,
    gk: GroupKind,
    resource: ApiResource,
    namespace: Option<String>,
    selector: String,
    sink: mpsc::Sender<WatchEvent>,
}

/// How following ended.
enum Ended {
    /// In order, at this version: go on from there.
    At(String),
    /// The version is too old (410): list again.
    Expired,
    /// The receiver is gone.
    Unwanted,
}

impl Watch {
    async fn run(self) {
        let mut pause = FIRST_PAUSE;
        let mut version: Option<String> = None;
        loop {
            let result = match &version {
                None => self.list().await.map(|listed| listed.map_or(Ended::Unwanted, Ended::At)),
                Some(from) => self.follow(from.clone()).await,
            };
            match result {
                Ok(Ended::At(at)) => {
                    pause = FIRST_PAUSE;
                    version = Some(at);
                }
                Ok(Ended::Expired) => version = None,
                Ok(Ended::Unwanted) => return,
                Err(failure) => {
                    let problem = failure.problem;
                    if self.sink.send(WatchEvent::Failed { gk: self.gk.clone(), problem }).await.is_err() {
                        return;
                    }
                    // After a break the list tells what was missed, deletions included.
                    version = None;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    /// Lists in pages and delivers each object at once. `None` when nobody listens any more.
    async fn list(&self) -> Result<Option<String>, ApiFailure> {
        let mut keys = Vec::new();
        let mut next = String::new();
        loop {
            let namespace = self.namespace.as_deref();
            let page =
                self.cluster.page(&self.resource, namespace, Some(&self.selector), false, &next).await?;
            for object in page.objects {
                keys.push((object.key(), object.uid().to_owned()));
                if !self.send(WatchEvent::Applied { gk: self.gk.clone(), object: Box::new(object) }).await {
                    return Ok(None);
                }
            }
            if page.next.is_empty() {
                let heard = self.send(WatchEvent::Synced { gk: self.gk.clone(), keys }).await;
                return Ok(heard.then_some(page.version));
            }
            next = page.next;
        }
    }

    async fn follow(&self, from: String) -> Result<Ended, ApiFailure> {
        let request = self.request(&from)?;
        self.cluster.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let open = tokio::time::timeout(SILENCE, self.cluster.client.request_stream(request)).await;
        let stream = match open {
            Ok(Ok(stream)) => stream,
            Ok(Err(kube::Error::Api(status))) if status.code == 410 => return Ok(Ended::Expired),
            Ok(Err(kube::Error::Api(status))) => return Err(refused(&status)),
            Ok(Err(error)) => {
                return Err(failure::from_transport(&error, &self.cluster.server, &self.cluster.description));
            }
            Err(_) => return Err(failure::unreachable("a watch was not opened in time".to_owned())),
        };
        let mut version = from;
        let mut lines = std::pin::pin!(stream.lines());
        loop {
            let line = match tokio::time::timeout(SILENCE, futures::StreamExt::next(&mut lines)).await {
                Ok(Some(Ok(line))) => line,
                // The server closed it, as it does now and then.
                Ok(None) => return Ok(Ended::At(version)),
                Ok(Some(Err(error))) => {
                    return Err(failure::unreachable(format!("a watch of {} broke off: {error}", self.gk)));
                }
                Err(_) => return Err(failure::unreachable(format!("a watch of {} fell silent", self.gk))),
            };
            match self.deliver(&line).await? {
                Delivered::Version(at) => version = at,
                Delivered::Expired => return Ok(Ended::Expired),
                Delivered::Unwanted => return Ok(Ended::Unwanted),
            }
        }
    }

    async fn deliver(&self, line: &str) -> Result<Delivered, ApiFailure> {
        let mut event: Value = serde_json::from_str(line).map_err(|error| {
            failure::plain(
                Reason::ServerError,
                format!("a watch of {} sent what is not JSON: {error}", self.gk),
            )
        })?;
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let object = event["object"].take();
        if kind == "ERROR" {
            if object["code"] == 410 {
                return Ok(Delivered::Expired);
            }
            let text = object["message"].as_str().unwrap_or("an error without a message");
            return Err(failure::unreachable(format!("a watch of {} ended: {text}", self.gk)));
        }
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        if kind == "BOOKMARK" {
            return Ok(Delivered::Version(version));
        }
        let Some(object) = with_kind(object, &self.resource) else { return Ok(Delivered::Version(version)) };
        let event = if kind == "DELETED" {
            WatchEvent::Left { gk: self.gk.clone(), key: object.key(), last: Box::new(object) }
        } else {
            WatchEvent::Applied { gk: self.gk.clone(), object: Box::new(object) }
        };
        Ok(if self.send(event).await { Delivered::Version(version) } else { Delivered::Unwanted })
    }

    fn request(&self, from: &str) -> Result<Request<Vec<u8>>, ApiFailure> {
        let selector = self.selector.replace('=', "%3D").replace('/', "%2F").replace(',', "%2C");
        let uri = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECS}&resourceVersion={from}&labelSelector={selector}",
            path(&self.resource, self.namespace.as_deref().unwrap_or_default(), None)
        );
        Request::builder()
            .method(Method::GET)
            .uri(uri)
            .header(http::header::USER_AGENT, concat!("pintle/", env!("CARGO_PKG_VERSION")))
            .body(Vec::new())
            .map_err(|error| {
                failure::plain(Reason::Internal, format!("a watch cannot be asked for: {error}"))
            })
    }

    async fn send(&self, event: WatchEvent) -> bool {
        self.sink.send(event).await.is_ok()
    }
}

enum Delivered {
    Version(String),
    Expired,
    Unwanted,
}

/// The server refused a watch.
fn refused(status: &kube::core::Status) -> ApiFailure {
    let reason = match status.code {
        401 => Reason::Unauthorized,
        403 => Reason::Forbidden,
        404 => Reason::UnknownKind,
        429 => Reason::TooManyRequests,
        _ => Reason::ClusterUnreachable,
    };
    failure::plain(reason, status.message.clone())
}
