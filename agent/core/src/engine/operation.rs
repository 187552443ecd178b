//! The operation region: survey, plan, journal, stages, waits, deletions, end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pintle_model::{AppKey, GroupKind, Object, ObjectKey, Problem, Reason, limits};

use super::app::{App, Live, OpPhase, Operation, Tracked, Verdicts, after};
use super::effect::{Effect, Parent, Report};
use super::event::{Applied, Found, Now, SyncRequest};
use super::record::{HistoryRecord, OperationRecord, Phase, Pin, RenderRecord, ResultCode, Trigger, Write};
use super::{State, intake, objects, world};
use crate::health::Status;
use crate::plan::{self, Action, Known, Options, Plan, Sighting};
use crate::{adopt, identity, order};

/// What starts an operation.
pub(super) struct Start {
    pub trigger: Trigger,
    pub request: SyncRequest,
    pub revert: bool,
    pub render: Arc<RenderRecord>,
    pub pin: Option<Pin>,
}

/// Starts an operation; the caller has checked that none runs. Returns its id.
pub(super) fn start(state: &mut State, key: &AppKey, start: Start, now: Now, fx: &mut Vec<Effect>) -> u64 {
    state.last_operation += 1;
    let id = state.last_operation;
    let Some(app) = state.apps.get_mut(key) else { return id };
    app.dirty = false;
    let timeout =
        app.spec.as_ref().map_or(limits::SYNC_TIMEOUT_SECS, |spec| spec.settings.sync_timeout.as_secs());
    app.operation = Some(Operation {
        id,
        trigger: start.trigger,
        request: start.request,
        revert: start.revert,
        render: start.render,
        started: now.wall,
        // Room for survey and journal; widened to the number of waves once the plan is known.
        deadline: after(now, timeout),
        plan: Plan::default(),
        phase: OpPhase::Surveying,
        results: Vec::new(),
        failed: false,
        pin: start.pin,
        terminating: None,
    });
    let keys = app.operation.as_ref().map(|op| unknown_keys(app, &op.render)).unwrap_or_default();
    if keys.is_empty() {
        surveyed(state, key, id, Ok(Vec::new()), now, fx);
    } else {
        fx.push(Effect::Survey { app: key.clone(), op: id, keys });
    }
    id
}

/// Objects that a render wants and that the inventory does not know for certain.
pub fn unknown_keys(app: &App, render: &RenderRecord) -> Vec<(ObjectKey, Arc<str>)> {
    render
        .objects
        .iter()
        .filter(|entry| {
            app.objects.get(&entry.key).is_none_or(|tracked| {
                tracked.record.uid.is_none() || matches!(tracked.live, Live::Foreign(_))
            })
        })
        .map(|entry| (entry.key.clone(), entry.api_version.clone()))
        .collect()
}

/// Makes the plan for an application's render, with what a survey found. Used by operations and by `diff`.
pub fn make_plan(
    state: &State,
    app: &App,
    render: &RenderRecord,
    request: &SyncRequest,
    revert: bool,
    found: &BTreeMap<ObjectKey, Arc<Object>>,
) -> Plan {
    let spec = app.spec.as_deref();
    let options = Options {
        prune: request.prune,
        revert,
        selection: request.selection.iter().cloned().collect(),
        confirm: request.confirm.clone(),
        allow_empty: spec.and_then(|spec| spec.automated.as_ref()).is_some_and(|auto| auto.allow_empty),
        fail_on_shared: spec.is_some_and(|spec| spec.sync_options.fails_on_shared_resource()),
        adopt: spec.is_some_and(|spec| spec.settings.adopt),
        limits: state.settings.prune,
    };
    let part_of = identity::applyset_id(&state.settings.agent_namespace, &app.key);
    plan::make(&plan::Input {
        app: &app.key,
        agent: adopt::Agent { id: &state.settings.agent_id, namespace: &state.settings.agent_namespace },
        part_of: &part_of,
        desired: &render.objects,
        known: &|key| app.objects.get(key).map(known),
        inventory: &|| app.objects.keys().cloned().collect(),
        found,
        relation: &|key| world::relation(state, &app.key, key),
        barrier: world::barrier(state, app),
        incomplete: &state.incomplete,
        options: &options,
    })
}

fn known(tracked: &Tracked) -> Known<'_> {
    let sighting = match &tracked.live {
        Live::Unseen => Sighting::Unseen,
        Live::Gone => Sighting::Gone,
        Live::Present { verdict, .. } => Sighting::Present(*verdict),
        Live::Foreign(_) => Sighting::Foreign,
    };
    Known { record: &tracked.record, sighting }
}

