//! The regions of one application.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pintle_model::application::Application;
use pintle_model::{AppKey, Digest, Object, ObjectKey, Problem, Reason, Revision};

use super::event::{Now, RefKey, SyncRequest};
use super::record::{
    AppRecord, DesiredEntry, HistoryRecord, HooksDone, InventoryRecord, ObjectResult, OperationRecord, Pause,
    Phase, Pin, Place, RenderRecord, Trigger,
};
use super::{Cluster, State};
use crate::fields::{OwnedSet, Verdict};
use crate::health::Health;
use crate::plan::{Part, Plan, Stage};

/// One application.
#[derive(Debug)]
pub struct App {
    /// Namespace and name.
    pub key: AppKey,
    /// Its valid spec; `None` for one that was restored from the store and whose file has not been read yet.
    pub spec: Option<Arc<Application>>,
    /// The Application as it was read.
    pub raw: serde_json::Value,
    /// Where it comes from.
    pub place: Place,
    /// The newest version of its file or of its parent's render is refused; the last good one is in force.
    pub spec_problem: Option<Problem>,
    /// What is wanted.
    pub desired: Desired,
    /// What is running.
    pub operation: Option<Operation>,
    /// The inventory, with what is seen and healed.
    pub objects: BTreeMap<ObjectKey, Tracked>,
    /// What holds it.
    pub holds: Holds,
    /// Automated sync.
    pub auto: Auto,
    /// Newest finished operation.
    pub last: Option<HistoryRecord>,
    /// Last history id given.
    pub last_history: u64,
    /// Commit of the last operation that succeeded.
    pub synced: Option<Revision>,
    /// Refusals, deferrals and shared objects of the last plan, shown as conditions.
    pub verdicts: Verdicts,
    /// Since when each condition stands.
    pub since: BTreeMap<&'static str, Timestamp>,
    /// Reverts and hand-overs since the last history entry, newest last, bounded.
    pub notes: VecDeque<String>,
    /// Hooks that succeeded in tries of a render that has not succeeded as a whole.
    pub hooks_done: Option<HooksDone>,
    /// An operation that was under way when the agent ended: it goes on with the same id.
    pub resume: Option<OperationRecord>,
    /// A person deletes it with its objects.
    pub leaving: Option<Leaving>,
    /// Something changed that may start or change an operation.
    pub dirty: bool,
    /// Record on disk, to write only what changed.
    pub saved: Option<AppRecord>,
    /// When the comparison was last made.
    pub reconciled_at: Option<Timestamp>,
}

/// What is wanted of an application.
#[derive(Debug, Default)]
pub struct Desired {
    /// Last good render of what git wants.
    pub git: Option<Arc<RenderRecord>>,
    /// Digest of the spec that it was made with.
    pub git_spec: Option<Digest>,
    /// Render that a pin holds.
    pub pin: Option<Arc<RenderRecord>>,
    /// Why the newest revision has no render.
    pub problem: Option<Problem>,
    /// Revision and spec that failed, so that they are not tried again and again.
    pub failed: Option<(Revision, Digest)>,
    /// A render is under way: ticket, revision, spec.
    pub in_flight: Option<(u64, Revision, Digest)>,
    /// The pin's render is being read or made anew: ticket.
    pub loading: Option<u64>,
    /// The pin's render was lost with the store: it is made anew from its commit.
    pub pin_lost: bool,
    /// Why it cannot be made anew; tried again with a hard refresh.
    pub pin_problem: Option<Problem>,
    /// Render anew, whatever is cached.
    pub hard: bool,
}

/// What holds an application.
#[derive(Debug, Default)]
pub struct Holds {
    /// Its place vanished.
    pub detached: bool,
    /// A rollback that holds.
    pub pin: Option<Pin>,
    /// Neither automated sync nor selfHeal.
    pub pause: Option<Pause>,
    /// Monotonic time at which the pause ends by itself, as far as the wall clock can be trusted now.
    pub pause_ends: Option<Duration>,
}

/// A cascade under way: the application goes when its objects have gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Who asked.
    pub by: String,
    /// The token of the plan that was confirmed.
    pub token: String,
}

