//! Each bad input is one clear message (what, where, what to do), and never costs the last good state.

use crate::World;
use crate::support::agent::Agent;
use crate::support::git_front::Mode;
use crate::support::pki::Authority;
use crate::support::wait_for;

#[test]
fn a_broken_commit_is_named_with_file_and_line_and_the_last_good_state_stays() {
    let mut world = World::new("broken-commit");
    world.write_map("good", "1");
    let good = world.synced();
    let cases = [
        ("a: [", "bad.yaml:", "bad.yaml"),
        ("apiVersion: v1\nkind: ConfigMap\n", "has no metadata.name", "bad.yaml:1"),
        ("metadata: {name: x}\n", "has no apiVersion", "bad.yaml:1"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  labels: {a: yes}\n",
            "the boolean true",
            "bad.yaml:5",
        ),
    ];
    for (text, wanted, place) in cases {
        world.repo.write("broken-commit/bad.yaml", text);
        world.repo.commit("bad");
        world.wait_condition(&["ComparisonError", wanted, place]);
        assert_eq!(world.get("configmap/good", "{.data.value}").unwrap(), "1");
        let (sync, _, revision) = world.agent.verdict("broken-commit").unwrap();
        assert_eq!((sync.as_str(), revision.as_str()), ("Synced", good.as_str()));
    }
    world.repo.remove("broken-commit/bad.yaml");
    let repaired = world.repo.commit("repaired");
    world.wait_synced(&repaired);
}

#[test]
fn an_unknown_kind_is_named_and_everything_else_is_applied() {
    let mut world = World::new("unknown-kind");
    world.write_map("good", "1");
    world
        .repo
        .write("unknown-kind/x.yaml", "apiVersion: nowhere.example/v1\nkind: Thing\nmetadata: {name: x}\n");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    world.wait_condition(&["SyncError", "knows no kind Thing"]);
    world.wait_value("configmap/good", "{.data.value}", "1");
}

#[test]
fn two_objects_with_one_key_are_a_warning_and_the_last_one_counts() {
    let mut world = World::new("twice");
    world.repo.write("twice/a.yaml", &crate::map("same", "first"));
    world.repo.write("twice/b.yaml", &crate::map("same", "last"));
    world.synced();
    world.wait_condition(&["RepeatedResourceWarning", "twice/a.yaml:1", "twice/b.yaml:1"]);
    assert_eq!(world.get("configmap/same", "{.data.value}").unwrap(), "last");
}

#[test]
fn what_is_wrong_with_a_source_is_said_and_does_not_touch_what_is_deployed() {
    let mut world = World::new("bad-source");
    world.write_map("good", "1");
    let good = world.synced();
    let url = world.front.url("fleet");
    let with = |world: &World, url: &str, revision: &str, path: &str| {
        world.agent.application("bad-source", url, path, "bad-source", crate::AUTOMATED);
        let file = world.agent.path("apps.d/bad-source.yaml");
        let text = std::fs::read_to_string(&file)
            .unwrap()
            .replace("targetRevision: main", &format!("targetRevision: {revision}"));
        std::fs::write(file, text).unwrap();
    };
    let cases = [
        (url.replace("fleet", "nothing"), "main", "bad-source", "GitNotFound"),
        (url.clone(), "no-such-branch", "bad-source", "RevisionNotFound"),
        (url.clone(), "main", "no/such/path", "does not exist"),
        (url.clone(), "1234567", "bad-source", "40 digits"),
    ];
    for (url, revision, path, wanted) in cases {
        with(&world, &url, revision, path);
        world.wait_condition(&[wanted]);
        assert_eq!(world.get("configmap/good", "{.data.value}").unwrap(), "1");
    }
    with(&world, &url, "main", "bad-source");
    world.wait_synced(&good);
    world.front.set(Mode::Failing);
    world.wait_condition(&["GitUnreachable", "500"]);
    world.front.set(Mode::Up);
    world.wait_synced(&good);
}

#[test]
fn refused_credentials_and_an_untrusted_certificate_are_told_apart() {
    let mut world = World::new("refused");
    world.write_map("good", "1");
    world.repo.commit("first");
    world.application();
    std::fs::write(world.agent.path("password"), "wrong").unwrap();
    world.agent.start();
    world.wait_condition(&["GitUnauthorized", "refused the configured credentials"]);
    world.agent.stop();
    std::fs::write(world.agent.path("ca.pem"), Authority::new("another").pem()).unwrap();
    world.agent.start();
    world.wait_condition(&["GitCertificate", "clock"]);
    assert!(!world.agent.log().contains("wrong"), "a password reached the log");
}