pub(super) fn surveyed(
    state: &mut State,
    key: &AppKey,
    op: u64,
    result: Result<Vec<Found>, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get(key).filter(|app| is_current(app, op)) else { return };
    let Some(operation) = &app.operation else { return };
    let found = match result {
        Ok(found) => found.into_iter().map(|found| (found.key, found.object)).collect(),
        Err(problem) => {
            let message = format!("cannot look at the cluster: {}", problem.message);
            finish(state, key, Phase::Error, message, now, fx);
            return;
        }
    };
    let plan = make_plan(state, app, &operation.render, &operation.request, operation.revert, &found);
    let shared_fails = plan.refusals.iter().any(|refusal| refusal.reason == Reason::SharedResourceWarning);
    let verdicts = Verdicts {
        refusals: plan.refusals.clone(),
        token: plan.token.clone(),
        deferred: plan.deferred.clone(),
        shared: plan.shared.clone(),
    };
    // Nobody wants it any more, and it has no UID or its watch delivered before it was ours: one look tells.
    let doubtful = plan.deferred.iter().map(|(object, _)| object);
    let unknown = doubtful.filter(|object| {
        app.objects.get(object).is_some_and(|t| t.record.uid.is_none() || t.live == Live::Unseen)
    });
    fx.extend(unknown.map(|object| Effect::Probe(object.clone())));
    let mut writes = settle(state, key, &plan);
    let Some(app) = state.apps.get_mut(key) else { return };
    app.verdicts = verdicts;
    app.reconciled_at = Some(now.wall);
    let Some(operation) = app.operation.as_mut() else { return };
    let timeout =
        app.spec.as_ref().map_or(limits::SYNC_TIMEOUT_SECS, |spec| spec.settings.sync_timeout.as_secs());
    let waves: BTreeSet<i32> = plan.stages.iter().map(|stage| stage.wave).collect();
    operation.deadline = after(now, timeout.saturating_mul(waves.len().max(1) as u64));
    operation.plan = plan;
    let blocking = refused_applies(operation);
    if shared_fails || (operation.plan.is_empty() && !blocking.is_empty()) {
        let message =
            operation.plan.refusals.iter().map(|r| r.message.clone()).collect::<Vec<_>>().join("; ");
        if !writes.is_empty() {
            state.commit(writes, fx);
        }
        finish(state, key, Phase::Failed, message, now, fx);
        return;
    }
    if operation.plan.is_empty() {
        if !writes.is_empty() {
            state.commit(writes, fx);
        }
        finish_empty(state, key, now, fx);
        return;
    }
    writes.extend(reserve(state, key));
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = app.operation.as_ref() else { return };
    writes.push(Write::Operation(key.clone(), Some(journal(operation))));
    fx.push(Effect::Report(Report::OperationStarted {
        app: key.clone(),
        revision: operation.render.revision,
        by: operation.trigger.who().to_owned(),
        steps: operation.plan.len(),
    }));
    let record = app.record();
    if app.saved.as_ref() != Some(&record) {
        app.saved = Some(record.clone());
        writes.push(Write::App(key.clone(), Some(record)));
    }
    let journal = state.commit(writes, fx);
    if let Some(operation) = operation_mut(state, key) {
        operation.phase = OpPhase::Beginning { journal, parent: false };
    }
}

/// Objects that git wants and that another owner holds.
fn refused_applies(operation: &Operation) -> Vec<&plan::Refusal> {
    operation.plan.refusals.iter().filter(|refusal| refusal.reason == Reason::OwnedByAnother).collect()
}

fn journal(operation: &Operation) -> OperationRecord {
    OperationRecord {
        id: operation.id,
        trigger: operation.trigger.clone(),
        render: operation.render.id,
        revision: operation.render.revision,
        plan: operation.plan.digest(),
        prune: operation.request.prune,
        started: operation.started,
    }
}

