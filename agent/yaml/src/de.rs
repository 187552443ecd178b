//! Typed reading: a serde deserializer over the tree, with the place of every error. An integer, float or boolean where a
//! string is expected becomes its string, as sigs.k8s.io/yaml does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, IntoDeserializer as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use crate::error::{Error, Path, nearest, shorten};
use crate::float::shortest_32;
use crate::node::{Node, NodeKind, Span};
use crate::resolve::{Resolver, Scalar};
use crate::value::{is_merge, key_text, merged as merge_sources, scalar};

/// A scalar that was read as a string although its text is a number or boolean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The field.
    pub path: String,
    /// Line.
    pub line: u32,
    /// As it was written.
    pub text: String,
    /// What it became.
    pub became: String,
}

/// Reads a tree into a type.
///
/// # Errors
/// What serde says, with line, column and field; an unknown field with the nearest known name.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, Error> {
    from_node_with_notes(node).map(|(value, _)| value)
}

/// As [`from_node`], and what was converted to a string.
pub fn from_node_with_notes<T: DeserializeOwned>(node: &Node) -> Result<(T, Vec<Converted>), Error> {
    let notes = RefCell::new(Vec::new());
    let value = T::deserialize(Deserializer { node, path: Path::Root, notes: &notes })?;
    Ok((value, notes.into_inner()))
}

impl de::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::syntax(0, 0, message.to_string())
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let near = nearest(field, expected.iter().copied());
        let hint = near.map_or_else(
            || {
                if expected.is_empty() {
                    String::new()
                } else {
                    format!("; known are {}", expected.join(", "))
                }
            },
            |near| format!("; did you mean {near:?}?"),
        );
        Self::syntax(0, 0, format!("unknown field {field:?}{hint}"))
    }
}

#[derive(Clone, Copy)]
struct Deserializer<'a> {
    node: &'a Node,
    path: Path<'a>,
    notes: &'a RefCell<Vec<Converted>>,
}

impl Deserializer<'_> {
    fn scalar(&self) -> Result<Scalar, Error> {
        match self.node.kind {
            NodeKind::Scalar(_) => scalar(self.node, Resolver::V2, &self.path),
            _ => Err(Error::new(self.node.span, &self.path, "expected a scalar")),
        }
    }

    fn at<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.or_at(self.node.span, &self.path))
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let NodeKind::Scalar(raw) = &self.node.kind else {
            let what = if matches!(self.node.kind, NodeKind::Mapping(_)) { "a mapping" } else { "a list" };
            return Err(Error::new(self.node.span, &self.path, format!("expected a string, found {what}")));
        };
        let text = match scalar(self.node, Resolver::V2, &self.path)? {
            Scalar::Null => String::new(),
            Scalar::Text(text) => text,
            Scalar::Bool(flag) => self.converted(raw, flag.to_string()),
            Scalar::Int(number) => self.converted(raw, number.to_string()),
            Scalar::Uint(number) => self.converted(raw, number.to_string()),
            // sigs.k8s.io/yaml prints floats for strings with 32 bits of precision.
            Scalar::Float(number) => self.converted(raw, shortest_32(number as f32)),
            Scalar::Time(time) => time.to_string(),
        };
        self.at(visitor.visit_string(text))
    }

    fn converted(&self, raw: &str, became: String) -> String {
        self.notes.borrow_mut().push(Converted {
            path: self.path.to_string(),
            line: self.node.span.line,
            text: raw.to_owned(),
            became: became.clone(),
        });
        became
    }
}

