//! Answers to calls: reads from the state at once, requests through the engine, and what needs the cluster or the
//! store in a task of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_api as api;
use pintle_core::diff;
use pintle_core::engine::effect::Answer;
use pintle_core::engine::event::{Event, Request, RollbackRequest, SyncRequest};
use pintle_core::engine::record::RenderRecord;
use pintle_core::engine::{self, Cluster, State};
use pintle_core::plan;
use pintle_model::{AppKey, Object, ObjectKey, Problem, Reason};
use tokio::sync::oneshot;

use super::{Runtime, views};
use crate::handle::{Ask, Call, Reply};
use crate::pipeline::{Message, Pipeline};
use crate::{backups, records, runtime};

/// Carries out one call.
pub(crate) fn call(runtime: &mut Runtime, ask: Ask) {
    let Ask { call, by, answer } = ask;
    let asker = by.clone();
    let by = if by.username.is_empty() { "somebody".to_owned() } else { by.username };
    match call {
        Call::Status => status(runtime, answer),
        Call::AppList => reply(answer, Ok(Reply::Apps(list(runtime)))),
        Call::AppGet { app, refresh } => get(runtime, app, refresh, answer),
        Call::AppSync { app, request } if request.take_over => {
            let (pipeline, request) =
                (runtime.pipeline.clone(), api::SyncRequest { take_over: false, ..request });
            tokio::spawn(async move {
                pipeline.take_over().await;
                // A cluster that was another's has to be looked at first; an answer of any kind comes from the sync.
                let _ = wait_quiet(&pipeline).await;
                let ask = Ask { call: Call::AppSync { app, request }, by: asker, answer };
                let _ = pipeline.sender().send(Message::Call(ask)).await;
            });
        }
        Call::AppSync { app, request } => sync(runtime, app, request, by, answer),
        Call::AppDiff { app, request } => diff_call(runtime, app, &request, answer),
        Call::AppHistory { app } => history(runtime, &app, answer),
        Call::AppRollback { app, request } => rollback(runtime, app, &request, by, answer),
        Call::AppResume { app } => {
            let app_again = app.clone();
            request(runtime, app, Request::Resume { by }, answer, move |state, wall, _| {
                state.apps.get(&app_again).map(|app| Reply::App(views::application(state, app, wall, &[])))
            });
        }
        Call::AppPause { app, request: asked } => {
            let now = runtime.clock.now().wall;
            let until =
                asked.seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)).map(|seconds| {
                    now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(jiff::Timestamp::MAX)
                });
            let pause = engine::record::Pause { since: now, until, reason: asked.reason, by };
            let app_again = app.clone();
            request(runtime, app, Request::Pause(pause), answer, move |state, wall, _| {
                state.apps.get(&app_again).map(|app| Reply::App(views::application(state, app, wall, &[])))
            });
        }
        Call::Backups => {
            let found = backups::list(runtime.pipeline.store()).map(|items| {
                let items = items.iter().map(|backup| views::backup(backup, None)).collect();
                Reply::Backups(api::BackupList { items })
            });
            reply(answer, found);
        }
        Call::Backup { id } => {
            reply(answer, read_backup(&runtime.pipeline, &id).map(|(_, shown)| Reply::Backup(shown)));
        }
        Call::Restore { id, request } => restore(runtime, id, request, answer),
        Call::AppManifests { app, live } => manifests(runtime, &app, live, answer),
        Call::AppDelete { app, request: asked } => delete(runtime, app, &asked, by, answer),
        Call::AppTerminate { app } => {
            let key = app.clone();
            request(runtime, app, Request::Terminate { by }, answer, move |state, _, _| {
                operation_reply(state, &key, None)
            });
        }
        Call::Doctor => runtime::lifecycle::doctor(runtime, answer),
        Call::StoreRebind => rebind(runtime, answer),
    }
}

type Waiter = oneshot::Sender<Result<Reply, Problem>>;

fn reply(answer: Waiter, result: Result<Reply, Problem>) {
    // Whoever asked may have gone.
    let _ = answer.send(result);
}

fn no_such(app: &AppKey) -> Problem {
    Problem::new(Reason::NoSuch, format!("there is no application {app}"))
}

fn list(runtime: &Runtime) -> api::ApplicationList {
    let wall = runtime.clock.now().wall;
    let items =
        runtime.state.apps.values().map(|app| views::application(&runtime.state, app, wall, &[])).collect();
    api::ApplicationList { items }
}

