//! The heal region: what watches deliver, how it compares, and putting objects back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pintle_model::{AppKey, GroupKind, Object, ObjectKey, Problem, Reason, limits, names};

use super::app::{Live, OpPhase, Tracked, version_of};
use super::effect::{Apply, Expect, Report};
use super::event::{Applied, Now};
use super::record::{Adopted, Write};
use super::{Cluster, Effect, Mode, Rebuild, State, operation, world};
use crate::fields::{self, OwnedSet, Verdict};
use crate::{adopt, diff, health, identity, schedule};

/// Without drift for this long, the backoff of reverts starts anew.
const CALM: Duration = Duration::from_mins(10);

/// A watch delivered an object.
pub(super) fn seen(state: &mut State, object: Object, now: Now, fx: &mut Vec<Effect>) {
    let key = object.key();
    sight(state, &key, Arc::new(object), now, fx);
}

/// An object left its watch: gone, or without our label. Only a look decides.
pub(super) fn left(
    state: &mut State,
    key: &ObjectKey,
    last: Option<&Object>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(owner) = state.owners.get(key).cloned() else { return };
    // A Job with a short TTL may be gone before anybody looks: its last state counts as seen.
    if let Some(last) = last {
        operation::hook_seen(state, &owner, key, last, now, fx);
    }
    if state.owners.contains_key(key) {
        fx.push(Effect::Probe(key.clone()));
    }
}

/// A watch listed everything: what we have and it has not is looked at one by one.
pub(super) fn watch_synced(
    state: &mut State,
    kind: &GroupKind,
    present: &BTreeSet<ObjectKey>,
    fx: &mut Vec<Effect>,
) {
    let watch = state.watches.entry(kind.clone()).or_default();
    watch.synced = true;
    watch.problem = None;
    for app in state.apps.values_mut() {
        app.dirty = true;
        for (key, tracked) in &app.objects {
            let ours = *key.kind == *kind.kind && *key.group == *kind.group;
            // What the running operation is about to make is told by its apply.
            let coming = tracked.record.uid.is_none()
                && app.operation.as_ref().is_some_and(|operation| operation.plan.step(key).is_some());
            if ours && !present.contains(key) && tracked.live != Live::Gone && !coming {
                fx.push(Effect::Probe(key.clone()));
            }
        }
    }
}

/// A look at a key was answered.
pub(super) fn probed(
    state: &mut State,
    key: &ObjectKey,
    result: Result<Option<Arc<Object>>, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(owner) = state.owners.get(key).cloned() else { return };
    let Some(tracked) = state.apps.get_mut(&owner).and_then(|app| app.objects.get_mut(key)) else { return };
    tracked.heal.in_flight = None;
    match result {
        Ok(Some(object)) => sight(state, key, object, now, fx),
        Ok(None) => gone(state, &owner, key, now, fx),
        Err(_) => {
            tracked.heal.not_before = Some(now.mono + Duration::from_secs(limits::HEAL_BACKOFF_FIRST_SECS));
            state.drifted.insert(key.clone());
        }
    }
}

/// An object is certainly not there: 404.
fn gone(state: &mut State, owner: &AppKey, key: &ObjectKey, now: Now, fx: &mut Vec<Effect>) {
    if operation::hook_vanished(state, owner, key, now, fx) {
        return;
    }
    let Some(app) = state.apps.get_mut(owner) else { return };
    let claimed = app.needs_entry(key);
    app.dirty = true;
    let Some(tracked) = app.objects.get_mut(key) else { return };
    if !claimed {
        let write = world::forget(state, owner, key);
        state.commit(vec![write], fx);
        operation::recheck(state, owner, key, now, fx);
        return;
    }
    // Still wanted: the entry stays, without UID, and is not written now (a revert has no fsync).
    tracked.live = Live::Gone;
    tracked.record.uid = None;
    tracked.record.deleting = false;
    tracked.unsaved = true;
    tracked.heal.seen_at = Some(now.mono);
    state.drifted.insert(key.clone());
    operation::recheck(state, owner, key, now, fx);
    heal(state, owner, key, None, now, fx);
}

