//! The plan: what an operation will do, as a value. `diff`, `sync --dry-run`, history and tests are made from
//! it, and the engine executes it without an opinion of its own.
//!
//! Guarantees: a deletion is planned only for an object in this application's inventory with a recorded UID,
//! that is seen live with that UID and our label, that no other application wants, while the render without it
//! is complete and the discovery of its group is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_model::application::PropagationPolicy;
use pintle_model::{AppKey, Digest, Object, ObjectKey, Reason};
use serde::{Deserialize, Serialize};

use crate::adopt;
use crate::engine::effect::Apply;
use crate::engine::record::{DesiredEntry, HookEntry, InventoryRecord};
use crate::fields::Verdict;
use crate::hook::{Phase, Removal};
use crate::order;

mod applies;
mod prunes;
mod stages;
#[cfg(test)]
mod tests;

/// What the engine knows of an object of the inventory.
#[derive(Debug, Clone, PartialEq)]
pub enum Sighting {
    /// Its watch has not delivered yet.
    Unseen,
    /// It is gone.
    Gone,
    /// It is there, with the recorded UID and our label.
    Present(Verdict),
    /// Another object has its name.
    Foreign,
}

/// An object of the inventory, as the plan sees it.
#[derive(Debug, Clone)]
pub struct Known<'a> {
    /// Inventory entry.
    pub record: &'a InventoryRecord,
    /// What is there.
    pub sighting: Sighting,
}

/// Who else has to do with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relation {
    /// Nobody.
    None,
    /// Another application has it in its inventory and wants it.
    OwnedBy(AppKey),
    /// Another application has it in its inventory and no longer wants it.
    LeftBy(AppKey),
    /// Another application wants it and does not own it.
    WantedBy(AppKey),
}

/// What is asked of a plan.
#[derive(Debug, Clone)]
pub struct Options {
    /// Delete what is no longer wanted.
    pub prune: bool,
    /// Put back what differs although its manifest was applied.
    pub revert: bool,
    /// Only these objects; empty means all.
    pub selection: BTreeSet<ObjectKey>,
    /// Token of a plan whose deletions a person confirmed.
    pub confirm: Option<String>,
    /// An empty render may delete everything.
    pub allow_empty: bool,
    /// Take over what others own.
    pub adopt: bool,
    /// Run hooks: not in a selective sync.
    pub hooks: bool,
    /// The application was never synced: Helm's install hooks run, its upgrade hooks do not.
    pub first_sync: bool,
    /// Delete only when everything that was applied is healthy (`PruneLast=true` on the application).
    pub prune_last: bool,
    /// A person approved deletions that want a word (Argo CD's annotation `deletion-approved`).
    pub approved: bool,
    /// How many deletions are left in this hour, of all applications together.
    pub deletions_left: usize,
    /// Prune limits.
    pub limits: PruneLimits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prune: false,
            revert: false,
            selection: BTreeSet::new(),
            confirm: None,
            allow_empty: false,
            adopt: false,
            hooks: true,
            first_sync: false,
            prune_last: false,
            approved: false,
            deletions_left: usize::MAX,
            limits: PruneLimits::default(),
        }
    }
}

/// How much one plan may delete without a person's word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PruneLimits {
    /// Share of an inventory of ten objects and more, 0 to 1.
    pub max_share: f64,
    /// Objects of a smaller inventory.
    pub max_small: usize,
    /// Deletions in an hour, of all applications together.
    pub max_per_hour: usize,
}

impl Default for PruneLimits {
    fn default() -> Self {
        Self { max_share: 0.5, max_small: 5, max_per_hour: 200 }
    }
}

