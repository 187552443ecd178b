//! A real Kubernetes control plane (tests/control-plane), one process, ended with the test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A running control plane.
pub struct ControlPlane {
    child: Child,
    folder: tempfile::TempDir,
}

/// One request as the API server's audit log tells it.
#[derive(Debug, Clone)]
pub struct Audited {
    pub verb: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub user_agent: String,
    pub code: u64,
    pub uri: String,
    /// When it came, and when it was answered (RFC 3339).
    pub received: String,
    pub answered: String,
}

impl ControlPlane {
    /// Starts one with its audit log on.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { child: spawn(folder.path()), folder }
    }

    /// SIGKILL, then a new start on the same data, certificates and port.
    pub fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.child = spawn(self.folder.path());
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// kubectl, with its output; a failure panics.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        match self.try_kubectl(arguments, "") {
            Ok(text) => text,
            Err(text) => panic!("kubectl {arguments:?}: {text}"),
        }
    }

    pub fn try_kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        kubectl(&self.kubeconfig(), arguments, input)
    }

    pub fn apply(&self, manifest: &str) {
        self.try_kubectl(&["apply", "-f", "-"], manifest).unwrap_or_else(|text| panic!("apply: {text}"));
    }

    pub fn json(&self, arguments: &[&str]) -> Option<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        self.try_kubectl(&all, "").ok().and_then(|text| serde_json::from_str(&text).ok())
    }

    /// Requests since the start, of our agent only.
    pub fn audit(&self) -> Vec<Audited> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|entry| {
                let text =
                    |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
                Audited {
                    verb: text("/verb"),
                    resource: text("/objectRef/resource"),
                    namespace: text("/objectRef/namespace"),
                    name: text("/objectRef/name"),
                    user: text("/user/username"),
                    user_agent: text("/userAgent"),
                    code: entry.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
                    uri: text("/requestURI"),
                    received: text("/requestReceivedTimestamp"),
                    answered: text("/stageTimestamp"),
                }
            })
            .filter(|request| request.user_agent.starts_with("pintle/"))
            .collect()
    }
}

fn spawn(folder: &Path) -> Child {
    let mut child = Command::new(binary())
        .args(["run", "--audit", "--dir"])
        .arg(folder)
        .arg("--parent-pid")
        .arg(std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the control plane starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(line.starts_with("ready "), "the control plane said {line:?}");
    child
}

/// kubectl against any kubeconfig.
pub fn kubectl(kubeconfig: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    use std::io::Write as _;
    let mut child = Command::new("kubectl")
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("kubectl cannot be run: {error}"))?;
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Builds it, or finds it in the cache.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PINTLE_CONTROL_PLANE") {
        return path.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build.sh");
    let output = Command::new("bash").arg(script).stderr(Stdio::inherit()).output().expect("build.sh runs");
    assert!(output.status.success(), "the control plane was not built");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
