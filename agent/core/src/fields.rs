//! Owned fields: the set that our server-side apply owns, an object projected on it, and what was lost or must be
//! released.
//!
//! The set is taken from the server's answer to our own apply and kept. Later states of the object are projected
//! on the kept set: the same digest means no drift. Defaulted and foreign fields are outside, normalised values
//! (`1000m` stored as `1`) are compared with what the server made of them, and a change of ours shows even when
//! `managedFields` still name us (mutating admission, `kubectl replace`).

mod atomic;
mod migrate;
mod path;
mod pointer;
mod release;
#[cfg(test)]
mod tests;
mod tree;

use pintle_model::{Digest, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use migrate::migration_patch;
pub use path::{FieldPath, Segment};
pub use pointer::{overlay_live, remove_pointers};
pub use release::{release_patch, unreleasable};
use tree::{Leaf, Node};

/// Stands for "not there" in a projection: no JSON text of an object can hold it.
const ABSENT: &str = "\u{0}absent";

/// What our manager owned right after our own apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedSet {
    /// `apiVersion` of the managedFields entry: the set speaks of that version.
    pub api_version: String,
    root: Node,
}

/// How a live object compares with what we applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing of ours differs.
    Same,
    /// Somebody changed, removed or replaced a value of ours.
    Drifted,
    /// All values are right, but another manager took fields: a later removal from git would not take effect.
    Reown,
}

impl OwnedSet {
    /// The set out of the server's answer to an apply: the entry of `manager` with operation Apply and no
    /// subresource. `None` when there is no such entry.
    pub fn from_answer(answer: &Object, manager: &str) -> Option<Self> {
        let entry = tree::apply_entry(answer, manager)?;
        let api_version = entry["apiVersion"].as_str().unwrap_or_else(|| answer.api_version()).to_owned();
        let mut root = Node::parse(&entry["fieldsV1"], Some(&answer.to_value()), answer.kind(), None);
        root.keep_only_desired();
        Some(Self { api_version, root })
    }

    /// The set without the ignored fields (JSON pointers, RFC 6901). An ignored field below an atomic list or map is
    /// left out of the comparison of that list or map.
    pub fn without(mut self, pointers: &[String], answer: &Object) -> Self {
        let value = answer.to_value();
        for pointer in pointers {
            self.root.remove(&pointer::tokens(pointer), Some(&value));
        }
        self
    }

    /// Identity of the set: objects of one shape share one.
    pub fn digest(&self) -> Digest {
        let text = serde_json::to_vec(&(&self.api_version, &self.root)).unwrap_or_default();
        Digest::of(&text)
    }

    /// Every path of the set, in order; of a keyed item that is owned as such also the item itself.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        self.root.collect(&mut FieldPath::default(), &mut paths);
        paths
    }
}

/// Does the managedFields entry hold the path, itself or by an atomic ancestor?
pub fn entry_holds(entry: &Value, path: &FieldPath) -> bool {
    tree::holds(tree::entry_fields(entry), path)
}

/// Do two states of an object differ at a path of the set, as the set compares it (presence, or the value but for
/// ignored parts)?
pub fn differs_at(one: &Value, other: &Value, set: &OwnedSet, path: &FieldPath) -> bool {
    let Some(node) = set.root.at(path) else { return false };
    let leaf = Node { leaf: node.leaf.clone(), children: Vec::new() };
    project_node(path.find(one), &leaf) != project_node(path.find(other), &leaf)
}

/// An object seen only through a set: canonical, so that order of maps, keyed lists and sets does not matter.
pub fn project(object: &Value, set: &OwnedSet) -> Value {
    project_node(Some(object), &set.root)
}

/// Digest of the projection.
pub fn projection_digest(object: &Object, set: &OwnedSet) -> Digest {
    Digest::of_json(&project_map(object.fields(), &set.root))
}

/// Compares a live object with what was kept after our apply.
pub fn verdict(live: &Object, set: &OwnedSet, projection: Digest, manager: &str) -> Verdict {
    if projection_digest(live, set) != projection {
        return Verdict::Drifted;
    }
    if lost_ownership(live, set, manager).is_empty() { Verdict::Same } else { Verdict::Reown }
}

/// Paths of the set that our present Apply entry no longer has.
pub fn lost_ownership(live: &Object, set: &OwnedSet, manager: &str) -> Vec<FieldPath> {
    let current = tree::apply_entry(live, manager).map(|entry| entry["fieldsV1"].clone());
    let current = current.unwrap_or(Value::Null);
    set.paths().into_iter().filter(|path| !tree::holds(&current, path)).collect()
}

fn project_map(map: &Map<String, Value>, node: &Node) -> Value {
    let mut projected = Map::new();
    for (segment, child) in &node.children {
        let value = match segment {
            Segment::Field(name) => map.get(name),
            Segment::Key(_) | Segment::Value(_) | Segment::Index(_) => None,
        };
        projected.insert(segment.to_string(), project_node(value, child));
    }
    Value::Object(projected)
}

fn project_node(value: Option<&Value>, node: &Node) -> Value {
    let Some(value) = value else { return Value::from(ABSENT) };
    match &node.leaf {
        Some(Leaf::Presence) if node.children.is_empty() => Value::Bool(true),
        Some(Leaf::Whole { except }) if node.children.is_empty() => {
            let mut value = value.clone();
            for tokens in except {
                pointer::remove(&mut value, tokens);
            }
            value
        }
        _ => match value {
            Value::Object(map) => project_map(map, node),
            Value::Array(_) => {
                let mut projected = Map::new();
                for (segment, child) in &node.children {
                    projected.insert(segment.to_string(), project_node(segment.find(value), child));
                }
                Value::Object(projected)
            }
            // A list or map of ours became a scalar.
            other => Value::Array(vec![Value::from(ABSENT), other.clone()]),
        },
    }
}
