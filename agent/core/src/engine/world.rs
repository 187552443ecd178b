//! What crosses applications: the cluster, who owns which object, hand-over, the prune barrier, the store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pintle_model::{AppKey, GroupKind, ObjectKey, Problem, Reason};

use super::app::Tracked;
use super::effect::Report;
use super::event::Now;
use super::record::{Place, Write};
use super::{App, Cluster, Effect, Rebuild, RefPhase, State};
use crate::plan::Relation;
use crate::schedule;

/// Pause before an unreachable cluster is asked again, and its cap: on a node the API server comes back within
/// seconds of a restart, and asking it costs one request.
const FIRST_CONNECT_RETRY: Duration = Duration::from_secs(1);
const MAX_CONNECT_RETRY: Duration = Duration::from_secs(15);

/// Pause before a failed write is tried again: a full disk may have room any moment.
const SAVE_RETRY: Duration = Duration::from_secs(5);

pub(super) fn cluster_ready(state: &mut State, incomplete: BTreeSet<Arc<str>>, fx: &mut Vec<Effect>) {
    let rebuilt = state.rebuild == Rebuild::NotNeeded;
    if rebuilt {
        state.lost_tries = 0;
        state.last_lost = None;
    }
    // While its inventory cannot be read, it is not there yet: no word, and the pauses go on growing.
    if rebuilt && matches!(state.cluster, Cluster::Lost { .. }) {
        fx.push(Effect::Report(Report::Note {
            app: None,
            text: "the cluster answers again".into(),
            warning: false,
        }));
    }
    state.cluster = Cluster::Ready;
    state.incomplete = incomplete;
    // Renders that only waited for the kinds of the cluster need not wait for git's backoff too.
    for known in state.refs.values_mut() {
        let waited =
            known.problem.as_ref().is_some_and(|problem| problem.reason == Reason::ClusterUnreachable);
        if waited && matches!(known.phase, RefPhase::Idle { .. }) {
            known.phase = RefPhase::Idle { next: Duration::ZERO };
        }
    }
    for app in state.apps.values_mut() {
        app.dirty = true;
    }
}

pub(super) fn cluster_lost(state: &mut State, problem: Problem, now: Now, fx: &mut Vec<Effect>) {
    let (since, known) = match &state.cluster {
        Cluster::Lost { since, problem: old, .. } => (*since, *old == problem),
        _ => (now.wall, state.last_lost.as_ref() == Some(&problem)),
    };
    let tries = state.lost_tries;
    state.lost_tries = tries.saturating_add(1);
    state.last_lost = Some(problem.clone());
    if !known {
        fx.push(Effect::Report(Report::Note { app: None, text: problem.message.clone(), warning: true }));
    }
    let wait = schedule::backoff(FIRST_CONNECT_RETRY, 2, MAX_CONNECT_RETRY, tries);
    state.cluster = Cluster::Lost { problem, since, retry_at: now.mono + wait };
}

/// A commit is on disk, or goes back to the front of the queue to be tried again: nothing is lost while memory
/// holds it, and nothing overtakes it.
pub(super) fn committed(
    state: &mut State,
    ticket: u64,
    result: Result<(), Problem>,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let Some(commit) = state.in_flight.take_if(|commit| commit.ticket == ticket) else { return };
    match result {
        Ok(()) => {
            state.save_problem = None;
            state.saved = commit.covers;
            state.saved_sets.extend(commit.writes.iter().filter_map(|write| match write {
                Write::Set(digest, _) => Some(*digest),
                _ => None,
            }));
            state.flush(fx);
        }
        Err(problem) => {
            state.save_problem = Some(problem);
            state.save_at = Some(now.mono + SAVE_RETRY);
            let mut writes = commit.writes;
            writes.append(&mut state.unsaved);
            state.unsaved = writes;
        }
    }
}

/// What another application has to do with an object of `app`.
pub(super) fn relation(state: &State, app: &AppKey, key: &ObjectKey) -> Relation {
    if let Some(owner) = state.owners.get(key).filter(|owner| *owner != app) {
        // What an application wants that was never rendered since the store was lost is not known: it may want it.
        let wants = state.apps.get(owner).is_some_and(|owner| owner.claims(key) || owner.is_unknown());
        return if wants { Relation::OwnedBy(owner.clone()) } else { Relation::LeftBy(owner.clone()) };
    }
    state
        .apps
        .values()
        .find(|other| other.key != *app && other.claims(key))
        .map_or(Relation::None, |other| Relation::WantedBy(other.key.clone()))
}

