//! Sync options, guards and holds, each on the real API server.

use crate::World;
use crate::support::wait_for;

const OPTIONS: &str = "argocd.argoproj.io/sync-options";

impl World {
    /// A ConfigMap with annotations.
    fn write_annotated(&self, object: &str, value: &str, annotations: &str) {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {object}\n  annotations: {{{annotations}}}\ndata: {{value: \
             \"{value}\"}}\n"
        );
        self.repo.write(&format!("{}/{object}.yaml", self.name), &text);
    }

    fn wait_gone(&self, object: &str) {
        wait_for(&format!("{object} is gone"), 60, || match self.get(object, "{.metadata.uid}") {
            Ok(uid) => Err(format!("{uid}\n{}\n{}", self.agent.conditions(self.name), self.agent.log())),
            Err(_) => Ok(()),
        });
    }

    /// The token that a condition prints.
    fn token(&self, wanted: &[&str]) -> String {
        let condition = self.wait_condition(wanted);
        condition.split("--confirm ").nth(1).expect("a token").chars().take(8).collect()
    }

    /// The value of a column of `restore list` for an object.
    fn backup_of(&self, object: &str) -> String {
        wait_for(&format!("a backup of {object}"), 30, || {
            let list = self.agent.ok(&["restore", "list"]);
            let line = list.lines().find(|line| line.contains(object)).ok_or(list.clone())?;
            Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
        })
    }
}

#[test]
fn everything_that_the_server_refuses_in_a_wave_is_said_at_once_before_the_first_write() {
    let mut world = World::new("dry-run");
    let service = |name: &str, port: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{a: b}}, ports: [{{port: {port}}}]}}\n"
        )
    };
    world.repo.write("dry-run/one.yaml", &service("one", "80"));
    world.repo.write("dry-run/two.yaml", &service("two", "80"));
    world.write_map("settings", "git");
    world.synced();
    world.repo.write("dry-run/one.yaml", &service("one", "99999"));
    world.repo.write("dry-run/two.yaml", &service("two", "88888"));
    world.write_map("settings", "changed");
    world.repo.commit("two bad services");
    let condition = world.wait_condition(&["SyncError", "service/one", "service/two", "spec.ports[0].port"]);
    assert!(condition.contains("dry run"), "{condition}");
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "git", "the wave was begun");
}

#[test]
fn replace_takes_away_what_the_manifest_does_not_say_and_keeps_a_backup() {
    let mut world = World::new("replaced");
    world.write_annotated("settings", "git", &format!("{OPTIONS}: Replace=true"));
    world.synced();
    let patch = r#"{"data":{"foreign":"yes"}}"#;
    world.cluster.kubectl(&["-n", "replaced", "patch", "configmap", "settings", "-p", patch]);
    world.write_annotated("settings", "second", &format!("{OPTIONS}: Replace=true"));
    let second = world.repo.commit("second");
    world.wait_synced(&second);
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "second");
    assert_eq!(world.get("configmap/settings", "{.data.foreign}").unwrap(), "");
    let id = world.backup_of("configmap/settings");
    let shown = world.agent.ok(&["restore", "show", &id]);
    assert!(shown.contains("foreign: \"yes\"") && shown.contains("value: git"), "{shown}");
}

#[test]
fn what_was_pruned_can_be_put_back() {
    let mut world = World::new("restored");
    world.write_map("stays", "git");
    world.write_map("goes", "precious");
    world.repo.write(
        "restored/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: correct-horse}\n",
    );
    world.synced();
    world.repo.remove("restored/goes.yaml");
    world.repo.remove("restored/secret.yaml");
    world.repo.commit("let go");
    world.wait_gone("configmap/goes");
    world.wait_gone("secret/key");
    let id = world.backup_of("configmap/goes");
    world.agent.ok(&["restore", "put", &id]);
    assert_eq!(world.get("configmap/goes", "{.data.value}").unwrap(), "precious");
    let again = world.agent.run(&["restore", "put", &id]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains("--force"), "{said}");
    let secret = world.backup_of("secret/key");
    let shown = world.agent.ok(&["restore", "show", &secret]);
    assert!(!shown.contains("correct-horse") && !shown.contains("Y29ycmVjdC1ob3JzZQ"), "{shown}");
    world.agent.ok(&["restore", "put", &secret]);
    assert_eq!(world.get("secret/key", "{.data.password}").unwrap(), "Y29ycmVjdC1ob3JzZQ==");
}

