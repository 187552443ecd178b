//! The way from the surface (socket, page, metrics) to the engine: one bounded queue of questions.
//!
//! # Guarantees
//! Every question ends: with the engine's answer, or with a [`Problem`] when the queue is full, the engine is
//! gone, or [`Call::timeout`] has passed. A question whose asker went away is still carried out.
//!
//! # Assumptions
//! Whoever holds the [`mpsc::Receiver`] answers each question once, by sending into [`Ask::answer`] the variant
//! of [`Reply`] that the doc comment of the [`Call`] names.

use std::time::Duration;

use pintle_api as api;
use pintle_model::{AppKey, Problem, Reason, limits};
use tokio::sync::{mpsc, oneshot};

/// A question to the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// Everything on one screen: [`Reply::Status`].
    Status,
    /// All applications: [`Reply::Apps`].
    AppList,
    /// One application: [`Reply::App`]; with a refresh, after the comparison.
    AppGet {
        /// The application.
        app: AppKey,
        /// How fresh.
        refresh: api::Refresh,
    },
    /// Start a sync: [`Reply::Operation`], or [`Reply::Plan`] for a dry run.
    AppSync {
        /// The application.
        app: AppKey,
        /// What is asked for.
        request: api::SyncRequest,
    },
    /// Compare: [`Reply::Diff`].
    AppDiff {
        /// The application.
        app: AppKey,
        /// What is asked for.
        request: api::DiffRequest,
    },
    /// Earlier deployments: [`Reply::History`].
    AppHistory {
        /// The application.
        app: AppKey,
    },
    /// Re-apply a stored render and hold it: [`Reply::Operation`], or [`Reply::Plan`] for a dry run.
    AppRollback {
        /// The application.
        app: AppKey,
        /// What is asked for.
        request: api::RollbackRequest,
    },
    /// Neither automated sync nor selfHeal: [`Reply::App`].
    AppPause {
        /// The application.
        app: AppKey,
        /// For how long, and why.
        request: api::PauseRequest,
    },
    /// Follow git again: [`Reply::App`].
    AppResume {
        /// The application.
        app: AppKey,
    },
    /// Rendered or live objects: [`Reply::Manifests`].
    AppManifests {
        /// The application.
        app: AppKey,
        /// Live ones instead of rendered ones.
        live: bool,
    },
    /// Remove an application: [`Reply::Operation`], or [`Reply::Plan`] for a cascade without its token.
    AppDelete {
        /// The application.
        app: AppKey,
        /// What happens to its objects, and the token.
        request: api::DeleteRequest,
    },
    /// End the running operation: [`Reply::Operation`].
    AppTerminate {
        /// The application.
        app: AppKey,
    },
    /// What was kept before deletions and replacements: [`Reply::Backups`].
    Backups,
    /// One backup: [`Reply::Backup`].
    Backup {
        /// Its id.
        id: String,
    },
    /// Put a backup back: [`Reply::Backup`].
    Restore {
        /// Its id.
        id: String,
        /// How.
        request: api::RestoreRequest,
    },
    /// Look at everything that the agent needs: [`Reply::Doctor`].
    Doctor,
    /// Bind the store to the cluster that the kubeconfig names now: [`Reply::Store`].
    StoreRebind,
}

impl Call {
    /// What it is, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::AppList => "app list",
            Self::AppGet { .. } => "app get",
            Self::AppSync { .. } => "app sync",
            Self::AppDiff { .. } => "app diff",
            Self::AppHistory { .. } => "app history",
            Self::AppRollback { .. } => "app rollback",
            Self::AppPause { .. } => "app pause",
            Self::AppResume { .. } => "app resume",
            Self::AppManifests { .. } => "app manifests",
            Self::AppDelete { .. } => "app delete",
            Self::AppTerminate { .. } => "app terminate-op",
            Self::Backups => "restore list",
            Self::Backup { .. } => "restore show",
            Self::Restore { .. } => "restore put",
            Self::Doctor => "doctor",
            Self::StoreRebind => "store rebind",
        }
    }

    /// The engine must have answered by then. What runs for longer answers when it has started.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(match self {
            Self::Status
            | Self::AppList
            | Self::AppGet { refresh: api::Refresh::None, .. }
            | Self::AppHistory { .. }
            | Self::AppTerminate { .. } => limits::REQUEST_TIMEOUT_SECS,
            Self::AppGet { .. }
            | Self::AppSync { .. }
            | Self::AppDiff { .. }
            | Self::AppRollback { .. }
            | Self::AppPause { .. }
            | Self::AppResume { .. }
            | Self::Backups
            | Self::Backup { .. }
            | Self::Restore { .. }
            | Self::AppManifests { .. }
            | Self::AppDelete { .. }
            | Self::Doctor
            | Self::StoreRebind => limits::REQUEST_SLOW_TIMEOUT_SECS,
        })
    }
}

