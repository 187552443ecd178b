//! Whose is an object? The marks of ownership, ours and others'.

use pintle_model::{Object, ObjectKey, names};

use crate::engine::record::Adopted;

/// The one rule that gives an inventory entry its UID, after a crash or when an inventory is rebuilt: part-of is
/// ours, the tracking id names exactly this object, an Apply entry of our manager exists, and nobody owns it.
pub fn is_ours(object: &Object, part_of: &str, tracking_id: &str) -> bool {
    object.label(names::PART_OF_LABEL) == Some(part_of)
        && object.annotation(names::TRACKING_ANNOTATION) == Some(tracking_id)
        && has_our_apply_entry(object)
        && !has_owner_references(object)
}

/// Who we are.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'a> {
    /// Agent id.
    pub id: &'a str,
    /// Namespace of the agent's own objects.
    pub namespace: &'a str,
}

/// What to do with a wanted object that is not in the inventory, after a look at the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is not there: create it.
    Create,
    /// It is ours; only its record was lost: apply it with this UID.
    Update(String),
    /// Nobody owns it, or it may be taken over: adopt it.
    Adopt(String),
    /// It has another owner: leave it alone, for this reason.
    Refuse(String),
}

/// Decides about an object that was looked at just before its first apply.
pub fn decide(
    found: Option<&Object>,
    part_of: &str,
    tracking_id: &str,
    agent: &Agent<'_>,
    take_over: bool,
) -> Decision {
    let Some(found) = found else { return Decision::Create };
    let uid = found.uid().to_owned();
    if is_ours(found, part_of, tracking_id) || is_left_behind(found, agent) {
        return Decision::Update(uid);
    }
    match owner_mark(found, agent) {
        Some(mark) if !take_over => Decision::Refuse(mark),
        _ => Decision::Adopt(uid),
    }
}

/// The mark of an earlier adoption, as it stands on the live object.
pub fn adopted_mark(found: &Object) -> Adopted {
    match found.annotation(names::ADOPTED_ANNOTATION) {
        Some("equal") => Adopted::Equal,
        Some(_) => Adopted::Changed,
        None => Adopted::No,
    }
}

/// Is there a managedFields entry of our manager with operation Apply?
pub fn has_our_apply_entry(object: &Object) -> bool {
    object.at(&["metadata", "managedFields"]).and_then(serde_json::Value::as_array).is_some_and(|entries| {
        entries.iter().any(|entry| {
            entry["manager"] == names::FIELD_MANAGER
                && entry["operation"] == "Apply"
                && entry["subresource"].is_null()
        })
    })
}

/// The mark of another owner on a live object, as a person would name it; `None` if it has none.
///
/// Objects that another application of this agent left behind may be taken over. Where somebody removed the agent
/// label, the ApplySet and the tracking id tell: one agent claims a cluster, so a pair that fits is of this one.
/// The label `app.kubernetes.io/managed-by: Helm` alone is no mark: many charts print it into plain manifests.
pub fn owner_mark(object: &Object, agent: &Agent<'_>) -> Option<String> {
    if let Some(references) =
        object.at(&["metadata", "ownerReferences"]).and_then(serde_json::Value::as_array)
        && let Some(first) = references.first()
    {
        return Some(format!(
            "it is owned by {} {} (ownerReferences)",
            first["kind"].as_str().unwrap_or("another object"),
            first["name"].as_str().unwrap_or_default()
        ));
    }
    if let Some(other) = object.label(names::AGENT_LABEL)
        && other != agent.id
    {
        return Some(format!("it belongs to the Pintle agent {other}"));
    }
    if object.label(names::AGENT_LABEL).is_none()
        && let Some(set) = object.label(names::PART_OF_LABEL)
        && left_by(object, agent).as_deref() != Some(set)
    {
        return Some(format!("it belongs to the ApplySet {set}"));
    }
    let annotated =
        [(names::HELM_RELEASE_NAME, "the Helm release"), (names::ARGOCD_TRACKING_ANNOTATION, "Argo CD's")];
    for (name, what) in annotated {
        if let Some(value) = object.annotation(name) {
            return Some(format!("it belongs to {what} {value}"));
        }
    }
    let labelled =
        [(names::FLUX_KUSTOMIZE_NAME, "Flux's Kustomization"), (names::FLUX_HELM_NAME, "Flux's HelmRelease")];
    for (name, what) in labelled {
        if let Some(value) = object.label(name).or_else(|| object.annotation(name)) {
            return Some(format!("it belongs to {what} {value}"));
        }
    }
    None
}

