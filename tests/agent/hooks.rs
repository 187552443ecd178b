//! Hooks, phases and waves on the real API server, with Jobs whose Pods really end.

use crate::World;
use crate::support::wait_for;

/// A Job whose Pod does what the fake kubelet is told; `annotations` are those of the Job.
fn job(name: &str, behaviour: &str, annotations: &str) -> String {
    job_named(&format!("name: {name}"), behaviour, annotations, "")
}

fn job_named(name: &str, behaviour: &str, annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  {name}\n  annotations: {{{annotations}}}\nspec:\n  backoffLimit: 0\n{spec}  \
         template:\n    metadata: {{annotations: {{fake-kubelet.pintle.dev/behaviour: {behaviour}}}}}\n    spec:\n      \
         restartPolicy: Never\n      containers: [{{name: c, image: registry.example/job:1}}]\n"
    )
}

const HOOK: &str = "argocd.argoproj.io/hook";
const POLICY: &str = "argocd.argoproj.io/hook-delete-policy";

impl World {
    fn write_job(&self, file: &str, text: &str) {
        self.repo.write(&format!("{}/{file}.yaml", self.name), text);
    }

    fn wait_failed(&self, wanted: &[&str]) -> String {
        self.wait_condition(&[&["SyncError"], wanted].concat())
    }
}

#[test]
fn hooks_run_before_and_after_a_sync_and_its_results_name_them() {
    let mut world = World::new("hooked");
    world.write_job("migrate", &job("migrate", "complete", &format!("{HOOK}: PreSync")));
    world.write_job("notify", &job("notify", "complete", &format!("{HOOK}: PostSync")));
    world.write_job("skipped", &job("skipped", "complete", &format!("{HOOK}: Skip")));
    world.write_map("settings", "git");
    world.synced();
    world.wait_value("job/notify", "{.status.succeeded}", "1");
    world.wait_value("job/migrate", "{.status.succeeded}", "1");
    assert!(world.get("job/skipped", "{.metadata.name}").is_err(), "Skip was applied");
    let (sync, health, _) = world.agent.verdict("hooked").unwrap();
    assert_eq!(
        (sync.as_str(), health.as_str()),
        ("Synced", "Healthy"),
        "hooks are no part of sync and health"
    );
    let app = world.agent.app("hooked").unwrap();
    let results = app["status"]["operationState"]["syncResult"]["resources"].to_string();
    assert!(
        results.contains("PreSync hook succeeded") && results.contains("PostSync hook succeeded"),
        "{results}"
    );
    // A new commit runs them again, with objects made anew; drift does not.
    let first = world.get("job/migrate", "{.metadata.uid}").unwrap();
    world.cluster.kubectl(&[
        "-n",
        "hooked",
        "patch",
        "configmap",
        "settings",
        "-p",
        r#"{"data":{"value":"x"}}"#,
    ]);
    world.wait_value("configmap/settings", "{.data.value}", "git");
    assert_eq!(world.get("job/migrate", "{.metadata.uid}").unwrap(), first, "a revert ran the hooks");
    world.write_map("settings", "second");
    let second = world.repo.commit("second");
    world.wait_synced(&second);
    wait_for("the sync with its hooks has ended", 60, || {
        let app = world.agent.app("hooked")?;
        let state = &app["status"]["operationState"];
        if state["phase"] == "Succeeded" && state.to_string().contains(&second) {
            Ok(())
        } else {
            Err(state.to_string())
        }
    });
    assert_ne!(
        world.get("job/migrate", "{.metadata.uid}").unwrap(),
        first,
        "BeforeHookCreation is the default"
    );
}

#[test]
fn a_failed_pre_sync_hook_stops_the_sync_and_runs_sync_fail() {
    let mut world = World::new("presync-fails");
    world.write_job("migrate", &job("migrate", "fail", &format!("{HOOK}: PreSync")));
    world.write_job("sorry", &job("sorry", "complete", &format!("{HOOK}: SyncFail")));
    world.write_map("settings", "git");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    world.wait_failed(&["PreSync hook job.batch/migrate", "failed"]);
    world.wait_value("job/sorry", "{.status.succeeded}", "1");
    assert!(
        world.get("configmap/settings", "{.data.value}").is_err(),
        "the sync went on after its PreSync hook failed"
    );
}

