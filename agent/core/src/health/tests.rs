use pintle_model::Object;
use serde_json::{Value, json};

use super::*;

fn status(api_version: &str, kind: &str, rest: Value) -> Status {
    let mut value =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}});
    for (name, part) in rest.as_object().unwrap() {
        match (value.get_mut(name), part) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
            _ => value[name] = part.clone(),
        }
    }
    health(&Object::try_from(value).unwrap()).status
}

fn deployment(spec: Value, mut state: Value) -> Status {
    state["observedGeneration"] = json!(2);
    status("apps/v1", "Deployment", json!({"spec": spec, "status": state}))
}

#[test]
fn a_deployment_is_healthy_when_every_replica_is_updated_and_available() {
    let ready = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    assert_eq!(deployment(json!({"replicas": 2}), ready.clone()), Status::Healthy);
    assert_eq!(deployment(json!({"replicas": 2, "paused": true}), ready), Status::Suspended);
    assert_eq!(deployment(json!({"replicas": 2}), json!({"updatedReplicas": 1})), Status::Progressing);
    let old = json!({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 3});
    assert_eq!(deployment(json!({"replicas": 2}), old), Status::Progressing);
    let late = json!({"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]});
    assert_eq!(deployment(json!({"replicas": 2}), late), Status::Degraded);
    assert_eq!(
        status("apps/v1", "Deployment", json!({"spec": {}, "status": {"observedGeneration": 1}})),
        Status::Progressing
    );
}

#[test]
fn on_delete_and_partitions_are_not_waited_for() {
    let sets = |spec: Value, mut state: Value| {
        state["observedGeneration"] = json!(2);
        status("apps/v1", "StatefulSet", json!({"spec": spec, "status": state}))
    };
    let moving =
        json!({"readyReplicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
    assert_eq!(sets(json!({"replicas": 3}), moving.clone()), Status::Progressing);
    assert_eq!(
        sets(json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}), moving.clone()),
        Status::Healthy
    );
    let partition = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
    assert_eq!(sets(partition, moving), Status::Healthy);
    let daemons = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"observedGeneration": 2,
        "desiredNumberScheduled": 2, "numberAvailable": 2}});
    assert_eq!(status("apps/v1", "DaemonSet", daemons), Status::Healthy);
}

#[test]
fn a_pod_is_judged_by_phase_readiness_and_what_its_containers_wait_for() {
    let pod =
        |state: Value| status("v1", "Pod", json!({"spec": {"restartPolicy": "Always"}, "status": state}));
    assert_eq!(
        pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})),
        Status::Healthy
    );
    assert_eq!(pod(json!({"phase": "Running"})), Status::Progressing);
    assert_eq!(pod(json!({"phase": "Pending"})), Status::Progressing);
    assert_eq!(pod(json!({"phase": "Succeeded"})), Status::Healthy);
    assert_eq!(pod(json!({"phase": "Failed"})), Status::Degraded);
    let waiting = json!([{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    assert_eq!(pod(json!({"phase": "Running", "containerStatuses": waiting})), Status::Degraded);
}

#[test]
fn jobs_claims_services_definitions_and_unknown_kinds_follow_their_own_rule() {
    let condition =
        |name: &str, value: &str| json!({"status": {"conditions": [{"type": name, "status": value}]}});
    assert_eq!(status("batch/v1", "Job", condition("Complete", "True")), Status::Healthy);
    assert_eq!(status("batch/v1", "Job", condition("Failed", "True")), Status::Degraded);
    assert_eq!(status("batch/v1", "Job", json!({"spec": {"suspend": true}})), Status::Suspended);
    assert_eq!(status("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}})), Status::Healthy);
    assert_eq!(status("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Lost"}})), Status::Degraded);
    assert_eq!(status("v1", "Service", json!({"spec": {"type": "ClusterIP"}})), Status::Healthy);
    assert_eq!(status("v1", "Service", json!({"spec": {"type": "LoadBalancer"}})), Status::Progressing);
    let kind = "CustomResourceDefinition";
    assert_eq!(status("apiextensions.k8s.io/v1", kind, condition("Established", "True")), Status::Healthy);
    assert_eq!(status("apiextensions.k8s.io/v1", kind, json!({})), Status::Progressing);
    assert_eq!(status("x.example/v1", "Thing", json!({})), Status::Healthy);
    assert_eq!(status("x.example/v1", "Thing", condition("Ready", "False")), Status::Degraded);
    assert_eq!(status("x.example/v1", "Thing", condition("Ready", "Unknown")), Status::Progressing);
    assert_eq!(status("x.example/v1", "Thing", condition("Stalled", "True")), Status::Degraded);
    assert_eq!(
        status("x.example/v1", "Thing", json!({"status": {"observedGeneration": 1}})),
        Status::Progressing
    );
}

#[test]
fn what_is_being_deleted_is_progressing_and_names_its_finalizers() {
    let object = Object::try_from(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.example/b"]}}));
    let found = health(&object.unwrap());
    assert_eq!(found.status, Status::Progressing);
    assert!(found.message.contains("a.example/b"));
}
