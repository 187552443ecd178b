use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

mod surface;

fn context() -> Context {
    Context {
        cluster_name: "shop-0042".to_owned(),
        projects: ["team".to_owned()].into(),
        default_annotations: BTreeMap::new(),
    }
}

/// A small valid Application with `change` laid over it (null removes nothing: it is written as null).
fn document(change: Value) -> Value {
    let mut document = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example/shop.git", "path": "deploy"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}
        }
    });
    lay_over(&mut document, change);
    document
}

fn lay_over(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (name, value) in change {
                lay_over(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change,
    }
}

fn check(change: Value) -> Result<Application, Vec<String>> {
    let raw = serde_json::from_value(document(change)).map_err(|error| vec![error.to_string()])?;
    validate(raw, &context()).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn valid(change: Value) -> Application {
    check(change).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn refused(change: Value) -> String {
    let errors = check(change.clone()).err().unwrap_or_else(|| panic!("accepted: {change}"));
    errors.join(" | ")
}

fn policy(policy: Value) -> Value {
    json!({"spec": {"syncPolicy": policy}})
}

#[test]
fn defaults_are_argo_cds() {
    let app = valid(json!({"spec": {"project": ""}}));
    assert_eq!(app.key.to_string(), "argocd/shop");
    assert_eq!(app.project, "default");
    assert_eq!(app.source.target_revision, "HEAD");
    assert_eq!(app.source.directory, Directory::default());
    assert_eq!(app.history_limit, 10);
    assert_eq!((app.automated, app.retry.is_none(), app.finalizer_cascade), (None, true, false));
    assert_eq!(app.settings, Settings::default());
    assert_eq!(app.settings.sync_timeout.as_secs(), 600);
    assert_eq!(app.sync_options.propagation(), PropagationPolicy::Foreground);
    assert_eq!(app.sync_options.field_validation(), FieldValidation::Strict);
    assert!(app.sync_options.may_prune() && app.sync_options.migrates_client_side_apply());
    assert!(!app.sync_options.creates_namespace() && !app.sync_options.fails_on_shared_resource());
}

#[test]
fn automated_is_on_unless_absent_null_or_disabled() {
    let automated = |value: Value| valid(policy(json!({ "automated": value }))).automated;
    let off = Automated { prune: false, self_heal: false, allow_empty: false };
    assert_eq!(valid(policy(json!({}))).automated, None);
    assert_eq!(valid(policy(Value::Null)).automated, None);
    assert_eq!(automated(Value::Null), None);
    assert_eq!(automated(json!({})), Some(off));
    assert_eq!(automated(json!({"enabled": null})), Some(off));
    assert_eq!(automated(json!({"enabled": true, "prune": null})), Some(off));
    assert_eq!(automated(json!({"enabled": false, "prune": true})), None);
    assert_eq!(
        automated(json!({"prune": true, "selfHeal": true, "allowEmpty": true})),
        Some(Automated { prune: true, self_heal: true, allow_empty: true })
    );
}

#[test]
fn all_errors_are_told_at_once() {
    let text = refused(json!({
        "kind": "App", "metadata": {"name": "Shop"},
        "spec": {"project": "tem", "source": {"repoURL": "", "path": "/x", "helm": {}},
            "destination": {"server": "https://other"}, "revisionHistoryLimit": -1}}));
    for part in [
        "kind: is `App`",
        "metadata.name: `Shop`",
        "spec.project: there is no AppProject `tem` (did you mean `team`?); known: default, team",
        "spec.source.repoURL: is missing",
        "spec.source.path: `/x` is absolute",
        "spec.source.helm is not supported by this version",
        "spec.destination.server: `https://other` is not a cluster of this agent; valid: server \
         https://kubernetes.default.svc, name in-cluster, name shop-0042",
        "spec.revisionHistoryLimit: is -1",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn an_unknown_field_is_refused_at_every_level() {
    for change in [
        json!({"spce": {}}),
        json!({"metadata": {"lables": {}}}),
        json!({"spec": {"source": {"pth": "x"}}}),
        json!({"spec": {"source": {"repoUrl": "x"}}}),
        policy(json!({"automated": {"selfheal": true}})),
        policy(json!({"retry": {"backoff": {"maxduration": "3m"}}})),
    ] {
        assert!(refused(change).contains("unknown field"));
    }
}

#[test]
fn an_exported_object_is_accepted_and_what_the_server_set_is_dropped() {
    let exported = valid(json!({
        "metadata": {"uid": "u", "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": null, "deletionGracePeriodSeconds": 0, "generateName": "s-", "selfLink": "/x",
            "managedFields": [{"manager": "argocd"}], "ownerReferences": [{"uid": "x"}]},
        "status": {"sync": {"status": "Synced"}}, "operation": {"sync": {"revision": "x"}}}));
    assert_eq!(exported, valid(json!({})));
}

#[test]
fn the_destination_is_the_own_cluster_by_one_of_its_names() {
    let destination = |server: Value, name: Value| {
        check(json!({"spec": {"destination": {"server": server, "name": name}}}))
    };
    for (server, name) in [
        (json!("https://kubernetes.default.svc"), Value::Null),
        (json!("https://kubernetes.default.svc/"), json!("")),
        (Value::Null, json!("in-cluster")),
        (json!(""), json!("shop-0042")),
    ] {
        assert_eq!(destination(server, name).unwrap().destination.cluster, "shop-0042");
    }
    let both = destination(json!("https://kubernetes.default.svc"), json!("in-cluster")).unwrap_err();
    assert!(both[0].contains("both given"), "{both:?}");
    let none = destination(Value::Null, Value::Null).unwrap_err();
    assert!(none[0].contains("names no cluster"), "{none:?}");
    let bad = refused(json!({"spec": {"destination": {"namespace": "Shop"}}}));
    assert!(bad.contains("spec.destination.namespace: `Shop`"), "{bad}");
}

#[test]
fn sources_with_one_element_are_a_source() {
    let one = json!({"repoURL": "https://git.example/shop.git", "path": "deploy"});
    let app = valid(json!({"spec": {"source": null, "sources": [one]}}));
    assert_eq!(app.source, valid(json!({})).source);
    assert!(refused(json!({"spec": {"sources": [one]}})).contains("both given"));
    let two = refused(json!({"spec": {"source": null, "sources": [one, one]}}));
    assert!(two.contains("spec.sources with 2 elements is not supported by this version"), "{two}");
    let none = refused(json!({"spec": {"source": null, "sources": []}}));
    assert_eq!(none, "spec.source: is missing");
    let field = refused(json!({"spec": {"source": null, "sources": [{"repoURL": "x", "path": "."}]}}));
    assert!(field.starts_with("spec.sources[0].repoURL: "), "{field}");
}

#[test]
fn repositories_are_https_and_hold_no_password() {
    let url = |url: &str| check(json!({"spec": {"source": {"repoURL": url}}}));
    for good in ["https://git.example/a", "HTTPS://git.example:8443/a.git", "https://user@host/a"] {
        assert_eq!(url(good).unwrap().source.repo_url, good);
    }
    for (bad, part) in [
        ("http://x/y", "in clear text can be changed on its way; use https://"),
        ("git@github.com:a/b.git", "is not a URL"),
        ("ssh://git@host/a", "ssh:// repositories are not supported by this version"),
        ("oci://host/a", "oci:// repositories are not supported by this version"),
        ("file:///srv/git", "file:// repositories are not supported"),
        ("https://", "is not a URL"),
        ("https://ho st/a", "is not a URL"),
        ("https://u@:80/a", "is not a URL"),
    ] {
        let text = url(bad).unwrap_err().join(" ");
        assert!(text.contains(part), "{bad}: {text}");
    }
    let secret = url("https://user:hunter2@host/a").unwrap_err().join(" ");
    assert!(secret.contains("passwordFile") && !secret.contains("hunter2"), "{secret}");
}

#[test]
fn a_target_revision_is_a_ref_or_a_commit() {
    let revision = |text: &str| check(json!({"spec": {"source": {"targetRevision": text}}}));
    for good in
        ["main", "v1.2.3", "refs/heads/main", "feature/x", "1.1", "HEAD", "xenial", "0123456", "a-x.x"]
    {
        assert_eq!(revision(good).unwrap().source.target_revision, good);
    }
    for range in ["^1.2", "~1.2", "1.*", ">=1.0.0", "1.x", "v1.2.X", "=1.0", "1.0 || 2.0", "*"] {
        let text = revision(range).unwrap_err().join(" ");
        assert!(text.contains("range of versions"), "{range}: {text}");
    }
    for bad in ["a b", "a..b", "-x", "a:b", "x.lock", "a@{1}", "/x", "x/"] {
        let text = revision(bad).unwrap_err().join(" ");
        assert!(text.contains("cannot be a branch"), "{bad}: {text}");
    }
}

#[test]
fn a_path_is_normal_and_stays_inside() {
    let path = |text: &str| check(json!({"spec": {"source": {"path": text}}})).map(|app| app.source.path);
    for (text, expected) in [(".", "."), ("./", "."), ("./a//b/", "a/b"), ("a/./b", "a/b"), ("..a", "..a")] {
        assert_eq!(path(text).unwrap(), expected);
    }
    assert!(path("a/../b").unwrap_err()[0].contains("stay inside"));
    assert!(path("/a").unwrap_err()[0].contains("absolute"));
    assert!(path("").unwrap_err()[0].contains("is missing"));
}

#[test]
fn retry_keeps_what_was_written() {
    let retry = |value: Value| check(policy(json!({ "retry": value }))).map(|app| app.retry);
    let default = retry(json!({})).unwrap().unwrap();
    assert_eq!(default.limit, None);
    assert_eq!(
        (default.backoff_duration.as_secs(), default.backoff_factor, default.backoff_max_duration.as_secs()),
        (5, 2, 180)
    );
    let written = json!({"limit": -1, "refresh": true,
        "backoff": {"duration": "10", "factor": 3, "maxDuration": "1h30m"}});
    let written = retry(written).unwrap().unwrap();
    assert_eq!((written.limit, written.refresh, written.backoff_factor), (Some(-1), true, 3));
    assert_eq!((written.backoff_duration.as_secs(), written.backoff_max_duration.as_secs()), (10, 5400));
    assert_eq!(retry(Value::Null).unwrap(), None);
    let bad = retry(json!({"backoff": {"duration": "-5s", "factor": 0, "maxDuration": "3d"}})).unwrap_err();
    assert_eq!(bad.len(), 3, "{bad:?}");
    assert!(bad[0].starts_with("spec.syncPolicy.retry.backoff.duration: `-5s` is negative"), "{bad:?}");
}

#[test]
fn sync_options_are_typed() {
    let list = [
        "Prune=false",
        "CreateNamespace=true",
        "ApplyOutOfSyncOnly=true",
        "ServerSideApply=false",
        "ClientSideApplyMigration=false",
        "RespectIgnoreDifferences=true",
        "FailOnSharedResource=true",
        "Validate=false",
        "PrunePropagationPolicy=background",
    ];
    let app = valid(policy(json!({ "syncOptions": list })));
    let options = &app.sync_options;
    assert_eq!(options.to_texts(), list);
    assert!(!options.may_prune() && options.creates_namespace() && options.fails_on_shared_resource());
    assert!(!options.migrates_client_side_apply());
    assert_eq!(options.field_validation(), FieldValidation::Ignore);
    assert_eq!(options.propagation(), PropagationPolicy::Background);
    assert_eq!(&parse_sync_options(&list.join(" , ")).unwrap(), options);
    assert_eq!(parse_sync_options(" ,, ").unwrap(), SyncOptions::default());
    let more =
        "Prune=confirm,Delete=false,PruneLast=true,Replace=true,Force=true,SkipDryRunOnMissingResource=true";
    let found = parse_sync_options(more).unwrap();
    assert_eq!((found.prune, found.delete), (Some(Consent::Confirm), Some(Consent::False)));
    assert_eq!(found.to_texts().join(","), more);
}

#[test]
fn a_wrong_sync_option_is_refused_with_the_valid_ones() {
    for (text, part) in [
        ("Prune", "`Prune` is not a sync option; valid: Prune=true, Prune=false"),
        ("Prune=False", "valid: Prune=true, Prune=false, Prune=confirm"),
        ("Replace=confirm", "valid: Replace=true, Replace=false"),
        ("PrunePropagationPolicy=Foreground", "PrunePropagationPolicy=foreground"),
        ("CreateNamspace=true", "(did you mean `CreateNamespace`?); valid: Prune=..."),
        ("Prune=true,Prune=false", "Prune is given twice"),
    ] {
        let error = parse_sync_options(text).unwrap_err();
        assert_eq!(error.field, "metadata.annotations[argocd.argoproj.io/sync-options]");
        assert!(error.message.contains(part), "{text}: {error}");
    }
    let both = refused(policy(json!({"syncOptions": ["Prune=false", "Bad=1", "Worse"]})));
    assert!(both.contains("syncOptions[1]: `Bad=1`") && both.contains("syncOptions[2]: `Worse`"), "{both}");
}

#[test]
fn an_objects_option_wins_over_its_applications() {
    let app = parse_sync_options("Prune=false,Validate=false").unwrap();
    let object = parse_sync_options("Prune=true,PrunePropagationPolicy=orphan").unwrap();
    let together = object.over(&app);
    assert!(together.may_prune());
    assert_eq!(together.field_validation(), FieldValidation::Ignore);
    assert_eq!(together.propagation(), PropagationPolicy::Orphan);
}

#[test]
fn namespace_metadata_needs_create_namespace() {
    let metadata = json!({"labels": {"a": "b"}, "annotations": {"c": "d e"}});
    let app =
        valid(policy(json!({"managedNamespaceMetadata": metadata, "syncOptions": ["CreateNamespace=true"]})));
    let found = app.namespace_metadata.unwrap();
    assert_eq!((found.labels["a"].as_str(), found.annotations["c"].as_str()), ("b", "d e"));
    assert!(
        refused(policy(json!({ "managedNamespaceMetadata": metadata }))).contains("CreateNamespace=true")
    );
    let bad = refused(policy(json!({"syncOptions": ["CreateNamespace=true"],
        "managedNamespaceMetadata": {"labels": {"a": "b c"}}})));
    assert!(bad.contains("labels[a]: is not a valid label"), "{bad}");
}

#[test]
fn ignore_rules_take_pointers_only() {
    let rules = |value: Value| check(json!({"spec": {"ignoreDifferences": [value]}}));
    let app = rules(json!({"group": "apps", "kind": "Deploy*", "name": "web",
        "jsonPointers": ["/spec/replicas", "/metadata/annotations/a~1b"], "jqPathExpressions": []}))
    .unwrap();
    let rule = &app.ignore_differences[0];
    assert!(rule.applies_to(&ObjectKey::new("apps", "Deployment", "any", "web")));
    assert!(!rule.applies_to(&ObjectKey::new("apps", "Deployment", "any", "other")));
    assert!(!rule.applies_to(&ObjectKey::new("", "Deployment", "any", "web")));
    for (rule, part) in [
        (
            json!({"kind": "A", "jqPathExpressions": [".a"]}),
            "ignoreDifferences[0].jqPathExpressions is not supported",
        ),
        (json!({"kind": "A", "managedFieldsManagers": ["x"]}), "managedFieldsManagers is not supported"),
        (json!({"group": "apps", "jsonPointers": ["/a"]}), "ignoreDifferences[0].kind: is missing"),
        (json!({"kind": "A", "jsonPointers": ["a/b"]}), "jsonPointers[0]: `a/b` is not a JSON pointer"),
        (json!({"kind": "A", "jsonPointers": [""]}), "is not a JSON pointer"),
        (json!({"kind": "A", "jsonPointers": ["/a~b"]}), "bare `~`"),
    ] {
        let text = rules(rule).unwrap_err().join(" ");
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn settings_are_annotations_and_unknown_ones_are_refused() {
    let annotated = |key: &str, value: &str| check(json!({"metadata": {"annotations": {key: value}}}));
    assert_eq!(annotated("pintle.dev/sync-timeout", "90s").unwrap().settings.sync_timeout.as_secs(), 90);
    assert!(annotated("pintle.dev/adopt", "true").unwrap().settings.adopt);
    let until = annotated("pintle.dev/rollback-until", "resume").unwrap().settings.rollback_until;
    assert_eq!(until, RollbackUntil::Resume);
    assert!(annotated("pintle.dev/tracking-id", "x").is_ok());
    for (key, value, part) in [
        ("pintle.dev/sync-timeout", "0s", "deadline of zero"),
        ("pintle.dev/sync-timeout", "soon", "`soon` is not a duration"),
        ("pintle.dev/adopt", "yes", "valid: \"true\", \"false\""),
        ("pintle.dev/rollback-until", "never", "valid: newer, resume"),
        ("pintle.dev/sync-timeot", "1m", "unknown setting (did you mean `pintle.dev/sync-timeout`?)"),
        ("pintle.dev/depends-on", "a", "pintle.dev/depends-on is not supported by this version"),
        ("pintle.dev/render-twice", "true", "is not supported by this version"),
        ("argocd.argoproj.io/skip-reconcile", "true", "is not supported by this version"),
    ] {
        let text = annotated(key, value).unwrap_err().join(" ");
        assert!(text.contains(part), "{key}: {text}");
    }
}

#[test]
fn configured_defaults_stand_below_the_annotations() {
    let mut context = context();
    context.default_annotations.insert("pintle.dev/sync-timeout".to_owned(), "1m".to_owned());
    context.default_annotations.insert("pintle.dev/adopt".to_owned(), "true".to_owned());
    let raw = document(json!({"metadata": {"annotations": {"pintle.dev/sync-timeout": "2m"}}}));
    let app = validate(serde_json::from_value(raw).unwrap(), &context).unwrap();
    assert_eq!((app.settings.sync_timeout.as_secs(), app.settings.adopt), (120, true));
    assert_eq!(app.annotations.len(), 1, "defaults are not written into the annotations");
}

#[test]
fn finalizers_of_the_resources_ask_for_a_cascade() {
    for finalizer in ["", "/foreground", "/background"] {
        let name = format!("resources-finalizer.argocd.argoproj.io{finalizer}");
        assert!(valid(json!({"metadata": {"finalizers": [name]}})).finalizer_cascade);
    }
    let other = valid(json!({"metadata": {"finalizers": ["post-delete-finalizer.argocd.argoproj.io"]}}));
    assert!(!other.finalizer_cascade && other.notes[0].contains("post-delete-finalizer"));
}

#[test]
fn what_has_no_effect_is_noted() {
    let app = valid(json!({"metadata": {"annotations": {
        "notifications.argoproj.io/subscribe.on-sync-failed.slack": "x",
        "argocd.argoproj.io/manifest-generate-paths": "."}},
        "spec": {"destination": {"namespace": ""}, "syncPolicy": {"syncOptions": ["CreateNamespace=true"]}}}));
    assert_eq!(app.notes.len(), 3, "{:?}", app.notes);
}

#[test]
fn the_digest_moves_with_the_spec_only() {
    let base = valid(json!({})).spec_digest();
    for same in [
        json!({"metadata": {"labels": {"a": "b"}, "annotations": {"team": "x"}}}),
        json!({"spec": {"info": [{"name": "a", "value": "b"}], "revisionHistoryLimit": 3}}),
        json!({"spec": {"source": {"path": "./deploy/"}}}),
        policy(json!({})),
    ] {
        assert_eq!(valid(same.clone()).spec_digest(), base, "{same}");
    }
    for different in [
        json!({"metadata": {"namespace": "other"}}),
        json!({"metadata": {"annotations": {"pintle.dev/adopt": "true"}}}),
        json!({"spec": {"source": {"targetRevision": "v2"}}}),
        json!({"spec": {"source": {"directory": {"recurse": true}}}}),
        json!({"spec": {"destination": {"namespace": "other"}}}),
        json!({"spec": {"project": "team"}}),
        json!({"spec": {"ignoreDifferences": [{"kind": "A"}]}}),
        policy(json!({"automated": {}})),
        policy(json!({"syncOptions": ["Prune=false"]})),
        policy(json!({"retry": {"limit": 2}})),
    ] {
        assert_ne!(valid(different.clone()).spec_digest(), base, "{different}");
    }
}

#[test]
fn the_manifest_and_the_stored_form_give_the_application_back() {
    let app = valid(json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {"pintle.dev/adopt": "true"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "team",
            "source": {"targetRevision": "v1", "name": "main", "directory": {"recurse": true, "include": "*.yaml",
                "exclude": "x*", "disableExtensionFilter": true}},
            "ignoreDifferences": [{"group": "apps", "kind": "*", "jsonPointers": ["/spec/replicas"]}],
            "info": [{"name": "url", "value": "https://example"}], "revisionHistoryLimit": 0,
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"],
                "managedNamespaceMetadata": {"labels": {"a": "b"}},
                "retry": {"limit": 0, "refresh": true, "backoff": {"duration": "1m", "factor": 4}}}}}));
    let again = validate(serde_json::from_value(app.manifest()).unwrap(), &context()).unwrap();
    assert_eq!(again, app);
    let empty = valid(policy(json!({"automated": {}})));
    assert_eq!(validate(serde_json::from_value(empty.manifest()).unwrap(), &context()).unwrap(), empty);
    let stored = serde_json::to_string(&app).unwrap();
    assert_eq!(serde_json::from_str::<Application>(&stored).unwrap(), app);
}
