//! From the value model to JSON and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::error::Step;
use crate::node::{Node, Scalar, Style, Tag};
use crate::scalar;

/// The JSON of a tree.
///
/// # Errors
/// A key twice in one mapping, a tag that does not fit its text, infinity.
pub(crate) fn to_json(node: &Node) -> Step<Value> {
    Ok(match node {
        Node::Scalar(scalar) => scalar::to_json(scalar)?,
        Node::Seq(items) => Value::Array(items.iter().map(to_json).collect::<Step<_>>()?),
        Node::Map(entries) => {
            let mut map = Map::new();
            for (name, value) in entries {
                if map.insert(name.to_string(), to_json(value)?).is_some() {
                    return Err(format!("the key {name:?} stands twice in one mapping; remove one"));
                }
            }
            Value::Object(map)
        }
    })
}

/// A tree from JSON whose numbers keep their text.
pub(crate) fn from_json(value: &Value) -> Node {
    convert(value, &|number| {
        if number.is_f64() {
            float(number.as_f64().unwrap_or_default())
        } else {
            (number.to_string(), Tag::Int)
        }
    })
}

/// A tree from JSON that went through Go's generic decoding: every number is a 64-bit float there.
pub(crate) fn from_json_with_floats(value: &Value) -> Node {
    convert(value, &|number| float(number.as_f64().unwrap_or_default()))
}

fn convert(value: &Value, number: &dyn Fn(&Number) -> (String, Tag)) -> Node {
    match value {
        Value::Null => Node::null(),
        Value::Bool(flag) => Node::tagged(if *flag { "true" } else { "false" }, Tag::Bool),
        Value::Number(value) => {
            let (text, tag) = number(value);
            Node::tagged(&text, tag)
        }
        Value::String(text) => {
            let style = if text.contains('\n') {
                Style::Literal
            } else if scalar::plain_tag(text) != Tag::Str {
                Style::Double
            } else {
                Style::Plain
            };
            Node::Scalar(Scalar { text: text.as_str().into(), tag: Tag::Str, style })
        }
        Value::Array(items) => Node::Seq(items.iter().map(|item| convert(item, number)).collect()),
        Value::Object(map) => Node::Map(
            map.iter().map(|(name, value)| (Arc::from(name.as_str()), convert(value, number))).collect(),
        ),
    }
}

/// Go's `%g` with the shortest digits: an exponent below 1e-4 and from 1e6 on.
fn float(number: f64) -> (String, Tag) {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let text = number.to_string();
        let tag = if text.contains('.') { Tag::Float } else { Tag::Int };
        return (text, tag);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    (format!("{digits}e{sign}{:02}", exponent.abs()), Tag::Float)
}

/// JSON as Go's encoder writes it: sorted keys, no spaces, `<`, `>`, `&` and the line separators escaped.
pub(crate) fn go_json(value: &Value) -> String {
    let text = value.to_string();
    escape_html(&text)
}

/// As [`go_json`] with an indentation of two spaces.
pub(crate) fn go_json_indented(value: &Value) -> String {
    escape_html(&serde_json::to_string_pretty(value).unwrap_or_default())
}

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A mapping of texts.
pub(crate) fn texts(map: &BTreeMap<String, String>) -> Node {
    Node::Map(map.iter().map(|(name, value)| (Arc::from(name.as_str()), Node::string(value))).collect())
}
