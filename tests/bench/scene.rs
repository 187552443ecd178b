//! A control plane, a git server with the load in it, and agents that hold it.

use std::time::{Duration, Instant};

use pintle::client::{Client, connect};
use pintle_api::application::SyncStatus;
use tokio::runtime::Runtime;

use crate::load;
use crate::support::agent::Agent;
use crate::support::control_plane::{Audited, ControlPlane};
use crate::support::git::Repo;
use crate::support::git_front::GitFront;

/// How long anything here may take: 5,000 objects through a slow API server.
const PATIENCE: Duration = Duration::from_mins(10);
/// The folder in git, and the name of the application.
pub const APP: &str = "bench";

/// What all measurements of one size share.
pub struct Scene {
    pub cluster: ControlPlane,
    pub front: GitFront,
    pub repo: Repo,
    pub client: kube::Client,
    pub runtime: Runtime,
    pub count: usize,
    pub commit: String,
    _root: tempfile::TempDir,
}

/// An agent with its namespace.
pub struct Held {
    pub agent: Agent,
    pub namespace: String,
}

impl Scene {
    /// Starts everything and commits `count` objects.
    pub fn new(count: usize) -> Self {
        let cluster = ControlPlane::start();
        let root = tempfile::tempdir().expect("a temporary folder");
        let repo = Repo::new(root.path(), "fleet");
        load::write(&repo, APP, count);
        let commit = repo.commit("the load");
        let front = GitFront::start(root.path(), "user", "secret");
        let runtime = Runtime::new().expect("tokio");
        let client = runtime.block_on(client(&cluster));
        Self { cluster, front, repo, client, runtime, count, commit, _root: root }
    }

    /// A namespace.
    pub fn namespace(&self, name: &str) -> String {
        self.cluster.kubectl(&["create", "namespace", name]);
        name.to_owned()
    }

    /// An agent with an empty store and a namespace for the load; it is not started.
    pub fn agent(&self, name: &str) -> Held {
        let namespace = self.namespace(name);
        let agent = Agent::new(&self.cluster.kubeconfig(), &self.front, "user", "secret");
        agent.identify(name, &format!("{name}-agent"));
        let policy = "automated: {prune: true, selfHeal: true}";
        agent.application(APP, &self.front.url("fleet"), APP, &namespace, policy);
        Held { agent, namespace }
    }

    /// Waits until the agent says Synced at this commit, by its socket: a look costs it next to nothing.
    pub fn wait_synced(&self, held: &Held, commit: &str) {
        self.until(held, &format!("Synced at {commit}"), |status| {
            status.apps.iter().any(|app| app.sync == SyncStatus::Synced && app.revision == commit)
        });
    }

    /// Waits until a look at the status finds what is wanted.
    pub fn until(&self, held: &Held, what: &str, found: impl Fn(&pintle_api::Status) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        self.runtime.block_on(async {
            loop {
                let status = match self.socket(held).await {
                    Some(client) => client.status().await.ok(),
                    None => None,
                };
                if status.as_ref().is_some_and(&found) {
                    return;
                }
                assert!(Instant::now() < deadline, "{what}: {status:#?}\n{}", held.agent.log());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }

    /// The agent's socket, when it answers.
    pub async fn socket(&self, held: &Held) -> Option<Client> {
        connect(&held.agent.path("state/pintle.sock")).await.ok().flatten()
    }

    /// Lets some polls of the ref pass: what the last change made the agent do has ended then.
    pub fn polls(&self, count: usize) {
        let wanted = self.front.requests().len() + count;
        let deadline = Instant::now() + PATIENCE;
        while self.front.requests().len() < wanted {
            assert!(Instant::now() < deadline, "the agent does not poll");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Requests of agents so far.
    pub fn audit(&self) -> Vec<Audited> {
        self.cluster.audit()
    }

    pub fn settled(&self, namespace: &str) {
        self.runtime.block_on(load::settled(&self.client, namespace, self.count));
    }
}

impl Held {
    pub fn pid(&self) -> u32 {
        self.agent.pid().expect("the agent runs")
    }
}

async fn client(cluster: &ControlPlane) -> kube::Client {
    pintle::tls::install_crypto_provider();
    let kubeconfig = kube::config::Kubeconfig::read_from(cluster.kubeconfig()).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    config.read_timeout = None;
    kube::Client::try_from(config).expect("a client")
}
