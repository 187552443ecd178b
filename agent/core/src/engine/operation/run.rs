//! The stages of an operation: dry runs, applies, hooks, waits, deletions.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_model::application::DryRun;
use pintle_model::{AppKey, ObjectKey, Problem, Reason, limits};

use super::{finish, hooks, is_current, operation_mut};
use crate::engine::app::{App, Live, OpPhase, Operation, Tracked, after};
use crate::engine::effect::{Apply, Effect};
use crate::engine::event::{Applied, Now};
use crate::engine::record::{Phase, ResultCode, Trigger};
use crate::engine::{State, objects, world};
use crate::health::Status;
use crate::hook::Outcome;
use crate::order::{self, Tier};
use crate::plan::{self, Action, Part, Step};

/// Runs a stage; an empty or missing one goes on to the next.
pub(super) fn stage(state: &mut State, key: &AppKey, stage: usize, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get(key) else { return };
    let timeout = timeout_of(app);
    let Some(operation) = operation_mut(state, key) else { return };
    if let Some(by) = operation.terminating.clone() {
        finish::finish(state, key, Phase::Failed, format!("terminated by {by}"), now, fx);
        return;
    }
    let Some(current) = operation.stages().get(stage) else {
        ended(state, key, now, fx);
        return;
    };
    let way = (current.part, current.wave);
    let prunes = matches!(current.part, Part::Prune | Part::PruneLast) && !current.steps.is_empty();
    if operation.way != Some(way) {
        // Every (part, wave) has a deadline of its own, so that an operation's is its sum.
        operation.way = Some(way);
        operation.deadline = after(now, timeout);
    }
    if prunes {
        prune(state, key, stage, now, fx);
    } else if !check(state, key, stage, fx) {
        apply(state, key, stage, now, fx);
    }
}

fn timeout_of(app: &App) -> u64 {
    app.spec.as_ref().map_or(limits::SYNC_TIMEOUT_SECS, |spec| spec.settings.sync_timeout.as_secs())
}

/// No stage is left.
fn ended(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, key) else { return };
    if let Some(message) = operation.failing.clone() {
        finish::finish(state, key, Phase::Failed, message, now, fx);
        return;
    }
    let message = finish::summary(operation);
    let phase = if operation.failed { Phase::Failed } else { Phase::Succeeded };
    finish::finish(state, key, phase, message, now, fx);
}

/// Before the first write of a wave, what exists and would change is dry-run on the server. Returns whether there is
/// something to wait for.
fn check(state: &mut State, key: &AppKey, stage: usize, fx: &mut Vec<Effect>) -> bool {
    let Some(app) = state.apps.get(key) else { return false };
    let wanted = app.spec.as_ref().map(|spec| spec.settings.dry_run).unwrap_or_default();
    let Some(operation) = &app.operation else { return false };
    let Some(way) = operation.way.filter(|way| !operation.checked.contains(way)) else { return false };
    let applies: Vec<Apply> = if wanted == DryRun::None || operation.failing.is_some() {
        Vec::new()
    } else {
        let of_wave = operation.stages().iter().filter(|stage| (stage.part, stage.wave) == way);
        let steps = of_wave.flat_map(|stage| &stage.steps);
        steps
            .filter(|step| step.hook.is_none() && is_checkable(operation, step))
            .filter(|step| wanted == DryRun::All || exists(step))
            .filter_map(|step| step.apply.clone())
            .collect()
    };
    let (op, app) = (operation.id, key.clone());
    let Some(operation) = operation_mut(state, key) else { return false };
    operation.checked.insert(way);
    if applies.is_empty() {
        return false;
    }
    operation.phase =
        OpPhase::Checking { stage, pending: applies.iter().map(|apply| apply.key.clone()).collect() };
    fx.extend(applies.into_iter().map(|apply| Effect::Check { app: app.clone(), op, apply }));
    true
}

