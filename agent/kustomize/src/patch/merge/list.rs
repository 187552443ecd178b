//! Lists that merge element by element. New elements come first, then those of the target; every element of the
//! target that shares its keys with an earlier one takes its place.

use crate::error::Step;
use crate::node::{Kind, Node, WrongKind};
use crate::patch::merge::{DIRECTIVE, Directive, Merged, Patch, Walker, directive, untagged};
use crate::schema::Schema;

pub(super) fn merge_list(
    walker: &Walker<'_>,
    target: Option<Node>,
    patch: Patch,
    schema: &Schema,
    depth: usize,
) -> Step<Merged> {
    let (mut target, patch, own) = match (target.filter(|node| !node.is_null()), patch) {
        (None, Patch::Node(node)) => (node, Patch::Same, false),
        (None, _) => return Ok(Merged::Gone),
        (Some(target), Patch::None) => (target, Patch::None, true),
        (Some(mut target), Patch::Same) => match take_directive(&mut target)? {
            Directive::Delete => return Ok(Merged::Gone),
            Directive::Replace | Directive::Merge => (target, Patch::Same, true),
        },
        (Some(_), Patch::Node(node)) if node.is_null() => return Ok(Merged::Gone),
        (Some(target), Patch::Node(mut node)) => match take_directive(&mut node)? {
            Directive::Delete => return Ok(Merged::Gone),
            Directive::Replace => (node, Patch::Same, false),
            Directive::Merge => (target, Patch::Node(node), true),
        },
    };
    let Node::Seq(items) = &mut target else { return Ok(Merged::Node(target, own)) };
    let same = matches!(patch, Patch::Same);
    let mut patch_items = match patch {
        Patch::Node(Node::Seq(items)) => Some(items),
        _ => None,
    };
    let keys = schema.keys().to_vec();
    let merged = if keys.is_empty() {
        let values = single_values(patch_items.as_deref(), items);
        elements(walker, values, &[String::new()], items, patch_items.as_mut(), same, schema, depth)?
    } else {
        let values = key_values(patch_items.as_deref(), items, &keys);
        elements(walker, values, &keys, items, patch_items.as_mut(), same, schema, depth)?
    };
    Ok(Merged::Node(Node::Seq(merged), own))
}

/// Takes the element that is a directive out of a list.
pub(super) fn take_directive(patch: &mut Node) -> Step<Directive> {
    let Node::Seq(items) = patch else { return Ok(Directive::Merge) };
    let Some(found) = items.iter().find(|item| item.get(DIRECTIVE).is_some()) else {
        return Ok(Directive::Merge);
    };
    if found.entries().len() > 1 {
        return Ok(Directive::Merge);
    }
    let text = found.get(DIRECTIVE).map(Node::value).unwrap_or_default().to_owned();
    let directive = directive(&text)?;
    put(items, None, &[DIRECTIVE.to_owned()], &[text])?;
    Ok(directive)
}

/// The keys of all elements, those of the patch first, each once.
fn key_values(patch: Option<&[Node]>, target: &[Node], keys: &[String]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for item in patch.unwrap_or_default().iter().chain(target) {
        let values: Vec<String> = keys
            .iter()
            .map(|key| {
                item.get(key).filter(|value| !value.is_nil_or_empty()).map_or("", Node::value).to_owned()
            })
            .collect();
        if !all.contains(&values) {
            all.push(values);
        }
    }
    all
}

