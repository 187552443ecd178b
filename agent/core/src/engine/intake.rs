//! Where applications come from, and what their renders bring: files, the bootstrap setting, children.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_model::application::RollbackUntil;
use pintle_model::{AppKey, Problem, Reason};

use super::app::App;
use super::effect::Report;
use super::event::{Child, FoundApp, Now};
use super::record::{Place, RenderRecord, Write};
use super::{Effect, State, source, world};

pub(super) fn apps_loaded(
    state: &mut State,
    found: Vec<FoundApp>,
    held: &BTreeSet<AppKey>,
    problems: Vec<(Option<AppKey>, Problem)>,
    _now: Now,
    fx: &mut Vec<Effect>,
) {
    state.apps_loaded = true;
    let mut present: BTreeSet<AppKey> = held.clone();
    for app in found {
        present.insert(app.spec.key.clone());
        upsert(state, app, fx);
    }
    let mut vanished = Vec::new();
    for app in state.apps.values_mut() {
        let from_files = matches!(app.place, Place::File(_) | Place::Bootstrap);
        if from_files && !present.contains(&app.key) && !app.holds.detached {
            app.holds.detached = true;
            app.dirty = true;
            vanished.push((app.key.clone(), app.place.to_string()));
        }
    }
    for (app, place) in vanished {
        note(
            fx,
            &app,
            true,
            format!("application {app} vanished from {place}: it is detached, its objects stay"),
        );
    }
    state.file_problems.clear();
    for (app, problem) in problems {
        match app.and_then(|key| state.apps.get_mut(&key)) {
            Some(app) => app.spec_problem = Some(problem),
            None => state.file_problems.push(problem),
        }
    }
    save_apps(state, fx);
}

/// Adds an application, or takes over its new spec.
fn upsert(state: &mut State, found: FoundApp, fx: &mut Vec<Effect>) {
    let key = found.spec.key.clone();
    let app = state
        .apps
        .entry(key.clone())
        .or_insert_with(|| App::new(key.clone(), found.raw.clone(), found.place.clone()));
    if app.holds.detached {
        app.holds.detached = false;
        note(fx, &key, false, format!("application {key} is back at {}", found.place));
    }
    let changed = app.spec.as_ref().is_none_or(|spec| **spec != *found.spec);
    if changed {
        // A changed spec may cure what failed; an explicit retry limit starts anew.
        app.auto.failed = None;
        app.auto.failures = 0;
        app.auto.next_try = None;
        app.spec = Some(found.spec);
    }
    app.raw = found.raw;
    app.place = found.place;
    app.spec_problem = None;
    app.dirty = true;
}

/// A render arrived: of what git wants, or of a pin.
pub(super) fn rendered(
    state: &mut State,
    key: &AppKey,
    ticket: u64,
    result: Result<(Arc<RenderRecord>, Vec<Child>), Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(key) else { return };
    if app.desired.loading == Some(ticket) {
        pin_rendered(state, key, result.map(|(record, _)| record), now, fx);
        return;
    }
    let Some((_, revision, spec)) = app.desired.in_flight.filter(|(known, _, _)| *known == ticket) else {
        return;
    };
    app.desired.in_flight = None;
    app.desired.hard = false;
    app.dirty = true;
    // What waits for this render is judged again, whether it came or not: then the reason it waits for is another.
    for other in state.apps.values_mut().filter(|other| !other.verdicts.deferred.is_empty()) {
        other.dirty = true;
    }
    let Some(app) = state.apps.get_mut(key) else { return };
    match result {
        Ok((record, children)) => {
            app.desired.problem = None;
            app.desired.failed = None;
            app.desired.git_spec = Some(spec);
            app.desired.git = Some(record.clone());
            app.reconciled_at = Some(now.wall);
            end_pin_by_newer(app, &record, fx);
            adopt_children(state, key, &record, children, fx);
            save_apps(state, fx);
        }
        Err(problem) if problem.reason.retryable() => {
            let reference = app.reference();
            app.desired.problem = Some(problem.clone());
            if let Some(reference) = reference {
                if let Some(known) = state.refs.get_mut(&reference) {
                    known.available = None;
                }
                source::failed(state, &reference, problem, now);
            }
        }
        Err(problem) => {
            note(
                fx,
                key,
                true,
                format!("{key} cannot be rendered at {}: {}", revision.short(), problem.message),
            );
            app.desired.problem = Some(problem);
            app.desired.failed = Some((revision, spec));
        }
    }
}

