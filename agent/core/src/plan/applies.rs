//! Applies: what is done to each wanted object, and to each hook.

use std::sync::Arc;

use pintle_model::application::PropagationPolicy;
use pintle_model::{Object, ObjectKey, Reason};

use super::{Action, HookStep, Input, Known, Part, Plan, Refusal, Relation, Sighting, Step};
use crate::adopt::{self, Decision};
use crate::engine::effect::{Apply, Expect, HookApply};
use crate::engine::record::{Adopted, DesiredEntry, HookEntry, InventoryRecord};
use crate::fields::Verdict;
use crate::hook::{Phase, Removal};

/// The step of one wanted object; what else its look tells goes into the plan.
pub(super) fn step_for(input: &Input<'_>, entry: &DesiredEntry, plan: &mut Plan) -> Option<Step> {
    let key = &entry.key;
    if entry.ignore {
        return None;
    }
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
        Sighting::Present(_) | Sighting::Unseen if entry.only_create => None,
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
            way: entry.way,
            migrate: !entry.no_migration,
            hook: None,
        }),
        uid: None,
        propagation: PropagationPolicy::Foreground,
        hook: None,
    }
}

/// The steps of the hooks that run in this sync, with part and wave.
pub(super) fn hook_steps(input: &Input<'_>) -> Vec<(Part, i32, Step)> {
    let parts = [
        (Phase::PreSync, Part::PreSync),
        (Phase::Sync, Part::Sync),
        (Phase::PostSync, Part::PostSync),
        (Phase::SyncFail, Part::SyncFail),
    ];
    let mut steps = Vec::new();
    for entry in input.hooks {
        for (phase, part) in parts {
            let done = (phase, entry.entry.key.clone(), entry.entry.manifest);
            if entry.hook.runs(phase, input.options.first_sync) && !input.hooks_done.contains(&done) {
                steps.push((part, entry.entry.wave, hook_step(input, entry, phase)));
            }
        }
    }
    steps
}

/// The steps of the hooks that run before and after a deletion of the application.
pub(super) fn delete_hooks(input: &Input<'_>) -> (Vec<(Part, i32, Step)>, Vec<(Part, i32, Step)>) {
    let of = |phase: Phase, part: Part| {
        input
            .hooks
            .iter()
            .filter(|entry| entry.hook.runs(phase, false))
            .map(|entry| (part, entry.entry.wave, hook_step(input, entry, phase)))
            .collect()
    };
    (of(Phase::PreDelete, Part::PreSync), of(Phase::PostDelete, Part::PostSync))
}

fn hook_step(input: &Input<'_>, hook: &HookEntry, phase: Phase) -> Step {
    let entry = &hook.entry;
    let key = if hook.generated { generated(input, &entry.key, phase) } else { entry.key.clone() };
    // Made by this very operation before the agent was restarted: found again by the mark on it, or known to have
    // ended or vanished.
    let awaited = (input.known)(&key).is_some_and(|known| {
        let mark = known.record.hook.as_ref();
        let ours = mark.filter(|mark| mark.operation == input.operation && mark.phase == phase);
        ours.is_some_and(|mark| known.record.uid.is_some() || mark.outcome.is_some())
    });
    Step {
        action: Action::Hook,
        reason: if awaited {
            format!("{phase} hook, made before a restart")
        } else {
            format!("{phase} hook")
        },
        apply: Some(Apply {
            key: key.clone(),
            manifest: entry.manifest,
            expect: Expect::Look,
            adopted: Adopted::No,
            take_over: entry.adopt,
            lenient: entry.lenient,
            ignored: Vec::new(),
            way: entry.way,
            migrate: !entry.no_migration,
            hook: Some(HookApply {
                operation: input.operation,
                recreate: hook.hook.goes(Removal::BeforeHookCreation),
            }),
        }),
        uid: None,
        propagation: PropagationPolicy::Foreground,
        hook: Some(HookStep {
            phase,
            wanted: entry.key.clone(),
            manifest: entry.manifest,
            removal: hook.hook.removal.clone(),
            awaited,
        }),
        key,
    }
}

/// The name of a hook with `generateName`: told from what it is for, so that a restarted agent finds it again.
fn generated(input: &Input<'_>, key: &ObjectKey, phase: Phase) -> ObjectKey {
    let end = format!("{}-{}-{}", input.revision, phase.name().to_ascii_lowercase(), input.operation);
    // 63: what a Job's name may have, since its Pods carry it as a label.
    let start: String = key.name.chars().take(63 - end.len().min(60)).collect();
    ObjectKey::new(&key.group, &key.kind, &key.namespace, &format!("{start}{end}"))
}