/// What the plan settles without touching the cluster: hand-overs, entries that are gone, UIDs regained.
fn settle(state: &mut State, key: &AppKey, plan: &Plan) -> Vec<Write> {
    let mut writes = Vec::new();
    for (object, from) in &plan.take {
        writes.extend(world::hand_over(state, object, from, key));
    }
    for (object, to) in &plan.hand_over {
        writes.extend(world::hand_over(state, object, key, to));
    }
    for object in &plan.forget {
        writes.push(world::forget(state, key, object));
    }
    for (object, uid) in &plan.regained {
        let entry = state
            .apps
            .get(key)
            .and_then(|app| app.operation.as_ref())
            .and_then(|op| super::app::entry_of(&op.render, object).cloned());
        let known = state.apps.get(key).and_then(|app| app.objects.get(object)).cloned();
        let Some(mut tracked) = known.or_else(|| entry.as_ref().map(Tracked::reserved)) else { continue };
        tracked.record.uid = Some(uid.clone());
        if let Some(step) = plan.steps().find(|step| step.key == *object)
            && let Some(apply) = &step.apply
        {
            tracked.record.adopted = apply.adopted;
        }
        tracked.live = Live::Unseen;
        tracked.unsaved = false;
        writes.push(Write::Inventory(key.clone(), object.clone(), Some(tracked.record.clone())));
        world::track(state, key, object, tracked);
    }
    writes
}

/// Entries without UID for everything that the plan may create: the inventory is a superset of what exists.
fn reserve(state: &mut State, key: &AppKey) -> Vec<Write> {
    let Some(app) = state.apps.get(key) else { return Vec::new() };
    let Some(operation) = &app.operation else { return Vec::new() };
    let missing: Vec<(ObjectKey, Tracked)> = operation
        .plan
        .steps()
        .filter(|step| step.action != Action::Prune && !app.objects.contains_key(&step.key))
        .filter_map(|step| super::app::entry_of(&operation.render, &step.key))
        .map(|entry| (entry.key.clone(), Tracked::reserved(entry)))
        .collect();
    let mut writes = Vec::with_capacity(missing.len());
    for (object, mut tracked) in missing {
        tracked.unsaved = false;
        writes.push(Write::Inventory(key.clone(), object.clone(), Some(tracked.record.clone())));
        world::track(state, key, &object, tracked);
    }
    writes
}

/// The ApplySet parent as it must be before the plan begins: old and new members.
pub(super) fn parent(app: &App) -> Parent {
    let mut group_kinds: BTreeSet<GroupKind> = BTreeSet::new();
    let mut namespaces = BTreeSet::new();
    for key in app.objects.keys() {
        group_kinds.insert(key.group_kind());
        if !key.namespace.is_empty() {
            namespaces.insert(key.namespace.clone());
        }
    }
    Parent { app: app.key.clone(), group_kinds, namespaces, pin: app.holds.pin.clone() }
}

pub(super) fn begun(
    state: &mut State,
    key: &AppKey,
    op: u64,
    result: Result<(), Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get(key).filter(|app| is_current(app, op)) else { return };
    if !matches!(app.operation.as_ref().map(|operation| &operation.phase), Some(OpPhase::Beginning { .. })) {
        return;
    }
    match result {
        Ok(()) => apply_stage(state, key, 0, now, fx),
        Err(problem) => {
            finish(state, key, Phase::Error, format!("cannot begin: {}", problem.message), now, fx);
        }
    }
}

/// The journal is on disk: now the parent, then the plan begins. While the disk is full the operation waits here.
fn begin_when_journalled(state: &mut State, key: &AppKey, fx: &mut Vec<Effect>) {
    let saved = state.saved;
    let Some(app) = state.apps.get_mut(key) else { return };
    let parent = parent(app);
    let Some(operation) = app.operation.as_mut() else { return };
    if let OpPhase::Beginning { journal, parent: sent } = &mut operation.phase
        && !*sent
        && *journal <= saved
    {
        *sent = true;
        fx.push(Effect::Begin { app: key.clone(), op: operation.id, parent });
    }
}

/// Sends a stage's applies; an empty or missing stage goes on to the next.
fn apply_stage(state: &mut State, key: &AppKey, stage: usize, now: Now, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, key) else { return };
    if let Some(by) = operation.terminating.clone() {
        finish(state, key, Phase::Failed, format!("terminated by {by}"), now, fx);
        return;
    }
    let Some(current) = operation.plan.stages.get(stage) else {
        prune_stage(state, key, 0, now, fx);
        return;
    };
    let applies: Vec<_> = current.steps.iter().filter_map(|step| step.apply.clone()).collect();
    operation.phase =
        OpPhase::Applying { stage, pending: applies.iter().map(|apply| apply.key.clone()).collect() };
    let op = operation.id;
    fx.extend(applies.into_iter().map(|apply| Effect::Apply { app: key.clone(), op, apply }));
}

