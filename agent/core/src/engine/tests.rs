use std::time::Duration;

use jiff::Timestamp;
use pintle_model::{Problem, Reason};

use super::*;
use crate::plan::PruneLimits;

fn state() -> State {
    let mut state = State::new(Settings {
        mode: Mode::Run,
        agent_id: "me".into(),
        agent_namespace: "pintle-system".into(),
        poll_interval: Duration::from_mins(3),
        poll_jitter: Duration::ZERO,
        prune: PruneLimits::default(),
    });
    state.apps_loaded = true;
    state
}

fn at(seconds: u64) -> Now {
    Now { mono: Duration::from_secs(seconds), wall: Timestamp::UNIX_EPOCH }
}

/// Pauses between tries while every answer is the one given, in seconds.
fn pauses(state: &mut State, answer: impl Fn() -> Vec<Event>) -> Vec<u64> {
    let mut now = at(0);
    let mut found = Vec::new();
    for _ in 0..7 {
        step(state, Event::Tick, now);
        for event in answer() {
            step(state, event, now);
        }
        let due = next_due(state).expect("a next try");
        found.push(due.saturating_sub(now.mono).as_secs());
        now.mono = due;
    }
    found
}

#[test]
fn an_unreachable_cluster_is_asked_at_growing_pauses() {
    let lost = || vec![Event::ClusterLost(Problem::new(Reason::ClusterUnreachable, "no route"))];
    assert_eq!(pauses(&mut state(), lost), [1, 2, 4, 8, 15, 15, 15]);
}

#[test]
fn a_cluster_whose_inventory_cannot_be_read_is_asked_at_growing_pauses_and_told_once() {
    let mut state = state();
    state.rebuild = Rebuild::Needed;
    let answers = || {
        vec![
            Event::ClusterReady { incomplete: BTreeSet::new() },
            Event::Rebuilt(Err(Problem::new(Reason::Forbidden, "may not list configmaps"))),
        ]
    };
    assert_eq!(pauses(&mut state, answers), [1, 2, 4, 8, 15, 15, 15]);
    let now = at(1_000);
    let told = [step(&mut state, Event::Tick, now), step(&mut state, answers().remove(0), now)].concat();
    let told = [told, step(&mut state, answers().remove(1), now)].concat();
    assert!(!told.iter().any(|effect| matches!(effect, Effect::Report(_))), "the same once more: {told:?}");
}
