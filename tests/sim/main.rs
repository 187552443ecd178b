//! The simulator: the real engine under a seeded clock, network, disk and API server.
//!
//! Each seed has a phase with faults, in which the promises are judged after every event, and then a phase
//! without, in which everything must converge and come to rest. `PINTLE_SIM_SEEDS=N` runs more seeds,
//! `PINTLE_SIM_SEED=N` one seed.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the simulator is the shell of the pure crate: it reads its settings and tells its story"
)]

mod cluster;
mod invariants;
mod rng;
mod world;

use std::time::{Duration, Instant};

use pintle_model::AppKey;
use pintle_model::application::Application;
use serde_json::json;
use world::World;

/// Seeds of a normal run; more follow while the time lasts.
const SEEDS: u64 = 500;
const BUDGET: Duration = Duration::from_secs(20);

#[test]
fn promises_hold_under_faults_and_everything_converges_afterwards() {
    if let Ok(seed) = std::env::var("PINTLE_SIM_SEED") {
        run(seed.parse().expect("PINTLE_SIM_SEED is a number"));
        return;
    }
    let wanted: Option<u64> = std::env::var("PINTLE_SIM_SEEDS").ok().and_then(|text| text.parse().ok());
    let start = Instant::now();
    let mut seed = 0;
    let mut reverts = 0;
    while seed < wanted.unwrap_or(SEEDS) || (wanted.is_none() && start.elapsed() < BUDGET) {
        let result = std::panic::catch_unwind(|| run(seed));
        match result {
            Ok(count) => reverts += count,
            Err(panic) => {
                eprintln!("seed {seed} failed; run it alone with PINTLE_SIM_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
        seed += 1;
    }
    println!("simulated {seed} seeds in {:.1} s, {reverts} drifts reverted", start.elapsed().as_secs_f64());
    assert!(reverts > 0, "the simulator must revert drift, or it proves nothing about it");
}

/// One seed. Returns the number of reverts.
fn run(seed: u64) -> u64 {
    let mut world = World::new(seed);
    for _ in 0..world.rng.between(20, 60) {
        trouble(&mut world);
        let pause = Duration::from_millis(world.rng.between(1, 20_000));
        let until = world.mono + pause;
        let mut budget = 400;
        while budget > 0 && world.advance(until) {
            budget -= 1;
        }
    }
    calm(&mut world);
    world.reverts
}

/// One thing that people, networks and machines do.
fn trouble(world: &mut World) {
    let apps = world.app_keys();
    let keys: Vec<_> = world.cluster.objects.keys().cloned().collect();
    let any = |world: &mut World| if keys.is_empty() { None } else { Some(world.rng.pick(&keys)) };
    match world.rng.below(16) {
        0 | 1 => {
            let last = world.commits.last().cloned();
            let commit = world.random_commit(last.as_ref());
            world.commits.push(commit);
        }
        2 | 3 => {
            if let Some(key) = any(world) {
                let value = json!(format!("{}", world.rng.below(9)));
                let owns = world.rng.chance(70);
                let field = if world.rng.chance(50) { "a" } else { "foreign" };
                world.cluster.edit(&key, &["data", field], value, owns, "2027-01-15T08:00:00Z");
            }
        }
        4 => {
            if let Some(key) = any(world) {
                world.cluster.remove(&key);
            }
        }
        5 => {
            if let Some(key) = any(world) {
                world.cluster.unlabel(&key);
            }
        }
        6 => world.link_up = !world.link_up,
        7 => {
            world.api_up = !world.api_up;
            if !world.api_up {
                world.watched.clear();
                world.cluster.changes.clear();
                world.event(pintle_core::engine::Event::ClusterLost(pintle_model::Problem::new(
                    pintle_model::Reason::ClusterUnreachable,
                    "the API server does not answer",
                )));
            } else {
                rewatch(world);
            }
        }
        8 => {
            world.kill(false);
        }
        9 if world.rng.chance(20) => {
            world.kill(true);
        }
        10 => world.disk_full = world.rng.chance(30),
        11 | 12 => {
            let app = world.rng.pick(&apps);
            let kind = world.rng.below(5);
            world.request(&app, kind);
        }
        13 => {
            let key = pintle_model::ObjectKey::new(
                "",
                "ConfigMap",
                "shop",
                &format!("object-{}", world.rng.below(8)),
            );
            let mut metadata = json!({"name": &*key.name, "namespace": "shop"});
            if world.rng.chance(50) {
                metadata["annotations"] = json!({"meta.helm.sh/release-name": "other"});
            }
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "person", "person": "x"}});
            world.cluster.create_foreign(&key, pintle_model::Object::try_from(object).expect("an object"));
        }
        _ => {}
    }
    world.deliver_changes();
}

