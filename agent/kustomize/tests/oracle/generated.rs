//! Cases made of the tables of the crate: every built-in field of every transformer, every list with merge keys, and
//! combinations of the fields of a kustomization.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Case;

const FIELD_SPECS: &str = include_str!("../../src/tables/field_specs.txt");
const MERGE_KEYS: &str = include_str!("../../src/tables/merge_keys.txt");

/// All of them.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    fields(&mut cases);
    merges(&mut cases);
    combinations(&mut cases);
    // The reference has one field twice in its table.
    let mut names = std::collections::HashSet::new();
    cases.retain(|case| names.insert(case.name.clone()));
    cases
}

fn case(name: String, files: &[(&str, String)]) -> Case {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.clone())).collect();
    Case { name, files, ..Case::default() }
}

/// `kind.version.group` with what is missing filled in.
fn kind_of(text: &str) -> (String, String) {
    let mut parts = text.splitn(3, '.');
    let kind = parts.next().unwrap_or_default();
    let version = parts.next().filter(|version| !version.is_empty()).unwrap_or("v1");
    let group = match (parts.next().unwrap_or_default(), kind) {
        ("", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => "apps",
        ("", "Job" | "CronJob") => "batch",
        ("", "Ingress") => "networking.k8s.io",
        ("", "HorizontalPodAutoscaler") => "autoscaling",
        ("", "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding") => "rbac.authorization.k8s.io",
        (group, _) => group,
    };
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (api_version, if kind.is_empty() { "Widget".to_owned() } else { kind.to_owned() })
}

fn parts(path: &str) -> Vec<String> {
    path.replace("\\/", "\u{0}").split('/').map(|part| part.replace('\u{0}', "/")).collect()
}

/// Names of fields that hold lists, for paths that do not say so.
fn is_list(part: &str) -> bool {
    part.ends_with("[]")
        || matches!(
            part,
            "containers"
                | "initContainers"
                | "volumes"
                | "env"
                | "envFrom"
                | "sources"
                | "imagePullSecrets"
                | "rules"
                | "paths"
                | "tls"
                | "webhooks"
                | "volumeClaimTemplates"
                | "ingress"
                | "egress"
                | "from"
                | "to"
                | "topologySpreadConstraints"
                | "preferredDuringSchedulingIgnoredDuringExecution"
                | "requiredDuringSchedulingIgnoredDuringExecution"
                | "volumeMounts"
        )
}

fn put(target: &mut Value, path: &[String], leaf: &Value) {
    let Some((part, rest)) = path.split_first() else {
        *target = leaf.clone();
        return;
    };
    let name = part.trim_end_matches("[]");
    if target.is_null() {
        *target = Value::Object(Map::new());
    }
    let field = &mut target[name];
    if is_list(part) && !rest.is_empty() {
        if !field.is_array() {
            *field = json!([null]);
        }
        put(&mut field[0], rest, leaf);
    } else {
        put(field, rest, leaf);
    }
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn stream(objects: &[Value]) -> String {
    objects.iter().fold(String::new(), |text, object| text + &format!("---\n{object}\n"))
}

/// One case for every field of the tables.
fn fields(cases: &mut Vec<Case>) {
    let mut section = String::new();
    for line in FIELD_SPECS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[') {
            heading.trim_end_matches(']').clone_into(&mut section);
            continue;
        }
        let mut words = line.split(' ');
        let (api_version, kind) = kind_of(words.next().unwrap_or_default());
        let path = parts(words.next().unwrap_or_default());
        let mut owner = object(&api_version, &kind, "owner");
        let name = format!("field: {section}: {line}");
        if let Some(target) = section.strip_prefix("nameReference ") {
            let (target_version, target_kind) = kind_of(target);
            let leaf = match path.last().map(String::as_str) {
                Some("resourceNames") => json!(["target", "other"]),
                Some("subjects") => {
                    json!([{"kind": "ServiceAccount", "name": "target", "namespace": "default"}])
                }
                Some("service" | "configMap") if kind.ends_with("Configuration") || kind == "Node" => {
                    json!({"name": "target", "namespace": "default"})
                }
                _ => json!("target"),
            };
            put(&mut owner, &path, &leaf);
            if path.first().is_some_and(|part| part == "roleRef") {
                owner["roleRef"]["kind"] = json!(target_kind);
                owner["roleRef"]["apiGroup"] = json!("rbac.authorization.k8s.io");
            }
            let target = object(&target_version, &target_kind, "target");
            for (variant, extra) in
                [("prefix", "namePrefix: p-\n"), ("both", "namePrefix: p-\nnamespace: ns\nnameSuffix: -s\n")]
            {
                let kustomization = format!("resources: [a.yaml]\n{extra}");
                let files = [
                    ("a.yaml", stream(&[owner.clone(), target.clone()])),
                    ("kustomization.yaml", kustomization),
                ];
                cases.push(case(format!("{name}: {variant}"), &files));
            }
            continue;
        }
        let (leaf, kustomization) = match section.as_str() {
            "commonLabels" | "templateLabels" | "volumeClaimTemplateLabels" => {
                (json!({"old": "1"}), "labels: [{pairs: {a: b, old: '2'}, includeSelectors: true}]\n")
            }
            "commonAnnotations" => (json!({"old": "1"}), "commonAnnotations: {a: b}\n"),
            "varReference" => (
                json!("x-$(VAR)-y"),
                "vars: [{name: VAR, objref: {apiVersion: v1, kind: ConfigMap, name: source}}]\n",
            ),
            "images" => (json!("nginx:1"), "images: [{name: nginx, newName: other, newTag: '2'}]\n"),
            "replicas" => (json!(1), "replicas: [{name: owner, count: 3}]\n"),
            "namespace" => (json!("old"), "namespace: new\n"),
            _ => (json!("owner"), "namePrefix: p-\nnameSuffix: -s\n"),
        };
        let source = object("v1", "ConfigMap", "source");
        let bare = owner.clone();
        if path.first().is_some_and(|part| part != "metadata")
            || section.contains("nnot")
            || section.contains("abels")
        {
            put(&mut owner, &path, &leaf);
        }
        for (variant, owner) in [("set", &owner), ("bare", &bare)] {
            let files = [
                ("a.yaml", stream(&[owner.clone(), source.clone()])),
                ("kustomization.yaml", format!("resources: [a.yaml]\n{kustomization}")),
            ];
            cases.push(case(format!("{name}: {variant}"), &files));
        }
    }
}

/// Types of the table of merge keys: kinds, and fields with keys (None: not merged) and their type.
type Types =
    BTreeMap<String, (Vec<(String, String)>, Vec<(String, Option<Vec<String>>, bool, Option<String>)>)>;

fn types() -> Types {
    let mut types = Types::new();
    let mut current = String::new();
    for line in MERGE_KEYS.lines().filter(|line| !line.starts_with('#')) {
        let Some(field) = line.strip_prefix("  ") else {
            let (name, kinds) = line.split_once(' ').unwrap_or((line, ""));
            name.clone_into(&mut current);
            let kinds = kinds
                .split(['(', ')'])
                .filter_map(|kind| kind.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())))
                .filter(|(api_version, _)| !api_version.is_empty())
                .collect();
            types.insert(current.clone(), (kinds, Vec::new()));
            continue;
        };
        let (head, target) = field.split_once('=').map_or((field, None), |(a, b)| (a, Some(b.to_owned())));
        let (name, keys) = head
            .split_once('[')
            .map_or((head, None), |(name, keys)| (name, Some(keys.trim_end_matches(']'))));
        let list = keys.is_some();
        let replaced = keys == Some("") && target.is_some();
        let keys = keys
            .filter(|_| !replaced)
            .map(|keys| keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect::<Vec<_>>());
        let entry = types.get_mut(&current).expect("a type");
        entry.1.push((name.to_owned(), keys, list, target));
    }
    types
}

