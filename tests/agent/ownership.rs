//! Nothing is deleted or taken that cannot be proved ours.

use crate::World;
use crate::support::wait_for;

#[test]
fn an_object_with_another_owners_mark_is_left_alone_and_named() {
    let mut world = World::new("marked");
    world.cluster.apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: marked, annotations: \
         {meta.helm.sh/release-name: other}}\ndata: {value: theirs}\n",
    );
    world.write_map("settings", "git");
    world.write_map("ours", "git");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    world.wait_condition(&["OwnedByAnother", "Helm release other"]);
    world.wait_value("configmap/ours", "{.data.value}", "git");
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "theirs");
}

#[test]
fn an_adopted_object_that_was_changed_is_not_pruned_without_a_persons_word() {
    let mut world = World::new("adopted");
    world.cluster.apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: adopted}\ndata: {value: theirs}\n",
    );
    world.write_map("old", "git");
    world.write_map("stays", "git");
    world.synced();
    assert_eq!(
        world.get("configmap/old", "{.metadata.annotations.pintle\\.dev/adopted}").unwrap(),
        "changed"
    );
    world.repo.remove("adopted/old.yaml");
    world.repo.commit("let go");
    let condition = world.wait_condition(&["PruneRefused", "existed before"]);
    assert!(world.get("configmap/old", "{.data.value}").is_ok(), "it was pruned");
    let token = condition.split("--confirm ").nth(1).unwrap().chars().take(8).collect::<String>();
    let output = world.agent.run(&["sync", "adopted", "--prune", "--confirm", &token]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    wait_for("it is pruned when confirmed", 30, || match world.get("configmap/old", "{.data.value}") {
        Ok(value) => Err(value),
        Err(_) => Ok(()),
    });
}

#[test]
fn an_empty_render_prunes_nothing() {
    let mut world = World::new("emptied");
    world.write_map("settings", "git");
    world.synced();
    world.repo.write("emptied/settings.yaml", "# nothing\n");
    world.repo.commit("emptied");
    world.wait_condition(&["PruneRefused", "allowEmpty"]);
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "git");
}

#[test]
fn prune_false_keeps_an_object_that_left_git() {
    let mut world = World::new("kept");
    let text = crate::map("kept", "git")
        .replace("{name: kept}", "{name: kept, annotations: {argocd.argoproj.io/sync-options: Prune=false}}");
    world.repo.write("kept/kept.yaml", &text);
    world.write_map("other", "git");
    world.synced();
    world.repo.remove("kept/kept.yaml");
    world.write_map("other", "next");
    world.repo.commit("let go");
    world.wait_value("configmap/other", "{.data.value}", "next");
    wait_for("it is listed as extra", 30, || {
        let app = world.agent.app("kept")?;
        let extra = app["status"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["name"] == "kept" && r["requiresPruning"] == true);
        if extra { Ok(()) } else { Err(app.to_string()) }
    });
    assert!(world.get("configmap/kept", "{.data.value}").is_ok());
}

#[test]
fn a_vanished_file_detaches_the_application_and_deletes_nothing() {
    let mut world = World::new("vanished");
    world.write_map("settings", "git");
    world.synced();
    std::fs::write(
        world.agent.path("apps.d/other.yaml"),
        "# another file, so that the folder is not empty\n",
    )
    .unwrap();
    std::fs::remove_file(world.agent.path("apps.d/vanished.yaml")).unwrap();
    world.wait_condition(&["Detached"]);
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "git");
    world.application();
    wait_for("it is back", 30, || {
        let found = world.agent.conditions("vanished");
        if found.contains("Detached") { Err(found) } else { Ok(()) }
    });
}

