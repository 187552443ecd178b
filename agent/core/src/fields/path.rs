//! Paths of fields, as `managedFields` speak of them and as people read them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segment {
    /// A field of a struct or a key of a map (`f:`).
    Field(String),
    /// An item of a keyed list, by its key fields, defaulted ones included (`k:`).
    Key(Map<String, Value>),
    /// An item of a set (`v:`).
    Value(Value),
    /// An item by position (`i:`).
    Index(usize),
}

/// A path from the root of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FieldPath(pub Vec<Segment>);

impl Segment {
    /// Reads `f:name`, `k:{...}`, `v:...`, `i:0`; `None` for `.` and what is not understood.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => serde_json::from_str(rest).ok().map(Self::Key),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// The value that the segment names inside `value`.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(map)) => map.get(name),
            (Self::Key(keys), Value::Array(items)) => {
                items.iter().find(|item| keys.iter().all(|(name, wanted)| item.get(name) == Some(wanted)))
            }
            (Self::Value(wanted), Value::Array(items)) => items.iter().find(|item| *item == wanted),
            (Self::Index(index), Value::Array(items)) => items.get(*index),
            _ => None,
        }
    }

    /// Position of the item that the segment names in a list.
    pub fn position(&self, items: &[Value]) -> Option<usize> {
        match self {
            Self::Key(keys) => {
                items.iter().position(|item| keys.iter().all(|(name, wanted)| item.get(name) == Some(wanted)))
            }
            Self::Value(wanted) => items.iter().position(|item| item == wanted),
            Self::Index(index) => (*index < items.len()).then_some(*index),
            Self::Field(_) => None,
        }
    }

    /// As `managedFields` write it. Key fields are compared as JSON, since the order of their text may differ.
    pub fn matches(&self, text: &str) -> bool {
        Self::parse(text).as_ref() == Some(self)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if name.contains(['.', '/', '[', ' ']) || name.is_empty() => {
                write!(f, "[{name:?}]")
            }
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    match value {
                        Value::String(text) => write!(f, "{comma}{name}={text}")?,
                        other => write!(f, "{comma}{name}={other}")?,
                    }
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl FieldPath {
    /// The value at the path.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, segment| segment.find(value))
    }

    /// The path without its last step.
    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// Does it lie at or below the other?
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// As a JSON pointer (RFC 6901) into this object; `None` where an item is not there.
    pub fn to_json_pointer(&self, value: &Value) -> Option<String> {
        let mut pointer = String::new();
        let mut at = value;
        for segment in &self.0 {
            let token = match (segment, at) {
                (Segment::Field(name), Value::Object(_)) => name.replace('~', "~0").replace('/', "~1"),
                (segment, Value::Array(items)) => segment.position(items)?.to_string(),
                _ => return None,
            };
            pointer.push('/');
            pointer.push_str(&token);
            at = segment.find(at).unwrap_or(&Value::Null);
        }
        Some(pointer)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| write!(f, "{segment}"))
    }
}
