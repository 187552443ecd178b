//! The generic rule by observedGeneration and conditions (the conventions that kstatus and most operators follow),
//! and kinds whose conditions are all that counts.

use pintle_model::Object;
use serde_json::Value;

use super::{Health, condition, is_observed};

pub(super) fn definition(live: &Object) -> Health {
    if let Some(("False", reason, message)) = condition(live, "NamesAccepted") {
        return Health::degraded(format!("its names are not accepted: {reason} {message}"));
    }
    match condition(live, "Established") {
        Some(("True", ..)) => Health::healthy(),
        Some((_, reason, message)) => {
            Health::progressing(format!("it is not established: {reason} {message}"))
        }
        None => Health::progressing("it is not established yet"),
    }
}

pub(super) fn api_service(live: &Object) -> Health {
    match condition(live, "Available") {
        Some(("True", ..)) => Health::healthy(),
        Some((_, reason, message)) => Health::progressing(format!("{reason}: {message}")),
        None => Health::progressing("its availability is not known yet"),
    }
}

/// Conditions that speak of trouble when they are True.
const TROUBLE: &[&str] = &["Stalled", "Failed", "Degraded"];
/// Conditions that speak of work when they are True.
const BUSY: &[&str] = &["Reconciling", "Progressing"];
/// Conditions that speak of success when they are True.
const GOOD: &[&str] = &["Ready", "Available", "Healthy", "Established", "Synced", "Succeeded"];

/// A kind without a status, or without conditions that we know, is healthy once it exists.
pub(super) fn by_conditions(live: &Object) -> Health {
    if live.at(&["status", "conditions"]).and_then(Value::as_array).is_none() {
        return match (live.generation(), live.at(&["status", "observedGeneration"]).and_then(Value::as_i64)) {
            (Some(generation), Some(observed)) if observed < generation => {
                Health::progressing("the controller has not seen the newest spec yet")
            }
            _ => Health::healthy(),
        };
    }
    let observes = live.at(&["status", "observedGeneration"]).is_some();
    if observes && !is_observed(live) {
        return Health::progressing("the controller has not seen the newest spec yet");
    }
    for name in TROUBLE {
        if let Some(("True", reason, message)) = condition(live, name) {
            return Health::degraded(format!("{name}: {reason} {message}").trim_end().to_owned());
        }
    }
    for name in BUSY {
        if let Some(("True", reason, message)) = condition(live, name) {
            return Health::progressing(format!("{name}: {reason} {message}").trim_end().to_owned());
        }
    }
    for name in GOOD {
        match condition(live, name) {
            Some(("False", reason, message)) => {
                return Health::degraded(format!("not {name}: {reason} {message}").trim_end().to_owned());
            }
            Some(("Unknown", reason, message)) => {
                return Health::progressing(
                    format!("{name} is not known: {reason} {message}").trim_end().to_owned(),
                );
            }
            _ => {}
        }
    }
    Health::healthy()
}
