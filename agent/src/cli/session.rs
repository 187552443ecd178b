//! With or without the service: who holds the store answers; if nobody does, this process does for a moment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_model::{Problem, Reason};

use super::args::Globals;
use crate::client::{Client, connect};
use crate::runtime::{self, RunSettings, ShortLived};

/// A service that starts holds the store's lock before it serves; so does another command that ends just now.
const HELD_PATIENCE: Duration = Duration::from_secs(15);
/// Pause between two looks at a store that is held.
const HELD_POLL: Duration = Duration::from_millis(100);

/// A connected agent.
pub(super) struct Session {
    /// The way to it.
    pub(super) client: Client,
    own: Option<ShortLived>,
}

impl Session {
    /// Connects to the agent, or starts one that lives as long as this command.
    pub(super) async fn open(globals: &Globals) -> Result<Self, Problem> {
        let deadline = tokio::time::Instant::now() + HELD_PATIENCE;
        // A named socket means: that agent and no other.
        if let Some(socket) = &globals.socket {
            let client = connect(socket).await?.ok_or_else(|| nobody(socket))?;
            return Self::of_service(globals, client);
        }
        let settings = RunSettings::load(&globals.overrides())?;
        let socket: PathBuf = settings.socket();
        loop {
            if let Some(client) = connect(&socket).await? {
                return Self::of_service(globals, client);
            }
            match runtime::start_short_lived(settings.clone()).await {
                Ok(own) => return Self::of_own(own).await,
                Err(problem) if problem.reason == Reason::StoreHeld => {
                    if tokio::time::Instant::now() >= deadline {
                        return Err(problem);
                    }
                    tokio::time::sleep(HELD_POLL).await;
                }
                Err(problem) => return Err(problem),
            }
        }
    }

    fn of_service(globals: &Globals, client: Client) -> Result<Self, Problem> {
        if globals.kubeconfig.is_some() {
            return Err(Problem::new(
                Reason::Usage,
                "--kubeconfig: an agent is running and has its own kubeconfig; leave the option out, or stop the agent",
            ));
        }
        Ok(Self { client, own: None })
    }

    async fn of_own(own: ShortLived) -> Result<Self, Problem> {
        match connect(own.socket()).await {
            Ok(Some(client)) => Ok(Self { client, own: Some(own) }),
            Ok(None) => {
                let problem = nobody(own.socket());
                own.shutdown().await;
                Err(problem)
            }
            Err(problem) => {
                own.shutdown().await;
                Err(problem)
            }
        }
    }

    /// Will the agent still be there when this command has ended?
    pub(super) fn outlives_us(&self) -> bool {
        self.own.is_none()
    }

    /// Lets an agent of our own end what it does and close the store.
    pub(super) async fn close(self) {
        if let Some(own) = self.own {
            own.shutdown().await;
        }
    }
}

fn nobody(socket: &Path) -> Problem {
    Problem::new(
        Reason::AgentUnreachable,
        format!("no agent answers at {}; is the service started?", socket.display()),
    )
}
