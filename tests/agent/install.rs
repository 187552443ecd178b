//! The installation files: the RBAC is enough and not more than enough, the examples are valid, the configuration is
//! one that the binary takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pintle::apps;
use pintle_model::application::Context;
use serde_json::{Value, json};

use crate::World;
use crate::support::agent::Agent;
use crate::support::control_plane::{Audited, ControlPlane};
use crate::support::wait_for;

/// The installed RBAC under names of its own, so that tests do not see each other's roles, and an agent with it.
struct Installed {
    cluster: &'static ControlPlane,
    name: String,
}

impl Installed {
    /// Applies a file of manifests/install. `change` edits its text first; `patient` is a verb, a resource and a
    /// namespace that the user has when all of it is in force: `own` is the agent's namespace.
    fn new(
        world: &mut World,
        file: &str,
        change: impl Fn(String) -> String,
        patient: &[(&str, &str, &str)],
    ) -> Self {
        let cluster = world.cluster;
        let name = format!("pintle-{}", world.name);
        let text =
            std::fs::read_to_string(manifests().join("install").join(file)).expect("what the test needs");
        assert!(
            text.contains("  name: pintle\n") && text.contains("name: pintle,"),
            "{file} has other names"
        );
        let text = change(text)
            .replace("name: pintle-", &format!("name: {name}-"))
            .replace("name: pintle\n", &format!("name: {name}\n"))
            .replace("name: pintle,", &format!("name: {name},"))
            .replace("name: pintle}", &format!("name: {name}}}"))
            .replace("aggregate-to-agent", &format!("aggregate-to-{}", world.name))
            .replace("namespace: shop", &format!("namespace: {}", world.name))
            .replace("pintle-system", &format!("{name}-system"));
        let namespace =
            std::fs::read_to_string(manifests().join("install/namespace.yaml")).expect("what the test needs");
        cluster.apply(&namespace.replace("pintle-system", &format!("{name}-system")));
        cluster.apply(&text);
        let installed = Self { cluster, name };
        // Roles are aggregated, and seen by the API server, a moment later.
        for (verb, resource, namespace) in patient {
            wait_for(&format!("{} may {verb} {resource}", installed.name), 30, || {
                installed.may(verb, resource, namespace)
            });
        }
        installed.give(&mut world.agent);
        installed
    }

    fn user(&self) -> String {
        format!("system:serviceaccount:{0}-system:{0}", self.name)
    }

    fn may(&self, verb: &str, resource: &str, namespace: &str) -> Result<(), String> {
        let user = self.user();
        let mut arguments = vec!["auth", "can-i", verb, resource, "--as", &user];
        let own = format!("{}-system", self.name);
        match namespace {
            "" => arguments.push("--all-namespaces"),
            "own" => arguments.extend(["--namespace", &own]),
            name => arguments.extend(["--namespace", name]),
        }
        self.cluster.try_kubectl(&arguments, "").map(|_| ())
    }

    /// Gives an agent a kubeconfig with a token of the service account and nothing else, and an id and a namespace of
    /// its own.
    fn give(&self, agent: &mut Agent) {
        let namespace = format!("{}-system", self.name);
        let token = self.cluster.kubectl(&["-n", &namespace, "create", "token", &self.name]);
        let admin = self.cluster.json(&["config", "view", "--raw"]).expect("what the test needs");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": admin["clusters"][0]["cluster"]}],
            "users": [{"name": "u", "user": {"token": token.trim()}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let path = agent.path("token-kubeconfig");
        std::fs::write(&path, text.to_string()).expect("what the test needs");
        agent.use_kubeconfig(&path);
        agent.identify(&self.name, &namespace);
    }

    /// Our requests that were refused. That there are others shows that the user was found in the log.
    fn refused(&self) -> Vec<Audited> {
        let user = self.user();
        let ours: Vec<Audited> =
            self.cluster.audit().into_iter().filter(|request| request.user == user).collect();
        assert!(!ours.is_empty(), "the audit log has no request of {user}");
        ours.into_iter().filter(|request| request.code == 403).collect()
    }
}

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

/// What applications usually have, of every group that the roles name.
const KINDS: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {password: secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example/web}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: web}
spec:
  schedule: 0 3 * * *
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: web, image: registry.example/web}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: other}
spec:
  minReplicas: 1
  maxReplicas: 2
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web}]
";

