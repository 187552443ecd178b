//! The order of applying and pruning: a total key, then one explicit pass for what must come before what.

use std::collections::BTreeMap;

use pintle_model::ObjectKey;

use crate::engine::record::DesiredEntry;

/// Groups of kinds that go together; the next tier starts when the one before is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Namespaces: everything else may live in one.
    Namespaces,
    /// CustomResourceDefinitions: waited for until Established, since their resources follow.
    Definitions,
    /// What others refer to at admission: classes, quotas, accounts, RBAC, configuration, volumes.
    Foundations,
    /// Services, workloads and custom resources.
    Workloads,
    /// What can refuse or reroute everything else: admission webhooks and policies, APIServices.
    Gates,
}

/// The tier of a kind.
pub fn tier(group: &str, kind: &str) -> Tier {
    match (group, kind) {
        ("", "Namespace") => Tier::Namespaces,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Tier::Definitions,
        ("scheduling.k8s.io", "PriorityClass")
        | ("storage.k8s.io" | "rbac.authorization.k8s.io" | "policy", _)
        | ("node.k8s.io", "RuntimeClass")
        | ("networking.k8s.io", "IngressClass" | "NetworkPolicy")
        | (
            "",
            "ServiceAccount"
            | "Secret"
            | "ConfigMap"
            | "ResourceQuota"
            | "LimitRange"
            | "PersistentVolume"
            | "PersistentVolumeClaim",
        ) => Tier::Foundations,
        ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Tier::Gates,
        _ => Tier::Workloads,
    }
}

/// The effective wave of every entry: a Namespace is at least as early as what is in it, a
/// CustomResourceDefinition as early as the resources of its group.
pub fn effective_waves(entries: &[DesiredEntry]) -> Vec<i32> {
    let mut first_in_namespace: BTreeMap<&str, i32> = BTreeMap::new();
    let mut first_of_group: BTreeMap<&str, i32> = BTreeMap::new();
    for entry in entries {
        lower(&mut first_of_group, &entry.key.group, entry.wave);
        if !entry.key.namespace.is_empty() {
            lower(&mut first_in_namespace, &entry.key.namespace, entry.wave);
        }
    }
    let earliest =
        |map: &BTreeMap<&str, i32>, name: &str, own: i32| map.get(name).map_or(own, |wave| own.min(*wave));
    entries
        .iter()
        .map(|entry| match tier(&entry.key.group, &entry.key.kind) {
            Tier::Namespaces => earliest(&first_in_namespace, &entry.key.name, entry.wave),
            Tier::Definitions => earliest(&first_of_group, defined_group(&entry.key), entry.wave),
            _ => entry.wave,
        })
        .collect()
}

/// The API group that a CustomResourceDefinition defines: its name is `plural.group`.
pub fn defined_group(key: &ObjectKey) -> &str {
    key.name.split_once('.').map_or("", |(_, group)| group)
}

fn lower<'a>(map: &mut BTreeMap<&'a str, i32>, name: &'a str, wave: i32) {
    map.entry(name).and_modify(|known| *known = wave.min(*known)).or_insert(wave);
}
