//! JSON to YAML by sigs.k8s.io/yaml's rules: two spaces, sequences at their parent's indent, keys in natural order,
//! double quotes where a plain scalar would be read as something else.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::resolve::{self, Resolver, Scalar};

/// Writes a JSON value as YAML.
pub fn to_string(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut text, map, 0),
        Value::Array(items) if !items.is_empty() => sequence(&mut text, items, 0),
        other => {
            inline(&mut text, other, 0);
            text.push('\n');
        }
    }
    text
}

fn mapping(text: &mut String, map: &Map<String, Value>, indent: usize) {
    let mut names: Vec<&String> = map.keys().collect();
    names.sort_by(|a, b| natural(a, b));
    for name in names {
        pad(text, indent);
        scalar(text, name, indent);
        text.push(':');
        below(text, &map[name.as_str()], indent);
    }
}

/// What stands behind a key.
fn below(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            mapping(text, map, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            sequence(text, items, indent);
        }
        other => {
            text.push(' ');
            inline(text, other, indent + 2);
            text.push('\n');
        }
    }
}

fn sequence(text: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(text, indent);
        text.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => {
                let mut inner = String::new();
                mapping(&mut inner, map, indent + 2);
                text.push_str(inner.trim_start_matches(' '));
            }
            Value::Array(items) if !items.is_empty() => {
                let mut inner = String::new();
                sequence(&mut inner, items, indent + 2);
                text.push_str(inner.trim_start_matches(' '));
            }
            other => {
                inline(text, other, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn inline(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(string) => scalar(text, string, indent),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
    }
}

fn scalar(text: &mut String, string: &str, indent: usize) {
    if is_block(string) {
        block(text, string, indent);
    } else if resolve::plain(string, Resolver::V2) != Scalar::Text(string.to_owned()) || is_ambiguous(string)
    {
        double_quoted(text, string);
    } else if is_plain(string) {
        text.push_str(string);
    } else if string.chars().all(|c| !c.is_control()) {
        text.push('\'');
        text.push_str(&string.replace('\'', "''"));
        text.push('\'');
    } else {
        double_quoted(text, string);
    }
}

/// Base 60 and dates: strings here, something else to other readers.
fn is_ambiguous(string: &str) -> bool {
    let base60 = string.contains(':')
        && string.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+'))
        && string
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'_' | b'-' | b'+'));
    let date = string.len() >= 8
        && string.bytes().take(4).all(|byte| byte.is_ascii_digit())
        && string.as_bytes().get(4) == Some(&b'-')
        && string.as_bytes().get(5).is_some_and(u8::is_ascii_digit);
    base60 || date || matches!(string, "<<" | "=")
}

fn is_plain(string: &str) -> bool {
    let Some(first) = string.chars().next() else { return false };
    let indicator = "-?:,[]{}#&*!|>'\"%@` ";
    let first_ok = !indicator.contains(first)
        || (matches!(first, '-' | '?' | ':')
            && string.chars().nth(1).is_some_and(|next| !next.is_whitespace()));
    first_ok
        && !string.starts_with("---")
        && !string.starts_with("...")
        && !string.ends_with([' ', ':'])
        && !string.contains(": ")
        && !string.contains(" #")
        && string.chars().all(|c| !c.is_control() && !is_special(c))
}

fn is_special(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}') || (c as u32) > 0xffff
}

/// Several lines without anything that a block scalar cannot hold.
fn is_block(string: &str) -> bool {
    string.contains('\n')
        && string.chars().all(|c| (!c.is_control() || c == '\n' || c == '\t') && !is_special(c))
        && !string.starts_with([' ', '\n', '\t'])
        && !string.lines().any(|line| line.ends_with(' '))
}

fn block(text: &mut String, string: &str, indent: usize) {
    let body = string.trim_end_matches('\n');
    let ending = string.len() - body.len();
    text.push_str(match ending {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        text.push('\n');
        if !line.is_empty() {
            pad(text, indent.max(2));
            text.push_str(line);
        }
    }
    for _ in 1..ending {
        text.push('\n');
    }
}

fn double_quoted(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() || is_special(c) => {
                let code = c as u32;
                let _ = match code {
                    0..=0xff => write!(text, "\\x{code:02X}"),
                    0x100..=0xffff => write!(text, "\\u{code:04X}"),
                    _ => write!(text, "\\U{code:08X}"),
                };
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// Numbers in names by value: `a2` before `a10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.chars().peekable(), b.chars().peekable());
    loop {
        match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return a.cmp(b),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
                    let mut value = 0_u64;
                    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                        value = value.saturating_mul(10).saturating_add(u64::from(digit));
                        chars.next();
                    }
                    value
                };
                match number(&mut left).cmp(&number(&mut right)) {
                    Ordering::Equal => {}
                    other => return other,
                }
            }
            (Some(x), Some(y)) => {
                if x != y {
                    // Letters sort after everything else, as go-yaml does.
                    return (x.is_alphabetic(), x).cmp(&(y.is_alphabetic(), y));
                }
                left.next();
                right.next();
            }
        }
    }
}
