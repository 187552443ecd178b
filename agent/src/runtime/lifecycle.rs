//! Beginning and end: the service, one pass, an agent for one command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use pintle_api as api;
use pintle_core::engine::{self, Cluster, Mode, State};
use pintle_model::{Problem, Reason};
use tokio::sync::{mpsc, oneshot, watch};

use super::settings::AppFolders;
use super::{RunSettings, Runtime, channel, views};
use crate::clock::Clock;
use crate::handle::{Ask, Handle, Reply};
use crate::pipeline::{Identity, Message, Pipeline};
use crate::source::Sources;
use crate::store::{self, Opened};
use crate::{apps, records, server, socket};

/// How long a short-lived agent looks around before its command is answered.
const LOOK_AROUND: Duration = Duration::from_secs(10);
/// One pass ends after this at the latest: a timer's next pass must not wait behind it.
const ONCE_LIMIT: Duration = Duration::from_mins(30);

/// An agent that lives as long as one command.
pub struct ShortLived {
    socket: PathBuf,
    stop: mpsc::Sender<Message>,
    ended: tokio::task::JoinHandle<State>,
    close: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
}

impl std::fmt::Debug for ShortLived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShortLived").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl ShortLived {
    /// Where it serves.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Lets it end what it does and close the store.
    pub async fn shutdown(self) {
        let _ = self.stop.send(Message::Stop).await;
        let _ = self.ended.await;
        let _ = self.close.send(true);
        let _ = self.serving.await;
    }
}

/// What `once` did.
#[derive(Debug)]
pub struct OnceSummary {
    /// The state at the end.
    pub status: api::Status,
    /// The worst that happened; decides the exit code.
    pub problem: Option<Problem>,
}

/// A runtime with its socket bound, ready to run.
struct Prepared {
    runtime: Runtime,
    sender: mpsc::Sender<Message>,
    bound: socket::Bound,
    handle: Handle,
    asks: mpsc::Receiver<Ask>,
}

/// Opens the store, reads its records, binds the socket. Whoever holds the store's lock serves.
async fn prepare(settings: &RunSettings, mode: Mode, wait_for_lock: Duration) -> Result<Prepared, Problem> {
    let clock = Clock::new();
    let options = store::Options {
        path: settings.config.store.path.clone(),
        key_file: key_credential(),
        wait_for_lock,
    };
    let Opened { store, notes } = crate::pipeline::blocking(move || store::open(options)).await?;
    for note in &notes {
        if *note != store::Note::Fresh {
            tracing::warn!("{note}");
        }
    }
    let context = settings.context();
    let records = records::load(&store, |spec| {
        let object = pintle_model::Object::try_from(spec.clone()).ok()?;
        apps::application_from_object(&object, &context).ok()
    })?;
    let known: Vec<_> = records
        .apps
        .iter()
        .filter(|(_, record)| !record.detached)
        .map(|(key, record)| (key.clone(), record.place.clone()))
        .collect();
    let state = engine::restore(settings.engine(mode), records);
    let sources = Sources::new(settings.config.store.path.join("git"), settings.config.repositories()?);
    let (sender, messages) = channel();
    let identity = Identity {
        agent_id: settings.config.agent_id.clone(),
        agent_namespace: settings.config.agent_namespace.clone(),
        children: context,
        take_over: settings.take_over,
        observe: mode == Mode::Observe,
    };
    let kubeconfig = settings.config.kubeconfig.clone();
    let pipeline = Pipeline::new(identity, store, sources, kubeconfig, sender.clone());
    let bound = socket::bind(&settings.socket())?;
    let (handle, asks) = Handle::new();
    let facts = views::Facts {
        started: clock.now().wall,
        cluster_name: settings.config.cluster_name.clone(),
        cluster_labels: settings.config.cluster_labels.clone(),
        refused: None,
        store_path: settings.config.store.path.display().to_string(),
        notes: notes.iter().filter(|note| **note != store::Note::Fresh).map(ToString::to_string).collect(),
    };
    let runtime = Runtime {
        state,
        pipeline,
        clock,
        messages,
        apps: AppFolders::new(settings.clone(), known.into_iter()),
        facts,
        until_quiet: mode == Mode::Once,
        restart: false,
    };
    Ok(Prepared { runtime, sender, bound, handle, asks })
}

/// `LoadCredential=pintle-key:...` of systemd.
fn key_credential() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("CREDENTIALS_DIRECTORY")?).join("pintle-key");
    path.exists().then_some(path)
}

