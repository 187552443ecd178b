//! What the state says to people: sync status, health and conditions, computed when asked.
//!
//! Sync and health are two separate answers: OutOfSync with Healthy and Synced with Degraded both exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_model::{AppKey, ObjectKey, Reason, limits};
use serde::{Deserialize, Serialize};

use super::app::{App, Live, Tracked, condition_name, entry_of};
use super::event::Now;
use super::record::DesiredEntry;
use super::{Cluster, Rebuild, State};
use crate::fields::Verdict;
use crate::health::{Health, Status};

/// Argo CD's sync status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SyncStatus {
    /// As git wants it.
    Synced,
    /// It differs.
    OutOfSync,
    /// Not known: never rendered, never seen, or seen too long ago.
    Unknown,
}

/// One object of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceView {
    /// Object.
    pub key: ObjectKey,
    /// `apiVersion`.
    pub api_version: Arc<str>,
    /// Sync status.
    pub sync: SyncStatus,
    /// Health; `None` for an object that is not there or not seen.
    pub health: Option<Health>,
    /// In the inventory and no longer wanted.
    pub requires_pruning: bool,
    /// Sync wave.
    pub wave: i32,
    /// It is the object of a hook: no part of sync status and health.
    pub hook: bool,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Argo CD's type name where one exists, else a reason of ours.
    pub name: &'static str,
    /// What, where, what to do.
    pub message: String,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// One application, as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct AppView {
    /// Sync status: the worst of its objects.
    pub sync: SyncStatus,
    /// Health: the worst of its objects.
    pub health: Health,
    /// Objects, sorted by key.
    pub resources: Vec<ResourceView>,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// Looks at one application.
pub fn app_view(state: &State, app: &App, wall: Timestamp) -> AppView {
    let stale = is_stale(state, wall);
    let resources = resources(app, stale);
    AppView {
        sync: sync_status(state, app, &resources, stale),
        health: app_health(app, &resources, stale),
        conditions: conditions(state, app),
        resources,
    }
}

/// Has the cluster not been seen for so long that what we know of it is no longer to be trusted?
pub fn is_stale(state: &State, wall: Timestamp) -> bool {
    match &state.cluster {
        Cluster::Lost { since, .. } => {
            wall.duration_since(*since).as_secs() > i64::try_from(limits::STALE_SECS).unwrap_or(i64::MAX)
        }
        Cluster::Unknown | Cluster::Connecting | Cluster::Ready => false,
    }
}

fn resources(app: &App, stale: bool) -> Vec<ResourceView> {
    let render = app.render();
    let keys: BTreeSet<&ObjectKey> = app
        .objects
        .keys()
        .chain(render.iter().flat_map(|render| render.objects.iter().map(|entry| &entry.key)))
        .collect();
    keys.into_iter()
        .filter(|key| app.objects.contains_key(*key) || !app.verdicts.left_alone.contains(*key))
        .map(|key| {
            let entry = render.and_then(|render| entry_of(render, key));
            let tracked = app.objects.get(key);
            let api_version = entry.map(|entry| entry.api_version.clone()).or_else(|| {
                tracked.and_then(|tracked| tracked.set.as_ref().map(|set| Arc::from(&*set.api_version)))
            });
            ResourceView {
                key: key.clone(),
                api_version: api_version.unwrap_or_else(|| "".into()),
                sync: object_sync(entry, tracked, stale),
                health: Some(object_health(tracked, stale)),
                hook: tracked.is_some_and(|tracked| tracked.record.hook.is_some()),
                requires_pruning: entry.is_none()
                    && tracked.is_some_and(|tracked| tracked.record.hook.is_none()),
                wave: entry
                    .map_or_else(|| tracked.map_or(0, |tracked| tracked.record.wave), |entry| entry.wave),
            }
        })
        .collect()
}

fn object_sync(entry: Option<&DesiredEntry>, tracked: Option<&Tracked>, stale: bool) -> SyncStatus {
    if stale {
        return SyncStatus::Unknown;
    }
    let leaves =
        |tracked: &Tracked| tracked.record.options.ignore_extraneous || tracked.record.hook.is_some();
    if entry.is_none() && tracked.is_some_and(leaves) || entry.is_some_and(|entry| entry.ignore) {
        return SyncStatus::Synced;
    }
    let (Some(entry), Some(tracked)) = (entry, tracked) else { return SyncStatus::OutOfSync };
    if entry.only_create && matches!(tracked.live, Live::Present { .. }) {
        return SyncStatus::Synced;
    }
    if tracked.record.manifest != Some(entry.manifest) {
        return SyncStatus::OutOfSync;
    }
    match &tracked.live {
        Live::Unseen => SyncStatus::Unknown,
        // Values are right; only ownership was lost.
        Live::Present { verdict: Verdict::Same | Verdict::Reown, .. } => SyncStatus::Synced,
        Live::Present { verdict: Verdict::Drifted, .. } | Live::Gone | Live::Foreign(_) => {
            SyncStatus::OutOfSync
        }
    }
}

