//! The main job as a story: pull a pinned revision, sync it, hold it, also when cut off. `make demo` shows it, and
//! `make test` runs it. Exit code 0 only if everything held.

#![allow(clippy::print_stdout, reason = "the demo tells a story on the terminal")]

#[path = "../support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::process::ExitCode;

use support::agent::Agent;
use support::control_plane::{ControlPlane, kubectl};
use support::git::Repo;
use support::git_front::{GitFront, Mode};
use support::wait_for;

const USER: &str = "shop";
const PASSWORD: &str = "correct horse";
const OWN_NAMESPACE: &str = "pintle-demo";

fn main() -> ExitCode {
    let mut story = Story::begin();
    story.first_commit();
    story.hand_scaled();
    story.file_removed();
    story.cut_off();
    story.rolled_back();
    story.caught_up();
    story.end()
}

struct Story {
    cluster: Cluster,
    front: GitFront,
    repo: Repo,
    agent: Agent,
    checked: Vec<(String, bool)>,
    commits: Vec<String>,
    began: std::time::Instant,
    _root: tempfile::TempDir,
}

/// The embedded control plane, or the cluster of KUBECONFIG.
enum Cluster {
    Own(ControlPlane),
    Given(std::path::PathBuf),
}

impl Cluster {
    fn kubeconfig(&self) -> std::path::PathBuf {
        match self {
            Self::Own(own) => own.kubeconfig(),
            Self::Given(path) => path.clone(),
        }
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        kubectl(&self.kubeconfig(), arguments, "")
    }
}

impl Story {
    fn begin() -> Self {
        let given = std::env::var_os("PINTLE_DEMO_KUBECONFIG").filter(|path| !path.is_empty());
        let cluster = match given {
            Some(path) => Cluster::Given(path.into()),
            None => Cluster::Own(ControlPlane::start()),
        };
        let root = tempfile::tempdir().expect("a temporary folder");
        let repo = Repo::new(root.path(), "fleet");
        let front = GitFront::start(root.path(), USER, PASSWORD);
        let agent = Agent::new(&cluster.kubeconfig(), &front, USER, PASSWORD);
        // A namespace of its own: on somebody's cluster the demo must not claim what a real agent claims.
        agent.identify("test-agent", OWN_NAMESPACE);
        let began = std::time::Instant::now();
        say("a cluster is there, and a git server over HTTPS with its own CA and basic auth");
        Self { cluster, front, repo, agent, checked: Vec::new(), commits: Vec::new(), began, _root: root }
    }

    fn check(&mut self, what: &str, held: bool) {
        println!("   {} {what}", if held { "[ok]" } else { "[FAILED]" });
        self.checked.push((what.to_owned(), held));
    }

    fn show(&self, arguments: &[&str]) {
        println!("   $ pintle {}", arguments.join(" "));
        for line in self.agent.ok(arguments).lines() {
            println!("     {line}");
        }
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(arguments).unwrap_or_else(|error| error)
    }

    fn replicas(&self) -> String {
        self.kubectl(&["-n", "demo-shop", "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"])
    }

    /// Waits for a verdict at a commit.
    fn wait_synced(&mut self, commit: &str, health: &str) {
        let agent = &self.agent;
        wait_for(&format!("shop Synced and {health} at {commit}"), 90, || {
            let (sync, found, revision) = agent.verdict("shop")?;
            let good = sync == "Synced" && found == health && revision == commit;
            if good {
                Ok(())
            } else {
                Err(format!("{sync} {found} {revision}\n{}\n{}", agent.conditions("shop"), agent.log()))
            }
        });
    }

    fn first_commit(&mut self) {
        say("a commit is pulled and becomes Synced and Healthy");
        self.repo
            .write("shop/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo-shop}\n");
        self.repo.write("shop/web.yaml", &web(2, "1.0"));
        self.repo.write("shop/old.yaml", &config("old", "1"));
        self.repo.write("shop/settings.yaml", &config("settings", "first"));
        let first = self.repo.commit("shop: first version");
        self.commits.push(first.clone());
        let url = self.front.url("fleet");
        self.agent.application("shop", &url, "shop", "demo-shop", "automated: {prune: true, selfHeal: true}");
        self.agent.start();
        self.wait_synced(&first, "Healthy");
        self.show(&["app", "get", "shop"]);
        self.check("a pinned commit is Synced and Healthy", true);
        let before = self.cluster.kubectl(&[
            "create",
            "configmap",
            "never-ours",
            "-n",
            "demo-shop",
            "--from-literal=a=b",
        ]);
        self.check("somebody creates a ConfigMap beside ours", before.is_ok());
    }

    fn hand_scaled(&mut self) {
        say("somebody scales a Deployment by hand");
        let scaled = self.kubectl(&["-n", "demo-shop", "scale", "deployment", "web", "--replicas=5"]);
        println!("   $ kubectl scale deployment web --replicas=5\n     {}", scaled.trim());
        let event = wait_for("a DriftReverted event", 30, || {
            let events = self.kubectl(&[
                "-n",
                "demo-shop",
                "get",
                "events",
                "--field-selector",
                "reason=DriftReverted",
                "-o",
                "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}",
            ]);
            if events.contains("replicas") { Ok(events) } else { Err(events) }
        });
        for line in event.lines() {
            println!("     DriftReverted: {line}");
        }
        let replicas = self.replicas();
        self.check("it is put back to 2 replicas", replicas == "2");
        let named =
            event.contains("5 -> 2") && event.contains("kubectl") && event.contains("at or before 20");
        self.check("the event names path, values, manager and time", named);
    }

