//! Hooks: objects that run at a point of a sync instead of being held. Argo CD's annotations, and Helm's mapped to
//! them where an object has none of Argo CD's.

use std::fmt;

use pintle_model::{Object, names};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::health::{self, Status, condition};

#[cfg(test)]
mod tests;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Before anything is applied.
    PreSync,
    /// Together with the objects of its wave.
    Sync,
    /// When everything is applied and healthy.
    PostSync,
    /// When the sync failed.
    SyncFail,
    /// Before the objects of the application are deleted.
    PreDelete,
    /// After they are deleted.
    PostDelete,
}

impl Phase {
    /// Argo CD's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
            Self::PreDelete => "PreDelete",
            Self::PostDelete => "PostDelete",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When a hook's object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Removal {
    /// Before the next one of its name is made. The default.
    BeforeHookCreation,
    /// When it succeeded.
    HookSucceeded,
    /// When it failed.
    HookFailed,
}

/// On which syncs a hook runs: Helm tells a first install from an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum When {
    /// On every sync.
    #[default]
    Always,
    /// `pre-install`, `post-install`: on the first sync of the application only.
    First,
    /// `pre-upgrade`, `post-upgrade`: on every later one.
    Later,
}

/// What an object is a hook for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Its phases, in order, each once, with the syncs they run on.
    pub phases: Vec<(Phase, When)>,
    /// When its object goes, never empty.
    pub removal: Vec<Removal>,
}

impl Hook {
    /// Does it run in a phase of this sync?
    pub fn runs(&self, phase: Phase, first_sync: bool) -> bool {
        self.phases.iter().any(|(known, when)| {
            *known == phase
                && match when {
                    When::Always => true,
                    When::First => first_sync,
                    When::Later => !first_sync,
                }
        })
    }

    /// Is its object to go at this moment?
    pub fn goes(&self, removal: Removal) -> bool {
        self.removal.contains(&removal)
    }
}

/// What an object's annotations make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// An ordinary object.
    Resource,
    /// A hook.
    Hook(Hook),
    /// `Skip`, or a Helm hook that never runs in a sync (`test`, `pre-rollback`): not applied at all.
    Skip,
}

const PHASES: [Phase; 6] =
    [Phase::PreSync, Phase::Sync, Phase::PostSync, Phase::SyncFail, Phase::PreDelete, Phase::PostDelete];
const SKIP: &str = "Skip";

