//! The end of an operation: SyncFail hooks, history, inventory and journal in one commit, the next try.

use std::time::Duration;

use pintle_model::{AppKey, limits};

use super::{operation_mut, run};
use crate::engine::app::{App, Operation};
use crate::engine::effect::{Effect, Report};
use crate::engine::event::Now;
use crate::engine::record::{HistoryRecord, Phase, ResultCode, Trigger, Write};
use crate::engine::{State, intake, objects};

/// The operation failed: its SyncFail hooks run, if it has any, and then it ends.
pub(super) fn fail(state: &mut State, key: &AppKey, message: String, now: Now, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, key) else { return };
    if let Some(first) = &operation.failing {
        // One of its SyncFail hooks failed too.
        let message = format!("{first}; then {message}");
        finish(state, key, Phase::Failed, message, now, fx);
        return;
    }
    if operation.plan.on_fail.is_empty() || operation.terminating.is_some() {
        finish(state, key, Phase::Failed, message, now, fx);
        return;
    }
    operation.failing = Some(message);
    operation.way = None;
    // From here on it tells of the SyncFail hooks.
    operation.failed = false;
    run::stage(state, key, 0, now, fx);
}

/// Fails with the results of the objects that failed.
pub(super) fn fail_with_results(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, key) else { return };
    let failed: Vec<String> = operation
        .results
        .iter()
        .filter(|result| result.code == ResultCode::SyncFailed)
        .map(|result| format!("{}: {}", result.key, result.message))
        .collect();
    let shown = failed.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    let more = if failed.len() > 5 { format!("; and {} more", failed.len() - 5) } else { String::new() };
    let message = format!(
        "{} of {} objects failed: {shown}{more}",
        failed.len(),
        operation.plan.len().max(failed.len())
    );
    fail(state, key, message, now, fx);
}

/// What a finished operation did.
pub(super) fn summary(operation: &Operation) -> String {
    let count = |code| operation.results.iter().filter(|result| result.code == code).count();
    let mut text = format!("successfully synced ({} applied", count(ResultCode::Synced));
    let pruned = count(ResultCode::Pruned);
    if pruned > 0 {
        text.push_str(&format!(", {pruned} pruned"));
    }
    let refused = operation.plan.refusals.len();
    if refused > 0 {
        text.push_str(&format!(", {refused} refused"));
    }
    if !operation.plan.deferred.is_empty() {
        text.push_str(&format!(", {} deferred", operation.plan.deferred.len()));
    }
    text.push(')');
    text
}

/// There was nothing to do. An automated pass with an empty plan is no operation and leaves no history; a
/// person's does.
pub(super) fn finish_empty(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = &app.operation else { return };
    if operation.cascade || operation.trigger != Trigger::Automated || operation.pin.is_some() {
        let message = "nothing to do: the cluster is as git wants it".to_owned();
        finish(state, key, Phase::Succeeded, message, now, fx);
        return;
    }
    app.auto.satisfied = Some(operation.render.id);
    app.auto.failed = None;
    app.auto.failures = 0;
    app.auto.next_try = None;
    app.synced = Some(operation.render.revision);
    app.operation = None;
    intake::save_apps(state, fx);
}

