//! Jobs.

use pintle_model::Object;
use serde_json::Value;

use super::{Health, Status, condition, number};

pub(super) fn job(live: &Object) -> Health {
    if let Some(("True", reason, message)) = condition(live, "Failed") {
        return Health::degraded(format!("the job failed: {reason} {message}").trim_end().to_owned());
    }
    if let Some(("True", ..)) = condition(live, "Complete") {
        return Health::healthy();
    }
    if live.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true) {
        return Health::new(Status::Suspended, "the job is suspended");
    }
    Health::progressing(format!("{} pods are active", number(live, &["status", "active"])))
}