/// Reads the role of an object. Errors name annotation, value and the valid ones.
pub fn role(object: &Object) -> Result<Role, String> {
    if let Some(text) = object.annotation(names::HOOK) {
        return argo(object, text);
    }
    match object.annotation(names::HELM_HOOK) {
        Some(text) => helm(object, text),
        None => Ok(Role::Resource),
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn argo(object: &Object, text: &str) -> Result<Role, String> {
    let mut phases: Vec<(Phase, When)> = Vec::new();
    let mut skip = false;
    for part in parts(text) {
        if part == SKIP {
            skip = true;
            continue;
        }
        let phase = PHASES.into_iter().find(|phase| phase.name() == part).ok_or_else(|| {
            let valid: Vec<&str> = PHASES.iter().map(|phase| phase.name()).chain([SKIP]).collect();
            format!("annotation {}: `{part}` is no hook; valid: {}", names::HOOK, valid.join(", "))
        })?;
        if !phases.iter().any(|(known, _)| *known == phase) {
            phases.push((phase, When::Always));
        }
    }
    if skip {
        return Ok(Role::Skip);
    }
    if phases.is_empty() {
        return Ok(Role::Resource);
    }
    phases.sort_by_key(|(phase, _)| *phase);
    let removal = match object.annotation(names::HOOK_DELETE_POLICY) {
        Some(text) => removal(names::HOOK_DELETE_POLICY, text, &ARGO_REMOVAL)?,
        None => vec![Removal::BeforeHookCreation],
    };
    Ok(Role::Hook(Hook { phases, removal }))
}

const ARGO_REMOVAL: [(&str, Removal); 3] = [
    ("BeforeHookCreation", Removal::BeforeHookCreation),
    ("HookSucceeded", Removal::HookSucceeded),
    ("HookFailed", Removal::HookFailed),
];

const HELM_REMOVAL: [(&str, Removal); 3] = [
    ("before-hook-creation", Removal::BeforeHookCreation),
    ("hook-succeeded", Removal::HookSucceeded),
    ("hook-failed", Removal::HookFailed),
];

fn removal(annotation: &str, text: &str, known: &[(&str, Removal); 3]) -> Result<Vec<Removal>, String> {
    let mut found = Vec::new();
    for part in parts(text) {
        let (_, policy) = known.iter().find(|(name, _)| *name == part).ok_or_else(|| {
            let valid: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            format!("annotation {annotation}: `{part}` is no delete policy; valid: {}", valid.join(", "))
        })?;
        if !found.contains(policy) {
            found.push(*policy);
        }
    }
    if found.is_empty() {
        found.push(Removal::BeforeHookCreation);
    }
    Ok(found)
}

/// Helm's hooks as Argo CD maps them. `crd-install` is an ordinary object; hooks of rollbacks and tests have no
/// place in a sync.
fn helm(object: &Object, text: &str) -> Result<Role, String> {
    let mut phases: Vec<(Phase, When)> = Vec::new();
    let mut add = |phase: Phase, when: When| match phases.iter_mut().find(|(known, _)| *known == phase) {
        // `pre-install,pre-upgrade` is on every sync.
        Some((_, known)) if *known != when => *known = When::Always,
        Some(_) => {}
        None => phases.push((phase, when)),
    };
    for part in parts(text) {
        match part {
            "crd-install" => return Ok(Role::Resource),
            "pre-install" => add(Phase::PreSync, When::First),
            "pre-upgrade" => add(Phase::PreSync, When::Later),
            "post-install" => add(Phase::PostSync, When::First),
            "post-upgrade" => add(Phase::PostSync, When::Later),
            "pre-delete" => add(Phase::PreDelete, When::Always),
            "post-delete" => add(Phase::PostDelete, When::Always),
            "pre-rollback" | "post-rollback" | "test" | "test-success" | "test-failure" => {}
            _ => {
                return Err(format!(
                    "annotation {}: `{part}` is no hook of Helm; valid: pre-install, post-install, pre-upgrade, \
                     post-upgrade, pre-rollback, post-rollback, pre-delete, post-delete, test, crd-install",
                    names::HELM_HOOK
                ));
            }
        }
    }
    if phases.is_empty() {
        return Ok(Role::Skip);
    }
    phases.sort_by_key(|(phase, _)| *phase);
    let removal = match object.annotation(names::HELM_HOOK_DELETE_POLICY) {
        Some(text) => removal(names::HELM_HOOK_DELETE_POLICY, text, &HELM_REMOVAL)?,
        None => vec![Removal::BeforeHookCreation],
    };
    Ok(Role::Hook(Hook { phases, removal }))
}

/// The wave of an object: Argo CD's annotation, else Helm's hook weight, else 0.
pub fn wave(object: &Object) -> Result<i32, String> {
    let found = [names::SYNC_WAVE, names::HELM_HOOK_WEIGHT]
        .into_iter()
        .find_map(|name| object.annotation(name).map(|text| (name, text)));
    match found {
        None => Ok(0),
        Some((name, text)) => text
            .trim()
            .parse()
            .map_err(|_| format!("annotation {name} is {text:?}, which is not a whole number")),
    }
}

/// What a look at a hook's object tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It has not ended, and this is what it is at.
    Running(String),
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed(String),
}

/// The result of a hook, from the last state seen of its object, also of one that is being deleted: a Job that
/// was Complete succeeded, whoever removes it.
pub fn outcome(live: &Object) -> Outcome {
    match (live.group(), live.kind()) {
        ("batch", "Job") => job(live),
        ("", "Pod") => pod(live),
        ("argoproj.io", "Workflow") => workflow(live),
        _ => by_health(live),
    }
}

fn job(live: &Object) -> Outcome {
    if let Some(("True", reason, message)) = condition(live, "Failed") {
        return Outcome::Failed(format!("{reason}: {message}"));
    }
    match condition(live, "Complete") {
        Some(("True", ..)) => Outcome::Succeeded,
        _ if live.is_terminating() => Outcome::Running("it is being deleted".into()),
        _ => Outcome::Running("the Job has not completed".into()),
    }
}

fn pod(live: &Object) -> Outcome {
    match live.text(&["status", "phase"]) {
        "Succeeded" => Outcome::Succeeded,
        "Failed" => Outcome::Failed(health::health(live).message),
        _ => match health::health(live) {
            found if found.status == Status::Degraded => Outcome::Failed(found.message),
            found if found.status == Status::Healthy => Outcome::Succeeded,
            found => Outcome::Running(found.message),
        },
    }
}

fn workflow(live: &Object) -> Outcome {
    let message = live.text(&["status", "message"]);
    match live.text(&["status", "phase"]) {
        "Succeeded" => Outcome::Succeeded,
        "Failed" | "Error" => Outcome::Failed(message.to_owned()),
        _ => Outcome::Running("the Workflow has not ended".into()),
    }
}

/// Everything else has succeeded when it is healthy: a ConfigMap at once, a Deployment when it is rolled out.
fn by_health(live: &Object) -> Outcome {
    let found = health::health(live);
    match found.status {
        Status::Healthy | Status::Suspended => Outcome::Succeeded,
        Status::Degraded => Outcome::Failed(found.message),
        Status::Progressing | Status::Missing | Status::Unknown => Outcome::Running(found.message),
    }
}

/// The operation that made a hook's object, from the mark on it.
pub fn operation_of(live: &Object) -> Option<u64> {
    live.at(&["metadata", "annotations", names::OPERATION_ANNOTATION]).and_then(Value::as_str)?.parse().ok()
}

/// Is a live object one that was made as a hook?
pub fn is_hook(live: &Object) -> bool {
    live.annotation(names::OPERATION_ANNOTATION).is_some()
}
