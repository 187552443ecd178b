//! One file to objects.

use std::sync::Arc;

use pintle_model::{DesiredObject, Object, Origin, limits};
use pintle_yaml::{Limits, Node};
use serde_json::Value;

use crate::directory::warning;
use crate::{RenderError, Rendered};

const LIMITS: Limits = Limits {
    max_bytes: limits::YAML_FILE_MAX_BYTES,
    max_documents: limits::YAML_MAX_DOCUMENTS,
    max_depth: limits::YAML_MAX_DEPTH,
    max_nodes: limits::YAML_MAX_NODES,
};

pub(crate) fn read(file: &str, content: &[u8], strict: bool, into: &mut Rendered) -> Result<(), RenderError> {
    let documents = pintle_yaml::documents(content, &LIMITS).map_err(|error| {
        let template = std::str::from_utf8(content).is_ok_and(pintle_gotemplate::contains_action);
        let hint = if template {
            " (it looks like a Helm template; a chart cannot be a plain manifest)"
        } else {
            ""
        };
        RenderError(format!("{file}:{error}{hint}"))
    })?;
    let shared: Arc<str> = file.into();
    for document in documents {
        let mut warnings = Vec::new();
        let value = pintle_yaml::to_json(&document.root, &mut warnings, strict)
            .map_err(|error| RenderError(format!("{file}:{error}")))?;
        into.problems.extend(warnings.iter().map(|found| warning(file, found.line, &found.message)));
        let place = Place { file: &shared, line: document.line, index: document.index };
        add(value, &document.root, &place, into)?;
        if into.objects.len() > limits::RENDER_MAX_OBJECTS {
            return Err(RenderError(format!("{file}: more than {} objects", limits::RENDER_MAX_OBJECTS)));
        }
    }
    Ok(())
}

#[derive(Clone)]
struct Place<'a> {
    file: &'a Arc<str>,
    line: u32,
    index: usize,
}

impl Place<'_> {
    fn error(&self, what: &str) -> RenderError {
        RenderError(format!("{}:{}: document {} {what}", self.file, self.line, self.index))
    }
}

/// An object, or the items of a List (`kind: List`, `ConfigMapList` and the like with `items`).
fn add(value: Value, node: &Node, place: &Place<'_>, into: &mut Rendered) -> Result<(), RenderError> {
    let is_list =
        value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && value.get("items").is_some();
    if is_list {
        let nodes = node.get("items").map(items_of).unwrap_or_default();
        return match value["items"].clone() {
            Value::Array(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    let node = nodes.get(index).unwrap_or(node);
                    let place = Place { line: node.span.line, ..place.clone() };
                    add(item, node, &place, into)?;
                }
                Ok(())
            }
            Value::Null => Ok(()),
            _ => Err(place.error("has items that are not a list")),
        };
    }
    let object = Object::try_from(value.clone()).map_err(|error| {
        let hint = if value.get("items").is_some() { "; a list of objects needs kind: List" } else { "" };
        place.error(&format!("{error}{hint}"))
    })?;
    check(&object, node, place)?;
    let origin = Origin { file: place.file.clone(), line: place.line };
    into.objects.push(DesiredObject { object, origin });
    Ok(())
}

fn items_of(node: &Node) -> Vec<Node> {
    match &node.kind {
        pintle_yaml::NodeKind::Sequence(items) => items.to_vec(),
        _ => Vec::new(),
    }
}

/// What would fail later, or worse, not fail: a name, and labels and annotations that are strings.
fn check(object: &Object, node: &Node, place: &Place<'_>) -> Result<(), RenderError> {
    let named = format!("{} {}", object.kind(), object.name());
    match object.at(&["metadata"]) {
        Some(Value::Object(_)) => {}
        _ => return Err(place.error(&format!("({}) has no metadata.name", object.kind()))),
    }
    match object.at(&["metadata", "name"]) {
        Some(Value::String(name)) if !name.is_empty() => {}
        // Only hooks can use it; whether it is one, the caller tells.
        Some(Value::Null) | None if !object.text(&["metadata", "generateName"]).is_empty() => {}
        Some(Value::Null | Value::String(_)) | None => {
            return Err(place.error(&format!("({}) has no metadata.name", object.kind())));
        }
        Some(other) => {
            let text =
                format!("({}) has the name {other}, which is no string; put it in quotes", object.kind());
            return Err(place.error(&text));
        }
    }
    if !matches!(object.at(&["metadata", "namespace"]), None | Some(Value::Null | Value::String(_))) {
        return Err(place.error(&format!("({named}) has a namespace that is no string; put it in quotes")));
    }
    for field in ["labels", "annotations"] {
        match object.at(&["metadata", field]) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                for (name, value) in map {
                    if !value.is_string() {
                        let line = line_of(node, &["metadata", field, name]).unwrap_or(place.line);
                        return Err(RenderError(format!(
                            "{}:{line}: {named}: metadata.{field}[{name:?}] is {}, and must be a string; put it in quotes",
                            place.file,
                            kind_of(value)
                        )));
                    }
                }
            }
            Some(other) => {
                let text = format!(
                    "({named}) has metadata.{field} that is {}, and must be a mapping",
                    kind_of(other)
                );
                return Err(place.error(&text));
            }
        }
    }
    Ok(())
}

fn line_of(node: &Node, path: &[&str]) -> Option<u32> {
    path.iter().try_fold(node, |node, name| node.get(name)).map(|node| node.span.line)
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}
