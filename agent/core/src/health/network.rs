//! Service and Ingress.

use pintle_model::Object;
use serde_json::Value;

use super::Health;

/// Only a load balancer has something to wait for.
pub(super) fn service(live: &Object) -> Health {
    if live.text(&["spec", "type"]) != "LoadBalancer" || has_address(live) {
        return Health::healthy();
    }
    Health::progressing("it waits for the address of its load balancer")
}

pub(super) fn ingress(live: &Object) -> Health {
    if has_address(live) { Health::healthy() } else { Health::progressing("it waits for an address") }
}

fn has_address(live: &Object) -> bool {
    live.at(&["status", "loadBalancer", "ingress"])
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
}
