//! The source region: refs are polled and commits fetched once for all applications that follow them.

use std::time::Duration;

use pintle_model::application::Application;
use pintle_model::{Digest, Problem, Revision, limits};

use super::event::{Now, RefKey};
use super::record::{RefRecord, Write};
use super::{Effect, Mode, RefPhase, RefState, State};
use crate::schedule;

/// Pause before a failed poll or fetch is tried again, the first time.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// A full commit id never moves: it is not polled.
const NEVER: Duration = Duration::MAX;

/// A ref that nobody has asked for yet.
pub(super) fn new_ref() -> RefState {
    RefState {
        phase: RefPhase::Idle { next: Duration::ZERO },
        resolved: None,
        available: None,
        last_ok: None,
        problem: None,
        failures: 0,
        rounds: 0,
        poll_now: false,
    }
}

/// Starts what is due: polls, then fetches of commits that some application needs.
pub(super) fn drive(state: &mut State, now: Now, fx: &mut Vec<Effect>) {
    let mut wanted: Vec<(RefKey, bool)> = Vec::new();
    for app in state.apps.values().filter(|app| !app.holds.detached) {
        if let Some(reference) = app.reference() {
            let needs = needs_render(app, state.refs.get(&reference).and_then(|known| known.resolved));
            wanted.push((reference, needs));
        }
        wanted.extend(app.lost_pin().map(|reference| (reference, true)));
    }
    state.refs.retain(|key, _| wanted.iter().any(|(reference, _)| reference == key));
    for (key, needs_render) in wanted {
        let known = state.refs.entry(key.clone()).or_insert_with(new_ref);
        let RefPhase::Idle { next } = known.phase else { continue };
        if known.poll_now || next <= now.mono {
            known.poll_now = false;
            if let Ok(revision) = key.target.parse::<Revision>() {
                known.problem = None;
                known.resolved = Some(revision);
                known.phase = RefPhase::Idle { next: NEVER };
            } else {
                known.phase = RefPhase::Polling;
                known.rounds += 1;
                fx.push(Effect::Poll(key));
                continue;
            }
        }
        if let Some(revision) = known.resolved
            && needs_render
            && known.problem.is_none()
            && known.available != Some(revision)
        {
            known.phase = RefPhase::Fetching(revision);
            fx.push(Effect::Fetch(key, revision));
        }
    }
}

/// What a render depends on beside the commit: the spec, and how this version renders.
pub(super) fn render_digest(spec: &Application) -> Digest {
    /// Raised whenever the same input gives another render.
    const RENDERER: &[u8] = b"renderer-1";
    Digest::of_parts([spec.spec_digest().as_bytes().as_slice(), RENDERER])
}

/// Does the application have no render of this revision with its present spec?
pub(super) fn needs_render(app: &super::App, revision: Option<Revision>) -> bool {
    let (Some(revision), Some(spec)) = (revision, &app.spec) else { return false };
    let digest = render_digest(spec);
    if app.desired.failed == Some((revision, digest)) && !app.desired.hard {
        return false;
    }
    app.desired.hard
        || app.desired.git.as_ref().is_none_or(|git| git.revision != revision)
        || app.desired.git_spec != Some(digest)
}

pub(super) fn polled(
    state: &mut State,
    key: &RefKey,
    result: Result<Revision, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let wait = next_poll(state, key);
    let Some(known) = state.refs.get_mut(key) else { return };
    match result {
        Ok(revision) => {
            known.phase = RefPhase::Idle { next: now.mono.saturating_add(wait) };
            known.failures = 0;
            known.problem = None;
            known.last_ok = Some(now.wall);
            if known.resolved.replace(revision) != Some(revision) {
                let record = RefRecord { revision, at: now.wall };
                state.commit(vec![Write::Ref(key.url.clone(), key.target.clone(), record)], fx);
            }
        }
        Err(problem) => failed(state, key, problem, now),
    }
}

pub(super) fn fetched(
    state: &mut State,
    key: &RefKey,
    revision: Revision,
    result: Result<(), Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let wait = next_poll(state, key);
    let Some(known) = state.refs.get_mut(key) else { return };
    match result {
        Ok(()) => {
            let pinned = key.target.parse::<Revision>().is_ok();
            known.phase = RefPhase::Idle { next: if pinned { NEVER } else { now.mono.saturating_add(wait) } };
            known.available = Some(revision);
            known.failures = 0;
            known.problem = None;
            known.last_ok = Some(now.wall);
            if pinned {
                let record = RefRecord { revision, at: now.wall };
                state.commit(vec![Write::Ref(key.url.clone(), key.target.clone(), record)], fx);
            }
        }
        Err(problem) => failed(state, key, problem, now),
    }
}

/// A poll, a fetch, or a read of what was fetched failed: told as a condition of its own, tried again with backoff
/// that never grows past the poll interval. The last good render stays in force.
pub(super) fn failed(state: &mut State, key: &RefKey, problem: Problem, now: Now) {
    let cap = state.settings.poll_interval.max(FIRST_RETRY);
    let seed = format!("{}{}", state.settings.agent_id, key.url);
    let Some(known) = state.refs.get_mut(key) else { return };
    let wait = schedule::backoff(FIRST_RETRY, limits::RETRY_BACKOFF_FACTOR, cap, known.failures);
    // A tenth as jitter: a fleet whose git server comes back must not ask all at once.
    let wait = wait + schedule::jitter(wait / 10, &seed, u64::from(known.failures));
    known.failures = known.failures.saturating_add(1);
    known.problem = Some(problem);
    known.phase = RefPhase::Idle { next: now.mono + wait };
}

fn next_poll(state: &State, key: &RefKey) -> Duration {
    if state.settings.mode == Mode::Observe {
        return NEVER;
    }
    let rounds = state.refs.get(key).map_or(0, |known| known.rounds);
    let seed = format!("{}{}", state.settings.agent_id, key.url);
    state.settings.poll_interval + schedule::jitter(state.settings.poll_jitter, &seed, rounds)
}
