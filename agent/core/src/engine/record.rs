//! What the engine keeps on disk. The store encodes, checksums and encrypts these; it knows none of them.
//!
//! Growth rule: a record gains fields only as `Option` or with a serde default, so that an older record reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pintle_model::application::{Application, CompareOptions, Consent, PropagationPolicy, SyncOptions};
use pintle_model::{AppKey, Digest, ObjectKey, Origin, Problem, Revision};
use serde::{Deserialize, Serialize};

use crate::fields::OwnedSet;
use crate::hook::{self, Hook, Outcome, Removal};
use crate::plan::HookDone;

/// One object that a render wants: what the plan needs to know of it; the payload lies in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DesiredEntry {
    /// Identity, with the namespace settled by scope.
    pub key: ObjectKey,
    /// `apiVersion` of the manifest, such as `apps/v1`.
    pub api_version: Arc<str>,
    /// Content address of the payload (git's manifest with our labels and annotations).
    pub manifest: Digest,
    /// Sync wave; 0 unless annotated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wave: i32,
    /// What may be deleted, and how.
    #[serde(default, skip_serializing_if = "is_default")]
    pub options: ObjectOptions,
    /// Applied, replaced, or made anew where it cannot be changed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub way: ApplyWay,
    /// `ClientSideApplyMigration=false`: fields of earlier tools stay theirs at adoption.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_migration: bool,
    /// `pintle.dev/apply: Ignore`: neither applied nor deleted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore: bool,
    /// May an object with another owner's mark be taken over?
    #[serde(default, skip_serializing_if = "is_false")]
    pub adopt: bool,
    /// `Validate=false`: the server drops fields that it does not know.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lenient: bool,
    /// Left out of the application's health.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_health: bool,
    /// Ignored fields (JSON pointers) that the payload carries only when the object is created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Made when it is absent and otherwise left as it is: `pintle.dev/apply: IfNotPresent`, and `CreateNamespace=true`
    /// without metadata of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub only_create: bool,
    /// `FailOnSharedResource` on the object or its application.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fail_on_shared: bool,
    /// Where it stands in the source.
    pub origin: Origin,
}

/// What may be deleted, and how; kept with the inventory, since a deletion comes when git has let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectOptions {
    /// `Prune=false`: kept when git lets go of it.
    #[serde(skip_serializing_if = "is_false")]
    pub keep: bool,
    /// `Prune=confirm`: deleted only with a person's word.
    #[serde(skip_serializing_if = "is_false")]
    pub confirm_prune: bool,
    /// `PruneLast=true`.
    #[serde(skip_serializing_if = "is_false")]
    pub prune_last: bool,
    /// `Delete=false`: stays when its application is deleted.
    #[serde(skip_serializing_if = "is_false")]
    pub stay: bool,
    /// `Delete=confirm`: goes with its application only with a person's word.
    #[serde(skip_serializing_if = "is_false")]
    pub confirm_delete: bool,
    /// `IgnoreExtraneous`: once git no longer has it, the application is not OutOfSync for it.
    #[serde(skip_serializing_if = "is_false")]
    pub ignore_extraneous: bool,
    /// `PrunePropagationPolicy`, where one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagation: Option<PropagationPolicy>,
}

impl ObjectOptions {
    /// From sync and compare options, the object's laid over its application's.
    pub fn new(sync: &SyncOptions, compare: CompareOptions) -> Self {
        Self {
            keep: sync.prune == Some(Consent::False),
            confirm_prune: sync.prune == Some(Consent::Confirm),
            prune_last: sync.prune_last == Some(true),
            stay: sync.delete == Some(Consent::False),
            confirm_delete: sync.delete == Some(Consent::Confirm),
            ignore_extraneous: compare.ignore_extraneous,
            propagation: sync.prune_propagation_policy,
        }
    }
}

/// How a manifest gets to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ApplyWay {
    /// Server-side apply.
    #[default]
    Apply,
    /// `Replace=true`: a PUT, then one server-side apply, so that the owned set stays exact.
    Replace,
    /// `Force=true`: deleted and made anew where an immutable field changed.
    Recreate,
}

/// A hook of a render.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookEntry {
    /// The object, as any other; the name of one with `generateName` is only its beginning.
    pub entry: DesiredEntry,
    /// When it runs and when it goes.
    pub hook: Hook,
    /// `generateName`: every operation makes one with a name of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub generated: bool,
}

/// What an inventory entry knows of a hook's object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookMark {
    /// The operation that made it.
    pub operation: u64,
    /// Its phase.
    pub phase: hook::Phase,
    /// What the render calls it.
    pub wanted: ObjectKey,
    /// Its content.
    pub manifest: Digest,
    /// When its object goes.
    pub removal: Vec<Removal>,
    /// How it ended, once that was seen.
    #[serde(default)]
    pub outcome: Option<Outcome>,
}

