//! The promises, judged after every event and at the end.

use std::sync::Arc;
use std::time::Duration;

use pintle_core::engine::Cluster;
use pintle_core::engine::app::Live;
use pintle_core::engine::view::{self, SyncStatus};
use pintle_core::fields::Verdict;
use pintle_core::identity;
use pintle_model::{AppKey, ObjectKey, names};

use crate::world::{World, revision};

pub fn fail(world: &World, what: &str) -> ! {
    let story: Vec<&str> = world.trace.iter().map(String::as_str).collect();
    panic!("{what}\n--- the story, oldest first ---\n{}", story.join("\n"));
}

/// Before a deletion reaches the server: is it proved ours, and does nobody want it?
pub fn before_delete(world: &World, app: &AppKey, key: &ObjectKey, uid: &Arc<str>) {
    if !world.api_up {
        return;
    }
    let Some(object) = world.cluster.objects.get(key) else { return };
    if object.uid() != &**uid {
        return;
    }
    // Adopted or not: nobody confirms anything here.
    if world.cluster.foreign.contains(object.uid()) {
        fail(world, &format!("{key} of a person would be deleted"));
    }
    let recorded = world.disk.inventory.get(app).is_some_and(|inventory| inventory.contains_key(key));
    if !recorded {
        fail(world, &format!("{key} would be deleted and is not in the inventory of {app} on disk"));
    }
    let wanted_by_another = world.state.apps.values().any(|other| {
        other.key != *app
            && other
                .desired
                .git
                .as_ref()
                .is_some_and(|render| pintle_core::engine::app::entry_of(render, key).is_some())
    });
    if wanted_by_another {
        // The delete may have been sent before the other application's render arrived; the barrier forbids that
        // it was planned after. With both at the same commit it must not happen.
        let same_commit = world
            .state
            .apps
            .values()
            .filter_map(|other| other.desired.git.as_ref().map(|render| render.revision))
            .collect::<std::collections::BTreeSet<_>>()
            .len()
            == 1;
        let pinned = world.state.apps.values().any(|other| other.holds.pin.is_some());
        if same_commit && !pinned {
            fail(world, &format!("{key} would be deleted by {app} while another application wants it"));
        }
    }
}

/// Before a hook's object is made: one that completed in this operation is not made again.
pub fn before_hook(world: &World, key: &ObjectKey, operation: u64) {
    if world.completed.contains(&(operation, key.clone())) {
        fail(world, &format!("the hook {key} completed in operation {operation} and is made once more"));
    }
}

/// Before a hook's object is deleted: it is one of ours.
pub fn before_hook_goes(world: &World, key: &ObjectKey, uid: &str) {
    let Some(object) = world.cluster.objects.get(key).filter(|object| object.uid() == uid) else { return };
    if pintle_core::hook::operation_of(object).is_none() || world.cluster.foreign.contains(uid) {
        fail(world, &format!("{key} is deleted as a hook and is none of ours"));
    }
}

/// After every event.
pub fn after_event(world: &World) {
    let now = world.now();
    for app in world.state.apps.values() {
        if let Some(operation) = &app.operation
            && operation.deadline + Duration::from_mins(1) < now.mono
            && world.state.cluster == Cluster::Ready
        {
            fail(world, &format!("operation {} of {} runs past its deadline", operation.id, app.key));
        }
        for key in app.objects.keys() {
            if world.state.owners.get(key) != Some(&app.key) {
                fail(world, &format!("{key} is in the inventory of {} and the index says another", app.key));
            }
        }
    }
    for (key, object) in &world.cluster.objects {
        let ours = world.app_keys().iter().any(|app| {
            object.label(names::PART_OF_LABEL) == Some(&*identity::applyset_id("pintle-system", app))
        });
        let made_by_us = ours && !world.cluster.foreign.contains(object.uid());
        let recorded = world.disk.inventory.values().any(|inventory| inventory.contains_key(key));
        let rebuilding = world.state.rebuild != pintle_core::engine::Rebuild::NotNeeded;
        if made_by_us && !recorded && !rebuilding {
            let in_memory = world.state.owners.contains_key(key);
            let writes =
                world.state.in_flight.iter().flat_map(|commit| &commit.writes).chain(&world.state.unsaved);
            let being_written = writes.into_iter().any(|write| {
                matches!(write, pintle_core::engine::record::Write::Inventory(_, written, Some(_)) if written == key)
            });
            if !(in_memory && being_written) {
                fail(world, &format!("{key} exists because of us and no inventory on disk has it"));
            }
        }
    }
}

