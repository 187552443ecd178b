use serde_json::{Value, json};

use super::*;
use pintle_model::application::{Context, validate};
use pintle_model::project::validate_project;

fn project(spec: Value) -> AppProject {
    let raw = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "team"}, "spec": spec});
    validate_project(serde_json::from_value(raw).unwrap()).unwrap()
}

fn app(namespace: &str, repo: &str, destination: &str) -> Application {
    let raw = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {"source": {"repoURL": repo, "path": "."},
            "destination": {"name": "in-cluster", "namespace": destination}}});
    let context = Context { cluster_name: "shop-0042".to_owned(), ..Context::default() };
    validate(serde_json::from_value(raw).unwrap(), &context).unwrap()
}

fn destination() -> Destination {
    Destination { cluster: "shop-0042".to_owned(), namespace: "shop".to_owned() }
}

#[test]
fn the_default_project_allows_everything() {
    let project = AppProject::default_project();
    assert!(violations(&project, &app("other", "https://git.example/x", "kube-system")).is_empty());
    for (key, cluster_scoped) in [
        (ObjectKey::new("apps", "Deployment", "a", "b"), false),
        (ObjectKey::new("", "Namespace", "", "b"), true),
    ] {
        assert_eq!(object_violations(&project, &destination(), &key, cluster_scoped), None);
    }
}

#[test]
fn an_empty_project_allows_nothing() {
    let found = violations(&project(json!({})), &app("other", "https://git.example/x", "shop"));
    assert_eq!(
        found,
        [
            "applications of the namespace `other` may not use the project `team`; allowed: argocd",
            "the repository https://git.example/x is not allowed by the project `team`; allowed: nothing",
            "the destination cluster `shop-0042`, namespace `shop` is not allowed by the project `team`; \
             allowed: nothing",
        ]
    );
}

#[test]
fn source_repositories_follow_argo_cds_globs() {
    for (patterns, url, allowed) in [
        (json!(["*"]), "https://git.example/a/b/c", true),
        (json!(["https://git.example/*"]), "https://git.example/a.git", true),
        (json!(["https://git.example/*"]), "https://git.example/a/b", false),
        (json!(["https://git.example/**"]), "https://git.example/a/b", true),
        (json!(["https://git.example/a.git"]), "https://GIT.example/A/", true),
        (json!(["https://git.example/a"]), "https://git.example/ab", false),
        (json!(["*", "!https://git.example/secret"]), "https://git.example/secret.git", false),
        (json!(["!https://git.example/secret", "*"]), "https://git.example/secret", false),
        (json!(["!https://git.example/secret"]), "https://git.example/open", true),
        (json!([]), "https://git.example/a", false),
    ] {
        let project = project(json!({"sourceRepos": patterns}));
        assert_eq!(allows_source(&project, url), allowed, "{:?} {url}", project.source_repos);
    }
}

#[test]
fn destinations_allow_and_deny_as_argo_cd() {
    let server = "https://kubernetes.default.svc";
    for (destinations, namespace, allowed) in [
        (json!([{"server": server, "namespace": "shop"}]), "shop", true),
        (json!([{"server": server, "namespace": "shop"}]), "other", false),
        (json!([{"server": "*", "namespace": "team-*"}]), "team-a", true),
        (json!([{"name": "in-cluster", "namespace": "*"}]), "any", true),
        (json!([{"name": "shop-*", "namespace": "*"}]), "any", true),
        (json!([{"name": "other", "namespace": "*"}]), "any", false),
        (json!([{"server": "https://other", "namespace": "*"}]), "any", false),
        (json!([{"server": "*", "namespace": "!kube-system"}]), "shop", true),
        (json!([{"server": "*", "namespace": "!kube-system"}]), "kube-system", false),
        (
            json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-*"}]),
            "kube-system",
            false,
        ),
        (json!([{"server": "*", "namespace": "*"}, {"name": "!shop-0042", "namespace": "*"}]), "shop", false),
    ] {
        let project = project(json!({"destinations": destinations}));
        let found = allows_destination(&project, &destination(), namespace);
        assert_eq!(found, allowed, "{:?} {namespace}", project.destinations);
    }
}

#[test]
fn kinds_follow_the_list_of_their_scope() {
    let all = json!([{"server": "*", "namespace": "*"}]);
    let deployment = ObjectKey::new("apps", "Deployment", "shop", "web");
    let namespace = ObjectKey::new("", "Namespace", "", "team-a");
    let any = json!({"group": "*", "kind": "*"});
    for (lists, key, cluster_scoped, allowed) in [
        (json!({}), &deployment, false, true),
        (json!({"namespaceResourceWhitelist": []}), &deployment, false, false),
        (json!({"namespaceResourceWhitelist": [{"group": "apps", "kind": "*"}]}), &deployment, false, true),
        (json!({"namespaceResourceWhitelist": [{"group": "", "kind": "*"}]}), &deployment, false, false),
        (
            json!({"namespaceResourceBlacklist": [{"group": "*", "kind": "Deploy*"}]}),
            &deployment,
            false,
            false,
        ),
        (json!({}), &namespace, true, false),
        (json!({"clusterResourceWhitelist": [any]}), &namespace, true, true),
        (
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "team-*"}]}),
            &namespace,
            true,
            true,
        ),
        (
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "other-*"}]}),
            &namespace,
            true,
            false,
        ),
        (
            json!({"clusterResourceWhitelist": [any], "clusterResourceBlacklist": [{"kind": "Namespace"}]}),
            &namespace,
            true,
            false,
        ),
    ] {
        let mut spec = lists.clone();
        spec["destinations"] = all.clone();
        let found = object_violations(&project(spec), &destination(), key, cluster_scoped);
        assert_eq!(found.is_none(), allowed, "{lists} {key}: {found:?}");
    }
}

#[test]
fn an_object_outside_the_allowed_namespaces_is_refused_with_the_allowed_ones() {
    let project = project(json!({"destinations": [{"server": "*", "namespace": "shop"}]}));
    let key = ObjectKey::new("", "ConfigMap", "kube-system", "x");
    assert_eq!(
        object_violations(&project, &destination(), &key, false).unwrap(),
        "ConfigMap x: the destination cluster `shop-0042`, namespace `kube-system` is not allowed by the \
         project `team`; allowed: * namespace shop"
    );
}
