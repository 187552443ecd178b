//! Everything that the engine wants done. The pipeline does it and feeds back events.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_model::application::Application;
use pintle_model::{AppKey, Digest, GroupKind, Object, ObjectKey, Problem, Revision};

use super::event::RefKey;
use super::record::{Adopted, ApplyWay, Pause, Pin, Write};
use crate::diff::Difference;
use crate::fields::OwnedSet;
use crate::plan::Plan;

/// How an object is expected to be when it is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Not there, as a look just before said: applied without another look. Should it be there after all, the
    /// answer says so (HTTP 200 instead of 201).
    Absent,
    /// Unknown: looked at first, then created, adopted, or left to its owner.
    Look,
    /// There with this UID: the apply carries it, so that another object of that name is not touched.
    Uid(Arc<str>),
}

/// One server-side apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// Object.
    pub key: ObjectKey,
    /// Payload in the store.
    pub manifest: Digest,
    /// What is there.
    pub expect: Expect,
    /// Mark that the payload carries when the object was there before us.
    pub adopted: Adopted,
    /// Take it over although another owner's mark is on it.
    pub take_over: bool,
    /// `Validate=false`: the server drops fields that it does not know.
    pub lenient: bool,
    /// Ignored fields: released if we own them, then left out.
    pub ignored: Vec<String>,
    /// Applied, replaced or made anew.
    pub way: ApplyWay,
    /// At adoption the fields of earlier tools become ours.
    pub migrate: bool,
    /// Of a hook.
    pub hook: Option<HookApply>,
}

/// What the apply of a hook has beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookApply {
    /// Operation, for the mark on its object.
    pub operation: u64,
    /// An object of its name from an earlier operation goes first. One that has ended goes in any case: it cannot run
    /// again.
    pub recreate: bool,
}

/// The ApplySet parent of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct Parent {
    /// Application.
    pub app: AppKey,
    /// Kinds of its members.
    pub group_kinds: BTreeSet<GroupKind>,
    /// Namespaces of its members.
    pub namespaces: BTreeSet<Arc<str>>,
    /// A rollback that holds.
    pub pin: Option<Pin>,
    /// A pause.
    pub pause: Option<Pause>,
    /// `Prune=false` on the application: a rebuilt inventory keeps what left git.
    pub keep: bool,
    /// The application was forgotten and its objects stay: a lost store does not bring it back.
    pub orphaned: bool,
}

/// Something to tell people: log line, Kubernetes event, metric.
#[derive(Debug, Clone)]
pub enum Report {
    /// Drift was put back.
    DriftReverted {
        /// Application.
        app: AppKey,
        /// The object after the revert.
        object: Arc<Object>,
        /// Object.
        key: ObjectKey,
        /// What differed; empty when the object was gone.
        differences: Vec<Difference>,
        /// It was gone and was created again.
        recreated: bool,
        /// Monotonic milliseconds from the watch event to the accepted apply.
        took_ms: u64,
    },
    /// Values were right but ownership was lost; it was taken back.
    Reowned {
        /// Application.
        app: AppKey,
        /// Object.
        key: ObjectKey,
    },
    /// A revert failed; it is tried again.
    RevertFailed {
        /// Application.
        app: AppKey,
        /// Object.
        key: ObjectKey,
        /// Why.
        problem: Problem,
    },
    /// Drift was seen and is not reverted (selfHeal is off, a hold).
    DriftSeen {
        /// Application.
        app: AppKey,
        /// Object.
        key: ObjectKey,
        /// The object as it is.
        object: Option<Arc<Object>>,
    },
    /// An operation began.
    OperationStarted {
        /// Application.
        app: AppKey,
        /// Commit.
        revision: Revision,
        /// Who.
        by: String,
        /// Steps.
        steps: usize,
    },
    /// An operation ended.
    OperationCompleted {
        /// Application.
        app: AppKey,
        /// Commit.
        revision: Revision,
        /// Argo CD's phase name.
        phase: super::record::Phase,
        /// Summary.
        message: String,
    },
    /// Something else, one line.
    Note {
        /// Application, where it concerns one.
        app: Option<AppKey>,
        /// Text.
        text: String,
        /// It is a fault.
        warning: bool,
    },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Accepted; an operation with this id runs or will run.
    Started(u64),
    /// Done.
    Done(String),
    /// Nothing was done yet: this would be, and the token in it confirms it.
    Planned(Box<Plan>),
}

/// Everything that touches the world.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Ask the git server for a ref: one request.
    Poll(RefKey),
    /// Bring a commit into the cache.
    Fetch(RefKey, Revision),
    /// Render an application at a commit that is in the cache.
    Render {
        /// Application.
        app: AppKey,
        /// Its spec.
        spec: Arc<Application>,
        /// Commit.
        revision: Revision,
        /// Ticket for the answer.
        ticket: u64,
    },
    /// Read a render from the store (a pin's, after a restart or rebuild).
    LoadRender {
        /// Application.
        app: AppKey,
        /// Which.
        render: Digest,
        /// Ticket for the answer (`Rendered` without children).
        ticket: u64,
    },
    /// Connect: check cluster UID and claim, discover kinds. Answered by `ClusterReady` or `ClusterLost`.
    Connect,
    /// Rebuild inventories from the ApplySet parents.
    Rebuild,
    /// These kinds, each in this version, must be watched; others need not be.
    Watch(BTreeSet<(GroupKind, Arc<str>)>),
    /// Look what is at a key.
    Probe(ObjectKey),
    /// Look which of these objects exist.
    Survey {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Objects.
        keys: Vec<(ObjectKey, Arc<str>)>,
    },
    /// Journal and inventory are on disk: write the ApplySet parent. Answered by `Begun`.
    Begin {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// The parent, as it must be before the first create.
        parent: Parent,
    },
    /// Dry-run the apply of one object of an operation.
    Check {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// What.
        apply: Apply,
    },
    /// Delete the object of a hook, by its delete policy. Answered by `Probed`.
    RemoveHook {
        /// Object.
        key: ObjectKey,
        /// Precondition.
        uid: Arc<str>,
    },
    /// Apply one object of an operation.
    Apply {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// What.
        apply: Apply,
    },
    /// Delete one object of an operation.
    Delete {
        /// Application.
        app: AppKey,
        /// Operation.
        op: u64,
        /// Object.
        key: ObjectKey,
        /// Precondition.
        uid: Arc<str>,
        /// `Foreground`, `Background` or `Orphan`.
        propagation: &'static str,
    },
    /// Put an object back.
    Revert {
        /// Application.
        app: AppKey,
        /// What.
        apply: Apply,
        /// As it was when the drift was seen.
        before: Option<Arc<Object>>,
    },
    /// Write to the store, durable. Answered by `Committed`.
    Commit {
        /// Ticket for the answer.
        ticket: u64,
        /// What.
        writes: Vec<Write>,
    },
    /// Write the ApplySet parent (pins); not awaited.
    Parent(Parent),
    /// Tell people.
    Report(Report),
    /// Answer whoever asked.
    Answer {
        /// Ticket of the request.
        ticket: u64,
        /// What to say.
        result: Result<Answer, Problem>,
    },
}

/// An owned set, shared between objects of one shape.
pub type SharedSet = Arc<OwnedSet>;
