//! Workloads: Deployment, StatefulSet, DaemonSet, ReplicaSet, Pod, HorizontalPodAutoscaler.

use pintle_model::Object;
use serde_json::Value;

use super::{Health, Status, condition, is_observed, number, replicas};

pub(super) fn deployment(live: &Object) -> Health {
    if live.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true) {
        return Health::new(Status::Suspended, "the deployment is paused");
    }
    if !is_observed(live) {
        return Health::progressing("the controller has not seen the newest spec yet");
    }
    if let Some((_, "ProgressDeadlineExceeded", message)) = condition(live, "Progressing") {
        return Health::degraded(format!("progress deadline exceeded: {message}"));
    }
    let (wanted, updated) = (replicas(live), number(live, &["status", "updatedReplicas"]));
    if updated < wanted {
        return Health::progressing(format!("{updated} of {wanted} replicas are updated"));
    }
    let total = number(live, &["status", "replicas"]);
    if total > updated {
        return Health::progressing(format!("{} old replicas are still there", total - updated));
    }
    let available = number(live, &["status", "availableReplicas"]);
    if available < wanted {
        return Health::progressing(format!("{available} of {wanted} replicas are available"));
    }
    Health::healthy()
}

/// With OnDelete nothing moves by itself, and below a partition nothing is meant to.
pub(super) fn stateful_set(live: &Object) -> Health {
    if !is_observed(live) {
        return Health::progressing("the controller has not seen the newest spec yet");
    }
    let (wanted, ready) = (replicas(live), number(live, &["status", "readyReplicas"]));
    if ready < wanted {
        return Health::progressing(format!("{ready} of {wanted} pods are ready"));
    }
    if live.text(&["spec", "updateStrategy", "type"]) == "OnDelete" {
        return Health::healthy();
    }
    let partition = number(live, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let updated = number(live, &["status", "updatedReplicas"]);
    if partition > 0 {
        let due = (wanted - partition).max(0);
        if updated < due {
            return Health::progressing(format!("{updated} of {due} pods above the partition are updated"));
        }
        return Health::healthy();
    }
    let update = live.text(&["status", "updateRevision"]);
    if !update.is_empty() && update != live.text(&["status", "currentRevision"]) {
        return Health::progressing(format!("{updated} of {wanted} pods are updated"));
    }
    Health::healthy()
}

pub(super) fn daemon_set(live: &Object) -> Health {
    if !is_observed(live) {
        return Health::progressing("the controller has not seen the newest spec yet");
    }
    let wanted = number(live, &["status", "desiredNumberScheduled"]);
    if live.text(&["spec", "updateStrategy", "type"]) != "OnDelete" {
        let updated = number(live, &["status", "updatedNumberScheduled"]);
        if updated < wanted {
            return Health::progressing(format!("{updated} of {wanted} pods are updated"));
        }
    }
    let available = number(live, &["status", "numberAvailable"]);
    if available < wanted {
        return Health::progressing(format!("{available} of {wanted} pods are available"));
    }
    Health::healthy()
}

pub(super) fn replica_set(live: &Object) -> Health {
    if !is_observed(live) {
        return Health::progressing("the controller has not seen the newest spec yet");
    }
    if let Some(("True", _, message)) = condition(live, "ReplicaFailure") {
        return Health::degraded(message);
    }
    let (wanted, available) = (replicas(live), number(live, &["status", "availableReplicas"]));
    if available < wanted {
        return Health::progressing(format!("{available} of {wanted} replicas are available"));
    }
    Health::healthy()
}

/// Waiting reasons of a container that do not pass by themselves.
const BROKEN: &[&str] = &[
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

pub(super) fn pod(live: &Object) -> Health {
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .filter_map(|name| live.at(&["status", name])?.as_array())
        .flatten();
    for container in containers.clone() {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str().unwrap_or_default();
        if BROKEN.contains(&reason) {
            let message = waiting["message"].as_str().unwrap_or_default();
            return Health::degraded(format!("container {}: {reason} {message}", text(&container["name"])));
        }
    }
    match live.text(&["status", "phase"]) {
        "Succeeded" => Health::healthy(),
        "Failed" => {
            let message = live.text(&["status", "message"]);
            let exit = containers.filter_map(|container| {
                let ended = &container["state"]["terminated"];
                let code = ended["exitCode"].as_i64().filter(|code| *code != 0)?;
                Some(format!("container {} ended with exit code {code}", text(&container["name"])))
            });
            let exits: Vec<String> = exit.collect();
            Health::degraded(if message.is_empty() { exits.join("; ") } else { message.to_owned() })
        }
        "Running" => {
            // A Pod that is meant to end is on its way; one that is meant to stay is healthy when it is ready.
            if matches!(live.text(&["spec", "restartPolicy"]), "Never" | "OnFailure") {
                return Health::progressing("it is running");
            }
            match condition(live, "Ready") {
                Some(("True", ..)) => Health::healthy(),
                _ => Health::progressing("it is running and not ready yet"),
            }
        }
        "Pending" => Health::progressing(
            condition(live, "PodScheduled")
                .filter(|found| found.0 == "False")
                .map_or("it is pending", |found| found.2),
        ),
        phase => Health::new(Status::Unknown, format!("unknown phase {phase:?}")),
    }
}

pub(super) fn autoscaler(live: &Object) -> Health {
    for name in ["AbleToScale", "ScalingActive"] {
        if let Some(("False", reason, message)) = condition(live, name)
            && matches!(
                reason,
                "FailedGetScale" | "FailedUpdateScale" | "InvalidSelector" | "FailedGetResourceMetric"
            )
        {
            return Health::degraded(format!("{reason}: {message}"));
        }
    }
    if live.at(&["status"]).is_none() {
        return Health::progressing("the controller has not looked at it yet");
    }
    Health::healthy()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
