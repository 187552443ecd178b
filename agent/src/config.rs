//! `/etc/pintle/pintle.yaml`: what is written (serde, unknown fields refused), then what is valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_core::plan::PruneLimits;
use pintle_model::{Digest, Problem, Reason, names};
use serde::{Deserialize, Serialize};

use crate::source::{Repository, Secret};

/// Where the configuration is looked for.
pub const DEFAULT_PATH: &str = "/etc/pintle/pintle.yaml";

/// The configuration as written; every key has a default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RawConfig {
    cluster: RawCluster,
    store: RawStore,
    applications: RawApplications,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap: Option<RawBootstrap>,
    repositories: Vec<RawRepository>,
    poll: RawPoll,
    agent: RawAgent,
    prune: RawPrune,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawCluster {
    name: String,
    labels: BTreeMap<String, String>,
    kubeconfig: String,
}

impl Default for RawCluster {
    fn default() -> Self {
        Self { name: String::new(), labels: BTreeMap::new(), kubeconfig: "auto".to_owned() }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawStore {
    path: PathBuf,
}

impl Default for RawStore {
    fn default() -> Self {
        Self { path: PathBuf::from("/var/lib/pintle") }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawApplications {
    dirs: Vec<PathBuf>,
}

impl Default for RawApplications {
    fn default() -> Self {
        Self { dirs: vec![PathBuf::from("/etc/pintle/apps.d")] }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawBootstrap {
    #[serde(rename = "repoURL")]
    repo_url: String,
    path: String,
    #[serde(default = "head")]
    target_revision: String,
}

fn head() -> String {
    "HEAD".to_owned()
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawRepository {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    username_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<PathBuf>,
    #[serde(rename = "tlsCAFile", skip_serializing_if = "Option::is_none")]
    tls_ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawPoll {
    interval: String,
    jitter: String,
}

impl Default for RawPoll {
    fn default() -> Self {
        Self { interval: "3m".to_owned(), jitter: "30s".to_owned() }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawAgent {
    id: String,
    namespace: String,
}

impl Default for RawAgent {
    fn default() -> Self {
        Self { id: String::new(), namespace: names::DEFAULT_AGENT_NAMESPACE.to_owned() }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(clippy::struct_field_names, reason = "the keys of the file")]
struct RawPrune {
    max_share: String,
    max_small: usize,
    max_per_hour: usize,
}

impl Default for RawPrune {
    fn default() -> Self {
        Self { max_share: "50%".to_owned(), max_small: 5, max_per_hour: 200 }
    }
}

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it was read; `None` for the defaults.
    pub file: Option<PathBuf>,
    /// What was written, with defaults, for `config show`.
    pub raw: RawConfig,
    /// How the agent's cluster is called; may be empty.
    pub cluster_name: String,
    /// Labels of the cluster, shown by `status`.
    pub cluster_labels: BTreeMap<String, String>,
    /// `auto` or a path.
    pub kubeconfig: String,
    /// The store.
    pub store: StoreConfig,
    /// Folders of applications.
    pub app_folders: Vec<PathBuf>,
    /// A root application in one line.
    pub bootstrap: Option<Bootstrap>,
    /// Pause between polls.
    pub poll_interval: Duration,
    /// Spread added to it.
    pub poll_jitter: Duration,
    /// Agent id.
    pub agent_id: String,
    /// Namespace of the agent's own objects.
    pub agent_namespace: String,
    /// Prune limits.
    pub prune: PruneLimits,
    repositories: Vec<RawRepository>,
}

/// The store's settings.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// State directory.
    pub path: PathBuf,
}

/// `bootstrap`.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    /// Repository.
    pub repo_url: String,
    /// Folder.
    pub path: String,
    /// Revision.
    pub target_revision: String,
}

/// Reads the configuration: the file named, else the default file if it is there, else all defaults.
pub fn load(path: Option<&Path>) -> Result<Config, Problem> {
    let default = Path::new(DEFAULT_PATH);
    let file = path.map(Path::to_owned).or_else(|| default.exists().then(|| default.to_owned()));
    let raw = match &file {
        None => RawConfig::default(),
        Some(file) => parse(file)?,
    };
    validate(raw, file)
}

fn parse(file: &Path) -> Result<RawConfig, Problem> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Problem::new(
            Reason::InvalidConfig,
            format!("the configuration {} cannot be read: {error}", file.display()),
        )
    })?;
    if text.trim().is_empty() {
        return Ok(RawConfig::default());
    }
    serde_yaml::from_str(&text).map_err(|error| {
        let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column())).unwrap_or_default();
        let text = pintle_model::nearest::shorten_unknown_field(&error.to_string());
        Problem::new(Reason::InvalidConfig, format!("{}{place}: {text}", file.display()))
    })
}

fn validate(raw: RawConfig, file: Option<PathBuf>) -> Result<Config, Problem> {
    let place =
        file.as_ref().map_or_else(|| "the configuration".to_owned(), |file| file.display().to_string());
    let mut errors: Vec<String> = Vec::new();
    let mut duration = |field: &str, text: &str| match pintle_model::duration::parse(text) {
        Ok(duration) => duration,
        Err(error) => {
            errors.push(format!("{field}: {error}"));
            Duration::ZERO
        }
    };
    let poll_interval = duration("poll.interval", &raw.poll.interval);
    let poll_jitter = duration("poll.jitter", &raw.poll.jitter);
    if poll_interval < Duration::from_secs(1) && errors.is_empty() {
        errors.push("poll.interval: at least 1s".to_owned());
    }
    let max_share = raw.prune.max_share.trim_end_matches('%').parse::<f64>().ok();
    let max_share = match max_share.filter(|share| (0.0..=100.0).contains(share)) {
        Some(share) => share / 100.0,
        None => {
            errors.push(format!("prune.maxShare: {:?} is no share such as 50%", raw.prune.max_share));
            0.0
        }
    };
    for (index, repository) in raw.repositories.iter().enumerate() {
        check_repository(index, repository, &mut errors);
    }
    if !pintle_model::syntax::is_dns_label(&raw.agent.namespace) {
        errors.push(format!("agent.namespace: {:?} is no namespace", raw.agent.namespace));
    }
    let agent_id = if raw.agent.id.is_empty() { default_agent_id() } else { Ok(raw.agent.id.clone()) };
    let agent_id = agent_id.unwrap_or_else(|error| {
        errors.push(error);
        String::new()
    });
    if !agent_id.is_empty() && !pintle_model::syntax::is_label_value(&agent_id) {
        errors.push(format!(
            "agent.id: {agent_id:?} cannot be a label's value (63 characters of A-Z a-z 0-9 - _ .)"
        ));
    }
    if !errors.is_empty() {
        return Err(Problem::new(Reason::InvalidConfig, format!("{place}: {}", errors.join("; "))));
    }
    Ok(Config {
        cluster_name: raw.cluster.name.clone(),
        cluster_labels: raw.cluster.labels.clone(),
        kubeconfig: raw.cluster.kubeconfig.clone(),
        store: StoreConfig { path: raw.store.path.clone() },
        app_folders: raw.applications.dirs.clone(),
        bootstrap: raw.bootstrap.as_ref().map(|bootstrap| Bootstrap {
            repo_url: bootstrap.repo_url.clone(),
            path: bootstrap.path.clone(),
            target_revision: bootstrap.target_revision.clone(),
        }),
        poll_interval,
        poll_jitter,
        agent_id,
        agent_namespace: raw.agent.namespace.clone(),
        prune: PruneLimits {
            max_share,
            max_small: raw.prune.max_small,
            max_per_hour: raw.prune.max_per_hour,
        },
        repositories: raw.repositories.clone(),
        file,
        raw,
    })
}

fn check_repository(index: usize, repository: &RawRepository, errors: &mut Vec<String>) {
    let field = format!("repositories[{index}]");
    if !repository.url.starts_with("https://") {
        errors.push(format!("{field}.url: {:?} does not begin with https://", repository.url));
    }
    if repository.token_file.is_some() && repository.password_file.is_some() {
        errors.push(format!("{field}: tokenFile and passwordFile exclude each other"));
    }
    if repository.username_file.is_some() && repository.password_file.is_none() {
        errors.push(format!("{field}: usernameFile needs passwordFile"));
    }
}

/// A hash of the machine id: steady, and it does not tell the machine id itself.
fn default_agent_id() -> Result<String, String> {
    let path = "/etc/machine-id";
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => {
            Ok(format!("agent-{}", Digest::of(format!("pintle {}", text.trim()).as_bytes()).short(12)))
        }
        Ok(_) => Err(format!("agent.id: {path} is empty; set agent.id")),
        Err(error) => Err(format!("agent.id: {path} cannot be read ({error}); set agent.id")),
    }
}

impl Config {
    /// The repositories, with their secrets read from files.
    pub fn repositories(&self) -> Result<Vec<Repository>, Problem> {
        self.repositories
            .iter()
            .map(|raw| {
                let username = raw.username_file.as_deref().map(secret_text).transpose()?;
                let file = raw.token_file.as_deref().or(raw.password_file.as_deref());
                let secret = file.map(secret_text).transpose()?.map(Secret::new);
                let ca_pem = raw.tls_ca_file.as_deref().map(read_file).transpose()?;
                Ok(Repository {
                    url_prefix: raw.url.clone(),
                    username,
                    secret,
                    bearer: raw.token_file.is_some(),
                    ca_pem,
                })
            })
            .collect()
    }

    /// The files with credentials and authorities of the repositories.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        self.repositories
            .iter()
            .flat_map(|raw| [&raw.username_file, &raw.password_file, &raw.token_file, &raw.tls_ca_file])
            .flatten()
            .cloned()
            .collect()
    }

    /// Digest over what those files hold: a rotated token is a changed configuration.
    pub fn secrets_digest(&self) -> Digest {
        let contents: Vec<Vec<u8>> =
            self.secret_files().iter().map(|file| std::fs::read(file).unwrap_or_default()).collect();
        Digest::of_parts(contents.iter().map(Vec::as_slice))
    }

    /// Every value in force. Holds paths of secrets, never secrets.
    pub fn effective(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(&self.raw).unwrap_or_default();
        value["agent"]["id"] = self.agent_id.clone().into();
        value["store"]["path"] = self.store.path.display().to_string().into();
        value["cluster"]["kubeconfig"] = self.kubeconfig.clone().into();
        value
    }
}

fn secret_text(path: &Path) -> Result<String, Problem> {
    let bytes = read_file(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Problem::new(Reason::InvalidConfig, format!("{} is not UTF-8", path.display())))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn read_file(path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| {
        let user = rustix::process::geteuid().as_raw();
        Problem::new(
            Reason::InvalidConfig,
            format!("{} cannot be read as user {user}: {error}", path.display()),
        )
    })
}
