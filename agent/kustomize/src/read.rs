//! The only place that reads YAML: manifests and patches by the rules of go-yaml v3, kustomizations and
//! configurations by those of v2, as the reference does.

use std::sync::Arc;

use pintle_yaml::{Limits, NodeKind, Resolver};
use serde_json::Value;

use crate::error::Error;
use crate::node::{Entries, Node, Scalar, Style, Tag};
use crate::scalar;

/// What one file may cost.
pub(crate) const LIMITS: Limits =
    Limits { max_bytes: 64 << 20, max_documents: 50_000, max_depth: 200, max_nodes: 2_000_000 };

/// A document of a stream.
pub(crate) struct Read {
    pub(crate) node: Node,
    pub(crate) line: u32,
}

/// All documents of a stream, with anchors and merge keys resolved.
pub(crate) fn documents(bytes: &[u8]) -> Result<Vec<Read>, Error> {
    let read = pintle_yaml::documents_as(bytes, Resolver::V3, &LIMITS).map_err(|error| yaml_error(&error))?;
    let alone = separators(bytes) == 0;
    let mut all = Vec::new();
    for document in read {
        let node = from_yaml(&document.root, true)?;
        // A List that is alone in its file is opened here; others are opened later and go to the end.
        let kind = node.get("kind").map_or("", Node::value);
        if alone
            && matches!(kind, "List" | "ResourceList")
            && (node.get("items").is_some() || node.get("functionConfig").is_some())
        {
            let items = node.get("items").map(Node::items).unwrap_or_default();
            let lines = item_lines(&document.root);
            all.extend(items.iter().enumerate().map(|(at, item)| Read {
                node: item.clone(),
                line: lines.get(at).copied().unwrap_or(document.line),
            }));
        } else {
            all.push(Read { node, line: document.line });
        }
    }
    Ok(all)
}

/// The first document of a text as a tree, merge keys as they stand; for texts inside of values.
pub(crate) fn text(text: &str) -> Option<Node> {
    let document = pintle_yaml::document(text.as_bytes(), &LIMITS).ok()??;
    from_yaml(&document, false).ok()
}

/// A configuration as JSON, by YAML 1.1 rules, with the tree for the lines of errors.
pub(crate) fn config(bytes: &[u8]) -> Result<Config, Error> {
    read_config(bytes, false)
}

/// As [`config`], with a key twice as an error.
pub(crate) fn config_strict(bytes: &[u8]) -> Result<Config, Error> {
    read_config(bytes, true)
}

type Config = (Value, Option<pintle_yaml::Node>);

fn read_config(bytes: &[u8], strict: bool) -> Result<Config, Error> {
    let Some(document) = pintle_yaml::document(bytes, &LIMITS).map_err(|error| yaml_error(&error))? else {
        return Ok((Value::Null, None));
    };
    let value =
        pintle_yaml::to_json(&document, &mut Vec::new(), strict).map_err(|error| yaml_error(&error))?;
    Ok((value, Some(document)))
}

/// The line of a field in a configuration, as near as its path leads.
pub(crate) fn line_of(root: Option<&pintle_yaml::Node>, path: &str) -> Option<u32> {
    let mut node = root?;
    let mut line = None;
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        let next = match &node.kind {
            NodeKind::Mapping(entries) => {
                let found = entries
                    .iter()
                    .find(|(key, _)| key.text().is_some_and(|text| text.eq_ignore_ascii_case(part)));
                found.map(|(key, value)| (key.span.line, value))
            }
            NodeKind::Sequence(items) => {
                part.parse::<usize>().ok().and_then(|at| items.get(at)).map(|item| (item.span.line, item))
            }
            NodeKind::Scalar(_) => None,
        };
        let Some((at, below)) = next else { break };
        line = Some(at);
        node = below;
    }
    line
}

pub(crate) fn yaml_error(error: &pintle_yaml::Error) -> Error {
    Error {
        file: String::new(),
        line: (error.line != 0).then_some(error.line),
        field: error.path.clone(),
        message: error.message.clone(),
    }
}