/// The API server is back: watches list anew.
fn rewatch(world: &mut World) {
    let wanted = world.state.watched.clone();
    if !wanted.is_empty() {
        world.sequence += 1;
        let sequence = world.sequence;
        let at = world.mono + Duration::from_millis(5);
        world.queue.push_back((at, sequence, pintle_core::engine::Effect::Watch(wanted)));
    }
}

/// Faults stop; everything must converge, then rest.
fn calm(world: &mut World) {
    world.link_up = true;
    world.disk_full = false;
    if !world.api_up {
        world.api_up = true;
        rewatch(world);
    }
    // Marked objects of people stay where they are: git lets go of their names.
    if let Some(mut commit) = world.commits.last().cloned() {
        for objects in commit.values_mut() {
            objects.retain(|key, _| {
                world
                    .cluster
                    .objects
                    .get(key)
                    .is_none_or(|live| live.annotation("meta.helm.sh/release-name").is_none())
            });
        }
        world.commits.push(commit);
    }
    for app in world.app_keys() {
        // A hold that nobody ends holds, and comes to rest too.
        if world.rng.chance(70) {
            world.request(&app, 1);
        }
    }
    let until = world.mono + Duration::from_hours(1);
    let mut events = 0_u32;
    while world.advance(until) {
        events += 1;
        if events > 20_000 {
            invariants::fail(world, "it does not come to rest");
        }
    }
    invariants::converged(world);
    let (writes, commits) = (world.cluster.writes, world.disk.commits);
    let until = world.mono + Duration::from_hours(1);
    while world.advance(until) {}
    if world.cluster.writes != writes {
        invariants::fail(world, "writes to the API server at rest");
    }
    if world.disk.commits != commits {
        invariants::fail(world, "writes to the disk at rest");
    }
}

/// One line of the story: what does not fit in is not even written.
fn short(value: &dyn std::fmt::Debug) -> String {
    const LONGEST: usize = 220;
    struct Bounded(String);
    impl std::fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let left = LONGEST.saturating_sub(self.0.len());
            let fits =
                text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= left).last();
            self.0.push_str(&text[..fits.unwrap_or(0)]);
            if text.len() > left { Err(std::fmt::Error) } else { Ok(()) }
        }
    }
    let mut line = Bounded(String::new());
    // The error says that it is full.
    let _ = std::fmt::Write::write_fmt(&mut line, format_args!("{value:?}"));
    line.0
}

/// The spec of an application of the simulator.
fn spec(key: &AppKey, url: &str, automated: bool, until_resume: bool) -> Application {
    let raw = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace,
            "annotations": {"pintle.dev/rollback-until": if until_resume { "resume" } else { "newer" }}},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "targetRevision": "main", "path": &*key.name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "syncPolicy": if automated { json!({"automated": {"prune": true, "selfHeal": true}}) } else { json!({}) },
        },
    });
    let raw = serde_json::from_value(raw).expect("an Application");
    pintle_model::application::validate(raw, &pintle_model::application::Context::default())
        .expect("a valid Application")
}