#[test]
fn a_field_that_is_not_built_yet_is_refused_by_name_with_file_and_line() {
    let mut world = World::new("unbuilt");
    world.write_map("good", "1");
    let commit = world.synced();
    let file = world.agent.path("apps.d/unbuilt.yaml");
    let good = std::fs::read_to_string(&file).unwrap();
    for (line, wanted) in [
        ("    helm: {releaseName: x}\n", "helm"),
        ("    kustomize: {namePrefix: x}\n", "kustomize"),
        ("    chart: x\n", "chart"),
    ] {
        let text = good.replace("  source: {", &format!("  source:\n{line}    repoURL: x\n  sourceOld: {{"));
        std::fs::write(&file, text).unwrap();
        let status = wait_for("the refusal", 30, || {
            let found = world.agent.conditions("unbuilt");
            if found.contains("InvalidSpecError") { Ok(found) } else { Err(found) }
        });
        assert!(status.contains("unbuilt.yaml:"), "{status}");
        assert!(status.contains(wanted) || status.contains("sourceOld"), "{status}");
        assert_eq!(world.get("configmap/good", "{.data.value}").unwrap(), "1");
    }
    std::fs::write(&file, good).unwrap();
    world.wait_synced(&commit);
    wait_for("the refusal is gone", 30, || {
        let found = world.agent.conditions("unbuilt");
        if found.contains("InvalidSpecError") { Err(found) } else { Ok(()) }
    });
}

#[test]
fn a_missing_or_broken_kubeconfig_and_a_dead_server_are_told() {
    let world = World::new("no-cluster");
    let with_kubeconfig = |text: &str| {
        let file = world.agent.path("kubeconfig");
        std::fs::write(&file, text).unwrap();
        Agent::new(&file, &world.front, "user", "secret")
    };
    let missing = Agent::new(&world.agent.path("nowhere"), &world.front, "user", "secret");
    let broken = with_kubeconfig("apiVersion: [");
    let said = |agent: &Agent| String::from_utf8_lossy(&agent.run(&["status"]).stdout).into_owned();
    let text = said(&missing);
    assert!(text.contains("kubeconfig") && text.contains("nowhere"), "{text}");
    let text = said(&broken);
    assert!(text.contains("is not a kubeconfig"), "{text}");
    let dead = std::fs::read_to_string(world.cluster.kubeconfig()).unwrap();
    let port =
        dead.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('\n').next()).unwrap().trim().to_owned();
    let dead = with_kubeconfig(&dead.replace(&port, "1"));
    let text = said(&dead);
    assert!(text.contains("cannot be reached"), "{text}");
}

#[test]
fn a_store_that_is_held_names_its_holder_and_one_that_cannot_be_written_its_path() {
    let mut world = World::new("held-store");
    world.write_map("good", "1");
    world.synced();
    let socket = world.agent.path("elsewhere.sock");
    let output = world.agent.run(&["store", "check"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let pid = world.agent.pid().unwrap().to_string();
    assert!(!output.status.success() && text.contains(&pid), "{text}");
    drop(socket);
    let output = world.agent.run(&["--store", "/proc/nothing", "store", "check"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("/proc/nothing"), "{text}");
}

#[test]
fn a_store_of_another_cluster_touches_nothing_and_says_how_to_rebind() {
    let mut world = World::new("bound");
    world.write_map("settings", "git");
    world.synced();
    world.agent.stop();
    let other = crate::support::control_plane::ControlPlane::start();
    let config = world.agent.path("pintle.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    let first = world.cluster.kubeconfig().display().to_string();
    std::fs::write(&config, text.replace(&first, &other.kubeconfig().display().to_string())).unwrap();
    world.agent.start();
    world.wait_condition(&["WrongCluster", "pintle store rebind"]);
    let writes: Vec<_> =
        other.audit().into_iter().filter(|r| !matches!(r.verb.as_str(), "get" | "list" | "watch")).collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
fn what_rbac_forbids_is_named_with_verb_and_resource() {
    let mut world = World::new("forbidden");
    world.write_map("settings", "git");
    world.repo.commit("first");
    world.application();
    world.cluster.kubectl(&["-n", "forbidden", "create", "serviceaccount", "weak"]);
    for (name, verbs, resources) in [
        ("weak-read", "get,list,watch", "namespaces,configmaps"),
        ("weak-own", "get,list,watch,create,patch", "namespaces"),
    ] {
        let (verbs, resources) = (format!("--verb={verbs}"), format!("--resource={resources}"));
        world.cluster.kubectl(&["create", "clusterrole", name, &verbs, &resources]);
        let role = format!("--clusterrole={name}");
        world.cluster.kubectl(&[
            "create",
            "clusterrolebinding",
            name,
            &role,
            "--serviceaccount=forbidden:weak",
        ]);
    }
    let own = crate::agent_namespace("forbidden");
    let _ = world.cluster.try_kubectl(&["create", "namespace", &own], "");
    world.cluster.kubectl(&[
        "-n",
        &own,
        "create",
        "role",
        "weak",
        "--verb=get,list,watch,create,patch",
        "--resource=configmaps",
    ]);
    world.cluster.kubectl(&[
        "-n",
        &own,
        "create",
        "rolebinding",
        "weak",
        "--role=weak",
        "--serviceaccount=forbidden:weak",
    ]);
    let token = world.cluster.kubectl(&["-n", "forbidden", "create", "token", "weak"]);
    let admin = world.cluster.json(&["config", "view", "--raw"]).unwrap();
    let mut weak = admin;
    weak["users"][0]["user"] = serde_json::json!({"token": token.trim()});
    let file = world.agent.path("weak.kubeconfig");
    std::fs::write(&file, weak.to_string()).unwrap();
    let config = world.agent.path("pintle.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    let first = world.cluster.kubeconfig().display().to_string();
    std::fs::write(&config, text.replace(&first, &file.display().to_string())).unwrap();
    world.agent.start();
    world.wait_condition(&["SyncError", "forbidden", "patch", "configmaps"]);
}
