use serde_json::{Value, json};

use super::*;

fn check(spec: Value) -> Result<AppProject, Vec<String>> {
    let raw = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "team"}, "spec": spec, "status": {"jwtTokensByRole": {}}});
    let raw = serde_json::from_value(raw).map_err(|error| vec![error.to_string()])?;
    validate_project(raw).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn every_field_that_is_read_changes_the_project() {
    let base = check(json!({})).unwrap();
    for (name, value) in [
        ("description", json!("text")),
        ("sourceRepos", json!(["*"])),
        ("sourceNamespaces", json!(["team-*"])),
        ("destinations", json!([{"server": "*", "name": "a", "namespace": "!kube-system"}])),
        ("clusterResourceWhitelist", json!([{"group": "*", "kind": "*", "name": "a*"}])),
        ("clusterResourceBlacklist", json!([{"group": "*", "kind": "*", "name": "a*"}])),
        ("namespaceResourceWhitelist", json!([])),
        ("namespaceResourceWhitelist", json!([{"group": "", "kind": "ConfigMap"}])),
        ("namespaceResourceBlacklist", json!([{"group": "", "kind": "Secret"}])),
    ] {
        let project = check(json!({ name: value })).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        assert_ne!(project, base, "{name} is parsed and ignored");
    }
}

#[test]
fn every_field_that_is_not_built_is_refused_by_name() {
    for (name, value) in [
        (
            "roles",
            json!([{"name": "a", "description": "b", "policies": ["p, a"], "groups": ["g"],
            "jwtTokens": [{"iat": 1}]}]),
        ),
        ("orphanedResources", json!({"warn": true, "ignore": [{"group": "a", "kind": "b", "name": "c"}]})),
        (
            "syncWindows",
            json!([{"kind": "allow", "schedule": "* * * * *", "duration": "1h", "applications": ["*"],
            "namespaces": ["a"], "clusters": ["b"], "manualSync": true, "timeZone": "UTC", "andOperator": true,
            "description": "c", "syncOverrun": true}]),
        ),
        ("signatureKeys", json!([{"keyID": "ABC"}])),
        (
            "sourceIntegrity",
            json!({"git": {"policies": [{"repos": [{"url": "*"}],
            "gpg": {"mode": "strict", "keys": ["ABC"]}}]}}),
        ),
        ("permitOnlyProjectScopedClusters", json!(true)),
        (
            "destinationServiceAccounts",
            json!([{"server": "*", "namespace": "a", "defaultServiceAccount": "b"}]),
        ),
    ] {
        let errors = check(json!({ name: value })).err().unwrap_or_else(|| panic!("{name} is accepted"));
        assert_eq!(errors, [format!("spec.{name} is not supported by this version")]);
    }
}

#[test]
fn fields_that_ask_for_nothing_are_accepted() {
    let empty = json!({"roles": [], "syncWindows": null, "permitOnlyProjectScopedClusters": false});
    assert_eq!(check(empty).unwrap(), check(json!({})).unwrap());
}

#[test]
fn patterns_that_deny_by_accident_are_refused() {
    for (spec, part) in [
        (json!({"sourceRepos": ["!"]}), "spec.sourceRepos[0]"),
        (json!({"sourceRepos": ["a", ""]}), "spec.sourceRepos[1]"),
        (json!({"destinations": [{"namespace": "a"}]}), "names no cluster"),
        (json!({"destinations": [{"server": "*", "namespace": "!"}]}), "spec.destinations[0].namespace"),
        (json!({"destinations": [{"server": "*", "namespace": "!*"}]}), "denies everything"),
        (json!({"sourceRepo": ["*"]}), "unknown field"),
    ] {
        let text = check(spec).unwrap_err().join(" ");
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_default_project_allows_every_kind_and_place() {
    let project = AppProject::default_project();
    assert_eq!(project.name, "default");
    assert_eq!(project.source_repos, ["*"]);
    assert_eq!(project.namespace_resource_whitelist, None);
}
