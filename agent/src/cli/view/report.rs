//! Status, differences, plans, checks and manifests.

use std::fmt::Write as _;

use jiff::Timestamp;
use pintle_api::{
    Action, BackupList, Change, ClusterInfo, Diff, Difference, Doctor, Manifests, ObjectDiff, Plan, Refusal,
    Status, StoreCheck, Verdict,
};
use pintle_model::ObjectKey;
use similar::TextDiff;

use super::super::screen::yaml;
use super::super::text::{
    Cell, Paint, Tint, age, ago, bytes, clean, clean_lines, health_tint, name, phase_tint, short, sync_tint,
    table,
};
use super::scalar;

/// Everything on one screen.
pub(in super::super) fn status(status: &Status, paint: Paint, wide: bool) -> String {
    let now = status.now;
    let mut out = String::new();
    let mut line = |name: &str, text: &str, tint: Option<Tint>| {
        let _ = writeln!(out, "{name:<9} {}", paint.text(&clean(text), tint));
    };
    let agent = &status.agent;
    let cluster_name =
        if agent.cluster.is_empty() { String::new() } else { format!(", cluster {}", agent.cluster) };
    let up = agent.started_at.map(|since| format!(", up {}", age(now, since))).unwrap_or_default();
    line("Agent:", &format!("pintle {}, id {}{cluster_name}{up}", agent.version, agent.id), None);
    let (text, tint) = cluster(&status.cluster, now);
    line("Cluster:", &text, tint);
    let store = &status.store;
    line("Store:", &format!("{}, {}, generation {}", store.path, bytes(store.bytes), store.generation), None);
    let clock = &status.clock;
    let trust = if clock.trusted { "trusted" } else { "not trusted" };
    let detail = if clock.detail.is_empty() { String::new() } else { format!(" ({})", clock.detail) };
    line("Clock:", &format!("{trust}{detail}"), (!clock.trusted).then_some(Tint::Attention));
    for note in agent.notes.iter().chain(&store.notes) {
        line("Note:", note, Some(Tint::Attention));
    }
    if !status.git.is_empty() {
        out.push('\n');
        out.push_str(&git_table(status, paint));
    }
    out.push('\n');
    if status.apps.is_empty() {
        out.push_str("No applications.\n");
    } else {
        out.push_str(&app_table(status, paint, wide));
    }
    out
}

fn cluster(cluster: &ClusterInfo, now: Timestamp) -> (String, Option<Tint>) {
    let mut text = cluster.server.clone();
    if !cluster.version.is_empty() {
        let _ = write!(text, " {}", cluster.version);
    }
    let (word, tint) = match (cluster.reachable, cluster.since) {
        (true, _) => ("reachable", None),
        (false, Some(_)) => ("not reachable", Some(Tint::Bad)),
        (false, None) => ("not yet reached", Some(Tint::Attention)),
    };
    let _ = write!(text, "{}{word}", if text.is_empty() { "" } else { ", " });
    if let Some(since) = cluster.since {
        let _ = write!(text, " for {}", age(now, since));
    }
    if !cluster.message.is_empty() {
        let _ = write!(text, ": {}", cluster.message);
    }
    let tint = if cluster.message.is_empty() { tint } else { Some(Tint::Bad) };
    (text, tint)
}

fn git_table(status: &Status, paint: Paint) -> String {
    let rows: Vec<Vec<Cell>> = status
        .git
        .iter()
        .map(|git| {
            let last = git.last_success.map_or("never".to_owned(), |time| ago(status.now, time));
            vec![
                (&git.url).into(),
                (&git.reference).into(),
                short(&git.revision).into(),
                last.into(),
                Cell::tinted(&git.last_error, Tint::Bad),
            ]
        })
        .collect();
    table(paint, &["REPOSITORY", "REF", "REVISION", "LAST FETCH", "ERROR"], &rows)
}

fn app_table(status: &Status, paint: Paint, wide: bool) -> String {
    let mut header = vec!["NAME", "STATUS", "HEALTH", "REVISION", "OPERATION", "DRIFT", "HOLD", "MESSAGE"];
    if wide {
        header.insert(1, "PROJECT");
    }
    let rows: Vec<Vec<Cell>> = status
        .apps
        .iter()
        .map(|app| {
            let holds: Vec<String> = app.holds.iter().map(name).collect();
            let mut row: Vec<Cell> = vec![
                app.name.to_string().into(),
                Cell::tinted(name(app.sync), sync_tint(app.sync)),
                Cell::tinted(name(app.health), health_tint(app.health)),
                short(&app.revision).into(),
                app.operation.map_or("".into(), |phase| Cell::tinted(name(phase), phase_tint(phase))),
                app.drift.to_string().into(),
                Cell::tinted(holds.join(","), Tint::Attention),
                (&app.message).into(),
            ];
            if wide {
                row.insert(1, (&app.project).into());
            }
            row
        })
        .collect();
    table(paint, &header, &rows)
}

/// Each object that differs: who changed which field, then the texts side by side as a unified diff.
pub(in super::super) fn diff(diff: &Diff, now: Timestamp, paint: Paint) -> String {
    let mut out = String::new();
    for object in &diff.objects {
        let change = match object.change {
            Change::Create => ", not in the cluster",
            Change::Update => "",
            Change::Prune => ", no longer in git",
        };
        let title = format!("===== {}{change} =====", title(&object.key));
        let _ = writeln!(out, "{}", paint.text(&title, Some(Tint::Busy)));
        for difference in &object.differences {
            let _ = writeln!(out, "{}", who_changed(difference, now));
        }
        out.push_str(&unified(object, paint));
        out.push('\n');
    }
    out
}

