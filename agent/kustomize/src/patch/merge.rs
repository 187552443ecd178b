//! The merge of two trees, with the reference's ways of lists and nulls.

use std::collections::BTreeSet;

use crate::error::Step;
use crate::node::{Entries, Kind, Node, Tag, WrongKind};
use crate::patch::merge::list::merge_list;
use crate::resource;
use crate::schema::{Schema, Schemas};

mod list;

/// What a patch has for a place of the target.
pub(super) enum Patch {
    /// Nothing.
    None,
    /// The target came from the patch, whole: it is merged with itself, which carries out the directives in it.
    Same,
    /// A value.
    Node(Node),
}

/// What comes out for a place.
pub(super) enum Merged {
    Gone,
    /// A null that was there before and stays.
    Null(Node),
    /// A value, and whether it is the target's own, changed in its place.
    Node(Node, bool),
}

/// The directive `$patch` of a mapping or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

const DIRECTIVE: &str = "$patch";
/// Nesting deeper than any object; the readers stop before.
const MAX_DEPTH: usize = 400;

/// Merges a patch into an object; none when the patch deletes it.
pub(super) fn merge(target: Node, patch: Node, schemas: &Schemas) -> Step<Option<Node>> {
    let walker = Walker { schemas };
    Ok(match walker.walk(Some(target), Patch::Node(patch), None, 0)? {
        Merged::Gone => None,
        Merged::Null(node) | Merged::Node(node, _) => Some(node),
    })
}

pub(super) struct Walker<'s> {
    schemas: &'s Schemas,
}

impl Walker<'_> {
    pub(super) fn walk(
        &self,
        target: Option<Node>,
        patch: Patch,
        schema: Option<Schema>,
        depth: usize,
    ) -> Step<Merged> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels of nesting"));
        }
        let schema = schema.or_else(|| self.schema_of(target.as_ref(), &patch));
        let there = |node: Option<&Node>| node.filter(|node| !node.is_null()).map(Node::kind);
        let patch_kind = match &patch {
            Patch::Node(node) => there(Some(node)),
            Patch::None | Patch::Same => None,
        };
        let Some(kind) = there(target.as_ref()).or(patch_kind) else {
            return self.walk_map(target, patch, schema, depth);
        };
        for node in [target.as_ref(), if let Patch::Node(node) = &patch { Some(node) } else { None }] {
            if let Some(node) = node.filter(|node| !node.is_null() && node.kind() != kind) {
                return Err(WrongKind::new(kind, node).into());
            }
        }
        match kind {
            Kind::Map => self.walk_map(target, patch, schema, depth),
            Kind::Seq => match schema.filter(Schema::merges) {
                Some(schema) => merge_list(self, target, patch, &schema, depth),
                None => Ok(whole(target, patch)),
            },
            Kind::Scalar => Ok(whole(target, patch)),
        }
    }

    fn schema_of(&self, target: Option<&Node>, patch: &Patch) -> Option<Schema> {
        let of = |node: &Node| {
            let (api_version, kind) = (resource::api_version(node), resource::kind(node));
            if api_version.is_empty() || kind.is_empty() { None } else { self.schemas.of(api_version, kind) }
        };
        let from_patch = || if let Patch::Node(node) = patch { of(node) } else { None };
        target.and_then(of).or_else(from_patch)
    }

    fn walk_map(
        &self,
        target: Option<Node>,
        patch: Patch,
        schema: Option<Schema>,
        depth: usize,
    ) -> Step<Merged> {
        let (mut target, patch, own) = match start(target, patch)? {
            Start::Done(merged) => return Ok(merged),
            Start::Go(target, patch, own) => (target, patch, own),
        };
        let same = matches!(patch, Patch::Same);
        let mut patch_entries = match patch {
            Patch::Node(Node::Map(entries)) => Some(entries),
            _ => None,
        };
        let Node::Map(entries) = &mut target else { return Ok(Merged::Node(target, own)) };
        let mut names: BTreeSet<_> = entries.iter().map(|(name, _)| name.clone()).collect();
        names.extend(patch_entries.iter().flatten().map(|(name, _)| name.clone()));
        for name in names {
            let at = entries.iter().position(|(key, _)| *key == name);
            let old = at.map(|at| std::mem::take(&mut entries[at].1));
            let style = old.as_ref().map(Node::style).unwrap_or_default();
            let new = match &mut patch_entries {
                Some(patch) => take(patch, &name).map_or(Patch::None, Patch::Node),
                None if same && old.is_some() => Patch::Same,
                None => Patch::None,
            };
            let below = schema.as_ref().and_then(|schema| schema.field(&name));
            let merged = self
                .walk(old, new, below, depth + 1)
                .map_err(|error| format!("{name}: {error}").replace(": [", "["))?;
            let kept = match merged {
                Merged::Node(node, _) if !node.is_null() => Some(node),
                Merged::Null(node) => Some(node),
                Merged::Node(..) | Merged::Gone => None,
            };
            match (kept, at) {
                (Some(mut node), Some(at)) => {
                    node.set_style(style);
                    entries[at].1 = node;
                }
                (Some(mut node), None) => {
                    node.quote_if_ambiguous();
                    entries.push((name, node));
                }
                (None, Some(at)) => {
                    entries.remove(at);
                }
                (None, None) => {}
            }
        }
        Ok(Merged::Node(target, own))
    }
}

