//! The operation region: survey, plan, journal; its stages are in `run`, hooks in `hooks`, its end in `finish`.

mod finish;
mod hooks;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_model::{AppKey, GroupKind, Object, ObjectKey, Problem, Reason, limits, names};

use super::app::{App, Live, OpPhase, Operation, Tracked, Verdicts, after};
use super::effect::{Effect, Parent, Report};
use super::event::{Found, Now, SyncRequest};
use super::record::{HookMark, OperationRecord, Phase, Pin, RenderRecord, Trigger, Write};
use super::{State, world};
use crate::plan::{self, Action, Known, Options, Plan, Sighting};
use crate::{adopt, identity};

pub(super) use hooks::{seen as hook_seen, vanished as hook_vanished};
pub(super) use run::{drive, recheck, step_applied, step_checked, step_deleted};

/// Deletions are counted over this time.
const HOUR: std::time::Duration = std::time::Duration::from_hours(1);

/// Who asks when nobody does.
pub(super) const AUTOMATED: &str = "automated";

/// What starts an operation.
pub(super) struct Start {
    pub trigger: Trigger,
    pub request: SyncRequest,
    pub revert: bool,
    pub render: Arc<RenderRecord>,
    pub pin: Option<Pin>,
    /// It goes on with an operation that a kill interrupted.
    pub resumes: bool,
}

/// Starts an operation; the caller has checked that none runs. Returns its id.
pub(super) fn start(state: &mut State, key: &AppKey, start: Start, now: Now, fx: &mut Vec<Effect>) -> u64 {
    // An operation that a kill interrupted goes on under its id: its hooks carry it.
    let resumed = state.apps.get_mut(key).and_then(|app| app.resume.take());
    let resumed = resumed.filter(|record| record.render == start.render.id && start.resumes);
    let id = match &resumed {
        Some(record) => record.id,
        None => {
            state.last_operation += 1;
            state.last_operation
        }
    };
    let Some(app) = state.apps.get_mut(key) else { return id };
    app.dirty = false;
    // A person's word runs every hook again; a retry and a restart do not.
    let again = app.hooks_done.as_ref().is_some_and(|done| done.render == start.render.id);
    if !again || (start.trigger != Trigger::Automated && resumed.is_none()) {
        app.hooks_done = None;
    }
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
        failing: None,
        way: None,
        checked: BTreeSet::new(),
        resumed: resumed.is_some(),
        cascade: false,
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
    let no_hooks = BTreeSet::new();
    let done = app.hooks_done.as_ref().filter(|done| done.render == render.id).map(|done| &done.hooks);
    let options = Options {
        prune: request.prune,
        revert,
        selection: request.selection.iter().cloned().collect(),
        confirm: request.confirm.clone(),
        allow_empty: spec.and_then(|spec| spec.automated.as_ref()).is_some_and(|auto| auto.allow_empty),
        adopt: spec.is_some_and(|spec| spec.settings.adopt),
        // Planned again only for deletions that had to wait, a satisfied render runs no hooks.
        hooks: request.selection.is_empty()
            && (request.by != AUTOMATED || app.auto.satisfied != Some(render.id)),
        first_sync: app.synced.is_none() && app.objects.values().all(|tracked| tracked.record.uid.is_none()),
        prune_last: spec.is_some_and(|spec| spec.sync_options.prune_last == Some(true)),
        approved: app
            .raw
            .pointer("/metadata/annotations")
            .is_some_and(|map| !map[names::DELETION_APPROVED].is_null()),
        deletions_left: state.settings.prune.max_per_hour.saturating_sub(state.deletions.len()),
        limits: state.settings.prune,
    };
    let part_of = identity::applyset_id(&state.settings.agent_namespace, &app.key);
    plan::make(&plan::Input {
        app: &app.key,
        agent: adopt::Agent { id: &state.settings.agent_id, namespace: &state.settings.agent_namespace },
        part_of: &part_of,
        operation: app.operation.as_ref().map_or(0, |operation| operation.id),
        desired: &render.objects,
        hooks: &render.hooks,
        hooks_done: done.unwrap_or(&no_hooks),
        revision: render.revision.short(),
        known: &|key| app.objects.get(key).map(known),
        inventory: &|| app.objects.keys().cloned().collect(),
        found,
        relation: &|key| world::relation(state, &app.key, key),
        barrier: world::barrier(state, app),
        incomplete: &state.incomplete,
        options: &options,
    })
}