/// Would the step change something that is there?
fn exists(step: &Step) -> bool {
    matches!(step.action, Action::Update | Action::Revert)
        && step
            .apply
            .as_ref()
            .is_some_and(|apply| matches!(apply.expect, crate::engine::effect::Expect::Uid(_)))
}

/// What depends on something that the same plan changes before it cannot be judged by a dry run now: its definition,
/// its namespace, admission, quota, rights.
fn is_checkable(operation: &Operation, step: &Step) -> bool {
    let definition = |other: &Step| {
        order::tier(&other.key.group, &other.key.kind) == Tier::Definitions
            && order::defined_group(&other.key) == &*step.key.group
    };
    let namespace = |other: &Step| other.key.is("", "Namespace") && other.key.name == step.key.namespace;
    let rules = |other: &Step| {
        matches!(
            (&*other.key.group, &*other.key.kind),
            ("admissionregistration.k8s.io" | "rbac.authorization.k8s.io", _)
                | ("", "ResourceQuota" | "LimitRange")
        )
    };
    let itself = |other: &Step| other.key == step.key;
    !operation
        .plan
        .steps()
        .filter(|other| other.apply.is_some())
        .any(|other| !itself(other) && (definition(other) || namespace(other) || rules(other)))
}

/// The server's word on a dry run. All of the wave are heard, then all that is wrong is said at once.
pub(in crate::engine) fn step_checked(
    state: &mut State,
    key: &AppKey,
    op: u64,
    object: &ObjectKey,
    result: Result<(), Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(key).filter(|app| is_current(app, op)) else { return };
    let Some(operation) = app.operation.as_mut() else { return };
    let OpPhase::Checking { stage: at, pending } = &mut operation.phase else { return };
    let at = *at;
    pending.remove(object);
    let done = pending.is_empty();
    if let Err(problem) = result {
        // What is only unreachable for a moment, or moved, is left to the real apply and its retries.
        let refused = matches!(
            problem.reason,
            Reason::Invalid | Reason::ImmutableField | Reason::Forbidden | Reason::UnknownKind
        );
        let remade = operation.plan.step(object).and_then(|step| step.apply.as_ref()).is_some_and(|apply| {
            problem.reason == Reason::ImmutableField && apply.way == crate::engine::record::ApplyWay::Recreate
        });
        if refused && !remade {
            operation.result(object, ResultCode::SyncFailed, format!("dry run: {}", failure(&problem)));
        }
    }
    if !done {
        return;
    }
    if operation.failed {
        finish::fail_with_results(state, key, now, fx);
    } else {
        apply(state, key, at, now, fx);
    }
}

/// Sends a stage's applies.
fn apply(state: &mut State, key: &AppKey, stage: usize, now: Now, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, key) else { return };
    let Some(current) = operation.stages().get(stage) else { return };
    let awaited = |step: &&Step| step.hook.as_ref().is_some_and(|hook| hook.awaited);
    // A hook that was made before a restart is looked at, not made again.
    let looks: Vec<ObjectKey> = current.steps.iter().filter(awaited).map(|step| step.key.clone()).collect();
    let applies: Vec<Apply> =
        current.steps.iter().filter(|step| !awaited(step)).filter_map(|step| step.apply.clone()).collect();
    let pending: BTreeSet<ObjectKey> = applies.iter().map(|apply| apply.key.clone()).collect();
    let nothing = pending.is_empty();
    operation.phase = OpPhase::Applying { stage, pending };
    let op = operation.id;
    fx.extend(looks.into_iter().map(Effect::Probe));
    fx.extend(applies.into_iter().map(|apply| Effect::Apply { app: key.clone(), op, apply }));
    if nothing {
        applied(state, key, stage, now, fx);
    }
}

/// Everything of a stage is answered.
fn applied(state: &mut State, key: &AppKey, at: usize, now: Now, fx: &mut Vec<Effect>) {
    let waiting = to_wait_for(state, key, at);
    if waiting.is_empty() {
        stage(state, key, at + 1, now, fx);
        return;
    }
    // A hook may have ended, and failed, before all of its stage was applied.
    let failed =
        waiting.iter().find_map(|object| Some((object.clone(), hooks::failure(state, key, object)?)));
    if let Some((object, message)) = failed {
        finish::fail(state, key, format!("hook {object} failed: {message}"), now, fx);
        return;
    }
    if let Some(operation) = operation_mut(state, key) {
        operation.phase = OpPhase::Waiting { stage: at, waiting };
    }
}

