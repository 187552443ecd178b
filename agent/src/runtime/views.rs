//! The state in the words of the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_api as api;
use pintle_core::engine::app::{App, Live, OpPhase};
use pintle_core::engine::record::{HistoryRecord, ObjectResult, Phase, ResultCode, Trigger};
use pintle_core::engine::view::{self, AppView};
use pintle_core::engine::{Cluster, State};
use pintle_core::fields::Verdict;
use pintle_core::health::{Health, Status};
use pintle_core::plan;
use pintle_model::ObjectKey;

/// What the views say beside the state.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Since when this process runs.
    pub(crate) started: Timestamp,
    /// How the cluster is called in the configuration.
    pub(crate) cluster_name: String,
    /// Labels of the cluster in the configuration.
    pub(crate) cluster_labels: BTreeMap<String, String>,
    /// Why a newer configuration is not in force.
    pub(crate) refused: Option<String>,
    /// Where the store lies.
    pub(crate) store_path: String,
    /// What happened to the store at start, and how the service is held.
    pub(crate) notes: Vec<String>,
}

/// One application as Argo CD shows it. `history` is left out of lists.
pub(crate) fn application(
    state: &State,
    app: &App,
    wall: Timestamp,
    history: &[HistoryRecord],
) -> api::Application {
    let view = view::app_view(state, app, wall);
    let text = |path: &[&str]| path.iter().try_fold(&app.raw, |value, name| value.get(*name));
    let map = |name: &str| -> BTreeMap<String, String> {
        text(&["metadata", name])
            .and_then(|value| serde_json::from_value(value.clone()).ok())
            .unwrap_or_default()
    };
    let finalizers =
        text(&["metadata", "finalizers"]).and_then(|value| serde_json::from_value(value.clone()).ok());
    let revision = app.render().map(|render| render.revision.to_string()).unwrap_or_default();
    let spec = app.raw.get("spec").cloned().unwrap_or_default();
    api::Application {
        metadata: api::Metadata {
            name: app.key.name.to_string(),
            namespace: app.key.namespace.to_string(),
            labels: map("labels"),
            annotations: map("annotations"),
            finalizers: finalizers.unwrap_or_default(),
        },
        status: api::ApplicationStatus {
            sync: api::SyncState {
                status: sync(view.sync),
                revision,
                compared_to: serde_json::json!({"source": spec.get("source"), "destination": spec.get("destination")}),
            },
            health: health(&view.health, None),
            resources: resources(&view),
            operation_state: operation_state(app),
            history: history.iter().map(|record| history_entry(record, &spec)).collect(),
            conditions: view
                .conditions
                .iter()
                .map(|condition| api::Condition {
                    kind: condition.name.to_owned(),
                    message: condition.message.clone(),
                    last_transition_time: condition.since,
                })
                .collect(),
            reconciled_at: app.reconciled_at,
            observed_at: observed_at(state, wall),
            summary: api::Summary::default(),
            source_type: if app.render().is_some() { "Directory".to_owned() } else { String::new() },
            controller_namespace: state.settings.agent_namespace.clone(),
        },
        spec,
    }
}

/// While watches are live, what we know is true now.
fn observed_at(state: &State, wall: Timestamp) -> Option<Timestamp> {
    match &state.cluster {
        Cluster::Ready => Some(wall),
        Cluster::Lost { since, .. } => Some(*since),
        Cluster::Unknown | Cluster::Connecting => None,
    }
}

fn resources(view: &AppView) -> Vec<api::ResourceStatus> {
    view.resources
        .iter()
        .map(|resource| api::ResourceStatus {
            group: resource.key.group.to_string(),
            version: resource.api_version.rsplit('/').next().unwrap_or_default().to_owned(),
            kind: resource.key.kind.to_string(),
            namespace: resource.key.namespace.to_string(),
            name: resource.key.name.to_string(),
            status: Some(sync(resource.sync)),
            health: resource.health.as_ref().map(|found| health(found, None)),
            requires_pruning: resource.requires_pruning,
            hook: resource.hook,
            sync_wave: (resource.wave != 0).then_some(i64::from(resource.wave)),
        })
        .collect()
}

