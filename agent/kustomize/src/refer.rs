//! References: where an object was renamed, the fields of others that hold its name follow.

use std::collections::HashMap;

use crate::apply::apply;
use crate::config::{BackReferences, FieldSpec};
use crate::error::Step;
use crate::id::{Gvk, NO_NAMESPACE, ResId};
use crate::node::{Kind, Node, WrongKind};
use crate::resmap::ResMap;
use crate::resource::Resource;

/// What references need to know about an object. Names do not change while references are set.
struct Known {
    id: ResId,
    original: ResId,
    previous: Vec<ResId>,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

impl Known {
    fn new(map: &ResMap, resource: &Resource) -> Self {
        let id = resource.id(&map.schemas);
        let previous = resource.previous_ids();
        let original = previous.first().cloned().unwrap_or_else(|| id.clone());
        Self { id, original, previous, prefixes: resource.prefixes(), suffixes: resource.suffixes() }
    }
}

/// Sets all references.
pub(crate) fn fix(map: &mut ResMap, references: &[BackReferences]) -> Step<()> {
    let known: Vec<Known> = map.list.iter().map(|resource| Known::new(map, resource)).collect();
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, object) in known.iter().enumerate() {
        for id in &object.previous {
            let places = by_name.entry(&id.name).or_default();
            if places.last() != Some(&at) {
                places.push(at);
            }
        }
    }
    for at in 0..map.list.len() {
        let reachable = Reachable::new(&known[at].id, &map.list[at])?;
        for target in references {
            for spec in target.referrers.iter().filter(|spec| known[at].original.gvk.is_selected(&spec.gvk)) {
                let role =
                    if spec.path.ends_with("roleRef/name") { role_of(&map.list[at].node) } else { None };
                let finder = Finder {
                    known: &known,
                    by_name: &by_name,
                    own: at,
                    target: &target.gvk,
                    role,
                    reachable: &reachable,
                };
                let spec = FieldSpec { gvk: known[at].id.gvk.clone(), ..spec.clone() };
                apply(&mut map.list[at].node, &spec, None, &mut |node| finder.set(node))
                    .map_err(|error| format!("references in {}: {error}", known[at].id))?;
            }
        }
    }
    Ok(())
}

/// Which objects one may refer to.
struct Reachable {
    anything: bool,
    own: ResId,
    /// Namespaces of the service accounts that a role binding binds.
    others: Vec<String>,
}

impl Reachable {
    fn new(id: &ResId, resource: &Resource) -> Step<Self> {
        let mut others = Vec::new();
        if resource.kind() == "RoleBinding" {
            for subject in resource.node.get("subjects").map(Node::items).unwrap_or_default() {
                if !matches!(subject, Node::Map(_)) {
                    return Err(format!("{id}: a subject is no mapping"));
                }
                let (Some(namespace), Some(kind)) = (subject.get("namespace"), subject.get("kind")) else {
                    continue;
                };
                if kind.value() == "ServiceAccount" {
                    if !namespace.is_string() {
                        return Err(format!("{id}: the namespace of a subject is empty or no text"));
                    }
                    others.push(namespace.value().to_owned());
                }
            }
        }
        Ok(Self { anything: id.cluster, own: id.clone(), others })
    }

    fn reaches(&self, other: &ResId) -> bool {
        self.anything
            || other.cluster
            || other.same_namespace(&self.own)
            || self.others.contains(&other.namespace)
    }
}

struct Finder<'k> {
    known: &'k [Known],
    by_name: &'k HashMap<&'k str, Vec<usize>>,
    own: usize,
    target: &'k Gvk,
    role: Option<Gvk>,
    reachable: &'k Reachable,
}