/// Passes questions of the socket into the loop.
async fn forward(mut asks: mpsc::Receiver<Ask>, sender: mpsc::Sender<Message>) {
    while let Some(ask) = asks.recv().await {
        if sender.send(Message::Call(ask)).await.is_err() {
            return;
        }
    }
}

/// The service: runs until SIGTERM or SIGINT. SIGHUP, or a file that changed, reads the configuration and the folders
/// of applications again.
pub async fn run(mut settings: RunSettings) -> Result<(), Problem> {
    notify_status("opening the store");
    loop {
        let prepared = prepare(&settings, Mode::Run, Duration::from_mins(1)).await?;
        let sender = prepared.sender.clone();
        let signals = tokio::spawn(signals(sender.clone()));
        let mut watched = settings.config.app_folders.clone();
        watched.extend(settings.config.file.clone());
        watched.extend(settings.config.secret_files());
        let reloads = tokio::spawn(watch_files(watched, sender));
        let (again, _) = drive(prepared).await;
        signals.abort();
        reloads.abort();
        if !again {
            return Ok(());
        }
        // It may have changed once more since it was found good; then the one in force stays.
        if let Ok(new) = settings.again() {
            settings = new;
        }
    }
}

/// Runs a prepared runtime with its socket to its end. Tells whether it wants to be started anew.
async fn drive(prepared: Prepared) -> (bool, State) {
    let Prepared { runtime, sender, bound, handle, asks } = prepared;
    let (close, closed) = watch::channel(false);
    let serving = tokio::spawn(server::serve(bound, handle, closed));
    let forwarding = tokio::spawn(forward(asks, sender));
    let (state, again) = runtime.run().await;
    let _ = close.send(true);
    let _ = serving.await;
    forwarding.abort();
    let _ = forwarding.await;
    (again, state)
}

/// One pass: everything that can be done now.
pub async fn once(settings: RunSettings) -> Result<OnceSummary, Problem> {
    let prepared = prepare(&settings, Mode::Once, Duration::from_mins(1)).await?;
    let facts = prepared.runtime.facts.clone();
    let pipeline = prepared.runtime.pipeline.clone();
    let clock = prepared.runtime.clock.clone();
    let sender = prepared.sender.clone();
    let signals = tokio::spawn(signals(sender.clone()));
    let limit = tokio::spawn(async move {
        tokio::time::sleep(ONCE_LIMIT).await;
        let _ = sender.send(Message::Stop).await;
    });
    let (_, state) = drive(prepared).await;
    signals.abort();
    limit.abort();
    let wall = clock.now().wall;
    let info = api::StoreInfo {
        bytes: pipeline.store().size_on_disk(),
        generation: pipeline.store().generation(),
        ..api::StoreInfo::default()
    };
    let server = pipeline.cluster().map(|cluster| cluster.server().to_owned()).unwrap_or_default();
    let status = views::status(&state, wall, &facts, (server, String::new(), String::new()), info);
    Ok(OnceSummary { problem: worst(&state), status })
}

/// The first thing that keeps the pass from being a success.
fn worst(state: &State) -> Option<Problem> {
    if let Cluster::Lost { problem, .. } = &state.cluster {
        return Some(problem.clone());
    }
    let failed = state.apps.values().find_map(|app| {
        let last = app.last.as_ref().filter(|_| app.auto.failed.is_some())?;
        Some(Problem::new(Reason::SyncError, format!("{}: {}", app.key, last.message)))
    });
    let source = state.refs.values().find_map(|known| known.problem.clone());
    let render = state.apps.values().find_map(|app| app.desired.problem.clone());
    let refused = state.apps.values().find_map(|app| {
        let refusal = app.verdicts.refusals.first()?;
        Some(Problem::new(refusal.reason, format!("{}: {}", app.key, refusal.message)))
    });
    failed.or(render).or(source).or(refused).or_else(|| state.file_problems.first().cloned())
}

/// Starts an agent for one command: it looks around first, so that the command sees the cluster and git as they
/// are, and touches nothing by itself.
pub async fn start_short_lived(settings: RunSettings) -> Result<ShortLived, Problem> {
    let prepared = prepare(&settings, Mode::Observe, Duration::ZERO).await?;
    let Prepared { runtime, sender, bound, handle, asks } = prepared;
    let pipeline = runtime.pipeline.clone();
    let (close, closed) = watch::channel(false);
    let ended = tokio::spawn(async move { runtime.run().await.0 });
    tokio::spawn(forward(asks, sender.clone()));
    look_around(&pipeline).await;
    let socket = bound.path().to_owned();
    let serving = tokio::spawn(server::serve(bound, handle, closed));
    Ok(ShortLived { socket, stop: sender, ended, close, serving })
}