impl<'de> de::Deserializer<'de> for Deserializer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.node.kind {
            NodeKind::Scalar(_) => match self.scalar()? {
                Scalar::Null => visitor.visit_unit(),
                Scalar::Bool(flag) => visitor.visit_bool(flag),
                Scalar::Int(number) => visitor.visit_i64(number),
                Scalar::Uint(number) => visitor.visit_u64(number),
                Scalar::Float(number) => {
                    match crate::float::json_number(number).and_then(|number| number.as_i64()) {
                        Some(whole) => visitor.visit_i64(whole),
                        None => visitor.visit_f64(number),
                    }
                }
                Scalar::Time(time) => visitor.visit_string(time.to_string()),
                Scalar::Text(text) => visitor.visit_string(text),
            },
            NodeKind::Sequence(items) => visitor.visit_seq(Items { parent: self, list: items, next: 0 }),
            NodeKind::Mapping(entries) => {
                let entries = merged(entries, &self.path)?;
                visitor.visit_map(Entries { parent: self, list: entries, next: 0 })
            }
        };
        self.at(result)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let null = matches!(self.node.kind, NodeKind::Scalar(_)) && self.scalar()? == Scalar::Null;
        let result = if null { visitor.visit_none() } else { visitor.visit_some(self) };
        self.at(result)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let result = visitor.visit_newtype_struct(self);
        self.at(result)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = match self.scalar()? {
            Scalar::Text(text) => text,
            _ => self.node.text().unwrap_or_default().to_owned(),
        };
        let result = visitor.visit_enum(Variant(text));
        self.at(result)
    }

    /// A null where a list or mapping is expected is an empty one, as for Go's slices and maps.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.kind {
            NodeKind::Scalar(_) if self.scalar()? == Scalar::Null => {
                let result = visitor.visit_seq(Items { parent: self, list: &[], next: 0 });
                self.at(result)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.kind {
            NodeKind::Scalar(_) if self.scalar()? == Scalar::Null => {
                let result = visitor.visit_map(Entries { parent: self, list: Vec::new(), next: 0 });
                self.at(result)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

type Entry<'a> = (String, Span, &'a Node);

/// Entries with merges in place; a key twice is an error in typed objects.
fn merged<'a>(entries: &'a [(Node, Node)], path: &Path<'_>) -> Result<Vec<Entry<'a>>, Error> {
    let mut found = Vec::new();
    merge_into(entries, path, &mut found, &mut HashMap::new())?;
    Ok(found)
}

/// `places` holds where each key stands in `found`.
fn merge_into<'a>(
    entries: &'a [(Node, Node)],
    path: &Path<'_>,
    found: &mut Vec<Entry<'a>>,
    places: &mut HashMap<String, usize>,
) -> Result<(), Error> {
    let mut own: HashMap<String, Span> = HashMap::new();
    for (key, value) in entries {
        if is_merge(key, Resolver::V2) {
            for mapping in merge_sources(value, path)?.into_iter().rev() {
                merge_into(mapping, path, found, places)?;
            }
            continue;
        }
        let name = key_text(key, Resolver::V2, path)?;
        if let Some(first) = own.insert(name.clone(), key.span) {
            let lines = format!("lines {} and {}", first.line, key.span.line);
            let message = format!("the key {:?} stands twice ({lines})", shorten(&name));
            return Err(Error::new(key.span, path, message));
        }
        match places.entry(name.clone()) {
            Place::Occupied(place) => found[*place.get()] = (name, key.span, value),
            Place::Vacant(place) => {
                place.insert(found.len());
                found.push((name, key.span, value));
            }
        }
    }
    Ok(())
}

struct Items<'a> {
    parent: Deserializer<'a>,
    list: &'a [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(node) = self.list.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        let path = Path::Index(&self.parent.path, index);
        seed.deserialize(Deserializer { node, path, notes: self.parent.notes })
            .map(Some)
            .map_err(|error| error.or_at(node.span, &path))
    }
}

struct Entries<'a> {
    parent: Deserializer<'a>,
    list: Vec<Entry<'a>>,
    next: usize,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, span, _)) = self.list.get(self.next) else { return Ok(None) };
        let key: StringDeserializer<Error> = name.clone().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.or_at(*span, &self.parent.path))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, _, node) = &self.list[self.next];
        self.next += 1;
        let path = Path::Key(&self.parent.path, name);
        seed.deserialize(Deserializer { node, path, notes: self.parent.notes })
            .map_err(|error| error.or_at(node.span, &path))
    }
}

struct Variant(String);

impl<'de> de::EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Unit;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Unit), Error> {
        let name: StringDeserializer<Error> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, Unit))
    }
}

struct Unit;

impl<'de> VariantAccess<'de> for Unit {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Error> {
        Err(de::Error::custom("expected a plain word"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Error> {
        Err(de::Error::custom("expected a plain word"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        Err(de::Error::custom("expected a plain word"))
    }
}
