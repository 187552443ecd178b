//! Bodies of requests.

use std::fmt;
use std::str::FromStr;

use pintle_model::ObjectKey;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How fresh an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refresh {
    /// What is known.
    #[default]
    None,
    /// Ask git for the ref and compare again.
    Normal,
    /// As Normal, and render again without caches.
    Hard,
}

/// Body of `POST .../refresh`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefreshRequest {
    /// Render again without caches.
    #[serde(default)]
    pub hard: bool,
}

/// Body of `POST .../sync`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SyncRequest {
    /// Sync to this revision instead of the target revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Delete what git no longer has.
    pub prune: bool,
    /// Only plan.
    pub dry_run: bool,
    /// Only these objects; empty means all. No hooks run on such a sync.
    pub resources: Vec<ResourceSelector>,
    /// Token of a plan that needs confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// Take the cluster over from another agent.
    pub take_over: bool,
}

/// Body of `POST .../rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbackRequest {
    /// The history entry.
    pub id: u64,
    /// Delete what that entry did not have.
    #[serde(default)]
    pub prune: bool,
    /// Only plan.
    #[serde(default)]
    pub dry_run: bool,
}

/// Body of `POST .../pause`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PauseRequest {
    /// It ends by itself after this many seconds; none means only by `resume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Why.
    pub reason: String,
}

/// Body of `POST .../diff`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DiffRequest {
    /// Compare with this revision instead of the target revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// Query of `DELETE /applications/{namespace}/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteRequest {
    /// What happens to the objects.
    pub mode: DeleteMode,
    /// Token of the plan; without it a cascade only answers the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

/// What happens to the objects of an application that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeleteMode {
    /// They stay, and are no longer ours.
    Orphan,
    /// They are deleted.
    Cascade,
}

/// One `--resource` of Argo CD: `GROUP:KIND:NAME` or `GROUP:KIND:NAMESPACE/NAME`.
///
/// Group, kind and name may be `*`. The group is empty for core objects (`:Service:web`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceSelector {
    /// API group, empty for core, or `*`.
    pub group: String,
    /// Kind, or `*`.
    pub kind: String,
    /// Namespace; none means any.
    pub namespace: Option<String>,
    /// Name, or `*`.
    pub name: String,
}

impl ResourceSelector {
    /// Does it select this object?
    pub fn matches(&self, key: &ObjectKey) -> bool {
        let fits = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        fits(&self.group, &key.group)
            && fits(&self.kind, &key.kind)
            && self.namespace.as_deref().is_none_or(|namespace| fits(namespace, &key.namespace))
            && fits(&self.name, &key.name)
    }
}

impl fmt::Display for ResourceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.group, self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// A text that selects no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} selects no object: write GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME, with an empty GROUP for core objects (apps:Deployment:web, :Service:shop/web)"
)]
pub struct InvalidSelector(pub String);

impl FromStr for ResourceSelector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSelector(text.to_owned());
        let mut parts = text.splitn(3, ':');
        let (Some(group), Some(kind), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(invalid());
        };
        let (namespace, name) = match rest.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, rest),
        };
        // RBAC names (`system:node`) hold colons, so the name may; a slash in it has no meaning.
        if kind.is_empty() || name.is_empty() || name.contains('/') || namespace.as_deref() == Some("") {
            return Err(invalid());
        }
        Ok(Self { group: group.to_owned(), kind: kind.to_owned(), namespace, name: name.to_owned() })
    }
}

impl Serialize for ResourceSelector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_reads_argo_cds_forms() {
        for text in ["apps:Deployment:web", ":Service:shop/web", "*:*:*", ":ClusterRole:system:node"] {
            assert_eq!(text.parse::<ResourceSelector>().unwrap().to_string(), text);
        }
        for text in ["", "web", "apps:Deployment", "apps::web", "apps:Deployment:", "a:B:/c", "a:B:c/d/e"] {
            assert!(text.parse::<ResourceSelector>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_selector_without_namespace_selects_in_all() {
        let key = ObjectKey::new("apps", "Deployment", "shop", "web");
        let matches = |text: &str| text.parse::<ResourceSelector>().unwrap().matches(&key);
        assert!(matches("apps:Deployment:web"));
        assert!(matches("apps:Deployment:shop/web"));
        assert!(matches("*:Deployment:*"));
        assert!(!matches("apps:Deployment:other/web"));
        assert!(!matches(":Deployment:web"));
    }

    #[test]
    fn an_unknown_field_of_a_request_is_refused() {
        assert!(serde_json::from_str::<SyncRequest>(r#"{"prun": true}"#).is_err());
        assert!(serde_json::from_str::<SyncRequest>(r#"{"prune": true}"#).unwrap().prune);
    }
}
