//! `ValueAddTransformer`: a value into a field, or into a part of a path in it.

use crate::error::Step;
use crate::node::{Kind, Node, WrongKind};
use crate::path::{lookup_create, split};
use crate::resmap::ResMap;
use crate::selector::Selector;
use crate::transform::namespace::Namespace;

/// The value and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ValueAdd {
    pub(crate) value: String,
    pub(crate) targets: Vec<ValueTarget>,
}

/// Objects and their field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ValueTarget {
    pub(crate) selector: Option<Selector>,
    pub(crate) field_path: String,
    /// 0 replaces the value, n inserts before the n-th part of a path.
    pub(crate) position: usize,
}

impl ValueAdd {
    pub(crate) fn run(&self, map: &mut ResMap) -> Step<()> {
        for target in &self.targets {
            let selected = match &target.selector {
                None => (0..map.list.len()).collect(),
                Some(selector) => map.select(selector)?,
            };
            for at in selected {
                let id = map.list[at].id(&map.schemas);
                let node = &mut map.list[at].node;
                if target.field_path == "metadata/namespace" {
                    Namespace { namespace: self.value.clone(), ..Namespace::default() }.apply(node, &id)?;
                } else {
                    self.set(node, target)
                        .map_err(|error| format!("{} of {id}: {error}", target.field_path))?;
                }
            }
        }
        Ok(())
    }

    fn set(&self, node: &mut Node, target: &ValueTarget) -> Step<()> {
        let parts: Vec<String> = split_from_root(&target.field_path);
        let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        let Some(field) = lookup_create(node, &parts, Kind::Scalar)? else { return Ok(()) };
        if !matches!(field, Node::Scalar(_)) {
            return Err(WrongKind::new(Kind::Scalar, field).into());
        }
        let value = match target.position {
            0 => self.value.clone(),
            position => insert(field.value(), position - 1, &self.value),
        };
        Ok(field.set_scalar(Node::text(&value))?)
    }
}

fn split_from_root(path: &str) -> Vec<String> {
    split(path, '/')
}

/// Inserts a part into a path.
fn insert(path: &str, position: usize, part: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let position = position.min(parts.len());
    parts.insert(position, part);
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}