#[test]
fn hook_delete_policies_mean_what_they_say() {
    let mut world = World::new("policies");
    world.write_job("gone", &job("gone", "complete", &format!("{HOOK}: PreSync, {POLICY}: HookSucceeded")));
    world.write_job("stays", &job("stays", "complete", &format!("{HOOK}: PreSync, {POLICY}: HookFailed")));
    world.write_map("settings", "git");
    world.synced();
    wait_for("HookSucceeded goes", 60, || match world.get("job/gone", "{.metadata.uid}") {
        Ok(uid) => Err(format!("{uid}\n{}", world.agent.log())),
        Err(_) => Ok(()),
    });
    world.wait_value("job/stays", "{.status.succeeded}", "1");
    world.write_job(
        "gone",
        &job("gone", "fail", &format!("{HOOK}: PreSync, '{POLICY}': 'HookSucceeded,HookFailed'")),
    );
    world.repo.commit("failing");
    world.wait_failed(&["PreSync hook job.batch/gone"]);
    wait_for("HookFailed goes", 60, || match world.get("job/gone", "{.metadata.uid}") {
        Ok(uid) => Err(uid),
        Err(_) => Ok(()),
    });
}

#[test]
fn a_job_with_a_ttl_of_nothing_succeeds_when_its_completion_was_seen() {
    let mut world = World::new("ttl");
    let text =
        job_named("name: brief", "complete", &format!("{HOOK}: PreSync"), "  ttlSecondsAfterFinished: 0\n");
    world.write_job("brief", &text);
    world.write_map("settings", "git");
    world.synced();
    world.wait_value("configmap/settings", "{.data.value}", "git");
    let app = world.agent.app("ttl").unwrap();
    assert_eq!(app["status"]["operationState"]["phase"], "Succeeded", "{}", app["status"]["operationState"]);
}

#[test]
fn a_hook_that_vanishes_unseen_fails_with_that_reason() {
    let mut world = World::new("hook-vanished");
    world.write_job("slow", &job("slow", "pending", &format!("{HOOK}: PreSync")));
    world.write_map("settings", "git");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    wait_for("the hook runs", 60, || world.get("job/slow", "{.metadata.uid}"));
    world.cluster.kubectl(&["-n", "hook-vanished", "delete", "job", "slow", "--wait=true"]);
    world.wait_failed(&["PreSync hook job.batch/slow", "vanished before its result was seen"]);
}

