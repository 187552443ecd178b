//! Which objects a patch or replacement means.

use std::collections::BTreeMap;

use regex::Regex;

use crate::error::Step;
use crate::id::{Gvk, ResId};

/// As written; empty parts match everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Selector {
    pub(crate) id: ResId,
    pub(crate) annotations: String,
    pub(crate) labels: String,
}

/// With its regular expressions compiled.
pub(crate) struct Matcher {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
}

impl Matcher {
    pub(crate) fn new(selector: &Selector) -> Step<Self> {
        let id = &selector.id;
        Ok(Self {
            group: anchored("group", &id.gvk.group)?,
            version: anchored("version", &id.gvk.version)?,
            kind: anchored("kind", &id.gvk.kind)?,
            name: anchored("name", &id.name)?,
            namespace: anchored("namespace", &id.namespace)?,
        })
    }

    pub(crate) fn fits_gvk(&self, gvk: &Gvk) -> bool {
        fits(self.group.as_ref(), &gvk.group)
            && fits(self.version.as_ref(), &gvk.version)
            && fits(self.kind.as_ref(), &gvk.kind)
    }

    pub(crate) fn fits_name(&self, name: &str) -> bool {
        fits(self.name.as_ref(), name)
    }

    pub(crate) fn fits_namespace(&self, namespace: &str) -> bool {
        fits(self.namespace.as_ref(), namespace)
    }
}

fn anchored(field: &str, pattern: &str) -> Step<Option<Regex>> {
    if pattern.is_empty() {
        return Ok(None);
    }
    Regex::new(&format!("^(?:{pattern})$"))
        .map(Some)
        .map_err(|error| format!("the {field} {pattern:?} of the target is no regular expression: {error}"))
}

fn fits(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(text))
}

/// A selector of labels as Kubernetes writes them: `a=b,c!=d,e in (f,g),!h`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Missing,
    Greater,
    Less,
}

impl Labels {
    /// Reads a selector.
    ///
    /// # Errors
    /// Syntax, and keys or values that no label can have.
    pub(crate) fn parse(text: &str) -> Step<Self> {
        let bad = |what: &str| format!("the selector {text:?}: {what}");
        let tokens = tokens(text);
        let mut requirements = Vec::new();
        let mut at = 0;
        if tokens.is_empty() {
            return Ok(Self(requirements));
        }
        loop {
            let (requirement, next) = requirement(&tokens, at).map_err(|what| bad(&what))?;
            requirements.push(requirement);
            match tokens.get(next).map(String::as_str) {
                None => return Ok(Self(requirements)),
                Some(",") => {}
                Some(other) => return Err(bad(&format!("{other:?} where `,` or the end is wanted"))),
            }
            at = next + 1;
            if at >= tokens.len() {
                return Err(bad("a key is missing after the last `,`"));
            }
        }
    }

    pub(crate) fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let number = |text: &str| text.parse::<i64>().ok();
            let wanted = requirement.values.first().and_then(|text| number(text));
            match requirement.operator {
                Operator::In => value.is_some_and(|value| requirement.values.contains(value)),
                Operator::NotIn => value.is_none_or(|value| !requirement.values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::Missing => value.is_none(),
                Operator::Greater => {
                    value.and_then(|value| number(value)).zip(wanted).is_some_and(|(a, b)| a > b)
                }
                Operator::Less => {
                    value.and_then(|value| number(value)).zip(wanted).is_some_and(|(a, b)| a < b)
                }
            }
        })
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() => {}
            '(' | ')' | ',' | '!' | '=' | '<' | '>' => {
                let mut token = c.to_string();
                if matches!(c, '!' | '=') && chars.peek() == Some(&'=') {
                    chars.next();
                    token.push('=');
                }
                all.push(token);
            }
            c => {
                let mut token = c.to_string();
                while let Some(&next) = chars.peek() {
                    if next.is_ascii_whitespace() || "(),!=<>".contains(next) {
                        break;
                    }
                    token.push(next);
                    chars.next();
                }
                all.push(token);
            }
        }
    }
    all
}