#[test]
fn prune_confirm_waits_for_a_persons_word() {
    let mut world = World::new("confirmed");
    world.write_map("stays", "git");
    world.write_annotated("goes", "git", &format!("{OPTIONS}: Prune=confirm"));
    world.synced();
    world.repo.remove("confirmed/goes.yaml");
    world.repo.commit("let go");
    let token = world.token(&["PruneRefused", "Prune=confirm"]);
    assert!(world.get("configmap/goes", "{.metadata.uid}").is_ok());
    world.agent.ok(&["sync", "confirmed", "--prune", "--confirm", &token]);
    world.wait_gone("configmap/goes");
}

#[test]
fn prune_last_deletes_only_when_everything_else_is_healthy() {
    let mut world = World::new("prune-last");
    world.write_map("goes", "git");
    world.write_map("stays", "git");
    let policy = "automated: {prune: true, selfHeal: true}\n    syncOptions: [PruneLast=true]";
    world.repo.commit("first");
    world.agent.application("prune-last", &world.front.url("fleet"), "prune-last", "prune-last", policy);
    world.agent.start();
    world.wait_value("configmap/goes", "{.data.value}", "git");
    world.repo.remove("prune-last/goes.yaml");
    let job = |behaviour: &str, name: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  template:\n    metadata: {{annotations: \
             {{fake-kubelet.pintle.dev/behaviour: {behaviour}}}}}\n    spec:\n      restartPolicy: Never\n      \
             containers: [{{name: c, image: registry.example/job:1}}]\n"
        )
    };
    world.repo.write("prune-last/job.yaml", &job("pending", "slow"));
    world.repo.commit("with a slow job");
    wait_for("the job is waited for", 60, || {
        let app = world.agent.app("prune-last")?;
        let state = app["status"]["operationState"].to_string();
        if state.contains("waiting") && state.contains("job.batch/slow") { Ok(()) } else { Err(state) }
    });
    assert!(world.get("configmap/goes", "{.metadata.uid}").is_ok(), "it was deleted before all was healthy");
    world.cluster.kubectl(&[
        "-n",
        "prune-last",
        "annotate",
        "pod",
        "-l",
        "job-name=slow",
        "--overwrite",
        "fake-kubelet.pintle.dev/behaviour=complete",
    ]);
    world.wait_gone("configmap/goes");
}

#[test]
fn if_not_present_makes_it_once_and_ignore_leaves_it_alone() {
    let mut world = World::new("once-only");
    world.write_annotated("made", "git", "pintle.dev/apply: IfNotPresent");
    world.write_annotated("ignored", "git", "pintle.dev/apply: Ignore");
    world.synced();
    assert!(world.get("configmap/ignored", "{.metadata.uid}").is_err(), "Ignore was applied");
    let patch = r#"{"data":{"value":"hand"}}"#;
    world.cluster.kubectl(&["-n", "once-only", "patch", "configmap", "made", "-p", patch]);
    world.write_annotated("made", "second", "pintle.dev/apply: IfNotPresent");
    let second = world.repo.commit("second");
    world.wait_synced(&second);
    assert_eq!(world.get("configmap/made", "{.data.value}").unwrap(), "hand");
    world.cluster.kubectl(&["-n", "once-only", "delete", "configmap", "made"]);
    world.wait_value("configmap/made", "{.data.value}", "second");
}

