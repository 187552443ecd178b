//! Finding the kubeconfig.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use pintle_model::{Problem, Reason};

use super::failure;

/// A configuration, and where it came from.
#[derive(Clone)]
pub struct Found {
    /// For messages: the file, or "the in-cluster service account".
    pub description: String,
    /// Client configuration.
    pub config: kube::Config,
}

/// Files of distributions, tried in this order after the environment.
const WELL_KNOWN: &[&str] = &[
    "/etc/rancher/k3s/k3s.yaml",
    "/var/lib/k0s/pki/admin.conf",
    "/var/snap/microk8s/current/credentials/client.config",
    "/etc/kubernetes/admin.conf",
];

/// Finds the configuration. `setting` is `auto` or a path.
pub async fn find_kubeconfig(setting: &str) -> Result<Found, Problem> {
    crate::tls::install_crypto_provider();
    if setting != "auto" {
        return read(Path::new(setting)).await;
    }
    let mut tried: Vec<String> = Vec::new();
    for path in from_environment() {
        if path.exists() {
            return read(&path).await;
        }
        tried.push(path.display().to_string());
    }
    match kube::Config::incluster() {
        Ok(config) => return Ok(Found { description: "the in-cluster service account".to_owned(), config }),
        Err(_) => tried.push("the in-cluster service account".to_owned()),
    }
    for path in well_known() {
        if path.exists() {
            return read(&path).await;
        }
        tried.push(path.display().to_string());
    }
    Err(Problem::new(
        Reason::KubeconfigInvalid,
        format!("no kubeconfig is there; tried {}", tried.join(", ")),
    ))
}

fn from_environment() -> Vec<PathBuf> {
    let credential =
        std::env::var_os("CREDENTIALS_DIRECTORY").map(|folder| PathBuf::from(folder).join("kubeconfig"));
    // KUBECONFIG may hold several paths; the first that exists counts.
    let named = std::env::var_os("KUBECONFIG").map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    credential.into_iter().filter(|path| path.exists()).chain(named.unwrap_or_default()).collect()
}

fn well_known() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    WELL_KNOWN.iter().map(PathBuf::from).chain(home).collect()
}

async fn read(path: &Path) -> Result<Found, Problem> {
    let invalid = |what: String| {
        Problem::new(Reason::KubeconfigInvalid, format!("the kubeconfig {} {what}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let parsed = Kubeconfig::from_yaml(&text)
        .map_err(|error| invalid(format!("is not a kubeconfig: {}", failure::chain(&error))))?;
    if parsed.contexts.is_empty() && parsed.clusters.is_empty() {
        return Err(invalid("names no cluster".to_owned()));
    }
    let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .map_err(|error| invalid(format!("cannot be used: {}", failure::chain(&error))))?;
    Ok(Found { description: path.display().to_string(), config })
}
