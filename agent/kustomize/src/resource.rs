//! An object on its way through a build. What the build has to remember about it stands in annotations of its own,
//! as in the reference: patches see them and can lose them.

use std::collections::BTreeMap;

use crate::error::Step;
use crate::id::{Gvk, ResId, split_api_version};
use crate::node::{Kind, Node};
use crate::path::lookup_create;
use crate::schema::Schemas;

const PREVIOUS_KINDS: &str = "internal.config.kubernetes.io/previousKinds";
const PREVIOUS_NAMES: &str = "internal.config.kubernetes.io/previousNames";
const PREVIOUS_NAMESPACES: &str = "internal.config.kubernetes.io/previousNamespaces";
const PREFIXES: &str = "internal.config.kubernetes.io/prefixes";
const SUFFIXES: &str = "internal.config.kubernetes.io/suffixes";
const ALLOW_NAME_CHANGE: &str = "internal.config.kubernetes.io/allowNameChange";
const ALLOW_KIND_CHANGE: &str = "internal.config.kubernetes.io/allowKindChange";
const BEHAVIOR: &str = "internal.config.kubernetes.io/generatorBehavior";
const NEEDS_HASH: &str = "internal.config.kubernetes.io/needsHashSuffix";
const ENABLED: &str = "enabled";
pub(crate) const HELM_GENERATED: &str = "internal.config.kubernetes.io/helm-generated";
pub(crate) const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

/// Annotations of the build, which never leave it.
const BUILD_ANNOTATIONS: [&str; 19] = [
    PREVIOUS_KINDS,
    PREVIOUS_NAMES,
    PREFIXES,
    SUFFIXES,
    PREVIOUS_NAMESPACES,
    ALLOW_NAME_CHANGE,
    ALLOW_KIND_CHANGE,
    "internal.config.kubernetes.io/refBy",
    BEHAVIOR,
    NEEDS_HASH,
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    HELM_GENERATED,
];

/// What a generator does with an object that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    Unspecified,
    Create,
    Replace,
    Merge,
}

/// Where an object came from, and what changed it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct History {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) touched_by: Vec<String>,
}

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    pub(crate) node: Node,
    /// Names of the vars that point at it.
    pub(crate) vars: Vec<String>,
    pub(crate) history: History,
}

impl Resource {
    pub(crate) fn new(node: Node, file: &str, line: u32) -> Self {
        let history = History { file: file.to_owned(), line, touched_by: Vec::new() };
        Self { node, vars: Vec::new(), history }
    }

    /// Deleted by a patch.
    pub(crate) fn is_gone(&self) -> bool {
        self.node.is_nil_or_empty()
    }

    pub(crate) fn kind(&self) -> &str {
        kind(&self.node)
    }

