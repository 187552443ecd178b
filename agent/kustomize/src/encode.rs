//! YAML text as go-yaml v3 writes it, for values that hold YAML as text and for regular expressions over values.

use std::fmt::Write as _;

use crate::node::{Node, Scalar, Style, Tag};
use crate::scalar;

/// Writes a value: two spaces, lists at the indentation of their key, keys in their order.
pub(crate) fn to_string(node: &Node) -> String {
    let mut text = String::new();
    match node {
        Node::Map(entries) if !entries.is_empty() => mapping(&mut text, node, 0),
        Node::Seq(items) if !items.is_empty() => sequence(&mut text, node, 0),
        _ => {
            inline(&mut text, node, 0);
            text.push('\n');
        }
    }
    text
}

fn mapping(text: &mut String, node: &Node, indent: usize) {
    for (at, (key, value)) in node.entries().iter().enumerate() {
        if at > 0 {
            pad(text, indent);
        }
        plain_or_quoted(text, key, scalar::plain_tag(key) == Tag::Null && !key.is_empty());
        text.push(':');
        match value {
            Node::Map(entries) if !entries.is_empty() => {
                text.push('\n');
                pad(text, indent + 2);
                mapping(text, value, indent + 2);
            }
            Node::Seq(items) if !items.is_empty() => {
                text.push('\n');
                pad(text, indent);
                sequence(text, value, indent);
            }
            _ => {
                let before = text.len();
                text.push(' ');
                inline(text, value, indent + 2);
                if text.len() == before + 1 {
                    text.pop();
                }
                text.push('\n');
            }
        }
    }
}

fn sequence(text: &mut String, node: &Node, indent: usize) {
    for (at, item) in node.items().iter().enumerate() {
        if at > 0 {
            pad(text, indent);
        }
        text.push_str("- ");
        match item {
            Node::Map(entries) if !entries.is_empty() => mapping(text, item, indent + 2),
            Node::Seq(items) if !items.is_empty() => sequence(text, item, indent + 2),
            _ => {
                inline(text, item, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn inline(text: &mut String, node: &Node, indent: usize) {
    match node {
        Node::Scalar(scalar) => write_scalar(text, scalar, indent),
        Node::Seq(_) => text.push_str("[]"),
        Node::Map(_) => text.push_str("{}"),
    }
}

fn write_scalar(text: &mut String, scalar: &Scalar, indent: usize) {
    let value = &*scalar.text;
    let mut tag = "";
    let mut force = false;
    match &scalar.tag {
        Tag::None => {}
        Tag::Str => force = scalar.style == Style::Plain && scalar::plain_tag(value) != Tag::Str,
        other if scalar::plain_tag(value) == *other => {}
        Tag::Null => tag = "!!null ",
        Tag::Bool => tag = "!!bool ",
        Tag::Int => tag = "!!int ",
        Tag::Float => tag = "!!float ",
        Tag::Time => tag = "!!timestamp ",
        Tag::Binary => tag = "!!binary ",
        Tag::Other(name) => {
            text.push_str(name);
            text.push(' ');
        }
    }
    text.push_str(tag);
    match scalar.style {
        Style::Single if !value.contains('\n') => single(text, value),
        Style::Double => double(text, value),
        Style::Literal | Style::Folded if !value.is_empty() && block_fits(value) => {
            block(text, value, indent);
        }
        Style::Plain if value.contains('\n') && block_fits(value) => block(text, value, indent),
        Style::Plain if force => double(text, value),
        _ => plain_or_quoted(text, value, false),
    }
}

fn block_fits(value: &str) -> bool {
    !value.starts_with(' ')
        && !value.lines().any(|line| line.ends_with(' '))
        && value.chars().all(|c| c == '\n' || !c.is_control())
}

fn block(text: &mut String, value: &str, indent: usize) {
    text.push('|');
    let body = value.trim_end_matches('\n');
    match value.len() - body.len() {
        0 => text.push('-'),
        1 => {}
        _ => text.push('+'),
    }
    let shown = if value.ends_with("\n\n") { &value[..value.len() - 1] } else { body };
    for line in shown.split('\n') {
        text.push('\n');
        if !line.is_empty() {
            pad(text, indent.max(2));
            text.push_str(line);
        }
    }
}

fn plain_or_quoted(text: &mut String, value: &str, force: bool) {
    if value.chars().any(|c| c.is_control()) {
        double(text, value);
    } else if force || !plain_fits(value) {
        single(text, value);
    } else {
        text.push_str(value);
    }
}

fn plain_fits(value: &str) -> bool {
    if value.is_empty() {
        return true;
    }
    let first = value.chars().next().unwrap_or(' ');
    let lone = |c: char| value.len() == c.len_utf8() || value[c.len_utf8()..].starts_with(' ');
    if matches!(
        first,
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
    ) || (matches!(first, '-' | '?' | ':') && lone(first))
        || value.starts_with("---")
        || value.starts_with("...")
    {
        return false;
    }
    !(value.starts_with(' ')
        || value.ends_with(' ')
        || value.contains(": ")
        || value.ends_with(':')
        || value.contains(" #"))
}

fn single(text: &mut String, value: &str) {
    text.push('\'');
    text.push_str(&value.replace('\'', "''"));
    text.push('\'');
}

fn double(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            '\0' => text.push_str("\\0"),
            c if c.is_control() => {
                let _ = write!(text, "\\x{:02X}", c as u32);
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