const CLUSTER_KINDS: &str = "\
---
apiVersion: v1
kind: Namespace
metadata: {name: rbac-made}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rbac-made}
rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: rbac-made}
value: 7
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.rbac.example}
spec:
  group: rbac.example
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

/// Syncs, reverts a drift, prunes, asks and ends: all that an agent does with the cluster.
fn live_through(world: &mut World) {
    world.write_map("stays", "git");
    world.write_map("goes", "git");
    world.synced();
    let patch = r#"{"data":{"value":"by hand"}}"#;
    world.cluster.kubectl(&["-n", world.name, "patch", "configmap", "stays", "--type=merge", "-p", patch]);
    world.wait_value("configmap/stays", "{.data.value}", "git");
    wait_for("the event DriftReverted", 30, || {
        let selector = "--field-selector=reason=DriftReverted";
        let found = world.cluster.kubectl(&["-n", world.name, "get", "events", selector, "-o", "name"]);
        if found.trim().is_empty() { Err("none".to_owned()) } else { Ok(()) }
    });
    world.cluster.kubectl(&["-n", world.name, "delete", "configmap", "stays"]);
    world.wait_value("configmap/stays", "{.data.value}", "git");
    world.repo.remove(&format!("{}/goes.yaml", world.name));
    let commit = world.repo.commit("prune");
    world.wait_synced(&commit);
    assert!(world.get("configmap/goes", "{.data.value}").is_err(), "it was not pruned");
    world.agent.ok(&["app", "get", world.name, "--hard-refresh"]);
    assert!(world.agent.stop());
}

#[test]
fn the_installed_rbac_is_enough() {
    let mut world = World::new("rbac-whole");
    let patient = [
        ("watch", "customresourcedefinitions", ""),
        ("delete", "clusterroles", ""),
        ("patch", "configmaps", "own"),
    ];
    let installed = Installed::new(&mut world, "rbac.yaml", |text| text, &patient);
    world.repo.write("rbac-whole/kinds.yaml", &format!("{KINDS}{CLUSTER_KINDS}"));
    live_through(&mut world);
    assert!(installed.refused().is_empty(), "{:#?}", installed.refused());
    // Nothing hands out more than the agent has.
    assert!(installed.may("escalate", "clusterroles", "").is_err());
    assert!(installed.may("impersonate", "users", "").is_err());
    world.cluster.kubectl(&["delete", "clusterrole", "rbac-made"]);
    world.cluster.kubectl(&["delete", "priorityclass", "rbac-made"]);
    world.cluster.kubectl(&["delete", "crd", "things.rbac.example"]);
}

#[test]
fn the_namespaced_rbac_is_enough_for_its_namespace_and_for_no_other() {
    let mut world = World::new("rbac-one");
    let patient =
        [("watch", "roles", ""), ("delete", "configmaps", "rbac-one"), ("patch", "configmaps", "own")];
    let installed = Installed::new(&mut world, "rbac-namespaced.yaml", |text| text, &patient);
    assert!(installed.may("patch", "configmaps", "default").is_err());
    assert!(installed.may("get", "secrets", "kube-system").is_err());
    world.repo.write("rbac-one/kinds.yaml", KINDS);
    live_through(&mut world);
    assert!(installed.refused().is_empty(), "{:#?}", installed.refused());
}

#[test]
fn a_missing_verb_is_named() {
    let mut world = World::new("rbac-less");
    let without = |text: String| {
        let (before, rest) = text.split_once("  - services\n  verbs: [").unwrap();
        let rest = rest.replacen("patch, ", "", 1);
        format!("{before}  - services\n  verbs: [{rest}")
    };
    let patient = [
        ("watch", "customresourcedefinitions", ""),
        ("delete", "services", ""),
        ("patch", "deployments", ""),
    ];
    let installed = Installed::new(&mut world, "rbac.yaml", without, &patient);
    world.repo.write(
        "rbac-less/web.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n",
    );
    world.repo.commit("first");
    world.application();
    world.agent.start();
    let user = installed.user();
    let text = world.wait_condition(&["cannot patch resource \"services\"", &user]);
    assert!(text.contains("manifests/install/rbac.yaml"), "it does not say what to do: {text}");
    let refused = installed.refused();
    assert!(refused.iter().all(|r| (&*r.verb, &*r.resource) == ("patch", "services")), "{refused:#?}");
}

