//! Labels and annotations.

use std::collections::BTreeMap;

use crate::apply::{Create, apply};
use crate::config::FieldSpec;
use crate::error::Step;
use crate::node::Node;
use crate::resmap::ResMap;

/// Entries and the mappings that get them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EntriesPlan {
    pub(crate) entries: BTreeMap<String, String>,
    pub(crate) specs: Vec<FieldSpec>,
}

impl EntriesPlan {
    pub(crate) fn run(&self, map: &mut ResMap) -> Step<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let create = Create::map();
        for at in 0..map.list.len() {
            let id = map.list[at].id(&map.schemas);
            let node = &mut map.list[at].node;
            for (name, value) in &self.entries {
                for spec in &self.specs {
                    apply(node, spec, create.as_ref(), &mut |target| {
                        Ok(target.set(name, Node::string(value))?)
                    })
                    .map_err(|error| format!("{name:?} cannot be added to {id}: {error}"))?;
                }
            }
        }
        // What a filter leaves empty is dropped here, as in the reference.
        map.drop_gone();
        Ok(())
    }
}
