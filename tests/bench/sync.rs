//! The first sync, beside a bare loop of the same requests and `kubectl apply --server-side`.

use std::time::Instant;

use jiff::Timestamp;
use serde_json::json;

use crate::figures::{Figures, Limits, best, say};
use crate::load;
use crate::process;
use crate::scene::{Held, Scene};

/// Requests at once that the bare loop is tried with.
pub const AT_ONCE: [usize; 3] = [8, 16, 32];

/// One first sync, in seconds.
struct FirstSync {
    /// From the start of the process with an empty store until `Synced`.
    whole: f64,
    /// From its first to its last request for the objects.
    requests: f64,
    /// MiB.
    peak: f64,
}

/// Interleaved runs, each in a namespace of its own. Returns the agent of the last, running.
pub fn first_sync(
    scene: &Scene,
    rounds: usize,
    at_once: &[usize],
    with_kubectl: bool,
    figures: &mut Figures,
) -> Held {
    let mut loops = Vec::new();
    let mut syncs = Vec::new();
    let mut candidates = at_once.to_vec();
    let mut last = None;
    for round in 0..rounds.max(1) {
        let mut times = Vec::new();
        for at_once in &candidates {
            let namespace = scene.namespace(&format!("loop-{round}-{at_once}"));
            let taken =
                scene.runtime.block_on(load::bare_loop(&scene.client, &namespace, scene.count, *at_once));
            say(&format!("  bare loop, {at_once} at once: {taken:.2} s"));
            times.push(taken);
            scene.settled(&namespace);
        }
        // The first round finds the best; the others take that one only.
        let fastest = best(&times);
        candidates =
            times.iter().zip(&candidates).filter(|(time, _)| **time <= fastest).map(|(_, c)| *c).collect();
        loops.push(fastest);
        drop(last.take());
        let mut held = scene.agent(&format!("sync-{round}"));
        let sync = run(scene, &mut held);
        say(&format!("  first sync: {:.2} s, its requests {:.2} s", sync.whole, sync.requests));
        syncs.push(sync);
        scene.settled(&held.namespace);
        last = Some(held);
    }
    let fastest_loop = best(&loops);
    let whole = best(&syncs.iter().map(|sync| sync.whole).collect::<Vec<_>>());
    let requests = best(&syncs.iter().map(|sync| sync.requests).collect::<Vec<_>>());
    let count = scene.count;
    figures.tell(&format!("bare loop of {count} applies"), fastest_loop, "s");
    figures.tell(&format!("first sync of {count}, start to Synced"), whole, "s");
    figures.tell(&format!("first sync of {count}, its requests"), requests, "s");
    let mut peers = json!({
        "kubectl apply --server-side": 57.8, "Flux": 17.1, "gitops-engine": 132.8, "unit": "s of 1,000",
    });
    if with_kubectl {
        let kubectl = kubectl(scene);
        figures.add(
            &format!("first sync of {count} / kubectl --server-side"),
            whole / kubectl,
            "ratio",
            Limits::goal(0.25),
            json!({}),
        );
        peers["kubectl apply --server-side, now"] = ((kubectl * 10.0).round() / 10.0).into();
    }
    let ratio = whole / fastest_loop;
    figures.add(
        &format!("first sync of {count} / bare loop"),
        ratio,
        "ratio",
        Limits::at_most(1.3, 1.2),
        peers,
    );
    let peak = best(&syncs.iter().map(|sync| sync.peak).collect::<Vec<_>>());
    let limits = if count >= 5_000 { Limits::goal(96.0) } else { Limits::default() };
    let peers = json!({"kubectl": 85, "Flux": 309, "gitops-engine": 2031});
    figures.add(&format!("peak RSS in the first sync of {count}"), peak, "MiB", limits, peers);
    last.expect("a round")
}

fn run(scene: &Scene, held: &mut Held) -> FirstSync {
    let began = Instant::now();
    held.agent.start();
    scene.wait_synced(held, &scene.commit);
    let whole = began.elapsed().as_secs_f64();
    let peak = process::memory(held.pid()).peak;
    let audit = scene.audit();
    let ours: Vec<_> = audit
        .iter()
        .filter(|request| request.namespace == held.namespace && request.verb == "patch")
        .collect();
    assert!(ours.len() >= scene.count, "{} applies", ours.len());
    let time = |text: &str| text.parse::<Timestamp>().expect("a time").as_microsecond();
    let first = ours.iter().map(|request| time(&request.received)).min().expect("a request");
    let last = ours.iter().map(|request| time(&request.answered)).max().expect("a request");
    FirstSync { whole, requests: (last - first) as f64 / 1e6, peak }
}

/// Seconds that kubectl takes for the same.
fn kubectl(scene: &Scene) -> f64 {
    let namespace = scene.namespace("kubectl");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for index in 0..scene.count / 4 {
        let file = folder.path().join(format!("app-{index:04}.yaml"));
        std::fs::write(file, load::file(index, "info")).expect("a file");
    }
    let folder = folder.path().display().to_string();
    let began = Instant::now();
    scene.cluster.kubectl(&["apply", "--server-side", "--namespace", &namespace, "--filename", &folder]);
    let taken = began.elapsed().as_secs_f64();
    say(&format!("  kubectl apply --server-side: {taken:.1} s"));
    scene.settled(&namespace);
    taken
}
