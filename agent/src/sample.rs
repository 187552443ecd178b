//! Values of one small shop, and an engine of a few lines that answers with them, for the tests of the surface.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use pintle_api as api;
use pintle_api::{HealthStatus, OperationPhase, ResultCode, SyncStatus};
use pintle_model::{AppKey, Object, ObjectKey, Problem, Reason};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::handle::{Ask, Call, Handle, Reply};
use crate::{server, socket};

pub(crate) const REVISION: &str = "53e28ff20cc530b9ada2173fbbd64d48338583ba";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn shop() -> AppKey {
    AppKey::new("argocd", "shop")
}

pub(crate) fn application() -> api::Application {
    api::Application {
        metadata: api::Metadata {
            name: "shop".into(),
            namespace: "argocd".into(),
            ..api::Metadata::default()
        },
        spec: json!({
            "project": "default",
            "source": {"repoURL": "https://git.example/fleet.git", "path": "shop", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        }),
        status: api::ApplicationStatus {
            sync: api::SyncState {
                status: SyncStatus::OutOfSync,
                revision: REVISION.into(),
                ..Default::default()
            },
            health: api::ResourceHealth { status: HealthStatus::Healthy, ..Default::default() },
            resources: vec![
                resource("", "v1", "Service", "web", SyncStatus::Synced, Some(HealthStatus::Healthy)),
                resource(
                    "apps",
                    "v1",
                    "Deployment",
                    "web",
                    SyncStatus::OutOfSync,
                    Some(HealthStatus::Progressing),
                ),
                resource("", "v1", "ConfigMap", "web-settings", SyncStatus::Synced, None),
            ],
            operation_state: Some(operation_state("op-1", OperationPhase::Succeeded)),
            history: history().items,
            conditions: vec![api::Condition {
                kind: "Pinned".into(),
                message: "pinned to history entry 3; git wants 0a1b2c3".into(),
                last_transition_time: Some(at("2026-03-04T05:06:07Z")),
            }],
            reconciled_at: Some(at("2026-03-04T05:06:07Z")),
            observed_at: Some(at("2026-03-04T05:06:08Z")),
            summary: api::Summary { images: vec!["nginx:1.27".into()] },
            source_type: "Directory".into(),
            controller_namespace: "pintle-system".into(),
        },
    }
}

fn resource(
    group: &str,
    version: &str,
    kind: &str,
    name: &str,
    status: SyncStatus,
    health: Option<HealthStatus>,
) -> api::ResourceStatus {
    api::ResourceStatus {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        namespace: "shop".into(),
        name: name.into(),
        status: Some(status),
        health: health.map(|status| api::ResourceHealth { status, ..Default::default() }),
        ..Default::default()
    }
}

pub(crate) fn operation_state(id: &str, phase: OperationPhase) -> api::OperationState {
    api::OperationState {
        id: id.into(),
        phase,
        message: "successfully synced (all tasks run)".into(),
        started_at: Some(at("2026-03-04T05:06:00Z")),
        finished_at: phase.ended().then(|| at("2026-03-04T05:06:03Z")),
        operation: json!({"sync": {"prune": true}, "initiatedBy": {"username": "root"}}),
        sync_result: Some(api::SyncResult {
            revision: REVISION.into(),
            resources: vec![
                result("", "Service", "web", "service/web unchanged"),
                result("apps", "Deployment", "web", "deployment.apps/web configured"),
                api::ResourceResult {
                    status: Some(ResultCode::Pruned),
                    ..result("", "ConfigMap", "old", "configmap/old pruned")
                },
            ],
        }),
        retry_count: 0,
    }
}

fn result(group: &str, kind: &str, name: &str, message: &str) -> api::ResourceResult {
    api::ResourceResult {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        namespace: "shop".into(),
        name: name.into(),
        status: Some(ResultCode::Synced),
        message: message.into(),
        sync_phase: "Sync".into(),
        ..Default::default()
    }
}

pub(crate) fn history() -> api::History {
    let entry = |id, revision: &str, when: &str, by: &str| api::HistoryEntry {
        id,
        revision: revision.into(),
        deployed_at: Some(at(when)),
        deploy_started_at: None,
        initiated_by: api::InitiatedBy { username: by.into(), automated: by.is_empty() },
        source: json!({"repoURL": "https://git.example/fleet.git", "targetRevision": "main"}),
        phase: api::OperationPhase::Succeeded,
        ..Default::default()
    };
    api::History {
        app: shop(),
        items: vec![
            entry(2, "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", "2026-03-03T01:02:03Z", ""),
            entry(3, REVISION, "2026-03-04T05:06:03Z", "root"),
        ],
    }
}

/// A ConfigMap as it was before it was pruned.
pub(crate) fn backup() -> api::Backup {
    api::Backup {
        id: "1772600000000-0a1b2c3d".into(),
        app: shop(),
        key: pintle_model::ObjectKey::new("", "ConfigMap", "shop", "old"),
        why: "pruned".into(),
        at: at("2026-03-04T05:09:07Z"),
        manifest: "apiVersion: v1\nkind: ConfigMap\n".into(),
    }
}

pub(crate) fn status() -> api::Status {
    api::Status {
        now: at("2026-03-04T05:09:07Z"),
        agent: api::AgentInfo {
            version: "0.1.0".into(),
            id: "a1b2c3".into(),
            cluster: "shop-0042".into(),
            labels: std::collections::BTreeMap::new(),
            namespace: "pintle-system".into(),
            pid: 17,
            started_at: Some(at("2026-03-01T05:09:07Z")),
            notes: vec![],
        },
        cluster: api::ClusterInfo {
            reachable: true,
            since: Some(at("2026-03-04T02:09:07Z")),
            server: "https://127.0.0.1:6443".into(),
            version: "v1.36.3".into(),
            uid: "6e0c".into(),
            message: String::new(),
        },
        git: vec![api::GitInfo {
            url: "https://git.example/fleet.git".into(),
            reference: "main".into(),
            revision: REVISION.into(),
            last_success: Some(at("2026-03-04T03:04:07Z")),
            last_attempt: Some(at("2026-03-04T05:08:07Z")),
            last_error: "GitUnreachable: connect: connection refused".into(),
        }],
        apps: vec![api::AppRow {
            name: shop(),
            project: "default".into(),
            sync: SyncStatus::OutOfSync,
            health: HealthStatus::Healthy,
            revision: REVISION.into(),
            operation: Some(OperationPhase::Succeeded),
            drift: 1,
            holds: vec![api::Hold::Pinned],
            message: "pinned to history entry 3".into(),
        }],
        store: api::StoreInfo {
            path: "/var/lib/pintle".into(),
            bytes: 3_500_000,
            generation: 42,
            notes: vec![],
        },
        clock: api::ClockInfo { trusted: true, detail: "synchronized".into() },
    }
}

pub(crate) fn diff() -> api::Diff {
    api::Diff {
        app: shop(),
        revision: REVISION.into(),
        objects: vec![api::ObjectDiff {
            key: ObjectKey::new("apps", "Deployment", "shop", "web"),
            change: api::Change::Update,
            differences: vec![api::Difference {
                path: "spec.replicas".into(),
                live: json!(5),
                wanted: json!(2),
                manager: "kubectl".into(),
                operation: "Update".into(),
                time: Some(at("2026-03-04T05:00:00Z")),
            }],
            before: "kind: Deployment\nspec:\n  replicas: 5\n".into(),
            after: "kind: Deployment\nspec:\n  replicas: 2\n".into(),
        }],
    }
}

pub(crate) fn plan() -> api::Plan {
    let step = |action, kind: &str, name: &str, reason: &str| api::PlanStep {
        action,
        key: ObjectKey::new("", kind, "shop", name),
        wave: 0,
        reason: reason.into(),
    };
    api::Plan {
        app: shop(),
        revision: REVISION.into(),
        steps: vec![
            step(api::Action::Create, "ConfigMap", "new", "not in the cluster"),
            step(api::Action::Prune, "ConfigMap", "old", "no longer in git"),
        ],
        refusals: vec![api::Refusal {
            key: Some(ObjectKey::new("", "PersistentVolumeClaim", "shop", "data")),
            reason: Reason::PruneRefused,
            message: "protected kind".into(),
            since: None,
        }],
        deferred: vec![],
        token: "t0ken".into(),
    }
}

/// An engine that answers with the values above and remembers what it was asked.
pub(crate) struct Agent {
    pub(crate) socket: std::path::PathBuf,
    pub(crate) calls: Arc<Mutex<Vec<(Call, String)>>>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Agent {
    /// Serves on a socket of its own.
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("pintle.sock");
        let (handle, asks) = Handle::new();
        let calls = Arc::default();
        let (stop, stopped) = watch::channel(false);
        let bound = socket::bind(&socket).unwrap();
        let tasks = vec![
            tokio::spawn(engine(asks, Arc::clone(&calls))),
            tokio::spawn(server::serve(bound, handle, stopped)),
        ];
        Self { socket, calls, stop, tasks, _dir: dir }
    }

    /// The calls so far, with who asked.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().iter().map(|(call, _)| call.clone()).collect()
    }

    /// Ends it as the agent ends.
    pub(crate) async fn stop(self) {
        self.stop.send(true).unwrap();
        for task in self.tasks {
            task.await.unwrap();
        }
        assert!(!self.socket.exists(), "the socket's file goes with its owner");
    }
}

