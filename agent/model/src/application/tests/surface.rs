//! Every field of Argo CD's Application type is either read with its meaning or refused by its name.

use serde_json::{Value, json};

use super::{check, document};

/// Fields that this version refuses: path, a value that asks for something, how the refusal names it.
fn refused_fields() -> Vec<(&'static str, Value, &'static str)> {
    let mut list = vec![
        ("spec.source.chart", json!("nginx"), "spec.source.chart"),
        ("spec.source.ref", json!("values"), "spec.source.ref"),
        ("spec.source.tagPrefix", json!("v"), "spec.source.tagPrefix"),
        (
            "spec.source.directory.jsonnet.extVars",
            json!([{"name": "a", "value": "b", "code": true}]),
            "jsonnet.extVars",
        ),
        (
            "spec.source.directory.jsonnet.tlas",
            json!([{"name": "a", "value": "b", "code": false}]),
            "jsonnet.tlas",
        ),
        ("spec.source.directory.jsonnet.libs", json!(["lib"]), "jsonnet.libs"),
        ("spec.ignoreDifferences", json!([{"kind": "A", "jqPathExpressions": [".a"]}]), "jqPathExpressions"),
        (
            "spec.ignoreDifferences",
            json!([{"kind": "A", "managedFieldsManagers": ["a"]}]),
            "managedFieldsManagers",
        ),
    ];
    let helm = [
        ("spec.source.helm.valueFiles", json!(["a.yaml"])),
        ("spec.source.helm.parameters", json!([{"name": "a", "value": "b", "forceString": true}])),
        ("spec.source.helm.releaseName", json!("a")),
        ("spec.source.helm.values", json!("a: 1")),
        ("spec.source.helm.valuesObject", json!({"a": {"b": [1]}})),
        ("spec.source.helm.fileParameters", json!([{"name": "a", "path": "b"}])),
        ("spec.source.helm.version", json!("v3")),
        ("spec.source.helm.passCredentials", json!(true)),
        ("spec.source.helm.ignoreMissingValueFiles", json!(true)),
        ("spec.source.helm.skipCrds", json!(true)),
        ("spec.source.helm.skipTests", json!(true)),
        ("spec.source.helm.skipSchemaValidation", json!(true)),
        ("spec.source.helm.namespace", json!("a")),
        ("spec.source.helm.kubeVersion", json!("1.30")),
        ("spec.source.helm.apiVersions", json!(["v1"])),
    ];
    list.extend(helm.map(|(path, value)| (path, value, "spec.source.helm")));
    let kustomize = [
        ("spec.source.kustomize.namePrefix", json!("a-")),
        ("spec.source.kustomize.nameSuffix", json!("-a")),
        ("spec.source.kustomize.images", json!(["a=b:1"])),
        ("spec.source.kustomize.replicas", json!([{"name": "a", "count": 2}, {"name": "b", "count": "3"}])),
        ("spec.source.kustomize.commonLabels", json!({"a": "b"})),
        ("spec.source.kustomize.commonAnnotations", json!({"a": "b"})),
        ("spec.source.kustomize.commonAnnotationsEnvsubst", json!(true)),
        ("spec.source.kustomize.forceCommonLabels", json!(true)),
        ("spec.source.kustomize.forceCommonAnnotations", json!(true)),
        ("spec.source.kustomize.labelWithoutSelector", json!(true)),
        ("spec.source.kustomize.labelIncludeTemplates", json!(true)),
        ("spec.source.kustomize.namespace", json!("a")),
        (
            "spec.source.kustomize.patches",
            json!([{"path": "a", "patch": "b", "target": {"kind": "A"}, "options": {"allowNameChange": true}}]),
        ),
        ("spec.source.kustomize.components", json!(["a"])),
        ("spec.source.kustomize.ignoreMissingComponents", json!(true)),
        ("spec.source.kustomize.version", json!("v5")),
        ("spec.source.kustomize.kubeVersion", json!("1.30")),
        ("spec.source.kustomize.apiVersions", json!(["v1"])),
    ];
    list.extend(kustomize.map(|(path, value)| (path, value, "spec.source.kustomize")));
    let plugin = [
        ("spec.source.plugin.name", json!("a")),
        ("spec.source.plugin.env", json!([{"name": "A", "value": "b"}])),
        (
            "spec.source.plugin.parameters",
            json!([{"name": "a", "string": "b"}, {"name": "c", "map": {"d": "e"}}, {"name": "f", "array": ["g"]}]),
        ),
    ];
    list.extend(plugin.map(|(path, value)| (path, value, "spec.source.plugin")));
    let hydrator = [
        ("spec.sourceHydrator.drySource.repoURL", json!("https://x/y")),
        ("spec.sourceHydrator.drySource.targetRevision", json!("main")),
        ("spec.sourceHydrator.drySource.path", json!("a")),
        ("spec.sourceHydrator.drySource.helm", json!({})),
        ("spec.sourceHydrator.drySource.kustomize", json!({})),
        ("spec.sourceHydrator.drySource.directory", json!({})),
        ("spec.sourceHydrator.drySource.plugin", json!({})),
        ("spec.sourceHydrator.syncSource.targetBranch", json!("a")),
        ("spec.sourceHydrator.syncSource.path", json!("a")),
        ("spec.sourceHydrator.syncSource.repoURL", json!("https://x/y")),
        ("spec.sourceHydrator.hydrateTo.targetBranch", json!("a")),
    ];
    list.extend(hydrator.map(|(path, value)| (path, value, "spec.sourceHydrator")));
    list
}

