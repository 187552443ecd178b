//! Everything that can happen to the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pintle_model::application::Application;
use pintle_model::{AppKey, Digest, GroupKind, Object, ObjectKey, Problem, Revision};

use super::record::{InventoryRecord, Pause, Pin, Place, RenderRecord};
use crate::fields::OwnedSet;

/// The time of an event: monotonic for waits and backoff, wall clock for what people read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// Since the process began; never jumps.
    pub mono: std::time::Duration,
    /// Wall clock; may jump.
    pub wall: Timestamp,
}

/// A repository and the revision that is wanted of it: the unit of polling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefKey {
    /// Repository URL.
    pub url: String,
    /// `targetRevision`.
    pub target: String,
}

/// One application as it was found.
#[derive(Debug, Clone)]
pub struct FoundApp {
    /// Valid and ready to run.
    pub spec: Arc<Application>,
    /// The Application as it was read, for the store and for `app get`.
    pub raw: serde_json::Value,
    /// Where.
    pub place: Place,
}

/// A child Application in a render: valid, or named with what is wrong.
#[derive(Debug, Clone)]
pub enum Child {
    /// Ready to run.
    Valid(FoundApp),
    /// Its spec is refused; its last good state is kept.
    Invalid(AppKey, Problem),
}

/// An object of the cluster that an operation asked about before its plan is made.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which.
    pub key: ObjectKey,
    /// The live object (metadata is enough).
    pub object: Arc<Object>,
}

/// The answer to an apply.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The payload that was applied.
    pub manifest: Digest,
    /// Ignored fields that the payload left out or that are not ours to compare.
    pub ignored: Vec<String>,
    /// The object after defaulting, admission and normalisation.
    pub answer: Arc<Object>,
    /// The server created it (HTTP 201).
    pub created: bool,
    /// It was there before, without being ours, and this is how it compared with git.
    pub adopted: Option<super::record::Adopted>,
    /// Fields that were released instead of reset, as JSON pointers.
    pub released: Vec<String>,
}

/// What a person or script asks of an application.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Poll now; `hard` also renders anew.
    Refresh {
        /// Drop cached renders too.
        hard: bool,
    },
    /// Sync.
    Sync(SyncRequest),
    /// Go back to a history entry and hold it. The shell has read the entry.
    Rollback(RollbackRequest),
    /// Neither automated sync nor selfHeal, for a time or until `resume`.
    Pause(Pause),
    /// Delete the application and its objects: the plan first, then with its token.
    DeleteCascade {
        /// Who asks.
        by: String,
        /// Token of the plan.
        confirm: Option<String>,
    },
    /// Let go of a pin and of a pause.
    Resume {
        /// Who asks.
        by: String,
    },
    /// End the running operation.
    Terminate {
        /// Who asks.
        by: String,
    },
    /// Forget the application and leave its objects.
    DeleteOrphan {
        /// Who asks.
        by: String,
    },
}

/// A person's sync.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SyncRequest {
    /// Who asks.
    pub by: String,
    /// Delete what git no longer has.
    pub prune: bool,
    /// Only these objects; empty means all.
    pub selection: Vec<ObjectKey>,
    /// Token printed with a refused plan.
    pub confirm: Option<String>,
    /// The render of another revision than the one that is followed, for this operation only.
    pub render: Option<Arc<RenderRecord>>,
}

/// A rollback, with the stored render it goes back to.
#[derive(Debug, Clone, PartialEq)]
pub struct RollbackRequest {
    /// Who asks.
    pub by: String,
    /// History id.
    pub id: u64,
    /// Its render.
    pub render: Arc<RenderRecord>,
    /// Delete what that render does not have.
    pub prune: bool,
}

/// What a rebuild from the cluster found for one application.
#[derive(Debug, Clone, Default)]
pub struct Rebuilt {
    /// Objects that are ours by the rule, with their sets.
    pub inventory: BTreeMap<ObjectKey, (InventoryRecord, Option<Arc<OwnedSet>>)>,
    /// The pin on the ApplySet parent.
    pub pin: Option<Pin>,
    /// The pause on the ApplySet parent.
    pub pause: Option<Pause>,
}

