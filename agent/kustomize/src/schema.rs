//! What is known about kinds: their scope, and which of their lists merge by which keys.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::OnceLock;

use serde_json::Value;

use crate::error::Error;
use crate::id::Gvk;
use crate::tables;

/// A type, as far as patches need it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Type {
    reference: Option<String>,
    is_list: bool,
    strategy: String,
    keys: Vec<String>,
    fields: BTreeMap<String, Type>,
    /// Values of a mapping with free keys.
    values: Option<Box<Type>>,
    items: Option<Box<Type>>,
}

/// Types by name, and names by kind.
#[derive(Debug, Default)]
struct Definitions {
    types: BTreeMap<String, Type>,
    kinds: BTreeMap<(String, String), String>,
    /// Scopes by `(apiVersion, kind)`: true in a namespace.
    scopes: BTreeMap<(String, String), bool>,
}

/// The schemas of one build. They are no global state: a custom schema of one build means nothing to the next.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    set: bool,
    custom: Option<Rc<Definitions>>,
    /// A scope was asked for before a custom schema came: the built-in types stay beside it.
    asked: bool,
}

/// A type with the definitions that its references lead into.
#[derive(Clone)]
pub(crate) struct Schema {
    custom: Option<Rc<Definitions>>,
    builtin: bool,
    name: Type,
}

/// The only version of Kubernetes whose schema is built in.
const BUILT_IN_VERSION: &str = "v1.21.2";