/// Why nothing of `app` may be deleted yet; `None` when the barrier is open.
///
/// (a) Every known application has a complete render or a stored wanted set. (b) Every application following the
/// same repository and ref has rendered that commit or a newer one. Pinned and detached applications are not
/// waited for: they claim their stored sets. (c), children that a parent creates, holds by construction: a
/// child exists from the moment its parent's render arrives, and then falls under (a).
pub(super) fn barrier(state: &State, app: &App) -> Option<String> {
    let reference = app.reference();
    let revision = app.render().map(|render| render.revision);
    for other in state.apps.values().filter(|other| other.key != app.key) {
        if other.desired.git.is_none() && other.desired.pin.is_none() {
            return Some(match other.spec_problem.as_ref().or(other.desired.problem.as_ref()) {
                Some(problem) => {
                    format!("what application {} wants is not known: {}", other.key, problem.message)
                }
                None if other.place == Place::Cluster => format!(
                    "the definition of application {} has not been found since the store was lost; bring it back, or \
                     `pintle app delete {} --orphan`",
                    other.key, other.key
                ),
                None => format!("application {} has not been rendered yet", other.key),
            });
        }
        if other.holds.detached || other.holds.pin.is_some() || app.holds.pin.is_some() {
            continue;
        }
        if reference.is_some() && other.reference() == reference {
            let rendered = other.desired.git.as_ref().map(|render| render.revision);
            let newest =
                reference.as_ref().and_then(|key| state.refs.get(key)).and_then(|known| known.resolved);
            if rendered != revision && rendered != newest {
                let commit = revision.map(|revision| revision.short()).unwrap_or_default();
                return Some(match &other.desired.problem {
                    Some(problem) => format!(
                        "application {} of the same repository cannot be rendered at {commit}: {}",
                        other.key, problem.message
                    ),
                    None => format!(
                        "application {} of the same repository has not rendered {commit} yet",
                        other.key
                    ),
                });
            }
        }
    }
    None
}

/// Adds or replaces an inventory entry.
pub(super) fn track(state: &mut State, app: &AppKey, key: &ObjectKey, tracked: Tracked) {
    state.owners.insert(key.clone(), app.clone());
    if let Some(app) = state.apps.get_mut(app) {
        app.objects.insert(key.clone(), tracked);
    }
}

/// Removes an inventory entry: after a confirmed delete, a hand-over or an orphaning.
pub(super) fn forget(state: &mut State, app: &AppKey, key: &ObjectKey) -> Write {
    if state.owners.get(key) == Some(app) {
        state.owners.remove(key);
    }
    state.drifted.remove(key);
    if let Some(app) = state.apps.get_mut(app) {
        app.objects.remove(key);
    }
    Write::Inventory(app.clone(), key.clone(), None)
}

/// Moves an object from one application's inventory to another's, without touching the cluster: the new owner's
/// next sync puts its own marks on it.
pub(super) fn hand_over(state: &mut State, key: &ObjectKey, from: &AppKey, to: &AppKey) -> Vec<Write> {
    let Some(mut tracked) = state.apps.get_mut(from).and_then(|app| app.objects.remove(key)) else {
        return Vec::new();
    };
    tracked.record.manifest = None;
    tracked.unsaved = false;
    let record = tracked.record.clone();
    if let Some(app) = state.apps.get_mut(from) {
        app.note(format!("{key} handed over to {to}"));
    }
    if let Some(app) = state.apps.get_mut(to) {
        app.note(format!("{key} taken over from {from}"));
        app.dirty = true;
        app.auto.satisfied = None;
    }
    track(state, to, key, tracked);
    // Added before it is removed: a crash in between leaves it in both inventories, never in none.
    vec![
        Write::Inventory(to.clone(), key.clone(), Some(record)),
        Write::Inventory(from.clone(), key.clone(), None),
    ]
}

/// Forgets an application; its objects stay in the cluster, go to applications that want them, and keep our
/// labels, so that they can be found.
pub(super) fn orphan(state: &mut State, app: &AppKey, why: &str, fx: &mut Vec<Effect>) {
    let Some(keys) = state.apps.get(app).map(|app| app.objects.keys().cloned().collect::<Vec<_>>()) else {
        return;
    };
    if let Some(forgotten) = state.apps.get(app) {
        let parent = super::effect::Parent { orphaned: true, ..super::operation::parent(forgotten) };
        fx.push(Effect::Parent(parent));
    }
    let mut writes = Vec::new();
    for key in &keys {
        let heir =
            state.apps.values().find(|other| other.key != *app && other.claims(key)).map(|o| o.key.clone());
        match heir {
            Some(heir) => writes.extend(hand_over(state, key, app, &heir)),
            None => writes.push(forget(state, app, key)),
        }
    }
    state.apps.remove(app);
    writes.push(Write::Operation(app.clone(), None));
    writes.push(Write::App(app.clone(), None));
    state.commit(writes, fx);
    let text =
        format!("application {app} is forgotten ({why}); its {} objects stay in the cluster", keys.len());
    fx.push(Effect::Report(Report::Note { app: Some(app.clone()), text, warning: false }));
    for other in state.apps.values_mut() {
        other.dirty = true;
    }
}

/// Kinds and versions that have to be watched: of every inventory, in the version of its owned set, and of every
/// render.
pub(super) fn wanted_watches(state: &State) -> BTreeSet<(GroupKind, Arc<str>)> {
    let mut wanted = BTreeSet::new();
    for app in state.apps.values() {
        // Hooks too, from the moment they are rendered: their end must not be missed.
        for render in app.render().into_iter().chain(app.operation.iter().map(|operation| &operation.render))
        {
            for entry in render.objects.iter().chain(render.hooks.iter().map(|hook| &hook.entry)) {
                insert(&mut wanted, &entry.key, &entry.api_version);
            }
        }
        for (key, tracked) in &app.objects {
            match &tracked.set {
                Some(set) => insert(&mut wanted, key, &set.api_version),
                None => {
                    if let Some(entry) = app.entry(key) {
                        insert(&mut wanted, key, &entry.api_version);
                    }
                }
            }
        }
    }
    wanted
}

fn insert(wanted: &mut BTreeSet<(GroupKind, Arc<str>)>, key: &ObjectKey, api_version: &str) {
    let kind = key.group_kind();
    if !wanted.iter().any(|(known, version)| *known == kind && **version == *api_version) {
        wanted.insert((kind, api_version.into()));
    }
}
