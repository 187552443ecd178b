//! The walk from a field specification to the values that it means.

use crate::config::FieldSpec;
use crate::error::Step;
use crate::id::split_api_version;
use crate::node::{Kind, Node, Tag};
use crate::path;
use crate::resource;

/// What stands at the end of a path that is made.
#[derive(Debug, Clone)]
pub(crate) struct Create {
    pub(crate) kind: Kind,
    pub(crate) tag: Tag,
}

impl Create {
    pub(crate) fn scalar(tag: Tag) -> Option<Self> {
        Some(Self { kind: Kind::Scalar, tag })
    }

    pub(crate) fn map() -> Option<Self> {
        Some(Self { kind: Kind::Map, tag: Tag::None })
    }
}

type Set<'s> = &'s mut dyn FnMut(&mut Node) -> Step<()>;

/// Calls `set` on every value of the object that the specification means. What is missing is made where the
/// specification says so and `create` says what.
pub(crate) fn apply(node: &mut Node, spec: &FieldSpec, create: Option<&Create>, set: Set<'_>) -> Step<()> {
    if !fits(spec, node) {
        return Ok(());
    }
    let parts = path::split(&spec.path, '/');
    let create = create.filter(|_| spec.create);
    walk(node, &parts, create, set).map_err(|error| format!("field {:?}: {error}", spec.path))
}

fn fits(spec: &FieldSpec, node: &Node) -> bool {
    let (group, version) = split_api_version(resource::api_version(node));
    let gvk = &spec.gvk;
    (gvk.kind.is_empty() || gvk.kind == resource::kind(node))
        && (gvk.group.is_empty() || gvk.group == group)
        && (gvk.version.is_empty() || gvk.version == version)
}

fn walk(node: &mut Node, parts: &[String], create: Option<&Create>, set: Set<'_>) -> Step<()> {
    let Some((part, rest)) = parts.split_first() else { return set(node) };
    if node.is_null() {
        return Ok(());
    }
    match node {
        Node::Scalar(_) => Err("a single value stands where a mapping or list should be".to_owned()),
        Node::Seq(items) => items.iter_mut().try_for_each(|item| walk(item, parts, create, &mut *set)),
        Node::Map(_) => {
            let name = part.strip_suffix("[]").unwrap_or(part);
            let is_list = name.len() != part.len();
            if name.is_empty() {
                return Err("a part of the path is empty".to_owned());
            }
            let made = match create {
                Some(_) if is_list => None,
                Some(create) if rest.is_empty() => Some(create.clone()),
                Some(_) => Create::map(),
                None => None,
            };
            if path::lookup(node, &[name])?.is_none() {
                let (Some(made), Node::Map(entries)) = (&made, &mut *node) else { return Ok(()) };
                entries.push((name.into(), Node::of_kind(made.kind)));
            }
            let Some(field) = path::lookup_mut(node, &[name])? else { return Ok(()) };
            if field.is_null() {
                match (is_list, made) {
                    (true, _) => *field = Node::Seq(Vec::new()),
                    (false, Some(made)) if made.kind == Kind::Scalar => {
                        *field = Node::tagged(field.value(), made.tag);
                    }
                    (false, Some(made)) => *field = Node::of_kind(made.kind),
                    (false, None) => {}
                }
            }
            walk(field, rest, create, set)
        }
    }
}
