//! What people and scripts ask.

use pintle_model::{AppKey, Problem, Reason};

use super::effect::Answer;
use super::event::{Now, Request, RollbackRequest, SyncRequest};
use super::operation::{self, Start};
use super::record::{Pause, Pin, Place, Trigger};
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
            Request::Pause(pause) => Ok(self::pause(state, key, pause, now, fx)),
            Request::DeleteCascade { by, confirm } => cascade(state, key, by, confirm.as_deref(), now, fx),
            Request::Terminate { by } => match app.operation.as_mut() {
                Some(operation) => {
                    operation.terminating = Some(by);
                    Ok(Answer::Done("the operation ends after the steps that are under way".into()))
                }
                None => Err(Problem::new(Reason::NoSuch, format!("no operation of {key} is running"))),
            },
            Request::DeleteOrphan { by } => {
                if let Some(problem) = still_defined(app) {
                    fx.push(Effect::Answer { ticket, result: Err(problem) });
                    return;
                }
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

/// An application that its file or its parent still defines would come straight back.
fn still_defined(app: &App) -> Option<Problem> {
    if app.holds.detached {
        return None;
    }
    let place = match &app.place {
        Place::Cluster => return None,
        Place::Bootstrap => "the bootstrap setting of the configuration".to_owned(),
        place => place.to_string(),
    };
    Some(Problem::new(
        Reason::Conflict,
        format!(
            "{place} defines application {}; take it out there first (it is then detached, and its objects stay), and \
             delete it then",
            app.key
        ),
    ))
}

/// Stops automated sync and selfHeal, with an end and a reason; a running operation ends as planned.
fn pause(state: &mut State, key: &AppKey, pause: Pause, now: Now, fx: &mut Vec<Effect>) -> Answer {
    let Some(app) = state.apps.get_mut(key) else { return Answer::Done(String::new()) };
    let until = pause.until.map_or_else(|| "until it is resumed".to_owned(), |at| format!("until {at}"));
    app.note(format!("{} paused {until} by {}: {}", now.wall, pause.by, pause.reason));
    app.holds.pause = Some(pause);
    app.holds.pause_ends = None;
    app.dirty = true;
    let parent = operation::parent(app);
    intake::save_apps(state, fx);
    fx.push(Effect::Parent(parent));
    Answer::Done(format!("{key} is paused {until}: no automated sync, no selfHeal"))
}

/// Ends pauses whose time has come.
pub(super) fn end_pauses(state: &mut State, now: Now, fx: &mut Vec<Effect>) {
    let mut ended = Vec::new();
    for app in state.apps.values_mut() {
        let Some(until) = app.holds.pause.as_ref().and_then(|pause| pause.until) else { continue };
        if until <= now.wall {
            app.holds.pause = None;
            app.holds.pause_ends = None;
            app.note(format!("{} the pause ended", now.wall));
            app.dirty = true;
            ended.push((app.key.clone(), operation::parent(app)));
        } else {
            let left = until.duration_since(now.wall);
            let left = std::time::Duration::try_from(left).unwrap_or_default();
            app.holds.pause_ends = Some(now.mono + left);
        }
    }
    if ended.is_empty() {
        return;
    }
    for (key, parent) in ended {
        intake::note(fx, &key, false, format!("the pause of {key} ended"));
        fx.push(Effect::Parent(parent));
    }
    intake::save_apps(state, fx);
}

/// Deletes an application with its objects: without the token of the plan nothing is done and the plan is the answer.
fn cascade(
    state: &mut State,
    key: &AppKey,
    by: String,
    confirm: Option<&str>,
    now: Now,
    fx: &mut Vec<Effect>,
) -> Result<Answer, Problem> {
    let app = app_ref(state, key)?;
    if let Some(problem) = still_defined(app) {
        return Err(problem);
    }
    if let Some(problem) = obstacle(state, app).filter(|problem| problem.reason != Reason::InvalidSpecError) {
        return Err(problem);
    }
    let plan = operation::cascade_plan(state, app, 0);
    if confirm.is_none() || confirm != plan.token.as_deref() {
        return Ok(Answer::Planned(Box::new(plan)));
    }
    if let Some((object, why)) = plan.deferred.first() {
        return Err(Problem::new(Reason::PruneDeferred, format!("{object} waits: {why}; try again shortly")));
    }
    let token = plan.token.unwrap_or_default();
    Ok(Answer::Started(operation::start_cascade(state, key, by, token, now, fx)))
}

fn resume(state: &mut State, key: &AppKey, by: &str, fx: &mut Vec<Effect>) -> Result<Answer, Problem> {
    let Some(app) = state.apps.get_mut(key) else {
        return Err(Problem::new(Reason::NoSuch, format!("no application {key}")));
    };
    let paused = app.holds.pause.take();
    app.holds.pause_ends = None;
    if paused.is_none() && app.holds.pin.is_none() {
        return Ok(Answer::Done(format!("{key} is not held")));
    }
    if paused.is_some() {
        app.note(format!("pause ended by {by}"));
    }
    if let Some(pin) = app.let_go_of_pin() {
        app.note(format!("pin to history entry {} ended by {by}", pin.history));
    }
    app.auto.failed = None;
    app.auto.next_try = None;
    app.dirty = true;
    let parent = operation::parent(app);
    intake::save_apps(state, fx);
    fx.push(Effect::Parent(parent));
    let reference = state.apps.get(key).and_then(App::reference);
    if let Some(known) = reference.and_then(|reference| state.refs.get_mut(&reference)) {
        known.poll_now = true;
    }
    Ok(Answer::Done(format!("{key} follows git again")))
}
