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