#[test]
fn a_pause_holds_sync_and_self_heal_survives_the_store_and_ends_by_itself() {
    let mut world = World::new("paused");
    world.write_map("settings", "git");
    world.synced();
    let clock = world.agent.path("clock");
    std::fs::write(&clock, "0 0").unwrap();
    world.agent.env("PINTLE_TEST_CLOCK", clock.to_str().unwrap());
    world.agent.kill();
    world.agent.start();
    wait_for("it answers", 60, || world.agent.verdict("paused").map(|_| ()));
    world.agent.ok(&["pause", "paused", "--for", "2h", "--reason", "works on the line"]);
    world.wait_condition(&["Paused", "works on the line", "pintle resume paused"]);
    world.write_map("settings", "second");
    let second = world.repo.commit("second");
    wait_for("it is rendered, and not synced", 60, || match world.agent.verdict("paused")? {
        (sync, _, revision) if sync == "OutOfSync" && revision == second => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let patch = r#"{"data":{"value":"hand"}}"#;
    world.cluster.kubectl(&["-n", "paused", "patch", "configmap", "settings", "-p", patch]);
    // The store is lost: the pause stands on the ApplySet parent.
    world.agent.kill();
    std::fs::remove_dir_all(world.agent.path("state")).unwrap();
    world.agent.start();
    world.wait_condition(&["Paused", "works on the line"]);
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "hand");
    std::fs::write(&clock, "7300 7300").unwrap();
    world.wait_value("configmap/settings", "{.data.value}", "second");
    assert!(!world.agent.conditions("paused").contains("Paused"));
}

#[test]
fn a_cascade_shows_its_plan_first_and_deletes_what_is_its_own_with_hooks_around() {
    let mut world = World::new("cascade");
    let hook = |name: &str, phase: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{argocd.argoproj.io/hook: {phase}}}\nspec:\n  \
             template:\n    metadata: {{annotations: {{fake-kubelet.pintle.dev/behaviour: complete}}}}\n    spec:\n      \
             restartPolicy: Never\n      containers: [{{name: c, image: registry.example/job:1}}]\n"
        )
    };
    world.repo.write("cascade/before.yaml", &hook("before", "PreDelete"));
    world.repo.write("cascade/after.yaml", &hook("after", "PostDelete"));
    world.write_map("settings", "git");
    world.write_annotated("kept", "git", &format!("{OPTIONS}: Delete=false"));
    world.synced();
    let orphan = world.agent.run(&["app", "delete", "cascade"]);
    assert_eq!(orphan.status.code(), Some(2), "one of --orphan and --cascade must be said");
    let defined = world.agent.run(&["app", "delete", "cascade", "--cascade"]);
    let said = String::from_utf8_lossy(&defined.stderr).into_owned();
    assert!(!defined.status.success() && said.contains("cascade.yaml"), "{said}");
    std::fs::remove_file(world.agent.path("apps.d/cascade.yaml")).unwrap();
    // A folder that becomes empty keeps the last good set: another application stays in it.
    world.agent.application("other", &world.front.url("fleet"), "other", "cascade", "syncOptions: []");
    world.wait_condition(&["Detached"]);
    let output = world.agent.run(&["app", "delete", "cascade", "--cascade"]);
    let plan =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        plan.contains("settings") && plan.contains("before") && !plan.contains("configmap/kept"),
        "{plan}"
    );
    assert!(world.get("configmap/settings", "{.metadata.uid}").is_ok(), "a plan deleted something");
    let token: String = plan.split("--confirm ").nth(1).expect("a token").chars().take(8).collect();
    let wrong = world.agent.run(&["app", "delete", "cascade", "--cascade", "--confirm", "deadbeef"]);
    assert!(world.get("configmap/settings", "{.metadata.uid}").is_ok(), "{wrong:?}");
    world.agent.ok(&["app", "delete", "cascade", "--cascade", "--confirm", &token]);
    world.wait_gone("configmap/settings");
    world.wait_value("job/after", "{.status.succeeded}", "1");
    assert!(world.get("configmap/kept", "{.metadata.uid}").is_ok(), "Delete=false was deleted");
    let list = world.agent.ok(&["app", "list"]);
    assert!(!list.contains("argocd/cascade"), "{list}");
}
