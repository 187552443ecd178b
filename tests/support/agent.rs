//! The real binary with a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::git_front::GitFront;

/// An agent's folder: configuration, applications, store.
pub struct Agent {
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    service: Option<Child>,
    environment: Vec<(String, String)>,
}

impl Agent {
    /// Writes the configuration; nothing is started.
    pub fn new(kubeconfig: &Path, front: &GitFront, user: &str, password: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let agent =
            Self { folder, kubeconfig: kubeconfig.to_owned(), service: None, environment: Vec::new() };
        std::fs::create_dir_all(agent.path("apps.d")).expect("a folder");
        std::fs::write(agent.path("ca.pem"), front.ca()).expect("a file");
        std::fs::write(agent.path("user"), user).expect("a file");
        std::fs::write(agent.path("password"), password).expect("a file");
        let config = format!(
            "cluster: {{name: test, kubeconfig: {}}}\nstore: {{path: {}}}\napplications: {{dirs: [{}]}}\n\
             agent: {{id: test-agent}}\npoll: {{interval: 1s, jitter: 0s}}\nrepositories:\n- url: {}\n  \
             usernameFile: {}\n  passwordFile: {}\n  tlsCAFile: {}\n",
            kubeconfig.display(),
            agent.path("state").display(),
            agent.path("apps.d").display(),
            front.prefix(),
            agent.path("user").display(),
            agent.path("password").display(),
            agent.path("ca.pem").display(),
        );
        std::fs::write(agent.path("pintle.yaml"), config).expect("a file");
        agent
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes an automated Application for a folder of a repository.
    pub fn application(&self, name: &str, url: &str, path: &str, namespace: &str, policy: &str) {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\nspec:\n  project: default\n  \
             source: {{repoURL: {url}, targetRevision: main, path: {path}}}\n  \
             destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}\n  syncPolicy:\n    {policy}\n"
        );
        std::fs::write(self.path(&format!("apps.d/{name}.yaml")), text).expect("a file");
    }

    /// Uses another kubeconfig from now on: of another user, say.
    pub fn use_kubeconfig(&mut self, kubeconfig: &Path) {
        let before = std::mem::replace(&mut self.kubeconfig, kubeconfig.to_owned());
        self.edit(&before.display().to_string(), &kubeconfig.display().to_string());
    }

    /// Gives it an id and a namespace of its own objects.
    pub fn identify(&self, id: &str, namespace: &str) {
        let config = std::fs::read_to_string(self.path("pintle.yaml")).expect("a file");
        let line = config.lines().find(|line| line.starts_with("agent: ")).expect("an agent").to_owned();
        self.edit(&line, &format!("agent: {{id: {id}, namespace: {namespace}}}"));
    }

    /// Replaces a part of its configuration, which must be there.
    pub fn edit(&self, before: &str, after: &str) {
        let config = std::fs::read_to_string(self.path("pintle.yaml")).expect("a file");
        assert!(config.contains(before), "{before} is not in {config}");
        std::fs::write(self.path("pintle.yaml"), config.replace(before, after)).expect("a file");
    }

    /// Sets an environment variable for the next start.
    pub fn env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Starts the service.
    pub fn start(&mut self) {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.path("log")).expect("a log");
        let child = self
            .command(&["run"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the agent starts");
        self.service = Some(child);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.service.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and waits for the end. Returns whether it ended well.
    pub fn stop(&mut self) -> bool {
        let Some(mut child) = self.service.take() else { return true };
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        child.wait().is_ok_and(|status| status.success())
    }

    /// Has the service ended by itself?
    pub fn has_ended(&mut self) -> bool {
        match self.service.as_mut().map(Child::try_wait) {
            Some(Ok(Some(_))) => {
                self.service = None;
                true
            }
            _ => false,
        }
    }

    pub fn pid(&self) -> Option<u32> {
        self.service.as_ref().map(Child::id)
    }

    /// Runs a verb.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().expect("pintle runs")
    }

    /// Runs a verb that must end with 0, and returns what it printed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success(),
            "pintle {arguments:?}: {}\n{out}{err}\n{}",
            output.status,
            self.log()
        );
        out.into_owned()
    }

    /// `app get -o json`.
    pub fn app(&self, name: &str) -> Result<Value, String> {
        let output = self.run(&["app", "get", name, "-o", "json"]);
        serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// `Synced`, `Healthy` and the revision.
    pub fn verdict(&self, name: &str) -> Result<(String, String, String), String> {
        let app = self.app(name)?;
        let text = |path: &str| app.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok((text("/status/sync/status"), text("/status/health/status"), text("/status/sync/revision")))
    }

    /// The conditions, `Type: message` a line.
    pub fn conditions(&self, name: &str) -> String {
        let app = self.app(name).unwrap_or_default();
        let list = app.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |found: &Value, name: &str| found[name].as_str().unwrap_or("").to_owned();
        let lines: Vec<String> =
            list.iter().map(|found| format!("{}: {}", text(found, "type"), text(found, "message"))).collect();
        lines.join("\n")
    }

    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PINTLE_CONFIG", self.path("pintle.yaml"))
            .env("KUBECONFIG", &self.kubeconfig)
            .envs(self.environment.iter().cloned());
        command
    }
}

/// Cargo's binary, or the one that is to be released (`make release-check`).
pub fn binary() -> PathBuf {
    std::env::var_os("PINTLE_TEST_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_pintle").into()).into()
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}
