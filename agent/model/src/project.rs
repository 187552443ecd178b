//! Argo CD's AppProject (v1alpha1): a fence around applications. What is written, and what is valid.

use serde::{Deserialize, Serialize};

use crate::application::SpecError;
use crate::application::raw::RawMetadata;
use crate::application::validate::{DEFAULT_PROJECT, Metadata, check_type, refuse};

pub use self::raw::{RawAppProject, RawProjectSpec};

pub mod raw;
#[cfg(test)]
mod tests;

/// A valid AppProject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppProject {
    /// Name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Globs of repositories that may be used; `!` in front denies.
    pub source_repos: Vec<String>,
    /// Clusters and namespaces that may be written to.
    pub destinations: Vec<ProjectDestination>,
    /// Globs of namespaces, besides `argocd`, whose Applications may use the project.
    pub source_namespaces: Vec<String>,
    /// Cluster-scoped kinds that may be written; none when empty.
    pub cluster_resource_whitelist: Vec<ClusterResource>,
    /// Cluster-scoped kinds that may not.
    pub cluster_resource_blacklist: Vec<ClusterResource>,
    /// Namespaced kinds that may be written; `None` allows all, an empty list none.
    pub namespace_resource_whitelist: Option<Vec<NamespacedResource>>,
    /// Namespaced kinds that may not.
    pub namespace_resource_blacklist: Vec<NamespacedResource>,
}

/// Globs of a cluster and a namespace; `!` in front denies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectDestination {
    /// API server URL.
    pub server: String,
    /// Name of the cluster.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// Globs of a cluster-scoped kind and its names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterResource {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name; empty for every name.
    pub name: String,
}

/// Globs of a namespaced kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacedResource {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
}

impl AppProject {
    /// The project `default` as it is where nobody defined it: everything is allowed.
    pub fn default_project() -> Self {
        let all = || "*".to_owned();
        Self {
            name: DEFAULT_PROJECT.to_owned(),
            description: String::new(),
            source_repos: vec![all()],
            destinations: vec![ProjectDestination { server: all(), name: String::new(), namespace: all() }],
            source_namespaces: vec![all()],
            cluster_resource_whitelist: vec![ClusterResource {
                group: all(),
                kind: all(),
                name: String::new(),
            }],
            cluster_resource_blacklist: Vec::new(),
            namespace_resource_whitelist: None,
            namespace_resource_blacklist: Vec::new(),
        }
    }
}

/// Validates a written AppProject.
///
/// Errors: all that is wrong; what is not built yet is refused by name.
pub fn validate_project(raw: RawAppProject) -> Result<AppProject, Vec<SpecError>> {
    let mut errors = Vec::new();
    let RawAppProject { api_version, kind, metadata, spec, status: _ } = raw;
    check_type("AppProject", api_version.as_deref(), kind.as_deref(), &mut errors);
    let metadata: RawMetadata = metadata.unwrap_or_default();
    let metadata = Metadata::read(metadata, &mut errors);
    let RawProjectSpec {
        source_repos,
        source_namespaces,
        destinations,
        description,
        cluster_resource_whitelist,
        cluster_resource_blacklist,
        namespace_resource_whitelist,
        namespace_resource_blacklist,
        roles,
        orphaned_resources,
        sync_windows,
        signature_keys,
        source_integrity,
        permit_only_project_scoped_clusters,
        destination_service_accounts,
    } = spec.unwrap_or_default();
    refuse(!is_empty(roles), "spec.roles", &mut errors);
    refuse(orphaned_resources.is_some(), "spec.orphanedResources", &mut errors);
    refuse(!is_empty(sync_windows), "spec.syncWindows", &mut errors);
    refuse(!is_empty(signature_keys), "spec.signatureKeys", &mut errors);
    refuse(source_integrity.is_some(), "spec.sourceIntegrity", &mut errors);
    let only_scoped = permit_only_project_scoped_clusters.unwrap_or(false);
    refuse(only_scoped, "spec.permitOnlyProjectScopedClusters", &mut errors);
    refuse(!is_empty(destination_service_accounts), "spec.destinationServiceAccounts", &mut errors);

    let source_repos = source_repos.unwrap_or_default();
    for (index, text) in source_repos.iter().enumerate().filter(|(_, text)| bare(text)) {
        errors.push(SpecError::new(
            format!("spec.sourceRepos[{index}]"),
            format!("`{text}` names no repository"),
        ));
    }
    let destinations = destinations.unwrap_or_default();
    let destinations = destinations
        .into_iter()
        .enumerate()
        .map(|(index, raw)| destination(raw, index, &mut errors))
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let cluster = |list: Option<Vec<raw::RawClusterResource>>| {
        list.unwrap_or_default()
            .into_iter()
            .map(|raw| ClusterResource {
                group: raw.group.unwrap_or_default(),
                kind: raw.kind.unwrap_or_default(),
                name: raw.name.unwrap_or_default(),
            })
            .collect()
    };
    let namespaced = |list: Vec<raw::RawGroupKind>| {
        list.into_iter()
            .map(|raw| NamespacedResource {
                group: raw.group.unwrap_or_default(),
                kind: raw.kind.unwrap_or_default(),
            })
            .collect::<Vec<_>>()
    };
    Ok(AppProject {
        name: metadata.name,
        description: description.unwrap_or_default(),
        source_repos,
        destinations,
        source_namespaces: source_namespaces.unwrap_or_default(),
        cluster_resource_whitelist: cluster(cluster_resource_whitelist),
        cluster_resource_blacklist: cluster(cluster_resource_blacklist),
        namespace_resource_whitelist: namespace_resource_whitelist.map(namespaced),
        namespace_resource_blacklist: namespaced(namespace_resource_blacklist.unwrap_or_default()),
    })
}

fn is_empty<T>(list: Option<Vec<T>>) -> bool {
    list.is_none_or(|list| list.is_empty())
}

/// Nothing, or a `!` with nothing behind it: a pattern that would deny or allow by accident.
fn bare(text: &str) -> bool {
    text.is_empty() || text == "!"
}

fn destination(
    raw: raw::RawProjectDestination,
    index: usize,
    errors: &mut Vec<SpecError>,
) -> ProjectDestination {
    let destination = ProjectDestination {
        server: raw.server.unwrap_or_default(),
        name: raw.name.unwrap_or_default(),
        namespace: raw.namespace.unwrap_or_default(),
    };
    let ProjectDestination { server, name, namespace } = &destination;
    let field = format!("spec.destinations[{index}]");
    if server.is_empty() && name.is_empty() {
        errors.push(SpecError::new(&field, "names no cluster: give server or name"));
    }
    for (part, text) in [("server", server), ("name", name), ("namespace", namespace)] {
        if text == "!" {
            errors.push(SpecError::new(format!("{field}.{part}"), "`!` denies nothing: name what it denies"));
        }
    }
    // As in Argo CD: a deny of everything is written by allowing nothing.
    if server == "!*" || namespace == "!*" {
        errors.push(SpecError::new(&field, "`!*` denies everything; leave the entry out to allow nothing"));
    }
    destination
}
