//! Releasing: a field that leaves our payload while we own it would be reset or removed by server-side apply
//! (replicas became 1). Its path is first taken out of our managedFields entry; the server keeps the value then.

use pintle_model::Object;
use serde_json::{Map, Value, json};

use super::path::Segment;
use super::pointer;
use super::tree;

/// One JSON patch (RFC 6902) that takes the ignored paths, with all below them, out of our Apply entry. It is guarded
/// by the resourceVersion. `None` if we own none of them.
pub fn release_patch(live: &Object, pointers: &[String], manager: &str) -> Option<Vec<Value>> {
    let entries = live.at(&["metadata", "managedFields"])?.as_array()?;
    let index = entries.iter().position(|entry| tree::is_apply_entry(entry, manager))?;
    let old = tree::entry_fields(&entries[index]);
    let mut fields = old.clone();
    let value = live.to_value();
    for pointer in pointers {
        if let Some(map) = fields.as_object_mut() {
            take(map, &pointer::tokens(pointer), Some(&value));
        }
    }
    if fields == *old {
        return None;
    }
    Some(vec![
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version()}),
        json!({"op": "replace", "path": format!("/metadata/managedFields/{index}/fieldsV1"), "value": fields}),
    ])
}

/// Ignored paths that lie below an atomic list or map of ours: they cannot be released.
pub fn unreleasable(live: &Object, pointers: &[String], manager: &str) -> Vec<String> {
    let Some(entry) = tree::apply_entry(live, manager) else { return Vec::new() };
    let value = live.to_value();
    pointers
        .iter()
        .filter(|pointer| is_below_atomic(tree::entry_fields(entry), &pointer::tokens(pointer), Some(&value)))
        .cloned()
        .collect()
}

fn is_below_atomic(fields: &Value, tokens: &[String], value: Option<&Value>) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return false };
    let Some(map) = fields.as_object() else { return false };
    if map.is_empty() {
        // A leaf of ours with more path to go. An empty granular container has nothing below that is ours, and
        // then the live value at the path is not ours either.
        return value
            .is_some_and(|value| value.as_object().is_some_and(|map| !map.is_empty()) || value.is_array());
    }
    find(map, first, value).is_some_and(|(segment, below)| {
        is_below_atomic(below, rest, value.and_then(|value| segment.find(value)))
    })
}

fn find<'a>(map: &'a Map<String, Value>, token: &str, value: Option<&Value>) -> Option<(Segment, &'a Value)> {
    map.iter().find_map(|(text, below)| {
        let segment = Segment::parse(text)?;
        tree::names(&segment, token, value).then_some((segment, below))
    })
}

/// Removes a path, and the parents that become empty by it: an empty `f:spec` would mean owning spec as a whole.
fn take(map: &mut Map<String, Value>, tokens: &[String], value: Option<&Value>) {
    let Some((first, rest)) = tokens.split_first() else { return };
    let found = map.keys().find_map(|text| {
        let segment = Segment::parse(text)?;
        tree::names(&segment, first, value).then(|| (text.clone(), segment))
    });
    let Some((text, segment)) = found else { return };
    if rest.is_empty() {
        map.remove(&text);
        return;
    }
    let below_value = value.and_then(|value| segment.find(value));
    if let Some(Value::Object(below)) = map.get_mut(&text)
        && !below.is_empty()
    {
        take(below, rest, below_value);
        if below.is_empty() {
            map.remove(&text);
        }
    }
}
