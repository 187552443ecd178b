//! Kinds and ids of objects.

use std::cmp::Ordering;
use std::fmt;

use crate::schema::Schemas;

/// Group, version, kind; empty parts of a selector match everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// Kind, name and namespace. `cluster` is known for ids that were made with the schemas at hand.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ResId {
    pub(crate) gvk: Gvk,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) cluster: bool,
}

/// Stands for the namespace of objects that have none.
pub(crate) const NO_NAMESPACE: &str = "_non_namespaceable_";
const DEFAULT_NAMESPACE: &str = "default";

/// Order of kinds by which configurations and the legacy order sort.
pub(crate) const ORDER_FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Kinds that come last.
pub(crate) const ORDER_LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

impl Gvk {
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether a selector selects it.
    pub(crate) fn is_selected(&self, selector: &Gvk) -> bool {
        let fits = |own: &str, wanted: &str| wanted.is_empty() || own == wanted;
        fits(&self.group, &selector.group)
            && fits(&self.version, &selector.version)
            && fits(&self.kind, &selector.kind)
    }

    pub(crate) fn order(&self, other: &Gvk) -> Ordering {
        rank(&self.kind).cmp(&rank(&other.kind)).then_with(|| self.sort_text().cmp(&other.sort_text()))
    }

    /// The text by which kinds of the same rank sort.
    pub(crate) fn sort_text(&self) -> String {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        format!("{}_{}_{}", or(&self.group, "~G"), or(&self.version, "~V"), or(&self.kind, "~K"))
    }
}

fn rank(kind: &str) -> i32 {
    let place =
        |list: &[&str]| list.iter().position(|known| *known == kind).and_then(|at| i32::try_from(at).ok());
    match (place(&ORDER_FIRST), place(&ORDER_LAST)) {
        (Some(at), _) => at - 22,
        (None, Some(at)) => at + 1,
        (None, None) => 0,
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or =
            |text: &str, none: &'static str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        write!(
            f,
            "{}.{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]")
        )
    }
}

/// `apps/v1` to group and version.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl ResId {
    pub(crate) fn new(schemas: &Schemas, gvk: Gvk, name: &str, namespace: &str) -> Self {
        let cluster = schemas.is_cluster_scoped(&gvk);
        Self { gvk, name: name.to_owned(), namespace: namespace.to_owned(), cluster }
    }

    /// The namespace that counts in comparisons.
    pub(crate) fn effective_namespace(&self) -> &str {
        if self.cluster {
            NO_NAMESPACE
        } else if self.namespace.is_empty() {
            DEFAULT_NAMESPACE
        } else {
            &self.namespace
        }
    }

    /// Same object, with the default namespace equal to none.
    pub(crate) fn same(&self, other: &ResId) -> bool {
        self.name == other.name && self.gvk == other.gvk && self.same_namespace(other)
    }

    pub(crate) fn same_namespace(&self, other: &ResId) -> bool {
        self.effective_namespace() == other.effective_namespace()
    }

    /// What [`Self::same`] compares, as a key.
    pub(crate) fn key(&self) -> (Gvk, String, String) {
        (self.gvk.clone(), self.name.clone(), self.effective_namespace().to_owned())
    }

    /// Whether a selector, whose empty parts match everything, selects it.
    pub(crate) fn is_selected_by(&self, selector: &ResId) -> bool {
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty() || selector.same_namespace(self))
            && self.gvk.is_selected(&selector.gvk)
    }
}

impl fmt::Display for ResId {
    /// For people: `Deployment.apps/v1 "web" in namespace "shop"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.gvk.kind.is_empty() { "any kind" } else { &self.gvk.kind };
        write!(f, "{kind}")?;
        let api_version = self.gvk.api_version();
        if !api_version.is_empty() {
            write!(f, " ({api_version})")?;
        }
        write!(f, " {:?}", self.name)?;
        if !self.namespace.is_empty() && self.namespace != NO_NAMESPACE {
            write!(f, " in namespace {:?}", self.namespace)?;
        }
        Ok(())
    }
}
