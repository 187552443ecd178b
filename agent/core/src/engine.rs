//! The engine: `step(State, Event, now) -> Effects` is the specification of the agent.
//!
//! An application is a set of regions (source, desired, operation, heal per object, holds), each moved by its own
//! functions; `World` is what crosses applications: who owns which object, shared fetches, parents and children,
//! the prune barrier. Everything outside is an [`Event`]; everything that touches the world is an [`Effect`].
//!
//! Guarantees
//! - No IO and no clock: the same state, event and time give the same state and effects.
//! - An object is deleted only by a step of a plan (see `plan`), with its UID as precondition.
//! - Every wait has an end: `next_due` names the earliest.
//!
//! Assumptions
//! - Each effect that has an answer is answered exactly once, with a success or a problem; the shell puts a
//!   deadline around all of them.

pub mod app;
pub mod effect;
pub mod event;
pub mod record;
pub mod view;

mod drive;
mod intake;
mod objects;
mod operation;
mod requests;
mod restore;
mod source;
mod world;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pintle_model::{AppKey, GroupKind, ObjectKey, Problem};

use crate::plan::PruneLimits;
pub use app::App;
pub use effect::Effect;
pub use event::{Event, Now, RefKey};
use record::Write;

/// What the engine is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The service: poll, sync, heal, for ever.
    Run,
    /// One pass: the same, and the shell stops it when [`State::is_quiet`].
    Once,
    /// Only look: one poll, no automated sync, no heal. Requests are still carried out.
    Observe,
}

/// Settings that the decisions depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Mode.
    pub mode: Mode,
    /// Agent id, a valid label value.
    pub agent_id: String,
    /// Namespace of the agent's own objects.
    pub agent_namespace: String,
    /// Pause between polls of one ref.
    pub poll_interval: Duration,
    /// Spread added to it.
    pub poll_jitter: Duration,
    /// Prune limits.
    pub prune: PruneLimits,
}

/// Is the cluster there, and ours?
#[derive(Debug, Clone, PartialEq)]
pub enum Cluster {
    /// Not asked yet.
    Unknown,
    /// Being asked.
    Connecting,
    /// It answers and is ours.
    Ready,
    /// It does not answer, or must not be touched; tried again at the time given.
    Lost {
        /// Why.
        problem: Problem,
        /// Since when.
        since: Timestamp,
        /// Monotonic time of the next try.
        retry_at: Duration,
    },
}

/// A ref that applications follow.
#[derive(Debug, Clone)]
pub struct RefState {
    /// Where the poll or fetch stands.
    pub phase: RefPhase,
    /// Commit that the git server named last.
    pub resolved: Option<pintle_model::Revision>,
    /// Commit that is in the cache for certain.
    pub available: Option<pintle_model::Revision>,
    /// When the git server last answered.
    pub last_ok: Option<Timestamp>,
    /// What is wrong with it now.
    pub problem: Option<Problem>,
    /// Failures in a row.
    pub failures: u32,
    /// Polls so far, for the jitter.
    pub rounds: u64,
    /// Requests that wait for the answer of a poll that has not begun: poll as soon as possible.
    pub poll_now: bool,
}

/// Where a ref's poll or fetch stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RefPhase {
    /// Waiting for the next poll.
    Idle {
        /// Monotonic time of the next poll.
        next: Duration,
    },
    /// Asked, not answered.
    Polling,
    /// Fetching this commit.
    Fetching(pintle_model::Revision),
}

/// State of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchState {
    /// It has listed everything at least once since it was started or broke.
    pub synced: bool,
    /// What is wrong with it.
    pub problem: Option<Problem>,
}

