//! The command line: parses, asks the agent, prints, and ends with the right exit code.

mod apps;
pub mod args;
pub mod exit;
mod local;
mod logging;
mod operate;
mod screen;
mod session;
mod text;
mod view;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use pintle_model::{Problem, Reason, limits};

use crate::client::Client;
use crate::runtime::{self, RunSettings};
use args::{AppCommand, Cli, Command, Globals, RunArgs, StoreCommand};
use exit::{Exit, Failure};
pub use screen::{Format, Screen};
use session::Session;

type Ended = Result<Exit, Failure>;

/// The whole program: reads the process's arguments, runs, returns its exit code.
pub fn main() -> ExitCode {
    // clap prints its own usage errors, which end with 2, and help, which ends with 0.
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    let colour = (colour(io::stdout().is_terminal()), colour(io::stderr().is_terminal()));
    let mut screen = Screen::new(&mut out, &mut err, cli.globals.output, colour);
    let ended = start(&cli, &mut screen);
    ExitCode::from(conclude(ended, &mut screen).code())
}

/// Tells what went wrong, if anything did.
fn conclude(ended: Ended, screen: &mut Screen<'_>) -> Exit {
    match ended {
        Ok(exit) => exit,
        Err(Failure::Problem(problem)) => {
            screen.problem(&problem);
            Exit::of_reason(problem.reason)
        }
        // The reader went away (`pintle app list | head -1`): it has what it wanted.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Failure::Output(error)) => {
            let message = format!("cannot write the output: {error}");
            screen.problem(&Problem::new(Reason::OutputError, message));
            Exit::Error
        }
    }
}

/// Colour only on a terminal, and never where NO_COLOR (no-color.org) or a dumb terminal says no.
fn colour(terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn start(cli: &Cli, screen: &mut Screen<'_>) -> Ended {
    logging::start(&cli.globals, matches!(cli.command, Command::Run(_)))?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(limits::BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| {
            Problem::new(Reason::Internal, format!("cannot start the async runtime: {error}"))
        })?;
    tokio.block_on(run(cli, screen))
}

/// Runs one command.
pub async fn run(cli: &Cli, screen: &mut Screen<'_>) -> Ended {
    let globals = &cli.globals;
    match &cli.command {
        Command::Run(args) => {
            screen.allow(&[])?;
            runtime::run(settings(globals, args)?).await?;
            Ok(Exit::Done)
        }
        Command::Once(args) => once(globals, args, screen).await,
        Command::Doctor => apps::doctor(globals, screen).await,
        Command::Render(args) => local::render(screen, args),
        Command::Config(command) => local::config(screen, globals, command),
        Command::Version(args) => local::version(screen, globals, args).await,
        Command::Completion(args) => local::completion(screen, args),
        Command::Store(StoreCommand::Check) => {
            screen.allow(&[])?;
            let check = runtime::check_store(RunSettings::load(&globals.overrides())?).await?;
            screen.document(&check, view::store_check)?;
            Ok(if check.problems.is_empty() { Exit::Done } else { Exit::Error })
        }
        Command::Status
        | Command::App(_)
        | Command::Sync(_)
        | Command::Diff(_)
        | Command::History(_)
        | Command::Rollback(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Restore(_)
        | Command::Store(StoreCommand::Rebind) => with_agent(cli, screen).await,
    }
}

/// A command that an agent answers. An agent of our own is closed whatever happened.
async fn with_agent(cli: &Cli, screen: &mut Screen<'_>) -> Ended {
    let session = Session::open(&cli.globals).await?;
    let ended = ask(&session, &cli.command, screen).await;
    session.close().await;
    ended
}

async fn ask(session: &Session, command: &Command, screen: &mut Screen<'_>) -> Ended {
    let client: &Client = &session.client;
    match command {
        Command::Status => apps::status(client, screen).await,
        Command::Store(StoreCommand::Rebind) => apps::store_rebind(client, screen).await,
        Command::Sync(args) | Command::App(AppCommand::Sync(args)) => {
            operate::sync(session, screen, args).await
        }
        Command::Diff(args) | Command::App(AppCommand::Diff(args)) => apps::diff(client, screen, args).await,
        Command::History(args) | Command::App(AppCommand::History(args)) => {
            apps::history(client, screen, args).await
        }
        Command::Rollback(args) | Command::App(AppCommand::Rollback(args)) => {
            operate::rollback(client, screen, args).await
        }
        Command::Pause(args) | Command::App(AppCommand::Pause(args)) => {
            apps::pause(client, screen, args).await
        }
        Command::Restore(command) => apps::restore(client, screen, command).await,
        Command::Resume(args) | Command::App(AppCommand::Resume(args)) => {
            apps::resume(client, screen, &args.app).await
        }
        Command::App(AppCommand::List(args)) => apps::list(client, screen, args).await,
        Command::App(AppCommand::Get(args)) => apps::get(client, screen, args).await,
        Command::App(AppCommand::Manifests(args)) => apps::manifests(client, screen, args).await,
        Command::App(AppCommand::Delete(args)) => operate::delete(client, screen, args).await,
        Command::App(AppCommand::Wait(args)) => operate::wait(client, screen, args).await,
        Command::App(AppCommand::TerminateOp(args)) => apps::terminate(client, screen, &args.app).await,
        Command::Run(_)
        | Command::Once(_)
        | Command::Doctor
        | Command::Render(_)
        | Command::Config(_)
        | Command::Version(_)
        | Command::Completion(_)
        | Command::Store(StoreCommand::Check) => {
            Err(Problem::new(Reason::Internal, "this command does not ask an agent").into())
        }
    }
}

fn settings(globals: &Globals, args: &RunArgs) -> Result<RunSettings, Problem> {
    let mut overrides = globals.overrides();
    overrides.take_over = args.take_over;
    RunSettings::load(&overrides)
}

async fn once(globals: &Globals, args: &RunArgs, screen: &mut Screen<'_>) -> Ended {
    screen.allow(&[Format::Wide])?;
    let summary = runtime::once(settings(globals, args)?).await?;
    let wide = screen.format() == Format::Wide;
    screen.document(&summary.status, |status, paint| view::status(status, paint, wide))?;
    match summary.problem {
        Some(problem) => Err(problem.into()),
        None => Ok(Exit::Done),
    }
}
