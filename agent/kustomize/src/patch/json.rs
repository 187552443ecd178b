//! JSON patches, RFC 6902, with the ways of the library behind the reference: `replace` of a missing field of a mapping
//! sets it, negative positions count from the end.

use serde_json::Value;

use crate::error::Step;
use crate::read;
use crate::resmap::ResMap;
use crate::write;

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

/// Reads a list of operations, JSON or YAML.
pub(crate) fn parse(bytes: &[u8]) -> Step<Vec<Operation>> {
    if bytes.is_empty() {
        return Err("the patch is empty".to_owned());
    }
    let value = if bytes[0] == b'[' {
        serde_json::from_slice(bytes).map_err(|error| format!("not valid JSON: {error}"))?
    } else {
        read::config(bytes).map_err(|error| error.to_string())?.0
    };
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        _ => return Err("a JSON patch is a list of operations".to_owned()),
    };
    items
        .into_iter()
        .enumerate()
        .map(|(at, item)| match item {
            Value::Object(mut map) => {
                let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
                Ok(Operation {
                    op: text(map.remove("op")).unwrap_or_else(|| "unknown".to_owned()),
                    path: text(map.remove("path")),
                    from: text(map.remove("from")),
                    value: map.remove("value"),
                })
            }
            Value::Null => Ok(Operation { op: "unknown".to_owned(), path: None, from: None, value: None }),
            _ => Err(format!("operation {at} of the patch is no mapping")),
        })
        .collect()
}

/// Applies a patch to an object. What the build remembers about it survives.
pub(crate) fn apply_to(
    map: &mut ResMap,
    at: usize,
    patch: &[Operation],
    remember: bool,
    label: &str,
) -> Step<()> {
    let schemas = map.schemas.clone();
    let resource = &mut map.list[at];
    let id = resource.id(&schemas);
    if remember {
        resource.remember_id(&schemas)?;
    }
    let internal = resource.internal_annotations();
    let mut value = write::to_json(&resource.node).map_err(|error| format!("{id}: {error}"))?;
    for (number, operation) in patch.iter().enumerate() {
        apply(&mut value, operation).map_err(|error| {
            let path = operation.path.as_deref().unwrap_or_default();
            format!("operation {number} ({} {path:?}) on {id}: {error}", operation.op)
        })?;
    }
    if !value.is_object() {
        return Err(format!("the patch makes {id} something else than an object"));
    }
    resource.node = write::from_json_with_floats(&value);
    let mut annotations = resource.annotations();
    annotations.extend(internal);
    resource.set_annotations(&annotations)?;
    resource.history.touched_by.push(label.to_owned());
    Ok(())
}

fn apply(document: &mut Value, operation: &Operation) -> Step<()> {
    let path = |path: &Option<String>, name: &str| {
        path.clone().ok_or_else(|| format!("`{name}` is missing, or no text"))
    };
    let value = || operation.value.clone().unwrap_or(Value::Null);
    match operation.op.as_str() {
        "add" => add(document, &path(&operation.path, "path")?, value()),
        "remove" => remove(document, &path(&operation.path, "path")?).map(|_| ()),
        "replace" => {
            let path = path(&operation.path, "path")?;
            if path.is_empty() {
                if !value().is_object() && !value().is_array() {
                    return Err("the whole object can only be replaced by an object".to_owned());
                }
                *document = value();
                return Ok(());
            }
            let (parent, key) = parent(document, &path)?;
            match parent {
                Value::Object(map) => {
                    map.insert(key, value());
                }
                Value::Array(items) => {
                    let at = position(&key, items.len()).ok_or_else(missing)?;
                    items[at] = value();
                }
                _ => return Err(missing()),
            }
            Ok(())
        }
        "move" => {
            let from = path(&operation.from, "from")?;
            let moved = get(document, &from)?.unwrap_or(Value::Null);
            remove(document, &from)?;
            add(document, &path(&operation.path, "path")?, moved)
        }
        "copy" => {
            let copied = get(document, &path(&operation.from, "from")?)?.unwrap_or(Value::Null);
            add(document, &path(&operation.path, "path")?, copied)
        }
        "test" => {
            let path = path(&operation.path, "path")?;
            let found = if path.is_empty() { Some(document.clone()) } else { get(document, &path)? };
            let same = match (
                found.filter(|found| !found.is_null()),
                operation.value.as_ref().filter(|v| !v.is_null()),
            ) {
                (None, None) => true,
                (Some(found), Some(wanted)) => found == *wanted,
                _ => false,
            };
            if same { Ok(()) } else { Err("the test fails: another value is there".to_owned()) }
        }
        other => {
            Err(format!("{other:?} is no operation; there are add, remove, replace, move, copy and test"))
        }
    }
}

fn missing() -> String {
    "there is no such field".to_owned()
}

/// The mapping or list that holds what the path means, and the last part of the path.
fn parent<'d>(document: &'d mut Value, path: &str) -> Step<(&'d mut Value, String)> {
    let mut parts: Vec<String> =
        path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let Some(last) = parts.pop() else {
        return Err("the path does not begin with `/`".to_owned());
    };
    let mut node = document;
    for part in parts {
        node = match node {
            Value::Object(map) => map.get_mut(&part),
            Value::Array(items) => position(&part, items.len()).and_then(|at| items.get_mut(at)),
            _ => None,
        }
        .filter(|node| node.is_object() || node.is_array())
        .ok_or_else(|| format!("the way to it ends at {part:?}"))?;
    }
    Ok((node, last))
}

/// A position in a list of that length.
fn position(part: &str, length: usize) -> Option<usize> {
    let index: i64 = part.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    (0..length).contains(&index).then(|| usize::try_from(index).ok()).flatten()
}

fn get(document: &mut Value, path: &str) -> Step<Option<Value>> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => Ok(map.get(&key).cloned()),
        Value::Array(items) => Ok(Some(items[position(&key, items.len()).ok_or_else(missing)?].clone())),
        _ => Err(missing()),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Step<()> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = position(&key, items.len() + 1).ok_or_else(|| {
                format!("{key:?} is no position in the list, which has {} elements", items.len())
            })?;
            items.insert(at, value);
        }
        _ => return Err(missing()),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Step<Value> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => map.remove(&key).ok_or_else(missing),
        Value::Array(items) => {
            let at = position(&key, items.len()).ok_or_else(missing)?;
            Ok(items.remove(at))
        }
        _ => Err(missing()),
    }
}
