//! Applications as `argocd app list|get|history` show them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_api::{
    Application, ApplicationList, History, OperationState, ResourceResult, ResourceStatus, SyncStatus,
};
use serde_json::Value;

use super::super::text::{
    Cell, Paint, Tint, age, ago, date, health_tint, name, phase_tint, short, sync_tint, table,
};
use super::field;

/// `app list`: NAME CLUSTER NAMESPACE PROJECT STATUS HEALTH SYNCPOLICY CONDITIONS, wide with REPO PATH TARGET.
pub(in super::super) fn list(list: &ApplicationList, paint: Paint, wide: bool) -> String {
    let mut header =
        vec!["NAME", "CLUSTER", "NAMESPACE", "PROJECT", "STATUS", "HEALTH", "SYNCPOLICY", "CONDITIONS"];
    if wide {
        header.extend(["REPO", "PATH", "TARGET"]);
    }
    let rows: Vec<Vec<Cell>> = list.items.iter().map(|application| list_row(application, wide)).collect();
    table(paint, &header, &rows)
}

fn list_row(application: &Application, wide: bool) -> Vec<Cell> {
    let status = &application.status;
    let mut row: Vec<Cell> = vec![
        application.qualified_name().into(),
        destination(application).into(),
        application.spec_text(&["destination", "namespace"]).into(),
        application.project().into(),
        Cell::tinted(name(status.sync.status), sync_tint(status.sync.status)),
        Cell::tinted(name(status.health.status), health_tint(status.health.status)),
        policy_word(application).into(),
        condition_words(application).into(),
    ];
    if wide {
        let source = application.sources().first().copied().cloned().unwrap_or_default();
        let text = |key: &str| Cell::from(source.get(key).and_then(Value::as_str).unwrap_or_default());
        row.extend([text("repoURL"), text("path"), text("targetRevision")]);
    }
    row
}

fn destination(application: &Application) -> &str {
    let server = application.spec_text(&["destination", "server"]);
    if server.is_empty() { application.spec_text(&["destination", "name"]) } else { server }
}

/// Argo CD's SYNCPOLICY column.
fn policy_word(application: &Application) -> &'static str {
    match application.automated() {
        None => "Manual",
        Some(automated) if automated.get("prune") == Some(&Value::Bool(true)) => "Auto-Prune",
        Some(_) => "Auto",
    }
}

/// Argo CD's CONDITIONS column: types with their counts.
fn condition_words(application: &Application) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for condition in &application.status.conditions {
        *counts.entry(&condition.kind).or_default() += 1;
    }
    let words = counts.iter().map(|(kind, count)| match count {
        1 => (*kind).to_owned(),
        more => format!("{kind}({more})"),
    });
    Some(words.collect::<Vec<_>>().join(",")).filter(|text| !text.is_empty()).unwrap_or("<none>".to_owned())
}

/// `app get`, and what a sync ends with.
pub(in super::super) fn application(
    application: &Application,
    now: Timestamp,
    paint: Paint,
    with_operation: bool,
    wide: bool,
) -> String {
    let mut out = String::new();
    summary(&mut out, application, now, paint);
    let state = application.status.operation_state.as_ref();
    if with_operation && let Some(state) = state {
        out.push('\n');
        out.push_str(&operation_block(state, now, paint));
    }
    conditions(&mut out, application, paint);
    let rows = resource_rows(application, state, wide);
    if !rows.is_empty() {
        out.push('\n');
        let mut header = vec!["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE"];
        if wide {
            header.insert(4, "WAVE");
        }
        out.push_str(&table(paint, &header, &rows));
    }
    out
}

fn summary(out: &mut String, application: &Application, now: Timestamp, paint: Paint) {
    let status = &application.status;
    let mut line = |name: &str, value: &str, tint: Option<Tint>| field(out, paint, name, value, tint);
    line("Name", &application.qualified_name(), None);
    line("Project", application.project(), None);
    line("Server", destination(application), None);
    line("Namespace", application.spec_text(&["destination", "namespace"]), None);
    line("Source", "", None);
    for source in application.sources() {
        let text = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
        line("- Repo", text("repoURL"), None);
        line("  Target", text("targetRevision"), None);
        line("  Path", text("path"), None);
    }
    line("Sync Policy", &policy_line(application), None);
    line("Sync Status", &sync_line(application), Some(sync_tint(status.sync.status)));
    let health = match status.health.message.as_str() {
        "" => name(status.health.status),
        message => format!("{} ({message})", name(status.health.status)),
    };
    line("Health Status", &health, Some(health_tint(status.health.status)));
    if let Some(observed) = status.observed_at {
        let stale = now.as_second() - observed.as_second() > pintle_model::limits::STALE_SECS as i64;
        line("Observed", &ago(now, observed), stale.then_some(Tint::Attention));
    }
}

fn policy_line(application: &Application) -> String {
    let Some(automated) = application.automated() else { return "Manual".to_owned() };
    let on = |key: &str| automated.get(key) == Some(&Value::Bool(true));
    let mut words = vec![];
    if on("prune") {
        words.push("Prune");
    }
    if on("selfHeal") {
        words.push("SelfHeal");
    }
    if words.is_empty() { "Automated".to_owned() } else { format!("Automated ({})", words.join(", ")) }
}