fn sync(status: view::SyncStatus) -> api::SyncStatus {
    match status {
        view::SyncStatus::Synced => api::SyncStatus::Synced,
        view::SyncStatus::OutOfSync => api::SyncStatus::OutOfSync,
        view::SyncStatus::Unknown => api::SyncStatus::Unknown,
    }
}

fn health(found: &Health, since: Option<Timestamp>) -> api::ResourceHealth {
    api::ResourceHealth {
        status: health_word(found.status),
        message: found.message.clone(),
        last_transition_time: since,
    }
}

fn health_word(status: Status) -> api::HealthStatus {
    match status {
        Status::Healthy => api::HealthStatus::Healthy,
        Status::Suspended => api::HealthStatus::Suspended,
        Status::Progressing => api::HealthStatus::Progressing,
        Status::Missing => api::HealthStatus::Missing,
        Status::Degraded => api::HealthStatus::Degraded,
        Status::Unknown => api::HealthStatus::Unknown,
    }
}

/// The operation that runs, or the last one that ended.
pub(crate) fn operation_state(app: &App) -> Option<api::OperationState> {
    if let Some(operation) = &app.operation {
        let message = match &operation.phase {
            OpPhase::Surveying => "looking which objects exist".to_owned(),
            OpPhase::Beginning { .. } => "writing the journal".to_owned(),
            OpPhase::Checking { pending, .. } => {
                format!("dry runs before the first write; {} objects to go", pending.len())
            }
            OpPhase::Applying { pending, .. } => {
                format!("applying; {} objects to go in this stage", pending.len())
            }
            OpPhase::Waiting { waiting, .. } => {
                let names: Vec<String> = waiting.iter().take(3).map(ToString::to_string).collect();
                format!("waiting for {}: {}", waiting.len(), names.join("; "))
            }
            OpPhase::Pruning { pending, .. } => {
                format!("pruning; {} objects to go in this stage", pending.len())
            }
        };
        return Some(api::OperationState {
            id: operation.id.to_string(),
            phase: phase(operation.running_phase()),
            message,
            started_at: Some(operation.started),
            finished_at: None,
            operation: request_value(
                &operation.trigger,
                &operation.render.revision.to_string(),
                operation.request.prune,
            ),
            sync_result: Some(sync_result(&operation.render.revision.to_string(), &operation.results, app)),
            retry_count: u64::from(app.auto.failures),
        });
    }
    let last = app.last.as_ref()?;
    Some(api::OperationState {
        id: last.operation.to_string(),
        phase: phase(last.phase),
        message: last.message.clone(),
        started_at: Some(last.started),
        finished_at: Some(last.finished),
        operation: request_value(&last.trigger, &last.revision.to_string(), false),
        sync_result: Some(sync_result(&last.revision.to_string(), &last.results, app)),
        retry_count: u64::from(last.retries),
    })
}

fn request_value(trigger: &Trigger, revision: &str, prune: bool) -> serde_json::Value {
    serde_json::json!({
        "sync": {"revision": revision, "prune": prune},
        "initiatedBy": {"username": trigger.who(), "automated": *trigger == Trigger::Automated},
    })
}

fn sync_result(revision: &str, results: &[ObjectResult], app: &App) -> api::SyncResult {
    api::SyncResult {
        revision: revision.to_owned(),
        resources: results.iter().map(|result| object_result(result, app)).collect(),
    }
}

