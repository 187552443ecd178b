//! What holding a synced application costs: at rest, for a poll, for a drift, for a small change.

use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::{Method, Request};
use pintle_api::Refresh;
use pintle_model::AppKey;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::figures::{Figures, Limits, median, percentile};
use crate::load;
use crate::process;
use crate::scene::{APP, Held, Scene};

/// Polls that one figure is taken over.
const POLLS: usize = 20;
/// Objects whose drift is measured; each one once, since an object that keeps drifting is put back more slowly.
const DRIFTS: usize = 100;
/// Commits that one figure is taken over.
const CHANGES: usize = 5;

/// Memory, and what a poll and a comparison without a change cost.
pub fn at_rest(scene: &Scene, held: &mut Held, figures: &mut Figures) {
    scene.polls(5);
    let count = scene.count;
    let memory = process::memory(held.pid());
    let (rss, anonymous) = if count >= 5_000 {
        (Limits::goal(44.0), Limits::goal(28.0))
    } else {
        (Limits::at_most(40.0, 30.0), Limits::goal(16.0))
    };
    let peers = json!({"Flux": 283, "gitops-engine": 237, "unit": "MiB"});
    figures.add(&format!("RSS at rest with {count}"), memory.rss, "MiB", rss, peers);
    figures.add(&format!("RssAnon at rest with {count}"), memory.anonymous, "MiB", anonymous, json!({}));

    let (requests, cpu, bytes, polls) = (
        scene.audit().len(),
        process::cpu_millis(held.pid()),
        scene.front.bytes(),
        scene.front.requests().len(),
    );
    scene.polls(POLLS);
    let polls = (scene.front.requests().len() - polls) as f64;
    let cpu = (process::cpu_millis(held.pid()) - cpu) / polls;
    let bytes = (scene.front.bytes() - bytes) as f64 / polls;
    let requests = (scene.audit().len() - requests) as f64;
    let peers = json!({"Flux (1,000)": 1000, "unit": "requests a pass"});
    let name = format!("API requests of {POLLS} polls with {count}");
    figures.add(&name, requests, "requests", Limits::at_most(0.0, 0.0), peers);
    figures.add(&format!("CPU of a poll with {count}"), cpu, "ms", Limits::goal(150.0), json!({}));
    figures.add("a poll on the wire, TLS included", bytes, "bytes", Limits::goal(4_369.0), json!({}));

    let (before, cpu) = (scene.audit().len(), process::cpu_millis(held.pid()));
    let began = Instant::now();
    refresh(scene, held, Refresh::Hard);
    let taken = began.elapsed().as_secs_f64() * 1e3;
    let cpu = process::cpu_millis(held.pid()) - cpu;
    let requests = (scene.audit().len() - before) as f64;
    let name = format!("API requests of a hard refresh with {count}");
    figures.add(&name, requests, "requests", Limits::at_most(0.0, 0.0), json!({}));
    figures.add(&format!("CPU of a hard refresh with {count}"), cpu, "ms", Limits::goal(150.0), json!({}));
    figures.tell(&format!("time of a hard refresh with {count}"), taken, "ms");
}

/// Asks git and compares again.
fn refresh(scene: &Scene, held: &Held, how: Refresh) {
    let key = AppKey::new("argocd", APP);
    scene.runtime.block_on(async {
        let client = scene.socket(held).await.expect("the agent answers");
        client.app(&key, how).await.expect("an answer");
    });
}

/// A ConfigMap as a watch saw it.
struct Seen {
    at: Instant,
    name: String,
    value: String,
    level: String,
}

/// Watches the ConfigMaps of a namespace from now on.
async fn watch(client: &kube::Client, namespace: &str) -> mpsc::UnboundedReceiver<Seen> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let list = load::send(client, Method::GET, &format!("{path}?limit=1"), "", Vec::new()).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let request = Request::builder()
        .uri(format!("{path}?watch=true&resourceVersion={version}"))
        .body(Vec::new())
        .expect("a request");
    let stream = client.request_stream(request).await.expect("a watch");
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut lines = std::pin::pin!(stream.lines());
        while let Some(Ok(line)) = lines.next().await {
            let at = Instant::now();
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            let text =
                |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
            let seen = Seen {
                at,
                name: text("/object/metadata/name"),
                value: text("/object/data/value"),
                level: text("/object/data/log.level"),
            };
            if sender.send(seen).is_err() {
                return;
            }
        }
    });
    receiver
}

