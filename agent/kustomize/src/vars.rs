//! Vars: `$(NAME)` in fields, replaced by a value of an object.

use std::collections::BTreeMap;

use crate::apply::apply;
use crate::config::FieldSpec;
use crate::error::Step;
use crate::kustfile::Var;
use crate::node::{Node, Style, Tag};
use crate::path;
use crate::resmap::ResMap;

/// The vars of a build by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vars(BTreeMap<String, Var>);

/// What a var stands for.
#[derive(Debug, Clone, PartialEq)]
struct VarValue {
    text: String,
    tag: Tag,
}

impl Vars {
    /// Adds vars and marks the objects that they point at.
    pub(crate) fn merge(&mut self, map: &mut ResMap, vars: &[Var]) -> Step<()> {
        for var in vars {
            let wanted = &var.object;
            let found = map.by_any_id(|id| {
                if wanted.namespace.is_empty() {
                    id.name == wanted.name && id.gvk == wanted.gvk
                } else {
                    wanted.same(id)
                }
            });
            match found[..] {
                [] => {}
                [at] => map.list[at].vars.push(var.name.clone()),
                _ => {
                    return Err(format!(
                        "the var {:?} could mean {} objects; add a namespace to its objref",
                        var.name,
                        found.len()
                    ));
                }
            }
        }
        vars.iter().try_for_each(|var| self.add(var.clone()))
    }

    /// Adds the vars of a base.
    pub(crate) fn take(&mut self, other: Vars) -> Step<()> {
        other.0.into_values().try_for_each(|var| self.add(var))
    }

    fn add(&mut self, var: Var) -> Step<()> {
        if self.0.contains_key(&var.name) {
            return Err(format!("the var {:?} is there twice; rename one", var.name));
        }
        self.0.insert(var.name.clone(), var);
        Ok(())
    }

    /// Replaces all vars in the configured fields. Names of vars that stood nowhere are returned.
    pub(crate) fn resolve(&self, map: &mut ResMap, specs: &[FieldSpec]) -> Step<Vec<String>> {
        let mut values = BTreeMap::new();
        for (name, var) in &self.0 {
            values.insert(name.as_str(), value(map, var)?);
        }
        let mut used: BTreeMap<String, bool> = self.0.keys().map(|name| (name.clone(), false)).collect();
        if values.is_empty() {
            return Ok(Vec::new());
        }
        for at in 0..map.list.len() {
            let id = map.list[at].id(&map.schemas);
            for spec in specs {
                apply(&mut map.list[at].node, spec, None, &mut |node| set(node, &values, &mut used))
                    .map_err(|error| format!("vars in {id}: {error}"))?;
            }
        }
        Ok(used.into_iter().filter(|(_, used)| !used).map(|(name, _)| name).collect())
    }
}

/// None where the field holds a list or mapping.
fn value(map: &ResMap, var: &Var) -> Step<Option<VarValue>> {
    let owner = map.list.iter().find(|resource| resource.vars.contains(&var.name));
    let Some(owner) = owner else {
        return Err(format!(
            "the var {:?} points at {}, which is no object of this build; correct its objref",
            var.name, var.object
        ));
    };
    let fields = indexes(path::split_dots(&var.field_path));
    let found = path::lookup(&owner.node, &fields)
        .ok()
        .flatten()
        .ok_or_else(|| format!("the var {:?}: {} has no field {:?}", var.name, var.object, var.field_path))?;
    let Node::Scalar(scalar) = found else { return Ok(None) };
    let text = scalar.text.to_string();
    let bad = |what: &str| format!("the var {:?}: {text:?} is no {what} in decimal digits", var.name);
    Ok(Some(match scalar.tag {
        Tag::Int => {
            let number: i64 = text.parse().map_err(|_| bad("number"))?;
            VarValue { text: number.to_string(), tag: Tag::Int }
        }
        Tag::Float => {
            let number: f64 = text.parse().map_err(|_| bad("number"))?;
            VarValue { text: number.to_string(), tag: Tag::Float }
        }
        Tag::Bool => VarValue { text: text.to_ascii_lowercase(), tag: Tag::Bool },
        _ => VarValue { text, tag: Tag::Str },
    }))
}

/// `a[0]` to `a`, `0`.
fn indexes(fields: Vec<String>) -> Vec<String> {
    let mut all = Vec::with_capacity(fields.len());
    for field in fields {
        let split = field.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        match split {
            Some((name, index)) if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => {
                if !name.is_empty() {
                    all.push(name.to_owned());
                }
                all.push(index.to_owned());
            }
            _ => all.push(field),
        }
    }
    all
}

type Values<'v> = BTreeMap<&'v str, Option<VarValue>>;

fn set(node: &mut Node, values: &Values<'_>, used: &mut BTreeMap<String, bool>) -> Step<()> {
    match node {
        node if node.is_null() => {}
        Node::Scalar(_) => expand(node, values, used),
        Node::Map(entries) => entries.iter_mut().for_each(|(_, value)| expand(value, values, used)),
        Node::Seq(items) => {
            for item in items {
                if !item.is_string() {
                    return Err("vars are replaced in texts; this list has something else".to_owned());
                }
                expand(item, values, used);
            }
        }
    }
    Ok(())
}

fn expand(node: &mut Node, values: &Values<'_>, used: &mut BTreeMap<String, bool>) {
    if !node.is_string() {
        return;
    }
    let new = expanded(node.value(), values, used);
    if let Node::Scalar(scalar) = node {
        scalar.text = new.text.into();
        scalar.tag = new.tag;
        scalar.style = Style::Plain;
    }
}

/// A text that is a var as a whole takes its type; `$$` stands for `$`.
fn expanded(text: &str, values: &Values<'_>, used: &mut BTreeMap<String, bool>) -> VarValue {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let Some(next) = after.chars().next() else {
            out.push('$');
            return VarValue { text: out, tag: Tag::Str };
        };
        match (next, after.find(')')) {
            ('$', _) => {
                out.push('$');
                rest = &after[1..];
            }
            ('(', Some(end)) => {
                let name = &after[1..end];
                match values.get(name) {
                    Some(Some(value)) => {
                        used.insert(name.to_owned(), true);
                        if at == 0 && out.is_empty() && rest.len() == text.len() && end + 2 == text.len() {
                            return value.clone();
                        }
                        out.push_str(&value.text);
                    }
                    _ => out.push_str(&rest[at..=at + 1 + end]),
                }
                rest = &after[end + 1..];
            }
            (next, _) => {
                out.push('$');
                out.push(next);
                rest = &after[next.len_utf8()..];
            }
        }
    }
    out.push_str(rest);
    VarValue { text: out, tag: Tag::Str }
}
