//! The server over a real Unix socket, asked by the real client and by raw bytes.

use std::time::Duration;

use pintle_api as api;
use pintle_api::OperationReply;
use pintle_model::{AppKey, Reason, limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::answer::status_of;
use crate::client::{Client, connect};
use crate::handle::Call;
use crate::sample::{self, Agent, shop};

async fn client(agent: &Agent) -> Client {
    connect(&agent.socket).await.unwrap().unwrap()
}

/// Sends bytes, reads until the server closes.
async fn raw(agent: &Agent, request: &str) -> String {
    let mut stream = UnixStream::connect(&agent.socket).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().unwrap();
    answer
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n")
}

#[tokio::test]
async fn every_call_round_trips_through_the_socket() {
    let agent = Agent::start();
    let client = client(&agent).await;
    assert_eq!(client.status().await.unwrap(), sample::status());
    assert_eq!(client.list().await.unwrap().items, vec![sample::application()]);
    assert_eq!(client.app(&shop(), api::Refresh::None).await.unwrap().qualified_name(), "argocd/shop");
    client.app(&shop(), api::Refresh::Normal).await.unwrap();
    client.app(&shop(), api::Refresh::Hard).await.unwrap();
    assert_eq!(client.diff(&shop(), &api::DiffRequest::default()).await.unwrap(), sample::diff());
    assert_eq!(client.history(&shop()).await.unwrap(), sample::history());
    assert_eq!(client.resume(&shop()).await.unwrap(), sample::application());
    let pause = api::PauseRequest { seconds: Some(7_200), reason: "works on the line".into() };
    assert_eq!(client.pause(&shop(), &pause).await.unwrap(), sample::application());
    assert_eq!(client.backups().await.unwrap().items, vec![sample::backup()]);
    assert_eq!(client.backup("7-a/b").await.unwrap(), sample::backup());
    let force = api::RestoreRequest { force: true };
    assert_eq!(client.restore("7-a", &force).await.unwrap(), sample::backup());
    assert_eq!(client.manifests(&shop(), true).await.unwrap().manifests.len(), 1);
    assert_eq!(client.doctor().await.unwrap().checks.len(), 1);
    assert_eq!(client.store_rebind().await.unwrap().previous_cluster_uid, "old");
    assert_eq!(client.terminate(&shop()).await.unwrap().id, "op-2");

    let request = api::SyncRequest {
        resources: vec!["apps:Deployment:web".parse().unwrap()],
        ..api::SyncRequest::default()
    };
    let OperationReply::Started(operation) = client.sync(&shop(), &request).await.unwrap() else {
        panic!("a sync that is no dry run starts an operation")
    };
    assert_eq!(operation.id, "op-2");
    let dry = api::RollbackRequest { id: 2, prune: true, dry_run: true };
    assert_eq!(client.rollback(&shop(), &dry).await.unwrap(), OperationReply::Planned(sample::plan()));
    let delete =
        api::DeleteRequest { mode: api::DeleteMode::Cascade, confirm: Some("a token&mode=orphan".into()) };
    assert!(matches!(client.delete(&shop(), &delete).await.unwrap(), OperationReply::Started(_)));

    let app = shop;
    assert_eq!(
        agent.calls(),
        vec![
            Call::Status,
            Call::AppList,
            Call::AppGet { app: app(), refresh: api::Refresh::None },
            Call::AppGet { app: app(), refresh: api::Refresh::Normal },
            Call::AppGet { app: app(), refresh: api::Refresh::Hard },
            Call::AppDiff { app: app(), request: api::DiffRequest::default() },
            Call::AppHistory { app: app() },
            Call::AppResume { app: app() },
            Call::AppPause { app: app(), request: pause },
            Call::Backups,
            Call::Backup { id: "7-a/b".into() },
            Call::Restore { id: "7-a".into(), request: force },
            Call::AppManifests { app: app(), live: true },
            Call::Doctor,
            Call::StoreRebind,
            Call::AppTerminate { app: app() },
            Call::AppSync { app: app(), request },
            Call::AppRollback { app: app(), request: dry },
            Call::AppDelete { app: app(), request: delete },
        ]
    );
    agent.stop().await;
}

#[tokio::test]
async fn the_kernel_tells_who_asks() {
    use std::os::unix::fs::MetadataExt;
    let agent = Agent::start();
    client(&agent).await.status().await.unwrap();
    let uid = std::fs::metadata(&agent.socket).unwrap().uid();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = crate::socket::user_name(&passwd, uid).map_or_else(|| format!("uid:{uid}"), str::to_owned);
    assert_eq!(agent.calls.lock().unwrap()[0].1, name);
    agent.stop().await;
}

#[tokio::test]
async fn an_engines_problem_arrives_with_reason_and_message() {
    let agent = Agent::start();
    let client = client(&agent).await;
    let missing = AppKey::new("argocd", "missing");
    let problem = client.app(&missing, api::Refresh::None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::NoSuch);
    assert_eq!(problem.message, "there is no application argocd/missing");
    let answer = raw(&agent, &get("/api/v1/applications/argocd/missing", "")).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains(r#""hint":"list what there is"#), "{answer}");
    assert!(answer.contains(r#""apiVersion":"pintle.dev/v1","hint""#), "{answer}");
    agent.stop().await;
}

#[tokio::test]
async fn a_client_of_another_schema_is_told_so_but_may_ask_for_the_version() {
    let agent = Agent::start();
    let answer = raw(&agent, &get("/api/v1/status", "pintle-schema: 999\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("speaks API schema 999"), "{answer}");
    let answer = raw(&agent, &get("/api/v1/version", "pintle-schema: 999\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(agent.calls().is_empty());
    agent.stop().await;
}

#[tokio::test]
async fn an_agent_of_another_schema_is_told_to_the_person() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let agent = tokio::spawn(async move {
        let _probe = listener.accept().await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let body = r#"{"apiVersion":"pintle.dev/v1","kind":"Version","version":"9.9.9","schema":999}"#;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream.write_all((head + body).as_bytes()).await.unwrap();
        while stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {}
    });
    let problem = connect(&path).await.unwrap_err();
    assert_eq!(problem.reason, Reason::IncompatibleVersion, "{problem}");
    assert!(problem.message.contains("is pintle 9.9.9 with schema 999"), "{problem}");
    agent.await.unwrap();
}

#[tokio::test]
async fn wrong_requests_are_refused_as_error_documents() {
    let agent = Agent::start();
    let post = |path: &str, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let delete = |query: &str| {
        format!(
            "DELETE /api/v1/applications/argocd/shop{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
    };
    let sync = "/api/v1/applications/argocd/shop/sync";
    let rollback = "/api/v1/applications/argocd/shop/rollback";
    let manifests = "/api/v1/applications/argocd/shop/manifests?liv=true";
    for (request, status, text) in [
        (get("/api/v1/nothing", ""), 404, "there is no /api/v1/nothing"),
        (get("/nothing", ""), 404, "there is no /nothing"),
        (get(sync, ""), 405, "does not take GET"),
        (post(sync, "{\"prun\":true}"), 400, "unknown field `prun`"),
        (post(sync, "{\"resources\":[\"web\"]}"), 400, "selects no object"),
        (post(sync, "not json"), 400, "body of the request"),
        (post(rollback, ""), 400, "missing field `id`"),
        (get(manifests, ""), 400, "unknown field `liv`"),
        (delete(""), 400, "missing field `mode`"),
        (delete("?mode=wipe"), 400, "unknown variant `wipe`"),
    ] {
        let answer = raw(&agent, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}\n{answer}");
        assert!(answer.contains(r#""kind":"Error""#) && answer.contains(text), "{request}\n{answer}");
        assert!(answer.contains("content-type: application/json"), "{request}\n{answer}");
    }
    assert!(agent.calls().is_empty(), "nothing of it reached the engine");
    agent.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let agent = Agent::start();
    let sync = "POST /api/v1/applications/argocd/shop/sync HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    // Announced: refused unread.
    let announced = format!("{sync}Content-Length: {}\r\n\r\n", limits::REQUEST_BODY_MAX_BYTES + 1);
    let answer = raw(&agent, &announced).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Not announced: refused when it has become too large.
    let chunk = " ".repeat(limits::REQUEST_BODY_MAX_BYTES + 1);
    let chunked =
        format!("{sync}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{chunk}\r\n0\r\n\r\n", chunk.len());
    let answer = raw(&agent, &chunked).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains(r#""kind":"Error""#), "{answer}");
    assert!(agent.calls().is_empty());
    agent.stop().await;
}

#[tokio::test]
async fn health_and_readiness_are_answered() {
    let agent = Agent::start();
    for path in ["/healthz", "/readyz"] {
        let answer = raw(&agent, &get(path, "")).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
    }
    agent.stop().await;
}

#[tokio::test]
async fn an_idle_connection_does_not_keep_the_agent_from_ending() {
    let agent = Agent::start();
    let _idle = UnixStream::connect(&agent.socket).await.unwrap();
    let begun = std::time::Instant::now();
    tokio::time::timeout(Duration::from_secs(20), agent.stop()).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(limits::SOCKET_DRAIN_SECS), "closed at once");
}

#[tokio::test]
async fn more_connections_than_slots_are_served_in_turn() {
    let agent = Agent::start();
    let client = client(&agent).await;
    let all = (0..3 * limits::SOCKET_CONNECTIONS).map(|_| client.version());
    for answer in futures::future::join_all(all).await {
        answer.unwrap();
    }
    agent.stop().await;
}

#[test]
fn every_reason_has_an_http_status_of_an_error() {
    for reason in Reason::ALL {
        let status = status_of(*reason);
        assert!(status.is_client_error() || status.is_server_error(), "{reason}");
    }
}
