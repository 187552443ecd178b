//! An API server, or a network before it, that fails: everything is survived, nothing is done twice, nothing is lost.

use crate::World;
use crate::support::agent::Agent;
use crate::support::fault_proxy::{Fault, FaultProxy};
use crate::support::wait_for;

/// A world whose agent reaches the API server through a proxy.
fn broken_world(name: &'static str) -> (World, FaultProxy) {
    let mut world = World::new(name);
    let folder = world.agent.path("apps.d").parent().expect("a folder").to_owned();
    let proxy = FaultProxy::start(&world.cluster.kubeconfig(), &folder);
    let path = proxy.kubeconfig().to_owned();
    world.agent.use_kubeconfig(&path);
    (world, proxy)
}

#[test]
fn refusals_of_a_busy_server_are_waited_out_and_the_sync_succeeds() {
    let (mut world, proxy) = broken_world("busy");
    for index in 0..6 {
        world.write_map(&format!("m{index}"), "git");
    }
    proxy.fail("PATCH", "/namespaces/busy/configmaps/m0", Fault::Status(429, Some(1)), 2);
    proxy.fail("PATCH", "/namespaces/busy/configmaps/m1", Fault::Status(500, None), 2);
    proxy.fail("PATCH", "/namespaces/busy/configmaps/m2", Fault::Status(503, None), 1);
    proxy.fail("PATCH", "/namespaces/busy/configmaps/m3", Fault::Close, 1);
    proxy.fail("PATCH", "/namespaces/busy/configmaps/m4", Fault::LoseAnswer, 1);
    world.synced();
    for index in 0..6 {
        world.wait_value(&format!("configmap/m{index}"), "{.data.value}", "git");
    }
    assert_eq!(proxy.broken().len(), 7, "{:?}", proxy.broken());
    // Nobody else had it: a create whose answer was lost is ours, and no adoption.
    let adopted = world.get("configmap/m4", "{.metadata.annotations.pintle\\.dev/adopted}").unwrap();
    assert_eq!(adopted, "");
    let uid = world.get("configmap/m4", "{.metadata.uid}").unwrap();
    world.repo.remove("busy/m4.yaml");
    world.repo.commit("let go");
    wait_for("what was made while the answer was lost is pruned", 60, || {
        match world.get("configmap/m4", "{.metadata.uid}") {
            Ok(found) => Err(format!("{found} {uid}\n{}", world.agent.log())),
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn a_watch_that_breaks_expires_or_hangs_begins_anew_and_no_drift_is_missed() {
    let (mut world, proxy) = broken_world("watches");
    world.write_map("settings", "git");
    world.synced();
    let drift = |world: &World, value: &str| {
        let patch = format!(r#"{{"data":{{"value":"{value}"}}}}"#);
        world.cluster.kubectl(&["-n", "watches", "patch", "configmap", "settings", "-p", &patch]);
    };
    // Cut, and what follows is told that its version is too old.
    proxy.fail("GET", "watch=true", Fault::Expired, 3);
    proxy.cut();
    drift(&world, "while it was cut");
    world.wait_value("configmap/settings", "{.data.value}", "git");
    // Away for a while: changes meanwhile are seen afterwards.
    proxy.set_down(true);
    drift(&world, "while it was away");
    wait_for("the agent says that the cluster is away", 60, || {
        let text = world.agent.ok(&["status", "-o", "json"]);
        if text.contains("\"connected\": true") { Err(text) } else { Ok(()) }
    });
    proxy.set_down(false);
    world.wait_value("configmap/settings", "{.data.value}", "git");
}

#[test]
fn an_apply_that_is_never_answered_ends_with_a_message_and_is_tried_again() {
    let (mut world, proxy) = broken_world("hanging");
    world.write_map("settings", "git");
    let clock = world.agent.path("clock");
    std::fs::write(&clock, "0 0").unwrap();
    world.agent.env("PINTLE_TEST_CLOCK", clock.to_str().unwrap());
    proxy.fail("PATCH", "/namespaces/hanging/configmaps/settings", Fault::Hang, 1);
    world.repo.commit("first");
    world.application();
    world.agent.start();
    wait_for(
        "the apply hangs",
        60,
        || if proxy.broken().is_empty() { Err(world.agent.log()) } else { Ok(()) },
    );
    // An hour passes: the operation's deadline, and not a person's patience, ends it.
    std::fs::write(&clock, "3600 3600").unwrap();
    world.wait_condition(&["SyncError", "no answer in time", "configmap/settings"]);
    std::fs::write(&clock, "7200 7200").unwrap();
    world.wait_value("configmap/settings", "{.data.value}", "git");
}

#[test]
fn a_deletion_that_fails_keeps_its_entry_and_is_tried_again() {
    let (mut world, proxy) = broken_world("undeleted");
    world.write_map("stays", "git");
    world.write_map("goes", "git");
    world.synced();
    proxy.fail("DELETE", "/namespaces/undeleted/configmaps/goes", Fault::Status(403, None), 1);
    proxy.fail("DELETE", "/namespaces/undeleted/configmaps/goes", Fault::LoseAnswer, 1);
    world.repo.remove("undeleted/goes.yaml");
    world.repo.commit("let go");
    wait_for("it goes in the end", 90, || match world.get("configmap/goes", "{.metadata.uid}") {
        Ok(found) => Err(format!("{found}\n{}\n{}", world.agent.conditions("undeleted"), world.agent.log())),
        Err(_) => Ok(()),
    });
    assert_eq!(proxy.broken().len(), 2, "{:?}", proxy.broken());
    wait_for("the inventory has let go of it", 60, || {
        let app = world.agent.app("undeleted")?;
        let names: Vec<&str> = app["status"]["resources"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|resource| resource["name"].as_str())
            .collect();
        if names == ["stays"] { Ok(()) } else { Err(format!("{names:?}")) }
    });
}

#[test]
fn an_api_group_that_does_not_answer_prunes_nothing_of_it_and_everything_else_goes_on() {
    // A dead aggregated API: its group is listed and its discovery fails.
    let mut world = World::new("dead-group");
    world.cluster.apply(
        "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.dead.example}\n\
         spec: {group: dead.example, version: v1, groupPriorityMinimum: 100, versionPriority: 100, \
         insecureSkipTLSVerify: true, service: {name: nobody, namespace: default}}\n",
    );
    world.write_map("stays", "git");
    world.write_map("goes", "git");
    world.synced();
    world.repo.remove("dead-group/goes.yaml");
    world.repo.commit("let go");
    wait_for("another group's object is pruned", 60, || {
        match world.get("configmap/goes", "{.metadata.uid}") {
            Ok(found) => Err(format!("{found}\n{}", world.agent.log())),
            Err(_) => Ok(()),
        }
    });
    world.cluster.kubectl(&["delete", "apiservice", "v1.dead.example"]);
}

#[test]
fn what_admission_changes_behind_our_back_is_told_apart_from_what_it_changes_in_our_own_apply() {
    let mut world = World::new("admission");
    world.write_map("settings", "git");
    world.synced();
    // The policy puts a field of its own into every write: no drift. It also sets ours, on writes of others only.
    world.cluster.apply(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: admission-test}\n\
         spec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], \
         resources: [configmaps]}], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: admission}}}\n  \
         failurePolicy: Fail\n  reinvocationPolicy: Never\n  mutations:\n  - patchType: JSONPatch\n    jsonPatch:\n      \
         expression: '[JSONPatch{op: \"add\", path: \"/data/injected\", value: \"yes\"}] + \
         (request.userInfo.username == \"stranger\" ? [JSONPatch{op: \"add\", path: \"/data/value\", value: \
         \"admission\"}] : [])'\n",
    );
    world.cluster.apply(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: \
         admission-test}\nspec: {policyName: admission-test}\n",
    );
    world.cluster.apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: stranger, namespace: admission}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: stranger}]\n",
    );
    // The policy takes a moment to be in force; each try touches a label only, which is no field of ours.
    wait_for("the policy is in force", 60, || {
        let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        let label = format!("touched=at-{at}");
        let arguments =
            ["-n", "admission", "--as", "stranger", "label", "--overwrite", "configmap", "settings"];
        let mut all = arguments.to_vec();
        all.push(&label);
        world.cluster.try_kubectl(&all, "")?;
        let found = world.get("configmap/settings", "{.data.injected}")?;
        if found == "yes" { Ok(()) } else { Err("not yet".to_owned()) }
    });
    // Our value was changed by admission in the write of somebody who never named it: put back all the same.
    world.wait_value("configmap/settings", "{.data.value}", "git");
    assert_eq!(
        world.get("configmap/settings", "{.data.injected}").unwrap(),
        "yes",
        "a foreign field is not ours"
    );
    let commit = world.repo.commit("nothing");
    world.wait_synced(&commit);
    world.cluster.kubectl(&[
        "delete",
        "mutatingadmissionpolicybinding,mutatingadmissionpolicy",
        "admission-test",
    ]);
}

