//! Starting: with the link to git down, and for one pass.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::figures::{Figures, Limits, median};
use crate::process;
use crate::scene::{APP, Held, Scene};
use crate::support::agent::binary;
use crate::support::git_front::Mode;

/// Starts that one figure is taken over.
const STARTS: usize = 5;

/// The link is down: how long until the socket answers from the store, and until drift is put back.
pub fn offline(scene: &Scene, held: &mut Held, figures: &mut Figures) {
    scene.front.set(Mode::Down);
    let (mut answers, mut guards, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..STARTS {
        assert!(held.agent.stop(), "{}", held.agent.log());
        let name = format!("app-{:04}", 100 + index);
        let patch = r#"{"data":{"value":"while it was away"}}"#;
        let namespace = held.namespace.clone();
        scene.cluster.kubectl(&["-n", &namespace, "patch", "configmap", &name, "--type=merge", "-p", patch]);
        let began = Instant::now();
        held.agent.start();
        answers.push(answered(scene, held, began));
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        scene.runtime.block_on(async {
            loop {
                let found = crate::load::send(&scene.client, http::Method::GET, &path, "", Vec::new()).await;
                if found["data"]["value"] == "git" {
                    return;
                }
                assert!(
                    began.elapsed() < Duration::from_mins(1),
                    "drift is not put back: {}",
                    held.agent.log()
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        guards.push(began.elapsed().as_secs_f64() * 1e3);
        memory.push(process::memory(held.pid()).rss);
    }
    scene.front.set(Mode::Up);
    let count = scene.count;
    let name = format!("start with the link down, {count}: status answers");
    figures.add(&name, median(&answers), "ms", Limits::at_most(300.0, 300.0), json!({}));
    let name = format!("start with the link down, {count}: drift put back");
    figures.add(&name, median(&guards), "ms", Limits::goal(2_000.0), json!({}));
    figures.tell(&format!("RSS after a start with {count}"), median(&memory), "MiB");
}

/// Milliseconds until a status with the application came.
fn answered(scene: &Scene, held: &Held, began: Instant) -> f64 {
    scene.runtime.block_on(async {
        loop {
            if let Some(client) = scene.socket(held).await
                && let Ok(status) = client.status().await
                && status.apps.iter().any(|app| &*app.name.name == APP && !app.revision.is_empty())
            {
                return began.elapsed().as_secs_f64() * 1e3;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "no answer: {}", held.agent.log());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
}

/// `pintle once` with nothing to do.
pub fn once(scene: &Scene, held: &mut Held, figures: &mut Figures) {
    assert!(held.agent.stop(), "{}", held.agent.log());
    let before = scene.audit().len();
    // The shell's own clock knows the CPU time of what it ran.
    let script = format!(
        "TIMEFORMAT='%R %U %S'; time PINTLE_CONFIG={} {} once >/dev/null 2>{}",
        held.agent.path("pintle.yaml").display(),
        binary().display(),
        held.agent.path("once.log").display()
    );
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        let log = std::fs::read_to_string(held.agent.path("once.log")).unwrap_or_default();
        assert!(output.status.success(), "{log}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let times: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        assert_eq!(times.len(), 3, "{text}");
        wall.push(times[0] * 1e3);
        cpu.push((times[1] + times[2]) * 1e3);
    }
    let requests: Vec<_> = scene.audit().split_off(before);
    let writes =
        requests.iter().filter(|r| matches!(&*r.verb, "patch" | "create" | "update" | "delete")).count();
    let lists = requests.iter().filter(|request| request.verb == "list").count();
    let each = |number: usize| number as f64 / STARTS as f64;
    let count = scene.count;
    figures.add(
        &format!("pintle once with {count}, no change"),
        median(&wall),
        "ms",
        Limits::goal(3_000.0),
        json!({}),
    );
    figures.add(
        &format!("CPU of pintle once with {count}"),
        median(&cpu),
        "ms",
        Limits::goal(1_500.0),
        json!({}),
    );
    let name = format!("writes of pintle once with {count}");
    figures.add(&name, each(writes), "requests", Limits::at_most(0.0, 0.0), json!({}));
    figures.tell(&format!("lists of pintle once with {count}"), each(lists), "requests");
    figures.tell(&format!("requests of pintle once with {count}"), each(requests.len()), "requests");
}

/// Size of the binary.
pub fn size(figures: &mut Figures) {
    let bytes = std::fs::metadata(binary()).expect("the binary").len();
    let peers = json!({"gitops-engine": 116, "kustomize-controller": 173, "source-controller": 204});
    figures.add(
        "binary, stripped",
        bytes as f64 / f64::from(1 << 20),
        "MiB",
        Limits::at_most(20.0, 12.0),
        peers,
    );
}
