//! The plan: what an operation will do, as a value. `diff`, `sync --dry-run`, history and tests are made from
//! it, and the engine executes it without an opinion of its own.
//!
//! Guarantees: a deletion is planned only for an object in this application's inventory with a recorded UID,
//! that is seen live with that UID and our label, that no other application wants, while the render without it
//! is complete and the discovery of its group is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_model::application::PropagationPolicy;
use pintle_model::{AppKey, Digest, Object, ObjectKey, Reason, names};
use serde::{Deserialize, Serialize};

use crate::adopt::{self, Decision};
use crate::engine::effect::{Apply, Expect};
use crate::engine::record::{Adopted, DesiredEntry, InventoryRecord};
use crate::fields::Verdict;
use crate::order::{self, Tier};

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
#[derive(Debug, Clone, Default)]
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
    /// Prune limits.
    pub limits: PruneLimits,
}

/// How much one plan may delete without a person's word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PruneLimits {
    /// Share of an inventory of ten objects and more, 0 to 1.
    pub max_share: f64,
    /// Objects of a smaller inventory.
    pub max_small: usize,
}

impl Default for PruneLimits {
    fn default() -> Self {
        Self { max_share: 0.5, max_small: 5 }
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
    /// What is wanted.
    pub desired: &'a [DesiredEntry],
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
}

/// Steps that run side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// Wave.
    pub wave: i32,
    /// Steps.
    pub steps: Vec<Step>,
    /// Wait for all of the wave to be healthy before the next stage.
    pub wait_healthy: bool,
    /// Wait for these CustomResourceDefinitions to be Established.
    pub wait_established: bool,
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
    /// Applies, in order.
    pub stages: Vec<Stage>,
    /// Deletions, in order, after the applies.
    pub prunes: Vec<Stage>,
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
        self.stages.iter().chain(&self.prunes).map(|stage| stage.steps.len()).sum()
    }

    /// Nothing to do to the cluster?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every step, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().chain(&self.prunes).flat_map(|stage| &stage.steps)
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
        if !selected(input.options, &entry.key) {
            continue;
        }
        if let Some(step) = apply_step(input, entry, &mut plan) {
            steps.push((wave, step));
        }
    }
    plan.stages = stages(steps);
    plan_prunes(input, &mut plan);
    plan
}

fn selected(options: &Options, key: &ObjectKey) -> bool {
    options.selection.is_empty() || options.selection.contains(key)
}

fn apply_step(input: &Input<'_>, entry: &DesiredEntry, plan: &mut Plan) -> Option<Step> {
    let key = &entry.key;
    match (input.relation)(key) {
        Relation::OwnedBy(other) => {
            if entry.only_create {
                plan.left_alone.push(key.clone());
                return None;
            }
            if entry.fail_on_shared {
                plan.refusals.push(Refusal {
                    key: Some(key.clone()),
                    reason: Reason::SharedResourceWarning,
                    message: format!("{key} belongs to application {other}, and FailOnSharedResource is set"),
                });
            }
            plan.shared.push((key.clone(), other));
            return None;
        }
        Relation::LeftBy(other) => plan.take.push((key.clone(), other)),
        Relation::None | Relation::WantedBy(_) => {}
    }
    let known = (input.known)(key);
    if let Some(found) = input.found.get(key)
        && known
            .as_ref()
            .is_none_or(|known| known.record.uid.is_none() || known.sighting == Sighting::Foreign)
    {
        return found_step(input, entry, found, plan);
    }
    match known {
        Some(known) => known_step(input, entry, &known),
        None => {
            Some(step(entry, Action::Create, "it does not exist", Expect::Absent, Adopted::No, entry.adopt))
        }
    }
}

