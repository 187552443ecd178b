//! The command line. Flags are named as in `argocd app` where it has them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pintle_api::ResourceSelector;
use pintle_model::AppKey;

use super::screen::Format;
use crate::overrides::Overrides;

/// Holds a Kubernetes cluster to a pinned git revision, also when cut off.
#[derive(Debug, Parser)]
#[command(
    name = "pintle",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Heading of the options of every command.
const GLOBAL: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Globals {
    /// Configuration file [default: /etc/pintle/pintle.yaml]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub config: Option<PathBuf>,
    /// Directory of the store, in place of store.path
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub store: Option<PathBuf>,
    /// Socket of the agent [default: /run/pintle/pintle.sock, or pintle.sock in another store.path]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub socket: Option<PathBuf>,
    /// Kubeconfig, in place of cluster.kubeconfig; for an agent that this command starts
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub kubeconfig: Option<PathBuf>,
    /// Output format: table, wide, json, yaml, name
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = GLOBAL, hide_possible_values = true)]
    pub output: Format,
    /// What to log: a level (error, warn, info, debug, trace) or filter directives [default: info for run, else
    /// warn]
    #[arg(long, global = true, value_name = "LEVEL", help_heading = GLOBAL)]
    pub log_level: Option<String>,
    /// How to log: text, json, journald, or auto, which is journald under systemd, else text
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = GLOBAL, hide_possible_values = true)]
    pub log_format: LogFormat,
}

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// journald under systemd, else text.
    #[default]
    Auto,
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
    /// To journald, with fields.
    Journald,
}

impl Globals {
    /// What wins over the configuration file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            store: self.store.clone(),
            socket: self.socket.clone(),
            kubeconfig: self.kubeconfig.clone(),
            take_over: false,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the agent until it is told to stop (the service)
    Run(RunArgs),
    /// Do everything that is due once, then exit (for cron and systemd timers)
    Once(RunArgs),
    /// Everything on one screen
    Status,
    /// Work with applications
    #[command(subcommand)]
    App(AppCommand),
    /// Short for `app sync`
    Sync(SyncArgs),
    /// Short for `app diff`
    Diff(DiffArgs),
    /// Short for `app history`
    History(AppArg),
    /// Short for `app rollback`
    Rollback(RollbackArgs),
    /// Short for `app pause`
    Pause(PauseArgs),
    /// Short for `app resume`
    Resume(AppArg),
    /// What was kept before deletions and replacements: list it, show it, put it back
    #[command(subcommand)]
    Restore(RestoreCommand),
    /// Render a directory of manifests as the agent does
    Render(RenderArgs),
    /// Look at everything that the agent needs, and say how to fix it
    Doctor,
    /// The configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Versions of this command and of the running agent
    Version(VersionArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
}

/// `pintle app ...`.
#[derive(Debug, Subcommand)]
pub enum AppCommand {
    /// List applications
    List(ListArgs),
    /// Show one application
    Get(GetArgs),
    /// Show what differs between git and the cluster, and who changed it; exit code 3 when something does
    Diff(DiffArgs),
    /// Make the cluster equal to git
    Sync(SyncArgs),
    /// Show earlier deployments
    History(AppArg),
    /// Go back to an earlier deployment and hold it, also offline
    Rollback(RollbackArgs),
    /// Stop automated sync and selfHeal for a time
    Pause(PauseArgs),
    /// End a pause and the hold of a rollback: follow git again
    Resume(AppArg),
    /// Print the manifests
    Manifests(ManifestsArgs),
    /// Remove an application: say what happens to its objects
    Delete(DeleteArgs),
    /// Wait until applications are synced, healthy and without a running operation
    Wait(WaitArgs),
    /// End the running operation
    TerminateOp(AppArg),
}

/// `run` and `once`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RunArgs {
    /// Claim the cluster although another agent holds it
    #[arg(long)]
    pub take_over: bool,
}

/// One application.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct AppArg {
    /// Name, or namespace/name
    #[arg(value_name = "APP", value_parser = parse_app)]
    pub app: AppKey,
}

/// `app pause`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct PauseArgs {
    /// The application.
    #[command(flatten)]
    pub app: AppArg,
    /// It ends by itself after this time (seconds, or 90s, 10m, 2h); only `resume` ends it when left out
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Why, for whoever looks at it later
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
}

/// `restore ...`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum RestoreCommand {
    /// List the backups, newest last
    List,
    /// Print one as YAML, secret values masked
    Show(BackupArg),
    /// Put one back into the cluster
    Put(RestoreArgs),
}

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BackupArg {
    /// Id, from `restore list`
    #[arg(value_name = "ID")]
    pub id: String,
}

/// `restore put`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RestoreArgs {
    /// The backup.
    #[command(flatten)]
    pub backup: BackupArg,
    /// Put it over the object that is there now
    #[arg(long)]
    pub force: bool,
}

/// `app list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ListArgs {
    /// Only applications of this project; may be repeated
    #[arg(short, long, value_name = "PROJECT")]
    pub project: Vec<String>,
    /// Only applications of this repository
    #[arg(short, long, value_name = "URL")]
    pub repo: Option<String>,
}

/// Flags that ask for a fresh answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct RefreshArgs {
    /// Ask git and compare again first
    #[arg(long)]
    pub refresh: bool,
    /// As --refresh, and render again without caches
    #[arg(long)]
    pub hard_refresh: bool,
}