#[test]
fn a_folder_of_applications_that_is_emptied_keeps_the_last_good_set() {
    let mut world = World::new("folder");
    world.write_map("settings", "git");
    world.synced();
    std::fs::remove_file(world.agent.path("apps.d/folder.yaml")).unwrap();
    wait_for("the empty folder is told", 30, || {
        let status = world.agent.ok(&["status"]);
        if status.contains("is empty") { Ok(()) } else { Err(status) }
    });
    assert!(!world.agent.conditions("folder").contains("Detached"));
    world.cluster.kubectl(&[
        "-n",
        "folder",
        "patch",
        "configmap",
        "settings",
        "--type=merge",
        "-p",
        r#"{"data":{"value":"x"}}"#,
    ]);
    world.wait_value("configmap/settings", "{.data.value}", "git");
}

#[test]
fn a_lost_store_is_rebuilt_from_the_cluster_and_nothing_is_made_anew() {
    let mut world = World::new("lost");
    world.write_map("a", "git");
    world.write_map("b", "git");
    let commit = world.synced();
    let uid = world.get("configmap/a", "{.metadata.uid}").unwrap();
    world.agent.kill();
    std::fs::remove_dir_all(world.agent.path("state")).unwrap();
    world.agent.start();
    world.wait_synced(&commit);
    assert_eq!(world.get("configmap/a", "{.metadata.uid}").unwrap(), uid);
    world.repo.remove("lost/b.yaml");
    let next = world.repo.commit("let b go");
    world.wait_synced(&next);
    wait_for("what the rebuilt inventory holds is pruned", 30, || {
        match world.get("configmap/b", "{.data.value}") {
            Ok(value) => Err(value),
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn an_object_that_moves_to_another_application_is_handed_over_without_a_delete() {
    let mut world = World::new("moved");
    world.write_map("stays", "git");
    world.write_map("moves", "git");
    world.repo.write("second/own.yaml", &crate::map("own", "git"));
    world.agent.application("second", &world.front.url("fleet"), "second", "moved", crate::AUTOMATED);
    world.synced();
    wait_for("the second application", 60, || match world.agent.verdict("second")? {
        (sync, _, _) if sync == "Synced" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let uid = world.get("configmap/moves", "{.metadata.uid}").unwrap();
    world.repo.remove("moved/moves.yaml");
    world.repo.write("second/moves.yaml", &crate::map("moves", "moved"));
    let commit = world.repo.commit("move");
    world.wait_value("configmap/moves", "{.data.value}", "moved");
    world.wait_synced(&commit);
    assert_eq!(world.get("configmap/moves", "{.metadata.uid}").unwrap(), uid, "it was deleted and made anew");
}

#[test]
fn a_child_application_is_adopted_and_orphaned_when_it_leaves_its_parent() {
    let mut world = World::new("family");
    let url = world.front.url("fleet");
    let child = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: the-child, namespace: argocd}}\nspec:\n  \
         project: default\n  source: {{repoURL: {url}, targetRevision: main, path: child}}\n  \
         destination: {{server: https://kubernetes.default.svc, namespace: family}}\n  \
         syncPolicy: {{automated: {{selfHeal: true}}}}\n"
    );
    world.repo.write("family/child.yaml", &child);
    world.write_map("own", "git");
    world.repo.write("child/settings.yaml", &crate::map("of-the-child", "git"));
    world.synced();
    world.wait_value("configmap/of-the-child", "{.data.value}", "git");
    world.repo.remove("family/child.yaml");
    let commit = world.repo.commit("the child leaves");
    world.wait_synced(&commit);
    wait_for("the child is forgotten", 30, || match world.agent.app("the-child") {
        Ok(_) => Err("it is still listed".to_owned()),
        Err(_) => Ok(()),
    });
    assert_eq!(world.get("configmap/of-the-child", "{.data.value}").unwrap(), "git", "its objects stay");
}

#[test]
fn a_delete_waits_while_an_application_of_the_same_repository_cannot_be_rendered() {
    let mut world = World::new("barrier");
    world.write_map("goes", "git");
    world.write_map("stays", "git");
    world.repo.write("beside/own.yaml", &crate::map("beside", "git"));
    world.agent.application("beside", &world.front.url("fleet"), "beside", "barrier", crate::AUTOMATED);
    world.synced();
    wait_for("the application beside it", 60, || match world.agent.verdict("beside")? {
        (sync, _, _) if sync == "Synced" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    world.repo.remove("barrier/goes.yaml");
    world.repo.write("beside/own.yaml", "a: [");
    world.repo.commit("one goes, the other is broken");
    world.wait_condition(&["PruneDeferred", "cannot be rendered"]);
    assert_eq!(world.get("configmap/goes", "{.data.value}").unwrap(), "git");
    world.repo.write("beside/own.yaml", &crate::map("beside", "git"));
    let commit = world.repo.commit("repaired");
    world.wait_synced(&commit);
    wait_for("the delete goes on by itself", 60, || match world.get("configmap/goes", "{.data.value}") {
        Ok(value) => Err(format!("{value} {}", world.agent.conditions("barrier"))),
        Err(_) => Ok(()),
    });
}

#[test]
fn a_definition_is_established_before_its_resources_are_applied() {
    let mut world = World::new("defined");
    world.repo.write(
        "defined/a-thing.yaml",
        "apiVersion: defined.example/v1\nkind: Thing\nmetadata: {name: one}\nspec: {size: 1}\n",
    );
    world.repo.write(
        "defined/z-definition.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.defined.example}\n\
         spec:\n  group: defined.example\n  scope: Namespaced\n  names: {plural: things, singular: thing, kind: Thing}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, \
         properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string, default: red}}}}}}\n",
    );
    world.synced();
    assert_eq!(world.get("things.defined.example/one", "{.spec.color}").unwrap(), "red");
    world.cluster.kubectl(&[
        "-n",
        "defined",
        "patch",
        "thing",
        "one",
        "--type=merge",
        "-p",
        r#"{"spec":{"size":9}}"#,
    ]);
    world.wait_value("things.defined.example/one", "{.spec.size}", "1");
}

#[test]
fn prune_false_outlives_the_store() {
    let mut world = World::new("kept-lost");
    let text = crate::map("kept", "git");
    let kept = "{name: kept, annotations: {argocd.argoproj.io/sync-options: Prune=false}}";
    world.repo.write("kept-lost/kept.yaml", &text.replace("{name: kept}", kept));
    world.write_map("other", "git");
    world.synced();
    world.repo.remove("kept-lost/kept.yaml");
    world.write_map("other", "next");
    world.repo.commit("let go");
    world.wait_value("configmap/other", "{.data.value}", "next");
    world.agent.kill();
    std::fs::remove_dir_all(world.agent.path("state")).unwrap();
    world.agent.start();
    wait_for("the rebuilt inventory lists it as extra", 60, || {
        let app = world.agent.app("kept-lost")?;
        let list = app["status"]["resources"].as_array().cloned().unwrap_or_default();
        let extra = list.iter().any(|r| r["name"] == "kept" && r["requiresPruning"] == true);
        let done = app["status"]["operationState"]["phase"] == "Succeeded";
        if extra && done { Ok(()) } else { Err(format!("{app}\n{}", world.agent.log())) }
    });
    assert_eq!(world.get("configmap/kept", "{.data.value}").unwrap(), "git", "it was pruned");
}

#[test]
fn fields_that_kubectl_applied_and_git_dropped_go_at_adoption_and_a_persons_stay() {
    let mut world = World::new("migrated");
    world.cluster.apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: migrated}\ndata: {value: theirs, dropped: \"yes\"}\n",
    );
    let patch = r#"{"data":{"hand":"stays"}}"#;
    world.cluster.kubectl(&[
        "-n",
        "migrated",
        "patch",
        "configmap",
        "old",
        "--field-manager=someone",
        "-p",
        patch,
    ]);
    world.write_map("old", "git");
    world.synced();
    assert_eq!(world.get("configmap/old", "{.data.value}").unwrap(), "git");
    assert_eq!(world.get("configmap/old", "{.data.dropped}").unwrap(), "", "what git does not have stayed");
    assert_eq!(world.get("configmap/old", "{.data.hand}").unwrap(), "stays");
    let note = "{.metadata.annotations.kubectl\\.kubernetes\\.io/last-applied-configuration}";
    assert_eq!(world.get("configmap/old", note).unwrap(), "");
}