/// Did another application of this agent make it (moved in git, or its application was forgotten)? Then it is taken
/// over as ours, and is no adoption of somebody else's object.
fn is_left_behind(object: &Object, agent: &Agent<'_>) -> bool {
    object.label(names::AGENT_LABEL).is_none_or(|id| id == agent.id)
        && object.label(names::PART_OF_LABEL).is_some()
        && left_by(object, agent).as_deref() == object.label(names::PART_OF_LABEL)
        && has_our_apply_entry(object)
        && !has_owner_references(object)
}

/// The ApplySet id that belongs to the application named in the tracking id.
fn left_by(object: &Object, agent: &Agent<'_>) -> Option<String> {
    let (app, _) = object.annotation(names::TRACKING_ANNOTATION)?.split_once(':')?;
    Some(crate::identity::applyset_id(agent.namespace, &app.parse().ok()?))
}

/// Does another manager than ours hold fields of it (status apart)? An object that only we ever wrote is ours, even
/// when the answer to its creation was lost and a second try found it there.
pub fn has_foreign_fields(object: &Object) -> bool {
    object.at(&["metadata", "managedFields"]).and_then(serde_json::Value::as_array).is_some_and(|entries| {
        entries.iter().any(|entry| {
            entry["manager"] != names::FIELD_MANAGER
                && entry["subresource"].as_str().unwrap_or_default().is_empty()
        })
    })
}

/// Is it made and owned by another object?
pub fn has_owner_references(object: &Object) -> bool {
    object
        .at(&["metadata", "ownerReferences"])
        .and_then(serde_json::Value::as_array)
        .is_some_and(|references| !references.is_empty())
}

/// The name of an object, for messages about `key`.
pub fn refusal(key: &ObjectKey, mark: &str) -> String {
    format!("{key} exists and {mark}; it is left alone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ME: Agent<'_> = Agent { id: "me", namespace: "pintle-system" };

    fn object(metadata: Value) -> Object {
        Object::try_from(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
    }

    #[test]
    fn every_owners_mark_is_named() {
        let marked = [
            (json!({"annotations": {"meta.helm.sh/release-name": "shop"}}), "Helm release shop"),
            (json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}), "Kustomization apps"),
            (json!({"labels": {"helm.toolkit.fluxcd.io/name": "db"}}), "HelmRelease db"),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:a/b"}}),
                "Argo CD's shop",
            ),
            (json!({"labels": {"applyset.kubernetes.io/part-of": "applyset-x"}}), "ApplySet applyset-x"),
            (json!({"labels": {"pintle.dev/agent": "other"}}), "agent other"),
            (json!({"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1"}]}), "ReplicaSet web-1"),
        ];
        for (metadata, wanted) in marked {
            let mark = owner_mark(&object(metadata), &ME).unwrap_or_default();
            assert!(mark.contains(wanted), "{mark}");
        }
    }

    #[test]
    fn managed_by_helm_alone_is_no_mark() {
        assert_eq!(
            owner_mark(&object(json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}})), &ME),
            None
        );
    }

    #[test]
    fn what_another_application_of_this_agent_left_may_be_taken_over() {
        let labels =
            json!({"labels": {"pintle.dev/agent": "me", "applyset.kubernetes.io/part-of": "applyset-gone"}});
        assert_eq!(owner_mark(&object(labels), &ME), None);
    }

    #[test]
    fn ours_needs_all_four_proofs() {
        let proof = |part_of: &str, tracking: &str, operation: &str, owners: Value| {
            is_ours(
                &object(json!({
                    "labels": {"applyset.kubernetes.io/part-of": part_of},
                    "annotations": {"pintle.dev/tracking-id": tracking},
                    "ownerReferences": owners,
                    "managedFields": [{"manager": "pintle", "operation": operation}],
                })),
                "set",
                "id",
            )
        };
        assert!(proof("set", "id", "Apply", json!([])));
        assert!(!proof("other", "id", "Apply", json!([])));
        assert!(!proof("set", "other", "Apply", json!([])));
        assert!(!proof("set", "id", "Update", json!([])));
        assert!(!proof("set", "id", "Apply", json!([{"kind": "X"}])));
    }
}