/// A render: everything an application wants at one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenderRecord {
    /// Content address over all entries.
    pub id: Digest,
    /// The commit it was made from.
    pub revision: Revision,
    /// The objects, sorted by key, each key once.
    pub objects: Vec<DesiredEntry>,
    /// Its hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookEntry>,
    /// Commit subject and author, for history.
    #[serde(default)]
    pub commit: Option<CommitRecord>,
    /// Warnings of the render.
    #[serde(default)]
    pub warnings: Vec<Problem>,
    /// Namespace that `CreateNamespace` made into an object, if so.
    #[serde(default)]
    pub children: Vec<AppKey>,
}

/// Who committed what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommitRecord {
    /// Author name.
    pub author: String,
    /// First line of the message.
    pub subject: String,
    /// Commit time.
    pub time: Timestamp,
}

/// Was the object there before us?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Adopted {
    /// We created it.
    #[default]
    No,
    /// It was there and already equalled git.
    Equal,
    /// It was there and was changed by our first apply: a later prune needs a person's word.
    Changed,
}

/// One inventory entry: an object that exists, or may exist, because of us.
///
/// Guarantees: written without UID before the first create; removed only after a confirmed delete, a hand-over
/// or an orphaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InventoryRecord {
    /// UID in the cluster, once known.
    pub uid: Option<Arc<str>>,
    /// Payload that was applied last.
    pub manifest: Option<Digest>,
    /// Digest of the owned set right after our apply (the set itself is stored once, by digest).
    pub set: Option<Digest>,
    /// Digest of the object projected on that set.
    pub projection: Option<Digest>,
    /// Was it there before us?
    #[serde(default)]
    pub adopted: Adopted,
    /// What may be deleted, and how, as it was at the last apply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub options: ObjectOptions,
    /// It is the object of a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookMark>,
    /// Wave of the last apply, for the order of pruning.
    #[serde(default)]
    pub wave: i32,
    /// A delete was accepted and is not yet confirmed.
    #[serde(default)]
    pub deleting: bool,
}

/// What started an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trigger {
    /// Automated sync.
    Automated,
    /// A person's or a script's word, with the name of who asked.
    Requested(String),
    /// A rollback to a history entry, by whom.
    Rollback(u64, String),
}

impl Trigger {
    /// For `initiatedBy` and history.
    pub fn who(&self) -> &str {
        match self {
            Self::Automated => "automated",
            Self::Requested(who) | Self::Rollback(_, who) => who,
        }
    }
}

/// Journal of a running operation: written before its first effect, removed at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Operation id, unique in this store.
    pub id: u64,
    /// What started it.
    pub trigger: Trigger,
    /// Render it applies.
    pub render: Digest,
    /// Commit of that render.
    pub revision: Revision,
    /// Digest of the plan: after a crash the plan is made anew, and differs if the world moved.
    pub plan: Digest,
    /// Was pruning asked for?
    pub prune: bool,
    /// Only these objects; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selection: Vec<ObjectKey>,
    /// Token of a plan that a person confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// It deletes the application with its objects.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cascade: bool,
    /// When it began.
    pub started: Timestamp,
}

/// Result codes of one object, Argo CD's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultCode {
    /// Applied.
    Synced,
    /// Failed.
    SyncFailed,
    /// Deleted.
    Pruned,
    /// Not deleted, by a guard or option.
    PruneSkipped,
}

/// What happened to one object in an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectResult {
    /// The object.
    pub key: ObjectKey,
    /// Result code.
    pub code: ResultCode,
    /// `created`, `configured`, `unchanged`, `adopted`, or the error.
    pub message: String,
}

/// How an operation ended, Argo CD's phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Under way.
    Running,
    /// Everything planned was done.
    Succeeded,
    /// Some object failed, or a wait ended.
    Failed,
    /// It could not run at all.
    Error,
    /// Being ended by a person.
    Terminating,
}

/// One finished operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// History id, counted per application from 1.
    pub id: u64,
    /// What started it.
    pub trigger: Trigger,
    /// Commit.
    pub revision: Revision,
    /// Render, kept while the entry is kept.
    pub render: Digest,
    /// How it ended.
    pub phase: Phase,
    /// Summary for a person.
    pub message: String,
    /// Begin.
    pub started: Timestamp,
    /// End.
    pub finished: Timestamp,
    /// Results per object.
    pub results: Vec<ObjectResult>,
    /// Commit subject and author.
    #[serde(default)]
    pub commit: Option<CommitRecord>,
    /// Operation id.
    #[serde(default)]
    pub operation: u64,
    /// Number of tries before this one that failed the same way (their entries are folded into this one).
    #[serde(default)]
    pub retries: u32,
    /// Reverted drift since the entry before this one, newest last, bounded.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A rollback that holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pin {
    /// History entry that was gone back to.
    pub history: u64,
    /// Its render.
    pub render: Digest,
    /// Its commit.
    pub revision: Revision,
    /// The commit that was left.
    pub abandoned: Option<Revision>,
    /// Since when.
    pub since: Timestamp,
    /// Who asked.
    pub by: String,
}

