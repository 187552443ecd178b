//! What people and scripts ask.

use pintle_model::{AppKey, Problem, Reason};

use super::effect::Answer;
use super::event::{Now, Request, RollbackRequest, SyncRequest};
use super::operation::{self, Start};
use super::record::{Pin, Trigger};
use super::{App, Cluster, Effect, Rebuild, State, intake, world};

pub(super) fn requested(
    state: &mut State,
    key: &AppKey,
    request: Request,
    ticket: u64,
    now: Now,
    fx: &mut Vec<Effect>,
) {
    let result = match state.apps.get_mut(key) {
        None => Err(Problem::new(Reason::NoSuch, format!("there is no application {key}"))),
        Some(app) => match request {
            Request::Refresh { hard } => Ok(refresh(state, key, hard)),
            Request::Sync(request) => sync(state, key, request, now, fx),
            Request::Rollback(request) => rollback(state, key, request, now, fx),
            Request::Resume { by } => resume(state, key, &by, fx),
            Request::Terminate { by } => match app.operation.as_mut() {
                Some(operation) => {
                    operation.terminating = Some(by);
                    Ok(Answer::Done("the operation ends after the steps that are under way".into()))
                }
                None => Err(Problem::new(Reason::NoSuch, format!("no operation of {key} is running"))),
            },
            Request::DeleteOrphan { by } => {
                world::orphan(state, key, &format!("app delete --orphan by {by}"), fx);
                Ok(Answer::Done(format!("application {key} is forgotten; its objects stay in the cluster")))
            }
        },
    };
    fx.push(Effect::Answer { ticket, result });
}

fn refresh(state: &mut State, key: &AppKey, hard: bool) -> Answer {
    let reference = state.apps.get(key).and_then(App::reference);
    if let Some(app) = state.apps.get_mut(key) {
        app.desired.hard |= hard;
        app.desired.pin_problem = None;
        app.desired.failed = None;
        app.auto.next_try = None;
        app.dirty = true;
    }
    if let Some(known) = reference.and_then(|reference| state.refs.get_mut(&reference)) {
        known.poll_now = true;
    }
    Answer::Done("refresh requested".into())
}

/// Why nothing can be started now.
fn obstacle(state: &State, app: &App) -> Option<Problem> {
    if let Cluster::Lost { problem, .. } = &state.cluster {
        return Some(problem.clone());
    }
    if state.cluster != Cluster::Ready || state.rebuild != Rebuild::NotNeeded {
        return Some(Problem::new(
            Reason::ClusterUnreachable,
            "the cluster has not been read yet; try again shortly",
        ));
    }
    if state.stopping {
        return Some(Problem::new(Reason::Terminated, "the agent is stopping"));
    }
    if app.operation.is_some() {
        return Some(Problem::new(
            Reason::Conflict,
            format!(
                "another operation of {} is already in progress; see `pintle app get {}`",
                app.key, app.key.name
            ),
        ));
    }
    if app.holds.detached {
        return Some(Problem::new(
            Reason::InvalidSpecError,
            format!(
                "application {} is detached: {} is gone; put it back, or `pintle app delete {} --orphan`",
                app.key, app.place, app.key.name
            ),
        ));
    }
    None
}

fn sync(
    state: &mut State,
    key: &AppKey,
    request: SyncRequest,
    now: Now,
    fx: &mut Vec<Effect>,
) -> Result<Answer, Problem> {
    let Some(app) = state.apps.get(key) else {
        return Err(Problem::new(Reason::NoSuch, format!("no application {key}")));
    };
    if let Some(problem) = obstacle(state, app) {
        return Err(problem);
    }
    let Some(render) = request.render.clone().or_else(|| app.render().cloned()) else {
        let why = app.desired.problem.clone().or_else(|| app.spec_problem.clone());
        return Err(why.unwrap_or_else(|| {
            Problem::new(
                Reason::ComparisonError,
                format!("{key} has no render yet: its source has not been fetched"),
            )
        }));
    };
    let trigger = Trigger::Requested(request.by.clone());
    let start = Start { trigger, request, revert: true, render, pin: None, resumes: false };
    Ok(Answer::Started(operation::start(state, key, start, now, fx)))
}

/// Goes back to a stored render and pins the application to it; the current one is only synced.
fn rollback(
    state: &mut State,
    key: &AppKey,
    request: RollbackRequest,
    now: Now,
    fx: &mut Vec<Effect>,
) -> Result<Answer, Problem> {
    let Some(app) = state.apps.get_mut(key) else {
        return Err(Problem::new(Reason::NoSuch, format!("no application {key}")));
    };
    let current = app.render().map(|render| render.id);
    if current != Some(request.render.id) {
        let abandoned = match &app.holds.pin {
            Some(pin) => pin.abandoned,
            None => app.desired.git.as_ref().map(|git| git.revision),
        };
        let blocked =
            obstacle(state, state.apps.get(key).ok_or_else(|| Problem::new(Reason::NoSuch, "gone"))?);
        // An unreachable cluster or a running operation refuses the rollback as a whole: a pin without its
        // operation would say something that is not true.
        if let Some(problem) = blocked {
            return Err(problem);
        }
        if let Some(app) = state.apps.get_mut(key) {
            app.holds.pin = Some(Pin {
                history: request.id,
                render: request.render.id,
                revision: request.render.revision,
                abandoned,
                since: now.wall,
                by: request.by.clone(),
            });
            app.desired.pin = Some(request.render.clone());
            app.desired.loading = None;
            app.desired.pin_lost = false;
            app.desired.pin_problem = None;
            app.auto.satisfied = None;
        }
    } else if let Some(problem) = obstacle(state, app_ref(state, key)?) {
        return Err(problem);
    }
    let pin = app_ref(state, key)?.holds.pin.clone();
    let start = Start {
        trigger: Trigger::Rollback(request.id, request.by.clone()),
        request: SyncRequest { by: request.by, prune: request.prune, ..SyncRequest::default() },
        revert: true,
        render: request.render,
        pin,
        resumes: false,
    };
    Ok(Answer::Started(operation::start(state, key, start, now, fx)))
}

fn app_ref<'a>(state: &'a State, key: &AppKey) -> Result<&'a App, Problem> {
    state.apps.get(key).ok_or_else(|| Problem::new(Reason::NoSuch, format!("no application {key}")))
}

fn resume(state: &mut State, key: &AppKey, by: &str, fx: &mut Vec<Effect>) -> Result<Answer, Problem> {
    let Some(app) = state.apps.get_mut(key) else {
        return Err(Problem::new(Reason::NoSuch, format!("no application {key}")));
    };
    if app.holds.pin.is_none() {
        return Ok(Answer::Done(format!("{key} is not held")));
    }
    let Some(pin) = app.let_go_of_pin() else { return Ok(Answer::Done(String::new())) };
    app.auto.failed = None;
    app.auto.next_try = None;
    app.dirty = true;
    app.note(format!("pin to history entry {} ended by {by}", pin.history));
    let parent = operation::parent(app);
    intake::save_apps(state, fx);
    fx.push(Effect::Parent(parent));
    let reference = state.apps.get(key).and_then(App::reference);
    if let Some(known) = reference.and_then(|reference| state.refs.get_mut(&reference)) {
        known.poll_now = true;
    }
    Ok(Answer::Done(format!("{key} follows git again")))
}