pub(in crate::engine) fn step_applied(
    state: &mut State,
    key: &AppKey,
    op: u64,
    object: &ObjectKey,
    result: Result<Applied, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    if let Ok(applied) = &result {
        objects::note_applied(state, key, object, applied);
        hooks::seen(state, key, object, &applied.answer, now, fx);
    }
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = app.operation.as_mut().filter(|operation| operation.id == op) else { return };
    match &result {
        // A hook's result is how it ended, not that it was made.
        Ok(_) if operation.plan.step(object).is_some_and(|step| step.hook.is_some()) => {}
        Ok(applied) => operation.result(object, ResultCode::Synced, verb(operation, object, applied)),
        Err(problem) => {
            operation.result(object, ResultCode::SyncFailed, failure(problem));
            if let Some(tracked) = app.objects.get_mut(object)
                && (problem.reason == Reason::Conflict || tracked.record.uid.is_none())
            {
                // Another UID, or it vanished, or it may have been created although the answer was lost.
                tracked.live = Live::Unseen;
                fx.push(Effect::Probe(object.clone()));
            }
        }
    }
    let Some(operation) = operation_mut(state, key) else { return };
    let OpPhase::Applying { stage, pending } = &mut operation.phase else { return };
    pending.remove(object);
    if !pending.is_empty() {
        return;
    }
    let at = *stage;
    if operation.failed {
        finish::fail_with_results(state, key, now, fx);
    } else {
        applied(state, key, at, now, fx);
    }
}

fn verb(operation: &Operation, object: &ObjectKey, applied: &Applied) -> &'static str {
    if applied.adopted.is_some() {
        return "adopted";
    }
    if applied.created {
        return "created";
    }
    let action = operation.plan.step(object).map(|step| step.action);
    match action {
        Some(Action::Revert) => "drift reverted",
        _ => "configured",
    }
}

/// What the stage has to wait for: hooks, Established definitions, a healthy wave, or everything.
fn to_wait_for(state: &State, key: &AppKey, stage: usize) -> BTreeSet<ObjectKey> {
    let Some(app) = state.apps.get(key) else { return BTreeSet::new() };
    let Some(operation) = &app.operation else { return BTreeSet::new() };
    let Some(current) = operation.stages().get(stage) else { return BTreeSet::new() };
    let mut keys: BTreeSet<ObjectKey> = BTreeSet::new();
    if current.wait_established {
        keys.extend(current.steps.iter().map(|step| step.key.clone()));
    }
    let of_sync = matches!(current.part, Part::Sync | Part::PruneLast);
    if (current.wait_healthy && of_sync) || current.wait_all {
        let waves = order::effective_waves(&operation.render.objects);
        let all = operation.render.objects.iter().zip(waves);
        let of_wave = all.filter(|(_, wave)| current.wait_all || *wave == current.wave);
        let counted = of_wave.filter(|(entry, _)| !entry.ignore_health && !entry.ignore);
        keys.extend(counted.map(|(entry, _)| entry.key.clone()));
    }
    if current.wait_gone {
        keys.extend(
            app.objects.iter().filter(|(_, tracked)| tracked.record.deleting).map(|(key, _)| key.clone()),
        );
    }
    if current.wait_healthy {
        // Hooks of the wave, whatever stage of it they stand in.
        let of_wave = operation
            .stages()
            .iter()
            .filter(|other| (other.part, other.wave) == (current.part, current.wave));
        let steps = of_wave.flat_map(|stage| &stage.steps);
        keys.extend(steps.filter(|step| step.hook.is_some()).map(|step| step.key.clone()));
    }
    keys.into_iter().filter(|key| !is_done(app, key)).collect()
}