/// Compares an object that is there with what we applied.
fn sight(state: &mut State, key: &ObjectKey, object: Arc<Object>, now: Now, fx: &mut Vec<Effect>) {
    let Some(owner) = state.owners.get(key).cloned() else { return };
    let part_of = identity::applyset_id(&state.settings.agent_namespace, &owner);
    let Some(tracked) = state.apps.get_mut(&owner).and_then(|app| app.objects.get_mut(key)) else { return };
    if is_old(tracked, &object) {
        return;
    }
    if tracked.record.uid.as_deref() != Some(object.uid()) {
        if !adopt::is_ours(&object, &part_of, &key.tracking_id(&owner.to_string())) {
            foreign(state, &owner, key, &object, now, fx);
            return;
        }
        tracked.record.uid = Some(object.uid().into());
        // What the record said of adoption was said of the object before this one.
        tracked.record.adopted = adopt::adopted_mark(&object);
        tracked.unsaved = true;
    }
    let before = (discriminant(&tracked.live), tracked.health().cloned());
    let verdict = compare(tracked, &object);
    tracked.live = Live::Present { verdict, health: health::health(&object), version: version_of(&object) };
    let after = (discriminant(&tracked.live), tracked.health().cloned());
    if verdict == Verdict::Same {
        tracked.heal.told = false;
        tracked.heal.seen_at = None;
        state.drifted.remove(key);
    } else {
        tracked.heal.seen_at.get_or_insert(now.mono);
        state.drifted.insert(key.clone());
    }
    if before.0 != after.0
        && let Some(app) = state.apps.get_mut(&owner)
    {
        app.dirty = true;
    }
    if before != after {
        operation::recheck(state, &owner, key, now, fx);
    }
    if operation::hook_seen(state, &owner, key, &object, now, fx) {
        state.drifted.remove(key);
        return;
    }
    if verdict != Verdict::Same {
        heal(state, &owner, key, Some(object), now, fx);
    }
}

/// The watch may deliver what was true before our own last write.
fn is_old(tracked: &Tracked, object: &Object) -> bool {
    let version = version_of(object);
    matches!(tracked.live, Live::Present { version: known, .. } if version != 0 && version < known)
        && tracked.record.uid.as_deref() == Some(object.uid())
}

fn discriminant(live: &Live) -> u8 {
    match live {
        Live::Unseen => 0,
        Live::Gone => 1,
        Live::Foreign(_) => 2,
        Live::Present { verdict: Verdict::Same, .. } => 3,
        Live::Present { verdict: Verdict::Reown, .. } => 4,
        Live::Present { verdict: Verdict::Drifted, .. } => 5,
    }
}

/// Without a set there is nothing to compare with yet (the record was lost): the next sync applies it anew.
fn compare(tracked: &Tracked, object: &Object) -> Verdict {
    match (&tracked.set, tracked.record.projection) {
        // A set speaks of the version of its entry; the watch is switched when the manifest's version changes.
        (Some(set), Some(projection)) if set.api_version == object.api_version() => {
            fields::verdict(object, set, projection, names::FIELD_MANAGER)
        }
        _ => Verdict::Same,
    }
}

/// Another object has the name: it is left alone, unless nobody owns it and git wants it here.
fn foreign(
    state: &mut State,
    owner: &AppKey,
    key: &ObjectKey,
    object: &Object,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(owner) else { return };
    let claimed = app.needs_entry(key);
    app.dirty = true;
    let Some(tracked) = app.objects.get_mut(key) else { return };
    if !claimed {
        // Ours is gone, and what is there is not ours.
        let write = world::forget(state, owner, key);
        state.commit(vec![write], fx);
        return;
    }
    tracked.live = Live::Foreign(object.uid().into());
    tracked.record.uid = None;
    tracked.unsaved = true;
    state.drifted.insert(key.clone());
    heal(state, owner, key, None, now, fx);
}

/// Tries again what waits for its backoff.
pub(super) fn drive(state: &mut State, now: Now, fx: &mut Vec<Effect>) {
    let due: Vec<(AppKey, ObjectKey)> = state
        .drifted
        .iter()
        .filter_map(|key| {
            let owner = state.owners.get(key)?;
            let tracked = state.apps.get(owner)?.objects.get(key)?;
            let waits =
                tracked.heal.in_flight.is_some() || tracked.heal.not_before.is_some_and(|at| at > now.mono);
            (!waits).then(|| (owner.clone(), key.clone()))
        })
        .collect();
    for (owner, key) in due {
        heal(state, &owner, &key, None, now, fx);
    }
}

