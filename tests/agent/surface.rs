//! What people touch: the configuration that is read again, other revisions, options that mean what Argo CD documents.

use crate::World;
use crate::support::wait_for;

#[test]
fn a_changed_configuration_is_taken_over_and_a_bad_one_leaves_the_old_one_in_force() {
    let mut world = World::new("reloaded");
    world.write_map("settings", "first");
    world.synced();
    let pid = world.agent.pid();
    let config = world.agent.path("pintle.yaml");
    let good = std::fs::read_to_string(&config).unwrap();
    // The same file cut off half way: refused, named, and everything goes on.
    std::fs::write(&config, "cluster: {name: test\npoll: [").unwrap();
    wait_for("the refusal is told", 30, || {
        let text =
            world.agent.ok(&["status", "--socket", world.agent.path("state/pintle.sock").to_str().unwrap()]);
        if text.contains("the new configuration is refused") { Ok(()) } else { Err(text) }
    });
    std::fs::write(&config, &good).unwrap();
    world.write_map("settings", "second");
    let second = world.repo.commit("second");
    world.wait_synced(&second);
    // A new name and labels: in force without a restart of the process.
    std::fs::write(&config, good.replace("{name: test,", "{name: shop-7, labels: {ring: canary},")).unwrap();
    wait_for("the new name is in force", 30, || {
        // While it begins anew the cluster is not reached yet, and `status` ends with 1.
        let output = world.agent.run(&["status", "-o", "json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let status: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| format!("{error}: {output:?}\n{}", world.agent.log()))?;
        let agent = &status["agent"];
        if agent["cluster"] == "shop-7" && agent["labels"]["ring"] == "canary" { Ok(()) } else { Err(text) }
    });
    assert!(!world.agent.has_ended() && world.agent.pid() == pid, "the process is another one");
    // A rotated password is read from its file.
    std::fs::write(world.agent.path("password"), "wrong").unwrap();
    world.wait_condition(&["GitUnauthorized"]);
    std::fs::write(world.agent.path("password"), "secret\n").unwrap();
    world.write_map("settings", "third");
    let third = world.repo.commit("third");
    world.wait_synced(&third);
    world.wait_value("configmap/settings", "{.data.value}", "third");
}

#[test]
fn a_person_can_compare_with_and_sync_to_another_revision_unless_automated_sync_would_undo_it() {
    let mut world = World::new("revisions");
    world.write_map("settings", "one");
    let one = world.repo.commit("one");
    world.write_map("settings", "two");
    world.write_map("added", "two");
    let two = world.repo.commit("two");
    world.agent.application(
        "revisions",
        &world.front.url("fleet"),
        "revisions",
        "revisions",
        "syncOptions: []",
    );
    world.agent.start();
    wait_for("it is rendered", 60, || match world.agent.verdict("revisions")? {
        (_, _, revision) if revision == two => Ok(()),
        other => Err(format!("{other:?}\n{}", world.agent.log())),
    });
    world.agent.ok(&["sync", "revisions"]);
    world.wait_value("configmap/settings", "{.data.value}", "two");
    let output = world.agent.run(&["diff", "revisions", "--revision", &one]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("two") && text.contains("one"), "{text}");
    world.agent.ok(&["sync", "revisions", "--revision", &one]);
    world.wait_value("configmap/settings", "{.data.value}", "one");
    assert!(world.get("configmap/added", "{.data.value}").is_ok(), "nothing was asked to be deleted");
    let (sync, _, revision) = world.agent.verdict("revisions").unwrap();
    assert_eq!((sync.as_str(), revision), ("OutOfSync", two.clone()), "it still follows the branch");
    let history = world.agent.ok(&["history", "revisions", "-o", "json"]);
    assert!(history.contains(&one) && history.contains(&two), "{history}");
    // Automated sync would take it straight back.
    world.application();
    world.wait_synced(&two);
    let output = world.agent.run(&["sync", "revisions", "--revision", &one]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("automated sync follows main"), "{said}");
    world.wait_value("configmap/settings", "{.data.value}", "two");
}

#[test]
fn an_extraneous_object_that_says_so_does_not_make_the_application_out_of_sync() {
    let mut world = World::new("extraneous");
    world.write_map("stays", "git");
    world.repo.write(
        "extraneous/helper.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: helper\n  annotations: \
         {argocd.argoproj.io/compare-options: IgnoreExtraneous, argocd.argoproj.io/sync-options: Prune=false}\n",
    );
    world.synced();
    world.repo.remove("extraneous/helper.yaml");
    let commit = world.repo.commit("let go");
    world.wait_synced(&commit);
    assert!(world.get("configmap/helper", "{.metadata.name}").is_ok(), "Prune=false keeps it");
}

#[test]
fn create_namespace_makes_it_once_for_all_and_leaves_a_foreign_one_as_it_is() {
    let mut world = World::new("made");
    world.cluster.apply(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: made-foreign, annotations: {meta.helm.sh/release-name: \
         other}}\n",
    );
    let options = "automated: {prune: true, selfHeal: true}\n    syncOptions: [CreateNamespace=true, FailOnSharedResource=true]";
    for (app, namespace) in [("made-a", "made-new"), ("made-b", "made-new"), ("made-c", "made-foreign")] {
        world.repo.write(&format!("{app}/map.yaml"), &crate::map(app, "git"));
        world.agent.application(app, &world.front.url("fleet"), app, namespace, options);
    }
    let commit = world.repo.commit("three");
    world.agent.start();
    for app in ["made-a", "made-b", "made-c"] {
        wait_for(&format!("{app} is Synced"), 90, || {
            let (sync, health, revision) = world.agent.verdict(app)?;
            let conditions = world.agent.conditions(app);
            if sync == "Synced" && revision == commit && conditions.is_empty() {
                return Ok(());
            }
            Err(format!("{sync} {health} {conditions}\n{}", world.agent.log()))
        });
    }
    let labels =
        world.cluster.kubectl(&["get", "namespace", "made-foreign", "-o", "jsonpath={.metadata.labels}"]);
    assert!(!labels.contains("pintle.dev"), "a namespace of somebody else was marked: {labels}");
    let output = world.agent.run(&["app", "get", "made-b"]);
    assert!(output.status.success());
}
