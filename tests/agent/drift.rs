//! Drift by owned fields, with its traps.

use crate::World;
use crate::support::wait_for;

fn deployment(extra: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n{extra}      \
         containers:\n      - name: web\n        image: registry.example/web:1\n        resources: {{}}\n        \
         securityContext: {{}}\n        ports: [{{containerPort: 80}}]\n"
    )
}

#[test]
fn values_that_a_replace_changed_behind_our_back_are_put_back() {
    let mut world = World::new("replace");
    world.write_map("settings", "git");
    world.synced();
    // A PUT with the old managedFields: they still say that the field is ours.
    let mut live = world
        .cluster
        .json(&["-n", "replace", "get", "configmap", "settings", "--show-managed-fields"])
        .unwrap();
    live["data"]["value"] = "replaced".into();
    world.cluster.try_kubectl(&["replace", "-f", "-"], &live.to_string()).unwrap();
    world.wait_value("configmap/settings", "{.data.value}", "git");
}

#[test]
fn an_object_that_is_deleted_comes_back_and_one_that_loses_our_label_gets_it_back() {
    let mut world = World::new("gone");
    world.write_map("settings", "git");
    world.synced();
    let uid = world.get("configmap/settings", "{.metadata.uid}").unwrap();
    world.cluster.kubectl(&["-n", "gone", "label", "configmap", "settings", "pintle.dev/agent-"]);
    world.wait_value("configmap/settings", "{.metadata.labels.pintle\\.dev/agent}", "test-agent");
    assert_eq!(world.get("configmap/settings", "{.metadata.uid}").unwrap(), uid, "it must not be made anew");
    world.cluster.kubectl(&["-n", "gone", "delete", "configmap", "settings"]);
    world.wait_value("configmap/settings", "{.data.value}", "git");
}

#[test]
fn foreign_fields_defaults_and_filled_empty_containers_are_no_drift() {
    let mut world = World::new("foreign");
    world.repo.write("foreign/web.yaml", &deployment(""));
    world.synced();
    wait_for("Healthy", 60, || match world.agent.verdict("foreign")? {
        (_, health, _) if health == "Healthy" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let patch = r#"{"metadata":{"annotations":{"other.example/note":"x"}},"spec":{"template":{"spec":{"containers":[
        {"name":"web","resources":{"limits":{"cpu":"2"}},"securityContext":{"runAsUser":1000}}]}}}}"#;
    world.cluster.kubectl(&["-n", "foreign", "patch", "deployment", "web", "-p", patch]);
    // A field of ours is changed after it: when that is put back, the rest has been judged too.
    world.cluster.kubectl(&["-n", "foreign", "scale", "deployment", "web", "--replicas=3"]);
    world.wait_value("deployment/web", "{.spec.replicas}", "2");
    let limit =
        world.get("deployment/web", "{.spec.template.spec.containers[0].resources.limits.cpu}").unwrap();
    assert_eq!(limit, "2", "a foreign field was touched");
    assert_eq!(world.get("deployment/web", "{.metadata.annotations.other\\.example/note}").unwrap(), "x");
}

#[test]
fn ownership_that_was_lost_is_taken_back_so_that_a_removal_from_git_takes_effect() {
    let mut world = World::new("reown");
    world.repo.write(
        "reown/settings.yaml",
        &crate::map("settings", "git").replace("\ndata: {", "\ndata: {extra: \"x\", "),
    );
    world.synced();
    // The same value by another manager takes the field from us.
    let same = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: reown}\ndata: {extra: \"x\"}\n";
    let arguments = ["apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-"];
    world.cluster.try_kubectl(&arguments, same).unwrap();
    world.cluster.kubectl(&[
        "-n",
        "reown",
        "patch",
        "configmap",
        "settings",
        "--type=merge",
        "-p",
        r#"{"data":{"extra":"y"}}"#,
    ]);
    world.wait_value("configmap/settings", "{.data.extra}", "x");
    let owners = world.cluster.kubectl(&[
        "-n",
        "reown",
        "get",
        "configmap",
        "settings",
        "--show-managed-fields",
        "-o",
        "json",
    ]);
    let owners: serde_json::Value = serde_json::from_str(&owners).unwrap();
    let ours = owners["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["manager"] == "pintle");
    assert!(ours.unwrap()["fieldsV1"]["f:data"]["f:extra"].is_object(), "the field is not ours again");
}

#[test]
fn an_ignored_field_is_released_and_never_reset() {
    let mut world = World::new("released");
    world.repo.write("released/web.yaml", &deployment(""));
    let commit = world.synced();
    let file = world.agent.path("apps.d/released.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let rule = "  ignoreDifferences:\n  - {group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}\n  syncPolicy:";
    std::fs::write(&file, text.replace("  syncPolicy:", rule)).unwrap();
    wait_for("the rule is in force", 60, || {
        let app = world.agent.app("released")?;
        let rules = app["spec"]["ignoreDifferences"].is_array();
        let (sync, _, _) = world.agent.verdict("released")?;
        if rules && sync == "Synced" { Ok(()) } else { Err(format!("{rules} {sync}")) }
    });
    world.wait_synced(&commit);
    world.cluster.kubectl(&["-n", "released", "scale", "deployment", "web", "--replicas=4"]);
    // A new commit changes something else of the object: the payload leaves replicas out.
    world.repo.write("released/web.yaml", &deployment("      terminationGracePeriodSeconds: 5\n"));
    let next = world.repo.commit("next");
    world.wait_synced(&next);
    world.wait_value("deployment/web", "{.spec.template.spec.terminationGracePeriodSeconds}", "5");
    assert_eq!(world.get("deployment/web", "{.spec.replicas}").unwrap(), "4", "the ignored field was reset");
}
