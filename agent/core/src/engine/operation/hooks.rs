//! Hooks: what is seen of their objects, how they end, and what becomes of them then.

use pintle_model::{AppKey, Object, ObjectKey};

use super::{finish, operation_mut, run};
use crate::engine::app::App;
use crate::engine::effect::Effect;
use crate::engine::event::Now;
use crate::engine::record::{HookMark, HooksDone, ResultCode, Write};
use crate::engine::{State, world};
use crate::hook::{self, Outcome, Removal};

/// An object was seen, alive or for the last time. If it is a hook's, its result is taken down: once ended, it stays
/// so. Returns whether it is one.
pub(in crate::engine) fn seen(
    state: &mut State,
    owner: &AppKey,
    key: &ObjectKey,
    object: &Object,
    now: Now,
    fx: &mut Vec<Effect>,
) -> bool {
    let Some(tracked) = state.apps.get_mut(owner).and_then(|app| app.objects.get_mut(key)) else {
        return false;
    };
    let Some(mark) = tracked.record.hook.as_mut() else { return false };
    if tracked.record.uid.as_deref() != Some(object.uid()) {
        return true;
    }
    if let Some(operation) = hook::operation_of(object).filter(|operation| *operation != mark.operation) {
        // The entry was written for the next run, and this is still the object of the one before.
        mark.operation = operation;
        mark.outcome = None;
    }
    if mark.outcome.is_some() {
        return true;
    }
    let outcome = hook::outcome(object);
    if matches!(outcome, Outcome::Running(_)) {
        // Its start is a commit point: after a kill it is found by its UID, or known to have vanished.
        if tracked.unsaved {
            tracked.unsaved = false;
            let write = Write::Inventory(owner.clone(), key.clone(), Some(tracked.record.clone()));
            state.commit(vec![write], fx);
        }
        return true;
    }
    mark.outcome = Some(outcome);
    ended(state, owner, key, now, fx);
    true
}

/// An object is gone for certain. A hook's that was not seen to end failed, and that is the reason. Returns whether it
/// was one's.
pub(in crate::engine) fn vanished(
    state: &mut State,
    owner: &AppKey,
    key: &ObjectKey,
    now: Now,
    fx: &mut Vec<Effect>,
) -> bool {
    let Some(app) = state.apps.get_mut(owner) else { return false };
    let being_made = app.needs_entry(key);
    let Some(tracked) = app.objects.get_mut(key) else { return false };
    let Some(mark) = tracked.record.hook.as_mut() else { return false };
    let running = tracked.record.uid.is_some() && mark.outcome.is_none();
    let made_by = mark.operation;
    if running {
        mark.outcome = Some(Outcome::Failed("it vanished before its result was seen".into()));
        ended(state, owner, key, now, fx);
    }
    let Some(app) = state.apps.get_mut(owner) else { return true };
    // The running operation is about to make it, or has just done so.
    if being_made && !running && app.objects.get(key).is_some_and(|tracked| tracked.record.uid.is_none()) {
        return true;
    }
    // The operation that made it goes on, or is about to: it has to know how this ended.
    let resumes = app.resume.as_ref().is_some_and(|record| record.id == made_by)
        || app.operation.as_ref().is_some_and(|operation| operation.id == made_by);
    if resumes || app.operation.as_ref().is_some_and(|operation| operation.plan.step(key).is_some()) {
        // Its outcome is still asked for.
        if let Some(tracked) = app.objects.get_mut(key) {
            tracked.record.uid = None;
            tracked.live = crate::engine::app::Live::Gone;
            tracked.unsaved = true;
        }
        return true;
    }
    let write = world::forget(state, owner, key);
    state.commit(vec![write], fx);
    true
}