pub(super) fn step_applied(
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
    }
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = app.operation.as_mut().filter(|operation| operation.id == op) else { return };
    match &result {
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
    let stage = *stage;
    if operation.failed {
        fail_with_results(state, key, now, fx);
        return;
    }
    let waiting = to_wait_for(state, key, stage);
    if waiting.is_empty() {
        apply_stage(state, key, stage + 1, now, fx);
    } else if let Some(operation) = operation_mut(state, key) {
        operation.phase = OpPhase::Waiting { stage, waiting };
    }
}

fn verb(operation: &Operation, object: &ObjectKey, applied: &Applied) -> &'static str {
    if applied.adopted.is_some() {
        return "adopted";
    }
    if applied.created {
        return "created";
    }
    let action = operation.plan.steps().find(|step| step.key == *object).map(|step| step.action);
    match action {
        Some(Action::Revert) => "drift reverted",
        _ => "configured",
    }
}

/// What the stage has to wait for: Established definitions, or a healthy wave.
fn to_wait_for(state: &State, key: &AppKey, stage: usize) -> BTreeSet<ObjectKey> {
    let Some(app) = state.apps.get(key) else { return BTreeSet::new() };
    let Some(operation) = &app.operation else { return BTreeSet::new() };
    let Some(current) = operation.plan.stages.get(stage) else { return BTreeSet::new() };
    let mut keys: BTreeSet<ObjectKey> = BTreeSet::new();
    if current.wait_established {
        keys.extend(current.steps.iter().map(|step| step.key.clone()));
    }
    if current.wait_healthy {
        let waves = order::effective_waves(&operation.render.objects);
        let of_wave = operation.render.objects.iter().zip(waves).filter(|(_, wave)| *wave == current.wave);
        keys.extend(of_wave.filter(|(entry, _)| !entry.ignore_health).map(|(entry, _)| entry.key.clone()));
    }
    keys.into_iter().filter(|key| !is_done(app, key)).collect()
}

/// Healthy (for a CustomResourceDefinition: Established), or not ours to wait for.
fn is_done(app: &App, key: &ObjectKey) -> bool {
    match app.objects.get(key) {
        Some(tracked) => tracked
            .health()
            .is_some_and(|health| matches!(health.status, Status::Healthy | Status::Suspended)),
        None => true,
    }
}

/// The health or existence of an object changed: is somebody waiting for it?
pub(super) fn recheck(state: &mut State, key: &AppKey, object: &ObjectKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get_mut(key) else { return };
    let done = is_done(app, object);
    let degraded = app
        .objects
        .get(object)
        .and_then(Tracked::health)
        .filter(|health| health.status == Status::Degraded)
        .map(|health| health.message.clone());
    let Some(operation) = app.operation.as_mut() else { return };
    let OpPhase::Waiting { stage, waiting } = &mut operation.phase else { return };
    if !waiting.contains(object) {
        return;
    }
    if let Some(message) = degraded {
        let message = format!("{object} is Degraded: {message}");
        finish(state, key, Phase::Failed, message, now, fx);
        return;
    }
    if done {
        waiting.remove(object);
        if waiting.is_empty() {
            let next = *stage + 1;
            apply_stage(state, key, next, now, fx);
        }
    }
}

fn prune_stage(state: &mut State, key: &AppKey, stage: usize, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get(key) else { return };
    let propagation = app.spec.as_ref().map_or("Foreground", |spec| spec.sync_options.propagation().as_str());
    // The world may have moved while the applies ran: what another application wants now is not deleted.
    let wanted: BTreeSet<ObjectKey> = app
        .operation
        .iter()
        .filter_map(|op| op.plan.prunes.get(stage))
        .flat_map(|current| &current.steps)
        .filter(|step| !matches!(world::relation(state, key, &step.key), plan::Relation::None))
        .map(|step| step.key.clone())
        .collect();
    let Some(operation) = operation_mut(state, key) else { return };
    let Some(current) = operation.plan.prunes.get(stage) else {
        let message = summary(operation);
        let phase = if operation.failed { Phase::Failed } else { Phase::Succeeded };
        finish(state, key, phase, message, now, fx);
        return;
    };
    let steps: Vec<(ObjectKey, Arc<str>)> = current
        .steps
        .iter()
        .filter(|step| !wanted.contains(&step.key))
        .filter_map(|step| Some((step.key.clone(), step.uid.clone()?)))
        .collect();
    for object in &wanted {
        operation.result(object, ResultCode::PruneSkipped, "another application wants it");
    }
    if steps.is_empty() {
        prune_stage(state, key, stage + 1, now, fx);
        return;
    }
    operation.phase = OpPhase::Pruning { stage, pending: steps.iter().map(|(key, _)| key.clone()).collect() };
    let op = operation.id;
    fx.extend(steps.into_iter().map(|(object, uid)| Effect::Delete {
        app: key.clone(),
        op,
        key: object,
        uid,
        propagation,
    }));
}

