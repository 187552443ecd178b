//! A tree to JSON, as a plain manifest.

use serde_json::{Map, Number, Value};

use crate::error::{Error, Path, Warning, shorten};
use crate::node::{Node, NodeKind, Style};
use crate::resolve::{self, Scalar};

/// Resolves a tree to JSON. Duplicate keys are a warning and the last one wins, or, when `strict`, an error.
///
/// # Errors
/// Values that JSON cannot hold (`.inf`, `.nan`), keys that are mappings or sequences, bad `!!binary`.
pub fn to_json(node: &Node, warnings: &mut Vec<Warning>, strict: bool) -> Result<Value, Error> {
    Resolver { warnings, strict }.value(node, &Path::Root)
}

struct Resolver<'w> {
    warnings: &'w mut Vec<Warning>,
    strict: bool,
}

impl Resolver<'_> {
    fn value(&mut self, node: &Node, path: &Path<'_>) -> Result<Value, Error> {
        match &node.kind {
            NodeKind::Scalar(_) => json_scalar(&scalar(node, path)?, node, path),
            NodeKind::Sequence(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    values.push(self.value(item, &Path::Index(path, index))?);
                }
                Ok(Value::Array(values))
            }
            NodeKind::Mapping(entries) => {
                let mut map = Map::new();
                self.mapping(entries, path, &mut map)?;
                Ok(Value::Object(map))
            }
        }
    }

    /// In document order: a merge after an explicit key overrides it, as go-yaml v2 does.
    fn mapping(
        &mut self,
        entries: &[(Node, Node)],
        path: &Path<'_>,
        map: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        let mut own: Vec<String> = Vec::new();
        for (key, value) in entries {
            if is_merge(key) {
                self.merge(value, path, map)?;
                continue;
            }
            let name = key_text(key, path)?;
            if own.contains(&name) {
                let message = format!("the key {:?} stands twice; the last one counts", shorten(&name));
                if self.strict {
                    return Err(Error::new(key.span, path, message));
                }
                self.warnings.push(Warning {
                    message,
                    line: key.span.line,
                    column: key.span.column,
                    path: path.to_string(),
                });
            }
            let resolved = self.value(value, &Path::Key(path, &name))?;
            map.insert(name.clone(), resolved);
            own.push(name);
        }
        Ok(())
    }

    fn merge(&mut self, node: &Node, path: &Path<'_>, map: &mut Map<String, Value>) -> Result<(), Error> {
        match &node.kind {
            NodeKind::Mapping(entries) => self.mapping(entries, path, map),
            // The first of a list wins: later ones are merged first.
            NodeKind::Sequence(items) => {
                for item in items.iter().rev() {
                    let NodeKind::Mapping(entries) = &item.kind else {
                        return Err(Error::new(item.span, path, "`<<` takes mappings"));
                    };
                    self.mapping(entries, path, map)?;
                }
                Ok(())
            }
            NodeKind::Scalar(_) => {
                Err(Error::new(node.span, path, "`<<` takes a mapping or a list of mappings"))
            }
        }
    }
}

pub(crate) fn is_merge(key: &Node) -> bool {
    key.text() == Some("<<")
        && (key.tag.as_deref() == Some("!!merge") || (key.style == Style::Plain && key.tag.is_none()))
}

/// The typed value of a scalar node, by its tag and style.
pub(crate) fn scalar(node: &Node, path: &Path<'_>) -> Result<Scalar, Error> {
    let text = node.text().unwrap_or_default();
    match node.tag.as_deref() {
        Some("!!str" | "!") => Ok(Scalar::Text(text.to_owned())),
        Some("!!binary") => {
            let bytes =
                decode_base64(text).ok_or_else(|| Error::new(node.span, path, "!!binary is not base64"))?;
            Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Some("!!float") => match resolve::plain(text) {
            Scalar::Int(number) => Ok(Scalar::Float(number as f64)),
            Scalar::Uint(number) => Ok(Scalar::Float(number as f64)),
            other => Ok(other),
        },
        Some("!!null" | "!!bool" | "!!int") => Ok(resolve::plain(text)),
        _ if node.style == Style::Plain => Ok(resolve::plain(text)),
        _ => Ok(Scalar::Text(text.to_owned())),
    }
}

fn json_scalar(scalar: &Scalar, node: &Node, path: &Path<'_>) -> Result<Value, Error> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(*flag),
        Scalar::Int(number) => Value::from(*number),
        Scalar::Uint(number) => Value::from(*number),
        Scalar::Float(number) => Value::Number(json_number(*number).ok_or_else(|| {
            Error::new(
                node.span,
                path,
                "infinity and not-a-number have no place in JSON; put the value in quotes",
            )
        })?),
        Scalar::Text(text) => Value::String(text.clone()),
    })
}

/// Whole numbers print without a fraction, as Go's JSON does.
pub(crate) fn json_number(number: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        return Some(Number::from(number as i64));
    }
    Number::from_f64(number)
}

/// A key as JSON writes it.
pub(crate) fn key_text(key: &Node, path: &Path<'_>) -> Result<String, Error> {
    if !matches!(key.kind, NodeKind::Scalar(_)) {
        return Err(Error::new(key.span, path, "a mapping or list cannot be a key"));
    }
    Ok(match scalar(key, path)? {
        Scalar::Null => "null".to_owned(),
        Scalar::Bool(flag) => flag.to_string(),
        Scalar::Int(number) => number.to_string(),
        Scalar::Uint(number) => number.to_string(),
        // go-yaml prints float keys with the precision of a 32-bit float.
        Scalar::Float(number) => (number as f32).to_string(),
        Scalar::Text(text) => text,
    })
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bits = 0_u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
