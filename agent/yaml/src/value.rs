//! A tree to JSON, as a plain manifest.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::base64;
use crate::error::{Error, Path, Warning, shorten};
use crate::float::{json_number, shortest_32, shortest_64};
use crate::node::{Node, NodeKind, Span, Style};
use crate::resolve::{self, Resolver, Scalar};

/// Resolves a tree to JSON as kubectl does ([`Resolver::V2`]). Duplicate keys are a warning and the last one wins, or,
/// when `strict`, an error.
///
/// # Errors
/// Values that JSON cannot hold (`.inf`, `.nan`), keys that are mappings, sequences or null, a tag that does not fit
/// its text, bad `!!binary`.
pub fn to_json(node: &Node, warnings: &mut Vec<Warning>, strict: bool) -> Result<Value, Error> {
    to_json_as(node, Resolver::V2, warnings, strict)
}

/// As [`to_json`], by the rules of `resolver`. With [`Resolver::V3`] a key twice is always an error.
///
/// # Errors
/// As [`to_json`].
pub fn to_json_as(
    node: &Node,
    resolver: Resolver,
    warnings: &mut Vec<Warning>,
    strict: bool,
) -> Result<Value, Error> {
    Converter { resolver, warnings, strict }.value(node, &Path::Root)
}

const NOT_FINITE: &str = "infinity and not-a-number have no place in JSON; put the value in quotes";
const NULL_KEY: &str = "null cannot be a key; put it in quotes";
const LARGE_KEY: &str = "a number above 9223372036854775807 cannot be a key; put it in quotes";

/// Whether Go notices the error only when it writes JSON, and so not in a value that a later key replaced.
fn is_late(error: &Error) -> bool {
    [NOT_FINITE, NULL_KEY, LARGE_KEY].contains(&error.message.as_str())
}

struct Converter<'w> {
    resolver: Resolver,
    warnings: &'w mut Vec<Warning>,
    strict: bool,
}

/// The keys of one mapping so far. Go tells `1` and `"1"` apart here, JSON does not.
#[derive(Default)]
struct Keys {
    /// Own keys of the mapping, as JSON writes them.
    own: HashSet<String>,
    /// All keys with their types, merged ones too, for the strict mode.
    typed: HashSet<String>,
}

impl Converter<'_> {
    fn value(&mut self, node: &Node, path: &Path<'_>) -> Result<Value, Error> {
        match &node.kind {
            NodeKind::Scalar(_) => json_scalar(scalar(node, self.resolver, path)?, node, path),
            NodeKind::Sequence(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    values.push(self.value(item, &Path::Index(path, index))?);
                }
                Ok(Value::Array(values))
            }
            NodeKind::Mapping(entries) => {
                let mut map = Map::new();
                match self.resolver {
                    Resolver::V2 => self.mapping(entries, path, &mut map, &mut Keys::default())?,
                    Resolver::V3 => self.mapping_v3(entries, path, &mut map)?,
                }
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
        keys: &mut Keys,
    ) -> Result<(), Error> {
        keys.own.clear();
        for (index, (key, value)) in entries.iter().enumerate() {
            if is_merge(key, Resolver::V2) {
                for mapping in merged(value, path)?.into_iter().rev() {
                    let mut inner = Keys { own: HashSet::new(), typed: std::mem::take(&mut keys.typed) };
                    self.mapping(mapping, path, map, &mut inner)?;
                    keys.typed = inner.typed;
                }
                continue;
            }
            let (identity, name) = typed_key(key, path)?;
            let again = !keys.own.insert(name.clone());
            // Strict decoding also refuses a key that a merge brought, but not `1` next to `"1"`.
            let never_equal = identity == "!!float .nan";
            let refused = self.strict && !keys.typed.insert(identity) && !never_equal;
            if refused {
                return Err(Error::new(key.span, path, twice(&name)));
            }
            if again {
                self.warn(key.span, path, twice(&name));
            }
            let resolved = match self.value(value, &Path::Key(path, &name)) {
                Err(error) if is_late(&error) && stands_in(&entries[index + 1..], &name, path) => Value::Null,
                other => other?,
            };
            map.insert(name, resolved);
        }
        Ok(())
    }

    /// Explicit keys first, then the one merge, of which the first mapping wins.
    fn mapping_v3(
        &mut self,
        entries: &[(Node, Node)],
        path: &Path<'_>,
        map: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        unique_v3(entries, path)?;
        let mut merge = None;
        for (key, value) in entries {
            if is_merge(key, Resolver::V3) {
                merge = Some(value);
                continue;
            }
            let name = key_text(key, Resolver::V3, path)?;
            if !map.contains_key(&name) {
                let resolved = self.value(value, &Path::Key(path, &name))?;
                map.insert(name, resolved);
            }
        }
        if let Some(value) = merge {
            for mapping in merged(value, path)? {
                self.mapping_v3(mapping, path, map)?;
            }
        }
        Ok(())
    }

    fn warn(&mut self, span: Span, path: &Path<'_>, message: String) {
        self.warnings.push(Warning { message, line: span.line, column: span.column, path: path.to_string() });
    }
}

/// Whether a later entry has the key.
fn stands_in(entries: &[(Node, Node)], name: &str, path: &Path<'_>) -> bool {
    entries.iter().any(|(key, _)| typed_key(key, path).is_ok_and(|(_, found)| found == name))
}

