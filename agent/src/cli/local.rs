//! Commands that need no agent: config, version, completion, render.

mod render;

use clap::CommandFactory;
use pintle_api::{Document, SCHEMA, Version};
use pintle_model::{Problem, Reason};
use serde_json::json;

use super::args::{Cli, CompletionArgs, ConfigCommand, Globals, VersionArgs};
use super::exit::{Exit, Failure};
use super::screen::{Format, Screen};
use crate::client::connect;
use crate::runtime::RunSettings;

pub(super) use render::render;

type Ended = Result<Exit, Failure>;

pub(super) fn config(screen: &mut Screen<'_>, globals: &Globals, command: &ConfigCommand) -> Ended {
    screen.allow(&[])?;
    let settings = RunSettings::load(&globals.overrides())?;
    match command {
        ConfigCommand::Check if screen.for_people() => {
            screen.text(&format!("{}: ok\n", settings.config_source()))?;
        }
        ConfigCommand::Check => screen.value(&json!({
            "apiVersion": pintle_api::PINTLE_V1, "kind": "ConfigCheck", "file": settings.config_source(), "ok": true,
        }))?,
        ConfigCommand::Show if screen.for_people() => {
            screen.text(&super::screen::yaml(&settings.effective()))?;
        }
        ConfigCommand::Show => screen.value(&settings.effective())?,
    }
    Ok(Exit::Done)
}

/// Asks a running agent too, but starts none.
pub(super) async fn version(screen: &mut Screen<'_>, globals: &Globals, args: &VersionArgs) -> Ended {
    screen.allow(&[])?;
    let ours = Version { version: env!("CARGO_PKG_VERSION").to_owned(), schema: SCHEMA };
    let agent = if args.client { Ok(None) } else { agent_version(globals).await };
    if screen.for_people() {
        let mut text = format!("pintle {} (API schema {})\n", ours.version, ours.schema);
        match &agent {
            Ok(None) if args.client => {}
            Ok(None) => text.push_str("agent: not running\n"),
            Ok(Some(agent)) => {
                text.push_str(&format!("agent: pintle {} (API schema {})\n", agent.version, agent.schema));
            }
            Err(problem) => text.push_str(&format!("agent: {}\n", super::text::clean(&problem.message))),
        }
        screen.text(&text)?;
        return Ok(Exit::Done);
    }
    let mut document = ours.to_document();
    if let Ok(Some(agent)) = &agent {
        document["agent"] = json!({"version": agent.version, "schema": agent.schema});
    }
    screen.value(&document)?;
    Ok(Exit::Done)
}

async fn agent_version(globals: &Globals) -> Result<Option<Version>, Problem> {
    let socket = match &globals.socket {
        Some(socket) => socket.clone(),
        None => RunSettings::load(&globals.overrides())?.socket(),
    };
    match connect(&socket).await? {
        Some(client) => Ok(Some(client.version().await?)),
        None => Ok(None),
    }
}

pub(super) fn completion(screen: &mut Screen<'_>, args: &CompletionArgs) -> Ended {
    if screen.format() != Format::Table {
        return Err(Problem::new(Reason::Usage, "-o is not for completion: it prints a script").into());
    }
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "pintle", &mut script);
    screen.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
