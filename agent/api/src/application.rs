//! An Application as Argo CD shows it: metadata, the spec as given, and status.
//!
//! Names, enumerations and nesting are those of `argoproj.io/v1alpha1`, so that scripts and dashboards written
//! for `argocd app get -o json` work. Fields that only Pintle has (`observedAt`, `operationState.id`) are marked.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::Document;
use crate::history::HistoryEntry;
use crate::operation::OperationState;

/// An Application.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// Name, namespace, labels, annotations.
    pub metadata: Metadata,
    /// The spec as it was written.
    #[serde(default)]
    pub spec: Value,
    /// What is known about it.
    #[serde(default)]
    pub status: ApplicationStatus,
}

impl Document for Application {
    const API_VERSION: &'static str = crate::ARGO_V1ALPHA1;
    const KIND: &'static str = "Application";
}

/// `metadata`, as far as a file or a render gives it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationStatus {
    /// Does the cluster equal git?
    pub sync: SyncState,
    /// Does it work?
    pub health: ResourceHealth,
    /// Every object of the application.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStatus>,
    /// The operation that runs, or the last one that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_state: Option<OperationState>,
    /// Earlier deployments, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// What a person should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When git and cluster were last compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciled_at: Option<Timestamp>,
    /// When the cluster was last seen (Pintle's; a status older than 5 min is stale).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// Images and the like.
    pub summary: Summary,
    /// `Directory`, `Kustomize`, `Helm`, `Plugin`; empty before the first render.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_type: String,
    /// The agent's namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub controller_namespace: String,
}

/// `status.sync`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncState {
    /// The verdict.
    pub status: SyncStatus,
    /// Resolved revision that was compared; empty before the first render.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Source and destination that were compared: `{source, destination}` as in the spec.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub compared_to: Value,
}

/// Does the cluster equal git?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum SyncStatus {
    /// Not known (yet).
    #[default]
    Unknown,
    /// Equal.
    Synced,
    /// Different.
    OutOfSync,
}

/// Does it work? Also the application's health.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceHealth {
    /// The verdict.
    pub status: HealthStatus,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the verdict last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// Argo CD's health words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum HealthStatus {
    /// Not known (yet).
    #[default]
    Unknown,
    /// Works.
    Healthy,
    /// On its way.
    Progressing,
    /// Stopped by a person.
    Suspended,
    /// Broken.
    Degraded,
    /// Not there.
    Missing,
}

/// One object of `status.resources`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceStatus {
    /// API group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version without the group.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Does it equal git? None for a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SyncStatus>,
    /// Health; none where the kind has no health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<ResourceHealth>,
    /// Git no longer has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_pruning: bool,
    /// Is it a hook?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hook: bool,
    /// Its sync wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_wave: Option<i64>,
}

/// A condition: Argo CD's types and Pintle's (`Pinned`, `Detached`, `PruneRefused`, ...).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// For a person.
    #[serde(default)]
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// `status.summary`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Images of all workloads, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}

/// Several applications.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationList {
    /// The applications, by namespace and name. Each carries `apiVersion` and `kind` on the wire too.
    #[serde(with = "items")]
    pub items: Vec<Application>,
}

impl Document for ApplicationList {
    const API_VERSION: &'static str = crate::ARGO_V1ALPHA1;
    const KIND: &'static str = "ApplicationList";
}

/// Items of a list with their own `apiVersion` and `kind`, as kubectl prints lists.
mod items {
    use serde::ser::SerializeSeq;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Application;
    use crate::document::Document;

    pub(super) fn serialize<S: Serializer>(items: &[Application], serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(items.len()))?;
        for item in items {
            sequence.serialize_element(&item.to_document())?;
        }
        sequence.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Application>, D::Error> {
        Vec::deserialize(deserializer)
    }
}

impl Application {
    /// `namespace/name`.
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// The string at a path of the spec; empty where there is none.
    pub fn spec_text(&self, path: &[&str]) -> &str {
        path.iter().try_fold(&self.spec, |value, key| value.get(*key)).and_then(Value::as_str).unwrap_or("")
    }

    /// `spec.project`; `default` when empty, as in Argo CD.
    pub fn project(&self) -> &str {
        Some(self.spec_text(&["project"])).filter(|text| !text.is_empty()).unwrap_or("default")
    }

    /// The sources: `spec.sources`, else `spec.source` alone.
    pub fn sources(&self) -> Vec<&Value> {
        match self.spec.get("sources").and_then(Value::as_array) {
            Some(sources) if !sources.is_empty() => sources.iter().collect(),
            _ => self.spec.get("source").into_iter().collect(),
        }
    }

    /// Is automated sync on? `automated: {}` is on, `enabled: false` is off.
    pub fn automated(&self) -> Option<&Value> {
        let automated = self.spec.get("syncPolicy")?.get("automated").filter(|value| value.is_object())?;
        (automated.get("enabled") != Some(&Value::Bool(false))).then_some(automated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_has_argo_cds_names() {
        let application = Application {
            metadata: Metadata { name: "shop".into(), namespace: "argocd".into(), ..Metadata::default() },
            spec: json!({"project": "default"}),
            status: ApplicationStatus {
                sync: SyncState { status: SyncStatus::OutOfSync, ..SyncState::default() },
                resources: vec![ResourceStatus {
                    version: "v1".into(),
                    kind: "Service".into(),
                    name: "web".into(),
                    requires_pruning: true,
                    ..ResourceStatus::default()
                }],
                conditions: vec![Condition {
                    kind: "Pinned".into(),
                    message: "git wants 1234567".into(),
                    last_transition_time: None,
                }],
                source_type: "Directory".into(),
                ..ApplicationStatus::default()
            },
        };
        assert_eq!(
            application.to_document(),
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "shop", "namespace": "argocd"},
                "spec": {"project": "default"},
                "status": {
                    "sync": {"status": "OutOfSync"},
                    "health": {"status": "Unknown"},
                    "resources": [{"version": "v1", "kind": "Service", "name": "web", "requiresPruning": true}],
                    "conditions": [{"type": "Pinned", "message": "git wants 1234567"}],
                    "summary": {},
                    "sourceType": "Directory",
                },
            })
        );
    }

    #[test]
    fn items_of_a_list_are_whole_documents() {
        let list = ApplicationList { items: vec![Application::default()] };
        let value = list.to_document();
        assert_eq!(value["items"][0]["kind"], "Application");
        assert_eq!(ApplicationList::from_document(value).unwrap(), list);
    }

    #[test]
    fn automated_is_on_unless_absent_null_or_disabled() {
        let with = |policy: Value| Application { spec: json!({"syncPolicy": policy}), ..Default::default() };
        assert!(with(json!({"automated": {}})).automated().is_some());
        assert!(with(json!({"automated": {"enabled": null}})).automated().is_some());
        assert!(with(json!({"automated": {"enabled": false}})).automated().is_none());
        assert!(with(json!({"automated": null})).automated().is_none());
        assert!(with(json!({})).automated().is_none());
    }
}