impl RefreshArgs {
    /// How fresh.
    pub fn refresh(self) -> pintle_api::Refresh {
        match (self.hard_refresh, self.refresh) {
            (true, _) => pintle_api::Refresh::Hard,
            (false, true) => pintle_api::Refresh::Normal,
            (false, false) => pintle_api::Refresh::None,
        }
    }
}

/// `app get`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct GetArgs {
    /// The application.
    #[command(flatten)]
    pub app: AppArg,
    /// How fresh.
    #[command(flatten)]
    pub refresh: RefreshArgs,
    /// Show the last operation too
    #[arg(long)]
    pub show_operation: bool,
}

/// `app diff`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DiffArgs {
    /// The application.
    #[command(flatten)]
    pub app: AppArg,
    /// How fresh.
    #[command(flatten)]
    pub refresh: RefreshArgs,
    /// Compare with this revision instead of the target revision
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<String>,
}

/// `app sync`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SyncArgs {
    /// Names, or namespace/name
    #[arg(value_name = "APP", required = true, value_parser = parse_app)]
    pub apps: Vec<AppKey>,
    /// Sync to this revision instead of the target revision
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<String>,
    /// Delete what git no longer has
    #[arg(long)]
    pub prune: bool,
    /// Only show the plan
    #[arg(long)]
    pub dry_run: bool,
    /// Only these objects, as GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; may be repeated
    #[arg(long, value_name = "RESOURCE")]
    pub resource: Vec<ResourceSelector>,
    /// Token that was printed with the plan
    #[arg(long, value_name = "TOKEN")]
    pub confirm: Option<String>,
    /// Claim the cluster although another agent holds it
    #[arg(long)]
    pub take_over: bool,
    /// Return when the operation has started
    #[arg(long, conflicts_with_all = ["wait", "timeout", "dry_run"])]
    pub r#async: bool,
    /// Wait until healthy too
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Give up waiting after this time (seconds, or 90s, 10m, 1h)
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "dry_run")]
    pub timeout: Option<Duration>,
}

/// `app rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RollbackArgs {
    /// The application.
    #[command(flatten)]
    pub app: AppArg,
    /// Number of the history entry; the one before the current one when left out
    #[arg(value_name = "ID")]
    pub id: Option<u64>,
    /// Delete what that deployment did not have
    #[arg(long)]
    pub prune: bool,
    /// Only show the plan
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until healthy too
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Give up waiting after this time (seconds, or 90s, 10m, 1h)
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "dry_run")]
    pub timeout: Option<Duration>,
}

/// `app manifests`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ManifestsArgs {
    /// The application.
    #[command(flatten)]
    pub app: AppArg,
    /// Where from
    #[arg(long, value_enum, default_value_t)]
    pub source: ManifestSource,
}

/// `--source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ManifestSource {
    /// As rendered.
    #[default]
    Git,
    /// As in the cluster.
    Live,
}

/// `app delete`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group(clap::ArgGroup::new("mode").required(true).args(["orphan", "cascade"])))]
pub struct DeleteArgs {
    /// The application.
    #[command(flatten)]
    pub app: AppArg,
    /// Its objects stay
    #[arg(long)]
    pub orphan: bool,
    /// Its objects are deleted too; prints the plan and the token for --confirm
    #[arg(long)]
    pub cascade: bool,
    /// Token that was printed with the plan
    #[arg(long, value_name = "TOKEN", requires = "cascade", conflicts_with = "orphan")]
    pub confirm: Option<String>,
    /// Give up waiting after this time (seconds, or 90s, 10m, 1h)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub timeout: Option<Duration>,
}

/// `app wait`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct WaitArgs {
    /// Names, or namespace/name
    #[arg(value_name = "APP", required = true, value_parser = parse_app)]
    pub apps: Vec<AppKey>,
    /// Wait until synced
    #[arg(long)]
    pub sync: bool,
    /// Wait until healthy
    #[arg(long)]
    pub health: bool,
    /// Wait until no operation runs
    #[arg(long)]
    pub operation: bool,
    /// Wait until suspended; with --health either will do
    #[arg(long)]
    pub suspended: bool,
    /// Give up after this time (seconds, or 90s, 10m, 1h)
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub timeout: Duration,
}

/// `render`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RenderArgs {
    /// The directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Read subdirectories too (directory.recurse)
    #[arg(long)]
    pub recurse: bool,
    /// Only files that match this glob (directory.include)
    #[arg(long, value_name = "GLOB")]
    pub include: Option<String>,
    /// No files that match this glob (directory.exclude)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Option<String>,
}

/// `config ...`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration file
    Check,
    /// Print the configuration in force, with every default
    Show,
}

/// `store ...`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum StoreCommand {
    /// Read every record of the store and verify it
    Check,
    /// Bind the store to the cluster that the kubeconfig names now
    Rebind,
}

/// `version`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct VersionArgs {
    /// Only of this command
    #[arg(long)]
    pub client: bool,
}

/// `completion`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// A name, or namespace/name.
fn parse_app(text: &str) -> Result<AppKey, String> {
    text.parse().map_err(|_| "write NAME or NAMESPACE/NAME".to_owned())
}

/// Seconds, or a duration with units.
fn parse_time(text: &str) -> Result<Duration, String> {
    let advice = || format!("{text:?} is no time: write seconds, or 90s, 10m, 1h30m");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let duration: jiff::SignedDuration = text.parse().map_err(|_| advice())?;
    Duration::try_from(duration).map_err(|_| advice())
}