enum Start {
    Done(Merged),
    Go(Node, Patch, bool),
}

/// What the directives and nulls of a mapping say before its fields are looked at.
fn start(target: Option<Node>, patch: Patch) -> Step<Start> {
    let Some(mut target) =
        target.filter(|node| !node.is_null() || matches!(patch, Patch::None | Patch::Same))
    else {
        let Patch::Node(mut patch) = patch else { return Ok(Start::Done(Merged::Gone)) };
        // What is wrong with a directive does not matter where there is nothing to merge with.
        let directive = take_directive(&mut patch).unwrap_or(Directive::Merge);
        return Ok(if directive == Directive::Delete {
            Start::Done(Merged::Gone)
        } else {
            Start::Go(patch, Patch::Same, false)
        });
    };
    if target.is_null() {
        return Ok(Start::Done(match patch {
            Patch::None if !target.value().is_empty() => Merged::Null(target),
            Patch::Same => Merged::Node(target, true),
            _ => Merged::Gone,
        }));
    }
    match patch {
        Patch::None => Ok(Start::Go(target, Patch::None, true)),
        Patch::Same => Ok(match take_directive(&mut target)? {
            Directive::Delete => Start::Done(Merged::Gone),
            Directive::Replace | Directive::Merge => Start::Go(target, Patch::Same, true),
        }),
        Patch::Node(patch) if patch.is_null() => Ok(Start::Done(Merged::Gone)),
        Patch::Node(mut patch) => Ok(match take_directive(&mut patch)? {
            Directive::Delete => Start::Done(Merged::Gone),
            Directive::Replace => Start::Go(patch, Patch::Same, false),
            Directive::Merge => Start::Go(target, Patch::Node(patch), true),
        }),
    }
}

/// The patch's value where it has one.
fn whole(target: Option<Node>, patch: Patch) -> Merged {
    match (target, patch) {
        (_, Patch::Node(node)) => Merged::Node(node, false),
        (Some(node), Patch::None | Patch::Same) => Merged::Node(node, true),
        (None, Patch::None | Patch::Same) => Merged::Gone,
    }
}

fn take(entries: &mut Entries, name: &str) -> Option<Node> {
    let at = entries.iter().position(|(key, _)| &**key == name)?;
    Some(std::mem::take(&mut entries[at].1))
}

/// Takes the directive out of a mapping.
fn take_directive(patch: &mut Node) -> Step<Directive> {
    match patch {
        Node::Map(_) => {
            let Some(found) = patch.get(DIRECTIVE) else { return Ok(Directive::Merge) };
            let directive = directive(found.value())?;
            patch.remove(DIRECTIVE);
            Ok(directive)
        }
        Node::Seq(_) => list::take_directive(patch),
        Node::Scalar(_) => Err("a single value stands where a mapping or list should be".to_owned()),
    }
}

fn directive(text: &str) -> Step<Directive> {
    match text {
        "merge" => Ok(Directive::Merge),
        "replace" => Ok(Directive::Replace),
        "delete" => Ok(Directive::Delete),
        other => {
            Err(format!("the directive `$patch: {other}` is not known; there are merge, replace and delete"))
        }
    }
}

/// A scalar as the reference sets it into an element: without a tag.
fn untagged(node: &mut Node) {
    if let Node::Scalar(scalar) = node {
        scalar.tag = Tag::None;
    }
}