/// The pin's render was read from the store, or made anew from its commit.
fn pin_rendered(
    state: &mut State,
    key: &AppKey,
    result: Result<Arc<RenderRecord>, Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(app) = state.apps.get_mut(key) else { return };
    app.desired.loading = None;
    app.dirty = true;
    let reference = app.lost_pin();
    match result {
        Ok(record) => {
            app.desired.pin_lost = false;
            if let Some(pin) = app.holds.pin.as_mut() {
                // Made anew, it has our present way of rendering in it and another address.
                pin.render = record.id;
                app.desired.pin = Some(record);
            }
            save_apps(state, fx);
        }
        Err(problem) if !app.desired.pin_lost => {
            app.desired.pin_lost = true;
            let text = format!("{}; it is made anew from its commit", problem.message);
            note(fx, key, true, text);
        }
        Err(problem) if problem.reason.retryable() => {
            if let Some(reference) = reference {
                if let Some(known) = state.refs.get_mut(&reference) {
                    known.available = None;
                }
                source::failed(state, &reference, problem, now);
            }
        }
        Err(problem) => app.desired.pin_problem = Some(problem),
    }
}

/// A pin ends by itself when a revision arrives that is neither the pinned nor the abandoned one, unless the
/// application says `pintle.dev/rollback-until: resume`.
fn end_pin_by_newer(app: &mut App, record: &RenderRecord, fx: &mut Vec<Effect>) {
    let Some(pin) = &app.holds.pin else { return };
    let until_resume =
        app.spec.as_ref().is_some_and(|spec| spec.settings.rollback_until == RollbackUntil::Resume);
    if until_resume || record.revision == pin.revision || Some(record.revision) == pin.abandoned {
        return;
    }
    let text = format!(
        "the pin to history entry {} of {} ends: git has the newer revision {}",
        pin.history,
        app.key,
        record.revision.short()
    );
    app.let_go_of_pin();
    app.note(text.clone());
    note(fx, &app.key.clone(), false, text);
}

/// Children found in a render are adopted; one that left its parent is orphaned where the parent prunes, else
/// detached. Nothing ever cascades here.
fn adopt_children(
    state: &mut State,
    parent: &AppKey,
    record: &RenderRecord,
    children: Vec<Child>,
    fx: &mut Vec<Effect>,
) {
    for child in children {
        match child {
            Child::Valid(found) => adopt_child(state, parent, found, fx),
            Child::Invalid(key, problem) => {
                let place = Place::Parent(parent.clone(), no_origin());
                let app = state
                    .apps
                    .entry(key.clone())
                    .or_insert_with(|| App::new(key, serde_json::Value::Null, place));
                app.spec_problem = Some(problem);
            }
        }
    }
    let prunes = state
        .apps
        .get(parent)
        .and_then(|app| app.spec.as_ref())
        .and_then(|spec| spec.automated.as_ref())
        .is_some_and(|auto| auto.prune);
    let left: Vec<AppKey> = state
        .apps
        .values()
        .filter(|app| app.parent() == Some(parent) && !record.children.contains(&app.key))
        .map(|app| app.key.clone())
        .collect();
    for key in left {
        // An empty render is guarded like a prune: children are then only detached.
        if prunes && !(record.objects.is_empty() && record.children.is_empty()) {
            world::orphan(state, &key, &format!("its parent {parent} no longer has it"), fx);
        } else if let Some(app) = state.apps.get_mut(&key)
            && !app.holds.detached
        {
            app.holds.detached = true;
            app.dirty = true;
            note(
                fx,
                &key,
                true,
                format!("application {key} left its parent {parent}: it is detached, its objects stay"),
            );
        }
    }
}

fn adopt_child(state: &mut State, parent: &AppKey, found: FoundApp, fx: &mut Vec<Effect>) {
    let key = found.spec.key.clone();
    let known = state.apps.get(&key).map(|app| app.place.clone());
    let clash = match &known {
        None => None,
        Some(Place::Parent(other, _)) if other == parent => None,
        Some(Place::Parent(other, _)) => {
            let still = state
                .apps
                .get(other)
                .and_then(|app| app.desired.git.as_ref())
                .is_some_and(|render| render.children.contains(&key));
            still.then(|| known.clone())
        }
        Some(Place::Cluster) => None,
        Some(Place::File(_) | Place::Bootstrap) => Some(known.clone()),
    };
    match clash.flatten() {
        Some(place) => {
            let text = format!(
                "{} defines application {key}, which {place} defines already; that one stays",
                found.place
            );
            if let Some(app) = state.apps.get_mut(parent) {
                app.spec_problem = Some(Problem::new(Reason::InvalidSpecError, text.clone()));
            }
            note(fx, parent, true, text);
        }
        None => upsert(state, found, fx),
    }
}

/// Writes the records of applications that differ from what is on disk.
pub(super) fn save_apps(state: &mut State, fx: &mut Vec<Effect>) {
    let mut writes = Vec::new();
    for app in state.apps.values_mut() {
        let record = app.record();
        if app.saved.as_ref() != Some(&record) {
            writes.push(Write::App(app.key.clone(), Some(record.clone())));
            app.saved = Some(record);
        }
    }
    if !writes.is_empty() {
        state.commit(writes, fx);
    }
}

pub(super) fn note(fx: &mut Vec<Effect>, app: &AppKey, warning: bool, text: String) {
    fx.push(Effect::Report(Report::Note { app: Some(app.clone()), text, warning }));
}

fn no_origin() -> pintle_model::Origin {
    pintle_model::Origin { file: "".into(), line: 0 }
}
