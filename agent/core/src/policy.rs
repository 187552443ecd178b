//! What an AppProject allows. Decisions only: whoever asks has the project, the application and the object.
//!
//! The rules are Argo CD's. A `!` in front of a pattern denies. A deny that matches beats every allow; where
//! nothing allows, nothing is allowed; a deny alone allows the rest (`!x` also says "everything but x").

use pintle_model::application::{Application, Destination, IN_CLUSTER_NAME, IN_CLUSTER_SERVER};
use pintle_model::names::DEFAULT_APP_NAMESPACE;
use pintle_model::{AppProject, ObjectKey, glob};

#[cfg(test)]
mod tests;

/// What the application itself does that its project does not allow, one sentence each; empty when all is
/// allowed. Its objects are judged by [`object_violations`].
pub fn violations(project: &AppProject, app: &Application) -> Vec<String> {
    let mut found = Vec::new();
    let name = &project.name;
    let namespace = &*app.key.namespace;
    let from_here = namespace == DEFAULT_APP_NAMESPACE
        || project.source_namespaces.iter().any(|pattern| glob::matches(pattern, namespace, None));
    if !from_here {
        found.push(format!(
            "applications of the namespace `{namespace}` may not use the project `{name}`; allowed: {}",
            list(std::iter::once(DEFAULT_APP_NAMESPACE).chain(texts(&project.source_namespaces)))
        ));
    }
    if !allows_source(project, &app.source.repo_url) {
        found.push(format!(
            "the repository {} is not allowed by the project `{name}`; allowed: {}",
            app.source.repo_url,
            list(texts(&project.source_repos))
        ));
    }
    if !allows_destination(project, &app.destination, &app.destination.namespace) {
        found.push(format!(
            "the destination {} is not allowed by the project `{name}`; allowed: {}",
            place(&app.destination, &app.destination.namespace),
            destinations(project)
        ));
    }
    found
}

/// Why the project does not allow an object of an application with this destination; `None` when it does.
///
/// `cluster_scoped` comes from discovery: the lists for cluster-scoped and namespaced kinds differ, and so does
/// their meaning when empty. The namespace of a namespaced object must be an allowed destination, too.
pub fn object_violations(
    project: &AppProject,
    destination: &Destination,
    key: &ObjectKey,
    cluster_scoped: bool,
) -> Option<String> {
    let name = &project.name;
    if !allows_kind(project, key, cluster_scoped) {
        let list = if cluster_scoped { "clusterResource" } else { "namespaceResource" };
        return Some(format!(
            "{} {} is not allowed by the project `{name}` (see {list}Whitelist and {list}Blacklist)",
            key.group_kind(),
            key.name
        ));
    }
    if !cluster_scoped && !allows_destination(project, destination, &key.namespace) {
        return Some(format!(
            "{} {}: the destination {} is not allowed by the project `{name}`; allowed: {}",
            key.group_kind(),
            key.name,
            place(destination, &key.namespace),
            destinations(project)
        ));
    }
    None
}

/// May this repository be used? `*` does not go over a `/`, but for the pattern `*` alone.
pub fn allows_source(project: &AppProject, repo_url: &str) -> bool {
    let url = normal_url(repo_url);
    let mut allowed = false;
    for pattern in &project.source_repos {
        match pattern.strip_prefix('!') {
            Some(denied) if matches_url(denied, &url) => return false,
            Some(_) => allowed = true,
            None => allowed |= matches_url(pattern, &url),
        }
    }
    allowed
}

fn matches_url(pattern: &str, url: &str) -> bool {
    pattern == "*" || glob::matches(&normal_url(pattern), url, Some('/'))
}

/// Two ways to write one URL are one URL: case, `.git` and a slash at the end do not count.
fn normal_url(url: &str) -> String {
    let url = url.trim().to_lowercase();
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url).to_owned()
}

/// May this namespace of this cluster be written to?
pub fn allows_destination(project: &AppProject, destination: &Destination, namespace: &str) -> bool {
    // The own cluster has one URL and two names.
    let names = [IN_CLUSTER_NAME, destination.cluster.as_str()];
    let mut allowed = false;
    for entry in &project.destinations {
        let server = allowed_by(&entry.server, &[IN_CLUSTER_SERVER]);
        let name = allowed_by(&entry.name, &names);
        let namespace = allowed_by(&entry.namespace, &[namespace]);
        if (server || name) && namespace {
            allowed = true;
        } else if [(server, &entry.server), (name, &entry.name), (namespace, &entry.namespace)]
            .iter()
            .any(|(matched, pattern)| !matched && pattern.starts_with('!'))
        {
            return false;
        }
    }
    allowed
}

/// One pattern, perhaps with `!`, against the names of one thing.
fn allowed_by(pattern: &str, names: &[&str]) -> bool {
    let any = |pattern: &str| names.iter().any(|name| pattern == "*" || glob::matches(pattern, name, None));
    match pattern.strip_prefix('!') {
        Some(denied) => !any(denied),
        None => any(pattern),
    }
}

/// May this kind be written? An absent list of namespaced kinds allows all, of cluster-scoped kinds none.
fn allows_kind(project: &AppProject, key: &ObjectKey, cluster_scoped: bool) -> bool {
    let is = |group: &str, kind: &str| {
        glob::matches(group, &key.group, None) && glob::matches(kind, &key.kind, None)
    };
    if cluster_scoped {
        let listed = |list: &[pintle_model::project::ClusterResource]| {
            list.iter().any(|entry| {
                is(&entry.group, &entry.kind)
                    && (entry.name.is_empty() || glob::matches(&entry.name, &key.name, None))
            })
        };
        return listed(&project.cluster_resource_whitelist) && !listed(&project.cluster_resource_blacklist);
    }
    let listed = |list: &[pintle_model::project::NamespacedResource]| {
        list.iter().any(|entry| is(&entry.group, &entry.kind))
    };
    project.namespace_resource_whitelist.as_deref().is_none_or(listed)
        && !listed(&project.namespace_resource_blacklist)
}

fn place(destination: &Destination, namespace: &str) -> String {
    format!("cluster `{}`, namespace `{namespace}`", destination.cluster)
}

fn destinations(project: &AppProject) -> String {
    list(project.destinations.iter().map(|entry| {
        let cluster = if entry.server.is_empty() { &entry.name } else { &entry.server };
        format!("{cluster} namespace {}", entry.namespace)
    }))
}

fn texts(list: &[String]) -> impl Iterator<Item = &str> {
    list.iter().map(String::as_str)
}

fn list<T: AsRef<str>>(items: impl Iterator<Item = T>) -> String {
    let text = items.map(|item| item.as_ref().to_owned()).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "nothing".to_owned() } else { text }
}
