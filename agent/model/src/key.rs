//! The one identity of an object, used by store, API, metrics and tracking id.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// API group and kind, never the version: an object keeps its identity when it is read in another version.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Kind, such as `Deployment`.
    pub kind: Arc<str>,
}

impl GroupKind {
    /// From group (empty for core) and kind.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Is it this group and kind?
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.group == group && &*self.kind == kind
    }
}

impl fmt::Display for GroupKind {
    /// `Kind.group`, or `Kind` for the core group: the form of the ApplySet annotation (KEP-3659).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

impl fmt::Debug for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for GroupKind {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        if kind.is_empty() {
            return Err(InvalidKey(text.to_owned()));
        }
        Ok(Self::new(group, kind))
    }
}

/// Cluster, group-kind, namespace and name.
///
/// Guarantees: the namespace is empty for a cluster-scoped object, whatever its manifest said; whoever makes a
/// key has asked discovery for the scope first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Name of the cluster in our configuration; empty for the agent's own cluster.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub cluster: Arc<str>,
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

fn str_is_empty(text: &str) -> bool {
    text.is_empty()
}

impl ObjectKey {
    /// A key in the agent's own cluster.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            cluster: "".into(),
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The group-kind part.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// Is it of this group and kind?
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.group == group && &*self.kind == kind
    }

    /// `group/Kind/namespace/name`, the form of Argo CD's resource lists and of our store.
    pub fn path(&self) -> String {
        format!("{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }

    /// The tracking id in Argo CD's form: `app:group/kind:namespace/name`.
    pub fn tracking_id(&self, app: &str) -> String {
        format!("{app}:{}/{}:{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

impl fmt::Display for ObjectKey {
    /// `deployment.apps/web in shop`: how kubectl names objects, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.to_lowercase())?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        write!(f, "/{}", self.name)?;
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        if !self.cluster.is_empty() {
            write!(f, " on {}", self.cluster)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())
    }
}

/// A text that is not a key.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an object: write group/Kind/namespace/name")]
pub struct InvalidKey(pub String);

impl FromStr for ObjectKey {
    type Err = InvalidKey;

    /// Reads `path()`; the group may be missing for the core group (`Kind/namespace/name`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            [group, kind, namespace, name] if !kind.is_empty() && !name.is_empty() => {
                Ok(Self::new(group, kind, namespace, name))
            }
            [kind, namespace, name] if !kind.is_empty() && !name.is_empty() => {
                Ok(Self::new("", kind, namespace, name))
            }
            _ => Err(InvalidKey(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_round_trips() {
        for key in
            [ObjectKey::new("apps", "Deployment", "shop", "web"), ObjectKey::new("", "Namespace", "", "shop")]
        {
            assert_eq!(key.path().parse::<ObjectKey>().unwrap(), key);
        }
        assert!("Deployment".parse::<ObjectKey>().is_err());
    }

    #[test]
    fn tracking_id_has_argo_cds_form() {
        let key = ObjectKey::new("apps", "Deployment", "shop", "web");
        assert_eq!(key.tracking_id("argocd/shop"), "argocd/shop:apps/Deployment:shop/web");
    }

    #[test]
    fn group_kind_reads_what_it_prints() {
        for gk in [GroupKind::new("apps", "Deployment"), GroupKind::new("", "Secret")] {
            assert_eq!(gk.to_string().parse::<GroupKind>().unwrap(), gk);
        }
    }
}