async fn look_around(pipeline: &Pipeline) {
    let deadline = tokio::time::Instant::now() + LOOK_AROUND;
    while tokio::time::Instant::now() < deadline {
        match pipeline.query(|state, now| state.is_quiet(now)).await {
            Ok(true) | Err(_) => return,
            Ok(false) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Reads every record of the store.
pub async fn check_store(settings: RunSettings) -> Result<api::StoreCheck, Problem> {
    let path = settings.config.store.path.clone();
    let options =
        store::Options { path: path.clone(), key_file: key_credential(), wait_for_lock: Duration::ZERO };
    crate::pipeline::blocking(move || {
        let Opened { store, notes } = store::open(options)?;
        let (records, mut problems) = store.check();
        problems.extend(notes.iter().filter(|note| **note != store::Note::Fresh).map(ToString::to_string));
        Ok(api::StoreCheck {
            path: path.display().to_string(),
            records,
            bytes: store.size_on_disk(),
            generation: store.generation(),
            problems,
        })
    })
    .await
}

async fn signals(sender: mpsc::Sender<Message>) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut found = kinds.map(|kind| signal(kind).ok());
    let [terminate, interrupt, hangup] = &mut found;
    let (Some(terminate), Some(interrupt), Some(hangup)) = (terminate, interrupt, hangup) else {
        tracing::warn!("signals cannot be received; stop the process by SIGKILL");
        return;
    };
    loop {
        let message = tokio::select! {
            _ = terminate.recv() => Message::Stop,
            _ = interrupt.recv() => Message::Stop,
            _ = hangup.recv() => Message::Reload,
        };
        if sender.send(message).await.is_err() {
            return;
        }
    }
}

/// Looks at the configuration and the folders of applications now and then: names, sizes and times of files. No notification interface: it
/// costs a handful of `stat` calls, works on every file system, and cannot miss anything.
async fn watch_files(folders: Vec<PathBuf>, sender: mpsc::Sender<Message>) {
    let mut known = fingerprint(&folders);
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = fingerprint(&folders);
        if now != known {
            known = now;
            if sender.send(Message::Reload).await.is_err() {
                return;
            }
        }
    }
}

fn fingerprint(folders: &[PathBuf]) -> Vec<(PathBuf, u64, Option<std::time::SystemTime>)> {
    let entry = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok()?;
        metadata.is_file().then(|| (path, metadata.len(), metadata.modified().ok()))
    };
    let inside = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let all = folders.iter().cloned().chain(inside.map(|found| found.path()));
    let mut files: Vec<_> = all.filter_map(entry).collect();
    files.sort();
    files
}

/// Tells systemd, where it listens, that the engine is alive, and when it guards drift for the first time.
pub(super) fn heartbeat(state: &State) {
    let guarded = match &state.cluster {
        Cluster::Ready => state.watched.iter().all(|(kind, _)| {
            state.watches.get(kind).is_some_and(|watch| watch.synced || watch.problem.is_some())
        }),
        Cluster::Lost { .. } => true,
        Cluster::Unknown | Cluster::Connecting => false,
    };
    let mut states = vec![sd_notify::NotifyState::Watchdog];
    let text = match &state.cluster {
        Cluster::Lost { problem, .. } => format!("the cluster cannot be reached: {}", problem.message),
        _ => format!("{} applications", state.apps.len()),
    };
    states.push(sd_notify::NotifyState::Status(&text));
    if guarded {
        states.push(sd_notify::NotifyState::Ready);
    }
    let _ = sd_notify::notify(&states);
}

/// Tells systemd that the end has begun.
pub(super) fn stopping() {
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
}

fn notify_status(text: &str) {
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Status(text)]);
}

/// Wall time is trusted when it is not before this version was written.
pub(super) fn clock_info(wall: Timestamp) -> api::ClockInfo {
    /// 2026-11-01: no agent of this version can run before it was built.
    const BUILT: i64 = 1_793_491_200;
    if wall.as_second() < BUILT {
        return api::ClockInfo {
            trusted: false,
            detail: format!(
                "{wall} is before this version was built; set the clock (certificates will be refused)"
            ),
        };
    }
    api::ClockInfo { trusted: true, detail: wall.to_string() }
}