/// Healthy, Established, ended well; or not ours to wait for.
fn is_done(app: &App, key: &ObjectKey) -> bool {
    let Some(tracked) = app.objects.get(key) else { return true };
    // What is being deleted is waited for until it is gone.
    if app.operation.as_ref().is_some_and(|operation| operation.cascade) && tracked.record.deleting {
        return false;
    }
    if let Some(hook) = &tracked.record.hook {
        return hook.outcome == Some(Outcome::Succeeded);
    }
    tracked.health().is_some_and(|health| matches!(health.status, Status::Healthy | Status::Suspended))
}

/// The health or existence of an object changed: is somebody waiting for it?
pub(in crate::engine) fn recheck(
    state: &mut State,
    key: &AppKey,
    object: &ObjectKey,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(key) else { return };
    let done = is_done(app, object);
    let is_hook = app.objects.get(object).is_some_and(|tracked| tracked.record.hook.is_some());
    let degraded = app
        .objects
        .get(object)
        .filter(|_| !is_hook)
        .and_then(Tracked::health)
        .filter(|health| health.status == Status::Degraded)
        .map(|health| health.message.clone());
    let Some(operation) = app.operation.as_mut() else { return };
    let OpPhase::Waiting { stage: at, waiting } = &mut operation.phase else { return };
    if !waiting.contains(object) {
        return;
    }
    if let Some(message) = degraded {
        let message = format!("{object} is Degraded: {message}");
        finish::fail(state, key, message, now, fx);
        return;
    }
    if done {
        waiting.remove(object);
        if waiting.is_empty() {
            let next = *at + 1;
            stage(state, key, next, now, fx);
        }
    }
}

