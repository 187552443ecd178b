//! The namespace.

use std::collections::HashMap;

use crate::apply::{Create, apply};
use crate::config::FieldSpec;
use crate::error::Step;
use crate::id::ResId;
use crate::node::{Kind, Node, Tag, WrongKind};
use crate::path::lookup_create;
use crate::resmap::ResMap;
use crate::resource::HELM_GENERATED;

/// Which subjects of role bindings get the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Subjects {
    /// Those named `default`.
    #[default]
    Default,
    /// All service accounts.
    ServiceAccounts,
    None,
}

/// The namespace and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Namespace {
    pub(crate) namespace: String,
    pub(crate) specs: Vec<FieldSpec>,
    pub(crate) unset_only: bool,
    pub(crate) subjects: Subjects,
}

impl Namespace {
    pub(crate) fn run(&self, map: &mut ResMap) -> Step<()> {
        if self.namespace.is_empty() {
            return Ok(());
        }
        let schemas = map.schemas.clone();
        let mut count: HashMap<_, usize> = HashMap::new();
        for resource in &map.list {
            *count.entry(resource.id(&schemas).key()).or_default() += 1;
        }
        for resource in &mut map.list {
            if resource.is_gone() || resource.annotation(HELM_GENERATED) == Some("true") {
                continue;
            }
            let before = resource.id(&schemas);
            resource.remember_id(&schemas)?;
            self.apply(&mut resource.node, &before).map_err(|error| {
                format!("{before} cannot get the namespace {:?}: {error}", self.namespace)
            })?;
            let after = resource.id(&schemas);
            if let Some(known) = count.get_mut(&before.key()) {
                *known -= 1;
            }
            let known = count.entry(after.key()).or_default();
            *known += 1;
            if *known > 1 {
                return Err(format!(
                    "with the namespace {:?}, {after} is there twice: two objects differ only in their namespace; rename one",
                    self.namespace
                ));
            }
        }
        Ok(())
    }

    /// Sets the namespace of one object.
    pub(crate) fn apply(&self, node: &mut Node, id: &ResId) -> Step<()> {
        let create = Create::scalar(Tag::Str);
        if !id.cluster {
            let own =
                FieldSpec { path: "metadata/namespace".to_owned(), create: true, ..FieldSpec::default() };
            apply(node, &own, Create::scalar(Tag::None).as_ref(), &mut |node| self.set(node))?;
        }
        let binding = matches!(id.gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
        if binding {
            self.set_subjects(node)?;
        }
        let is_v1 = id.gvk.group.is_empty() && id.gvk.version == "v1";
        for spec in &self.specs {
            let is_subject = binding
                && matches!(spec.gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
                && spec.path == "subjects/namespace";
            if spec.path == "metadata/namespace" || (spec.path == "metadata/name" && !is_v1) || is_subject {
                continue;
            }
            apply(node, spec, create.as_ref(), &mut |node| self.set(node))?;
        }
        Ok(())
    }

    fn set(&self, node: &mut Node) -> Step<()> {
        if self.unset_only && matches!(node, Node::Scalar(_)) && !node.is_null() && !node.value().is_empty() {
            return Ok(());
        }
        Ok(node.set_scalar(Node::string(&self.namespace))?)
    }

    fn set_subjects(&self, node: &mut Node) -> Step<()> {
        let (field, wanted) = match self.subjects {
            Subjects::None => return Ok(()),
            Subjects::Default => ("name", "default"),
            Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
        };
        let Some(subjects) = node.get_mut("subjects") else { return Ok(()) };
        if subjects.is_null() {
            return Ok(());
        }
        let Node::Seq(items) = subjects else { return Err(WrongKind::new(Kind::Seq, subjects).into()) };
        for subject in items {
            if !subject.is_null() && !matches!(subject, Node::Map(_)) {
                return Err(WrongKind::new(Kind::Map, subject).into());
            }
            if subject.get(field).is_some_and(|value| !value.is_null() && value.value() == wanted)
                && let Some(namespace) = lookup_create(subject, &["namespace"], Kind::Scalar)?
            {
                self.set(namespace)?;
            }
        }
        Ok(())
    }
}