/// When a watch sees what is wanted.
async fn see(seen: &mut mpsc::UnboundedReceiver<Seen>, wanted: impl Fn(&Seen) -> bool) -> Instant {
    let find = async {
        loop {
            let found = seen.recv().await.expect("the watch goes on");
            if wanted(&found) {
                return found.at;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), find).await.expect("it is put back")
}

/// Changes a field by hand.
async fn by_hand(client: &kube::Client, namespace: &str, name: &str) {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let patch = json!({"data": {"value": "by hand"}}).to_string().into_bytes();
    load::send(client, Method::PATCH, &path, "application/merge-patch+json", patch).await;
}

/// From the watch event of a change by hand to the watch event of its revert, beside the bare request that reverts.
pub fn drift(scene: &Scene, held: &mut Held, figures: &mut Figures) {
    let count = DRIFTS.min(scene.count / 4);
    let bare_namespace = scene.namespace("bare-patch");
    let (reverts, bare) = scene.runtime.block_on(async {
        let client = &scene.client;
        let mut seen = watch(client, &held.namespace).await;
        let (mut reverts, mut bare) = (Vec::new(), Vec::new());
        for index in 0..count {
            let name = format!("app-{index:04}");
            by_hand(client, &held.namespace, &name).await;
            let changed = see(&mut seen, |found| found.name == name && found.value == "by hand").await;
            let restored = see(&mut seen, |found| found.name == name && found.value == "git").await;
            reverts.push((restored - changed).as_secs_f64() * 1e3);
            let (path, body) = load::prepared(load::config_map(index), &bare_namespace);
            load::apply(client.clone(), path.clone(), body.clone()).await;
            by_hand(client, &bare_namespace, &name).await;
            let began = Instant::now();
            load::apply(client.clone(), path, body).await;
            bare.push(began.elapsed().as_secs_f64() * 1e3);
        }
        (reverts, bare)
    });
    let (p50, p99) = (median(&reverts), percentile(&reverts, 99.0));
    figures.tell("a bare PATCH, p50", median(&bare), "ms");
    figures.tell("drift revert, p50", p50, "ms");
    let ratio = p50 / median(&bare);
    let peers = json!({"Flux": "at the interval", "gitops-engine": "not in 120 s"});
    figures.add("drift revert p50 / a bare PATCH", ratio, "ratio", Limits::at_most(2.0, 1.5), peers);
    figures.add("drift revert, p99", p99, "ms", Limits::goal(200.0), json!({}));
}

/// A commit that changes one file: from the question to git until it is seen in the cluster.
pub fn one_file(scene: &Scene, held: &mut Held, figures: &mut Figures) {
    let mut times = Vec::new();
    for index in 0..CHANGES {
        let level = format!("level-{index}");
        scene.repo.write(&format!("{APP}/app-0007.yaml"), &load::file(7, &level));
        let mut seen = scene.runtime.block_on(watch(&scene.client, &held.namespace));
        let commit = scene.repo.commit("one file");
        let began = Instant::now();
        refresh(scene, held, Refresh::Normal);
        let applied =
            scene.runtime.block_on(see(&mut seen, |found| found.name == "app-0007" && found.level == level));
        times.push(applied.saturating_duration_since(began).as_secs_f64() * 1e3);
        scene.wait_synced(held, &commit);
    }
    let name = format!("one-file change among {}, asked to applied", scene.count);
    figures.add(&name, median(&times), "ms", Limits::goal(1_000.0), json!({}));
}

/// A minute at rest with the default interval of polls.
pub fn a_minute(scene: &Scene, held: &mut Held, figures: &mut Figures) {
    assert!(held.agent.stop(), "{}", held.agent.log());
    held.agent.edit("poll: {interval: 1s, jitter: 0s}", "poll: {interval: 3m, jitter: 0s}");
    held.agent.start();
    let commit = scene.repo.commit("a minute begins");
    scene.until(held, "the cluster is held", |status| {
        status.cluster.reachable && status.git.iter().any(|found| found.last_success.is_some())
    });
    refresh(scene, held, Refresh::Normal);
    scene.wait_synced(held, &commit);
    // The sync's last record and export are written after it.
    let quiet = wait_quiet(held);
    let (pid, requests) = (held.pid(), scene.audit().len());
    let (cpu, written) = (process::cpu_millis(pid), process::written(pid));
    std::thread::sleep(Duration::from_mins(1));
    let cpu = process::cpu_millis(pid) - cpu;
    let written = process::written(pid) - written;
    let requests = (scene.audit().len() - requests) as f64;
    let count = scene.count;
    figures.add(
        &format!("CPU at rest with {count}"),
        cpu / 600.0,
        "% of a core",
        Limits::goal(0.1),
        json!({}),
    );
    let name = format!("written to disk in a minute at rest with {count}");
    figures.add(&name, written, "bytes", Limits::at_most(0.0, 0.0), json!({}));
    let name = format!("API requests in a minute at rest with {count}");
    figures.add(&name, requests, "requests", Limits::at_most(0.0, 0.0), json!({}));
    figures.tell("quiet after a sync", quiet, "s");
    held.agent.edit("poll: {interval: 3m, jitter: 0s}", "poll: {interval: 1s, jitter: 0s}");
}

/// Waits until nothing was written for a while; tells how long that took.
fn wait_quiet(held: &Held) -> f64 {
    let began = Instant::now();
    let mut last = (process::written(held.pid()), Instant::now());
    while last.1.elapsed() < Duration::from_secs(3) {
        let now = process::written(held.pid());
        if now > last.0 {
            last = (now, Instant::now());
        }
        assert!(began.elapsed() < Duration::from_mins(2), "the agent goes on writing");
        std::thread::sleep(Duration::from_millis(50));
    }
    (last.1 - began).as_secs_f64()
}