/// Everything a plan is made of.
pub struct Input<'a> {
    /// Application.
    pub app: &'a AppKey,
    /// Who we are.
    pub agent: adopt::Agent<'a>,
    /// ApplySet id of the application.
    pub part_of: &'a str,
    /// Operation that the plan is for; 0 for one that is only looked at. Names of generated hooks hang on it.
    pub operation: u64,
    /// What is wanted.
    pub desired: &'a [DesiredEntry],
    /// Hooks of the render.
    pub hooks: &'a [HookEntry],
    /// Hooks that succeeded in an earlier try of the same render: they are not run again.
    pub hooks_done: &'a BTreeSet<HookDone>,
    /// Short form of the commit, for generated names.
    pub revision: String,
    /// The inventory.
    pub known: &'a dyn Fn(&ObjectKey) -> Option<Known<'a>>,
    /// Keys of the inventory.
    pub inventory: &'a dyn Fn() -> Vec<ObjectKey>,
    /// Objects that exist without being in the inventory.
    pub found: &'a BTreeMap<ObjectKey, Arc<Object>>,
    /// Other applications.
    pub relation: &'a dyn Fn(&ObjectKey) -> Relation,
    /// Why nothing may be deleted yet; `None` when the prune barrier is open.
    pub barrier: Option<String>,
    /// API groups whose discovery is incomplete.
    pub incomplete: &'a BTreeSet<Arc<str>>,
    /// What is asked.
    pub options: &'a Options,
}

/// A hook that succeeded: phase, what the render calls it, and its content.
pub type HookDone = (Phase, ObjectKey, Digest);

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// It does not exist.
    Create,
    /// Its manifest changed.
    Update,
    /// Somebody changed our fields.
    Revert,
    /// It exists without an owner.
    Adopt,
    /// It is deleted.
    Prune,
    /// It is run, and its end awaited.
    Hook,
}

/// What a step of a hook has beside its apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookStep {
    /// Phase.
    pub phase: Phase,
    /// What the render calls it: without the generated part of its name.
    pub wanted: ObjectKey,
    /// Content.
    pub manifest: Digest,
    /// When its object goes.
    pub removal: Vec<Removal>,
    /// It was made before a restart and only has to be awaited.
    pub awaited: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Object.
    pub key: ObjectKey,
    /// What.
    pub action: Action,
    /// Why, for a person.
    pub reason: String,
    /// How (none for a deletion).
    pub apply: Option<Apply>,
    /// UID precondition of a deletion.
    pub uid: Option<Arc<str>>,
    /// How dependents go with a deletion.
    pub propagation: PropagationPolicy,
    /// Of a hook.
    pub hook: Option<HookStep>,
}

/// The parts of an operation, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Part {
    /// Hooks before anything is applied.
    PreSync,
    /// Objects and hooks of the sync.
    #[default]
    Sync,
    /// Deletions.
    Prune,
    /// Deletions that wait until everything applied is healthy.
    PruneLast,
    /// Hooks when everything is healthy.
    PostSync,
    /// Hooks when it failed; no part of the ordinary way.
    SyncFail,
}

/// Steps that run side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// Part.
    pub part: Part,
    /// Wave.
    pub wave: i32,
    /// Steps.
    pub steps: Vec<Step>,
    /// Wait for all of the wave to be healthy before the next stage.
    pub wait_healthy: bool,
    /// Wait for these CustomResourceDefinitions to be Established.
    pub wait_established: bool,
    /// Wait for everything that the render wants to be healthy, whatever its wave.
    pub wait_all: bool,
    /// Wait for everything that is being deleted to be gone.
    pub wait_gone: bool,
}

/// Something that the plan will not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Object; the application as a whole where there is none.
    pub key: Option<ObjectKey>,
    /// Reason.
    pub reason: Reason,
    /// What and why, for a person.
    pub message: String,
}