/// A merged list: the way to it, lists marked with `[]`, and its keys.
struct List {
    way: Vec<String>,
    keys: Vec<String>,
}

fn lists(types: &Types, name: &str, way: &mut Vec<String>, found: &mut Vec<List>) {
    let Some((_, fields)) = types.get(name) else { return };
    for (field, keys, list, target) in fields {
        if way.len() > 7 || field == "status" || field == "ownerReferences" {
            continue;
        }
        if let Some(keys) = keys {
            let mut way = way.clone();
            way.push(field.clone());
            found.push(List { way, keys: keys.clone() });
        }
        // Every list of a pod is the same in all kinds with one: only the outermost are tried everywhere.
        if let Some(target) = target {
            way.push(if *list { format!("{field}[]") } else { field.clone() });
            lists(types, target, way, found);
            way.pop();
        }
    }
}

fn element(keys: &[String], value: &str, extra: &Value) -> Value {
    if keys.is_empty() {
        return json!(value);
    }
    let mut element = extra.clone();
    for key in keys {
        element[key.as_str()] = if key.to_lowercase().contains("port") {
            json!(value.bytes().map(u32::from).sum::<u32>())
        } else {
            json!(value)
        };
    }
    element
}

/// For every list with merge keys of every kind: add, change, delete, replace.
fn merges(cases: &mut Vec<Case>) {
    let types = types();
    for (name, (kinds, _)) in &types {
        let Some((api_version, kind)) = kinds.first().filter(|(_, kind)| !kind.ends_with("List")) else {
            continue;
        };
        let mut found = Vec::new();
        lists(&types, name, &mut Vec::new(), &mut found);
        for list in found {
            let full = |items: Value| {
                let mut target = object(api_version, kind, "a");
                let mut way = list.way.clone();
                // A list on the way has one element, found by its name.
                for part in &mut way {
                    if part.ends_with("[]") {
                        part.push_str("");
                    }
                }
                put_list(&mut target, &way, &items);
                target
            };
            let keys = &list.keys;
            let target = full(json!([
                element(keys, "one", &json!({"x": 1, "list": [1, 2]})),
                element(keys, "two", &json!({"x": 2})),
                element(keys, "three", &json!({"x": 3, "y": null})),
            ]));
            let patches = [
                (
                    "merge",
                    json!([
                        element(keys, "two", &json!({"y": 5, "list": []})),
                        element(keys, "four", &json!({"x": 4}))
                    ]),
                ),
                ("delete", json!([delete(keys, "two")])),
                ("replace", json!([{"$patch": "replace"}, element(keys, "five", &json!({}))])),
            ];
            for (variant, items) in patches {
                let files = [
                    ("a.yaml", stream(std::slice::from_ref(&target))),
                    ("patch.yaml", stream(&[full(items)])),
                    ("kustomization.yaml", "resources: [a.yaml]\npatches: [{path: patch.yaml}]\n".to_owned()),
                ];
                cases.push(case(
                    format!("merge: {api_version} {kind} {}: {variant}", list.way.join(".")),
                    &files,
                ));
            }
        }
    }
}

