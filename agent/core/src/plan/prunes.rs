//! Deletions: what left git, what is proved ours, and the guards.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_model::application::PropagationPolicy;
use pintle_model::{AppKey, Digest, ObjectKey, Reason, names};

use super::{
    Action, Input, Known, Options, Part, Plan, Refusal, Relation, Sighting, Stage, Step, is_selected,
};
use crate::engine::record::{Adopted, ObjectOptions};
use crate::order;

/// The deletions, in stages; what is refused, deferred, kept or handed over goes into the plan.
pub(super) fn plan(input: &Input<'_>, plan: &mut Plan) -> Vec<Stage> {
    let wanted: BTreeSet<&ObjectKey> = input.desired.iter().map(|entry| &entry.key).collect();
    let inventory = (input.inventory)();
    let mut candidates = Vec::new();
    for key in inventory.iter().filter(|key| !wanted.contains(key)) {
        let Some(known) = (input.known)(key) else { continue };
        // A hook's object goes by its delete policy, not because git does not hold it.
        if known.record.hook.is_some() {
            continue;
        }
        if known.sighting == Sighting::Gone {
            plan.forget.push(key.clone());
            continue;
        }
        if let Relation::WantedBy(other) | Relation::OwnedBy(other) = (input.relation)(key) {
            plan.hand_over.push((key.clone(), other));
            continue;
        }
        if known.record.deleting || !is_selected(input.options, key) {
            continue;
        }
        if known.record.options.keep || !input.options.prune {
            plan.kept.push(key.clone());
            continue;
        }
        if let Some(candidate) = candidate(input, key, &known, plan) {
            candidates.push(candidate);
        }
    }
    guard(input, inventory.len(), candidates, plan)
}

/// Every object of the inventory that is proved ours, that nobody else wants, and that may go with its application.
pub(super) fn cascade(input: &Input<'_>, plan: &mut Plan) -> Vec<Stage> {
    let mut candidates = Vec::new();
    for key in (input.inventory)() {
        let Some(known) = (input.known)(&key) else { continue };
        if known.sighting == Sighting::Gone {
            plan.forget.push(key);
            continue;
        }
        if let Relation::WantedBy(other) | Relation::OwnedBy(other) = (input.relation)(&key) {
            plan.hand_over.push((key, other));
            continue;
        }
        if known.record.deleting {
            continue;
        }
        if known.record.options.stay {
            plan.kept.push(key);
            continue;
        }
        if let Some(why) = never(&key, input.agent.namespace) {
            plan.refusals.push(Refusal {
                key: Some(key.clone()),
                reason: Reason::PruneRefused,
                message: format!("{key} is never deleted: {why}"),
            });
            continue;
        }
        candidates.extend(candidate(input, &key, &known, plan));
    }
    plan.token = Some(token(input.app, &candidates));
    prune_stages(candidates, Part::Prune)
}

struct Candidate {
    wave: i32,
    key: ObjectKey,
    uid: Arc<str>,
    adopted: Adopted,
    options: ObjectOptions,
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
                options: known.record.options,
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
fn guard(input: &Input<'_>, inventory: usize, candidates: Vec<Candidate>, plan: &mut Plan) -> Vec<Stage> {
    if candidates.is_empty() {
        return Vec::new();
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
        return Vec::new();
    }
    let token = token(input.app, &candidates);
    let confirmed = input.options.confirm.as_deref() == Some(token.as_str());
    if !confirmed && let Some(message) = too_many(input.options, inventory, candidates.len()) {
        plan.refusals.push(refuse(None, message));
        plan.token = Some(token);
        return Vec::new();
    }
    let mut steps = Vec::new();
    for candidate in candidates {
        if let Some(why) = never(&candidate.key, input.agent.namespace) {
            plan.refusals
                .push(refuse(Some(&candidate.key), format!("{} is never deleted: {why}", candidate.key)));
        } else if !confirmed && let Some(why) = protected(&candidate, input.options) {
            plan.refusals
                .push(refuse(Some(&candidate.key), format!("{} is not deleted: {why}", candidate.key)));
            plan.token = Some(token.clone());
        } else {
            steps.push(candidate);
        }
    }
    let waits = input.options.prune_last;
    let (last, first): (Vec<Candidate>, Vec<Candidate>) = steps
        .into_iter()
        .partition(|candidate| waits || candidate.options.prune_last || is_replaced(input, &candidate.key));
    let mut stages = prune_stages(first, Part::Prune);
    if !last.is_empty() {
        stages.push(Stage { part: Part::PruneLast, wait_all: true, ..Stage::default() });
        stages.extend(prune_stages(last, Part::PruneLast));
    }
    stages
}

/// A ConfigMap or Secret with a content hash in its name whose successor is in the render: workloads that still roll
/// out refer to it, so that it goes last.
fn is_replaced(input: &Input<'_>, key: &ObjectKey) -> bool {
    if !key.is("", "ConfigMap") && !key.is("", "Secret") {
        return false;
    }
    let Some(stem) = hashed(&key.name) else { return false };
    input.desired.iter().any(|entry| {
        entry.key.kind == key.kind
            && entry.key.namespace == key.namespace
            && hashed(&entry.key.name) == Some(stem)
    })
}

/// The name without its hash: Kustomize's ten characters at the end, as Helm charts and others do it too.
fn hashed(name: &str) -> Option<&str> {
    let (stem, hash) = name.rsplit_once('-')?;
    let looks_so =
        (8..=12).contains(&hash.len()) && hash.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (looks_so && !stem.is_empty()).then_some(stem)
}

fn too_many(options: &Options, inventory: usize, count: usize) -> Option<String> {
    let limits = &options.limits;
    if count > options.deletions_left {
        return Some(format!(
            "{count} objects would be deleted, more than is left of prune.maxPerHour ({}) of all applications",
            limits.max_per_hour
        ));
    }
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

fn protected(candidate: &Candidate, options: &Options) -> Option<&'static str> {
    let key = &candidate.key;
    if candidate.options.confirm_prune && !options.approved {
        return Some("Prune=confirm asks for a person's word");
    }
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
fn prune_stages(mut candidates: Vec<Candidate>, part: Part) -> Vec<Stage> {
    let at = |candidate: &Candidate| (candidate.wave, order::tier(&candidate.key.group, &candidate.key.kind));
    candidates.sort_by(|a, b| at(b).cmp(&at(a)).then_with(|| b.key.cmp(&a.key)));
    let mut stages: Vec<Stage> = Vec::new();
    let mut current = None;
    for candidate in candidates {
        if current != Some(at(&candidate)) {
            current = Some(at(&candidate));
            stages.push(Stage { part, wave: candidate.wave, ..Stage::default() });
        }
        if let Some(stage) = stages.last_mut() {
            stage.steps.push(Step {
                key: candidate.key,
                action: Action::Prune,
                reason: "git no longer has it".to_owned(),
                apply: None,
                uid: Some(candidate.uid),
                propagation: candidate.options.propagation.unwrap_or(PropagationPolicy::Foreground),
                hook: None,
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