/// An object that exists and is not (or not with this UID) in the inventory.
fn found_step(input: &Input<'_>, entry: &DesiredEntry, found: &Object, plan: &mut Plan) -> Option<Step> {
    let key = &entry.key;
    let uid: Arc<str> = found.uid().into();
    let tracking_id = key.tracking_id(&input.app.to_string());
    let take_over = entry.adopt || input.options.adopt;
    match adopt::decide(Some(found), input.part_of, &tracking_id, &input.agent, take_over) {
        Decision::Update(_) => {
            plan.regained.push((key.clone(), uid.clone()));
            let adopted = adopt::adopted_mark(found);
            let reason = "it is ours; its record was lost or another application had it";
            Some(step(entry, Action::Update, reason, Expect::Uid(uid), adopted, false))
        }
        Decision::Refuse(_) | Decision::Adopt(_) if entry.only_create => {
            plan.left_alone.push(key.clone());
            None
        }
        Decision::Refuse(mark) => {
            plan.refusals.push(Refusal {
                key: Some(key.clone()),
                reason: Reason::OwnedByAnother,
                message: adopt::refusal(key, &mark),
            });
            None
        }
        Decision::Adopt(_) | Decision::Create => {
            let reason = "it exists and nobody owns it";
            Some(step(entry, Action::Adopt, reason, Expect::Look, Adopted::No, take_over))
        }
    }
}

fn known_step(input: &Input<'_>, entry: &DesiredEntry, known: &Known<'_>) -> Option<Step> {
    let record = known.record;
    let changed = record.manifest != Some(entry.manifest);
    let expect = |record: &InventoryRecord| record.uid.clone().map_or(Expect::Absent, Expect::Uid);
    let update =
        |action, reason| Some(step(entry, action, reason, expect(record), record.adopted, entry.adopt));
    match &known.sighting {
        Sighting::Gone if changed || input.options.revert => {
            Some(step(entry, Action::Create, "it does not exist", Expect::Absent, Adopted::No, entry.adopt))
        }
        Sighting::Gone => None,
        _ if changed && record.uid.is_none() => update(Action::Create, "it does not exist"),
        _ if changed => update(Action::Update, "its manifest changed"),
        Sighting::Present(Verdict::Drifted) if input.options.revert => {
            update(Action::Revert, "somebody changed fields that git sets")
        }
        Sighting::Present(Verdict::Reown) if input.options.revert => {
            update(Action::Revert, "another manager took fields that git sets")
        }
        _ => None,
    }
}

fn step(
    entry: &DesiredEntry,
    action: Action,
    reason: &str,
    expect: Expect,
    adopted: Adopted,
    take_over: bool,
) -> Step {
    Step {
        key: entry.key.clone(),
        action,
        reason: reason.to_owned(),
        apply: Some(Apply {
            key: entry.key.clone(),
            manifest: entry.manifest,
            expect,
            adopted,
            take_over,
            lenient: entry.lenient,
            ignored: entry.ignored.clone(),
        }),
        uid: None,
        propagation: PropagationPolicy::Foreground,
    }
}

/// Sorts steps into stages: wave, then tier; names within a stage in the total order.
fn stages(mut steps: Vec<(i32, Step)>) -> Vec<Stage> {
    steps.sort_by(|(wave_a, a), (wave_b, b)| (wave_a, tier_of(a), &a.key).cmp(&(wave_b, tier_of(b), &b.key)));
    let several_waves = steps.first().map(|first| first.0) != steps.last().map(|last| last.0);
    let mut stages: Vec<Stage> = Vec::new();
    let mut current: Option<(i32, Tier)> = None;
    for (wave, step) in steps {
        let at = (wave, tier_of(&step));
        if current != Some(at) {
            if let (Some((last, _)), Some(stage)) = (current, stages.last_mut())
                && last != wave
            {
                stage.wait_healthy = true;
            }
            stages.push(Stage { wave, wait_established: at.1 == Tier::Definitions, ..Stage::default() });
            current = Some(at);
        }
        if let Some(stage) = stages.last_mut() {
            stage.steps.push(step);
        }
    }
    if several_waves && let Some(last) = stages.last_mut() {
        last.wait_healthy = true;
    }
    stages
}

