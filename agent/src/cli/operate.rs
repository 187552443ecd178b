//! Commands that change the cluster and wait: sync, rollback, delete, wait.

use std::time::Duration;

use jiff::Timestamp;
use pintle_api::{
    Application, DeleteMode, DeleteRequest, HealthStatus, Operation, OperationReply, Plan, Refresh,
    RollbackRequest, SyncRequest, SyncStatus,
};
use pintle_model::{AppKey, Problem, Reason, limits};
use tokio::time::Instant;

use super::args::{DeleteArgs, RollbackArgs, SyncArgs, WaitArgs};
use super::exit::{Exit, Failure};
use super::screen::Screen;
use super::session::Session;
use super::view;
use crate::client::Client;

type Ended = Result<Exit, Failure>;

/// How long `--wait` waits for health unless `--timeout` says otherwise.
const HEALTH_TIMEOUT: Duration = Duration::from_mins(10);
/// How long an operation is followed unless `--timeout` says otherwise. The agent's own deadlines end it much
/// earlier; this only ends the command when the agent does not.
const OPERATION_TIMEOUT: Duration = Duration::from_hours(24);
/// Conditions that tell that something asked for was not done.
const NOT_DONE: [Reason; 2] = [Reason::PruneRefused, Reason::PruneDeferred];

pub(super) async fn sync(session: &Session, screen: &mut Screen<'_>, args: &SyncArgs) -> Ended {
    screen.allow(&[])?;
    if args.r#async && !session.outlives_us() {
        return Err(Problem::new(
            Reason::Usage,
            "--async: no agent is running, so the operation would end with this command",
        )
        .into());
    }
    let request = SyncRequest {
        revision: args.revision.clone(),
        prune: args.prune,
        dry_run: args.dry_run,
        resources: args.resource.clone(),
        confirm: args.confirm.clone(),
        take_over: args.take_over,
    };
    // Started all together, then followed one after the other; one that is refused does not stop the others.
    let mut exits = vec![];
    let mut replies = vec![];
    for app in &args.apps {
        match session.client.sync(app, &request).await {
            Ok(reply) => replies.push(reply),
            Err(problem) => exits.push(told(screen, &problem)),
        }
    }
    let follow = Follow { wait: args.wait, timeout: args.timeout, prune: args.prune };
    for reply in replies {
        let ended = match reply {
            OperationReply::Started(operation) if args.r#async => started(screen, &operation),
            reply => finish(&session.client, screen, reply, &follow).await,
        };
        exits.push(match ended {
            Err(Failure::Problem(problem)) => told(screen, &problem),
            other => other?,
        });
    }
    Ok(exits.into_iter().find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
}

fn told(screen: &mut Screen<'_>, problem: &Problem) -> Exit {
    screen.problem(problem);
    Exit::of_reason(problem.reason)
}

pub(super) async fn rollback(client: &Client, screen: &mut Screen<'_>, args: &RollbackArgs) -> Ended {
    screen.allow(&[])?;
    let app = &args.app.app;
    let id = match args.id {
        Some(id) => id,
        None => previous(client, app).await?,
    };
    let request = RollbackRequest { id, prune: args.prune, dry_run: args.dry_run };
    let reply = client.rollback(app, &request).await?;
    let follow = Follow { wait: args.wait, timeout: args.timeout, prune: args.prune };
    finish(client, screen, reply, &follow).await
}

/// The entry before the current one, as `argocd app rollback APP` takes it.
async fn previous(client: &Client, app: &AppKey) -> Result<u64, Problem> {
    let items = client.history(app).await?.items;
    items.iter().rev().nth(1).map(|entry| entry.id).ok_or_else(|| {
        Problem::new(Reason::NoSuch, format!("application {app} has no deployment before the current one"))
    })
}

pub(super) async fn delete(client: &Client, screen: &mut Screen<'_>, args: &DeleteArgs) -> Ended {
    screen.allow(&[])?;
    let app = &args.app.app;
    let mode = if args.cascade { DeleteMode::Cascade } else { DeleteMode::Orphan };
    let reply = client.delete(app, &DeleteRequest { mode, confirm: args.confirm.clone() }).await?;
    let operation = match reply {
        OperationReply::Planned(plan) => return planned(screen, &plan),
        OperationReply::Started(operation) => operation,
    };
    gone(client, screen, &operation, args.timeout.unwrap_or(OPERATION_TIMEOUT)).await?;
    screen.document(&operation, |operation, _| format!("application {} deleted\n", operation.app))?;
    Ok(Exit::Done)
}