/// Fields that are read: path and a value other than the default, which must change the application.
fn read_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("metadata.name", json!("other")),
        ("metadata.namespace", json!("other")),
        ("metadata.labels", json!({"a": "b"})),
        ("metadata.annotations", json!({"a": "b"})),
        ("metadata.finalizers", json!(["resources-finalizer.argocd.argoproj.io"])),
        ("spec.source.repoURL", json!("https://git.example/other")),
        ("spec.source.path", json!("other")),
        ("spec.source.targetRevision", json!("v2")),
        ("spec.source.name", json!("main")),
        ("spec.source.directory.recurse", json!(true)),
        ("spec.source.directory.include", json!("*.yaml")),
        ("spec.source.directory.exclude", json!("x*")),
        ("spec.source.directory.disableExtensionFilter", json!(true)),
        ("spec.destination.namespace", json!("other")),
        ("spec.project", json!("team")),
        ("spec.info", json!([{"name": "a", "value": "b"}])),
        ("spec.revisionHistoryLimit", json!(3)),
        (
            "spec.ignoreDifferences",
            json!([{"group": "apps", "kind": "A", "name": "b", "namespace": "c", "jsonPointers": ["/d"]}]),
        ),
        ("spec.syncPolicy.automated", json!({})),
        ("spec.syncPolicy.automated.prune", json!(true)),
        ("spec.syncPolicy.automated.selfHeal", json!(true)),
        ("spec.syncPolicy.automated.allowEmpty", json!(true)),
        ("spec.syncPolicy.automated.enabled", json!(true)),
        ("spec.syncPolicy.retry.limit", json!(3)),
        ("spec.syncPolicy.retry.backoff.duration", json!("7s")),
        ("spec.syncPolicy.retry.backoff.factor", json!(7)),
        ("spec.syncPolicy.retry.backoff.maxDuration", json!("7m")),
        ("spec.syncPolicy.retry.refresh", json!(true)),
        ("spec.syncPolicy.syncOptions", json!(["Prune=false"])),
    ]
}

/// `{"a": {"b": value}}` of `a.b`.
fn at(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, part| json!({ part: value }))
}

#[test]
fn every_field_that_is_not_built_is_refused_by_name() {
    for (path, value, name) in refused_fields() {
        let errors = check(at(path, value)).err().unwrap_or_else(|| panic!("{path} is accepted"));
        assert_eq!(errors.len(), 1, "{path}: {errors:?}");
        let wanted = "is not supported by this version";
        assert!(errors[0].contains(name) && errors[0].ends_with(wanted), "{path}: {errors:?}");
    }
}

#[test]
fn every_field_that_is_read_changes_the_application() {
    let base = check(json!({})).unwrap();
    for (path, value) in read_fields() {
        let app = check(at(path, value)).unwrap_or_else(|errors| panic!("{path}: {errors:?}"));
        assert_ne!(app, base, "{path} is parsed and ignored");
    }
}

#[test]
fn fields_that_choose_another_field_are_read() {
    // destination.name, sources and managedNamespaceMetadata stand in place of, or need, another field.
    let mut by_name = document(json!({}));
    by_name["spec"]["destination"] = json!({"name": "shop-0042"});
    let raw = serde_json::from_value(by_name).unwrap();
    assert!(crate::application::validate(raw, &super::context()).is_ok());
    let metadata = json!({"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true"],
        "managedNamespaceMetadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}}});
    assert!(check(metadata).unwrap().namespace_metadata.is_some());
}