/// The whole state.
#[derive(Debug)]
pub struct State {
    /// Settings.
    pub settings: Settings,
    /// The cluster.
    pub cluster: Cluster,
    /// Times in a row that it did not answer, or its inventory could not be read.
    pub lost_tries: u32,
    /// What was told last about that.
    pub last_lost: Option<Problem>,
    /// API groups whose discovery is incomplete.
    pub incomplete: BTreeSet<Arc<str>>,
    /// Inventories must be rebuilt before anything is applied or deleted.
    pub rebuild: Rebuild,
    /// Applications.
    pub apps: BTreeMap<AppKey, App>,
    /// Which application has an object in its inventory.
    pub owners: BTreeMap<ObjectKey, AppKey>,
    /// Refs that applications follow.
    pub refs: BTreeMap<RefKey, RefState>,
    /// Watches by kind.
    pub watches: BTreeMap<GroupKind, WatchState>,
    /// Kinds and versions that were last asked to be watched.
    pub watched: BTreeSet<(GroupKind, Arc<str>)>,
    /// Problems of application files that belong to no application.
    pub file_problems: Vec<Problem>,
    /// The folders of applications were read at least once.
    pub apps_loaded: bool,
    /// The commit that is under way, kept until it is on disk. One at a time: a failed one must never be written
    /// again after a newer one.
    pub in_flight: Option<InFlight>,
    /// Writes that wait for it, oldest first.
    pub unsaved: Vec<Write>,
    /// Number of the newest queued writes.
    pub queued: u64,
    /// Number of the newest writes that are on disk.
    pub saved: u64,
    /// When to try again to write.
    pub save_at: Option<Duration>,
    /// Why the last write failed.
    pub save_problem: Option<Problem>,
    /// Drifted or vanished objects that may have to be put back.
    pub drifted: BTreeSet<ObjectKey>,
    /// Owned sets in use, shared between objects of one shape.
    pub sets: BTreeMap<pintle_model::Digest, Arc<crate::fields::OwnedSet>>,
    /// Sets that are on disk.
    pub saved_sets: BTreeSet<pintle_model::Digest>,
    /// Number of the last ticket given.
    pub last_ticket: u64,
    /// Number of the last operation.
    pub last_operation: u64,
    /// Monotonic times of the deletions of the last hour, of all applications together.
    pub deletions: VecDeque<Duration>,
    /// Nothing new is started.
    pub stopping: bool,
}

/// Does the inventory have to be rebuilt from the cluster?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// The store knew it.
    NotNeeded,
    /// The store was new or lost: as soon as the cluster answers.
    Needed,
    /// Asked for.
    UnderWay,
}

/// A commit that is under way.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// Ticket of its answer.
    pub ticket: u64,
    /// What it writes.
    pub writes: Vec<Write>,
    /// Number of the newest writes in it.
    pub covers: u64,
}

/// Moves the state by one event.
pub fn step(state: &mut State, event: Event, now: Now) -> Vec<Effect> {
    let mut fx = Vec::new();
    // Conditions do not depend on a single object's state; computing them for each of 5,000 objects would.
    let conditions_may_change = !matches!(
        event,
        Event::Seen(_) | Event::StepApplied { .. } | Event::StepChecked { .. } | Event::Left(..)
    );
    match event {
        Event::Tick => {}
        Event::AppsLoaded { apps, held, problems } => {
            intake::apps_loaded(state, apps, &held, problems, now, &mut fx);
        }
        Event::Polled(key, result) => source::polled(state, &key, result, now, &mut fx),
        Event::Fetched(key, revision, result) => source::fetched(state, &key, revision, result, now, &mut fx),
        Event::Rendered { app, ticket, result } => {
            intake::rendered(state, &app, ticket, result, now, &mut fx);
        }
        Event::ClusterReady { incomplete } => world::cluster_ready(state, incomplete, &mut fx),
        Event::ClusterLost(problem) => world::cluster_lost(state, problem, now, &mut fx),
        Event::Rebuilt(result) => restore::rebuilt(state, result, now, &mut fx),
        Event::Seen(object) => objects::seen(state, *object, now, &mut fx),
        Event::Left(key, last) => objects::left(state, &key, last.as_deref(), now, &mut fx),
        Event::WatchSynced { kind, present } => objects::watch_synced(state, &kind, &present, &mut fx),
        Event::WatchLost(kind, problem) => {
            state.watches.entry(kind).or_default().problem = Some(problem);
        }
        Event::Probed(key, result) => objects::probed(state, &key, result, now, &mut fx),
        Event::Surveyed { app, op, result } => operation::surveyed(state, &app, op, result, now, &mut fx),
        Event::Begun { app, op, result } => operation::begun(state, &app, op, result, now, &mut fx),
        Event::StepChecked { app, op, key, result } => {
            operation::step_checked(state, &app, op, &key, result, now, &mut fx);
        }
        Event::StepApplied { app, op, key, result } => {
            operation::step_applied(state, &app, op, &key, result, now, &mut fx);
        }
        Event::StepDeleted { app, op, key, result } => {
            operation::step_deleted(state, &app, op, &key, result, now, &mut fx);
        }
        Event::Reverted { app, key, before, result } => {
            objects::reverted(state, &app, &key, before, result, now, &mut fx);
        }
        Event::Committed { ticket, result } => world::committed(state, ticket, result, now, &mut fx),
        Event::Requested { app, request, ticket } => {
            requests::requested(state, &app, request, ticket, now, &mut fx);
        }
        Event::Shutdown => state.stopping = true,
    }
    drive::drive(state, now, &mut fx);
    if conditions_may_change {
        view::stamp(state, now);
    }
    fx
}