/// What an operation will do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Stages in the order in which they run.
    pub stages: Vec<Stage>,
    /// Stages that run when one of the others fails.
    pub on_fail: Vec<Stage>,
    /// Refused, by a guard or because of another owner.
    pub refusals: Vec<Refusal>,
    /// Deletions that wait for the prune barrier, or for a watch, with the reason.
    pub deferred: Vec<(ObjectKey, String)>,
    /// Not deleted because of `Prune=false` or because pruning is off.
    pub kept: Vec<ObjectKey>,
    /// Handed to another application.
    pub hand_over: Vec<(ObjectKey, AppKey)>,
    /// Taken from another application that no longer wants it.
    pub take: Vec<(ObjectKey, AppKey)>,
    /// Wanted by us and owned by another application.
    pub shared: Vec<(ObjectKey, AppKey)>,
    /// Only made when absent, and somebody else has made them: left as they are.
    pub left_alone: Vec<ObjectKey>,
    /// Entries that are gone and no longer wanted.
    pub forget: Vec<ObjectKey>,
    /// Objects of ours that were found without their entry: these UIDs are recorded.
    pub regained: Vec<(ObjectKey, Arc<str>)>,
    /// What a person confirms to lift the refusals of deletions.
    pub token: Option<String>,
}

impl Plan {
    /// Number of steps.
    pub fn len(&self) -> usize {
        self.stages.iter().map(|stage| stage.steps.len()).sum()
    }

    /// Nothing to do to the cluster?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every step, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flat_map(|stage| &stage.steps)
    }

    /// The step of an object, also one that runs when the others fail.
    pub fn step(&self, key: &ObjectKey) -> Option<&Step> {
        self.stages.iter().chain(&self.on_fail).flat_map(|stage| &stage.steps).find(|step| step.key == *key)
    }

    /// The stages of deletions.
    pub fn prunes(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| matches!(stage.part, Part::Prune | Part::PruneLast))
    }

    /// The ways of an operation with several steps: (part, wave), each once. Its deadline grows with them.
    pub fn ways(&self) -> usize {
        let ways: BTreeSet<(Part, i32)> =
            self.stages.iter().chain(&self.on_fail).map(|stage| (stage.part, stage.wave)).collect();
        ways.len()
    }

    /// Digest of what it does, to tell after a crash whether it is still the same plan.
    pub fn digest(&self) -> Digest {
        let text: Vec<String> = self
            .steps()
            .map(|step| {
                format!("{:?} {} {:?}", step.action, step.key.path(), step.apply.as_ref().map(|a| a.manifest))
            })
            .collect();
        Digest::of(text.join("\n").as_bytes())
    }
}

/// Makes the plan.
pub fn make(input: &Input<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut steps = Vec::new();
    let waves = order::effective_waves(input.desired);
    for (entry, wave) in input.desired.iter().zip(waves) {
        if !is_selected(input.options, &entry.key) {
            continue;
        }
        if let Some(step) = applies::step_for(input, entry, &mut plan) {
            steps.push((Part::Sync, wave, step));
        }
    }
    let mut on_fail = Vec::new();
    if input.options.hooks && input.options.selection.is_empty() {
        for (part, wave, step) in applies::hook_steps(input) {
            if part == Part::SyncFail {
                on_fail.push((part, wave, step));
            } else {
                steps.push((part, wave, step));
            }
        }
    }
    stages::before_hooks(&mut steps);
    let deletions = prunes::plan(input, &mut plan);
    let works = !steps.is_empty() || !deletions.is_empty();
    plan.stages = stages::order(steps, deletions);
    // Hooks alone are no reason for an operation that has nothing else to do and nobody asked for; see `is_empty`.
    if works {
        plan.on_fail = stages::order(on_fail, Vec::new());
    }
    plan
}

/// Makes the plan of the deletion of an application with its objects: PreDelete hooks, the deletions, and when all is
/// gone PostDelete hooks. The token stands for the whole plan; objects that are never deleted stay even so.
pub fn cascade(input: &Input<'_>) -> Plan {
    let mut plan = Plan::default();
    let (before, after) = applies::delete_hooks(input);
    let deletions = prunes::cascade(input, &mut plan);
    plan.stages = stages::order(before, Vec::new());
    plan.stages.extend(deletions);
    let last = stages::order(after, Vec::new());
    plan.stages.push(Stage { part: Part::PruneLast, wait_gone: true, ..Stage::default() });
    plan.stages.extend(last);
    plan
}

fn is_selected(options: &Options, key: &ObjectKey) -> bool {
    options.selection.is_empty() || options.selection.contains(key)
}