/// After the inventory was united with the cluster: nothing that the cluster tells of a hold is forgotten, whether
/// the application is known yet or comes with a parent's render later.
pub fn after_rebuild(world: &World) {
    for (app, parent) in world.parents.iter().filter(|(_, parent)| !parent.orphaned) {
        let Some(known) = world.state.apps.get(app) else {
            fail(world, &format!("{app} has an ApplySet parent and was forgotten with the store"));
        };
        if parent.pin.is_some() && known.holds.pin.is_none() {
            fail(world, &format!("the pin of {app} was forgotten with the store"));
        }
    }
}

/// When faults have stopped and everything is quiet: git's newest commit is what is there.
pub fn converged(world: &World) {
    let now = world.now();
    let head = world.commits.len() - 1;
    for app in world.state.apps.values() {
        if let Some(pin) = &app.holds.pin
            && app.desired.pin.as_ref().is_none_or(|render| render.revision != pin.revision)
        {
            fail(
                world,
                &format!("{} is pinned, git can be reached, and it does not have the render", app.key),
            );
        }
        // What a pinned application holds, another cannot have.
        let pinned = world.state.apps.values().any(|other| other.holds.pin.is_some());
        let waits_for_a_pin = pinned && !app.verdicts.shared.is_empty();
        if app.holds.pin.is_some() || !world.automated || waits_for_a_pin {
            continue;
        }
        let view = view::app_view(&world.state, app, now.wall);
        // An adopted object is not deleted without a person's word, and says so.
        if view.sync != SyncStatus::Synced && app.verdicts.refusals.is_empty() {
            fail(
                world,
                &format!(
                    "{} is {:?} in the end: {:?} {:?}",
                    app.key, view.sync, view.resources, view.conditions
                ),
            );
        }
        let git = app.desired.git.as_ref().map(|render| render.revision);
        if git != Some(revision(head)) {
            fail(world, &format!("{} stays at {git:?}, git has {:?}", app.key, revision(head)));
        }
        for (key, object) in &world.commits[head][&app.key] {
            let live = world.cluster.objects.get(key);
            let same = live
                .is_some_and(|live| object.at(&["data"]) == live.at(&["data"]) || extra_only(object, live));
            if !same {
                fail(
                    world,
                    &format!(
                        "{key} is not as git wants it: {:?}",
                        live.map(|live| live.at(&["data"]).cloned())
                    ),
                );
            }
        }
        for (key, tracked) in &app.objects {
            // What git no longer wants and a guard keeps is nobody's to put back.
            let wanted = app.entry(key).is_some();
            if wanted && matches!(tracked.live, Live::Present { verdict: Verdict::Drifted, .. }) {
                fail(world, &format!("{key} stays drifted"));
            }
        }
    }
    // What nobody wants is gone, unless people made it.
    if world.automated && world.state.apps.values().all(|app| app.holds.pin.is_none()) {
        for (key, object) in &world.cluster.objects {
            let wanted = world.commits[head].values().any(|objects| objects.contains_key(key));
            let ours = &*key.kind != "Job"
                && object.label(names::AGENT_LABEL).is_some()
                && !world.cluster.foreign.contains(object.uid());
            if !wanted && ours {
                let owner = world.state.owners.get(key).and_then(|owner| world.state.apps.get(owner));
                let why = owner.map(|app| (&app.key, app.objects.get(key), &app.verdicts));
                fail(world, &format!("{key} is ours, nobody wants it, and it is still there: {why:?}"));
            }
        }
    }
}

/// Live may hold fields of others beside ours.
fn extra_only(wanted: &pintle_model::Object, live: &pintle_model::Object) -> bool {
    let (Some(wanted), Some(live)) = (
        wanted.at(&["data"]).and_then(serde_json::Value::as_object),
        live.at(&["data"]).and_then(serde_json::Value::as_object),
    ) else {
        return false;
    };
    wanted.iter().all(|(name, value)| live.get(name) == Some(value))
}