/// Everything outside is an event.
#[derive(Debug, Clone)]
pub enum Event {
    /// Time passed.
    Tick,
    /// The folders of applications were read: what stands there now. Applications from files and the bootstrap
    /// setting that are not in the list vanished, unless `held` names them.
    AppsLoaded {
        /// Valid applications.
        apps: Vec<FoundApp>,
        /// Applications whose file cannot be read or parsed now: they stay as they were.
        held: BTreeSet<AppKey>,
        /// What is wrong, by application where it is known.
        problems: Vec<(Option<AppKey>, Problem)>,
    },
    /// A ref was resolved.
    Polled(RefKey, Result<Revision, Problem>),
    /// A commit is in the cache.
    Fetched(RefKey, Revision, Result<(), Problem>),
    /// A render ended.
    Rendered {
        /// Application.
        app: AppKey,
        /// Ticket of the request: answers to older requests are dropped.
        ticket: u64,
        /// The render and the children found in it.
        result: Result<(Arc<RenderRecord>, Vec<Child>), Problem>,
    },
    /// The cluster answers, is ours, and its kinds are known.
    ClusterReady {
        /// Groups whose discovery is incomplete.
        incomplete: BTreeSet<Arc<str>>,
    },
    /// The cluster does not answer or must not be touched.
    ClusterLost(Problem),
    /// An inventory was rebuilt from the cluster.
    Rebuilt(Result<BTreeMap<AppKey, Rebuilt>, Problem>),
    /// A watch delivered an object.
    Seen(Box<Object>),
    /// An object left a watch: deleted, or no longer carrying our label; with its last state, where the watch told it.
    Left(ObjectKey, Option<Arc<Object>>),
    /// A watch listed everything: what is not in the list left meanwhile.
    WatchSynced {
        /// Kind.
        kind: GroupKind,
        /// What is there.
        present: BTreeSet<ObjectKey>,
    },
    /// A watch is broken; it is being renewed.
    WatchLost(GroupKind, Problem),
    /// Answer to a probe: what really is at the key.
    Probed(ObjectKey, Result<Option<Arc<Object>>, Problem>),
    /// What an operation asked about before its plan.
    Surveyed {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Objects that exist.
        result: Result<Vec<Found>, Problem>,
    },
    /// Journal and ApplySet parent are written: the plan may begin.
    Begun {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Disk full, API down.
        result: Result<(), Problem>,
    },
    /// The dry run of one step ended.
    StepChecked {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Object.
        key: ObjectKey,
        /// What the server says.
        result: Result<(), Problem>,
    },
    /// One step of an operation ended.
    StepApplied {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Object.
        key: ObjectKey,
        /// Answer.
        result: Result<Applied, Problem>,
    },
    /// A delete was accepted (`true`: it is already gone).
    StepDeleted {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Object.
        key: ObjectKey,
        /// Answer.
        result: Result<bool, Problem>,
    },
    /// A revert ended.
    Reverted {
        /// Application.
        app: AppKey,
        /// Object.
        key: ObjectKey,
        /// The object as it was when the drift was seen; `None` when it was gone.
        before: Option<Arc<Object>>,
        /// Answer.
        result: Result<Applied, Problem>,
    },
    /// A commit is on disk, or is not.
    Committed {
        /// Number of the commit.
        ticket: u64,
        /// Disk full and the like.
        result: Result<(), Problem>,
    },
    /// A person or script asks. The shell answers them from the outcome in `Effect::Answer`.
    Requested {
        /// Application.
        app: AppKey,
        /// What.
        request: Request,
        /// Ticket of the one who waits.
        ticket: u64,
    },
    /// End: start nothing new.
    Shutdown,
}

/// Digest of a plan's deletions: what a person confirms.
pub type Token = String;

/// Which render an event or effect speaks of.
pub type RenderId = Digest;