/// Puts an object back if it may be put back now; otherwise it stays in `drifted` and is tried again.
///
/// `object` is the object as it was just seen; without it a look comes first, so that a revert never acts on old
/// knowledge.
fn heal(
    state: &mut State,
    owner: &AppKey,
    key: &ObjectKey,
    object: Option<Arc<Object>>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let allowed = may_heal(state, owner, key);
    let observing = state.settings.mode == Mode::Observe;
    let Some(app) = state.apps.get_mut(owner) else { return };
    let heals = app.heals();
    let entry = app.entry(key).cloned();
    let Some(tracked) = app.objects.get_mut(key) else { return };
    // What only has to be there is made anew when it is gone, and otherwise nobody's to put back.
    let may = |entry: &super::record::DesiredEntry| {
        let applied = tracked.record.manifest == Some(entry.manifest);
        let leave = entry.ignore || entry.only_create && tracked.live != Live::Gone;
        !leave && (applied || entry.only_create)
    };
    let Some(entry) = entry.filter(|entry| allowed && may(entry)) else {
        if !heals && !observing && !tracked.heal.told && object.is_some() {
            tracked.heal.told = true;
            fx.push(Effect::Report(Report::DriftSeen { app: owner.clone(), key: key.clone(), object }));
        }
        return;
    };
    if tracked.heal.in_flight.is_some() || tracked.heal.not_before.is_some_and(|at| at > now.mono) {
        return;
    }
    let expect = match (&tracked.live, &object, tracked.record.uid.clone()) {
        (Live::Present { .. }, Some(_), Some(uid)) => Expect::Uid(uid),
        (Live::Gone, _, _) => Expect::Absent,
        (Live::Foreign(_), _, _) => Expect::Look,
        _ => {
            tracked.heal.in_flight = Some(now.mono);
            fx.push(Effect::Probe(key.clone()));
            return;
        }
    };
    if tracked.heal.not_before.is_none_or(|at| now.mono.saturating_sub(at) > CALM) {
        tracked.heal.attempts = 0;
    }
    let wait = schedule::backoff(
        Duration::from_secs(limits::HEAL_BACKOFF_FIRST_SECS),
        limits::HEAL_BACKOFF_FACTOR,
        Duration::from_secs(limits::HEAL_BACKOFF_MAX_SECS),
        tracked.heal.attempts,
    );
    tracked.heal.attempts = tracked.heal.attempts.saturating_add(1);
    tracked.heal.not_before = Some(now.mono + wait);
    tracked.heal.in_flight = Some(now.mono);
    // What is made anew is ours from the first byte, also where we had adopted the one before it.
    let adopted = if expect == Expect::Absent { Adopted::No } else { tracked.record.adopted };
    fx.push(Effect::Revert {
        app: owner.clone(),
        apply: Apply {
            key: key.clone(),
            manifest: entry.manifest,
            expect,
            adopted,
            take_over: entry.adopt,
            lenient: entry.lenient,
            ignored: entry.ignored.clone(),
            way: entry.way,
            migrate: !entry.no_migration,
            hook: None,
        },
        before: object,
    });
}

/// When an object that waits for its backoff is put back; `None` while something else has to happen first.
pub(super) fn heal_due(state: &State, key: &ObjectKey) -> Option<Duration> {
    let owner = state.owners.get(key)?;
    let app = state.apps.get(owner)?;
    let tracked = app.objects.get(key)?;
    let entry = app.entry(key)?;
    let due = tracked.heal.in_flight.is_none()
        && (tracked.record.manifest == Some(entry.manifest)
            || entry.only_create && tracked.live == Live::Gone)
        && !entry.ignore
        && may_heal(state, owner, key);
    if due { tracked.heal.not_before } else { None }
}

fn may_heal(state: &State, owner: &AppKey, key: &ObjectKey) -> bool {
    let Some(app) = state.apps.get(owner) else { return false };
    let is_gone = app.objects.get(key).is_some_and(|tracked| tracked.live == Live::Gone);
    let in_operation = app.operation.as_ref().is_some_and(|op| match &op.phase {
        // The plan is being made or journalled and may create it: two creates must not meet.
        OpPhase::Surveying | OpPhase::Beginning { .. } => is_gone,
        OpPhase::Checking { stage, .. } => is_ahead(op, *stage, key),
        OpPhase::Applying { stage, pending } => pending.contains(key) || is_ahead(op, stage + 1, key),
        OpPhase::Pruning { pending, .. } => pending.contains(key),
        OpPhase::Waiting { .. } => false,
    });
    app.heals()
        && !in_operation
        && !state.stopping
        && state.settings.mode != Mode::Observe
        && state.cluster == Cluster::Ready
        && state.rebuild == Rebuild::NotNeeded
}

/// Will a stage of the operation from this one on apply the object?
fn is_ahead(op: &super::app::Operation, stage: usize, key: &ObjectKey) -> bool {
    op.stages().iter().skip(stage).flat_map(|stage| &stage.steps).any(|step| step.key == *key)
}