#[test]
fn a_hook_with_generate_name_gets_a_name_of_its_own_in_every_operation() {
    let mut world = World::new("generated");
    let text = job_named("generateName: migrate-", "complete", &format!("{HOOK}: PreSync"), "");
    world.write_job("migrate", &text);
    world.write_map("settings", "git");
    world.synced();
    let jobs = |world: &World| {
        let names = world.cluster.kubectl(&["-n", "generated", "get", "jobs", "-o", "name"]);
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(jobs(&world).len(), 1);
    world.write_map("settings", "second");
    let second = world.repo.commit("second");
    world.wait_synced(&second);
    wait_for("a second one", 60, || {
        let found = jobs(&world);
        if found.len() == 2 && found.iter().any(|name| name.contains(&second[..7])) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    });
}

#[test]
fn waves_wait_for_health_and_a_wave_that_never_gets_healthy_ends_with_what_it_waits_for() {
    let mut world = World::new("waves");
    world.write_job("first", &job("first", "pending", "argocd.argoproj.io/sync-wave: '-1'"));
    world.write_job("second", &crate::map("second", "git"));
    world.repo.commit("first");
    world.application();
    let file = world.agent.path("apps.d/waves.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let text =
        text.replace("  name: waves\n", "  name: waves\n  annotations: {pintle.dev/sync-timeout: 5s}\n");
    std::fs::write(&file, text).unwrap();
    world.agent.start();
    world.wait_failed(&["not healthy in time", "job.batch/first"]);
    assert!(world.get("configmap/second", "{.data.value}").is_err(), "the second wave began");
    // A Job's template cannot be changed: said so, with the option that helps.
    world.write_job("first", &job("first", "complete", "argocd.argoproj.io/sync-wave: '-1'"));
    world.repo.commit("cured");
    world.wait_failed(&["job.batch/first", "immutable", "Force=true"]);
    let options = "argocd.argoproj.io/sync-wave: '-1', argocd.argoproj.io/sync-options: Force=true";
    world.write_job("first", &job("first", "complete", options));
    let forced = world.repo.commit("forced");
    world.wait_value("configmap/second", "{.data.value}", "git");
    world.wait_synced(&forced);
}

#[test]
fn a_hook_that_runs_survives_a_kill_and_is_not_run_twice() {
    let mut world = World::new("resumed");
    world.write_job("migrate", &job("migrate", "pending", &format!("{HOOK}: PreSync")));
    world.write_map("settings", "git");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    let uid = wait_for("the hook runs", 60, || world.get("job/migrate", "{.metadata.uid}"));
    world.agent.kill();
    world.agent.start();
    wait_for("the operation goes on", 60, || {
        let app = world.agent.app("resumed")?;
        let state = &app["status"]["operationState"];
        if state["phase"] == "Running" && state["message"].to_string().contains("waiting") {
            Ok(())
        } else {
            Err(format!("{state}\n{}", world.agent.log()))
        }
    });
    assert_eq!(world.get("job/migrate", "{.metadata.uid}").unwrap(), uid, "the hook was made anew");
    // Now it ends well.
    world.cluster.kubectl(&[
        "-n",
        "resumed",
        "annotate",
        "pod",
        "-l",
        "job-name=migrate",
        "--overwrite",
        "fake-kubelet.pintle.dev/behaviour=complete",
    ]);
    world.wait_value("configmap/settings", "{.data.value}", "git");
    assert_eq!(world.get("job/migrate", "{.metadata.uid}").unwrap(), uid);
}

#[test]
fn a_new_commit_never_interrupts_a_running_hook() {
    let mut world = World::new("uninterrupted");
    world.write_job("migrate", &job("migrate", "pending", &format!("{HOOK}: PreSync")));
    world.write_map("settings", "git");
    world.repo.commit("first");
    world.application();
    world.agent.start();
    let uid = wait_for("the hook runs", 60, || world.get("job/migrate", "{.metadata.uid}"));
    world.write_map("settings", "second");
    let second = world.repo.commit("second");
    wait_for("the newer commit is rendered", 60, || {
        let (_, _, revision) = world.agent.verdict("uninterrupted")?;
        if revision == second { Ok(()) } else { Err(revision) }
    });
    assert_eq!(world.get("job/migrate", "{.metadata.uid}").unwrap(), uid);
    let app = world.agent.app("uninterrupted").unwrap();
    assert_eq!(app["status"]["operationState"]["phase"], "Running");
    // A person may end it: the hook goes.
    world.agent.ok(&["app", "terminate-op", "uninterrupted"]);
    wait_for("the hook of the terminated operation is gone or another's", 60, || {
        match world.get("job/migrate", "{.metadata.uid}") {
            Ok(found) if found == uid => Err(found),
            _ => Ok(()),
        }
    });
}

#[test]
fn helm_install_hooks_run_on_the_first_sync_only() {
    let mut world = World::new("helm-hooks");
    world.write_job("install", &job("install", "complete", "helm.sh/hook: pre-install"));
    world.write_job("upgrade", &job("upgrade", "complete", "helm.sh/hook: pre-upgrade"));
    world.write_map("settings", "git");
    world.synced();
    let uid = world.get("job/install", "{.metadata.uid}").unwrap();
    assert!(world.get("job/upgrade", "{.metadata.uid}").is_err(), "an upgrade hook ran on the first install");
    world.write_map("settings", "second");
    let second = world.repo.commit("second");
    world.wait_synced(&second);
    wait_for("the upgrade hook ran", 60, || world.get("job/upgrade", "{.metadata.uid}"));
    assert_eq!(world.get("job/install", "{.metadata.uid}").unwrap(), uid, "the install hook ran again");
}

#[test]
fn an_unknown_hook_is_named_with_file_and_valid_ones() {
    let mut world = World::new("unknown-hook");
    world.write_job("x", &job("x", "complete", &format!("{HOOK}: BeforeSync")));
    world.repo.commit("first");
    world.application();
    world.agent.start();
    world.wait_condition(&["x.yaml", "`BeforeSync`", "PreSync"]);
}