/// A pause: neither automated sync nor selfHeal until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself; none means only by `resume`.
    pub until: Option<Timestamp>,
    /// Why, in the words of who asked.
    pub reason: String,
    /// Who asked.
    pub by: String,
}

/// Where an application comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A file, with the line where it starts.
    File(Origin),
    /// The `bootstrap` setting.
    Bootstrap,
    /// Another application's render, with file and line in its source.
    Parent(AppKey, Origin),
    /// Nowhere yet: its ApplySet parent was found in the cluster after the store was lost, its definition was not.
    Cluster,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(origin) => write!(f, "{origin}"),
            Self::Bootstrap => f.write_str("the bootstrap setting"),
            Self::Parent(app, origin) => write!(f, "application {app}, {origin}"),
            Self::Cluster => {
                f.write_str("the cluster (its definition has not been found since the store was lost)")
            }
        }
    }
}

/// What is kept of an application beside its renders, inventory and history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppRecord {
    /// The Application as it was read, so that it is listed and held when its file is gone.
    pub spec: serde_json::Value,
    /// Where it came from.
    pub place: Place,
    /// Its file or place vanished.
    #[serde(default)]
    pub detached: bool,
    /// Last good render of what git wants.
    #[serde(default)]
    pub render: Option<Digest>,
    /// Digest of the spec that render was made with.
    #[serde(default)]
    pub render_spec: Option<Digest>,
    /// Commit of the last operation that succeeded.
    #[serde(default)]
    pub synced: Option<Revision>,
    /// Render for which the last operation succeeded; automated sync is satisfied with it.
    #[serde(default)]
    pub satisfied: Option<Digest>,
    /// A rollback that holds.
    #[serde(default)]
    pub pin: Option<Pin>,
    /// A pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Last history id given.
    #[serde(default)]
    pub last_history: u64,
    /// Hooks that succeeded in tries of a render that has not succeeded as a whole, with that render.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks_done: Option<HooksDone>,
}

/// Hooks that succeeded, and are not run again by a retry or after a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HooksDone {
    /// Render that they belong to.
    pub render: Digest,
    /// Phase, what the render calls it, content.
    pub hooks: BTreeSet<HookDone>,
}

/// A ref of a repository as it was last resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefRecord {
    /// Commit.
    pub revision: Revision,
    /// When the git server last said so and this was written (written only when it moves).
    pub at: Timestamp,
}

/// Everything that is read at start.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Applications.
    pub apps: BTreeMap<AppKey, AppRecord>,
    /// Specs of the applications, read from their records.
    pub specs: BTreeMap<AppKey, Arc<Application>>,
    /// Renders that applications or pins name.
    pub renders: BTreeMap<Digest, RenderRecord>,
    /// Inventories.
    pub inventory: BTreeMap<AppKey, BTreeMap<ObjectKey, InventoryRecord>>,
    /// Owned sets by digest.
    pub sets: BTreeMap<Digest, OwnedSet>,
    /// Operations that were under way.
    pub operations: BTreeMap<AppKey, OperationRecord>,
    /// Newest history entry of each application.
    pub last: BTreeMap<AppKey, HistoryRecord>,
    /// Refs.
    pub refs: BTreeMap<(String, String), RefRecord>,
    /// Last operation id given.
    pub last_operation: u64,
    /// The mark of [`Write::Rebuilt`] was not there: the inventory must be rebuilt from the cluster before anything is applied or deleted.
    pub fresh: bool,
}

/// One change of the store; a commit is a list of them, written in one batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Application record.
    App(AppKey, Option<AppRecord>),
    /// Inventory entry; `None` removes it.
    Inventory(AppKey, ObjectKey, Option<InventoryRecord>),
    /// An owned set, once by digest.
    Set(Digest, Arc<OwnedSet>),
    /// Journal entry; `None` removes it.
    Operation(AppKey, Option<OperationRecord>),
    /// History entry.
    History(AppKey, HistoryRecord),
    /// History entries to drop.
    DropHistory(AppKey, Vec<u64>),
    /// Ref.
    Ref(String, String, RefRecord),
    /// The inventory has been united with the cluster's: until this is on disk, each start does it again.
    Rebuilt,
    /// Renders and manifests that no application, pin or history entry names any more may go.
    Collect,
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_false(value: &bool) -> bool {
    !*value
}