    pub(crate) fn api_version(&self) -> &str {
        api_version(&self.node)
    }

    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::new(self.api_version(), self.kind())
    }

    pub(crate) fn name(&self) -> &str {
        meta_text(&self.node, "name")
    }

    pub(crate) fn namespace(&self) -> &str {
        meta_text(&self.node, "namespace")
    }

    pub(crate) fn set_kind(&mut self, kind: &str) -> Step<()> {
        Ok(self.node.set("kind", Node::text(kind))?)
    }

    pub(crate) fn set_api_version(&mut self, api_version: &str) -> Step<()> {
        Ok(self.node.set("apiVersion", Node::text(api_version))?)
    }

    pub(crate) fn set_name(&mut self, name: &str) -> Step<()> {
        self.set_meta("name", name)
    }

    /// Sets the namespace; an empty one is removed.
    pub(crate) fn set_namespace(&mut self, namespace: &str) -> Step<()> {
        if !namespace.is_empty() {
            return self.set_meta("namespace", namespace);
        }
        if let Some(meta) = self.node.get_mut("metadata") {
            meta.remove("namespace");
        }
        Ok(())
    }

    fn set_meta(&mut self, field: &str, value: &str) -> Step<()> {
        if let Some(meta) = lookup_create(&mut self.node, &["metadata"], Kind::Map)? {
            meta.set(field, Node::text(value))?;
        }
        Ok(())
    }

    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        meta_map(&self.node, "annotations")
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        let meta = meta(&self.node)?;
        let mut found = None;
        for (key, value) in meta.get("annotations")?.entries() {
            if &**key == name {
                found = Some(value.value());
            }
        }
        found
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        meta_map(&self.node, "labels")
    }

    /// Sets all annotations, as strings.
    pub(crate) fn set_annotations(&mut self, annotations: &BTreeMap<String, String>) -> Step<()> {
        self.set_meta_map("annotations", annotations)
    }

    /// Sets all labels, as strings.
    pub(crate) fn set_labels(&mut self, labels: &BTreeMap<String, String>) -> Step<()> {
        self.set_meta_map("labels", labels)
    }

    fn set_meta_map(&mut self, field: &str, map: &BTreeMap<String, String>) -> Step<()> {
        let Some(meta) = lookup_create(&mut self.node, &["metadata"], Kind::Map)? else { return Ok(()) };
        meta.remove(field);
        if map.is_empty() {
            return Ok(());
        }
        let mut node = Node::map();
        for (name, value) in map {
            node.set(name, Node::string(value))?;
        }
        Ok(meta.set(field, node)?)
    }

    /// Sets one annotation. Empty annotations give way first, a null one swallows it.
    pub(crate) fn set_annotation(&mut self, name: &str, value: &str) -> Step<()> {
        if let Some(meta) = self.node.get_mut("metadata")
            && meta.get("annotations").is_some_and(|old| old.items().is_empty() && old.entries().is_empty())
        {
            meta.remove("annotations");
        }
        if let Some(annotations) = lookup_create(&mut self.node, &["metadata", "annotations"], Kind::Map)? {
            annotations.set(name, Node::string(value))?;
        }
        Ok(())
    }

    fn append_to(&mut self, name: &str, value: &str) -> Step<()> {
        if value.is_empty() {
            return Ok(());
        }
        let joined = match self.annotation(name) {
            Some(known) => format!("{known},{value}"),
            None => value.to_owned(),
        };
        self.set_annotation(name, &joined)
    }

    fn listed(&self, name: &str) -> Vec<String> {
        self.annotation(name).map(|list| list.split(',').map(str::to_owned).collect()).unwrap_or_default()
    }

    pub(crate) fn add_prefix(&mut self, prefix: &str) -> Step<()> {
        self.append_to(PREFIXES, prefix)
    }

    pub(crate) fn add_suffix(&mut self, suffix: &str) -> Step<()> {
        self.append_to(SUFFIXES, suffix)
    }

    pub(crate) fn prefixes(&self) -> Vec<String> {
        self.listed(PREFIXES)
    }

    pub(crate) fn suffixes(&self) -> Vec<String> {
        self.listed(SUFFIXES)
    }

    /// The id that it has now.
    pub(crate) fn id(&self, schemas: &Schemas) -> ResId {
        ResId::new(schemas, self.gvk(), self.name(), self.namespace())
    }

    /// The ids that it had, oldest first.
    ///
    /// # Errors
    /// Annotations of the build that do not fit each other.
    pub(crate) fn previous_ids(&self) -> Vec<ResId> {
        previous_ids(&self.node)
    }

    /// The id by which it was read.
    pub(crate) fn original_id(&self, schemas: &Schemas) -> ResId {
        self.previous_ids().into_iter().next().unwrap_or_else(|| self.id(schemas))
    }

    /// Remembers the id that it has now.
    pub(crate) fn remember_id(&mut self, schemas: &Schemas) -> Step<()> {
        let id = self.id(schemas);
        self.append_to(PREVIOUS_NAMES, &id.name)?;
        self.append_to(PREVIOUS_NAMESPACES, id.effective_namespace())?;
        self.append_to(PREVIOUS_KINDS, &id.gvk.kind)
    }

    pub(crate) fn behavior(&self) -> Behavior {
        match self.annotation(BEHAVIOR) {
            Some("create") => Behavior::Create,
            Some("replace") => Behavior::Replace,
            Some("merge") => Behavior::Merge,
            _ => Behavior::Unspecified,
        }
    }

    /// Marks a generated object.
    pub(crate) fn mark_generated(&mut self, behavior: &str, hash: bool) -> Step<()> {
        let mut annotations = self.annotations();
        if hash {
            annotations.insert(NEEDS_HASH.to_owned(), ENABLED.to_owned());
        }
        let behavior =
            if matches!(behavior, "create" | "replace" | "merge") { behavior } else { "unspecified" };
        annotations.insert(BEHAVIOR.to_owned(), behavior.to_owned());
        self.set_annotations(&annotations)
    }

    pub(crate) fn needs_hash(&self) -> bool {
        self.annotation(NEEDS_HASH) == Some(ENABLED)
    }

    /// What a patch may change beside the content.
    pub(crate) fn allow_changes(&mut self, name: bool, kind: bool) -> Step<()> {
        let mut annotations = self.annotations();
        for (wanted, annotation) in [(name, ALLOW_NAME_CHANGE), (kind, ALLOW_KIND_CHANGE)] {
            if wanted {
                annotations.insert(annotation.to_owned(), ENABLED.to_owned());
            }
        }
        if name || kind { self.set_annotations(&annotations) } else { Ok(()) }
    }

    pub(crate) fn may_change_name(&self) -> bool {
        self.annotation(ALLOW_NAME_CHANGE) == Some(ENABLED)
    }

    pub(crate) fn may_change_kind(&self) -> bool {
        self.annotation(ALLOW_KIND_CHANGE) == Some(ENABLED)
    }

    /// Takes name, namespace and the metadata that it lacks from another object.
    pub(crate) fn take_metadata_from(&mut self, other: &Resource) -> Step<()> {
        let mut labels = other.labels();
        labels.extend(self.labels());
        self.set_labels(&labels)?;
        let own = self.annotations();
        let needs_hash = own.contains_key(NEEDS_HASH);
        let theirs = other.annotations();
        let mut merged = theirs.clone();
        merged.extend(own);
        for name in BUILD_ANNOTATIONS {
            match theirs.get(name) {
                Some(value) => merged.insert(name.to_owned(), value.clone()),
                None => merged.remove(name),
            };
        }
        if !needs_hash {
            merged.remove(NEEDS_HASH);
        }
        self.set_annotations(&merged)?;
        self.set_name(other.name())?;
        self.set_namespace(other.namespace())?;
        self.vars.clone_from(&other.vars);
        Ok(())
    }

    /// Annotations of the build and its relatives, which a JSON patch must not lose.
    pub(crate) fn internal_annotations(&self) -> BTreeMap<String, String> {
        let mut annotations = self.annotations();
        annotations.retain(|name, _| {
            name.starts_with("internal.config.kubernetes.io/")
                || matches!(
                    name.as_str(),
                    "config.kubernetes.io/path" | "config.kubernetes.io/index" | "config.k8s.io/id"
                )
        });
        annotations
    }

    /// Removes what only the build needs. All annotations are strings afterwards.
    pub(crate) fn remove_build_annotations(&mut self) -> Step<()> {
        let mut annotations = self.annotations();
        if annotations.is_empty() {
            return Ok(());
        }
        for name in BUILD_ANNOTATIONS {
            annotations.remove(name);
        }
        self.set_annotations(&annotations)
    }
}

