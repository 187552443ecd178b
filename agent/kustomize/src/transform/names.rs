//! Prefixes and suffixes of names.

use crate::apply::{Create, apply};
use crate::config::FieldSpec;
use crate::error::Step;
use crate::id::Gvk;
use crate::node::{Node, Tag};
use crate::resmap::ResMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Front,
    Back,
}

/// Kinds whose names mean something of their own.
fn keeps_its_name(gvk: &Gvk) -> bool {
    matches!(gvk.kind.as_str(), "CustomResourceDefinition" | "Namespace")
        || (gvk.kind == "APIService" && gvk.group == "apiregistration.k8s.io")
}

/// Adds a text in front of or behind the names.
pub(crate) fn add(map: &mut ResMap, specs: &[FieldSpec], text: &str, side: Side) -> Step<()> {
    let create = Create::scalar(Tag::Str);
    let schemas = map.schemas.clone();
    for resource in &mut map.list {
        let id = resource.original_id(&schemas);
        if keeps_its_name(&id.gvk) {
            continue;
        }
        for spec in specs.iter().filter(|spec| id.gvk.is_selected(&spec.gvk)) {
            if spec.path == "metadata/name" {
                match side {
                    Side::Front => resource.add_prefix(text)?,
                    Side::Back => resource.add_suffix(text)?,
                }
                if !text.is_empty() {
                    resource.remember_id(&schemas)?;
                }
            }
            apply(&mut resource.node, spec, create.as_ref(), &mut |node| {
                let name = match side {
                    Side::Front => format!("{text}{}", node.value()),
                    Side::Back => format!("{}{text}", node.value()),
                };
                Ok(node.set_scalar(Node::text(&name))?)
            })
            .map_err(|error| format!("{id} cannot be renamed: {error}"))?;
        }
    }
    Ok(())
}