/// What the deletion of an application with its objects would do. It needs neither git nor a render nor a project.
pub fn cascade_plan(state: &State, app: &App, operation: u64) -> Plan {
    let part_of = identity::applyset_id(&state.settings.agent_namespace, &app.key);
    let none = BTreeSet::new();
    let found = BTreeMap::new();
    let options = Options::default();
    let render = app.render();
    plan::cascade(&plan::Input {
        app: &app.key,
        agent: adopt::Agent { id: &state.settings.agent_id, namespace: &state.settings.agent_namespace },
        part_of: &part_of,
        operation,
        desired: &[],
        hooks: render.map_or(&[][..], |render| &render.hooks),
        hooks_done: &none,
        revision: render.map(|render| render.revision.short()).unwrap_or_default(),
        known: &|key| app.objects.get(key).map(known),
        inventory: &|| app.objects.keys().cloned().collect(),
        found: &found,
        relation: &|key| world::relation(state, &app.key, key),
        barrier: None,
        incomplete: &state.incomplete,
        options: &options,
    })
}

/// Starts the deletion of an application with its objects, confirmed by the token of its plan.
pub(super) fn start_cascade(
    state: &mut State,
    key: &AppKey,
    by: String,
    token: String,
    now: Now,
    fx: &mut Vec<Effect>,
) -> u64 {
    let Some(app) = state.apps.get_mut(key) else { return 0 };
    let resumed = app.resume.take().filter(|record| record.cascade);
    let id = resumed.as_ref().map_or(state.last_operation + 1, |record| record.id);
    state.last_operation = state.last_operation.max(id);
    // From its last render, for its hooks; of one that was never rendered nothing runs.
    let render = app.render().cloned().unwrap_or_else(|| {
        Arc::new(RenderRecord {
            id: pintle_model::Digest::of(b"cascade"),
            revision: app.synced.unwrap_or_else(|| pintle_model::Revision::from_bytes([0; 20])),
            objects: Vec::new(),
            hooks: Vec::new(),
            commit: None,
            warnings: Vec::new(),
            children: Vec::new(),
        })
    });
    app.leaving = Some(super::app::Leaving { by: by.clone(), token: token.clone() });
    app.operation = Some(Operation {
        id,
        trigger: Trigger::Requested(by.clone()),
        request: SyncRequest { by, prune: true, confirm: Some(token), ..SyncRequest::default() },
        revert: false,
        render,
        started: now.wall,
        deadline: after(now, limits::SYNC_TIMEOUT_SECS),
        plan: Plan::default(),
        phase: OpPhase::Surveying,
        results: Vec::new(),
        failed: false,
        failing: None,
        way: None,
        checked: BTreeSet::new(),
        resumed: resumed.is_some(),
        cascade: true,
        pin: None,
        terminating: None,
    });
    surveyed(state, key, id, Ok(Vec::new()), now, fx);
    id
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
    if !state.apps.get(key).is_some_and(|app| is_current(app, op)) {
        return;
    }
    let found = match result {
        Ok(found) => found.into_iter().map(|found| (found.key, found.object)).collect(),
        Err(problem) => {
            let message = format!("cannot look at the cluster: {}", problem.message);
            finish::finish(state, key, Phase::Error, message, now, fx);
            return;
        }
    };
    while state.deletions.front().is_some_and(|at| *at + HOUR <= now.mono) {
        state.deletions.pop_front();
    }
    let Some(app) = state.apps.get(key) else { return };
    let Some(operation) = &app.operation else { return };
    let plan = if operation.cascade {
        cascade_plan(state, app, operation.id)
    } else {
        make_plan(state, app, &operation.render, &operation.request, operation.revert, &found)
    };
    let shared_fails = plan.refusals.iter().any(|refusal| refusal.reason == Reason::SharedResourceWarning);
    let verdicts = Verdicts {
        refusals: plan.refusals.clone(),
        token: plan.token.clone(),
        deferred: plan.deferred.clone(),
        shared: plan.shared.clone(),
        left_alone: plan.left_alone.iter().cloned().collect(),
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
    operation.plan = plan;
    let blocking = refused_applies(operation);
    if shared_fails || (operation.plan.is_empty() && !blocking.is_empty()) {
        let message =
            operation.plan.refusals.iter().map(|r| r.message.clone()).collect::<Vec<_>>().join("; ");
        if !writes.is_empty() {
            state.commit(writes, fx);
        }
        finish::finish(state, key, Phase::Failed, message, now, fx);
        return;
    }
    if operation.plan.is_empty() {
        if !writes.is_empty() {
            state.commit(writes, fx);
        }
        finish::finish_empty(state, key, now, fx);
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
        selection: operation.request.selection.clone(),
        confirm: operation.request.confirm.clone(),
        cascade: operation.cascade,
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

/// Entries without UID for everything that the plan may create, hooks included: the inventory is a superset of what
/// exists.
fn reserve(state: &mut State, key: &AppKey) -> Vec<Write> {
    let Some(app) = state.apps.get(key) else { return Vec::new() };
    let Some(operation) = &app.operation else { return Vec::new() };
    let mut missing: Vec<(ObjectKey, Tracked)> = Vec::new();
    let all = operation.plan.stages.iter().chain(&operation.plan.on_fail).flat_map(|stage| &stage.steps);
    for step in all.filter(|step| step.action != Action::Prune) {
        let known = app.objects.get(&step.key);
        if let Some(hook) = &step.hook {
            if hook.awaited {
                continue;
            }
            let Some(entry) = operation.render.hooks.iter().find(|entry| entry.entry.key == hook.wanted)
            else {
                continue;
            };
            let mut tracked = known.cloned().unwrap_or_else(|| Tracked::reserved(&entry.entry));
            let mark = HookMark {
                // Of the object that is there: 0 until the new one is.
                operation: tracked.record.hook.as_ref().map_or(0, |mark| mark.operation),
                phase: hook.phase,
                wanted: hook.wanted.clone(),
                manifest: hook.manifest,
                removal: hook.removal.clone(),
                outcome: tracked.record.hook.as_ref().and_then(|mark| mark.outcome.clone()),
            };
            tracked.record.hook = Some(mark);
            missing.push((step.key.clone(), tracked));
        } else if known.is_none()
            && let Some(entry) = super::app::entry_of(&operation.render, &step.key)
        {
            missing.push((step.key.clone(), Tracked::reserved(entry)));
        }
    }
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
    Parent {
        app: app.key.clone(),
        group_kinds,
        namespaces,
        pin: app.holds.pin.clone(),
        pause: app.holds.pause.clone(),
        keep: app.spec.as_ref().is_some_and(|spec| !spec.sync_options.may_prune()),
        orphaned: false,
    }
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
        Ok(()) => run::stage(state, key, 0, now, fx),
        Err(problem) => {
            finish::finish(state, key, Phase::Error, format!("cannot begin: {}", problem.message), now, fx);
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

fn is_current(app: &App, op: u64) -> bool {
    app.operation.as_ref().is_some_and(|operation| operation.id == op)
}

fn operation_mut<'a>(state: &'a mut State, key: &AppKey) -> Option<&'a mut Operation> {
    state.apps.get_mut(key)?.operation.as_mut()
}