/// `Synced to main (53e28ff)`, `OutOfSync from main (53e28ff)`.
fn sync_line(application: &Application) -> String {
    let sync = &application.status.sync;
    let target = application.sources().first().and_then(|source| source.get("targetRevision")?.as_str());
    let target = target.filter(|text| !text.is_empty()).unwrap_or("HEAD");
    let preposition = if sync.status == SyncStatus::OutOfSync { "from" } else { "to" };
    match sync.revision.as_str() {
        "" => name(sync.status),
        revision if revision == target => format!("{} {preposition} {}", name(sync.status), short(target)),
        revision => format!("{} {preposition} {} ({})", name(sync.status), target, short(revision)),
    }
}

/// The last operation, as `argocd app get --show-operation`.
pub(in super::super) fn operation_block(state: &OperationState, now: Timestamp, paint: Paint) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str, tint: Option<Tint>| field(&mut out, paint, name, value, tint);
    line("Operation", "Sync", None);
    if let Some(result) = &state.sync_result {
        line("Sync Revision", &result.revision, None);
    }
    line("Phase", &name(state.phase), Some(phase_tint(state.phase)));
    if let Some(started) = state.started_at {
        line("Start", &date(started), None);
        line("Finished", &state.finished_at.map(date).unwrap_or_default(), None);
        line("Duration", &age(state.finished_at.unwrap_or(now), started), None);
    }
    if !state.message.is_empty() {
        line("Message", &state.message, None);
    }
    out
}

fn conditions(out: &mut String, application: &Application, paint: Paint) {
    let rows: Vec<Vec<Cell>> = application
        .status
        .conditions
        .iter()
        .map(|condition| {
            let time = condition.last_transition_time.map(date).unwrap_or_default();
            vec![Cell::tinted(&condition.kind, Tint::Attention), (&condition.message).into(), time.into()]
        })
        .collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table(paint, &["CONDITION", "MESSAGE", "LAST TRANSITION"], &rows));
    }
}

/// Every object once, with the result of the last operation, and then what only the operation knows (hooks, and
/// what was pruned).
fn resource_rows(application: &Application, state: Option<&OperationState>, wide: bool) -> Vec<Vec<Cell>> {
    let results =
        state.and_then(|state| state.sync_result.as_ref()).map_or(&[][..], |result| &result.resources);
    let resources = &application.status.resources;
    let same = |resource: &ResourceStatus, result: &ResourceResult| {
        (&resource.group, &resource.kind, &resource.namespace, &resource.name)
            == (&result.group, &result.kind, &result.namespace, &result.name)
    };
    let known = resources.iter().map(|resource| {
        let result = results.iter().find(|result| result.hook_type.is_empty() && same(resource, result));
        resource_row(resource, result, wide)
    });
    let only_results = results
        .iter()
        .filter(|result| !result.hook_type.is_empty() || !resources.iter().any(|one| same(one, result)))
        .map(|result| result_row(result, wide));
    known.chain(only_results).collect()
}

fn resource_row(resource: &ResourceStatus, result: Option<&ResourceResult>, wide: bool) -> Vec<Cell> {
    let status =
        resource.status.map_or(Cell::from(""), |status| Cell::tinted(name(status), sync_tint(status)));
    let health = resource.health.as_ref();
    let message = match (result, health) {
        (Some(result), _) => result.message.as_str(),
        (None, Some(health)) => &health.message,
        (None, None) if resource.requires_pruning => "no longer in git",
        (None, None) => "",
    };
    let mut row: Vec<Cell> = vec![
        (&resource.group).into(),
        (&resource.kind).into(),
        (&resource.namespace).into(),
        (&resource.name).into(),
        status,
        health.map_or(Cell::from(""), |health| Cell::tinted(name(health.status), health_tint(health.status))),
        if resource.hook { "Hook" } else { "" }.into(),
        message.into(),
    ];
    if wide {
        row.insert(4, resource.sync_wave.unwrap_or_default().to_string().into());
    }
    row
}

fn result_row(result: &ResourceResult, wide: bool) -> Vec<Cell> {
    let status = match (result.hook_phase, result.status) {
        (Some(phase), _) => Cell::tinted(name(phase), phase_tint(phase)),
        (None, Some(code)) => name(code).into(),
        (None, None) => "".into(),
    };
    let mut row: Vec<Cell> = vec![
        (&result.group).into(),
        (&result.kind).into(),
        (&result.namespace).into(),
        (&result.name).into(),
        status,
        "".into(),
        (&result.hook_type).into(),
        (&result.message).into(),
    ];
    if wide {
        row.insert(4, "".into());
    }
    row
}

/// `app history`: ID DATE REVISION, wide with who and where from.
pub(in super::super) fn history(history: &History, paint: Paint, wide: bool) -> String {
    let mut header = vec!["ID", "DATE", "REVISION"];
    if wide {
        header.extend(["INITIATED BY", "SOURCE"]);
    }
    let rows: Vec<Vec<Cell>> = history
        .items
        .iter()
        .map(|entry| {
            let source = |key: &str| entry.source.get(key).and_then(Value::as_str).unwrap_or_default();
            let revision = match source("targetRevision") {
                "" => short(&entry.revision).to_owned(),
                target if target == entry.revision => short(target).to_owned(),
                target => format!("{target} ({})", short(&entry.revision)),
            };
            let date = entry.deployed_at.map(date).unwrap_or_default();
            let mut row: Vec<Cell> = vec![entry.id.to_string().into(), date.into(), revision.into()];
            if wide {
                let by =
                    if entry.initiated_by.automated { "automated" } else { &entry.initiated_by.username };
                row.extend([by.into(), source("repoURL").into()]);
            }
            row
        })
        .collect();
    table(paint, &header, &rows)
}
