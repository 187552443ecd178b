//! Commands that read: list, get, diff, history, manifests, status, doctor, and the small ones that change.

use jiff::Timestamp;
use pintle_api::{
    ApplicationList, Doctor, Document, PauseRequest, Refresh, RestoreRequest, Verdict, doctor::Check,
};
use pintle_model::{AppKey, Problem, Reason};

use super::args::{
    AppArg, DiffArgs, GetArgs, Globals, ListArgs, ManifestSource, ManifestsArgs, PauseArgs, RestoreCommand,
};
use super::exit::{Exit, Failure};
use super::screen::{Format, Screen};
use super::session::Session;
use super::view;
use crate::client::Client;

type Ended = Result<Exit, Failure>;

pub(super) async fn status(client: &Client, screen: &mut Screen<'_>) -> Ended {
    screen.allow(&[Format::Wide])?;
    let status = client.status().await?;
    let wide = screen.format() == Format::Wide;
    screen.document(&status, |status, paint| view::status(status, paint, wide))?;
    Ok(Exit::Done)
}

pub(super) async fn list(client: &Client, screen: &mut Screen<'_>, args: &ListArgs) -> Ended {
    screen.allow(&[Format::Wide, Format::Name])?;
    let mut items = client.list().await?.items;
    items.retain(|application| {
        let project =
            args.project.is_empty() || args.project.iter().any(|name| name == application.project());
        let from = |url: &str| {
            application
                .sources()
                .iter()
                .any(|source| source.get("repoURL").and_then(|text| text.as_str()) == Some(url))
        };
        project && args.repo.as_deref().is_none_or(from)
    });
    let list = ApplicationList { items };
    let format = screen.format();
    screen.document(&list, |list, paint| match format {
        Format::Name => list.items.iter().map(|application| application.qualified_name() + "\n").collect(),
        _ => view::list(list, paint, format == Format::Wide),
    })?;
    Ok(Exit::Done)
}

pub(super) async fn get(client: &Client, screen: &mut Screen<'_>, args: &GetArgs) -> Ended {
    screen.allow(&[Format::Wide, Format::Name])?;
    let application = client.app(&args.app.app, args.refresh.refresh()).await?;
    let format = screen.format();
    screen.document(&application, |application, paint| match format {
        Format::Name => application.qualified_name() + "\n",
        _ => {
            let wide = format == Format::Wide;
            view::application(application, Timestamp::now(), paint, args.show_operation, wide)
        }
    })?;
    Ok(Exit::Done)
}

pub(super) async fn diff(client: &Client, screen: &mut Screen<'_>, args: &DiffArgs) -> Ended {
    screen.allow(&[Format::Name])?;
    let app = &args.app.app;
    let refresh = args.refresh.refresh();
    if refresh != Refresh::None {
        client.app(app, refresh).await?;
    }
    let request = pintle_api::DiffRequest { revision: args.revision.clone() };
    let diff = client.diff(app, &request).await?;
    let format = screen.format();
    screen.document(&diff, |diff, paint| match format {
        Format::Name => diff.objects.iter().map(|object| object.key.path() + "\n").collect(),
        _ => view::diff(diff, Timestamp::now(), paint),
    })?;
    Ok(if diff.objects.is_empty() { Exit::Done } else { Exit::Differences })
}

pub(super) async fn history(client: &Client, screen: &mut Screen<'_>, args: &AppArg) -> Ended {
    screen.allow(&[Format::Wide, Format::Name])?;
    let history = client.history(&args.app).await?;
    let format = screen.format();
    screen.document(&history, |history, paint| match format {
        Format::Name => history.items.iter().map(|entry| entry.id.to_string() + "\n").collect(),
        _ => view::history(history, paint, format == Format::Wide),
    })?;
    Ok(Exit::Done)
}

