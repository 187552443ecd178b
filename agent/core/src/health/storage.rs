//! PersistentVolumeClaims.

use pintle_model::Object;

use super::{Health, Status};

pub(super) fn claim(live: &Object) -> Health {
    match live.text(&["status", "phase"]) {
        "Bound" => Health::healthy(),
        "Lost" => Health::degraded("its volume is lost"),
        "Pending" | "" => Health::progressing("it waits for a volume"),
        phase => Health::new(Status::Unknown, format!("unknown phase {phase:?}")),
    }
}
