//! A Kubernetes object as JSON, with the few accessors that everything needs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::key::{GroupKind, ObjectKey};

/// A Kubernetes object, desired or live, as its JSON.
///
/// Guarantees: the root is a JSON object with non-empty string `apiVersion` and `kind`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Object(Map<String, Value>);

/// Why a JSON value is not a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnObject {
    /// The root is a list or a scalar.
    #[error("is not a mapping")]
    NotAMapping,
    /// `apiVersion` is missing, empty or not a string.
    #[error("has no apiVersion (a non-empty string)")]
    NoApiVersion,
    /// `kind` is missing, empty or not a string.
    #[error("has no kind (a non-empty string)")]
    NoKind,
}

impl TryFrom<Value> for Object {
    type Error = NotAnObject;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let Value::Object(map) = value else { return Err(NotAnObject::NotAMapping) };
        let text = |name: &str| map.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !text("apiVersion") {
            return Err(NotAnObject::NoApiVersion);
        }
        if !text("kind") {
            return Err(NotAnObject::NoKind);
        }
        Ok(Self(map))
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

impl fmt::Debug for Object {
    /// Kind and name only: a Secret's values must not reach a log by way of `{:?}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}/{} {}/{})", self.api_version(), self.kind(), self.namespace(), self.name())
    }
}

impl Object {
    /// The JSON fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The JSON fields, to change. `apiVersion` and `kind` must stay non-empty strings.
    pub fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// A copy as a JSON value.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The value at a path of map keys.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, key| value.get(*key))
    }

    /// The string at a path, empty where there is none.
    pub fn text(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// `apiVersion`, such as `apps/v1`.
    pub fn api_version(&self) -> &str {
        self.text(&["apiVersion"])
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.text(&["kind"])
    }

    /// API group; empty for core.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// API version without the group.
    pub fn version(&self) -> &str {
        self.api_version().rsplit('/').next().unwrap_or_default()
    }

    /// Group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group(), self.kind())
    }

    /// `metadata.name`, empty where there is none.
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"])
    }

    /// `metadata.namespace`, empty where there is none.
    pub fn namespace(&self) -> &str {
        self.text(&["metadata", "namespace"])
    }

    /// `metadata.uid`, empty where there is none (desired objects).
    pub fn uid(&self) -> &str {
        self.text(&["metadata", "uid"])
    }

    /// `metadata.resourceVersion`, empty where there is none.
    pub fn resource_version(&self) -> &str {
        self.text(&["metadata", "resourceVersion"])
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> Option<i64> {
        self.at(&["metadata", "generation"]).and_then(Value::as_i64)
    }

    /// A label's value.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.at(&["metadata", "labels", name]).and_then(Value::as_str)
    }

    /// An annotation's value.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.at(&["metadata", "annotations", name]).and_then(Value::as_str)
    }

    /// Is it being deleted?
    pub fn is_terminating(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some_and(|value| !value.is_null())
    }

    /// The key, with the namespace as it stands: right for live objects, and for desired ones after the
    /// namespace has been settled by scope.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.group(), self.kind(), self.namespace(), self.name())
    }

    /// `metadata`, made where it is missing or not a mapping.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        child_mut(&mut self.0, "metadata")
    }

    /// Sets a label.
    pub fn set_label(&mut self, name: &str, value: &str) {
        child_mut(self.metadata_mut(), "labels").insert(name.to_owned(), Value::from(value));
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, name: &str, value: &str) {
        child_mut(self.metadata_mut(), "annotations").insert(name.to_owned(), Value::from(value));
    }

    /// Sets or clears the namespace.
    pub fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            self.metadata_mut().remove("namespace");
        } else {
            self.metadata_mut().insert("namespace".to_owned(), Value::from(namespace));
        }
    }

    /// Does it hold secret values (core `Secret`)?
    pub fn is_secret(&self) -> bool {
        self.kind() == "Secret" && self.group().is_empty()
    }
}

fn child_mut<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(name.to_owned()).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("the slot was just made a mapping"),
    }
}

/// Where in a source an object stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Path of the file below the source's root, with `/` between parts.
    pub file: Arc<str>,
    /// First line of the object, counted from 1.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// An object that git wants, and where it says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DesiredObject {
    /// The manifest.
    pub object: Object,
    /// File and line.
    pub origin: Origin,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_needs_api_version_and_kind() {
        assert_eq!(Object::try_from(json!([])).unwrap_err(), NotAnObject::NotAMapping);
        assert_eq!(Object::try_from(json!({"kind": "A"})).unwrap_err(), NotAnObject::NoApiVersion);
        assert_eq!(
            Object::try_from(json!({"apiVersion": "v1", "kind": 3})).unwrap_err(),
            NotAnObject::NoKind
        );
    }

    #[test]
    fn debug_never_shows_values() {
        let secret = Object::try_from(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}}))
        .unwrap();
        assert!(!format!("{secret:?}").contains("aHVudGVyMg"));
    }

    #[test]
    fn group_and_version_are_split_at_the_slash() {
        let object = Object::try_from(json!({"apiVersion": "apps/v1", "kind": "Deployment"})).unwrap();
        assert_eq!((object.group(), object.version()), ("apps", "v1"));
        let object = Object::try_from(json!({"apiVersion": "v1", "kind": "Pod"})).unwrap();
        assert_eq!((object.group(), object.version()), ("", "v1"));
    }
}
