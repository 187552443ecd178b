//! Typed reading of kustomizations and configurations from JSON: names of fields in any case, unknown fields refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::Error;

/// A mapping whose fields are taken one by one.
pub(crate) struct Fields<'v> {
    map: BTreeMap<&'static str, &'v Value>,
    path: String,
    lenient: bool,
}

impl<'v> Fields<'v> {
    /// Takes a mapping with these fields. A lenient reader, as plugins have it, leaves unknown fields alone and takes
    /// numbers and booleans for texts.
    ///
    /// # Errors
    /// Not a mapping; an unknown field.
    pub(crate) fn new(
        value: &'v Value,
        path: &str,
        known: &[&'static str],
        lenient: bool,
    ) -> Result<Self, Error> {
        let entries: Option<&'v Map<String, Value>> = match value {
            Value::Null => None,
            Value::Object(map) => Some(map),
            other => return Err(wrong(path, "a mapping", other)),
        };
        let mut map = BTreeMap::new();
        for (name, value) in entries.into_iter().flatten() {
            let found = known
                .iter()
                .find(|known| *known == name)
                .or_else(|| known.iter().find(|known| known.eq_ignore_ascii_case(name)));
            match found {
                Some(known) => {
                    map.insert(*known, value);
                }
                None if lenient => {}
                None => {
                    let field = join(path, name);
                    let hint =
                        nearest(name, known).map(|near| format!("; is {near:?} meant?")).unwrap_or_default();
                    return Err(Error { field, ..Error::new(format!("this field is not known{hint}")) });
                }
            }
        }
        Ok(Self { map, path: path.to_owned(), lenient })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// A field that is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'v Value> {
        self.map.get(name).copied().filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<String, Error> {
        self.get(name).map_or_else(|| Ok(String::new()), |value| self.as_text(value, &self.path(name)))
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, Error> {
        self.get(name).map(|value| self.as_text(value, &self.path(name))).transpose()
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong(&self.path(name), "true or false", other)),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<i64, Error> {
        match self.get(name) {
            None => Ok(0),
            Some(value) => value.as_i64().ok_or_else(|| wrong(&self.path(name), "a whole number", value)),
        }
    }

    pub(crate) fn list(&self, name: &str) -> Result<Vec<(&'v Value, String)>, Error> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items
                .iter()
                .enumerate()
                .map(|(at, item)| (item, format!("{}[{at}]", self.path(name))))
                .collect()),
            Some(other) => Err(wrong(&self.path(name), "a list", other)),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Error> {
        self.list(name)?.into_iter().map(|(item, path)| self.as_text(item, &path)).collect()
    }

    pub(crate) fn text_map(&self, name: &str) -> Result<BTreeMap<String, String>, Error> {
        match self.get(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(key, value)| Ok((key.clone(), self.as_text(value, &join(&self.path(name), key))?)))
                .collect(),
            Some(other) => Err(wrong(&self.path(name), "a mapping of texts", other)),
        }
    }

    fn as_text(&self, value: &Value, path: &str) -> Result<String, Error> {
        match value {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) if self.lenient => Ok(number.to_string()),
            Value::Bool(flag) if self.lenient => Ok(flag.to_string()),
            other => Err(wrong(path, "a text", other)),
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

pub(crate) fn wrong(path: &str, wanted: &str, got: &Value) -> Error {
    let got = match got {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false; put it in quotes if it is a text",
        Value::Number(_) => "a number; put it in quotes if it is a text",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    };
    Error { field: path.to_owned(), ..Error::new(format!("{wanted} is wanted here, but this is {got}")) }
}

/// The known name that is likely meant.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let most = (name.chars().count() / 3).clamp(1, 3);
    known
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance without regard to case.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 64 {
        return usize::MAX;
    }
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (above + 1).min(row[j] + 1).min(diagonal + usize::from(left != *right));
            diagonal = above;
        }
    }
    row[b.len()]
}