/// Lines `---...` that are not the first line of the text.
fn separators(bytes: &[u8]) -> usize {
    bytes.windows(4).filter(|window| window == b"\n---").count()
}

fn item_lines(root: &pintle_yaml::Node) -> Vec<u32> {
    match root.get("items").map(|items| &items.kind) {
        Some(NodeKind::Sequence(items)) => items.iter().map(|item| item.span.line).collect(),
        _ => Vec::new(),
    }
}

fn from_yaml(node: &pintle_yaml::Node, merge: bool) -> Result<Node, Error> {
    Ok(match &node.kind {
        NodeKind::Scalar(text) => Node::Scalar(from_scalar(node, text)),
        NodeKind::Sequence(items) => {
            Node::Seq(items.iter().map(|item| from_yaml(item, merge)).collect::<Result<_, _>>()?)
        }
        NodeKind::Mapping(entries) => Node::Map(from_entries(entries, merge)?),
    })
}

fn from_entries(entries: &[(pintle_yaml::Node, pintle_yaml::Node)], merge: bool) -> Result<Entries, Error> {
    let mut own: Entries = Vec::with_capacity(entries.len());
    let mut merged: Option<Entries> = None;
    for (key, value) in entries {
        let Some(text) = key.text() else {
            return Err(at(key, "a mapping or list cannot be a key"));
        };
        if merge && is_merge(key) {
            if merged.is_some() {
                return Err(at(key, "the merge key `<<` stands twice in one mapping; use a list of aliases"));
            }
            merged = Some(merge_values(value)?);
            continue;
        }
        own.push((text.into(), from_yaml(value, merge)?));
    }
    let Some(mut all) = merged else { return Ok(own) };
    for (name, value) in own {
        put(&mut all, name, value);
    }
    Ok(all)
}

/// The entries that a merge key brings: the first of a list wins.
fn merge_values(value: &pintle_yaml::Node) -> Result<Entries, Error> {
    match &value.kind {
        NodeKind::Mapping(entries) => from_entries(entries, true),
        NodeKind::Sequence(items) => {
            let mut all = Entries::new();
            for item in items.iter().rev() {
                let NodeKind::Mapping(entries) = &item.kind else {
                    return Err(at(item, "`<<` takes a mapping or a list of mappings"));
                };
                for (name, value) in from_entries(entries, true)? {
                    put(&mut all, name, value);
                }
            }
            Ok(all)
        }
        NodeKind::Scalar(_) => Err(at(value, "`<<` takes a mapping or a list of mappings")),
    }
}

fn put(all: &mut Entries, name: Arc<str>, value: Node) {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some(entry) => entry.1 = value,
        None => all.push((name, value)),
    }
}

fn is_merge(key: &pintle_yaml::Node) -> bool {
    key.text() == Some("<<")
        && match key.tag.as_deref() {
            None => key.style == pintle_yaml::Style::Plain,
            Some(tag) => tag == "!!merge",
        }
}

fn at(node: &pintle_yaml::Node, message: &str) -> Error {
    Error { line: Some(node.span.line), ..Error::new(message) }
}

fn from_scalar(node: &pintle_yaml::Node, text: &Arc<str>) -> Scalar {
    let style = match node.style {
        pintle_yaml::Style::SingleQuoted => Style::Single,
        pintle_yaml::Style::DoubleQuoted => Style::Double,
        pintle_yaml::Style::Literal => Style::Literal,
        pintle_yaml::Style::Folded => Style::Folded,
        pintle_yaml::Style::Plain | pintle_yaml::Style::Collection => Style::Plain,
    };
    let tag = match node.tag.as_deref() {
        None if style == Style::Plain => scalar::plain_tag(text),
        None | Some("!!str" | "!") => Tag::Str,
        Some("!!null") => Tag::Null,
        Some("!!bool") => Tag::Bool,
        Some("!!int") => Tag::Int,
        Some("!!float") => Tag::Float,
        Some("!!timestamp") => Tag::Time,
        Some("!!binary") => Tag::Binary,
        Some(other) => Tag::Other(other.into()),
    };
    Scalar { text: text.clone(), tag, style }
}