/// A revert was answered.
pub(super) fn reverted(
    state: &mut State,
    owner: &AppKey,
    key: &ObjectKey,
    before: Option<Arc<Object>>,
    result: Result<Applied, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(owner) else { return };
    app.dirty = true;
    let Some(tracked) = app.objects.get_mut(key) else { return };
    tracked.heal.in_flight = None;
    let seen_at = tracked.heal.seen_at.take();
    let applied = match result {
        Ok(applied) => applied,
        Err(problem) => {
            if problem.reason == Reason::Conflict {
                // Another object has the name, or it moved under us: look before the next try.
                tracked.live = Live::Unseen;
            }
            state.drifted.insert(key.clone());
            fx.push(Effect::Report(Report::RevertFailed { app: owner.clone(), key: key.clone(), problem }));
            return;
        }
    };
    let old_set = tracked.set.clone();
    let recreated = applied.created;
    note_applied(state, owner, key, &applied);
    state.drifted.remove(key);
    let Some(app) = state.apps.get_mut(owner) else { return };
    let new_set = app.objects.get(key).and_then(|tracked| tracked.set.clone());
    let sets: Vec<&OwnedSet> = [&old_set, &new_set].into_iter().flatten().map(|set| &**set).collect();
    let mut differences =
        before.map_or_else(Vec::new, |before| diff::differences(&before, &applied.answer, &sets));
    for manager in differences.iter_mut().filter_map(|difference| difference.manager.as_mut()) {
        // Some entries carry no time (the scale subresource's): it was done before we saw it.
        manager.time.get_or_insert(now.wall);
    }
    if !recreated && differences.is_empty() {
        fx.push(Effect::Report(Report::Reowned { app: owner.clone(), key: key.clone() }));
        return;
    }
    let what = if recreated { "it was gone".to_owned() } else { describe(&applied.answer, &differences) };
    app.note(format!("{} drift of {key} reverted: {what}", now.wall));
    fx.push(Effect::Report(Report::DriftReverted {
        app: owner.clone(),
        object: applied.answer,
        key: key.clone(),
        differences,
        recreated,
        took_ms: seen_at
            .map_or(0, |at| u64::try_from(now.mono.saturating_sub(at).as_millis()).unwrap_or(u64::MAX)),
    }));
}

/// Differences in one line for notes; of Secrets only the paths.
fn describe(object: &Object, differences: &[diff::Difference]) -> String {
    let lines: Vec<String> = differences
        .iter()
        .map(
            |difference| {
                if object.is_secret() { difference.path.to_string() } else { diff::describe(difference) }
            },
        )
        .collect();
    lines.join("; ")
}

/// Takes over what the server answered to our apply: UID, owned set, projection. Nothing that may have been
/// created is ever forgotten, whoever asked for it.
pub(super) fn note_applied(state: &mut State, owner: &AppKey, key: &ObjectKey, applied: &Applied) {
    let set = OwnedSet::from_answer(&applied.answer, names::FIELD_MANAGER)
        .map(|set| set.without(&applied.ignored, &applied.answer))
        .map(|set| intern(state, set));
    let Some(app) = state.apps.get_mut(owner) else { return };
    let entry = app.entry(key).cloned();
    let Some(tracked) = app.objects.get_mut(key) else { return };
    let old = tracked.record.clone();
    let record = &mut tracked.record;
    record.uid = Some(applied.answer.uid().into());
    record.manifest = Some(applied.manifest);
    record.set = set.as_ref().map(|(digest, _)| *digest);
    record.projection = set.as_ref().map(|(_, set)| fields::projection_digest(&applied.answer, set));
    record.deleting = false;
    // Whether it was there before us is known only to whoever looked and applied: a watch may have told us its UID
    // before this answer, which proves nothing.
    if let Some(adopted) = applied.adopted {
        record.adopted = adopted;
    } else if applied.created {
        record.adopted = Adopted::No;
    }
    if let Some(entry) = entry {
        record.options = entry.options;
        record.wave = entry.wave;
    }
    tracked.unsaved |= *record != old;
    tracked.set = set.map(|(_, set)| set);
    tracked.live = Live::Present {
        verdict: Verdict::Same,
        health: health::health(&applied.answer),
        version: version_of(&applied.answer),
    };
    tracked.heal.told = false;
    state.drifted.remove(key);
}

fn intern(state: &mut State, set: OwnedSet) -> (pintle_model::Digest, Arc<OwnedSet>) {
    let digest = set.digest();
    (digest, state.sets.entry(digest).or_insert_with(|| Arc::new(set)).clone())
}

/// Inventory entries that differ from disk, and the sets they name, for the next commit.
pub(super) fn unsaved_writes(state: &mut State, owner: &AppKey) -> Vec<Write> {
    let mut writes = Vec::new();
    let Some(app) = state.apps.get_mut(owner) else { return writes };
    let mut sets = BTreeSet::new();
    for (key, tracked) in &mut app.objects {
        if !tracked.unsaved {
            continue;
        }
        tracked.unsaved = false;
        if let (Some(digest), Some(set)) = (tracked.record.set, &tracked.set)
            && !state.saved_sets.contains(&digest)
            && sets.insert(digest)
        {
            writes.push(Write::Set(digest, set.clone()));
        }
        writes.push(Write::Inventory(owner.clone(), key.clone(), Some(tracked.record.clone())));
    }
    writes
}