fn requirement(tokens: &[String], at: usize) -> Step<(Requirement, usize)> {
    let get = |at: usize| tokens.get(at).map(String::as_str);
    if get(at) == Some("!") {
        let key = key(get(at + 1))?;
        return Ok((Requirement { key, operator: Operator::Missing, values: Vec::new() }, at + 2));
    }
    let key = key(get(at))?;
    let operator = match get(at + 1) {
        None | Some(",") => {
            return Ok((Requirement { key, operator: Operator::Exists, values: Vec::new() }, at + 1));
        }
        Some("=" | "==" | "in") => Operator::In,
        Some("!=" | "notin") => Operator::NotIn,
        Some(">") => Operator::Greater,
        Some("<") => Operator::Less,
        Some(other) => return Err(format!("{other:?} is no operator; use =, !=, in, notin, <, >")),
    };
    if matches!(get(at + 1), Some("in" | "notin")) {
        let (values, next) = set(tokens, at + 2)?;
        return Ok((Requirement { key, operator, values }, next));
    }
    let (value, next) = match get(at + 2) {
        None | Some(",") => (String::new(), at + 2),
        Some(value) => (value.to_owned(), at + 3),
    };
    check_value(&value)?;
    if matches!(operator, Operator::Greater | Operator::Less) && value.parse::<i64>().is_err() {
        return Err(format!("{value:?} is no whole number"));
    }
    Ok((Requirement { key, operator, values: vec![value] }, next))
}

fn set(tokens: &[String], at: usize) -> Step<(Vec<String>, usize)> {
    if tokens.get(at).map(String::as_str) != Some("(") {
        return Err("`(` is missing after `in` or `notin`".to_owned());
    }
    let mut values = Vec::new();
    let mut expect_value = true;
    for (index, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.as_str() {
            ")" => {
                if expect_value {
                    values.push(String::new());
                }
                return Ok((values, index + 1));
            }
            "," => {
                if expect_value {
                    values.push(String::new());
                }
                expect_value = true;
            }
            value if expect_value => {
                check_value(value)?;
                values.push(value.to_owned());
                expect_value = false;
            }
            other => return Err(format!("{other:?} where `,` or `)` is wanted")),
        }
    }
    Err("`)` is missing".to_owned())
}

fn key(token: Option<&str>) -> Step<String> {
    let key = token.ok_or("a key is missing")?;
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_fits = prefix.is_none_or(|prefix| {
        !prefix.is_empty()
            && prefix.len() <= 253
            && prefix.split('.').all(|part| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                    && !part.starts_with('-')
                    && !part.ends_with('-')
            })
    });
    if !prefix_fits || name.is_empty() || !is_name(name) {
        return Err(format!("{key:?} is no key of a label"));
    }
    Ok(key.to_owned())
}

fn check_value(value: &str) -> Step<()> {
    if value.is_empty() || is_name(value) { Ok(()) } else { Err(format!("{value:?} is no value of a label")) }
}

fn is_name(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && ends(text.as_bytes().first())
        && ends(text.as_bytes().last())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_labels_are_read_as_kubernetes_reads_them() {
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned()), ("n".to_owned(), "5".to_owned())]);
        for fitting in ["", "a", "a=b", "a==b,n", "a in (b,c)", "!x", "x!=y", "x notin (y)", "n>4", "n<6"] {
            assert!(Labels::parse(fitting).is_ok_and(|selector| selector.fits(&labels)), "{fitting}");
        }
        for other in ["x", "a=c", "!a", "a notin (b)", "n>5"] {
            assert!(Labels::parse(other).is_ok_and(|selector| !selector.fits(&labels)), "{other}");
        }
        for bad in ["a=b,", "a in b", "a in (b", "-a", "a=b c", "n>x", "="] {
            assert!(Labels::parse(bad).is_err(), "{bad}");
        }
    }
}
