//! What is due now, after every event: level-triggered, so that nothing is lost with an event.

use std::time::Duration;

use pintle_model::AppKey;

use super::app::Live;
use super::event::{Now, SyncRequest};
use super::operation::{self, Start};
use super::record::Trigger;
use super::{App, Cluster, Effect, Mode, Rebuild, RefPhase, State, objects, requests, source, world};

pub(super) fn drive(state: &mut State, now: Now, fx: &mut Vec<Effect>) {
    save_again(state, now, fx);
    if state.stopping {
        return;
    }
    connect(state, now, fx);
    requests::end_pauses(state, now, fx);
    if !state.apps_loaded {
        return;
    }
    source::drive(state, now, fx);
    renders(state, fx);
    watches(state, fx);
    if state.cluster == Cluster::Ready && state.rebuild == Rebuild::NotNeeded {
        let keys: Vec<AppKey> = state.apps.keys().cloned().collect();
        for key in keys {
            operation::drive(state, &key, now, fx);
            consider(state, &key, now, fx);
        }
        objects::drive(state, now, fx);
    }
}

fn save_again(state: &mut State, now: Now, fx: &mut Vec<Effect>) {
    if state.save_at.is_some_and(|at| at <= now.mono) {
        state.save_at = None;
        state.flush(fx);
    }
}

fn connect(state: &mut State, now: Now, fx: &mut Vec<Effect>) {
    let due = match &state.cluster {
        Cluster::Unknown => true,
        Cluster::Lost { retry_at, .. } => *retry_at <= now.mono,
        Cluster::Connecting | Cluster::Ready => false,
    };
    if due {
        if let Cluster::Lost { retry_at, .. } = &mut state.cluster {
            // Asked; the answer sets the next time.
            *retry_at = Duration::MAX;
        } else {
            state.cluster = Cluster::Connecting;
        }
        fx.push(Effect::Connect);
    }
    if state.cluster == Cluster::Ready && state.rebuild == Rebuild::Needed && state.apps_loaded {
        state.rebuild = Rebuild::UnderWay;
        fx.push(Effect::Rebuild);
    }
}

/// Renders what is fetched and not rendered, and reads pinned renders from the store.
fn renders(state: &mut State, fx: &mut Vec<Effect>) {
    let mut ticket = state.last_ticket;
    for app in state.apps.values_mut() {
        if let (Some(pin), None, None) = (&app.holds.pin, &app.desired.pin, app.desired.loading) {
            let again = app.lost_pin().and_then(|reference| {
                let fetched = state.refs.get(&reference)?.available == Some(pin.revision);
                app.spec.clone().filter(|_| fetched)
            });
            if !app.desired.pin_lost {
                ticket += 1;
                app.desired.loading = Some(ticket);
                fx.push(Effect::LoadRender { app: app.key.clone(), render: pin.render, ticket });
            } else if let Some(spec) = again {
                ticket += 1;
                app.desired.loading = Some(ticket);
                fx.push(Effect::Render { app: app.key.clone(), spec, revision: pin.revision, ticket });
            }
        }
        if app.holds.detached {
            continue;
        }
        let Some(known) = app.reference().and_then(|reference| state.refs.get(&reference)) else { continue };
        let Some(revision) = known.resolved.filter(|revision| known.available == Some(*revision)) else {
            continue;
        };
        if !source::needs_render(app, Some(revision)) {
            continue;
        }
        let Some(spec) = app.spec.clone() else { continue };
        let digest = source::render_digest(&spec);
        if app.desired.in_flight.as_ref().is_some_and(|(_, rev, spec)| (*rev, *spec) == (revision, digest)) {
            continue;
        }
        ticket += 1;
        app.desired.in_flight = Some((ticket, revision, digest));
        fx.push(Effect::Render { app: app.key.clone(), spec, revision, ticket });
    }
    state.last_ticket = ticket;
}

fn watches(state: &mut State, fx: &mut Vec<Effect>) {
    if state.cluster != Cluster::Ready || !state.apps.values().any(|app| app.dirty) {
        return;
    }
    let wanted = world::wanted_watches(state);
    if wanted != state.watched {
        state.watches.retain(|kind, _| wanted.iter().any(|(known, _)| known == kind));
        for (kind, _) in wanted.difference(&state.watched) {
            state.watches.entry(kind.clone()).or_default().synced = false;
        }
        state.watched = wanted.clone();
        fx.push(Effect::Watch(wanted));
    }
}

/// Starts an automated operation if there is a reason to.
fn consider(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get(key) else { return };
    if app.operation.is_some() {
        return;
    }
    let observing = state.settings.mode == Mode::Observe;
    let due = app.auto.next_try.is_some_and(|at| at <= now.mono);
    if !app.dirty && !due {
        return;
    }
    if !watches_settled(state, app) {
        return;
    }
    forget_gone(state, key, fx);
    if !observing && resume(state, key, now, fx) {
        return;
    }
    let Some(app) = state.apps.get(key) else { return };
    let start = (!observing && wants_sync(app, now)).then(|| app.render().cloned()).flatten();
    let Some(app) = state.apps.get_mut(key) else { return };
    app.dirty = false;
    let Some(render) = start else { return };
    let prune = app.spec.as_ref().and_then(|spec| spec.automated.as_ref()).is_some_and(|auto| auto.prune);
    // A pinned render was put in force by a person who chose about pruning then.
    let prune = prune && app.holds.pin.is_none();
    let retry = app.auto.failed == Some(render.id);
    let request = SyncRequest { by: operation::AUTOMATED.to_owned(), prune, ..SyncRequest::default() };
    // A retry is never a hidden selfHeal: without it, what somebody changed meanwhile stays as it is.
    let revert = !retry || app.heals();
    operation::start(
        state,
        key,
        Start { trigger: Trigger::Automated, request, revert, render, pin: None, resumes: false },
        now,
        fx,
    );
}