/// `pintle doctor`: what the agent needs, each looked at now.
pub(super) fn doctor(runtime: &Runtime, answer: oneshot::Sender<Result<Reply, Problem>>) {
    let pipeline = runtime.pipeline.clone();
    let refs: Vec<_> = runtime.state.refs.keys().cloned().collect();
    let wall = runtime.clock.now().wall;
    let files: Vec<String> =
        runtime.state.file_problems.iter().map(|problem| problem.message.clone()).collect();
    tokio::spawn(async move {
        let mut checks = vec![clock_check(wall), store_check(&pipeline)];
        checks.extend(cluster_checks(&pipeline).await);
        for reference in refs {
            let resolved = pipeline.sources().resolve(&reference.url, &reference.target).await;
            let detail = |revision: &str| format!("{} at {revision}", reference.target);
            checks.push(match resolved {
                Ok(found) => ok(&format!("git {}", reference.url), &detail(&found.revision.short())),
                Err(problem) => fail(&format!("git {}", reference.url), &problem),
            });
        }
        if files.is_empty() {
            checks.push(ok("applications", "every file can be read"));
        }
        for text in files {
            checks.push(fail("applications", &Problem::new(Reason::InvalidSpecError, text)));
        }
        let _ = answer.send(Ok(Reply::Doctor(api::Doctor { checks })));
    });
}

fn ok(name: &str, detail: &str) -> api::Check {
    api::Check { name: name.to_owned(), ok: api::Verdict::Ok, detail: detail.to_owned(), hint: String::new() }
}

fn fail(name: &str, problem: &Problem) -> api::Check {
    api::Check {
        name: name.to_owned(),
        ok: api::Verdict::Fail,
        detail: problem.message.clone(),
        hint: problem.reason.hint().to_owned(),
    }
}

fn clock_check(wall: Timestamp) -> api::Check {
    let info = clock_info(wall);
    let verdict = if info.trusted { api::Verdict::Ok } else { api::Verdict::Warn };
    api::Check { name: "clock".into(), ok: verdict, detail: info.detail, hint: String::new() }
}

fn store_check(pipeline: &Pipeline) -> api::Check {
    let store = pipeline.store();
    let folder = store.path().display().to_string();
    match rustix::fs::statvfs(store.path()) {
        Ok(stat) => {
            let free = stat.f_bavail * stat.f_frsize / (1 << 20);
            let detail =
                format!("{folder}: {} KiB used, {free} MiB free on its disk", store.size_on_disk() / 1_024);
            let verdict = if free < 64 { api::Verdict::Warn } else { api::Verdict::Ok };
            let hint = if free < 64 { "make room on this disk" } else { "" };
            api::Check { name: "store".into(), ok: verdict, detail, hint: hint.into() }
        }
        Err(error) => fail("store", &Problem::new(Reason::StoreError, format!("{folder}: {error}"))),
    }
}

async fn cluster_checks(pipeline: &Pipeline) -> Vec<api::Check> {
    let found = match pipeline.find_kubeconfig().await {
        Ok(found) => found,
        Err(problem) => return vec![fail("kubeconfig", &problem)],
    };
    let mut checks = vec![ok("kubeconfig", &found.description)];
    let cluster = match crate::cluster::Cluster::new(&found) {
        Ok(cluster) => cluster,
        Err(problem) => return vec![fail("kubeconfig", &problem)],
    };
    match cluster.version().await {
        Ok(version) => checks.push(ok("cluster", &format!("{} runs Kubernetes {version}", cluster.server()))),
        Err(problem) => {
            checks.push(fail("cluster", &problem));
            return checks;
        }
    }
    let namespace = pipeline.identity().agent_namespace.clone();
    let rules = [
        ("", "configmaps", "patch", namespace.as_str()),
        ("", "namespaces", "get", ""),
        ("", "events", "create", "default"),
        ("apps", "deployments", "patch", ""),
        ("apps", "deployments", "delete", ""),
        ("apps", "deployments", "watch", ""),
    ];
    for (group, resource, verb, namespace) in rules {
        let name = format!("may {verb} {resource}");
        match cluster.may(group, resource, verb, namespace).await {
            Ok(true) => checks.push(ok(&name, "allowed")),
            Ok(false) => {
                let place = if namespace.is_empty() { "in all namespaces" } else { namespace };
                let text = format!("the agent's user may not {verb} {resource} ({group}) {place}");
                checks.push(fail(&name, &Problem::new(Reason::Forbidden, text)));
            }
            Err(failure) => checks.push(fail(&name, &failure.problem)),
        }
    }
    checks
}