    fn file_removed(&mut self) {
        say("a file is removed from git");
        self.repo.remove("shop/old.yaml");
        let second = self.repo.commit("shop: remove old");
        self.commits.push(second.clone());
        self.wait_synced(&second, "Healthy");
        wait_for("old is pruned", 30, || {
            let found = self.cluster.kubectl(&["-n", "demo-shop", "get", "configmap", "old", "-o", "name"]);
            if found.is_err() { Ok(()) } else { Err("it is still there".to_owned()) }
        });
        self.check("its object is pruned", true);
        let kept = self.cluster.kubectl(&["-n", "demo-shop", "get", "configmap", "never-ours"]).is_ok();
        self.check("an object that was never ours stays", kept);
        self.repo.write("shop/settings.yaml", &config("settings", "second"));
        let third = self.repo.commit("shop: new settings");
        self.commits.push(third.clone());
        self.wait_synced(&third, "Healthy");
    }

    fn cut_off(&mut self) {
        say("git goes away, the agent is killed and started again");
        self.front.set(Mode::Down);
        self.agent.kill();
        self.agent.start();
        wait_for("the agent is back", 30, || self.agent.verdict("shop").map(|_| ()));
        let _ = self.cluster.kubectl(&[
            "-n",
            "demo-shop",
            "patch",
            "configmap",
            "settings",
            "--type=merge",
            "-p",
            "{\"data\":{\"value\":\"by hand\"}}",
        ]);
        wait_for("drift is reverted offline", 30, || {
            let value = self.kubectl(&[
                "-n",
                "demo-shop",
                "get",
                "configmap",
                "settings",
                "-o",
                "jsonpath={.data.value}",
            ]);
            if value == "second" { Ok(()) } else { Err(value) }
        });
        self.check("drift is still reverted", true);
        let status = wait_for("status tells that git is away", 30, || {
            let status = self.agent.ok(&["status"]);
            if status.contains("the last fetched revision stays deployed") { Ok(status) } else { Err(status) }
        });
        println!("   $ pintle status");
        for line in status.lines() {
            println!("     {line}");
        }
        self.check(
            "status says that git cannot be reached and how old the last fetch is",
            status.contains("ago"),
        );
        let (sync, health, _) = self.agent.verdict("shop").unwrap_or_default();
        self.check("the application stays Synced and Healthy", sync == "Synced" && health == "Healthy");
    }

    fn rolled_back(&mut self) {
        say("rollback to the first revision, with git still away");
        self.show(&["history", "shop"]);
        self.show(&["rollback", "shop", "1"]);
        let first = self.commits[0].clone();
        self.wait_synced(&first, "Healthy");
        let value = self.kubectl(&[
            "-n",
            "demo-shop",
            "get",
            "configmap",
            "settings",
            "-o",
            "jsonpath={.data.value}",
        ]);
        self.check("rollback works offline", value == "first");
        self.check(
            "and holds: the condition Pinned says so",
            self.agent.conditions("shop").contains("Pinned"),
        );
    }

    fn caught_up(&mut self) {
        say("git comes back");
        self.front.set(Mode::Up);
        wait_for("git is polled again", 60, || {
            let status = self.agent.ok(&["status"]);
            if status.contains("the last fetched revision stays deployed") { Err(status) } else { Ok(()) }
        });
        let (_, _, revision) = self.agent.verdict("shop").unwrap_or_default();
        let held = revision == self.commits[0];
        self.check("the pin still holds with git back", held);
        self.show(&["resume", "shop"]);
        let third = self.commits[2].clone();
        self.wait_synced(&third, "Healthy");
        self.check("the agent catches up after resume", true);
        let ended = self.agent.stop();
        self.check("it ends in order on SIGTERM", ended);
    }

    fn end(mut self) -> ExitCode {
        let all = self.checked.iter().all(|(_, held)| *held);
        let mut table = String::new();
        for (what, held) in &self.checked {
            let _ = writeln!(table, "  {:<8} {what}", if *held { "held" } else { "FAILED" });
        }
        println!(
            "\nWhat was checked:\n{table}\n{} in {:.0} s",
            if all { "all held" } else { "NOT ALL HELD" },
            self.began.elapsed().as_secs_f64()
        );
        if std::env::var_os("KEEP").is_some_and(|keep| keep == "1") {
            self.agent.start();
            println!(
                "\nStill running until you press Enter. Look around with:\n  export KUBECONFIG={}\n  export \
                PINTLE_CONFIG={}\n  {} status\n  kubectl -n demo-shop get all",
                self.cluster.kubeconfig().display(),
                self.agent.path("pintle.yaml").display(),
                env!("CARGO_BIN_EXE_pintle")
            );
            let mut line = String::new();
            let _ = std::io::stdin().read_line(&mut line);
        }
        if matches!(self.cluster, Cluster::Given(_)) {
            self.agent.stop();
            let _ = self.cluster.kubectl(&[
                "delete",
                "namespace",
                "demo-shop",
                OWN_NAMESPACE,
                "--ignore-not-found",
            ]);
        }
        if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn say(text: &str) {
    println!("\n== {text}");
}

fn web(replicas: u32, version: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: {{app: web}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers:\n      - name: web\n        image: registry.example/web:{version}\n        \
         resources: {{requests: {{cpu: 1000m}}}}\n        ports: [{{containerPort: 80}}]\n"
    )
}

fn config(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: \"{value}\"}}\n")
}