#[test]
fn a_watch_that_may_not_be_is_named() {
    let mut world = World::new("rbac-blind");
    let without = |text: String| {
        let (before, rest) = text.split_once("  - services\n  verbs: [").unwrap();
        let rest = rest.replacen("list, watch, ", "", 1);
        format!("{before}  - services\n  verbs: [{rest}")
    };
    let patient = [
        ("watch", "customresourcedefinitions", ""),
        ("delete", "services", ""),
        ("patch", "deployments", ""),
    ];
    let installed = Installed::new(&mut world, "rbac.yaml", without, &patient);
    world.write_map("settings", "git");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    let text = world.wait_condition(&["cannot list resource \"configmaps\"", &installed.user()]);
    assert!(text.contains("manifests/install/rbac.yaml"), "it does not say what to do: {text}");
}

/// In a static binary the resolver is its own.
#[test]
fn a_git_server_is_found_by_its_name() {
    let mut world = World::new("by-name");
    world.write_map("settings", "git");
    let commit = world.repo.commit("first");
    let url = world.front.url_by_name("fleet");
    world.agent.edit(&world.front.prefix(), url.trim_end_matches("fleet.git"));
    world.agent.application(world.name, &url, world.name, world.name, crate::AUTOMATED);
    world.agent.start();
    world.wait_synced(&commit);
}

#[test]
fn every_example_is_an_application_that_this_version_takes() {
    let folder = manifests().join("examples");
    let context = Context { cluster_name: "test".to_owned(), ..Context::default() };
    let loaded = apps::load(std::slice::from_ref(&folder), &BTreeMap::new(), &context);
    assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
    let files = std::fs::read_dir(&folder).unwrap().count();
    assert!(files > 0 && loaded.apps.len() >= files, "{} applications of {files} files", loaded.apps.len());
}

#[test]
fn the_deployment_runs_what_the_binary_has() {
    let world = World::new("deployment");
    let text = std::fs::read_to_string(manifests().join("install/deployment.yaml")).unwrap();
    let documents: Vec<Value> = serde_yaml::Deserializer::from_str(&text)
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect();
    let find = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap();
    // The configuration, as it is and with its commented lines in force.
    let config = find("ConfigMap")["data"]["pintle.yaml"].as_str().unwrap();
    // Prose has a space after its sign.
    let all: Vec<&str> = config
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .filter(|rest| !rest.starts_with(' ') || rest.starts_with("  "))
                .unwrap_or(line)
        })
        .collect();
    assert!(all.contains(&"repositories:"));
    for text in [config.to_owned(), all.join("\n")] {
        std::fs::write(world.agent.path("installed.yaml"), &text).unwrap();
        let file = world.agent.path("installed.yaml").display().to_string();
        world.agent.ok(&["--config", &file, "config", "check"]);
    }
    // Its variables are read, and its arguments are a verb.
    let pod = &find("Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let names: Vec<&str> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|variable| variable["name"].as_str())
        .collect();
    assert_eq!(names, ["PINTLE_CONFIG"], "a variable that nothing reads");
    assert_eq!(container["args"], json!(["run"]));
    // Whoever asks in vain for a mount of a volume would only hear of it on a cluster.
    for mount in container["volumeMounts"].as_array().unwrap() {
        let known = pod["volumes"].as_array().unwrap().iter().any(|volume| volume["name"] == mount["name"]);
        assert!(known, "{mount} has no volume");
    }
    // The API server takes all of it, strictly, and Pod Security has no objection.
    let namespace = std::fs::read_to_string(manifests().join("install/namespace.yaml")).unwrap();
    world.cluster.apply(&namespace);
    let arguments = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    world.cluster.try_kubectl(&arguments, &text).unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": pod,
        "metadata": {"name": "pintle", "namespace": "pintle-system"}});
    // Admission of Pods needs the service account to be there.
    world.cluster.apply(&std::fs::read_to_string(manifests().join("install/rbac.yaml")).unwrap());
    world.cluster.try_kubectl(&arguments, &pod.to_string()).unwrap();
}