fn object_result(result: &ObjectResult, app: &App) -> api::ResourceResult {
    let version = app.entry(&result.key).map_or_else(|| Arc::from(""), |entry| entry.api_version.clone());
    let message = match result.code {
        ResultCode::Synced | ResultCode::Pruned => format!("{} {}", named(&result.key), result.message),
        ResultCode::SyncFailed | ResultCode::PruneSkipped => result.message.clone(),
    };
    api::ResourceResult {
        group: result.key.group.to_string(),
        version: version.rsplit('/').next().unwrap_or_default().to_owned(),
        kind: result.key.kind.to_string(),
        namespace: result.key.namespace.to_string(),
        name: result.key.name.to_string(),
        status: Some(match result.code {
            ResultCode::Synced => api::ResultCode::Synced,
            ResultCode::SyncFailed => api::ResultCode::SyncFailed,
            ResultCode::Pruned => api::ResultCode::Pruned,
            ResultCode::PruneSkipped => api::ResultCode::PruneSkipped,
        }),
        message,
        hook_phase: None,
        hook_type: String::new(),
        sync_phase: "Sync".to_owned(),
    }
}

/// `deployment.apps/web`, as kubectl prints it.
fn named(key: &ObjectKey) -> String {
    let kind = key.kind.to_lowercase();
    if key.group.is_empty() {
        format!("{kind}/{}", key.name)
    } else {
        format!("{kind}.{}/{}", key.group, key.name)
    }
}

fn phase(phase: Phase) -> api::OperationPhase {
    match phase {
        Phase::Running => api::OperationPhase::Running,
        Phase::Terminating => api::OperationPhase::Terminating,
        Phase::Succeeded => api::OperationPhase::Succeeded,
        Phase::Failed => api::OperationPhase::Failed,
        Phase::Error => api::OperationPhase::Error,
    }
}

/// A history entry.
pub(crate) fn history_entry(record: &HistoryRecord, spec: &serde_json::Value) -> api::HistoryEntry {
    api::HistoryEntry {
        id: record.id,
        revision: record.revision.to_string(),
        deployed_at: Some(record.finished),
        deploy_started_at: Some(record.started),
        initiated_by: api::InitiatedBy {
            username: record.trigger.who().to_owned(),
            automated: record.trigger == Trigger::Automated,
        },
        source: spec.get("source").cloned().unwrap_or_default(),
        phase: phase(record.phase),
        message: record.message.clone(),
        subject: record.commit.as_ref().map(|commit| commit.subject.clone()).unwrap_or_default(),
        author: record.commit.as_ref().map(|commit| commit.author.clone()).unwrap_or_default(),
        retries: u64::from(record.retries),
        notes: record.notes.clone(),
    }
}

/// Everything on one screen.
pub(crate) fn status(
    state: &State,
    wall: Timestamp,
    facts: &Facts,
    cluster: (String, String, String),
    store: api::StoreInfo,
) -> api::Status {
    let (reachable, since, message) = match &state.cluster {
        Cluster::Ready => (true, None, String::new()),
        Cluster::Lost { problem, since, .. } => {
            (false, Some(*since), format!("{}: {}", problem.message, problem.reason.hint()))
        }
        Cluster::Unknown | Cluster::Connecting => (false, None, "connecting".to_owned()),
    };
    let (server, version, uid) = cluster;
    let mut notes = facts.notes.clone();
    notes.extend(facts.refused.clone());
    notes.extend(state.file_problems.iter().map(|problem| problem.message.clone()));
    if let Some(problem) = &state.save_problem {
        notes.push(format!("the store cannot be written: {}", problem.message));
    }
    api::Status {
        now: wall,
        agent: api::AgentInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            id: state.settings.agent_id.clone(),
            cluster: facts.cluster_name.clone(),
            labels: facts.cluster_labels.clone(),
            namespace: state.settings.agent_namespace.clone(),
            pid: std::process::id(),
            started_at: Some(facts.started),
            notes,
        },
        cluster: api::ClusterInfo { reachable, since, server, version, uid, message },
        git: state
            .refs
            .iter()
            .map(|(key, known)| api::GitInfo {
                url: key.url.clone(),
                reference: key.target.clone(),
                revision: known.resolved.map(|revision| revision.to_string()).unwrap_or_default(),
                last_success: known.last_ok,
                last_attempt: None,
                last_error: known
                    .problem
                    .as_ref()
                    .map(|problem| format!("{}: {}", problem.message, problem.reason.hint()))
                    .unwrap_or_default(),
            })
            .collect(),
        apps: state.apps.values().map(|app| row(state, app, wall)).collect(),
        store: api::StoreInfo { path: facts.store_path.clone(), ..store },
        clock: crate::runtime::lifecycle::clock_info(wall),
    }
}