/// Goes on with the operation that a kill interrupted, whoever asked for it. One whose render is no longer in force is
/// over: what it made is in the inventory, and what is in force now is planned.
fn resume(state: &mut State, key: &AppKey, now: Now, fx: &mut Vec<Effect>) -> bool {
    let Some(app) = state.apps.get_mut(key) else { return false };
    let Some(record) = app.resume.clone() else { return false };
    if record.cascade {
        let token = record.confirm.clone().unwrap_or_default();
        operation::start_cascade(state, key, record.trigger.who().to_owned(), token, now, fx);
        return true;
    }
    let Some(render) = app.render().filter(|render| render.id == record.render).cloned() else {
        if app.render().is_some() {
            app.resume = None;
            state.commit(vec![super::record::Write::Operation(key.clone(), None)], fx);
        }
        return false;
    };
    let request = SyncRequest {
        by: record.trigger.who().to_owned(),
        prune: record.prune,
        selection: record.selection.clone(),
        confirm: record.confirm.clone(),
        render: None,
    };
    let pin = app.holds.pin.clone().filter(|_| matches!(record.trigger, Trigger::Rollback(..)));
    let start = Start { trigger: record.trigger, request, revert: true, render, pin, resumes: true };
    operation::start(state, key, start, now, fx);
    true
}

/// What is gone and no longer wanted by anything needs no entry: it vanished while a pin or an older commit still
/// wanted it.
fn forget_gone(state: &mut State, key: &AppKey, fx: &mut Vec<Effect>) {
    let Some(app) = state.apps.get(key) else { return };
    let gone: Vec<_> = app
        .objects
        .iter()
        .filter(|(object, tracked)| {
            matches!(tracked.live, Live::Gone | Live::Foreign(_)) && !app.needs_entry(object)
        })
        .map(|(object, _)| object.clone())
        .collect();
    if !gone.is_empty() {
        let writes = gone.iter().map(|object| world::forget(state, key, object)).collect();
        state.commit(writes, fx);
    }
}

/// What is in the inventory has been looked at, or cannot be: then its plan can be made.
fn watches_settled(state: &State, app: &App) -> bool {
    let mut kinds: Vec<_> = app.objects.keys().map(pintle_model::ObjectKey::group_kind).collect();
    kinds.dedup();
    kinds.iter().all(|kind| {
        state.watches.get(kind).is_some_and(|watch| watch.synced || watch.problem.is_some())
            || !state.watched.iter().any(|(known, _)| known == kind)
    })
}

fn wants_sync(app: &App, now: Now) -> bool {
    let Some(render) = app.render() else { return false };
    if !app.is_automated() || app.spec_problem.is_some() && app.spec.is_none() {
        return false;
    }
    let satisfied = app.auto.satisfied == Some(render.id);
    if satisfied {
        // Deletions that had to wait, or were refused, are planned again whenever something moved: what the verdict
        // was is not on disk, and after a restart it has to be told again.
        let prunes =
            app.spec.as_ref().and_then(|spec| spec.automated.as_ref()).is_some_and(|auto| auto.prune);
        return prunes && app.holds.pin.is_none() && app.has_leftovers();
    }
    if app.auto.failed == Some(render.id) {
        let limit = app.spec.as_ref().and_then(|spec| spec.retry.as_ref()?.limit);
        if limit.is_some_and(|limit| limit >= 0 && i64::from(app.auto.failures) > limit) {
            return false;
        }
        return app.auto.next_try.is_none_or(|at| at <= now.mono);
    }
    true
}

/// The earliest monotonic time at which something is due without an event; `None` when nothing is.
pub fn next_due(state: &State) -> Option<Duration> {
    let mut due: Option<Duration> = state.save_at;
    let mut add = |at: Duration| {
        if at != Duration::MAX {
            due = Some(due.map_or(at, |known| known.min(at)));
        }
    };
    if state.stopping {
        return due;
    }
    if let Cluster::Lost { retry_at, .. } = &state.cluster {
        add(*retry_at);
    }
    if state.apps_loaded {
        for known in state.refs.values() {
            if let RefPhase::Idle { next } = known.phase {
                add(next);
            }
        }
    }
    for app in state.apps.values() {
        if let Some(at) = app.holds.pause_ends {
            add(at);
        }
    }
    // Only what a tick can really move: a time that lies in the past and is not acted on would make the loop spin.
    if state.apps_loaded && state.cluster == Cluster::Ready && state.rebuild == Rebuild::NotNeeded {
        for app in state.apps.values() {
            if let Some(operation) = &app.operation {
                add(operation.deadline);
            } else if let Some(at) = app.auto.next_try
                && wants_sync(app, Now { mono: Duration::MAX, wall: jiff::Timestamp::UNIX_EPOCH })
                && state.settings.mode != Mode::Observe
                && watches_settled(state, app)
            {
                add(at);
            }
        }
        for key in &state.drifted {
            if let Some(at) = objects::heal_due(state, key) {
                add(at);
            }
        }
    }
    due
}