fn status(runtime: &Runtime, answer: Waiter) {
    let wall = runtime.clock.now().wall;
    let store = runtime.pipeline.store();
    let info = api::StoreInfo {
        bytes: store.size_on_disk(),
        generation: store.generation(),
        ..api::StoreInfo::default()
    };
    let uid = store
        .get::<String>(crate::store::Table::Meta, records::CLUSTER_UID)
        .ok()
        .flatten()
        .unwrap_or_default();
    let server = runtime.pipeline.cluster().map(|cluster| cluster.server().to_owned()).unwrap_or_default();
    let cluster = (server, runtime.pipeline.cluster_version(), uid);
    let status = views::status(&runtime.state, wall, &runtime.facts, cluster, info);
    reply(answer, Ok(Reply::Status(status)));
}

fn get(runtime: &mut Runtime, app: AppKey, refresh: api::Refresh, answer: Waiter) {
    if refresh != api::Refresh::None {
        let hard = refresh == api::Refresh::Hard;
        let asked =
            engine::Event::Requested { app: app.clone(), request: Request::Refresh { hard }, ticket: 0 };
        runtime.step(asked);
        // Answered when the poll, and the render if one follows, have ended.
        let pipeline = runtime.pipeline.clone();
        tokio::spawn(async move {
            let result = match wait_refreshed(&pipeline, &app).await {
                Ok(()) => read_app(&pipeline, app).await,
                Err(problem) => Err(problem),
            };
            reply(answer, result);
        });
        return;
    }
    let pipeline = runtime.pipeline.clone();
    tokio::spawn(async move { reply(answer, read_app(&pipeline, app).await) });
}

/// Waits until everything that the agent can do by itself now has been done, or a minute has passed.
async fn wait_quiet(pipeline: &Pipeline) -> Result<(), Problem> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_mins(1);
    while !pipeline.query(|state, now| state.is_quiet(now)).await? && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Waits, by asking the state, until nothing of the refresh is under way.
