//! Stages: which steps run side by side, in which order, and what is waited for between them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Part, Stage, Step};
use crate::order::{self, Tier};

/// A step with the part and wave it belongs to.
pub(super) type Placed = (Part, i32, Step);

/// Namespaces and CustomResourceDefinitions go before the hooks that need them, also across parts, as in Argo CD.
pub(super) fn before_hooks(steps: &mut [Placed]) {
    let mut namespaces: BTreeMap<String, (Part, i32)> = BTreeMap::new();
    let mut groups: BTreeMap<String, (Part, i32)> = BTreeMap::new();
    let earliest = |map: &mut BTreeMap<String, (Part, i32)>, name: &str, at: (Part, i32)| {
        map.entry(name.to_owned()).and_modify(|known| *known = at.min(*known)).or_insert(at);
    };
    for (part, wave, step) in steps.iter().filter(|(part, ..)| *part == Part::PreSync) {
        earliest(&mut namespaces, &step.key.namespace, (*part, *wave));
        earliest(&mut groups, &step.key.group, (*part, *wave));
    }
    for (part, wave, step) in steps.iter_mut().filter(|(part, ..)| *part == Part::Sync) {
        let needed = match tier_of(step) {
            Tier::Namespaces => namespaces.get(&*step.key.name),
            Tier::Definitions => groups.get(order::defined_group(&step.key)),
            _ => None,
        };
        if let Some((needed_part, needed_wave)) = needed {
            (*part, *wave) = (*needed_part, *needed_wave);
        }
    }
}

/// The stages of applies and hooks, with the deletions between Sync and PostSync.
pub(super) fn order(steps: Vec<Placed>, deletions: Vec<Stage>) -> Vec<Stage> {
    let mut stages = applies(steps);
    let at = stages.iter().position(|stage| stage.part > Part::Prune).unwrap_or(stages.len());
    stages.splice(at..at, deletions);
    stages
}

/// Sorts steps into stages: part, wave, then tier; names within a stage in the total order.
///
/// Argo CD's rule for waiting: only an operation with several waves or phases, or with hooks, waits for health
/// between its steps.
fn applies(mut steps: Vec<Placed>) -> Vec<Stage> {
    steps.sort_by(|(part_a, wave_a, a), (part_b, wave_b, b)| {
        (part_a, wave_a, tier_of(a), &a.key).cmp(&(part_b, wave_b, tier_of(b), &b.key))
    });
    let ways: BTreeSet<(Part, i32)> = steps.iter().map(|(part, wave, _)| (*part, *wave)).collect();
    let waits = ways.len() > 1 || steps.iter().any(|(_, _, step)| step.hook.is_some());
    let mut stages: Vec<Stage> = Vec::new();
    let mut current: Option<(Part, i32, Tier)> = None;
    for (part, wave, step) in steps {
        let at = (part, wave, tier_of(&step));
        if current != Some(at) {
            if let (Some((last_part, last_wave, _)), Some(stage)) = (current, stages.last_mut())
                && (last_part, last_wave) != (part, wave)
            {
                stage.wait_healthy = true;
            }
            stages.push(Stage {
                part,
                wave,
                wait_established: at.2 == Tier::Definitions,
                ..Stage::default()
            });
            current = Some(at);
        }
        if let Some(stage) = stages.last_mut() {
            stage.steps.push(step);
        }
    }
    if waits && let Some(last) = stages.last_mut() {
        last.wait_healthy = true;
    }
    stages
}

fn tier_of(step: &Step) -> Tier {
    order::tier(&step.key.group, &step.key.kind)
}