/// `apps/Deployment shop/web`, as in `argocd app diff`.
fn title(key: &ObjectKey) -> String {
    let scope = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    clean(&format!("{}/{} {scope}{}", key.group, key.kind, key.name))
}

fn who_changed(difference: &Difference, now: Timestamp) -> String {
    let mut out = format!(
        "  {}: {} in the cluster, {} in git",
        clean(&difference.path),
        scalar(&difference.live),
        scalar(&difference.wanted)
    );
    if !difference.manager.is_empty() {
        let _ = write!(out, "; last written by {}", clean(&difference.manager));
        if !difference.operation.is_empty() {
            let _ = write!(out, " ({})", clean(&difference.operation));
        }
        if let Some(time) = difference.time {
            let _ = write!(out, " at or before {time} ({})", ago(now, time));
        }
    }
    out
}

fn unified(object: &ObjectDiff, paint: Paint) -> String {
    let (before, after) = (clean_lines(&object.before), clean_lines(&object.after));
    let diff = TextDiff::from_lines(&before, &after);
    let text = diff.unified_diff().context_radius(3).header("live", "git").to_string();
    let mut out = String::new();
    for line in text.lines() {
        let tint = match line.as_bytes().first() {
            Some(b'+') => Some(Tint::Good),
            Some(b'-') => Some(Tint::Bad),
            Some(b'@') => Some(Tint::Faint),
            _ => None,
        };
        let _ = writeln!(out, "{}", paint.text(line, tint));
    }
    out
}

/// What would be done, what is refused, and how to go on.
pub(in super::super) fn plan(plan: &Plan, paint: Paint) -> String {
    let mut out = String::new();
    if plan.steps.is_empty() && plan.refusals.is_empty() && plan.deferred.is_empty() {
        return "Nothing to do.\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = plan
        .steps
        .iter()
        .map(|step| {
            let tint = match step.action {
                Action::Create | Action::Adopt => Tint::Good,
                Action::Update | Action::Replace | Action::Hook => Tint::Busy,
                Action::Prune | Action::Recreate => Tint::Bad,
                Action::Wait | Action::Release | Action::Skip => Tint::Faint,
            };
            let mut row = vec![Cell::tinted(name(step.action), tint)];
            row.extend(key_cells(Some(&step.key)));
            row.extend([step.wave.to_string().into(), (&step.reason).into()]);
            row
        })
        .collect();
    let header = ["ACTION", "GROUP", "KIND", "NAMESPACE", "NAME", "WAVE", "REASON"];
    out.push_str(&table(paint, &header, &rows));
    for (word, refusals) in [("REFUSED", &plan.refusals), ("DEFERRED", &plan.deferred)] {
        if !refusals.is_empty() {
            out.push('\n');
            out.push_str(&refusal_table(word, refusals, paint));
        }
    }
    if !plan.token.is_empty() {
        let _ = writeln!(out, "\nTo go on, repeat the command with --confirm {}", clean(&plan.token));
    }
    out
}

fn refusal_table(word: &str, refusals: &[Refusal], paint: Paint) -> String {
    let rows: Vec<Vec<Cell>> = refusals
        .iter()
        .map(|refusal| {
            let mut row = vec![Cell::tinted(refusal.reason.name(), Tint::Attention)];
            row.extend(key_cells(refusal.key.as_ref()));
            row.push((&refusal.message).into());
            row
        })
        .collect();
    table(paint, &[word, "GROUP", "KIND", "NAMESPACE", "NAME", "MESSAGE"], &rows)
}

fn key_cells(key: Option<&ObjectKey>) -> [Cell; 4] {
    match key {
        Some(key) => [(&key.group).into(), (&key.kind).into(), (&key.namespace).into(), (&key.name).into()],
        None => ["", "", "", ""].map(Cell::from),
    }
}

/// One line a check, the advice below what is not well.
pub(in super::super) fn doctor(doctor: &Doctor, paint: Paint) -> String {
    let width = doctor.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for check in &doctor.checks {
        let (word, tint) = match check.ok {
            Verdict::Ok => ("ok  ", Tint::Good),
            Verdict::Warn => ("warn", Tint::Attention),
            Verdict::Fail => ("FAIL", Tint::Bad),
        };
        let word = paint.text(word, Some(tint));
        let _ = writeln!(out, "{word}  {:width$}  {}", clean(&check.name), clean(&check.detail));
        if !check.hint.is_empty() {
            let _ = writeln!(out, "{:1$}-> {2}", "", width + 8, clean(&check.hint));
        }
    }
    out
}

/// A stream of YAML documents.
pub(in super::super) fn manifests(manifests: &Manifests) -> String {
    let texts: Vec<String> = manifests.manifests.iter().map(|object| yaml(&object.to_value())).collect();
    texts.join("---\n")
}

/// What `store check` found.
pub(in super::super) fn store_check(check: &StoreCheck, paint: Paint) -> String {
    let mut out = format!(
        "{}: {} records, {}, generation {}\n",
        clean(&check.path),
        check.records,
        bytes(check.bytes),
        check.generation
    );
    for problem in &check.problems {
        let _ = writeln!(out, "{} {}", paint.text("damaged:", Some(Tint::Bad)), clean(problem));
    }
    out
}

/// The backups as a table.
pub(in super::super) fn backups(list: &BackupList, paint: Paint) -> String {
    if list.items.is_empty() {
        return "no backups: nothing was deleted, replaced or made anew\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = list
        .items
        .iter()
        .map(|backup| {
            let cells = [
                &backup.id,
                &backup.at.to_string(),
                &backup.why,
                &backup.app.to_string(),
                &backup.key.to_string(),
            ];
            cells.map(Cell::from).to_vec()
        })
        .collect();
    table(paint, &["ID", "WHEN", "WHY", "APPLICATION", "OBJECT"], &rows)
}
