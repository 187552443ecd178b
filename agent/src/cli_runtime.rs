//! What the command line needs of the runtime. To be replaced by the real one.

use std::path::{Path, PathBuf};

use pintle_api::{Status, StoreCheck};
use pintle_model::{Problem, Reason};
use serde_json::{Value, json};

use crate::overrides::Overrides;
use crate::socket;

/// Settings of one run.
#[derive(Debug, Clone)]
pub struct RunSettings {
    overrides: Overrides,
}

impl RunSettings {
    /// Reads and checks the configuration.
    pub fn load(overrides: &Overrides) -> Result<Self, Problem> {
        Ok(Self { overrides: overrides.clone() })
    }

    /// Where the agent's socket is.
    pub fn socket(&self) -> PathBuf {
        let store = self.overrides.store.as_deref().unwrap_or(Path::new(socket::DEFAULT_STORE));
        self.overrides.socket.clone().unwrap_or_else(|| socket::path_for(store))
    }

    /// The file that was read, for messages.
    pub fn config_source(&self) -> String {
        "defaults".to_owned()
    }

    /// The configuration in force.
    pub fn effective(&self) -> Value {
        json!({})
    }
}

/// An agent that lives as long as one command.
#[derive(Debug)]
pub struct ShortLived {
    socket: PathBuf,
}

impl ShortLived {
    /// Where it serves.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Lets it end what it does and close the store.
    pub async fn shutdown(self) {}
}

/// What `once` did.
#[derive(Debug)]
pub struct OnceSummary {
    /// The state at the end.
    pub status: Status,
    /// The worst that happened; decides the exit code.
    pub problem: Option<Problem>,
}

fn missing() -> Problem {
    Problem::new(Reason::Internal, "the runtime is not part of this build")
}

/// Starts an agent for one command.
pub async fn start_short_lived(_settings: RunSettings) -> Result<ShortLived, Problem> {
    Err(missing())
}

/// The service.
pub async fn run(_settings: RunSettings) -> Result<(), Problem> {
    Err(missing())
}

/// One pass.
pub async fn once(_settings: RunSettings) -> Result<OnceSummary, Problem> {
    Err(missing())
}

/// Reads every record of the store.
pub async fn check_store(_settings: RunSettings) -> Result<StoreCheck, Problem> {
    Err(missing())
}