async fn engine(mut asks: mpsc::Receiver<Ask>, calls: Arc<Mutex<Vec<(Call, String)>>>) {
    let mut polls = 0;
    while let Some(Ask { call, by, answer }) = asks.recv().await {
        calls.lock().unwrap().push((call.clone(), by.username));
        let _ = answer.send(reply(call, &mut polls));
    }
}

/// The application `shop` exists; its operation `op-2` ends at the third look.
fn reply(call: Call, polls: &mut u32) -> Result<Reply, Problem> {
    let started = || {
        Reply::Operation(api::Operation {
            app: shop(),
            id: "op-2".into(),
            state: operation_state("op-2", OperationPhase::Running),
        })
    };
    Ok(match call {
        Call::Status => Reply::Status(status()),
        Call::AppList => Reply::Apps(api::ApplicationList { items: vec![application()] }),
        Call::AppGet { app, .. } if app == shop() => {
            *polls += 1;
            let mut application = application();
            let phase = if *polls >= 3 { OperationPhase::Succeeded } else { OperationPhase::Running };
            application.status.operation_state = Some(operation_state("op-2", phase));
            Reply::App(application)
        }
        Call::AppSync { app, .. } if app != shop() => {
            return Err(Problem::new(Reason::NoSuch, format!("there is no application {app}")));
        }
        Call::AppSync { request, .. } if request.dry_run => Reply::Plan(plan()),
        Call::AppRollback { request, .. } if request.dry_run => Reply::Plan(plan()),
        Call::AppDelete { request, .. } if request.confirm.is_none() => Reply::Plan(plan()),
        Call::AppSync { request, .. } if request.revision.as_deref() == Some("nowhere") => {
            return Err(Problem::new(
                Reason::RevisionNotFound,
                "application argocd/shop: https://git.example/fleet.git has no revision nowhere",
            ));
        }
        Call::AppSync { request, .. } if request.prune => {
            return Err(Problem::new(Reason::PruneRefused, "application argocd/shop: protected kind"));
        }
        Call::AppSync { .. }
        | Call::AppRollback { .. }
        | Call::AppDelete { .. }
        | Call::AppTerminate { .. } => started(),
        Call::AppDiff { request, .. } => Reply::Diff(match request.revision {
            Some(_) => api::Diff { objects: vec![], ..diff() },
            None => diff(),
        }),
        Call::AppHistory { .. } => Reply::History(history()),
        Call::AppResume { .. } | Call::AppPause { .. } => Reply::App(application()),
        Call::Backups => Reply::Backups(api::BackupList { items: vec![backup()] }),
        Call::Backup { .. } | Call::Restore { .. } => Reply::Backup(backup()),
        Call::AppManifests { .. } => Reply::Manifests(api::Manifests {
            app: shop(),
            revision: REVISION.into(),
            manifests: vec![
                Object::try_from(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}))
                    .unwrap(),
            ],
        }),
        Call::Doctor => Reply::Doctor(api::Doctor {
            checks: vec![api::Check {
                name: "git".into(),
                ok: api::Verdict::Fail,
                detail: "connection refused".into(),
                hint: "check the link".into(),
            }],
        }),
        Call::StoreRebind => {
            Reply::Store(api::StoreBinding { cluster_uid: "new".into(), previous_cluster_uid: "old".into() })
        }
        Call::AppGet { app, .. } => {
            return Err(Problem::new(Reason::NoSuch, format!("there is no application {app}")));
        }
    })
}