/// Follows a delete until the application is no longer there, or its operation failed.
async fn gone(
    client: &Client,
    screen: &mut Screen<'_>,
    operation: &Operation,
    timeout: Duration,
) -> Result<(), Failure> {
    let mut poll = Poll::new(timeout);
    loop {
        let application = match client.app(&operation.app, Refresh::None).await {
            Err(problem) if problem.reason == Reason::NoSuch => return Ok(()),
            other => other?,
        };
        let state = application.status.operation_state.clone().unwrap_or_default();
        if state.id == operation.id && state.phase.ended() && Exit::of_phase(state.phase) != Exit::Done {
            return Err(failed(&operation.app, &state.message).into());
        }
        poll.progress(screen, &application);
        if !poll.again().await {
            return Err(late(&operation.app, timeout, "is still being deleted").into());
        }
    }
}

/// Waits for states of applications.
pub(super) async fn wait(client: &Client, screen: &mut Screen<'_>, args: &WaitArgs) -> Ended {
    screen.allow(&[])?;
    let wanted = Wanted::of(args);
    let mut poll = Poll::new(args.timeout);
    for app in &args.apps {
        let application = wait_for(client, screen, app, &wanted, &mut poll).await?;
        screen.document(&application, |application, paint| {
            view::application(application, Timestamp::now(), paint, false, false)
        })?;
    }
    Ok(Exit::Done)
}

async fn wait_for(
    client: &Client,
    screen: &mut Screen<'_>,
    app: &AppKey,
    wanted: &Wanted,
    poll: &mut Poll,
) -> Result<Application, Failure> {
    loop {
        let application = client.app(app, Refresh::None).await?;
        let missing = wanted.missing(&application);
        if missing.is_empty() {
            return Ok(application);
        }
        poll.progress(screen, &application);
        if !poll.again().await {
            return Err(late(app, poll.timeout, &missing.join(", ")).into());
        }
    }
}

/// What `app wait` waits for.
struct Wanted {
    sync: bool,
    health: bool,
    operation: bool,
    suspended: bool,
}

impl Wanted {
    /// None named means: synced, healthy and no operation, as in Argo CD.
    fn of(args: &WaitArgs) -> Self {
        let all = !(args.sync || args.health || args.operation || args.suspended);
        Self {
            sync: args.sync || all,
            health: args.health || all,
            operation: args.operation || all,
            suspended: args.suspended,
        }
    }

    /// What is not yet so.
    fn missing(&self, application: &Application) -> Vec<String> {
        let status = &application.status;
        let mut missing = vec![];
        if self.sync && status.sync.status != SyncStatus::Synced {
            missing.push(format!("is {:?}", status.sync.status));
        }
        let health = status.health.status;
        let well = (self.health && health == HealthStatus::Healthy)
            || (self.suspended && health == HealthStatus::Suspended);
        if (self.health || self.suspended) && !well {
            missing.push(format!("is {health:?}{}", unhealthy(application)));
        }
        let running = status.operation_state.as_ref().is_some_and(|state| !state.phase.ended());
        if self.operation && running {
            missing.push("has a running operation".to_owned());
        }
        missing
    }
}

/// The objects that are not healthy, a few of them, each with its message.
fn unhealthy(application: &Application) -> String {
    const SHOWN: usize = 5;
    let objects: Vec<String> = application
        .status
        .resources
        .iter()
        .filter_map(|resource| {
            let health = resource.health.as_ref()?;
            let well = matches!(health.status, HealthStatus::Healthy | HealthStatus::Suspended);
            let message =
                if health.message.is_empty() { String::new() } else { format!(": {}", health.message) };
            (!well).then(|| format!("{}/{} {:?}{message}", resource.kind, resource.name, health.status))
        })
        .collect();
    match objects.len() {
        0 => String::new(),
        count if count > SHOWN => {
            format!(" ({}; and {} more)", objects[..SHOWN].join("; "), count - SHOWN)
        }
        _ => format!(" ({})", objects.join("; ")),
    }
}

/// How an operation is followed.
struct Follow {
    wait: bool,
    timeout: Option<Duration>,
    prune: bool,
}