pub(super) async fn manifests(client: &Client, screen: &mut Screen<'_>, args: &ManifestsArgs) -> Ended {
    screen.allow(&[])?;
    let manifests = client.manifests(&args.app.app, args.source == ManifestSource::Live).await?;
    if screen.format() == Format::Json {
        screen.value(&manifests.to_document())?;
    } else {
        // A table of manifests is their YAML, ready for kubectl; so is `-o yaml`.
        screen.text(&view::manifests(&manifests))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn resume(client: &Client, screen: &mut Screen<'_>, app: &AppKey) -> Ended {
    screen.allow(&[])?;
    let application = client.resume(app).await?;
    screen.document(&application, |application, _| {
        format!("application {} follows git again\n", application.qualified_name())
    })?;
    Ok(Exit::Done)
}

pub(super) async fn pause(client: &Client, screen: &mut Screen<'_>, args: &PauseArgs) -> Ended {
    screen.allow(&[])?;
    let request = PauseRequest {
        seconds: args.duration.map(|duration| duration.as_secs()),
        reason: args.reason.clone(),
    };
    let application = client.pause(&args.app.app, &request).await?;
    let until = args.duration.map_or_else(
        || "until `pintle resume`".to_owned(),
        |duration| format!("for {:#}", jiff::SignedDuration::try_from(duration).unwrap_or_default()),
    );
    screen.document(&application, |application, _| {
        format!("application {} is paused {until}\n", application.qualified_name())
    })?;
    Ok(Exit::Done)
}

pub(super) async fn restore(client: &Client, screen: &mut Screen<'_>, command: &RestoreCommand) -> Ended {
    screen.allow(&[])?;
    match command {
        RestoreCommand::List => {
            let found = client.backups().await?;
            screen.document(&found, view::backups)?;
        }
        RestoreCommand::Show(args) => {
            let found = client.backup(&args.id).await?;
            if screen.format() == Format::Json {
                screen.value(&found.to_document())?;
            } else {
                screen.text(&found.manifest)?;
            }
        }
        RestoreCommand::Put(args) => {
            let request = RestoreRequest { force: args.force };
            let found = client.restore(&args.backup.id, &request).await?;
            screen
                .document(&found, |found, _| format!("{} put back as it was at {}\n", found.key, found.at))?;
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn terminate(client: &Client, screen: &mut Screen<'_>, app: &AppKey) -> Ended {
    screen.allow(&[])?;
    let operation = client.terminate(app).await?;
    screen.document(&operation, |operation, _| {
        format!("application {}: operation {} is being ended\n", operation.app, operation.id)
    })?;
    Ok(Exit::Done)
}

pub(super) async fn store_rebind(client: &Client, screen: &mut Screen<'_>) -> Ended {
    screen.allow(&[])?;
    let binding = client.store_rebind().await?;
    screen.document(&binding, |binding, _| match binding.previous_cluster_uid.as_str() {
        "" => format!("the store now belongs to cluster {}\n", binding.cluster_uid),
        before => format!("the store now belongs to cluster {} (before: {before})\n", binding.cluster_uid),
    })?;
    Ok(Exit::Done)
}

/// Also answers when no agent can be reached or started: that is then the first finding.
pub(super) async fn doctor(globals: &Globals, screen: &mut Screen<'_>) -> Ended {
    screen.allow(&[])?;
    let doctor = match Session::open(globals).await {
        Ok(session) => {
            let doctor = session.client.doctor().await;
            session.close().await;
            doctor?
        }
        Err(problem) if problem.reason == Reason::Usage => return Err(problem.into()),
        Err(problem) => Doctor { checks: vec![finding(&problem)] },
    };
    screen.document(&doctor, view::doctor)?;
    let failed = doctor.checks.iter().any(|check| check.ok == Verdict::Fail);
    Ok(if failed { Exit::Error } else { Exit::Done })
}

fn finding(problem: &Problem) -> Check {
    Check {
        name: "agent".to_owned(),
        ok: Verdict::Fail,
        detail: problem.message.clone(),
        hint: problem.reason.hint().to_owned(),
    }
}