/// Ends the operation: history, inventory and journal in one commit.
pub(super) fn finish(
    state: &mut State,
    key: &AppKey,
    phase: Phase,
    message: String,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = app.operation.take() else { return };
    app.dirty = true;
    let succeeded = phase == Phase::Succeeded;
    let render = operation.render.id;
    let begun = operation.phase != crate::engine::app::OpPhase::Surveying || operation.resumed;
    // What was handed to us while the operation ran is not applied yet: then automated sync is not satisfied.
    let complete = operation.render.objects.iter().all(|entry| {
        let applied = |tracked: &crate::engine::app::Tracked| tracked.record.manifest == Some(entry.manifest);
        entry.ignore || entry.only_create || app.objects.get(&entry.key).is_none_or(applied)
    });
    if succeeded && complete && operation.request.selection.is_empty() {
        app.auto.satisfied = Some(render);
        app.synced = Some(operation.render.revision);
    }
    if succeeded {
        app.hooks_done = None;
        app.auto.failed = None;
        app.auto.failures = 0;
        app.auto.next_try = None;
    } else {
        retry_later(app, render, now);
    }
    if operation.cascade {
        app.leaving = None;
        if succeeded {
            fx.push(Effect::Report(Report::OperationCompleted {
                app: key.clone(),
                revision: operation.render.revision,
                phase,
                message,
            }));
            crate::engine::world::orphan(state, key, "app delete --cascade", fx);
            return;
        }
    }
    let mut writes = history(app, operation, phase, &message, now);
    fx.push(Effect::Report(Report::OperationCompleted {
        app: key.clone(),
        revision: app
            .last
            .as_ref()
            .map_or_else(|| pintle_model::Revision::from_bytes([0; 20]), |last| last.revision),
        phase,
        message,
    }));
    if begun {
        writes.push(Write::Operation(key.clone(), None));
    }
    let record = app.record();
    if app.saved.as_ref() != Some(&record) {
        app.saved = Some(record.clone());
        writes.push(Write::App(key.clone(), Some(record)));
    }
    writes.extend(objects::unsaved_writes(state, key));
    if !writes.is_empty() {
        writes.push(Write::Collect);
        state.commit(writes, fx);
    }
}

fn retry_later(app: &mut App, render: pintle_model::Digest, now: Now) {
    if app.auto.failed != Some(render) {
        app.auto.failures = 0;
    }
    let written = app.spec.as_ref().and_then(|spec| spec.retry.as_ref());
    let wait = match written {
        Some(retry) => crate::schedule::backoff(
            retry.backoff_duration,
            retry.backoff_factor,
            retry.backoff_max_duration,
            app.auto.failures,
        ),
        None => crate::schedule::backoff(
            Duration::from_secs(limits::RETRY_BACKOFF_FIRST_SECS),
            limits::RETRY_BACKOFF_FACTOR,
            Duration::from_secs(limits::RETRY_BACKOFF_MAX_SECS),
            app.auto.failures,
        ),
    };
    app.auto.failed = Some(render);
    app.auto.failures = app.auto.failures.saturating_add(1);
    app.auto.next_try = Some(now.mono + wait);
}

/// The history entry. A retry that fails like the one before is folded into it, so that a fault of days leaves
/// one entry and not thousands.
fn history(app: &mut App, operation: Operation, phase: Phase, message: &str, now: Now) -> Vec<Write> {
    let folded = app.last.as_ref().filter(|last| {
        phase != Phase::Succeeded
            && last.phase == phase
            && last.render == operation.render.id
            && last.message == message
    });
    let (id, retries) = match folded {
        Some(last) => (last.id, last.retries + 1),
        None => (app.last_history + 1, 0),
    };
    app.last_history = id;
    let record = HistoryRecord {
        id,
        trigger: operation.trigger,
        revision: operation.render.revision,
        render: operation.render.id,
        phase,
        message: message.to_owned(),
        started: operation.started,
        finished: now.wall,
        results: operation.results,
        commit: operation.render.commit.clone(),
        operation: operation.id,
        retries,
        notes: app.notes.drain(..).collect(),
    };
    app.last = Some(record.clone());
    let limit = app.spec.as_ref().map_or(limits::HISTORY_DEFAULT, |spec| spec.history_limit) as u64;
    if retries > 0 {
        // The same failure once more: counted in memory, so that a fault of weeks does not wear the disk.
        return Vec::new();
    }
    let mut writes = vec![Write::History(app.key.clone(), record)];
    if limit > 0 && id > limit {
        writes.push(Write::DropHistory(app.key.clone(), vec![id - limit]));
    }
    writes
}