/// go-yaml v3 compares the texts of keys before anything else, so that `<<` twice is refused too.
pub(crate) fn unique_v3(entries: &[(Node, Node)], path: &Path<'_>) -> Result<(), Error> {
    let mut seen = std::collections::HashMap::new();
    for (key, _) in entries {
        let name = key.text().unwrap_or_default();
        if let Some(first) = seen.insert(name, key.span) {
            let message = format!(
                "the key {:?} stands twice (lines {} and {})",
                shorten(name),
                first.line,
                key.span.line
            );
            return Err(Error::new(key.span, path, message));
        }
    }
    Ok(())
}

fn twice(name: &str) -> String {
    format!("the key {:?} stands twice; the last one counts", shorten(name))
}

/// The mappings that a `<<` takes, in the order of the text.
pub(crate) fn merged<'a>(node: &'a Node, path: &Path<'_>) -> Result<Vec<&'a [(Node, Node)]>, Error> {
    match &node.kind {
        NodeKind::Mapping(entries) => Ok(vec![entries]),
        NodeKind::Sequence(items) => items
            .iter()
            .map(|item| match &item.kind {
                NodeKind::Mapping(entries) => Ok(&entries[..]),
                _ => Err(Error::new(item.span, path, "`<<` takes mappings")),
            })
            .collect(),
        NodeKind::Scalar(_) => Err(Error::new(node.span, path, "`<<` takes a mapping or a list of mappings")),
    }
}

pub(crate) fn is_merge(key: &Node, resolver: Resolver) -> bool {
    key.text() == Some("<<")
        && match key.tag.as_deref() {
            Some("!!merge") => true,
            Some("!") if resolver == Resolver::V2 => true,
            None | Some("!") => key.style == Style::Plain,
            Some(_) => false,
        }
}

/// The typed value of a scalar node, by its tag and style.
pub(crate) fn scalar(node: &Node, resolver: Resolver, path: &Path<'_>) -> Result<Scalar, Error> {
    let text = node.text().unwrap_or_default();
    let tag = match node.tag.as_deref() {
        // `!` says nothing to v3 and "a string" to v2.
        Some("!") if resolver == Resolver::V3 => None,
        tag => tag,
    };
    match tag {
        None if node.style == Style::Plain => Ok(resolve::plain(text, resolver)),
        None | Some("!!str") => Ok(Scalar::Text(text.to_owned())),
        Some("!!binary") => {
            let bytes =
                base64::decode(text).ok_or_else(|| Error::new(node.span, path, "!!binary is not base64"))?;
            Ok(Scalar::Text(base64::lossy(&bytes)))
        }
        Some(tag @ ("!!null" | "!!bool" | "!!int" | "!!float" | "!!timestamp")) => {
            let found = match (resolve::resolve(text, resolver, tag == "!!timestamp"), tag) {
                (Scalar::Int(number), "!!float") => Scalar::Float(number as f64),
                (found, _) => found,
            };
            if found.tag() != tag {
                let message = format!("the tag {tag} does not fit a text that reads as {}", found.tag());
                return Err(Error::new(node.span, path, message));
            }
            Ok(found)
        }
        Some(_) => Ok(Scalar::Text(text.to_owned())),
    }
    .map(|found| match found {
        // v2 gives a date to an untyped reader as the text that was written.
        Scalar::Time(_) if resolver == Resolver::V2 => Scalar::Text(text.to_owned()),
        found => found,
    })
}

fn json_scalar(scalar: Scalar, node: &Node, path: &Path<'_>) -> Result<Value, Error> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(flag),
        Scalar::Int(number) => Value::from(number),
        Scalar::Uint(number) => Value::from(number),
        Scalar::Float(number) => {
            Value::Number(json_number(number).ok_or_else(|| Error::new(node.span, path, NOT_FINITE))?)
        }
        Scalar::Time(time) => Value::String(time.to_string()),
        Scalar::Text(text) => Value::String(text),
    })
}

/// A key as JSON writes it.
pub(crate) fn key_text(key: &Node, resolver: Resolver, path: &Path<'_>) -> Result<String, Error> {
    match resolver {
        Resolver::V2 => typed_key(key, path).map(|(_, name)| name),
        Resolver::V3 => {
            let text = key.text().ok_or_else(|| not_a_key(key, path))?;
            let null = match key.tag.as_deref() {
                None | Some("!") => key.style == Style::Plain && resolve::is_null_text(text),
                tag => tag == Some("!!null"),
            };
            if null { Err(null_key(key, path)) } else { Ok(text.to_owned()) }
        }
    }
}

fn not_a_key(key: &Node, path: &Path<'_>) -> Error {
    Error::new(key.span, path, "a mapping or list cannot be a key")
}

fn null_key(key: &Node, path: &Path<'_>) -> Error {
    Error::new(key.span, path, NULL_KEY)
}

/// A key as Go tells it from others, and as JSON writes it.
fn typed_key(key: &Node, path: &Path<'_>) -> Result<(String, String), Error> {
    if !matches!(key.kind, NodeKind::Scalar(_)) {
        return Err(not_a_key(key, path));
    }
    let found = scalar(key, Resolver::V2, path)?;
    let tag = found.tag();
    let mut exact = None;
    let name = match found {
        Scalar::Null => return Err(null_key(key, path)),
        Scalar::Bool(flag) => flag.to_string(),
        Scalar::Int(number) => number.to_string(),
        Scalar::Uint(_) => {
            return Err(Error::new(key.span, path, LARGE_KEY));
        }
        // sigs.k8s.io/yaml prints float keys with the precision of a 32-bit float.
        Scalar::Float(number) => {
            exact = Some(shortest_64(number));
            shortest_32(number as f32)
        }
        Scalar::Time(time) => time.to_string(),
        Scalar::Text(text) => text,
    };
    Ok((format!("{tag} {}", exact.as_ref().unwrap_or(&name)), name))
}
