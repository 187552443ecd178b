//! The tree of owned paths (`fieldsV1`, KEP-555).

use pintle_model::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::atomic;
use super::path::{FieldPath, Segment};

/// How an owned path without owned children is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Leaf {
    /// By its whole value: a scalar, or an atomic list or map, but for the ignored paths below it.
    Whole {
        /// Tokens of JSON pointers below this value.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        except: Vec<Vec<String>>,
    },
    /// By being there: an empty container that others may fill (`resources: {}`), or an item of a set or list.
    Presence,
}

/// A node: owned itself (`leaf`), or by its children, or both.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) leaf: Option<Leaf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<(Segment, Node)>,
}

impl Node {
    /// From `fieldsV1`, with the answer's values to tell empty containers from atomic ones.
    pub(crate) fn parse(fields: &Value, value: Option<&Value>, kind: &str, name: Option<&str>) -> Self {
        let mut node = Self::default();
        let Some(map) = fields.as_object() else { return node };
        for (text, below) in map {
            if text == "." {
                node.leaf = Some(Leaf::Presence);
            } else if let Some(segment) = Segment::parse(text) {
                let child_name = match &segment {
                    Segment::Field(name) => Some(name.as_str()),
                    _ => name,
                };
                let found = value.and_then(|value| segment.find(value));
                let child = match &segment {
                    Segment::Value(_) => Self { leaf: Some(Leaf::Presence), children: Vec::new() },
                    _ => Self::parse(below, found, kind, child_name),
                };
                node.children.push((segment, child));
            }
        }
        if node.children.is_empty() && node.leaf.is_none() {
            node.leaf = Some(leaf_of(value, kind, name));
        }
        node
    }

    /// Only what a manifest can ask for: no status, no bookkeeping of the server.
    pub(crate) fn keep_only_desired(&mut self) {
        self.children.retain(|(segment, _)| !matches!(segment, Segment::Field(name) if name == "status"));
        for (segment, child) in &mut self.children {
            if matches!(segment, Segment::Field(name) if name == "metadata") {
                child.children.retain(|(segment, _)| {
                    matches!(segment, Segment::Field(name)
                        if matches!(name.as_str(), "labels" | "annotations" | "finalizers" | "ownerReferences"))
                });
            }
        }
        self.children.retain(|(_, child)| child.leaf.is_some() || !child.children.is_empty());
    }

    /// All owned paths below.
    pub(crate) fn collect(&self, at: &mut FieldPath, into: &mut Vec<FieldPath>) {
        if self.leaf.is_some() && !at.0.is_empty() {
            into.push(at.clone());
        }
        for (segment, child) in &self.children {
            at.0.push(segment.clone());
            child.collect(at, into);
            at.0.pop();
        }
    }

    /// The node at a path.
    pub(crate) fn at(&self, path: &FieldPath) -> Option<&Self> {
        path.0.iter().try_fold(self, |node, segment| {
            node.children.iter().find(|(known, _)| known == segment).map(|(_, child)| child)
        })
    }

    /// Takes the path of a JSON pointer out of the comparison.
    pub(crate) fn remove(&mut self, tokens: &[String], value: Option<&Value>) {
        let Some((first, rest)) = tokens.split_first() else { return };
        if self.children.is_empty() {
            if let Some(Leaf::Whole { except }) = &mut self.leaf {
                except.push(tokens.to_vec());
            }
            return;
        }
        let Some(index) = self.children.iter().position(|(segment, _)| names(segment, first, value)) else {
            return;
        };
        if rest.is_empty() {
            self.children.remove(index);
            return;
        }
        let found = value.and_then(|value| self.children[index].0.find(value));
        self.children[index].1.remove(rest, found);
        if self.children[index].1.leaf.is_none() && self.children[index].1.children.is_empty() {
            self.children.remove(index);
        }
    }
}

/// Does the segment name what the token of a JSON pointer names?
pub(super) fn names(segment: &Segment, token: &str, value: Option<&Value>) -> bool {
    match (segment, value) {
        (Segment::Field(name), _) => name == token,
        (segment, Some(Value::Array(items))) => {
            segment.position(items).is_some_and(|position| position.to_string() == *token)
        }
        _ => false,
    }
}

fn leaf_of(value: Option<&Value>, kind: &str, name: Option<&str>) -> Leaf {
    let whole = Leaf::Whole { except: Vec::new() };
    let name = name.unwrap_or_default();
    match value {
        Some(Value::Object(map)) if map.is_empty() && !atomic::is_atomic_map(kind, name) => Leaf::Presence,
        Some(Value::Array(items)) if items.is_empty() && atomic::is_granular_list(kind, name) => {
            Leaf::Presence
        }
        _ => whole,
    }
}

/// The managedFields entry of a manager with operation Apply and no subresource.
pub(super) fn apply_entry<'a>(object: &'a Object, manager: &str) -> Option<&'a Value> {
    object.at(&["metadata", "managedFields"])?.as_array()?.iter().find(|entry| is_apply_entry(entry, manager))
}

pub(super) fn is_apply_entry(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager
        && entry["operation"] == "Apply"
        && entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// `fieldsV1` of an entry.
pub(super) fn entry_fields(entry: &Value) -> &Value {
    &entry["fieldsV1"]
}

/// Does `fieldsV1` hold the path, itself or by an atomic ancestor?
pub(super) fn holds(fields: &Value, path: &FieldPath) -> bool {
    let mut at = fields;
    for segment in &path.0 {
        let Some(map) = at.as_object() else { return false };
        if map.is_empty() {
            return true;
        }
        match step(map, segment) {
            Some(below) => at = below,
            None => return false,
        }
    }
    at.is_object()
}

/// One step down in `fieldsV1`. Field names are looked up directly; keys are compared as JSON.
pub(super) fn step<'a>(map: &'a Map<String, Value>, segment: &Segment) -> Option<&'a Value> {
    if let Segment::Field(name) = segment {
        return map.get(&format!("f:{name}"));
    }
    map.iter().find(|(text, _)| segment.matches(text)).map(|(_, below)| below)
}
