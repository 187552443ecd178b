//! Kinds: aggregated discovery in two requests (Kubernetes 1.26 and newer), judged for each group, with the older form
//! as fallback.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use pintle_model::Reason;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ApiFailure, Cluster, failure};

/// A kind in one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiResource {
    /// API group; empty for core.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name in URLs.
    pub plural: String,
    /// Namespaced or cluster-scoped.
    pub namespaced: bool,
}

impl ApiResource {
    /// `group/version`, or `version` for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// The kinds of a cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Discovery {
    /// By group, in the server's order of preference.
    groups: BTreeMap<String, Group>,
}

/// One API group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Group {
    resources: Vec<ApiResource>,
    /// The server behind it did not answer: what it has is not known.
    incomplete: bool,
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

impl Discovery {
    /// The kind in the server's preferred version.
    pub fn resolve(&self, group: &str, kind: &str) -> Option<&ApiResource> {
        self.groups.get(group)?.resources.iter().find(|resource| resource.kind == kind)
    }

    /// The kind in this `apiVersion`.
    pub fn resolve_version(&self, api_version: &str, kind: &str) -> Option<&ApiResource> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.groups
            .get(group)?
            .resources
            .iter()
            .find(|resource| resource.kind == kind && resource.version == version)
    }

    /// Did the group answer?
    pub fn is_complete(&self, group: &str) -> bool {
        self.groups.get(group).is_none_or(|group| !group.incomplete)
    }

    /// Groups whose server did not answer.
    pub fn incomplete_groups(&self) -> BTreeSet<String> {
        self.groups.iter().filter(|(_, group)| group.incomplete).map(|(name, _)| name.clone()).collect()
    }

    /// Versions in which a kind is installed.
    pub fn installed_versions(&self, group: &str, kind: &str) -> Vec<String> {
        let found = self.groups.get(group).map(|group| &group.resources);
        found
            .into_iter()
            .flatten()
            .filter(|resource| resource.kind == kind)
            .map(ApiResource::api_version)
            .collect()
    }

    /// Puts what one group has now; `None` when the group is gone.
    pub fn replace_group(&mut self, name: &str, group: Option<Group>) {
        match group {
            Some(group) => drop(self.groups.insert(name.to_owned(), group)),
            None => drop(self.groups.remove(name)),
        }
    }
}

impl Cluster {
    /// All kinds.
    pub async fn discover(&self) -> Result<Discovery, ApiFailure> {
        let mut discovery = Discovery::default();
        for root in ["/api", "/apis"] {
            let list = self.json(root, AGGREGATED).await?;
            if list["kind"] == "APIGroupDiscoveryList" {
                read_aggregated(&list, &mut discovery);
            } else {
                self.read_plain(root, &list, &mut discovery).await?;
            }
        }
        Ok(discovery)
    }

    /// What one group has now.
    pub async fn discover_group(&self, name: &str) -> Result<Option<Group>, ApiFailure> {
        if name.is_empty() {
            let mut discovery = Discovery::default();
            let list = self.json("/api", AGGREGATED).await?;
            if list["kind"] == "APIGroupDiscoveryList" {
                read_aggregated(&list, &mut discovery);
            } else {
                self.read_plain("/api", &list, &mut discovery).await?;
            }
            return Ok(discovery.groups.remove(""));
        }
        let found = match self.json(&format!("/apis/{name}"), "").await {
            Ok(found) => found,
            Err(failure) if failure.code == 404 => return Ok(None),
            Err(failure) => return Err(failure),
        };
        self.read_group(name, &found).await.map(Some)
    }

    async fn read_plain(
        &self,
        root: &str,
        list: &Value,
        discovery: &mut Discovery,
    ) -> Result<(), ApiFailure> {
        if root == "/api" {
            let mut group = Group::default();
            for version in list["versions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let found = self.json(&format!("/api/{version}"), "").await?;
                read_resources("", version, &found, &mut group.resources);
            }
            discovery.groups.insert(String::new(), group);
            return Ok(());
        }
        for found in list["groups"].as_array().into_iter().flatten() {
            let name = found["name"].as_str().unwrap_or_default();
            let group = self.read_group(name, found).await?;
            discovery.groups.insert(name.to_owned(), group);
        }
        Ok(())
    }

    async fn read_group(&self, name: &str, found: &Value) -> Result<Group, ApiFailure> {
        let mut group = Group::default();
        let preferred = found["preferredVersion"]["version"].as_str().unwrap_or_default();
        let versions: Vec<&str> = found["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v["version"].as_str())
            .collect();
        let first = versions.iter().copied().filter(|version| *version == preferred);
        for version in first.chain(versions.iter().copied().filter(|version| *version != preferred)) {
            match self.json(&format!("/apis/{name}/{version}"), "").await {
                Ok(list) => read_resources(name, version, &list, &mut group.resources),
                // The server behind this version is away; the others still count.
                Err(failure) if failure.code >= 500 || failure.code == 404 => group.incomplete = true,
                Err(failure) => return Err(failure),
            }
        }
        Ok(group)
    }

    pub(super) async fn json(&self, path: &str, accept: &str) -> Result<Value, ApiFailure> {
        let answer = self.call(Method::GET, path, None, accept).await?;
        serde_json::from_slice(&answer.body).map_err(|error| {
            failure::plain(Reason::ServerError, format!("the answer to GET {path} is not JSON: {error}"))
        })
    }
}

fn read_aggregated(list: &Value, discovery: &mut Discovery) {
    for item in list["items"].as_array().into_iter().flatten() {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let group = discovery.groups.entry(name.to_owned()).or_default();
        for version in item["versions"].as_array().into_iter().flatten() {
            // The aggregator keeps what it knew of a dead server and marks it Stale.
            if version["freshness"] == "Stale" {
                group.incomplete = true;
            }
            let version_name = version["version"].as_str().unwrap_or_default();
            for resource in version["resources"].as_array().into_iter().flatten() {
                let kind = resource["responseKind"]["kind"].as_str().unwrap_or_default();
                if kind.is_empty() || !has_verbs(&resource["verbs"]) {
                    continue;
                }
                group.resources.push(ApiResource {
                    group: name.to_owned(),
                    version: version_name.to_owned(),
                    kind: kind.to_owned(),
                    plural: resource["resource"].as_str().unwrap_or_default().to_owned(),
                    namespaced: resource["scope"] == "Namespaced",
                });
            }
        }
    }
}

fn read_resources(group: &str, version: &str, list: &Value, into: &mut Vec<ApiResource>) {
    for resource in list["resources"].as_array().into_iter().flatten() {
        let plural = resource["name"].as_str().unwrap_or_default();
        if plural.contains('/') || !has_verbs(&resource["verbs"]) {
            continue;
        }
        into.push(ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource["kind"].as_str().unwrap_or_default().to_owned(),
            plural: plural.to_owned(),
            namespaced: resource["namespaced"].as_bool().unwrap_or(false),
        });
    }
}

/// Kinds that cannot be read (TokenReview and the like) are no objects of an application.
fn has_verbs(verbs: &Value) -> bool {
    verbs.as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "get"))
}