pub(super) fn step_deleted(
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
    let OpPhase::Pruning { stage, pending } = &mut operation.phase else { return };
    pending.remove(object);
    if pending.is_empty() {
        let next = *stage + 1;
        // Stop at the first stage with a failure: parents are not deleted before their children.
        if operation.failed {
            fail_with_results(state, key, now, fx);
        } else {
            prune_stage(state, key, next, now, fx);
        }
    }
}

/// What a failed step says. A missing right is mended outside of git, so where to do that is said too.
fn failure(problem: &Problem) -> String {
    match problem.reason {
        Reason::Forbidden => format!("{}: {}", problem.message, problem.reason.hint()),
        _ => problem.message.clone(),
    }
}

fn fail_with_results(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(operation) = operation_mut(state, key) else { return };
    let failed: Vec<String> = operation
        .results
        .iter()
        .filter(|result| result.code == ResultCode::SyncFailed)
        .map(|result| format!("{}: {}", result.key, result.message))
        .collect();
    let shown = failed.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    let more = if failed.len() > 5 { format!("; and {} more", failed.len() - 5) } else { String::new() };
    let message = format!("{} of {} objects failed: {shown}{more}", failed.len(), operation.plan.len());
    finish(state, key, Phase::Failed, message, now, fx);
}

fn summary(operation: &Operation) -> String {
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

/// Ends what waits too long, naming what it waits for.
pub(super) fn drive(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    begin_when_journalled(state, key, fx);
    let Some(app) = state.apps.get(key) else { return };
    let Some(operation) = &app.operation else { return };
    if operation.terminating.is_some() && matches!(operation.phase, OpPhase::Waiting { .. }) {
        let by = operation.terminating.clone().unwrap_or_default();
        finish(state, key, Phase::Failed, format!("terminated by {by}"), now, fx);
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
        OpPhase::Applying { pending, .. } => format!("no answer in time for {}", list(pending.iter())),
        OpPhase::Pruning { pending, .. } => {
            format!("no answer in time to the deletion of {}", list(pending.iter()))
        }
        OpPhase::Waiting { waiting, .. } => {
            let each = waiting.iter().map(|key| {
                let health = app.objects.get(key).and_then(Tracked::health);
                health.map_or_else(
                    || key.to_string(),
                    |health| format!("{key} ({:?}: {})", health.status, health.message),
                )
            });
            format!("not healthy in time: {}", each.take(10).collect::<Vec<_>>().join("; "))
        }
    };
    finish(state, key, Phase::Failed, message, now, fx);
}

fn list<'a>(keys: impl Iterator<Item = &'a ObjectKey>) -> String {
    let names: Vec<String> = keys.map(ToString::to_string).collect();
    let shown = names.iter().take(10).cloned().collect::<Vec<_>>().join("; ");
    if names.len() > 10 { format!("{shown}; and {} more", names.len() - 10) } else { shown }
}

/// There was nothing to do. An automated pass with an empty plan is no operation and leaves no history; a
/// person's does.
fn finish_empty(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = &app.operation else { return };
    if operation.trigger != Trigger::Automated || operation.pin.is_some() {
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
fn finish(state: &mut State, key: &AppKey, phase: Phase, message: String, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get_mut(key) else { return };
    let Some(operation) = app.operation.take() else { return };
    app.dirty = true;
    let succeeded = phase == Phase::Succeeded;
    let render = operation.render.id;
    let begun = operation.phase != OpPhase::Surveying;
    // What was handed to us while the operation ran is not applied yet: then automated sync is not satisfied.
    let complete = operation.render.objects.iter().all(|entry| {
        app.objects.get(&entry.key).is_none_or(|tracked| tracked.record.manifest == Some(entry.manifest))
    });
    if succeeded && complete && operation.request.selection.is_empty() {
        app.auto.satisfied = Some(render);
        app.synced = Some(operation.render.revision);
    }
    if succeeded {
        app.auto.failed = None;
        app.auto.failures = 0;
        app.auto.next_try = None;
    } else {
        retry_later(app, render, now);
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

fn is_current(app: &App, op: u64) -> bool {
    app.operation.as_ref().is_some_and(|operation| operation.id == op)
}

fn operation_mut<'a>(state: &'a mut State, key: &AppKey) -> Option<&'a mut Operation> {
    state.apps.get_mut(key)?.operation.as_mut()
}