fn delete(keys: &[String], value: &str) -> Value {
    if keys.is_empty() {
        return json!(value);
    }
    element(keys, value, &json!({"$patch": "delete"}))
}

/// Like [`put`], where only parts with `[]` are lists; their elements have a name.
fn put_list(target: &mut Value, way: &[String], leaf: &Value) {
    let Some((part, rest)) = way.split_first() else {
        *target = leaf.clone();
        return;
    };
    let name = part.trim_end_matches("[]");
    if target.is_null() {
        *target = json!({});
    }
    if part.ends_with("[]") {
        target[name] =
            json!([{"name": "only", "containerPort": 1, "mountPath": "/m", "devicePath": "/d", "ip": "1"}]);
        put_list(&mut target[name][0], rest, leaf);
    } else {
        put_list(&mut target[name], rest, leaf);
    }
}

const BASE: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: runner
      containers:
      - name: web
        image: registry.example.com:5000/web:1.0
        envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: keys}}]
        ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: runner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: runner, namespace: default}, {kind: ServiceAccount, name: default}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{http: {paths: [{backend: {service: {name: web}}}]}}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";

/// Fields that are combined: every pair of them, in a base with an overlay and flat.
const PIECES: &[(&str, &str)] = &[
    ("prefix", "namePrefix: p-\n"),
    ("suffix", "nameSuffix: -s\n"),
    ("namespace", "namespace: live\n"),
    ("labels", "labels: [{pairs: {team: a}, includeTemplates: true}]\n"),
    ("commonLabels", "commonLabels: {owner: b}\n"),
    ("annotations", "commonAnnotations: {note: 'yes'}\n"),
    ("images", "images: [{name: registry.example.com:5000/web, newTag: '2'}]\n"),
    ("replicas", "replicas: [{name: web, count: 4}]\n"),
    ("configMap", "configMapGenerator: [{name: settings, literals: [a=1, 'b=<&>']}]\n"),
    (
        "secret",
        "secretGenerator: [{name: keys, type: x/y, literals: [a=1]}]\ngeneratorOptions: {labels: {gen: x}}\n",
    ),
    (
        "patch",
        "patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: \
         {containers: [{name: web, ports: [{containerPort: 81}], command: [x]}]}}}}'}]\n",
    ),
    (
        "json",
        "patches: [{target: {kind: Service}, patch: '[{op: add, path: /spec/type, value: NodePort}]'}]\n",
    ),
    ("order", "sortOptions: {order: legacy}\n"),
    ("origin", "buildMetadata: [originAnnotations, transformerAnnotations, managedByLabel]\n"),
    (
        "replacement",
        "replacements: [{source: {kind: Service, name: web}, targets: [{select: {kind: Deployment}, fieldPaths: \
         [spec.template.spec.containers.0.name]}]}]\n",
    ),
    (
        "vars",
        "vars: [{name: V, objref: {apiVersion: v1, kind: Service, name: web}}]\nconfigurations: [conf.yaml]\n",
    ),
];

fn combinations(cases: &mut Vec<Case>) {
    let conf = "varReference: [{path: spec/template/spec/serviceAccountName, kind: Deployment}]\n";
    for (at, (first, one)) in PIECES.iter().enumerate() {
        for (second, two) in &PIECES[at..] {
            let same = first == second || one.split(':').next() == two.split(':').next();
            if !same {
                let files = [
                    ("a.yaml", BASE.to_owned()),
                    ("conf.yaml", conf.to_owned()),
                    ("kustomization.yaml", format!("resources: [a.yaml]\n{one}{two}")),
                ];
                cases.push(case(format!("pair: {first}, {second}"), &files));
            }
            for (base, overlay, names) in [(one, two, (first, second)), (two, one, (second, first))] {
                let files = [
                    ("base/a.yaml", BASE.to_owned()),
                    ("base/conf.yaml", conf.to_owned()),
                    ("overlay/conf.yaml", conf.to_owned()),
                    ("base/kustomization.yaml", format!("resources: [a.yaml]\n{base}")),
                    ("overlay/kustomization.yaml", format!("resources: [../base]\n{overlay}")),
                ];
                let mut case = case(format!("layers: {} below {}", names.0, names.1), &files);
                "overlay".clone_into(&mut case.path);
                if !cases.iter().any(|known| known.name == case.name) {
                    cases.push(case);
                }
            }
        }
    }
}