impl Schemas {
    /// Sets the schema of a kustomization, as its `openapi` field says. The first one counts.
    pub(crate) fn set(&self, version: Option<&str>, schema: Option<&[u8]>) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        if state.set {
            return Ok(());
        }
        if let Some(bytes) = schema {
            if version.is_some() {
                return Err(Error::new("`version` and `path` exclude each other; keep one"));
            }
            state.custom = Some(Rc::new(parse(bytes)?));
            state.set = true;
            return Ok(());
        }
        match version {
            None | Some("") => {}
            Some(BUILT_IN_VERSION) => state.set = true,
            Some(other) => {
                return Err(Error::new(format!(
                    "version {other:?} of the schema is not built in; there is only {BUILT_IN_VERSION}, or give a file by \
                     `path`"
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn is_cluster_scoped(&self, gvk: &Gvk) -> bool {
        let api_version = gvk.api_version();
        if tables::is_cluster_scoped(&api_version, &gvk.kind) {
            return true;
        }
        if tables::is_namespaced(&api_version, &gvk.kind) {
            return false;
        }
        let mut state = self.state.borrow_mut();
        if let Some(custom) = &state.custom {
            return custom.scopes.get(&(api_version, gvk.kind.clone())) == Some(&false);
        }
        state.asked = true;
        false
    }

    /// The schema of a kind, if there is one.
    pub(crate) fn of(&self, api_version: &str, kind: &str) -> Option<Schema> {
        let state = self.state.borrow();
        let key = (api_version.to_owned(), kind.to_owned());
        let builtin = state.custom.is_none() || state.asked;
        let root = Schema { custom: state.custom.clone(), builtin, name: Type::default() };
        let name = state
            .custom
            .as_ref()
            .and_then(|custom| custom.kinds.get(&key))
            .or_else(|| if builtin { built_in().kinds.get(&key) } else { None })?;
        root.resolve(&Type { reference: Some(name.clone()), ..Type::default() })
    }
}

impl Schema {
    /// The type of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Schema> {
        let found = self.name.fields.get(name).or(self.name.values.as_deref())?;
        self.resolve(found)
    }

    /// The type of the elements of a list.
    pub(crate) fn elements(&self) -> Option<Schema> {
        if !self.name.is_list {
            return None;
        }
        self.resolve(self.name.items.as_deref()?)
    }

    /// Whether patches merge this list element by element.
    pub(crate) fn merges(&self) -> bool {
        self.name.strategy.split(',').any(|strategy| strategy == "merge")
    }

    /// The fields that tell elements apart; none for lists of single values.
    pub(crate) fn keys(&self) -> &[String] {
        &self.name.keys
    }

    fn resolve(&self, found: &Type) -> Option<Schema> {
        let mut found = found.clone();
        // A chain of references longer than this is a circle.
        for _ in 0..20 {
            let Some(name) = &found.reference else {
                return Some(Schema { custom: self.custom.clone(), builtin: self.builtin, name: found });
            };
            found = self.definition(name)?.clone();
        }
        None
    }

    fn definition(&self, name: &str) -> Option<&Type> {
        let custom = self.custom.as_ref().and_then(|custom| custom.types.get(name));
        custom.or_else(|| if self.builtin { built_in().types.get(name) } else { None })
    }
}

fn built_in() -> &'static Definitions {
    static BUILT_IN: OnceLock<Definitions> = OnceLock::new();
    BUILT_IN.get_or_init(|| read_table(tables::MERGE_KEYS))
}

/// Reads the table of merge keys; its form stands in its head.
fn read_table(table: &str) -> Definitions {
    let mut definitions = Definitions::default();
    let mut current = String::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            None => {
                let (name, kinds) = line.split_once(' ').unwrap_or((line, ""));
                current = name.to_owned();
                definitions.types.insert(current.clone(), Type::default());
                for kind in kinds.split(['(', ')']).filter(|part| !part.trim().is_empty()) {
                    if let Some((api_version, kind)) = kind.split_once(' ') {
                        definitions.kinds.insert((api_version.to_owned(), kind.to_owned()), current.clone());
                    }
                }
            }
            Some(field) => {
                let (head, target) =
                    field.split_once('=').map_or((field, None), |(head, target)| (head, Some(target)));
                let reference =
                    target.map(|name| Type { reference: Some(name.to_owned()), ..Type::default() });
                let (name, field) = match head.split_once('[') {
                    None => (head, reference.unwrap_or_default()),
                    Some((name, keys)) => {
                        let keys = keys.trim_end_matches(']');
                        let replaced = keys.is_empty() && target.is_some();
                        let list = Type {
                            is_list: true,
                            strategy: if replaced { String::new() } else { "merge".to_owned() },
                            keys: keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect(),
                            items: Some(Box::new(reference.unwrap_or_default())),
                            ..Type::default()
                        };
                        (name, list)
                    }
                };
                if let Some(owner) = definitions.types.get_mut(&current) {
                    owner.fields.insert(name.to_owned(), field);
                }
            }
        }
    }
    definitions
}

/// Reads an OpenAPI document.
fn parse(bytes: &[u8]) -> Result<Definitions, Error> {
    let (value, _) = crate::read::config(bytes)?;
    if !value.is_object() {
        return Err(Error::new("the schema is no OpenAPI document: a mapping with `definitions` is wanted"));
    }
    let mut definitions = Definitions::default();
    for (name, schema) in value["definitions"].as_object().into_iter().flatten() {
        for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
            if let Some(key) = kind_of(kind) {
                definitions.kinds.insert(key, name.clone());
            }
        }
        definitions.types.insert(name.clone(), from_json(schema, 0));
    }
    for (path, item) in value["paths"].as_object().into_iter().flatten() {
        if let Some(key) = kind_of(&item["get"]["x-kubernetes-group-version-kind"]) {
            let namespaced = path.contains("namespaces/{namespace}");
            let known = definitions.scopes.entry(key).or_insert(namespaced);
            *known |= namespaced;
        }
    }
    Ok(definitions)
}

fn kind_of(value: &Value) -> Option<(String, String)> {
    let version = value["version"].as_str()?;
    let kind = value["kind"].as_str()?.to_owned();
    match value["group"].as_str() {
        Some(group) if !group.is_empty() => Some((format!("{group}/{version}"), kind)),
        _ => Some((version.to_owned(), kind)),
    }
}

fn from_json(value: &Value, depth: usize) -> Type {
    if depth > 100 {
        return Type::default();
    }
    let below = |value: &Value| from_json(value, depth + 1);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut keys: Vec<String> =
        value["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().map(text).collect();
    if keys.is_empty()
        && let Some(key) = value["x-kubernetes-patch-merge-key"].as_str()
    {
        keys.push(key.to_owned());
    }
    Type {
        reference: value["$ref"].as_str().map(|name| name.trim_start_matches("#/definitions/").to_owned()),
        is_list: value["type"].as_str() == Some("array"),
        strategy: text(&value["x-kubernetes-patch-strategy"]),
        keys,
        fields: value["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, field)| (name.clone(), below(field)))
            .collect(),
        values: value["additionalProperties"]
            .is_object()
            .then(|| Box::new(below(&value["additionalProperties"]))),
        items: value["items"].is_object().then(|| Box::new(below(&value["items"]))),
    }
}
