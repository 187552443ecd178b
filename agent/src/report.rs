//! Telling people: a log line and, where an object is concerned, a Kubernetes event.

use std::sync::Arc;

use pintle_core::diff;
use pintle_core::engine::effect::Report;
use pintle_core::engine::record::Phase;
use pintle_model::{Object, ObjectKey};

use crate::cluster::{Cluster, EventRecord};

/// Logs a report and returns the event to be written on the object, if one is due.
pub fn tell(report: Report, mask_key: &[u8]) -> Option<EventRecord> {
    match report {
        Report::DriftReverted { app, object, key, differences, recreated, took_ms } => {
            let mut differences = differences;
            if object.is_secret() {
                diff::mask(&mut differences, mask_key);
            }
            let what: Vec<String> = differences.iter().map(diff::describe).collect();
            let what =
                if recreated { "it was gone and was created again".to_owned() } else { what.join("; ") };
            tracing::info!(%app, object = %key, took_ms, "drift reverted: {what}");
            Some(event(
                &key,
                &object,
                "Normal",
                "DriftReverted",
                "Revert",
                format!("{what} (application {app})"),
            ))
        }
        Report::Reowned { app, key } => {
            tracing::info!(%app, object = %key, "ownership of fields taken back; their values were right");
            None
        }
        Report::RevertFailed { app, key, problem } => {
            tracing::warn!(%app, object = %key, reason = %problem.reason, "drift cannot be reverted: {problem}");
            None
        }
        Report::DriftSeen { app, key, object } => {
            tracing::warn!(%app, object = %key, "drift: somebody changed it; selfHeal is off");
            object.map(|object| {
                let text = format!("fields that git sets were changed; selfHeal of application {app} is off");
                event(&key, &object, "Warning", "DriftDetected", "Compare", text)
            })
        }
        Report::OperationStarted { app, revision, by, steps } => {
            tracing::info!(%app, %revision, by, steps, "sync started");
            None
        }
        Report::OperationCompleted { app, revision, phase, message } => {
            if phase == Phase::Succeeded {
                tracing::info!(%app, %revision, "sync succeeded: {message}");
            } else {
                tracing::warn!(%app, %revision, ?phase, "sync did not succeed: {message}");
            }
            None
        }
        Report::Note { app, text, warning } => {
            match (app, warning) {
                (Some(app), true) => tracing::warn!(%app, "{text}"),
                (Some(app), false) => tracing::info!(%app, "{text}"),
                (None, true) => tracing::warn!("{text}"),
                (None, false) => tracing::info!("{text}"),
            }
            None
        }
    }
}

fn event(
    key: &ObjectKey,
    object: &Arc<Object>,
    kind: &'static str,
    reason: &'static str,
    action: &'static str,
    message: String,
) -> EventRecord {
    EventRecord {
        api_version: object.api_version().to_owned(),
        key: key.clone(),
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
        kind: kind.to_owned(),
        reason: reason.to_owned(),
        action: action.to_owned(),
        message,
    }
}

/// Writes an event. A lost event is no fault of the agent's work: it is logged and forgotten.
pub async fn write(cluster: &Cluster, record: EventRecord) {
    if let Err(failure) = cluster.create_event(&record).await {
        tracing::debug!(object = %record.key, "the event was not written: {}", failure.problem);
    }
}
