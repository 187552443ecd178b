//! Start from the store, and rebuild from the cluster when the store is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_model::{AppKey, Digest, Object, ObjectKey, Problem};

use super::app::{App, Heal, Live, Tracked};
use super::effect::Report;
use super::event::{Now, Rebuilt};
use super::record::{HookMark, Place, Records, Write};
use crate::hook;

use super::{Effect, Rebuild, RefPhase, Settings, State, source, world};

/// The state as the store knows it.
///
/// Operations that were under way are not resumed step by step: their plan is made anew from what is seen now.
/// Every object that may have been created is in the inventory, so nothing is forgotten or done twice.
pub fn restore(settings: Settings, records: Records) -> State {
    let mut state = State::new(settings);
    state.rebuild = if records.fresh { Rebuild::Needed } else { Rebuild::NotNeeded };
    state.last_operation = records.last_operation;
    let sets: BTreeMap<_, _> =
        records.sets.into_iter().map(|(digest, set)| (digest, Arc::new(set))).collect();
    state.saved_sets = sets.keys().copied().collect();
    let renders: BTreeMap<_, _> =
        records.renders.into_iter().map(|(id, render)| (id, Arc::new(render))).collect();
    let mut last = records.last;
    for (key, record) in records.apps {
        let mut app = App::new(key.clone(), record.spec.clone(), record.place.clone());
        app.spec = records.specs.get(&key).cloned();
        app.holds.detached = record.detached;
        app.holds.pin = record.pin.clone();
        app.holds.pause.clone_from(&record.pause);
        app.desired.git = record.render.and_then(|id| renders.get(&id).cloned());
        app.desired.git_spec = record.render_spec.filter(|_| app.desired.git.is_some());
        app.desired.pin = record.pin.as_ref().and_then(|pin| renders.get(&pin.render).cloned());
        app.auto.satisfied = record.satisfied;
        app.synced = record.synced;
        app.last_history = record.last_history;
        app.last = last.remove(&key);
        app.hooks_done.clone_from(&record.hooks_done);
        if let Some(operation) = records.operations.get(&key) {
            app.auto.satisfied = None;
            app.resume = Some(operation.clone());
            app.note("the agent ended during an operation; it goes on with a plan made anew".to_owned());
        }
        app.saved = Some(record);
        state.apps.insert(key, app);
    }
    for (key, inventory) in records.inventory {
        for (object, record) in inventory {
            let set = record.set.and_then(|digest| sets.get(&digest).cloned());
            let tracked = Tracked { record, set, live: Live::Unseen, heal: Heal::default(), unsaved: false };
            // In two inventories: whoever wants it has it. The other's entry goes with the next commit.
            if let Some(other) = state.owners.get(&object).cloned() {
                let wanted = state.apps.get(&key).is_some_and(|app| app.claims(&object));
                let loser = if wanted { &other } else { &key };
                state.unsaved.push(Write::Inventory(loser.clone(), object.clone(), None));
                state.queued += 1;
                // Written with the first tick.
                state.save_at = Some(std::time::Duration::ZERO);
                if !wanted {
                    continue;
                }
                world::forget(&mut state, &other, &object);
            }
            world::track(&mut state, &key, &object, tracked);
        }
    }
    state.sets = sets;
    for (key, record) in records.refs {
        let reference = super::RefKey { url: key.0, target: key.1 };
        let mut known = source::new_ref();
        known.resolved = Some(record.revision);
        known.last_ok = Some(record.at);
        known.phase = RefPhase::Idle { next: std::time::Duration::ZERO };
        state.refs.insert(reference, known);
    }
    state
}

/// The mark of a hook's object found in the cluster, for an inventory that is rebuilt: how it ended is told by the
/// next look.
pub fn hook_mark(object: &Object, key: &ObjectKey) -> Option<HookMark> {
    let operation = hook::operation_of(object)?;
    let (phase, removal) = match hook::role(object) {
        Ok(hook::Role::Hook(found)) => (found.phases.first().map(|(phase, _)| *phase), found.removal),
        _ => (None, Vec::new()),
    };
    Some(HookMark {
        operation,
        phase: phase.unwrap_or(hook::Phase::Sync),
        wanted: key.clone(),
        manifest: Digest::of(b""),
        removal,
        outcome: None,
    })
}

/// United with what the store knows; an entry that the store has is never replaced.
pub(super) fn rebuilt(
    state: &mut State,
    result: Result<BTreeMap<AppKey, Rebuilt>, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let found = match result {
        Ok(found) => found,
        Err(problem) => {
            state.rebuild = Rebuild::Needed;
            world::cluster_lost(state, problem, now, fx);
            return;
        }
    };
    state.rebuild = Rebuild::NotNeeded;
    state.lost_tries = 0;
    state.last_lost = None;
    let mut writes = vec![Write::Rebuilt];
    let mut count = 0;
    let mut placeholders = Vec::new();
    for (key, rebuilt) in found {
        if !state.apps.contains_key(&key) {
            // A child whose parent has not been rendered yet, or an application whose file is gone: it is listed as
            // detached, its objects and its pin stay, until its definition comes back or a person lets it go.
            let mut app = App::new(key.clone(), serde_json::Value::Null, Place::Cluster);
            app.holds.detached = true;
            state.apps.insert(key.clone(), app);
            placeholders.push(key.clone());
        }
        let Some(app) = state.apps.get_mut(&key) else { continue };
        if app.holds.pin.is_none()
            && let Some(pin) = rebuilt.pin
        {
            app.note(format!("pin to history entry {} found in the cluster", pin.history));
            app.holds.pin = Some(pin);
        }
        if app.holds.pause.is_none()
            && let Some(pause) = rebuilt.pause
        {
            app.note("a pause was found in the cluster".to_owned());
            app.holds.pause = Some(pause);
        }
        for (object, (record, set)) in rebuilt.inventory {
            let known = state.apps.get(&key).is_some_and(|app| app.objects.contains_key(&object));
            if known || state.owners.contains_key(&object) {
                continue;
            }
            count += 1;
            if let (Some(digest), Some(set)) = (record.set, &set) {
                writes.push(Write::Set(digest, set.clone()));
                state.sets.insert(digest, set.clone());
            }
            writes.push(Write::Inventory(key.clone(), object.clone(), Some(record.clone())));
            let tracked = Tracked { record, set, live: Live::Unseen, heal: Heal::default(), unsaved: false };
            world::track(state, &key, &object, tracked);
        }
    }
    for app in state.apps.values_mut() {
        app.dirty = true;
    }
    for key in &placeholders {
        if let Some(app) = state.apps.get_mut(key) {
            let record = app.record();
            app.saved = Some(record.clone());
            writes.push(Write::App(key.clone(), Some(record)));
        }
        let text = format!(
            "application {key} was found in the cluster and not in the files: it is detached until its definition comes \
             back"
        );
        fx.push(Effect::Report(Report::Note { app: Some(key.clone()), text, warning: true }));
    }
    state.commit(writes, fx);
    if count > 0 {
        let text = format!("the inventory was rebuilt from the cluster: {count} objects are ours");
        fx.push(Effect::Report(Report::Note { app: None, text, warning: false }));
    }
}