fn object_health(tracked: Option<&Tracked>, stale: bool) -> Health {
    match tracked.map(|tracked| &tracked.live) {
        Some(Live::Present { health, .. }) if !stale => health.clone(),
        Some(Live::Present { .. } | Live::Unseen) => {
            Health::new(Status::Unknown, "it has not been seen lately")
        }
        Some(Live::Gone | Live::Foreign(_)) | None => Health::new(Status::Missing, ""),
    }
}

fn sync_status(state: &State, app: &App, resources: &[ResourceView], stale: bool) -> SyncStatus {
    let known = app.render().is_some() && state.rebuild == Rebuild::NotNeeded && !stale;
    if !known || (app.spec_problem.is_some() && app.spec.is_none()) {
        return SyncStatus::Unknown;
    }
    // OutOfSync for certain beats not knowing the rest.
    if resources.iter().any(|resource| resource.sync == SyncStatus::OutOfSync) {
        return SyncStatus::OutOfSync;
    }
    resources.iter().map(|resource| resource.sync).max().unwrap_or(SyncStatus::Synced)
}

/// The worst of its objects. A missing object does not count as long as another is there; Missing only when none
/// is.
fn app_health(app: &App, resources: &[ResourceView], stale: bool) -> Health {
    if stale {
        return Health { status: Status::Unknown, message: "the cluster has not been seen lately".into() };
    }
    let ignored = |key: &ObjectKey| app.entry(key).is_some_and(|entry| entry.ignore_health || entry.ignore);
    let counted: Vec<(&ObjectKey, &Health)> = resources
        .iter()
        .filter(|resource| !resource.hook && !ignored(&resource.key))
        .filter_map(|resource| Some((&resource.key, resource.health.as_ref()?)))
        .collect();
    let any_there = counted.iter().any(|(_, health)| health.status != Status::Missing);
    let worst = counted
        .into_iter()
        .filter(|(_, health)| !any_there || health.status != Status::Missing)
        .max_by_key(|(_, health)| health.status);
    match worst {
        None => Health { status: Status::Healthy, message: String::new() },
        Some((_, health)) if health.status == Status::Healthy => health.clone(),
        Some((key, health)) => Health {
            status: health.status,
            message: if health.message.is_empty() {
                key.to_string()
            } else {
                format!("{key}: {}", health.message)
            },
        },
    }
}

/// Everything that a person should know of an application beside its two answers.
pub fn conditions(state: &State, app: &App) -> Vec<Condition> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    if let Some(problem) = &app.spec_problem {
        found.push(("InvalidSpecError", problem.message.clone()));
    }
    if app.holds.detached {
        let how = format!(
            "{} no longer has it; it is not synced, its objects stay. Put it back, or `pintle app delete {} --orphan`",
            app.place, app.key.name
        );
        found.push(("Detached", how));
    }
    if let Some(pause) = &app.holds.pause {
        let until = pause.until.map_or_else(String::new, |at| format!(" until {at}"));
        found.push((
            "Paused",
            format!(
                "paused{until} by {} since {}: {}. No automated sync and no selfHeal meanwhile; `pintle resume {}` ends it",
                pause.by, pause.since, pause.reason, app.key.name
            ),
        ));
    }
    if let Some(leaving) = &app.leaving {
        found
            .push(("Deleting", format!("it is being deleted with its objects, asked for by {}", leaving.by)));
    }
    if let Some(pin) = &app.holds.pin {
        let wants = app.desired.git.as_ref().map(|git| git.revision.short());
        let wants = wants.map_or_else(|| "nothing yet".to_owned(), |revision| format!("{revision} instead"));
        found.push((
            "Pinned",
            format!(
                "held at history entry {} ({}) by {} since {}; git wants {wants}. `pintle resume {}` follows git again{}",
                pin.history,
                pin.revision.short(),
                pin.by,
                pin.since,
                app.key.name,
                lost_pin(app),
            ),
        ));
    }
    source_conditions(state, app, &mut found);
    cluster_conditions(state, app, &mut found);
    plan_conditions(app, &mut found);
    found
        .into_iter()
        .map(|(name, message)| Condition { name, message, since: app.since.get(name).copied() })
        .collect()
}