/// The engine's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// To [`Call::Status`].
    Status(api::Status),
    /// To [`Call::AppList`].
    Apps(api::ApplicationList),
    /// To [`Call::AppGet`] and [`Call::AppResume`].
    App(api::Application),
    /// Something was started.
    Operation(api::Operation),
    /// Nothing was started.
    Plan(api::Plan),
    /// To [`Call::AppDiff`].
    Diff(api::Diff),
    /// To [`Call::AppHistory`].
    History(api::History),
    /// To [`Call::AppManifests`].
    Manifests(api::Manifests),
    /// To [`Call::Backups`].
    Backups(api::BackupList),
    /// To [`Call::Backup`] and [`Call::Restore`].
    Backup(api::Backup),
    /// To [`Call::Doctor`].
    Doctor(api::Doctor),
    /// To [`Call::StoreRebind`].
    Store(api::StoreBinding),
}

/// A question on its way.
#[derive(Debug)]
pub struct Ask {
    /// What is asked.
    pub call: Call,
    /// Who asks, for history and log.
    pub by: api::InitiatedBy,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Reply, Problem>>,
}

/// Asks the engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    tx: mpsc::Sender<Ask>,
    by: api::InitiatedBy,
}

impl Handle {
    /// The handle, and the end where the engine takes the questions.
    pub fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (tx, rx) = mpsc::channel(limits::SURFACE_QUEUE);
        (Self { tx, by: api::InitiatedBy::default() }, rx)
    }

    /// The same way, asked in somebody's name.
    pub fn by(&self, by: api::InitiatedBy) -> Self {
        Self { tx: self.tx.clone(), by }
    }

    /// Does the engine still take questions?
    pub fn open(&self) -> bool {
        !self.tx.is_closed()
    }

    /// Asks. See the module's guarantees.
    pub async fn ask(&self, call: Call) -> Result<Reply, Problem> {
        let timeout = call.timeout();
        self.ask_within(call, timeout).await
    }

    async fn ask_within(&self, call: Call, timeout: Duration) -> Result<Reply, Problem> {
        let name = call.name();
        let (answer, answered) = oneshot::channel();
        let gone = || Problem::new(Reason::AgentUnreachable, format!("{name}: the agent is shutting down"));
        self.tx.try_send(Ask { call, by: self.by.clone(), answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Problem::new(
                Reason::AgentUnreachable,
                format!("{name}: the agent is busy ({} requests wait)", limits::SURFACE_QUEUE),
            ),
            mpsc::error::TrySendError::Closed(_) => gone(),
        })?;
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(Problem::new(
                Reason::AgentUnreachable,
                format!("{name}: the agent did not answer within {} s", timeout.as_secs()),
            )),
        }
    }

    async fn pick<T>(&self, call: Call, pick: impl FnOnce(Reply) -> Option<T>) -> Result<T, Problem> {
        let name = call.name();
        pick(self.ask(call).await?).ok_or_else(|| {
            Problem::new(Reason::Internal, format!("{name}: the engine gave an answer of another kind"))
        })
    }

    async fn start(&self, call: Call) -> Result<api::OperationReply, Problem> {
        self.pick(call, |reply| match reply {
            Reply::Operation(operation) => Some(api::OperationReply::Started(operation)),
            Reply::Plan(plan) => Some(api::OperationReply::Planned(plan)),
            _ => None,
        })
        .await
    }

    /// [`Call::Status`].
    pub async fn status(&self) -> Result<api::Status, Problem> {
        self.pick(Call::Status, |reply| if let Reply::Status(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppList`].
    pub async fn list(&self) -> Result<api::ApplicationList, Problem> {
        self.pick(Call::AppList, |reply| if let Reply::Apps(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppGet`].
    pub async fn get(&self, app: AppKey, refresh: api::Refresh) -> Result<api::Application, Problem> {
        let call = Call::AppGet { app, refresh };
        self.pick(call, |reply| if let Reply::App(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppSync`].
    pub async fn sync(&self, app: AppKey, request: api::SyncRequest) -> Result<api::OperationReply, Problem> {
        self.start(Call::AppSync { app, request }).await
    }

    /// [`Call::AppDiff`].
    pub async fn diff(&self, app: AppKey, request: api::DiffRequest) -> Result<api::Diff, Problem> {
        let call = Call::AppDiff { app, request };
        self.pick(call, |reply| if let Reply::Diff(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppHistory`].
    pub async fn history(&self, app: AppKey) -> Result<api::History, Problem> {
        let call = Call::AppHistory { app };
        self.pick(call, |reply| if let Reply::History(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppRollback`].
    pub async fn rollback(
        &self,
        app: AppKey,
        request: api::RollbackRequest,
    ) -> Result<api::OperationReply, Problem> {
        self.start(Call::AppRollback { app, request }).await
    }

    /// [`Call::AppResume`].
    pub async fn resume(&self, app: AppKey) -> Result<api::Application, Problem> {
        let call = Call::AppResume { app };
        self.pick(call, |reply| if let Reply::App(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppPause`].
    pub async fn pause(&self, app: AppKey, request: api::PauseRequest) -> Result<api::Application, Problem> {
        let call = Call::AppPause { app, request };
        self.pick(call, |reply| if let Reply::App(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::Backups`].
    pub async fn backups(&self) -> Result<api::BackupList, Problem> {
        self.pick(Call::Backups, |reply| if let Reply::Backups(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::Backup`].
    pub async fn backup(&self, id: String) -> Result<api::Backup, Problem> {
        let call = Call::Backup { id };
        self.pick(call, |reply| if let Reply::Backup(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::Restore`].
    pub async fn restore(&self, id: String, request: api::RestoreRequest) -> Result<api::Backup, Problem> {
        let call = Call::Restore { id, request };
        self.pick(call, |reply| if let Reply::Backup(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppManifests`].
    pub async fn manifests(&self, app: AppKey, live: bool) -> Result<api::Manifests, Problem> {
        let call = Call::AppManifests { app, live };
        self.pick(call, |reply| if let Reply::Manifests(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::AppDelete`].
    pub async fn delete(
        &self,
        app: AppKey,
        request: api::DeleteRequest,
    ) -> Result<api::OperationReply, Problem> {
        self.start(Call::AppDelete { app, request }).await
    }

    /// [`Call::AppTerminate`].
    pub async fn terminate(&self, app: AppKey) -> Result<api::Operation, Problem> {
        let call = Call::AppTerminate { app };
        self.pick(call, |reply| if let Reply::Operation(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::Doctor`].
    pub async fn doctor(&self) -> Result<api::Doctor, Problem> {
        self.pick(Call::Doctor, |reply| if let Reply::Doctor(it) = reply { Some(it) } else { None }).await
    }

    /// [`Call::StoreRebind`].
    pub async fn store_rebind(&self) -> Result<api::StoreBinding, Problem> {
        self.pick(Call::StoreRebind, |reply| if let Reply::Store(it) = reply { Some(it) } else { None }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> AppKey {
        AppKey::new("argocd", "shop")
    }

    #[tokio::test]
    async fn an_answer_of_another_kind_is_an_error() {
        let (handle, mut asks) = Handle::new();
        let answerer = tokio::spawn(async move {
            let ask = asks.recv().await.unwrap();
            ask.answer.send(Ok(Reply::Doctor(api::Doctor { checks: vec![] }))).unwrap();
        });
        assert_eq!(handle.status().await.unwrap_err().reason, Reason::Internal);
        answerer.await.unwrap();
    }

    #[tokio::test]
    async fn a_question_to_an_engine_that_is_gone_ends() {
        let (handle, asks) = Handle::new();
        drop(asks);
        assert!(!handle.open());
        assert_eq!(handle.history(app()).await.unwrap_err().reason, Reason::AgentUnreachable);
    }

    #[tokio::test]
    async fn a_question_dropped_by_the_engine_ends() {
        let (handle, mut asks) = Handle::new();
        let answerer = tokio::spawn(async move { drop(asks.recv().await) });
        assert_eq!(handle.history(app()).await.unwrap_err().reason, Reason::AgentUnreachable);
        answerer.await.unwrap();
    }

    #[tokio::test]
    async fn a_full_queue_answers_busy_at_once() {
        let (handle, _asks) = Handle::new();
        for _ in 0..limits::SURFACE_QUEUE {
            let (answer, _) = oneshot::channel();
            handle.tx.try_send(Ask { call: Call::Status, by: api::InitiatedBy::default(), answer }).unwrap();
        }
        let problem = handle.status().await.unwrap_err();
        assert!(problem.message.contains("busy"), "{problem}");
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_ends_at_its_deadline() {
        let (handle, _asks) = Handle::new();
        let problem = handle.ask_within(Call::Status, Duration::ZERO).await.unwrap_err();
        assert_eq!(problem.message, "status: the agent did not answer within 0 s");
    }
}
