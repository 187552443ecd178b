//! The hash of its content in the name of a generated object.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::error::Step;
use crate::node::Node;
use crate::resmap::ResMap;
use crate::write;

/// Adds hashes to the names of the generated objects that want one.
pub(crate) fn add(map: &mut ResMap) -> Step<()> {
    let schemas = map.schemas.clone();
    for resource in map.list.iter_mut().filter(|resource| resource.needs_hash()) {
        let hash = match resource.kind() {
            "ConfigMap" => hash(&resource.node, "ConfigMap", &["data"], "binaryData")?,
            "Secret" => hash(&resource.node, "Secret", &["data", "type"], "stringData")?,
            other => {
                return Err(format!(
                    "{other} {:?} asks for a hash in its name, which only ConfigMap and Secret have",
                    resource.name()
                ));
            }
        };
        resource.remember_id(&schemas)?;
        let name = format!("{}-{hash}", resource.name());
        resource.set_name(&name)?;
    }
    Ok(())
}

fn hash(node: &Node, kind: &str, fields: &[&str], optional: &str) -> Step<String> {
    let mut content = Map::new();
    content.insert("kind".to_owned(), kind.into());
    // The reference looks for the name in the wrong place, so that it never counts.
    content.insert("name".to_owned(), "".into());
    for field in fields {
        let value = match node.get(field) {
            None => "".into(),
            Some(Node::Scalar(scalar)) => (*scalar.text).into(),
            Some(other) => mapping(other)?,
        };
        content.insert((*field).to_owned(), value);
    }
    if let Some(value @ Node::Map(_)) = node.get(optional) {
        content.insert(optional.to_owned(), write::to_json(value)?);
    }
    Ok(encode(&write::go_json(&Value::Object(content))))
}

/// A list where a mapping should be counts as null.
fn mapping(node: &Node) -> Step<Value> {
    let value = write::to_json(node)?;
    Ok(if value.is_object() { value } else { Value::Null })
}

/// Ten hexadecimal digits without those that form words.
fn encode(content: &str) -> String {
    let mut hex = String::new();
    for byte in &Sha256::digest(content.as_bytes())[..5] {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.chars()
        .map(|digit| match digit {
            '0' => 'g',
            '1' => 'h',
            '3' => 'k',
            'a' => 'm',
            'e' => 't',
            other => other,
        })
        .collect()
}