fn tier_of(step: &Step) -> Tier {
    order::tier(&step.key.group, &step.key.kind)
}

fn plan_prunes(input: &Input<'_>, plan: &mut Plan) {
    let wanted: BTreeSet<&ObjectKey> = input.desired.iter().map(|entry| &entry.key).collect();
    let inventory = (input.inventory)();
    let mut candidates = Vec::new();
    for key in inventory.iter().filter(|key| !wanted.contains(key)) {
        let Some(known) = (input.known)(key) else { continue };
        if known.sighting == Sighting::Gone {
            plan.forget.push(key.clone());
            continue;
        }
        if let Relation::WantedBy(other) | Relation::OwnedBy(other) = (input.relation)(key) {
            plan.hand_over.push((key.clone(), other));
            continue;
        }
        if known.record.deleting || !selected(input.options, key) {
            continue;
        }
        if known.record.keep || !input.options.prune {
            plan.kept.push(key.clone());
            continue;
        }
        if let Some(candidate) = candidate(input, key, &known, plan) {
            candidates.push(candidate);
        }
    }
    guard(input, inventory.len(), candidates, plan);
}

struct Candidate {
    wave: i32,
    key: ObjectKey,
    uid: Arc<str>,
    adopted: Adopted,
    propagation: PropagationPolicy,
}

/// Is it proved ours, and may it be judged now?
fn candidate(input: &Input<'_>, key: &ObjectKey, known: &Known<'_>, plan: &mut Plan) -> Option<Candidate> {
    let defer = |plan: &mut Plan, why: &str| {
        plan.deferred.push((key.clone(), why.to_owned()));
        None
    };
    if input.incomplete.contains(&key.group) {
        return defer(plan, &format!("the API group {} does not answer", key.group));
    }
    let Some(uid) = known.record.uid.clone() else {
        return defer(plan, "its UID is not known yet");
    };
    match &known.sighting {
        Sighting::Present(_) => {
            if let Some(why) = &input.barrier {
                return defer(plan, why);
            }
            Some(Candidate {
                wave: known.record.wave,
                key: key.clone(),
                uid,
                adopted: known.record.adopted,
                propagation: known.record.propagation.unwrap_or(PropagationPolicy::Foreground),
            })
        }
        Sighting::Foreign => {
            plan.forget.push(key.clone());
            None
        }
        Sighting::Unseen | Sighting::Gone => {
            defer(plan, "it has not been seen since the agent began to watch")
        }
    }
}

/// The guards on deletions as a whole and one by one. What is refused can be confirmed with the token, except
/// for an empty render (`allowEmpty` is the only way) and objects that are never deleted.
fn guard(input: &Input<'_>, inventory: usize, candidates: Vec<Candidate>, plan: &mut Plan) {
    if candidates.is_empty() {
        return;
    }
    let refuse = |key: Option<&ObjectKey>, message: String| Refusal {
        key: key.cloned(),
        reason: Reason::PruneRefused,
        message,
    };
    if input.desired.is_empty() && !input.options.allow_empty {
        plan.refusals.push(refuse(
            None,
            format!(
                "the render is empty; deleting all {} objects needs syncPolicy.automated.allowEmpty: true",
                candidates.len()
            ),
        ));
        return;
    }
    let token = token(input.app, &candidates);
    let confirmed = input.options.confirm.as_deref() == Some(token.as_str());
    if !confirmed && let Some(message) = too_many(&input.options.limits, inventory, candidates.len()) {
        plan.refusals.push(refuse(None, message));
        plan.token = Some(token);
        return;
    }
    let mut steps = Vec::new();
    for candidate in candidates {
        if let Some(why) = never(&candidate.key, input.agent.namespace) {
            plan.refusals
                .push(refuse(Some(&candidate.key), format!("{} is never deleted: {why}", candidate.key)));
        } else if !confirmed && let Some(why) = protected(&candidate) {
            plan.refusals
                .push(refuse(Some(&candidate.key), format!("{} is not deleted: {why}", candidate.key)));
            plan.token = Some(token.clone());
        } else {
            steps.push(candidate);
        }
    }
    plan.prunes = prune_stages(steps);
}

