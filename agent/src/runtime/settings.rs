//! What a run needs from configuration and command line, and the folders of applications.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use pintle_core::engine::event::{Event, FoundApp};
use pintle_core::engine::record::Place;
use pintle_core::engine::{Mode, Settings};
use pintle_model::application::{Context, validate};
use pintle_model::{AppKey, Problem, Reason};
use serde_json::json;

use crate::config::{self, Config};
use crate::overrides::Overrides;
use crate::{apps, socket};

/// Settings of one run.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// Configuration, with the command line's overrides.
    pub config: Config,
    /// Take the cluster over from another agent.
    pub take_over: bool,
    socket: PathBuf,
    overrides: Overrides,
    /// Digest of the credentials as they were read.
    secrets: pintle_model::Digest,
}

impl RunSettings {
    /// Reads and checks the configuration.
    pub fn load(overrides: &Overrides) -> Result<Self, Problem> {
        let named = overrides.config.clone().or_else(|| std::env::var_os("PINTLE_CONFIG").map(PathBuf::from));
        let mut config = config::load(named.as_deref())?;
        if let Some(store) = &overrides.store {
            config.store.path.clone_from(store);
        }
        if let Some(kubeconfig) = &overrides.kubeconfig {
            config.kubeconfig = kubeconfig.display().to_string();
        }
        let socket = overrides.socket.clone().unwrap_or_else(|| socket::path_for(&config.store.path));
        let secrets = config.secrets_digest();
        Ok(Self { config, take_over: overrides.take_over, socket, overrides: overrides.clone(), secrets })
    }

    /// Reads the configuration again, with the same command line.
    pub fn again(&self) -> Result<Self, Problem> {
        Self::load(&self.overrides)
    }

    /// Where the agent's socket is.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// The file that was read, for messages.
    pub fn config_source(&self) -> String {
        self.config.file.as_ref().map_or_else(|| "defaults".to_owned(), |file| file.display().to_string())
    }

    /// The configuration in force.
    pub fn effective(&self) -> serde_json::Value {
        self.config.effective()
    }

    /// For the engine.
    pub(crate) fn engine(&self, mode: Mode) -> Settings {
        Settings {
            mode,
            agent_id: self.config.agent_id.clone(),
            agent_namespace: self.config.agent_namespace.clone(),
            poll_interval: self.config.poll_interval,
            poll_jitter: self.config.poll_jitter,
            prune: self.config.prune,
        }
    }

    /// What Applications are validated with.
    pub(crate) fn context(&self) -> Context {
        Context { cluster_name: self.config.cluster_name.clone(), ..Context::default() }
    }
}

/// The folders of applications and the bootstrap setting.
#[derive(Debug)]
pub(crate) struct AppFolders {
    settings: RunSettings,
    files: BTreeMap<PathBuf, BTreeSet<AppKey>>,
}

impl AppFolders {
    /// `known`: applications from files, as the store knows them, so that an empty folder after a reboot does not
    /// detach what it held before.
    pub(crate) fn new(settings: RunSettings, known: impl Iterator<Item = (AppKey, Place)>) -> Self {
        let mut files: BTreeMap<PathBuf, BTreeSet<AppKey>> = BTreeMap::new();
        for (key, place) in known {
            if let Place::File(origin) = place {
                files.entry(PathBuf::from(&*origin.file)).or_default().insert(key);
            }
        }
        Self { settings, files }
    }

    /// Reads the configuration again. Did it change?
    pub(crate) fn reload(&mut self) -> Result<bool, Problem> {
        let new = self.settings.again()?;
        new.config.repositories()?;
        Ok(new.effective() != self.settings.effective() || new.secrets != self.settings.secrets)
    }

    /// Reads them now.
    pub(crate) fn load(&mut self) -> Event {
        let context = self.settings.context();
        let mut loaded = apps::load(&self.settings.config.app_folders, &self.files, &context);
        match self.bootstrap(&context) {
            None => {}
            Some(Ok(found)) => loaded.apps.push(found),
            Some(Err(problem)) => loaded.problems.push((None, problem)),
        }
        for (_, problem) in &loaded.problems {
            tracing::warn!("{problem}");
        }
        self.files = loaded.files;
        Event::AppsLoaded { apps: loaded.apps, held: loaded.held, problems: loaded.problems }
    }

    /// `bootstrap` is the Application `argocd/bootstrap`.
    fn bootstrap(&self, context: &Context) -> Option<Result<FoundApp, Problem>> {
        let bootstrap = self.settings.config.bootstrap.as_ref()?;
        let raw = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "bootstrap", "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": bootstrap.repo_url,
                    "path": bootstrap.path,
                    "targetRevision": bootstrap.target_revision,
                    "directory": {"recurse": true},
                },
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
            },
        });
        let invalid = |text: String| Problem::new(Reason::InvalidConfig, format!("bootstrap: {text}"));
        let parsed = match serde_json::from_value(raw.clone()) {
            Ok(parsed) => parsed,
            Err(error) => return Some(Err(invalid(error.to_string()))),
        };
        Some(match validate(parsed, context) {
            Ok(spec) => Ok(FoundApp { spec: Arc::new(spec), raw, place: Place::Bootstrap }),
            Err(errors) => {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Err(invalid(texts.join("; ")))
            }
        })
    }
}