fn row(state: &State, app: &App, wall: Timestamp) -> api::AppRow {
    let view = view::app_view(state, app, wall);
    let drift = app
        .objects
        .values()
        .filter(|tracked| {
            matches!(
                tracked.live,
                Live::Present { verdict: Verdict::Drifted, .. } | Live::Gone | Live::Foreign(_)
            )
        })
        .count();
    let mut holds = Vec::new();
    if app.holds.pin.is_some() {
        holds.push(api::Hold::Pinned);
    }
    if app.holds.pause.is_some() {
        holds.push(api::Hold::Paused);
    }
    if app.holds.detached {
        holds.push(api::Hold::Detached);
    }
    api::AppRow {
        name: app.key.clone(),
        project: app.spec.as_ref().map(|spec| spec.project.clone()).unwrap_or_default(),
        sync: sync(view.sync),
        health: health_word(view.health.status),
        revision: app.render().map(|render| render.revision.to_string()).unwrap_or_default(),
        operation: operation_state(app).map(|operation| operation.phase),
        drift: drift as u64,
        holds,
        message: view.conditions.first().map_or_else(
            || view.health.message.clone(),
            |condition| format!("{}: {}", condition.name, condition.message),
        ),
    }
}

/// A plan in the words of the API.
pub(crate) fn plan(app: &pintle_model::AppKey, revision: &str, found: &plan::Plan) -> api::Plan {
    let stages = found.stages.iter();
    let steps = stages
        .flat_map(|stage| stage.steps.iter().map(move |step| (stage.wave, step)))
        .map(|(wave, step)| api::PlanStep {
            action: match step.action {
                plan::Action::Create => api::Action::Create,
                plan::Action::Update | plan::Action::Revert => api::Action::Update,
                plan::Action::Adopt => api::Action::Adopt,
                plan::Action::Prune => api::Action::Prune,
                plan::Action::Hook => api::Action::Hook,
            },
            key: step.key.clone(),
            wave: i64::from(wave),
            reason: step.reason.clone(),
        })
        .collect();
    api::Plan {
        app: app.clone(),
        revision: revision.to_owned(),
        steps,
        refusals: found
            .refusals
            .iter()
            .map(|refusal| api::Refusal {
                key: refusal.key.clone(),
                reason: refusal.reason,
                message: refusal.message.clone(),
                since: None,
            })
            .collect(),
        deferred: found
            .deferred
            .iter()
            .map(|(key, why)| api::Refusal {
                key: Some(key.clone()),
                reason: pintle_model::Reason::PruneDeferred,
                message: why.clone(),
                since: None,
            })
            .collect(),
        token: found.token.clone().unwrap_or_default(),
    }
}

/// A backup; its manifest only where a key for masks is given.
pub(crate) fn backup(backup: &crate::backups::Backup, mask: Option<&[u8]>) -> api::Backup {
    let manifest = mask.and_then(|mask| {
        let object = pintle_model::Object::try_from(backup.object.clone()).ok()?;
        Some(pintle_yaml::to_string(&pintle_core::diff::mask_object(&object, mask).to_value()))
    });
    api::Backup {
        id: backup.id.clone(),
        app: backup.app.clone(),
        key: backup.key.clone(),
        why: backup.why.clone(),
        at: backup.at,
        manifest: manifest.unwrap_or_default(),
    }
}