/// Automated sync.
#[derive(Debug, Default)]
pub struct Auto {
    /// Render that the last successful operation applied: automated sync is satisfied with it.
    pub satisfied: Option<Digest>,
    /// Failures in a row for the same render.
    pub failures: u32,
    /// Monotonic time of the next try.
    pub next_try: Option<Duration>,
    /// Render and spec of the last failure.
    pub failed: Option<Digest>,
}

/// What the last plan would not do.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Verdicts {
    /// Refusals.
    pub refusals: Vec<crate::plan::Refusal>,
    /// Token that confirms the deletions.
    pub token: Option<String>,
    /// Deferred deletions with their reason.
    pub deferred: Vec<(ObjectKey, String)>,
    /// Wanted by us, owned by another application.
    pub shared: Vec<(ObjectKey, AppKey)>,
    /// Only made when absent, and somebody else has made them.
    pub left_alone: BTreeSet<ObjectKey>,
}

/// An object of the inventory: record, set, sighting, heal.
#[derive(Debug, Clone)]
pub struct Tracked {
    /// As on disk, or as it will be with the next commit.
    pub record: InventoryRecord,
    /// The owned set, shared between objects of one shape.
    pub set: Option<Arc<OwnedSet>>,
    /// What is there.
    pub live: Live,
    /// Putting it back.
    pub heal: Heal,
    /// The record differs from the one on disk; it goes along with the next commit.
    pub unsaved: bool,
}

/// What is there.
#[derive(Debug, Clone, PartialEq)]
pub enum Live {
    /// Its watch has not delivered yet.
    Unseen,
    /// It is gone.
    Gone,
    /// It is there.
    Present {
        /// Compared with what we applied.
        verdict: Verdict,
        /// Health.
        health: Health,
        /// resourceVersion as a number (0 when it is not one): older events are dropped.
        version: u64,
    },
    /// Another object has its name, with this UID.
    Foreign(Arc<str>),
}

/// Putting an object back.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Heal {
    /// Reverts in a row.
    pub attempts: u32,
    /// Monotonic time before which it is not put back again.
    pub not_before: Option<Duration>,
    /// A probe or revert is under way since this monotonic time.
    pub in_flight: Option<Duration>,
    /// When the drift was seen.
    pub seen_at: Option<Duration>,
    /// The drift was told to people.
    pub told: bool,
}

/// A running operation.
#[derive(Debug)]
pub struct Operation {
    /// Its id, also the id that results carry.
    pub id: u64,
    /// What started it.
    pub trigger: Trigger,
    /// What was asked.
    pub request: SyncRequest,
    /// May drifted objects be put back?
    pub revert: bool,
    /// What it applies.
    pub render: Arc<RenderRecord>,
    /// When it began.
    pub started: Timestamp,
    /// Monotonic time at which what it is at fails: survey, journal, or one (part, wave) of the plan.
    pub deadline: Duration,
    /// Why it failed: its SyncFail hooks run now.
    pub failing: Option<String>,
    /// The (part, wave) whose deadline runs, and those that the server has checked.
    pub way: Option<(Part, i32)>,
    /// It goes on with an operation that a kill interrupted.
    pub resumed: bool,
    /// It deletes the application with its objects.
    pub cascade: bool,
    /// Checked by dry runs.
    pub checked: BTreeSet<(Part, i32)>,
    /// The plan, once made.
    pub plan: Plan,
    /// Where it stands.
    pub phase: OpPhase,
    /// Results so far.
    pub results: Vec<ObjectResult>,
    /// Some step failed.
    pub failed: bool,
    /// A pin to set when it begins (rollback).
    pub pin: Option<Pin>,
    /// A person asked to end it.
    pub terminating: Option<String>,
}

/// Where an operation stands.
#[derive(Debug, Clone, PartialEq)]
pub enum OpPhase {
    /// Asking which objects exist.
    Surveying,
    /// Writing the journal, then the ApplySet parent.
    Beginning {
        /// Number of the writes that must be on disk first.
        journal: u64,
        /// The parent is being written.
        parent: bool,
    },
    /// Dry runs of a wave are under way: these are not answered yet.
    Checking {
        /// Stage.
        stage: usize,
        /// Not answered yet.
        pending: BTreeSet<ObjectKey>,
    },
    /// Applying a stage: these steps are under way.
    Applying {
        /// Stage.
        stage: usize,
        /// Not answered yet.
        pending: BTreeSet<ObjectKey>,
    },
    /// All of the stage is applied; these objects are not healthy or established yet.
    Waiting {
        /// Stage.
        stage: usize,
        /// Waited for.
        waiting: BTreeSet<ObjectKey>,
    },
    /// Deleting a stage: these are not accepted yet.
    Pruning {
        /// Stage.
        stage: usize,
        /// Not answered yet.
        pending: BTreeSet<ObjectKey>,
    },
}

