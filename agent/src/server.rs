//! HTTP and JSON on the Unix socket. Holds no policy: each route asks the engine one question.
//!
//! # Guarantees
//! At most [`limits::SOCKET_CONNECTIONS`] connections are served at once; a head, a body and an answer each have
//! a deadline; a body has a largest size; every error is an `Error` document.

mod answer;
mod routes;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pintle_api::InitiatedBy;
use pintle_model::limits;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::handle::Handle;
use crate::socket::{self, Bound};

/// Serves until `shutdown` becomes true (or its sender is gone), then lets running requests end for at most
/// [`limits::SOCKET_DRAIN_SECS`]. The socket's file is removed at the end, before this returns.
pub async fn serve(bound: Bound, handle: Handle, mut shutdown: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(limits::SOCKET_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // A slot first: what comes beyond waits in the kernel's backlog instead of taking a descriptor.
        let slot = tokio::select! {
            slot = slots.clone().acquire_owned() => slot,
            () = told_to_stop(&mut shutdown) => break,
        };
        let stream = tokio::select! {
            accepted = bound.listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors: a short rest lets connections end, instead of spinning.
                    tracing::warn!(%error, "the socket could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = told_to_stop(&mut shutdown) => break,
        };
        let (handle, shutdown) = (handle.clone(), shutdown.clone());
        connections.spawn(async move {
            connection(stream, handle, shutdown).await;
            drop(slot);
        });
        while connections.try_join_next().is_some() {}
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_secs(limits::SOCKET_DRAIN_SECS), drained).await.is_err() {
        tracing::warn!("requests were cut off since the agent ends");
    }
    drop(bound);
}

async fn connection(stream: UnixStream, handle: Handle, mut shutdown: watch::Receiver<bool>) {
    let router = routes::router(handle.by(peer(&stream).await));
    let service = TowerToHyperService::new(router);
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits::REQUEST_HEAD_TIMEOUT_SECS))
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let result = tokio::select! {
        result = &mut served => result,
        () = told_to_stop(&mut shutdown) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection of the socket ended early");
    }
}

/// Ends when the agent ends; a sender that is gone means the same.
async fn told_to_stop(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// Who is at the other end, by the kernel's word.
async fn peer(stream: &UnixStream) -> InitiatedBy {
    let Ok(credentials) = stream.peer_cred() else { return InitiatedBy::default() };
    let uid = credentials.uid();
    let passwd = tokio::fs::read_to_string("/etc/passwd").await.unwrap_or_default();
    let username = socket::user_name(&passwd, uid).map_or_else(|| format!("uid:{uid}"), str::to_owned);
    InitiatedBy { username, automated: false }
}

#[cfg(test)]
mod tests;