pub(crate) fn kind(node: &Node) -> &str {
    node.get("kind").map_or("", Node::value)
}

pub(crate) fn api_version(node: &Node) -> &str {
    node.get("apiVersion").map_or("", Node::value)
}

fn meta(node: &Node) -> Option<&Node> {
    node.get("metadata").filter(|meta| !meta.is_nil_or_empty())
}

fn meta_text<'n>(node: &'n Node, field: &str) -> &'n str {
    meta(node)
        .and_then(|meta| meta.get(field))
        .filter(|value| !value.is_nil_or_empty())
        .map_or("", Node::value)
}

fn meta_map(node: &Node, field: &str) -> BTreeMap<String, String> {
    let map = meta(node).and_then(|meta| meta.get(field));
    map.map(Node::entries)
        .unwrap_or_default()
        .iter()
        .map(|(name, value)| (name.to_string(), value.value().to_owned()))
        .collect()
}

fn previous_ids(node: &Node) -> Vec<ResId> {
    let Some(annotations) = meta(node).and_then(|meta| meta.get("annotations")) else { return Vec::new() };
    let list = |name: &str| annotations.get(name).map(|list| list.value().split(',').collect::<Vec<_>>());
    let (Some(names), Some(namespaces), Some(kinds)) =
        (list(PREVIOUS_NAMES), list(PREVIOUS_NAMESPACES), list(PREVIOUS_KINDS))
    else {
        return Vec::new();
    };
    let (group, version) = split_api_version(api_version(node));
    names
        .iter()
        .zip(namespaces)
        .zip(kinds)
        .map(|((name, namespace), kind)| ResId {
            gvk: Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() },
            name: (*name).to_owned(),
            namespace: namespace.to_owned(),
            cluster: false,
        })
        .collect()
}