impl State {
    /// A state with nothing in it.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            cluster: Cluster::Unknown,
            lost_tries: 0,
            last_lost: None,
            incomplete: BTreeSet::new(),
            rebuild: Rebuild::NotNeeded,
            apps: BTreeMap::new(),
            owners: BTreeMap::new(),
            refs: BTreeMap::new(),
            watches: BTreeMap::new(),
            watched: BTreeSet::new(),
            file_problems: Vec::new(),
            apps_loaded: false,
            in_flight: None,
            unsaved: Vec::new(),
            queued: 0,
            saved: 0,
            save_at: None,
            save_problem: None,
            drifted: BTreeSet::new(),
            sets: BTreeMap::new(),
            saved_sets: BTreeSet::new(),
            last_ticket: 0,
            last_operation: 0,
            deletions: VecDeque::new(),
            stopping: false,
        }
    }

    /// The next number of a ticket.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// Are all watches of these kinds synced?
    pub fn is_watched(&self, kind: &GroupKind) -> bool {
        self.watches.get(kind).is_some_and(|watch| watch.synced)
    }

    /// Queues writes for the store. Returns their number, which `saved` reaches when they are on disk.
    pub(crate) fn commit(&mut self, writes: Vec<Write>, fx: &mut Vec<Effect>) -> u64 {
        self.unsaved.extend(writes);
        self.queued += 1;
        self.flush(fx);
        self.queued
    }

    /// Sends what is queued, unless a commit is under way or one has just failed.
    pub(crate) fn flush(&mut self, fx: &mut Vec<Effect>) {
        if self.in_flight.is_some() || self.save_at.is_some() || self.unsaved.is_empty() {
            return;
        }
        let ticket = self.ticket();
        let writes = std::mem::take(&mut self.unsaved);
        self.in_flight = Some(InFlight { ticket, writes: writes.clone(), covers: self.queued });
        fx.push(Effect::Commit { ticket, writes });
    }

    /// Has everything that the agent can do now been done?
    ///
    /// For `pintle once`: no poll, fetch, render, operation, revert or commit is under way or due, and every
    /// watch has listed.
    pub fn is_quiet(&self, now: Now) -> bool {
        if matches!(self.cluster, Cluster::Unknown | Cluster::Connecting)
            || !self.apps_loaded
            || self.in_flight.is_some()
        {
            return false;
        }
        let refs =
            self.refs.values().all(|state| matches!(state.phase, RefPhase::Idle { next } if next > now.mono));
        let cluster_lost = matches!(self.cluster, Cluster::Lost { .. });
        refs && self.apps.values().all(|app| app.is_quiet(self, cluster_lost))
            && (cluster_lost
                || (self.rebuild == Rebuild::NotNeeded
                    && self.watched.iter().all(|(kind, _)| {
                        self.watches.get(kind).is_some_and(|watch| watch.synced || watch.problem.is_some())
                    })))
    }
}

pub use drive::next_due;
pub use operation::{make_plan, unknown_keys};
pub use restore::{hook_mark, restore};
