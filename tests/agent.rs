//! The real binary against a real API server, real git over HTTPS and real sled. A test's name is its rule.

#[path = "support/mod.rs"]
mod support;

#[path = "agent/bad_input.rs"]
mod bad_input;
#[path = "agent/crash.rs"]
mod crash;
#[path = "agent/drift.rs"]
mod drift;
#[path = "agent/faults.rs"]
mod faults;
#[path = "agent/hooks.rs"]
mod hooks;
#[path = "agent/install.rs"]
mod install;
#[path = "agent/options.rs"]
mod options;
#[path = "agent/ownership.rs"]
mod ownership;
#[path = "agent/rest.rs"]
mod rest;
#[path = "agent/surface.rs"]
mod surface;

use std::sync::OnceLock;

use support::agent::Agent;
use support::control_plane::ControlPlane;
use support::git::Repo;
use support::git_front::GitFront;
use support::wait_for;

/// One control plane for all tests of this binary; it ends with the process.
fn cluster() -> &'static ControlPlane {
    static CLUSTER: OnceLock<ControlPlane> = OnceLock::new();
    CLUSTER.get_or_init(ControlPlane::start)
}

/// Namespace of the agent's own objects in the world of this name.
fn agent_namespace(world: &str) -> String {
    format!("agent-{world}")
}

/// A namespace, a repository, a git server and an agent of one test.
struct World {
    cluster: &'static ControlPlane,
    name: &'static str,
    repo: Repo,
    front: GitFront,
    agent: Agent,
    _root: tempfile::TempDir,
}

const AUTOMATED: &str = "automated: {prune: true, selfHeal: true}";

impl World {
    /// `name` is the namespace, the application and the folder in git.
    fn new(name: &'static str) -> Self {
        let cluster = cluster();
        cluster.kubectl(&["create", "namespace", name]);
        let root = tempfile::tempdir().expect("a temporary folder");
        let repo = Repo::new(root.path(), "fleet");
        let front = GitFront::start(root.path(), "user", "secret");
        let agent = Agent::new(&cluster.kubeconfig(), &front, "user", "secret");
        agent.identify("test-agent", &agent_namespace(name));
        Self { cluster, name, repo, front, agent, _root: root }
    }

    /// One ConfigMap in git.
    fn write_map(&self, object: &str, value: &str) {
        let text = map(object, value);
        self.repo.write(&format!("{}/{object}.yaml", self.name), &text);
    }

    fn application(&self) {
        self.agent.application(self.name, &self.front.url("fleet"), self.name, self.name, AUTOMATED);
    }

    /// Commits, starts the agent with the application, waits until it is synced.
    fn synced(&mut self) -> String {
        let commit = self.repo.commit("first");
        self.application();
        self.agent.start();
        self.wait_synced(&commit);
        commit
    }

    fn wait_synced(&self, commit: &str) {
        wait_for(&format!("{} Synced at {commit}", self.name), 90, || {
            let (sync, health, revision) = self.agent.verdict(self.name)?;
            if sync == "Synced" && revision == commit {
                return Ok(());
            }
            Err(format!(
                "{sync} {health} {revision}\n{}{}",
                self.agent.conditions(self.name),
                self.agent.log()
            ))
        });
    }

    /// Waits for a condition whose text holds all of these.
    fn wait_condition(&self, wanted: &[&str]) -> String {
        wait_for(&format!("a condition with {wanted:?}"), 60, || {
            let found = self.agent.conditions(self.name);
            if wanted.iter().all(|text| found.contains(text)) {
                Ok(found)
            } else {
                Err(format!("{found}\n{}", self.agent.log()))
            }
        })
    }

    fn get(&self, object: &str, path: &str) -> Result<String, String> {
        let path = format!("jsonpath={path}");
        self.cluster.try_kubectl(&["-n", self.name, "get", object, "-o", &path], "")
    }

    fn wait_value(&self, object: &str, path: &str, wanted: &str) {
        wait_for(&format!("{object} {path} = {wanted}"), 60, || {
            let found = self.get(object, path).unwrap_or_else(|error| error);
            if found == wanted { Ok(()) } else { Err(format!("{found}\n{}", self.agent.log())) }
        });
    }
}

fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: \"{value}\"}}\n")
}