#[test]
fn a_second_agent_touches_nothing_and_takes_over_only_when_told() {
    let mut world = World::new("claimed");
    world.write_map("settings", "git");
    world.synced();
    // Another agent, with another id and store, for the same cluster.
    let second = Agent::new(&world.cluster.kubeconfig(), &world.front, "user", "secret");
    second.identify("second-agent", &crate::agent_namespace("claimed"));
    second.application("other", &world.front.url("fleet"), "claimed", "claimed", crate::AUTOMATED);
    let output = second.run(&["once"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("test-agent") && said.contains("--take-over"),
        "{said}"
    );
    let output = second.run(&["sync", "other"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("claimed by the agent test-agent"), "{said}");
    // A cluster of its own for the take-over: this one is shared with other tests.
    let own = crate::support::control_plane::ControlPlane::start();
    own.kubectl(&["create", "namespace", "claimed"]);
    let first = Agent::new(&own.kubeconfig(), &world.front, "user", "secret");
    first.application("claimed", &world.front.url("fleet"), "claimed", "claimed", crate::AUTOMATED);
    // A verb without the service, on a cluster that no agent ever touched: it claims it too.
    first.ok(&["sync", "claimed"]);
    first.ok(&["once"]);
    let second = Agent::new(&own.kubeconfig(), &world.front, "user", "secret");
    second.edit("id: test-agent", "id: second-agent");
    second.application("other", &world.front.url("fleet"), "claimed", "claimed", "syncOptions: []");
    second.ok(&["sync", "other", "--take-over"]);
    let holder =
        own.kubectl(&["-n", "pintle-system", "get", "configmap", "pintle", "-o", "jsonpath={.data.agent}"]);
    assert_eq!(holder, "second-agent");
    let output = first.run(&["once"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("second-agent"), "{said}");
}