async fn wait_refreshed(pipeline: &Pipeline, app: &AppKey) -> Result<(), Problem> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(50);
    loop {
        let key = app.clone();
        let busy = pipeline
            .query(move |state, _| {
                let Some(app) = state.apps.get(&key) else { return Err(no_such(&key)) };
                let polling =
                    app.reference().and_then(|reference| state.refs.get(&reference)).is_some_and(|known| {
                        known.poll_now || !matches!(known.phase, engine::RefPhase::Idle { .. })
                    });
                Ok(polling || app.desired.in_flight.is_some())
            })
            .await??;
        if !busy || tokio::time::Instant::now() > deadline {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn read_app(pipeline: &Pipeline, key: AppKey) -> Result<Reply, Problem> {
    let store = pipeline.store().clone();
    let app = key.clone();
    let history = crate::pipeline::blocking(move || records::history(&store, &app)).await?;
    pipeline
        .query(move |state, now| {
            let app = state.apps.get(&key).ok_or_else(|| no_such(&key))?;
            Ok(Reply::App(views::application(state, app, now.wall, &history)))
        })
        .await?
}

/// Sends a request through the engine and answers when it says what became of it.
fn request(
    runtime: &mut Runtime,
    app: AppKey,
    request: Request,
    answer: Waiter,
    then: impl FnOnce(&State, jiff::Timestamp, &Answer) -> Option<Reply> + Send + 'static,
) {
    let (sender, receiver) = oneshot::channel();
    let ticket = runtime.next_ticket();
    runtime.pipeline.wait_for(ticket, sender);
    runtime.step(Event::Requested { app: app.clone(), request, ticket });
    let pipeline = runtime.pipeline.clone();
    tokio::spawn(async move {
        let result = match receiver.await {
            Ok(Ok(said)) => pipeline
                .query(move |state, now| then(state, now.wall, &said))
                .await
                .and_then(|found| found.ok_or_else(|| no_such(&app))),
            Ok(Err(problem)) => Err(problem),
            Err(_) => Err(Problem::new(Reason::Internal, "the engine gave no answer")),
        };
        reply(answer, result);
    });
}

fn operation_reply(state: &State, key: &AppKey, id: Option<u64>) -> Option<Reply> {
    let app = state.apps.get(key)?;
    let current = views::operation_state(app).unwrap_or_default();
    Some(Reply::Operation(api::Operation {
        app: key.clone(),
        id: id.map_or_else(|| current.id.clone(), |id| id.to_string()),
        state: current,
    }))
}

fn started(key: AppKey) -> impl FnOnce(&State, jiff::Timestamp, &Answer) -> Option<Reply> + Send + 'static {
    move |state, _, said| {
        let id = match said {
            Answer::Started(id) => Some(*id),
            Answer::Done(_) | Answer::Planned(_) => None,
        };
        operation_reply(state, &key, id)
    }
}

fn sync(runtime: &mut Runtime, app: AppKey, asked: api::SyncRequest, by: String, answer: Waiter) {
    let Some(found) = runtime.state.apps.get(&app) else { return reply(answer, Err(no_such(&app))) };
    if let Some(revision) = asked.revision.clone().filter(|revision| !follows(found, revision)) {
        let spec = match other_revision(found, &revision, asked.dry_run) {
            Ok(spec) => spec,
            Err(problem) => return reply(answer, Err(problem)),
        };
        let pipeline = runtime.pipeline.clone();
        tokio::spawn(async move {
            match pipeline.render_at(spec, &revision).await {
                Ok(render) => {
                    let then = Box::new(move |runtime: &mut Runtime| {
                        sync_to(runtime, app, asked, by, Some(render), answer);
                    });
                    let _ = pipeline.sender().send(Message::Then(then)).await;
                }
                Err(problem) => reply(answer, Err(problem)),
            }
        });
        return;
    }
    sync_to(runtime, app, asked, by, None, answer);
}

/// Is this the revision that the application follows, or the commit it is rendered at?
fn follows(app: &engine::App, revision: &str) -> bool {
    let current = app.render().map(|render| render.revision.to_string()).unwrap_or_default();
    revision.len() >= 7 && current.starts_with(revision)
        || app.spec.as_ref().is_some_and(|spec| spec.source.target_revision == revision)
}

/// The spec to render another revision with; automated sync would take the application straight back.
fn other_revision(
    app: &engine::App,
    revision: &str,
    dry_run: bool,
) -> Result<Arc<pintle_model::application::Application>, Problem> {
    let Some(spec) = app.spec.clone() else {
        return Err(Problem::new(Reason::InvalidSpecError, format!("{} has no valid spec", app.key)));
    };
    if app.is_automated() && !dry_run {
        return Err(Problem::new(
            Reason::Usage,
            format!(
                "cannot sync {} to {revision}: automated sync follows {}; change targetRevision, or go back with \
                 `pintle rollback {}`",
                app.key, spec.source.target_revision, app.key.name
            ),
        ));
    }
    Ok(spec)
}

/// Syncs to the render in force, or to one of another revision.
fn sync_to(
    runtime: &mut Runtime,
    app: AppKey,
    asked: api::SyncRequest,
    by: String,
    render: Option<Arc<RenderRecord>>,
    answer: Waiter,
) {
    let Some(found) = runtime.state.apps.get(&app) else { return reply(answer, Err(no_such(&app))) };
    let selection: Vec<ObjectKey> = selected(found, render.as_ref(), &asked.resources);
    if !asked.resources.is_empty() && selection.is_empty() {
        let names: Vec<String> = asked.resources.iter().map(ToString::to_string).collect();
        let text = format!("{app} has no object that {} selects", names.join(", "));
        return reply(answer, Err(Problem::new(Reason::NoSuch, text)));
    }
    let wanted =
        SyncRequest { by, prune: asked.prune, selection, confirm: asked.confirm, render: render.clone() };
    if asked.dry_run {
        let render = render.or_else(|| found.render().cloned());
        plan_only(runtime, app, render, wanted, answer);
    } else {
        request(runtime, app.clone(), Request::Sync(wanted), answer, started(app));
    }
}

fn selected(
    app: &engine::App,
    render: Option<&Arc<RenderRecord>>,
    selectors: &[api::ResourceSelector],
) -> Vec<ObjectKey> {
    let wanted =
        render.or(app.render()).into_iter().flat_map(|render| render.objects.iter().map(|entry| &entry.key));
    let mut keys: Vec<ObjectKey> = wanted
        .chain(app.objects.keys())
        .filter(|key| selectors.iter().any(|selector| selector.matches(key)))
        .cloned()
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

fn rollback(runtime: &mut Runtime, app: AppKey, asked: &api::RollbackRequest, by: String, answer: Waiter) {
    if !runtime.state.apps.contains_key(&app) {
        return reply(answer, Err(no_such(&app)));
    }
    let store = runtime.pipeline.store();
    let id = asked.id;
    let found = records::history_entry(store, &app, id).and_then(|entry| {
        let entry = entry.ok_or_else(|| {
            Problem::new(
                Reason::NoSuch,
                format!("{app} has no history entry {id}; see `pintle history {}`", app.name),
            )
        })?;
        records::render(store, entry.render)?.ok_or_else(|| {
            Problem::new(
                Reason::NoSuch,
                format!("the manifests of history entry {id} of {app} are no longer stored"),
            )
        })
    });
    let render = match found {
        Ok(render) => Arc::new(render),
        Err(problem) => return reply(answer, Err(problem)),
    };
    if asked.dry_run {
        let wanted = SyncRequest { by, prune: asked.prune, ..SyncRequest::default() };
        plan_only(runtime, app, Some(render), wanted, answer);
    } else {
        let wanted = RollbackRequest { by, id, render, prune: asked.prune };
        request(runtime, app.clone(), Request::Rollback(wanted), answer, started(app));
    }
}

fn delete(runtime: &mut Runtime, app: AppKey, asked: &api::DeleteRequest, by: String, answer: Waiter) {
    match asked.mode {
        api::DeleteMode::Orphan => {
            let key = app.clone();
            request(runtime, app, Request::DeleteOrphan { by }, answer, move |_, wall, said| {
                let message = match said {
                    Answer::Done(text) => text.clone(),
                    Answer::Started(_) | Answer::Planned(_) => String::new(),
                };
                Some(Reply::Operation(api::Operation {
                    app: key,
                    id: String::new(),
                    state: api::OperationState {
                        phase: api::OperationPhase::Succeeded,
                        message,
                        finished_at: Some(wall),
                        ..api::OperationState::default()
                    },
                }))
            });
        }
        api::DeleteMode::Cascade => {
            let key = app.clone();
            let wanted = Request::DeleteCascade { by, confirm: asked.confirm.clone() };
            request(runtime, app, wanted, answer, move |state, wall, said| match said {
                Answer::Planned(plan) => {
                    let revision = state
                        .apps
                        .get(&key)
                        .and_then(|app| app.render())
                        .map(|render| render.revision.to_string())
                        .unwrap_or_default();
                    Some(Reply::Plan(views::plan(&key, &revision, plan)))
                }
                // It may be over, and the application gone, by the time this is asked.
                Answer::Started(id) => operation_reply(state, &key, Some(*id)).or_else(|| {
                    Some(Reply::Operation(api::Operation {
                        app: key.clone(),
                        id: id.to_string(),
                        state: api::OperationState {
                            phase: api::OperationPhase::Succeeded,
                            finished_at: Some(wall),
                            ..api::OperationState::default()
                        },
                    }))
                }),
                Answer::Done(_) => operation_reply(state, &key, None),
            });
        }
    }
}

fn read_backup(pipeline: &Pipeline, id: &str) -> Result<(backups::Backup, api::Backup), Problem> {
    let found = backups::get(pipeline.store(), id)?;
    let backup = found.ok_or_else(|| {
        Problem::new(Reason::NoSuch, format!("there is no backup {id}; `pintle restore list` shows them"))
    })?;
    let shown = views::backup(&backup, Some(pipeline.mask_key()));
    Ok((backup, shown))
}

/// Puts a backup back: made anew where it is absent, over what is there only when told.
fn restore(runtime: &Runtime, id: String, asked: api::RestoreRequest, answer: Waiter) {
    let pipeline = runtime.pipeline.clone();
    tokio::spawn(async move {
        let result = match read_backup(&pipeline, &id) {
            Ok((backup, shown)) => {
                pipeline.put_back(&backup, asked.force).await.map(|()| Reply::Backup(shown))
            }
            Err(problem) => Err(problem),
        };
        reply(answer, result);
    });
}

fn history(runtime: &Runtime, key: &AppKey, answer: Waiter) {
    let Some(app) = runtime.state.apps.get(key) else { return reply(answer, Err(no_such(key))) };
    let spec = app.raw.get("spec").cloned().unwrap_or_default();
    let found = records::history(runtime.pipeline.store(), key).map(|records| {
        let items = records.iter().map(|record| views::history_entry(record, &spec)).collect();
        Reply::History(api::History { app: key.clone(), items })
    });
    reply(answer, found);
}

/// What would be done, from a survey of the cluster and the same planner as the real thing.
fn plan_only(
    runtime: &Runtime,
    app: AppKey,
    render: Option<Arc<RenderRecord>>,
    wanted: SyncRequest,
    answer: Waiter,
) {
    let Some(render) = render else {
        let problem = runtime.state.apps.get(&app).and_then(|app| app.desired.problem.clone());
        let none = || Problem::new(Reason::ComparisonError, format!("{app} has no render yet"));
        return reply(answer, Err(problem.unwrap_or_else(none)));
    };
    let pipeline = runtime.pipeline.clone();
    tokio::spawn(async move {
        let result = make_plan(&pipeline, &app, &render, wanted).await;
        reply(
            answer,
            result.map(|found| Reply::Plan(views::plan(&app, &render.revision.to_string(), &found))),
        );
    });
}

async fn make_plan(
    pipeline: &Pipeline,
    key: &AppKey,
    render: &Arc<RenderRecord>,
    wanted: SyncRequest,
) -> Result<plan::Plan, Problem> {
    let (app, wanted_render) = (key.clone(), render.clone());
    let unknown = pipeline
        .query(move |state, _| {
            if let Cluster::Lost { problem, .. } = &state.cluster {
                return Err(problem.clone());
            }
            Ok(state.apps.get(&app).map(|app| engine::unknown_keys(app, &wanted_render)).unwrap_or_default())
        })
        .await??;
    let found = pipeline.survey(unknown).await?;
    let (app, render) = (key.clone(), render.clone());
    pipeline
        .query(move |state, _| {
            let app = state.apps.get(&app).ok_or_else(|| no_such(&app))?;
            let found: BTreeMap<_, _> = found.into_iter().map(|found| (found.key, found.object)).collect();
            Ok(engine::make_plan(state, app, &render, &wanted, true, &found))
        })
        .await?
}

/// `app diff`: what a sync would change, from dry runs of the server, with who changed it.
fn diff_call(runtime: &Runtime, key: AppKey, asked: &api::DiffRequest, answer: Waiter) {
    let Some(app) = runtime.state.apps.get(&key) else { return reply(answer, Err(no_such(&key))) };
    if let Some(revision) = asked.revision.clone().filter(|revision| !follows(app, revision)) {
        let spec = match other_revision(app, &revision, true) {
            Ok(spec) => spec,
            Err(problem) => return reply(answer, Err(problem)),
        };
        let pipeline = runtime.pipeline.clone();
        tokio::spawn(async move {
            let result = match pipeline.render_at(spec, &revision).await {
                Ok(render) => make_diff(&pipeline, key, render).await,
                Err(problem) => Err(problem),
            };
            reply(answer, result);
        });
        return;
    }
    let Some(render) = app.render().cloned() else {
        return reply(answer, Err(Problem::new(Reason::ComparisonError, format!("{key} has no render yet"))));
    };
    let pipeline = runtime.pipeline.clone();
    tokio::spawn(async move { reply(answer, make_diff(&pipeline, key, render).await) });
}

async fn make_diff(pipeline: &Pipeline, key: AppKey, render: Arc<RenderRecord>) -> Result<Reply, Problem> {
    let wanted = SyncRequest { by: "diff".to_owned(), prune: true, ..SyncRequest::default() };
    let found = make_plan(pipeline, &key, &render, wanted).await?;
    let mut objects = Vec::new();
    for step in found.steps() {
        objects.extend(diff_step(pipeline, &key, step).await?);
    }
    let extra = found.kept.iter().chain(found.deferred.iter().map(|(key, _)| key));
    let refused = found.refusals.iter().filter(|refusal| refusal.reason == Reason::PruneRefused);
    for object in extra.chain(refused.filter_map(|refusal| refusal.key.as_ref())) {
        objects.extend(diff_prune(pipeline, object).await?);
    }
    Ok(Reply::Diff(api::Diff { app: key, revision: render.revision.to_string(), objects }))
}

async fn diff_step(
    pipeline: &Pipeline,
    app: &AppKey,
    step: &plan::Step,
) -> Result<Option<api::ObjectDiff>, Problem> {
    let Some(apply) = &step.apply else { return diff_prune(pipeline, &step.key).await };
    let live = pipeline.read_object(&step.key).await?;
    let after = pipeline.dry_run(app, apply).await?;
    let mask = pipeline.mask_key();
    let Some(live) = live else {
        return Ok(Some(api::ObjectDiff {
            key: step.key.clone(),
            change: api::Change::Create,
            differences: Vec::new(),
            before: String::new(),
            after: yaml(&after, mask),
        }));
    };
    let sets: Vec<_> = pintle_core::fields::OwnedSet::from_answer(&after, pintle_model::names::FIELD_MANAGER)
        .into_iter()
        .collect();
    let old = pintle_core::fields::OwnedSet::from_answer(&live, pintle_model::names::FIELD_MANAGER);
    let sets: Vec<_> = sets.iter().chain(&old).collect();
    let mut differences = diff::differences(&live, &after, &sets);
    // The object may differ in ownership only.
    if differences.is_empty() {
        return Ok(None);
    }
    if live.is_secret() {
        diff::mask(&mut differences, mask);
    }
    Ok(Some(api::ObjectDiff {
        key: step.key.clone(),
        change: api::Change::Update,
        differences: differences.into_iter().map(difference).collect(),
        before: yaml(&live, mask),
        after: yaml(&after, mask),
    }))
}

async fn diff_prune(pipeline: &Pipeline, key: &ObjectKey) -> Result<Option<api::ObjectDiff>, Problem> {
    Ok(pipeline.read_object(key).await?.map(|live| api::ObjectDiff {
        key: key.clone(),
        change: api::Change::Prune,
        differences: Vec::new(),
        before: yaml(&live, pipeline.mask_key()),
        after: String::new(),
    }))
}

fn difference(found: diff::Difference) -> api::Difference {
    let manager = found.manager.unwrap_or(diff::Manager {
        name: String::new(),
        operation: String::new(),
        subresource: String::new(),
        time: None,
    });
    api::Difference {
        path: found.path.to_string(),
        live: found.live.unwrap_or_default(),
        wanted: found.wanted.unwrap_or_default(),
        manager: manager.name,
        operation: manager.operation,
        time: manager.time,
    }
}

/// YAML for reading: masked, without bookkeeping of the server.
fn yaml(object: &Object, mask: &[u8]) -> String {
    let mut shown = diff::mask_object(object, mask);
    shown.fields_mut().remove("status");
    for name in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
        shown.metadata_mut().remove(name);
    }
    pintle_yaml::to_string(&shown.to_value())
}

fn manifests(runtime: &Runtime, key: &AppKey, live: bool, answer: Waiter) {
    let Some(app) = runtime.state.apps.get(key) else { return reply(answer, Err(no_such(key))) };
    let Some(render) = app.render().cloned() else {
        return reply(answer, Err(Problem::new(Reason::ComparisonError, format!("{key} has no render yet"))));
    };
    let (pipeline, key) = (runtime.pipeline.clone(), key.clone());
    tokio::spawn(async move {
        let mut found = Vec::new();
        for entry in &render.objects {
            let one = if live {
                pipeline.read_object(&entry.key).await
            } else {
                pipeline.read_manifest(entry.manifest).await.map(Some)
            };
            match one {
                Ok(object) => {
                    found.extend(object.map(|object| diff::mask_object(&object, pipeline.mask_key())));
                }
                Err(problem) => return reply(answer, Err(problem)),
            }
        }
        let revision = if live { String::new() } else { render.revision.to_string() };
        reply(answer, Ok(Reply::Manifests(api::Manifests { app: key, revision, manifests: found })));
    });
}

/// The store is bound to the cluster that the kubeconfig names now. Its inventory spoke of another cluster: it is
/// rebuilt from this one.
fn rebind(runtime: &mut Runtime, answer: Waiter) {
    let pipeline = runtime.pipeline.clone();
    let sender = runtime.pipeline.sender();
    tokio::spawn(async move {
        let result = pipeline.rebind().await;
        if result.is_ok() {
            // The process starts anew from the rebound store: nothing in memory may outlive the change.
            let _ = sender.send(Message::Restart).await;
        }
        reply(answer, result.map(Reply::Store));
    });
}
