//! At rest nothing is written, and nothing is asked beside the ref check.

use crate::World;
use crate::support::wait_for;

#[test]
fn a_pass_over_an_unchanged_world_writes_nothing_and_asks_only_git() {
    let mut world = World::new("at-rest");
    for index in 0..20 {
        world.write_map(&format!("m{index}"), "git");
    }
    world.synced();
    let generation = |world: &World| {
        let status: serde_json::Value =
            serde_json::from_str(&world.agent.ok(&["status", "-o", "json"])).unwrap();
        status["store"]["generation"].as_u64().unwrap()
    };
    // The last commit of the sync may still be under way.
    let before = wait_for("the store is quiet", 30, || {
        let first = generation(&world);
        let polls = world.front.requests().len();
        wait_for("two polls", 30, || {
            if world.front.requests().len() > polls + 2 { Ok(()) } else { Err(String::new()) }
        });
        if generation(&world) == first { Ok(first) } else { Err("it still writes".to_owned()) }
    });
    let ours =
        |world: &World| world.cluster.audit().iter().filter(|request| request.namespace == "at-rest").count();
    let (requests, polls) = (ours(&world), world.front.requests().len());
    wait_for("five polls", 60, || {
        if world.front.requests().len() >= polls + 5 { Ok(()) } else { Err(String::new()) }
    });
    assert_eq!(generation(&world), before, "the store was written at rest");
    assert_eq!(ours(&world), requests, "the API server was asked at rest");
    let new: Vec<String> = world.front.requests().split_off(polls);
    assert!(new.iter().all(|request| request == "POST /fleet.git/git-upload-pack"), "{new:?}");
}

#[test]
fn a_one_shot_pass_syncs_and_a_second_one_writes_nothing() {
    let world = World::new("one-shot");
    world.write_map("settings", "git");
    let commit = world.repo.commit("first");
    world.application();
    let output = world.agent.run(&["once"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "git");
    let version = world.get("configmap/settings", "{.metadata.resourceVersion}").unwrap();
    let writes = |world: &World| {
        let audit = world.cluster.audit();
        audit
            .iter()
            .filter(|r| r.namespace == "one-shot" && matches!(r.verb.as_str(), "patch" | "create" | "delete"))
            .count()
    };
    let before = writes(&world);
    let output = world.agent.run(&["once"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(writes(&world), before, "a second pass wrote");
    assert_eq!(world.get("configmap/settings", "{.metadata.resourceVersion}").unwrap(), version);
    let (sync, _, revision) = world.agent.verdict("one-shot").unwrap();
    assert_eq!((sync.as_str(), revision), ("Synced", commit));
}

#[test]
fn full_ids_branches_and_annotated_tags_are_followed() {
    let mut world = World::new("refs");
    world.write_map("settings", "tagged");
    let tagged = world.repo.commit("tagged");
    world.repo.tag("v1.0");
    world.write_map("settings", "newer");
    world.repo.commit("newer");
    world.application();
    let file = world.agent.path("apps.d/refs.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("targetRevision: main", "targetRevision: v1.0")).unwrap();
    world.agent.start();
    world.wait_synced(&tagged);
    assert_eq!(world.get("configmap/settings", "{.data.value}").unwrap(), "tagged");
    std::fs::write(&file, text.replace("targetRevision: main", &format!("targetRevision: {tagged}")))
        .unwrap();
    world.wait_synced(&tagged);
    std::fs::write(&file, text).unwrap();
    world.wait_value("configmap/settings", "{.data.value}", "newer");
}

#[test]
fn sync_and_health_are_two_answers() {
    let mut world = World::new("two-answers");
    // What git wants is there, and it does not work: Synced and Degraded.
    world.repo.write(
        "two-answers/job.yaml",
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec:\n  backoffLimit: 0\n  template:\n    metadata: \
         {annotations: {fake-kubelet.pintle.dev/behaviour: fail}}\n    spec:\n      restartPolicy: Never\n      \
         containers: [{name: c, image: registry.example/migrate:1}]\n",
    );
    world.write_map("settings", "git");
    let commit = world.repo.commit("first");
    world.agent.application(
        "two-answers",
        &world.front.url("fleet"),
        "two-answers",
        "two-answers",
        "syncOptions: []",
    );
    world.agent.start();
    let verdict = |world: &World, wanted: (&str, &str)| {
        wait_for(&format!("{wanted:?}"), 60, || {
            let (sync, health, _) = world.agent.verdict("two-answers")?;
            let seen = format!("{sync} {health}\n{}", world.agent.log());
            if (sync.as_str(), health.as_str()) == wanted { Ok(()) } else { Err(seen) }
        });
    };
    verdict(&world, ("OutOfSync", "Missing"));
    world.agent.ok(&["sync", "two-answers"]);
    verdict(&world, ("Synced", "Degraded"));
    let output = world.agent.run(&["app", "wait", "two-answers", "--health", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(4), "waiting for health ends with its own exit code");
    // What is there works, and it is not what git wants: OutOfSync and Healthy.
    world.repo.remove("two-answers/job.yaml");
    world.repo.commit("without the job");
    wait_for("the job is to be pruned", 60, || {
        let (sync, _, revision) = world.agent.verdict("two-answers")?;
        if sync == "OutOfSync" && revision != commit { Ok(()) } else { Err(format!("{sync} {revision}")) }
    });
    world.agent.ok(&["sync", "two-answers", "--prune"]);
    verdict(&world, ("Synced", "Healthy"));
    world.cluster.kubectl(&[
        "-n",
        "two-answers",
        "patch",
        "configmap",
        "settings",
        "-p",
        r#"{"data":{"value":"hand"}}"#,
    ]);
    verdict(&world, ("OutOfSync", "Healthy"));
}