fn too_many(limits: &PruneLimits, inventory: usize, count: usize) -> Option<String> {
    if inventory >= 10 {
        let share = count as f64 / inventory as f64;
        (share > limits.max_share).then(|| {
            format!(
                "{count} of {inventory} objects would be deleted, more than prune.maxShare ({:.0} %)",
                limits.max_share * 100.0
            )
        })
    } else {
        (count > limits.max_small).then(|| {
            format!(
                "{count} of {inventory} objects would be deleted, more than prune.maxSmall ({})",
                limits.max_small
            )
        })
    }
}

/// What no word of anybody deletes: without these there is no cluster, or no agent that could put things right.
fn never(key: &ObjectKey, agent_namespace: &str) -> Option<&'static str> {
    if key.is("", "Namespace") {
        if key.name.starts_with("kube-") || &*key.name == "default" {
            return Some("it is a namespace of Kubernetes itself");
        }
        return (&*key.name == agent_namespace).then_some("it is the agent's own namespace");
    }
    let own_name = &*key.name == names::OWN_NAME || key.name.starts_with(names::OWN_PREFIX);
    if !own_name {
        return None;
    }
    if &*key.group == "rbac.authorization.k8s.io" && key.namespace.is_empty() {
        return Some("the agent's own rights hang on it");
    }
    if &*key.namespace == agent_namespace {
        return match (&*key.group, &*key.kind) {
            ("rbac.authorization.k8s.io", _) | ("", "ServiceAccount") => {
                Some("the agent's own rights hang on it")
            }
            ("", "ConfigMap") | ("coordination.k8s.io", "Lease") => {
                Some("the agent keeps its own records in it")
            }
            _ => None,
        };
    }
    None
}

fn protected(candidate: &Candidate) -> Option<&'static str> {
    let key = &candidate.key;
    if candidate.adopted == Adopted::Changed {
        return Some("it existed before this application and was changed by it");
    }
    if key.is("", "Namespace") {
        return Some("a namespace takes everything in it along");
    }
    if key.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return Some("a CustomResourceDefinition takes all its resources along");
    }
    if key.is("", "PersistentVolume") || key.is("", "PersistentVolumeClaim") {
        return Some("it holds data");
    }
    None
}

/// Stages of deletions: waves and tiers in reverse, custom resources thus before their definitions and
/// everything before its namespace.
fn prune_stages(mut candidates: Vec<Candidate>) -> Vec<Stage> {
    let at = |candidate: &Candidate| (candidate.wave, order::tier(&candidate.key.group, &candidate.key.kind));
    candidates.sort_by(|a, b| at(b).cmp(&at(a)).then_with(|| b.key.cmp(&a.key)));
    let mut stages: Vec<Stage> = Vec::new();
    let mut current = None;
    for candidate in candidates {
        if current != Some(at(&candidate)) {
            current = Some(at(&candidate));
            stages.push(Stage { wave: candidate.wave, ..Stage::default() });
        }
        if let Some(stage) = stages.last_mut() {
            stage.steps.push(Step {
                key: candidate.key,
                action: Action::Prune,
                reason: "git no longer has it".to_owned(),
                apply: None,
                uid: Some(candidate.uid),
                propagation: candidate.propagation,
            });
        }
    }
    stages
}

/// Digest of the deletions of a plan: the same deletions give the same token.
fn token(app: &AppKey, candidates: &[Candidate]) -> String {
    let mut text: Vec<String> = candidates.iter().map(|c| format!("{} {}", c.key.path(), c.uid)).collect();
    text.sort();
    text.push(app.to_string());
    Digest::of(text.join("\n").as_bytes()).short(8)
}
