//! JSON pointers (RFC 6901) of ignore rules.

use pintle_model::Object;
use serde_json::Value;

/// The tokens of a pointer, unescaped.
pub(super) fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

/// Removes what a pointer's tokens name; a missing parent is fine.
pub(super) fn remove(value: &mut Value, tokens: &[String]) {
    let Some((first, rest)) = tokens.split_first() else { return };
    match value {
        Value::Object(map) if rest.is_empty() => {
            map.remove(first);
        }
        Value::Object(map) => {
            if let Some(child) = map.get_mut(first) {
                remove(child, rest);
            }
        }
        Value::Array(items) => {
            let Some(index) = first.parse::<usize>().ok().filter(|index| *index < items.len()) else {
                return;
            };
            if rest.is_empty() {
                items.remove(index);
            } else {
                remove(&mut items[index], rest);
            }
        }
        _ => {}
    }
}

/// Leaves ignored fields out of a payload. Higher list positions go first, so that removing one does not move the
/// next.
pub fn remove_pointers(payload: &mut Object, pointers: &[String]) {
    let mut sorted: Vec<Vec<String>> = pointers.iter().map(|pointer| tokens(pointer)).collect();
    sorted.sort_by(|a, b| natural(b).cmp(&natural(a)));
    let mut value = payload.to_value();
    for tokens in sorted
        .iter()
        .filter(|tokens| !matches!(tokens[..], [ref one] if one == "kind" || one == "apiVersion"))
    {
        remove(&mut value, tokens);
    }
    if let Ok(object) = Object::try_from(value) {
        *payload = object;
    }
}

/// Numbers as numbers: position 10 comes after position 9.
fn natural(tokens: &[String]) -> Vec<(usize, &str)> {
    tokens.iter().map(|token| (token.parse().unwrap_or(0), token.as_str())).collect()
}

/// Puts the live value at ignored paths that cannot be left out because an atomic list or map around them is ours.
pub fn overlay_live(payload: &mut Object, live: &Object, pointers: &[String]) {
    let mut value = payload.to_value();
    let live = live.to_value();
    for pointer in pointers {
        match live.pointer(pointer) {
            Some(found) => {
                if let Some(slot) = value.pointer_mut(pointer) {
                    *slot = found.clone();
                } else if let Some((parent, name)) = pointer.rsplit_once('/')
                    && let Some(Value::Object(map)) = value.pointer_mut(parent)
                {
                    map.insert(name.replace("~1", "/").replace("~0", "~"), found.clone());
                }
            }
            None => remove(&mut value, &tokens(pointer)),
        }
    }
    if let Ok(object) = Object::try_from(value) {
        *payload = object;
    }
}