impl App {
    /// A new application, with nothing known of it.
    pub fn new(key: AppKey, raw: serde_json::Value, place: Place) -> Self {
        Self {
            key,
            spec: None,
            raw,
            place,
            spec_problem: None,
            desired: Desired::default(),
            operation: None,
            objects: BTreeMap::new(),
            holds: Holds::default(),
            auto: Auto::default(),
            last: None,
            last_history: 0,
            synced: None,
            verdicts: Verdicts::default(),
            since: BTreeMap::new(),
            notes: VecDeque::new(),
            hooks_done: None,
            resume: None,
            leaving: None,
            dirty: true,
            saved: None,
            reconciled_at: None,
        }
    }

    /// The ref it follows.
    pub fn reference(&self) -> Option<RefKey> {
        let source = &self.spec.as_ref()?.source;
        Some(RefKey { url: source.repo_url.clone(), target: source.target_revision.clone() })
    }

    /// The parent application, if it has one.
    pub fn parent(&self) -> Option<&AppKey> {
        match &self.place {
            Place::Parent(parent, _) => Some(parent),
            Place::File(_) | Place::Bootstrap | Place::Cluster => None,
        }
    }

    /// The render that is in force: the pin's while it is pinned, else git's.
    pub fn render(&self) -> Option<&Arc<RenderRecord>> {
        if self.holds.pin.is_some() { self.desired.pin.as_ref() } else { self.desired.git.as_ref() }
    }

    /// The entry for a key in the render in force.
    pub fn entry(&self, key: &ObjectKey) -> Option<&DesiredEntry> {
        entry_of(self.render()?, key)
    }

    /// Does it claim the object: in the render in force, in what git wants, or in a stored wanted set?
    pub fn claims(&self, key: &ObjectKey) -> bool {
        [&self.desired.git, &self.desired.pin]
            .into_iter()
            .flatten()
            .any(|render| entry_of(render, key).is_some())
    }

    /// The ref to fetch for a pin whose render was lost with the store: exactly its commit, never polled.
    pub fn lost_pin(&self) -> Option<RefKey> {
        let pin = self.holds.pin.as_ref()?;
        let source = &self.spec.as_ref()?.source;
        let lost = self.desired.pin_lost && self.desired.pin.is_none() && self.desired.pin_problem.is_none();
        lost.then(|| RefKey { url: source.repo_url.clone(), target: pin.revision.to_string() })
    }

    /// Ends the hold of a rollback.
    pub fn let_go_of_pin(&mut self) -> Option<Pin> {
        self.desired.pin = None;
        self.desired.loading = None;
        self.desired.pin_lost = false;
        self.desired.pin_problem = None;
        self.auto.satisfied = None;
        self.holds.pin.take()
    }

    /// Does the inventory hold what the render in force no longer has, and may it go?
    pub fn has_leftovers(&self) -> bool {
        self.objects
            .iter()
            .filter(|(key, tracked)| tracked.record.hook.is_none() && self.entry(key).is_none())
            .any(|(_, tracked)| !tracked.record.options.keep && !tracked.record.deleting)
    }

    /// Is it not known what it wants: neither a render nor a stored wanted set?
    pub fn is_unknown(&self) -> bool {
        self.desired.git.is_none() && self.desired.pin.is_none()
    }

    /// May the entry of an object go when the object is gone? Not while something claims it, nor while the running
    /// operation is about to create it: the inventory stays a superset of what may exist.
    pub fn needs_entry(&self, key: &ObjectKey) -> bool {
        self.leaving.is_none() && self.claims(key)
            || self.operation.as_ref().is_some_and(|op| {
                op.plan.step(key).is_some_and(|step| step.action != crate::plan::Action::Prune)
            })
    }