impl Finder<'_> {
    fn set(&self, node: &mut Node) -> Step<()> {
        if node.is_null() {
            return Ok(());
        }
        match node {
            Node::Scalar(_) => self.set_scalar(node),
            Node::Map(_) => self.set_mapping(node),
            Node::Seq(items) => {
                for item in items {
                    match item {
                        item if item.is_null() => {}
                        Node::Scalar(_) => self.set_scalar(item)?,
                        Node::Map(_) => self.set_mapping(item)?,
                        Node::Seq(_) => return Err(WrongKind::new(Kind::Map, item).into()),
                    }
                }
                Ok(())
            }
        }
    }

    fn set_scalar(&self, node: &mut Node) -> Step<()> {
        let found = self.find(node.value(), |_| true, |a, b| a.name == b.name)?;
        if let Some(found) = found
            && found.name != node.value()
        {
            node.set_scalar(Node::text(&found.name))?;
        }
        Ok(())
    }

    fn set_mapping(&self, node: &mut Node) -> Step<()> {
        let Some(name) = node.get("name") else {
            return Err("the mapping has no `name`, but the configuration says that it refers to an object"
                .to_owned());
        };
        let namespace = node.get("namespace").map(Node::value);
        let in_namespace = |object: &Known, original: bool| {
            let id = if original { &object.original } else { &object.id };
            let effective = id.effective_namespace();
            effective != NO_NAMESPACE && namespace == Some(effective)
        };
        // Those that were in this namespace, or, where there was nobody, those that are now.
        let original = namespace.is_some()
            && self
                .known
                .iter()
                .any(|object| self.reachable.reaches(&object.id) && in_namespace(object, true));
        let found = self.find(
            name.value(),
            |object| namespace.is_none() || in_namespace(object, original),
            |a, b| a.name == b.name && a.namespace == b.namespace,
        )?;
        let Some(found) = found else { return Ok(()) };
        if found.name == name.value() && found.namespace.is_empty() {
            return Ok(());
        }
        node.set("name", Node::text(&found.name))?;
        if !found.namespace.is_empty() {
            node.set("namespace", Node::text(&found.namespace))?;
        }
        Ok(())
    }

    /// The object that is meant by a name.
    fn find(
        &self,
        name: &str,
        fits: impl Fn(&Known) -> bool,
        same: impl Fn(&ResId, &ResId) -> bool,
    ) -> Step<Option<&ResId>> {
        let own = &self.known[self.own];
        let mut found: Vec<&Known> = self
            .by_name
            .get(name)
            .into_iter()
            .flatten()
            .map(|at| &self.known[*at])
            .filter(|object| self.reachable.reaches(&object.id) && fits(object))
            .filter(|object| object.previous.iter().any(|id| id.gvk.is_selected(self.target)))
            .filter(|object| {
                self.role
                    .as_ref()
                    .is_none_or(|role| object.previous.iter().any(|id| id.gvk.is_selected(role)))
            })
            .filter(|object| {
                own.id.cluster
                    || object.id.cluster
                    || object.id.gvk.kind == "ServiceAccount"
                    || own.id.same_namespace(&object.id)
            })
            .collect();
        if let [only] = found[..] {
            return Ok(Some(&only.id));
        }
        found.retain(|object| affixes_fit(object, own, true));
        if found.len() > 1 {
            found.retain(|object| affixes_fit(object, own, false));
        }
        match &found[..] {
            [] => Ok(None),
            [first, others @ ..] if others.iter().all(|other| same(&first.id, &other.id)) => {
                Ok(Some(&first.id))
            }
            many => {
                let ids: Vec<String> = many.iter().map(|object| object.id.to_string()).collect();
                Err(format!("the name {name:?} could mean {}; give them different names", ids.join(" or ")))
            }
        }
    }
}

/// Whether two objects went through the same prefixes and suffixes.
fn affixes_fit(a: &Known, b: &Known, allow_none: bool) -> bool {
    let fit = |a: &[String], b: &[String]| {
        if allow_none && (a.is_empty() || b.is_empty()) {
            return true;
        }
        let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
    };
    fit(&a.prefixes, &b.prefixes) && fit(&a.suffixes, &b.suffixes)
}

/// The kind that a role binding names.
fn role_of(node: &Node) -> Option<Gvk> {
    let role = node.get("roleRef")?;
    let field = |name: &str| role.get(name).map(|value| value.value().to_owned());
    Some(Gvk { group: field("apiGroup")?, version: String::new(), kind: field("kind")? })
}