fn single_values(patch: Option<&[Node]>, target: &[Node]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for item in patch.unwrap_or_default().iter().chain(target) {
        let value = vec![item.value().to_owned()];
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

#[allow(clippy::too_many_arguments)]
fn elements(
    walker: &Walker<'_>,
    mut values_list: Vec<Vec<String>>,
    keys: &[String],
    target: &mut Vec<Node>,
    mut patch: Option<&mut Vec<Node>>,
    same: bool,
    schema: &Schema,
    depth: usize,
) -> Step<Vec<Node>> {
    if keys.len() > 1 {
        unite(&mut values_list);
    }
    let schema = schema.elements();
    let mut added: Vec<Node> = Vec::new();
    let mut last_keys: Vec<String> = keys.to_vec();
    for at in 0..values_list.len() {
        let (keys, values) = valid(&values_list, &values_list[at], keys);
        last_keys.clone_from(&keys);
        let (own_keys, own_values) = valid(std::slice::from_ref(&values), &values, &keys);
        let place = find(target, &own_keys, &own_values);
        let old = place.map(|place| target[place].clone());
        let new = match &mut patch {
            Some(patch) => find(patch, &own_keys, &own_values)
                .map(|place| patch[place].clone())
                .map_or(Patch::None, Patch::Node),
            None if same && old.is_some() => Patch::Same,
            None => Patch::None,
        };
        let merged = walker
            .walk(old, new, schema.clone(), depth + 1)
            .map_err(|error| format!("[{}]: {error}", shown(&keys, &values)))?;
        let (mut node, own) = match merged {
            Merged::Node(node, own) if !node.is_null() && !node.is_empty_map() => (node, own),
            _ => {
                put(target, None, &keys, &values)?;
                continue;
            }
        };
        for (key, value) in keys.iter().zip(&values) {
            if value.is_empty() || node.get(key).is_some() {
                continue;
            }
            if key.is_empty() {
                untagged(&mut node);
            } else {
                node.set(key, Node::text(value))?;
            }
        }
        if let (true, Some(place)) = (own, place) {
            target[place] = node.clone();
        }
        put(&mut added, Some(&node), &keys, &values)?;
    }
    if values_list.is_empty() {
        return Ok(std::mem::take(target));
    }
    append(&mut added, target, &last_keys)?;
    Ok(added)
}

fn shown(keys: &[String], values: &[String]) -> String {
    keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Elements that agree in one key, and of which one lacks another, are the same.
fn unite(values_list: &mut [Vec<String>]) {
    for i in 0..values_list.len() {
        let first = values_list[i].clone();
        for j in 0..values_list.len() {
            if let Some(values) = united(&first, &values_list[j]) {
                values_list[i].clone_from(&values);
                values_list[j] = values;
            }
        }
    }
}

fn united(a: &[String], b: &[String]) -> Option<Vec<String>> {
    if a.len() != b.len() {
        return None;
    }
    let mut common = false;
    let mut all = Vec::with_capacity(a.len());
    for (a, b) in a.iter().zip(b) {
        if a == b {
            common = true;
            all.push(a.clone());
        } else if !a.is_empty() && !b.is_empty() {
            return None;
        } else {
            all.push(if a.is_empty() { b.clone() } else { a.clone() });
        }
    }
    common.then_some(all)
}

/// The keys that any element has, with the values of one; all keys where none has any.
fn valid(values_list: &[Vec<String>], values: &[String], keys: &[String]) -> (Vec<String>, Vec<String>) {
    let used: Vec<bool> = keys
        .iter()
        .enumerate()
        .map(|(at, _)| values_list.iter().any(|values| values.get(at).is_some_and(|value| !value.is_empty())))
        .collect();
    if !used.contains(&true) {
        return (keys.to_vec(), values.to_vec());
    }
    let pick = |list: &[String]| {
        list.iter().zip(&used).filter(|(_, used)| **used).map(|(text, _)| text.clone()).collect::<Vec<_>>()
    };
    (pick(keys), pick(values))
}

/// The first element with these keys.
fn find(items: &[Node], keys: &[String], values: &[String]) -> Option<usize> {
    if keys.first().is_none_or(String::is_empty) {
        let value = values.first().map(String::as_str).unwrap_or_default();
        return items.iter().position(|item| item.value() == value);
    }
    items.iter().position(|item| {
        matches!(item, Node::Map(_))
            && keys
                .iter()
                .zip(values)
                .all(|(key, value)| item.get(key).is_some_and(|field| field.value() == value))
    })
}

/// Puts an element in the place of all with its keys, or at the end; without an element it only removes. Null and
/// empty elements go away.
fn put(items: &mut Vec<Node>, element: Option<&Node>, keys: &[String], values: &[String]) -> Step<()> {
    let keyed = keys.first().is_some_and(|key| !key.is_empty())
        && values.first().is_some_and(|value| !value.is_empty());
    let mut kept = Vec::with_capacity(items.len() + 1);
    let mut replaced = false;
    for item in items.drain(..) {
        if item.is_null() || item.is_empty_map() {
            continue;
        }
        if !matches!(item, Node::Map(_)) && keyed {
            kept.push(item);
            continue;
        }
        if !has_keys(&item, keys, values)? {
            if !values.is_empty() {
                kept.push(item);
            }
            continue;
        }
        replaced = true;
        kept.extend(element.cloned());
    }
    if let (false, Some(element)) = (replaced, element) {
        kept.push(element.clone());
    }
    *items = kept;
    Ok(())
}

/// An empty value fits every value of its key.
fn has_keys(item: &Node, keys: &[String], values: &[String]) -> Step<bool> {
    let mut fits = false;
    for (at, key) in keys.iter().enumerate() {
        let Some(value) = values.get(at) else { continue };
        fits = if key.is_empty() {
            if !matches!(item, Node::Scalar(_)) {
                return Err(WrongKind::new(Kind::Scalar, item).into());
            }
            item.value() == value
        } else {
            if !matches!(item, Node::Map(_)) {
                return Err(WrongKind::new(Kind::Map, item).into());
            }
            item.get(key).is_some_and(|field| value.is_empty() || field.value() == value)
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(fits)
}

/// Appends the elements of the target, each in the place of one with its keys.
fn append(items: &mut Vec<Node>, target: &[Node], keys: &[String]) -> Step<()> {
    for element in target {
        if keys.first().is_none_or(String::is_empty) {
            put(items, Some(element), &[String::new()], &[element.value().to_owned()])?;
            continue;
        }
        let mut values = Vec::new();
        for key in keys {
            if !element.is_null() && !matches!(element, Node::Map(_)) {
                return Err(WrongKind::new(Kind::Map, element).into());
            }
            match element.get(key) {
                Some(value) => values.push(value.value().to_owned()),
                None => items.push(element.clone()),
            }
        }
        if keys.len() > 1 {
            put(items, None, keys, &values)?;
        }
        if element.is_null() || element.is_empty_map() {
            put(items, None, keys, &values)?;
        } else {
            put(items, Some(element), keys, &values)?;
        }
    }
    Ok(())
}