    /// Does automated sync run (`enabled: null` is on)?
    pub fn is_automated(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.automated.is_some()) && !self.is_held()
    }

    /// Is it detached, paused, or being deleted? Then nothing happens by itself.
    pub fn is_held(&self) -> bool {
        self.holds.detached || self.holds.pause.is_some() || self.leaving.is_some()
    }

    /// Is drift put back?
    pub fn heals(&self) -> bool {
        !self.is_held()
            && self.spec.as_ref().and_then(|spec| spec.automated.as_ref()).is_some_and(|auto| auto.self_heal)
    }

    /// The record as it should be on disk.
    pub fn record(&self) -> AppRecord {
        AppRecord {
            spec: self.raw.clone(),
            place: self.place.clone(),
            detached: self.holds.detached,
            render: self.desired.git.as_ref().map(|render| render.id),
            render_spec: self.desired.git_spec,
            synced: self.synced,
            satisfied: self.auto.satisfied,
            pin: self.holds.pin.clone(),
            pause: self.holds.pause.clone(),
            last_history: self.last_history,
            hooks_done: self.hooks_done.clone(),
        }
    }

    /// Adds a line to the notes of the next history entry.
    pub fn note(&mut self, text: String) {
        const MAX_NOTES: usize = 50;
        if self.notes.len() == MAX_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(text);
    }

    /// Nothing under way or waiting in this application?
    pub(super) fn is_quiet(&self, state: &State, cluster_lost: bool) -> bool {
        let healing = self.objects.values().any(|tracked| tracked.heal.in_flight.is_some());
        let rendering = self.desired.in_flight.is_some() || self.desired.loading.is_some();
        let waits_for_cluster = self.dirty && !cluster_lost && matches!(state.cluster, Cluster::Ready);
        self.operation.is_none() && !healing && !rendering && !waits_for_cluster
    }
}

/// The entry for a key: objects of a render are sorted by key.
pub fn entry_of<'a>(render: &'a RenderRecord, key: &ObjectKey) -> Option<&'a DesiredEntry> {
    render.objects.binary_search_by(|entry| entry.key.cmp(key)).ok().map(|index| &render.objects[index])
}

impl Tracked {
    /// An entry that is written before the first create: no UID yet.
    pub fn reserved(entry: &DesiredEntry) -> Self {
        Self {
            record: InventoryRecord {
                uid: None,
                manifest: None,
                set: None,
                projection: None,
                adopted: super::record::Adopted::No,
                options: entry.options,
                hook: None,
                wave: entry.wave,
                deleting: false,
            },
            set: None,
            live: Live::Unseen,
            heal: Heal::default(),
            unsaved: true,
        }
    }

    /// Health, where it is seen.
    pub fn health(&self) -> Option<&Health> {
        match &self.live {
            Live::Present { health, .. } => Some(health),
            Live::Unseen | Live::Gone | Live::Foreign(_) => None,
        }
    }
}

impl Operation {
    /// Records a result.
    pub fn result(&mut self, key: &ObjectKey, code: super::record::ResultCode, message: impl Into<String>) {
        self.failed |= code == super::record::ResultCode::SyncFailed;
        self.results.push(ObjectResult { key: key.clone(), code, message: message.into() });
    }

    /// The stages that run now: the plan's, or those of its failure.
    pub fn stages(&self) -> &[Stage] {
        if self.failing.is_some() { &self.plan.on_fail } else { &self.plan.stages }
    }

    /// Argo CD's phase while it runs.
    pub fn running_phase(&self) -> Phase {
        if self.terminating.is_some() { Phase::Terminating } else { Phase::Running }
    }
}

/// The number in a resourceVersion; 0 when the server's is no number (then nothing is dropped as old).
pub fn version_of(object: &Object) -> u64 {
    object.resource_version().parse().unwrap_or_default()
}

/// A problem of one application, for the conditions.
pub fn condition_name(problem: &Problem) -> &'static str {
    match problem.reason {
        Reason::InvalidSpecError => "InvalidSpecError",
        Reason::RenderError | Reason::ComparisonError => "ComparisonError",
        reason => reason.name(),
    }
}

/// Monotonic deadline after `secs` seconds.
pub fn after(now: Now, secs: u64) -> Duration {
    now.mono + Duration::from_secs(secs)
}