/// Sends the deletions of a stage.
fn prune(state: &mut State, key: &AppKey, at: usize, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get(key) else { return };
    // The world may have moved while the applies ran: what another application wants now is not deleted.
    let wanted: BTreeSet<ObjectKey> = app
        .operation
        .iter()
        .filter_map(|op| op.stages().get(at))
        .flat_map(|current| &current.steps)
        .filter(|step| !matches!(world::relation(state, key, &step.key), plan::Relation::None))
        .map(|step| step.key.clone())
        .collect();
    let Some(operation) = operation_mut(state, key) else { return };
    let Some(current) = operation.stages().get(at) else { return };
    let steps: Vec<(ObjectKey, Arc<str>, &'static str)> = current
        .steps
        .iter()
        .filter(|step| !wanted.contains(&step.key))
        .filter_map(|step| Some((step.key.clone(), step.uid.clone()?, step.propagation.as_str())))
        .collect();
    for object in &wanted {
        operation.result(object, ResultCode::PruneSkipped, "another application wants it");
    }
    if steps.is_empty() {
        stage(state, key, at + 1, now, fx);
        return;
    }
    operation.phase =
        OpPhase::Pruning { stage: at, pending: steps.iter().map(|(key, _, _)| key.clone()).collect() };
    let op = operation.id;
    for _ in &steps {
        state.deletions.push_back(now.mono);
    }
    fx.extend(steps.into_iter().map(|(object, uid, propagation)| Effect::Delete {
        app: key.clone(),
        op,
        key: object,
        uid,
        propagation,
    }));
}

pub(in crate::engine) fn step_deleted(
    state: &mut State,
    key: &AppKey,
    op: u64,
    object: &ObjectKey,
    result: Result<bool, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(key) else { return };
    if let Ok(gone) = &result
        && let Some(tracked) = app.objects.get_mut(object)
    {
        tracked.record.deleting = true;
        tracked.unsaved = true;
        // Gone or not, only a 404 of a look shrinks the inventory.
        if *gone {
            fx.push(Effect::Probe(object.clone()));
        }
    }
    let Some(operation) = app.operation.as_mut().filter(|operation| operation.id == op) else { return };
    match result {
        Ok(_) => operation.result(object, ResultCode::Pruned, "pruned"),
        Err(problem) => {
            operation.result(object, ResultCode::SyncFailed, format!("prune: {}", failure(&problem)));
        }
    }
    let OpPhase::Pruning { stage: at, pending } = &mut operation.phase else { return };
    pending.remove(object);
    if pending.is_empty() {
        let next = *at + 1;
        // Stop at the first stage with a failure: parents are not deleted before their children.
        if operation.failed {
            finish::fail_with_results(state, key, now, fx);
        } else {
            stage(state, key, next, now, fx);
        }
    }
}

/// Ends what waits too long, naming what it waits for.
pub(in crate::engine) fn drive(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    super::begin_when_journalled(state, key, fx);
    let Some(app) = state.apps.get(key) else { return };
    let Some(operation) = &app.operation else { return };
    if operation.terminating.is_some() && matches!(operation.phase, OpPhase::Waiting { .. }) {
        let by = operation.terminating.clone().unwrap_or_default();
        hooks::stop_running(state, key, fx);
        finish::finish(state, key, Phase::Failed, format!("terminated by {by}"), now, fx);
        return;
    }
    if let Some(newer) = superseded(app, operation) {
        finish::finish(state, key, Phase::Failed, newer, now, fx);
        return;
    }
    if operation.deadline > now.mono {
        return;
    }
    let message = match &operation.phase {
        OpPhase::Surveying => "the cluster did not say in time which objects exist".to_owned(),
        OpPhase::Beginning { .. } => match &state.save_problem {
            Some(problem) => format!("the journal could not be written in time: {}", problem.message),
            None => "the journal could not be written in time".to_owned(),
        },
        OpPhase::Checking { pending, .. } => {
            format!("no answer in time to the dry run of {}", list(pending.iter()))
        }
        OpPhase::Applying { pending, .. } => format!("no answer in time for {}", list(pending.iter())),
        OpPhase::Pruning { pending, .. } => {
            format!("no answer in time to the deletion of {}", list(pending.iter()))
        }
        OpPhase::Waiting { waiting, .. } => {
            let each = waiting.iter().map(|key| {
                if let Some(text) = hooks::progress(app, key) {
                    return text;
                }
                let health = app.objects.get(key).and_then(Tracked::health);
                health.map_or_else(
                    || key.to_string(),
                    |health| format!("{key} ({:?}: {})", health.status, health.message),
                )
            });
            format!("not healthy in time: {}", each.take(10).collect::<Vec<_>>().join("; "))
        }
    };
    if matches!(operation.phase, OpPhase::Surveying | OpPhase::Beginning { .. }) {
        finish::finish(state, key, Phase::Failed, message, now, fx);
    } else {
        finish::fail(state, key, message, now, fx);
    }
}

/// A newer revision ends an automated operation that only waits for health; never one whose hook runs.
fn superseded(app: &App, operation: &Operation) -> Option<String> {
    let OpPhase::Waiting { waiting, .. } = &operation.phase else { return None };
    let newer = app.render().filter(|render| render.id != operation.render.id)?;
    let hook_runs =
        waiting.iter().any(|key| app.objects.get(key).is_some_and(|tracked| tracked.record.hook.is_some()));
    let ends = operation.trigger == Trigger::Automated && operation.failing.is_none() && !hook_runs;
    ends.then(|| {
        format!(
            "ended for the newer revision {} while waiting for {}",
            newer.revision.short(),
            list(waiting.iter())
        )
    })
}

fn list<'a>(keys: impl Iterator<Item = &'a ObjectKey>) -> String {
    let names: Vec<String> = keys.map(ToString::to_string).collect();
    let shown = names.iter().take(10).cloned().collect::<Vec<_>>().join("; ");
    if names.len() > 10 { format!("{shown}; and {} more", names.len() - 10) } else { shown }
}

/// What a failed step says. A missing right is mended outside of git, so where to do that is said too.
fn failure(problem: &Problem) -> String {
    match problem.reason {
        Reason::Forbidden => format!("{}: {}", problem.message, problem.reason.hint()),
        _ => problem.message.clone(),
    }
}
