//! Numbers of replicas.

use crate::apply::{Create, apply};
use crate::config::FieldSpec;
use crate::error::Step;
use crate::kustfile::Replica;
use crate::node::{Node, Tag};
use crate::resmap::ResMap;

/// Sets the number of replicas of the objects of that name.
pub(crate) fn set(map: &mut ResMap, replica: &Replica, specs: &[FieldSpec]) -> Step<()> {
    let create = Create::scalar(Tag::Int);
    let count = replica.count.to_string();
    let mut found = false;
    for spec in specs {
        for at in map.by_any_id(|id| id.name == replica.name && id.gvk.is_selected(&spec.gvk)) {
            found = true;
            let id = map.list[at].id(&map.schemas);
            apply(&mut map.list[at].node, spec, create.as_ref(), &mut |node| {
                Ok(node.set_scalar(Node::tagged(&count, Tag::Int))?)
            })
            .map_err(|error| format!("replicas of {id}: {error}"))?;
        }
    }
    if found {
        return Ok(());
    }
    let mut kinds: Vec<&str> = specs.iter().map(|spec| spec.gvk.kind.as_str()).collect();
    kinds.dedup();
    Err(format!("replicas: no object named {:?} is one of {}", replica.name, kinds.join(", ")))
}
