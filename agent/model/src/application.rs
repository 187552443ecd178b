//! Argo CD's Application (v1alpha1): its key, what is written, and what is valid.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::key::InvalidKey;
use crate::names::DEFAULT_APP_NAMESPACE;

/// Namespace and name of an Application. Text form `namespace/name`; a bare name is in namespace `argocd`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppKey {
    /// Namespace of the Application object; `argocd` unless it says otherwise.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl AppKey {
    /// From namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AppKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').unwrap_or((DEFAULT_APP_NAMESPACE, text));
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(InvalidKey(text.to_owned()));
        }
        Ok(Self::new(namespace, name))
    }
}

impl Serialize for AppKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AppKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
/// shim
#[derive(Debug, Clone, PartialEq)]
pub struct Application { pub key: AppKey, pub source: Source, pub automated: Option<Automated>, pub settings: Settings, pub sync_options: SyncOptions, pub history_limit: usize }
/// shim
#[derive(Debug, Clone, PartialEq)]
pub struct Source { pub repo_url: String, pub target_revision: String }
/// shim
#[derive(Debug, Clone, PartialEq)]
pub struct Automated { pub prune: bool, pub self_heal: bool, pub allow_empty: bool }
/// shim
#[derive(Debug, Clone, PartialEq)]
pub struct Settings { pub rollback_until_resume: bool, pub sync_timeout_secs: u64, pub adopt: bool }
/// shim
#[derive(Debug, Clone, PartialEq)]
pub struct SyncOptions { pub fail_on_shared_resource: bool, pub prune_propagation: Option<String> }
/// shim
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RetryPolicy { pub first: std::time::Duration, pub factor: u64, pub max: std::time::Duration, pub limit: Option<i64> }
impl Application { pub fn render_digest(&self) -> crate::Digest { crate::Digest::of(b"") } pub fn retry_policy(&self) -> RetryPolicy { RetryPolicy { first: std::time::Duration::from_secs(5), factor: 2, max: std::time::Duration::from_secs(180), limit: None } } }

/// shim
pub fn validate(raw: serde_json::Value) -> Result<Application, String> {
    let md = &raw["metadata"];
    let auto = raw["spec"]["syncPolicy"]["automated"].is_object();
    Ok(Application { key: AppKey::new(md["namespace"].as_str().unwrap_or(""), md["name"].as_str().unwrap_or("")),
      source: Source { repo_url: "u".into(), target_revision: "main".into() }, automated: auto.then_some(Automated { prune: true, self_heal: true, allow_empty: false }),
      settings: Settings { rollback_until_resume: false, sync_timeout_secs: 600, adopt: false }, sync_options: SyncOptions { fail_on_shared_resource: false, prune_propagation: None }, history_limit: 10 })
}
