//! Differences that people read: path, value there, value wanted, who changed it and when.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use pintle_model::{Digest, Object, names};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::{self, FieldPath, OwnedSet, Segment};

#[cfg(test)]
mod tests;

/// Differences shown of one object; more are counted, not listed.
pub const MAX_DIFFERENCES: usize = 100;

/// A field manager's entry that claims a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Name.
    pub name: String,
    /// `Update` or `Apply`.
    pub operation: String,
    /// Subresource, empty for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// That manager's last write: the change was made at or before it. An entry may have none.
    pub time: Option<Timestamp>,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Where.
    pub path: FieldPath,
    /// What is there; `None` when the field is missing.
    pub live: Option<Value>,
    /// What is wanted, as the server normalises it; `None` when the field is to go.
    pub wanted: Option<Value>,
    /// Who claims the field; `None` when nobody does (a webhook or a replace leaves no trace).
    pub manager: Option<Manager>,
}

/// Differences of an object before and after an apply (or its dry run), seen through the sets of both.
pub fn differences(before: &Object, after: &Object, sets: &[&OwnedSet]) -> Vec<Difference> {
    let (live, wanted) = (before.to_value(), after.to_value());
    let mut paths: BTreeMap<String, FieldPath> = BTreeMap::new();
    for set in sets {
        paths.extend(set.paths().into_iter().map(|path| (path.to_string(), path)));
    }
    let mut found: Vec<Difference> = Vec::new();
    for path in paths.into_values() {
        if found.len() == MAX_DIFFERENCES {
            break;
        }
        // An item that is missing as a whole is one difference, not one for each of its fields.
        if found.last().is_some_and(|last| {
            path.starts_with(&last.path) && (last.live.is_none() || last.wanted.is_none())
        }) {
            continue;
        }
        let one = sets.iter().any(|set| fields::differs_at(&live, &wanted, set, &path));
        if one {
            found.push(Difference {
                live: path.find(&live).cloned(),
                wanted: path.find(&wanted).cloned(),
                manager: manager_of(before, &path),
                path,
            });
        }
    }
    found
}

/// Who, beside our own applies, claims a path; for a removed path the newest other writer of its parent.
fn manager_of(object: &Object, path: &FieldPath) -> Option<Manager> {
    let entries = object.at(&["metadata", "managedFields"])?.as_array()?;
    let others = || {
        entries
            .iter()
            .filter(|entry| !(entry["manager"] == names::FIELD_MANAGER && entry["operation"] == "Apply"))
    };
    let holders = |path: &FieldPath| {
        others()
            .filter(|entry| fields::entry_holds(entry, path))
            .map(manager)
            .max_by_key(|manager| manager.time)
    };
    if let Some(manager) = holders(path) {
        return Some(manager);
    }
    if path.find(&object.to_value()).is_none() {
        return holders(&path.parent());
    }
    None
}

fn manager(entry: &Value) -> Manager {
    let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    Manager {
        name: text("manager"),
        operation: text("operation"),
        subresource: text("subresource"),
        time: text("time").parse().ok(),
    }
}

/// One line: `.spec.replicas: 5 -> 2 (kubectl, Update, at or before 2026-01-01T00:00:00Z)`.
pub fn describe(difference: &Difference) -> String {
    let mut text = format!(
        "{}: {} -> {}",
        difference.path,
        shown(difference.live.as_ref()),
        shown(difference.wanted.as_ref())
    );
    match &difference.manager {
        Some(manager) => {
            let _ = write!(text, " (by {}, {}", manager.name, manager.operation);
            if !manager.subresource.is_empty() {
                let _ = write!(text, " of {}", manager.subresource);
            }
            match manager.time {
                Some(time) => {
                    let _ = write!(text, ", at or before {time})");
                }
                None => text.push_str(", time unknown)"),
            }
        }
        None => text.push_str(" (by an unknown manager)"),
    }
    text
}

fn shown(value: Option<&Value>) -> String {
    const MAX: usize = 200;
    let Some(value) = value else { return "(none)".to_owned() };
    let mut text = value.to_string();
    if text.len() > MAX {
        let end = (0..=MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Replaces secret values by keyed short hashes. They were compared before: equal values show equal masks, different
/// ones differ.
pub fn mask(differences: &mut [Difference], key: &[u8]) {
    for difference in differences {
        let secret = matches!(difference.path.0.first(), Some(Segment::Field(name)) if name == "data" || name == "stringData");
        let last_applied =
            matches!(difference.path.0.last(), Some(Segment::Field(name)) if name == names::LAST_APPLIED);
        if secret || last_applied {
            for value in [&mut difference.live, &mut difference.wanted].into_iter().flatten() {
                *value = masked(value, key);
            }
        }
    }
}

/// An object for showing: of a Secret every value masked, of any object kubectl's last-applied annotation left out,
/// and managedFields, which nobody reads.
pub fn mask_object(object: &Object, key: &[u8]) -> Object {
    let mut object = object.clone();
    if object.is_secret() {
        for name in ["data", "stringData"] {
            if let Some(Value::Object(map)) = object.fields_mut().get_mut(name) {
                for value in map.values_mut() {
                    *value = masked(value, key);
                }
            }
        }
    }
    let metadata = object.metadata_mut();
    metadata.remove("managedFields");
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(names::LAST_APPLIED);
    }
    object
}

fn masked(value: &Value, key: &[u8]) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| (name.clone(), masked(value, key))).collect())
        }
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            Value::from(format!("++++++++ ({})", Digest::of_parts([key, text.as_bytes()]).short(8)))
        }
    }
}
