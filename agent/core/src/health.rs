//! Health of live objects: one small function for each kind, then the generic rule.

mod batch;
mod generic;
mod network;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

use pintle_model::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Argo CD's health words, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It works.
    Healthy,
    /// Stopped by a person.
    Suspended,
    /// On its way.
    Progressing,
    /// Not there.
    Missing,
    /// Broken.
    Degraded,
    /// Not known.
    Unknown,
}

/// Health with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The word.
    pub status: Status,
    /// Why; empty where there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Health {
    /// From word and reason.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Healthy, with nothing to say.
    pub fn healthy() -> Self {
        Self::new(Status::Healthy, "")
    }

    pub(crate) fn progressing(message: impl Into<String>) -> Self {
        Self::new(Status::Progressing, message)
    }

    pub(crate) fn degraded(message: impl Into<String>) -> Self {
        Self::new(Status::Degraded, message)
    }
}

/// The health of a live object.
pub fn health(live: &Object) -> Health {
    if live.is_terminating() {
        return Health::progressing(terminating(live));
    }
    match (live.group(), live.kind()) {
        ("apps", "Deployment") => workload::deployment(live),
        ("apps", "StatefulSet") => workload::stateful_set(live),
        ("apps", "DaemonSet") => workload::daemon_set(live),
        ("apps", "ReplicaSet") => workload::replica_set(live),
        ("", "Pod") => workload::pod(live),
        ("batch", "Job") => batch::job(live),
        ("batch", "CronJob") => Health::healthy(),
        ("", "Service") => network::service(live),
        ("networking.k8s.io", "Ingress") => network::ingress(live),
        ("", "PersistentVolumeClaim") => storage::claim(live),
        ("", "Namespace") => Health::healthy(),
        ("autoscaling", "HorizontalPodAutoscaler") => workload::autoscaler(live),
        ("apiregistration.k8s.io", "APIService") => generic::api_service(live),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => generic::definition(live),
        _ => generic::by_conditions(live),
    }
}

/// Why a deletion takes time: finalizers by name.
fn terminating(live: &Object) -> String {
    let finalizers: Vec<&str> = live
        .at(&["metadata", "finalizers"])
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if finalizers.is_empty() {
        "it is being deleted".to_owned()
    } else {
        format!("it is being deleted and waits for the finalizers {}", finalizers.join(", "))
    }
}

/// A number of the status or spec; 0 where there is none.
pub(crate) fn number(live: &Object, path: &[&str]) -> i64 {
    live.at(path).and_then(Value::as_i64).unwrap_or_default()
}

/// `spec.replicas`, which the API defaults to 1.
pub(crate) fn replicas(live: &Object) -> i64 {
    live.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1)
}

/// Has the controller seen the newest spec?
pub(crate) fn is_observed(live: &Object) -> bool {
    match (live.generation(), live.at(&["status", "observedGeneration"]).and_then(Value::as_i64)) {
        (Some(generation), Some(observed)) => observed >= generation,
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// A condition by type: (status, reason, message).
pub(crate) fn condition<'a>(live: &'a Object, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let conditions = live.at(&["status", "conditions"])?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == name)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    Some((text("status"), text("reason"), text("message")))
}