/// Shows a plan, or follows an operation to its end and shows what it did.
async fn finish(client: &Client, screen: &mut Screen<'_>, reply: OperationReply, follow: &Follow) -> Ended {
    let operation = match reply {
        OperationReply::Planned(plan) => return planned(screen, &plan),
        OperationReply::Started(operation) => operation,
    };
    let mut application =
        ended(client, screen, &operation, follow.timeout.unwrap_or(OPERATION_TIMEOUT)).await?;
    let state = application.status.operation_state.clone().unwrap_or_default();
    let mut exit = Exit::of_phase(state.phase);
    if exit == Exit::Done && follow.wait {
        let wanted = Wanted { sync: false, health: true, operation: false, suspended: true };
        let mut poll = Poll::new(follow.timeout.unwrap_or(HEALTH_TIMEOUT));
        application = wait_for(client, screen, &operation.app, &wanted, &mut poll).await?;
    }
    screen.document(&application, |application, paint| {
        view::application(application, Timestamp::now(), paint, true, false)
    })?;
    let refused = |reason: &Reason| {
        application.status.conditions.iter().find(|condition| condition.kind == reason.name())
    };
    if exit == Exit::Done
        && follow.prune
        && let Some(reason) = NOT_DONE.iter().find(|reason| refused(reason).is_some())
    {
        let message = refused(reason).map(|condition| condition.message.clone()).unwrap_or_default();
        screen.problem(&Problem::new(*reason, format!("application {}: {message}", operation.app)));
        exit = Exit::Refused;
    }
    if exit == Exit::Error {
        screen.problem(&failed(&operation.app, &state.message));
    }
    Ok(exit)
}

/// Follows an operation until it has ended.
async fn ended(
    client: &Client,
    screen: &mut Screen<'_>,
    operation: &Operation,
    timeout: Duration,
) -> Result<Application, Failure> {
    let app = &operation.app;
    let mut poll = Poll::new(timeout);
    loop {
        let application = client.app(app, Refresh::None).await?;
        match &application.status.operation_state {
            Some(state) if state.id == operation.id && state.phase.ended() => return Ok(application),
            Some(state) if state.id == operation.id => {}
            // Ours ended between two looks and the next one has begun: only history knows its result.
            Some(other) => {
                return Err(Problem::new(
                    Reason::Conflict,
                    format!(
                        "application {app}: operation {} is over and {} has begun; see `pintle app history {app}`",
                        operation.id, other.id
                    ),
                )
                .into());
            }
            None => {}
        }
        poll.progress(screen, &application);
        if !poll.again().await {
            return Err(late(app, timeout, "has a running operation").into());
        }
    }
}

fn planned(screen: &mut Screen<'_>, plan: &Plan) -> Ended {
    screen.document(plan, view::plan)?;
    let refused = !plan.refusals.is_empty() || !plan.deferred.is_empty() || !plan.token.is_empty();
    Ok(if refused { Exit::Refused } else { Exit::Done })
}

fn started(screen: &mut Screen<'_>, operation: &Operation) -> Ended {
    screen.document(operation, |operation, paint| {
        format!(
            "application {}: operation {} started\n{}",
            operation.app,
            operation.id,
            view::operation_block(&operation.state, Timestamp::now(), paint)
        )
    })?;
    Ok(Exit::Done)
}

fn failed(app: &AppKey, message: &str) -> Problem {
    let message = if message.is_empty() { "the operation failed" } else { message };
    Problem::new(Reason::SyncError, format!("application {app}: {message}"))
}

fn late(app: &AppKey, timeout: Duration, what: &str) -> Problem {
    Problem::new(Reason::DeadlineExceeded, format!("application {app} {what} after {} s", timeout.as_secs()))
}

/// Looks again and again, ever more slowly, until a deadline.
struct Poll {
    timeout: Duration,
    deadline: Instant,
    pause: Duration,
    last_note: String,
}

impl Poll {
    fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            deadline: Instant::now() + timeout,
            pause: Duration::from_millis(limits::WAIT_POLL_FIRST_MILLIS),
            last_note: String::new(),
        }
    }

    /// Rests; false when the deadline has passed.
    async fn again(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.deadline {
            return false;
        }
        tokio::time::sleep(self.pause.min(self.deadline - now)).await;
        self.pause = (self.pause * 2).min(Duration::from_millis(limits::WAIT_POLL_MAX_MILLIS));
        true
    }

    /// Says how far it is, when that has changed.
    fn progress(&mut self, screen: &mut Screen<'_>, application: &Application) {
        let note = progress(application);
        if note != self.last_note {
            screen.note(&note);
            self.last_note = note;
        }
    }
}

/// `argocd/shop: 3 of 10 objects done; waiting for Deployment/web Progressing: 1 of 2 updated`.
fn progress(application: &Application) -> String {
    let status = &application.status;
    let mut out = format!("{}:", application.qualified_name());
    let state = status.operation_state.as_ref().filter(|state| !state.phase.ended());
    if let Some(state) = state {
        let results = state.sync_result.as_ref().map_or(&[][..], |result| &result.resources);
        let done = results.iter().filter(|result| result.status.is_some()).count();
        out.push_str(&format!(" {:?}, {done} of {} objects done", state.phase, results.len()));
        if !state.message.is_empty() {
            out.push_str(&format!("; {}", state.message));
        }
    } else {
        out.push_str(&format!(
            " {:?}, {:?}{}",
            status.sync.status,
            status.health.status,
            unhealthy(application)
        ));
    }
    out
}
