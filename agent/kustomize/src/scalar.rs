//! The type of a scalar, when it is read and when it is written.

use pintle_yaml::{NodeKind, Resolver, Span};
use serde_json::Value;

use crate::error::Step;
use crate::node::{Scalar, Style, Tag};

/// The tag that a plain text resolves to.
pub(crate) fn plain_tag(text: &str) -> Tag {
    if !may_be_typed(text) {
        return Tag::Str;
    }
    match resolve(text, None, Resolver::V3) {
        Ok(Value::Null) => Tag::Null,
        Ok(Value::Bool(_)) => Tag::Bool,
        Ok(Value::Number(_)) => number_tag(text),
        Ok(Value::String(resolved)) if resolved != text => Tag::Time,
        Ok(_) => Tag::Str,
        // Only infinity and not-a-number have no JSON.
        Err(_) => Tag::Float,
    }
}

fn number_tag(text: &str) -> Tag {
    let digits = text.trim_start_matches(['+', '-']);
    let lower = digits.to_ascii_lowercase();
    if lower.starts_with("0x") || lower.starts_with("0b") || lower.starts_with("0o") {
        return Tag::Int;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        // Beyond 64 bits the reader has only floats.
        let plain = text.replace('_', "");
        if plain.parse::<i64>().is_ok() || plain.parse::<u64>().is_ok() {
            return Tag::Int;
        }
    }
    Tag::Float
}

/// A quick no for the bulk of texts: words that start like no number, date, boolean or null.
fn may_be_typed(text: &str) -> bool {
    match text.as_bytes().first() {
        None => true,
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => true,
        Some(b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'<') => text.len() <= 5,
        Some(_) => false,
    }
}

/// Whether the plain text is something else than a string to a reader of YAML 1.1.
pub(crate) fn is_ambiguous_in_yaml_1_1(text: &str) -> bool {
    if text.is_empty() || text.contains('\n') {
        return false;
    }
    let first = text.as_bytes()[0];
    if first.is_ascii_alphabetic() && text.len() > 5 && !text.contains(':') {
        return false;
    }
    let limits = crate::read::LIMITS;
    match pintle_yaml::documents(text.as_bytes(), &limits) {
        Ok(documents) => match documents.first() {
            None => true,
            Some(document) => {
                !matches!(pintle_yaml::to_json(&document.root, &mut Vec::new(), false), Ok(Value::String(_)))
            }
        },
        Err(_) => false,
    }
}

/// The JSON of a scalar, by the way through YAML text that the reference takes.
pub(crate) fn to_json(scalar: &Scalar) -> Step<Value> {
    let text = &*scalar.text;
    let quoted = scalar.style != Style::Plain || text.contains('\n');
    let string = || Ok(Value::String(text.to_owned()));
    match &scalar.tag {
        Tag::Str => string(),
        Tag::None if quoted => string(),
        Tag::None => plain_json(text),
        tag => {
            if plain_tag(text) == *tag {
                return if quoted { string() } else { plain_json(text) };
            }
            resolve(text, Some(tag), Resolver::V3)
        }
    }
}

fn plain_json(text: &str) -> Step<Value> {
    if may_be_typed(text) { resolve(text, None, Resolver::V3) } else { Ok(Value::String(text.to_owned())) }
}

fn resolve(text: &str, tag: Option<&Tag>, resolver: Resolver) -> Step<Value> {
    let tag = tag.map(|tag| match tag {
        Tag::Null => "!!null".into(),
        Tag::Bool => "!!bool".into(),
        Tag::Int => "!!int".into(),
        Tag::Float => "!!float".into(),
        Tag::Time => "!!timestamp".into(),
        Tag::Binary => "!!binary".into(),
        Tag::Other(name) => name.clone(),
        Tag::Str | Tag::None => "!!str".into(),
    });
    let node = pintle_yaml::Node {
        span: Span::default(),
        kind: NodeKind::Scalar(text.into()),
        tag,
        style: pintle_yaml::Style::Plain,
    };
    pintle_yaml::to_json_as(&node, resolver, &mut Vec::new(), false).map_err(|error| error.message)
}
