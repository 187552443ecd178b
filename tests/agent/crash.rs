//! kill -9 at named points: the agent goes on, nothing is lost, nothing is done twice.

use crate::World;

#[test]
fn after_a_kill_at_any_commit_point_the_agent_converges_and_knows_what_it_made() {
    let mut world = World::new("killed");
    world.write_map("first", "git");
    world.synced();
    world.agent.stop();
    let points = [
        "fetched",
        "rendered",
        "committed",
        "journalled",
        "begun",
        "applying",
        "applied",
        "applied:2",
        "deleting",
        "deleted",
    ];
    for (index, point) in points.into_iter().enumerate() {
        // Each commit creates two objects and lets one of the round before go.
        world.write_map(&format!("a{index}"), point);
        world.write_map(&format!("b{index}"), point);
        if index > 0 {
            world.repo.remove(&format!("killed/a{}.yaml", index - 1));
        }
        let commit = world.repo.commit(point);
        world.agent.env("PINTLE_TEST_CRASH", point);
        world.agent.start();
        let killed = crate::support::wait_for("the crash point is reached", 60, || {
            if world.agent.has_ended() { Ok(true) } else { Err(format!("{point}\n{}", world.agent.log())) }
        });
        assert!(killed);
        world.agent.env("PINTLE_TEST_CRASH", "");
        world.agent.start();
        world.wait_synced(&commit);
        world.wait_value(&format!("configmap/b{index}"), "{.data.value}", point);
        let app = world.agent.app("killed").unwrap();
        let known = app["status"]["resources"].as_array().unwrap().len();
        let listed = world.cluster.kubectl(&[
            "-n",
            "killed",
            "get",
            "configmap",
            "-l",
            "pintle.dev/agent",
            "-o",
            "name",
        ]);
        assert_eq!(
            listed.lines().count(),
            known,
            "inventory and cluster differ after {point}:\n{listed}\n{app}"
        );
        world.agent.stop();
    }
}

#[test]
fn after_forty_kills_at_random_moments_inventory_and_cluster_are_equal() {
    let mut world = World::new("random-kills");
    world.write_map("first", "git");
    world.synced();
    let mut seed = 7_u64;
    let mut commit = String::new();
    for round in 0..40_u64 {
        // Numerical Recipes' generator: the same moments at every run, as far as the machine allows.
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        world.write_map(&format!("o{}", round % 7), &round.to_string());
        if round % 3 == 2 {
            world.repo.remove(&format!("random-kills/o{}.yaml", round % 7));
        }
        commit = world.repo.commit(&format!("round {round}"));
        // Killed a few requests after the commit: in the fetch, in the sync, or after it.
        let requests =
            |world: &World| world.cluster.audit().iter().filter(|r| r.namespace == "random-kills").count();
        let (git, api) = (world.front.requests().len(), requests(&world));
        let (polls, writes) = ((seed >> 33) as usize % 3, (seed >> 40) as usize % 3);
        crate::support::wait_for("something to kill", 30, || {
            let enough = world.front.requests().len() >= git + 1 + polls || requests(&world) > api + writes;
            if enough { Ok(()) } else { Err(world.agent.log()) }
        });
        world.agent.kill();
        world.agent.start();
    }
    world.wait_synced(&commit);
    let app = world.agent.app("random-kills").unwrap();
    let known = app["status"]["resources"].as_array().unwrap().len();
    let listed = world.cluster.kubectl(&[
        "-n",
        "random-kills",
        "get",
        "configmap",
        "-l",
        "pintle.dev/agent",
        "-o",
        "name",
    ]);
    assert_eq!(listed.lines().count(), known, "{listed}\n{app}");
    assert!(!world.agent.log().contains("moved to"), "the store was damaged by a kill");
}

#[test]
fn an_api_server_that_is_killed_and_comes_back_is_guarded_again_without_help() {
    let mut cluster = crate::support::control_plane::ControlPlane::start();
    let root = tempfile::tempdir().unwrap();
    let repo = crate::support::git::Repo::new(root.path(), "fleet");
    let front = crate::support::git_front::GitFront::start(root.path(), "user", "secret");
    let mut agent = crate::support::agent::Agent::new(&cluster.kubeconfig(), &front, "user", "secret");
    repo.write("x/settings.yaml", &crate::map("settings", "git"));
    let commit = repo.commit("first");
    agent.application("x", &front.url("fleet"), "x", "default", crate::AUTOMATED);
    agent.start();
    let synced = |agent: &crate::support::agent::Agent| match agent.verdict("x")? {
        (sync, _, revision) if sync == "Synced" && revision == commit => Ok(()),
        other => Err(format!("{other:?} {} {}", agent.conditions("x"), agent.log())),
    };
    crate::support::wait_for("Synced", 60, || synced(&agent));
    cluster.restart();
    cluster.kubectl(&["patch", "configmap", "settings", "--type=merge", "-p", r#"{"data":{"value":"x"}}"#]);
    crate::support::wait_for("the drift is reverted", 90, || {
        let value = cluster.kubectl(&["get", "configmap", "settings", "-o", "jsonpath={.data.value}"]);
        if value == "git" { Ok(()) } else { Err(format!("{value}\n{}", agent.log())) }
    });
    crate::support::wait_for("Synced again", 60, || synced(&agent));
}

#[test]
fn kills_around_hooks_run_no_hook_twice_for_one_commit() {
    let mut world = World::new("hook-kills");
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: migrate-\n  annotations: \
               {argocd.argoproj.io/hook: PreSync}\nspec:\n  template:\n    metadata: \
               {annotations: {fake-kubelet.pintle.dev/behaviour: complete}}\n    spec:\n      restartPolicy: Never\n      \
               containers: [{name: c, image: registry.example/job:1}]\n";
    world.repo.write("hook-kills/job.yaml", job);
    world.write_map("settings", "0");
    let mut commits = vec![world.synced()];
    let jobs = |world: &World| {
        let text = world.cluster.kubectl(&["-n", "hook-kills", "get", "jobs", "-o", "name"]);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut seed = 11_u64;
    for round in 1..=12_u64 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        world.write_map("settings", &round.to_string());
        let commit = world.repo.commit(&format!("round {round}"));
        commits.push(commit.clone());
        let requests =
            |world: &World| world.cluster.audit().iter().filter(|r| r.namespace == "hook-kills").count();
        let (api, writes) = (requests(&world), (seed >> 33) as usize % 5);
        crate::support::wait_for("something to kill", 30, || {
            let made = jobs(&world).iter().any(|name| name.contains(&commit[..7]));
            if made || requests(&world) > api + writes { Ok(()) } else { Err(world.agent.log()) }
        });
        world.agent.kill();
        world.agent.start();
        world.wait_value("configmap/settings", "{.data.value}", &round.to_string());
    }
    world.wait_synced(&commits[12]);
    let found = jobs(&world);
    for commit in &commits {
        let of = found.iter().filter(|name| name.contains(&commit[..7])).count();
        assert_eq!(of, 1, "{commit}: {found:?}\n{}", world.agent.log());
    }
}