/// A hook ended: a commit point. It is not run again for the same render, its object goes if its policy says so, and
/// the operation that waits for it goes on.
fn ended(state: &mut State, owner: &AppKey, key: &ObjectKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get_mut(owner) else { return };
    let Some(tracked) = app.objects.get_mut(key) else { return };
    let Some(mark) = tracked.record.hook.clone() else { return };
    tracked.unsaved = false;
    let record = tracked.record.clone();
    let succeeded = mark.outcome == Some(Outcome::Succeeded);
    let removal = if succeeded { Removal::HookSucceeded } else { Removal::HookFailed };
    let goes = mark.removal.contains(&removal);
    if goes && let Some(uid) = record.uid.clone() {
        fx.push(Effect::RemoveHook { key: key.clone(), uid });
    }
    let mut writes = vec![Write::Inventory(owner.clone(), key.clone(), Some(record))];
    let running = app.operation.as_mut().filter(|operation| operation.id == mark.operation);
    if let Some(operation) = running {
        match &mark.outcome {
            Some(Outcome::Failed(message)) => {
                operation.result(
                    key,
                    ResultCode::SyncFailed,
                    format!("{} hook failed: {message}", mark.phase),
                );
            }
            _ => operation.result(key, ResultCode::Synced, format!("{} hook succeeded", mark.phase)),
        }
    }
    // Also while the operation has not gone on yet after a restart.
    let running = app.operation.as_ref().map(|operation| (operation.id, operation.render.id));
    let resumed = app.resume.as_ref().map(|record| (record.id, record.render));
    let render = running.or(resumed).filter(|(id, _)| *id == mark.operation).map(|(_, render)| render);
    if let Some(render) = render
        && succeeded
    {
        let done = app
            .hooks_done
            .get_or_insert_with(|| HooksDone { render, hooks: std::collections::BTreeSet::new() });
        done.hooks.insert((mark.phase, mark.wanted.clone(), mark.manifest));
    }
    let app_record = app.record();
    if app.saved.as_ref() != Some(&app_record) {
        app.saved = Some(app_record.clone());
        writes.push(Write::App(owner.clone(), Some(app_record)));
    }
    state.commit(writes, fx);
    let waits = state.apps.get(owner).and_then(|app| app.operation.as_ref()).is_some_and(|operation| {
        matches!(&operation.phase, crate::engine::app::OpPhase::Waiting { waiting, .. } if waiting.contains(key))
    });
    if !waits {
        return;
    }
    match &mark.outcome {
        Some(Outcome::Failed(message)) => {
            let message = format!("{} hook {key} failed: {message}", mark.phase);
            finish::fail(state, owner, message, now, fx);
        }
        _ => run::recheck(state, owner, key, now, fx),
    }
}

/// Why a hook failed, if it did.
pub(super) fn failure(state: &State, owner: &AppKey, key: &ObjectKey) -> Option<String> {
    match &mark_of(state.apps.get(owner)?, key)?.outcome {
        Some(Outcome::Failed(message)) => Some(message.clone()),
        _ => None,
    }
}

/// What is waited for, where it is a hook: for messages.
pub(super) fn progress(app: &App, key: &ObjectKey) -> Option<String> {
    let mark = mark_of(app, key)?;
    let health = app.objects.get(key).and_then(crate::engine::app::Tracked::health);
    let text = health.map(|health| health.message.clone()).filter(|text| !text.is_empty());
    Some(format!("{} hook {key} ({})", mark.phase, text.unwrap_or_else(|| "it has not ended".to_owned())))
}

fn mark_of<'a>(app: &'a App, key: &ObjectKey) -> Option<&'a HookMark> {
    app.objects.get(key)?.record.hook.as_ref()
}

/// A person ended the operation: the hooks that it waits for end too.
pub(super) fn stop_running(state: &mut State, owner: &AppKey, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, owner) else { return };
    let crate::engine::app::OpPhase::Waiting { waiting, .. } = operation.phase.clone() else { return };
    let Some(app) = state.apps.get(owner) else { return };
    for key in waiting {
        if let Some(tracked) = app.objects.get(&key)
            && tracked.record.hook.is_some()
            && let Some(uid) = tracked.record.uid.clone()
        {
            fx.push(Effect::RemoveHook { key, uid });
        }
    }
}