/// What a pin without its manifests means: nothing is applied or deleted meanwhile.
fn lost_pin(app: &App) -> String {
    match &app.desired.pin_problem {
        Some(problem) => format!(
            ". Its manifests were lost with the store and cannot be rendered anew: {}; nothing is changed meanwhile",
            problem.message
        ),
        None if app.desired.pin_lost => {
            ". Its manifests were lost with the store; they are rendered anew when git can be reached, and nothing is \
             changed meanwhile"
                .to_owned()
        }
        None => String::new(),
    }
}

fn source_conditions(state: &State, app: &App, found: &mut Vec<(&'static str, String)>) {
    let reference = app.reference().and_then(|reference| state.refs.get(&reference));
    if let Some(known) = reference
        && let Some(problem) = &known.problem
    {
        let age = known.last_ok.map_or_else(|| "never".to_owned(), |at| at.to_string());
        found.push((
            condition_name(problem),
            format!("{}; the last successful fetch was {age}: {}", problem.message, problem.reason.hint()),
        ));
    }
    if let Some(problem) = &app.desired.problem
        && reference.is_none_or(|known| known.problem.as_ref() != Some(problem))
    {
        found.push((condition_name(problem), problem.message.clone()));
    }
    if let Some(render) = app.render() {
        for (name, repeated) in [("RepeatedResourceWarning", true), ("RenderWarning", false)] {
            let messages: Vec<&str> = render
                .warnings
                .iter()
                .filter(|warning| (warning.reason == Reason::RepeatedResourceWarning) == repeated)
                .map(|warning| warning.message.as_str())
                .collect();
            if !messages.is_empty() {
                found.push((name, messages.join("; ")));
            }
        }
    }
}

fn cluster_conditions(state: &State, app: &App, found: &mut Vec<(&'static str, String)>) {
    if let Cluster::Lost { problem, since, .. } = &state.cluster {
        found.push((
            problem.reason.name(),
            format!("{} (since {since}): {}", problem.message, problem.reason.hint()),
        ));
    }
    if let Some(problem) = &state.save_problem {
        found.push((problem.reason.name(), format!("{}: {}", problem.message, problem.reason.hint())));
    }
    let mut kinds: Vec<_> = app.objects.keys().map(ObjectKey::group_kind).collect();
    kinds.dedup();
    let broken: Vec<String> = kinds
        .iter()
        .filter_map(|kind| {
            let problem = state.watches.get(kind)?.problem.as_ref()?;
            Some(format!("{kind} cannot be watched: {}: {}", problem.message, problem.reason.hint()))
        })
        .collect();
    if !broken.is_empty() {
        found.push(("ComparisonError", broken.join("; ")));
    }
}

fn plan_conditions(app: &App, found: &mut Vec<(&'static str, String)>) {
    if let Some(last) = &app.last
        && matches!(last.phase, super::record::Phase::Failed | super::record::Phase::Error)
    {
        let retry = if app.auto.next_try.is_some() { "; it is tried again by itself" } else { "" };
        found.push(("SyncError", format!("operation {} failed: {}{retry}", last.id, last.message)));
    }
    let verdicts = &app.verdicts;
    if !verdicts.shared.is_empty() {
        let names: Vec<String> =
            verdicts.shared.iter().map(|(key, owner)| format!("{key} belongs to {owner}")).collect();
        found.push(("SharedResourceWarning", names.join("; ")));
    }
    for (reason, name) in [(Reason::OwnedByAnother, "OwnedByAnother"), (Reason::PruneRefused, "PruneRefused")]
    {
        let messages: Vec<&str> =
            verdicts.refusals.iter().filter(|r| r.reason == reason).map(|r| r.message.as_str()).collect();
        if !messages.is_empty() {
            let confirm = match (&verdicts.token, reason) {
                (Some(token), Reason::PruneRefused) => {
                    format!(". `pintle sync {} --prune --confirm {token}` goes on", app.key.name)
                }
                _ => String::new(),
            };
            found.push((name, format!("{}{confirm}", messages.join("; "))));
        }
    }
    if !verdicts.deferred.is_empty() {
        let names: Vec<String> =
            verdicts.deferred.iter().take(10).map(|(key, why)| format!("{key} waits: {why}")).collect();
        found.push(("PruneDeferred", names.join("; ")));
    }
}

/// Keeps the time since which each condition stands.
pub(super) fn stamp(state: &mut State, now: Now) {
    let keys: Vec<AppKey> = state.apps.keys().cloned().collect();
    for key in keys {
        let Some(app) = state.apps.get(&key) else { continue };
        let names: BTreeSet<&'static str> =
            conditions(state, app).into_iter().map(|found| found.name).collect();
        if let Some(app) = state.apps.get_mut(&key) {
            app.since.retain(|name, _| names.contains(name));
            for name in names {
                app.since.entry(name).or_insert(now.wall);
            }
        }
    }
}
