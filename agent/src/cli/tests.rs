//! Whole commands against an agent on a real socket: what they print, ask and exit with.

use clap::{CommandFactory, Parser};
use pintle_api as api;
use pintle_model::{AppKey, Problem, Reason};
use serde_json::Value;

use super::args::{Cli, Command};
use super::exit::{Exit, Failure};
use super::{Screen, conclude, run};
use crate::handle::Call;
use crate::sample::{Agent, shop};

struct Output {
    code: u8,
    out: String,
    err: String,
}

/// Runs one command line against the agent, as `main` does.
async fn pintle(agent: &Agent, line: &str) -> Output {
    let socket = agent.socket.to_str().unwrap();
    let words = ["pintle", "--socket", socket].into_iter().chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).unwrap();
    let (mut out, mut err) = (vec![], vec![]);
    let mut screen = Screen::new(&mut out, &mut err, cli.globals.output, (false, false));
    let ended = run(&cli, &mut screen).await;
    let code = conclude(ended, &mut screen).code();
    Output { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn wrong_command_lines_are_refused() {
    for line in [
        "",
        "sync",
        "app get",
        "app get a/b/c",
        "app delete shop",
        "app delete shop --orphan --cascade",
        "app delete shop --orphan --confirm t",
        "app sync shop --async --wait",
        "app sync shop --dry-run --timeout 5",
        "app sync shop --resource web",
        "app wait shop --timeout soon",
        "app wait shop --timeout -5s",
        "app rollback shop first",
        "status -o xml",
        "nothing",
    ] {
        let words = std::iter::once("pintle").chain(line.split_whitespace());
        let error = Cli::try_parse_from(words).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}: {error}");
    }
}

#[test]
fn short_forms_mean_the_same_as_app_verbs() {
    for line in
        ["sync shop --prune", "diff shop --revision v1", "history shop", "rollback shop 3", "resume shop"]
    {
        let parse = |prefix: &str| {
            let text = format!("pintle {prefix}{line}");
            format!("{:?}", Cli::try_parse_from(text.split_whitespace()).unwrap().command)
        };
        assert_eq!(format!("App({})", parse("")), parse("app "));
    }
}

#[test]
fn times_are_seconds_or_have_units() {
    for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400)] {
        let cli = Cli::try_parse_from(["pintle", "sync", "shop", "--timeout", text]).unwrap();
        let Command::Sync(args) = cli.command else { panic!("{text}") };
        assert_eq!(args.timeout.unwrap().as_secs(), seconds);
    }
}

#[tokio::test]
async fn reading_commands_print_and_end_with_their_code() {
    let agent = Agent::start();
    for (line, code, text) in [
        ("status", 0, "argocd/shop  OutOfSync  Healthy"),
        ("app list", 0, "argocd/shop  https://kubernetes.default.svc  shop"),
        ("app list --project other", 0, "NAME  CLUSTER"),
        ("app list -o name", 0, "argocd/shop\n"),
        ("app get shop", 0, "Sync Status:        OutOfSync from main (53e28ff)"),
        ("app get argocd/shop --show-operation", 0, "Start:              2026-03-04"),
        ("app get shop -o wide", 0, "WAVE"),
        ("app history shop", 0, "2   2026-03-03 01:02:03 +0000 UTC  main (0a1b2c3)"),
        ("app manifests shop", 0, "kind: Service"),
        ("app resume shop", 0, "application argocd/shop follows git again"),
        ("app terminate-op shop", 0, "operation op-2 is being ended"),
        ("app diff shop", 3, "===== apps/Deployment shop/web ====="),
        ("diff shop --revision v2", 0, ""),
        ("diff shop -o name", 3, "apps/Deployment/shop/web\n"),
        ("doctor", 1, "FAIL  git  connection refused"),
        ("store rebind", 0, "the store now belongs to cluster new (before: old)"),
        ("version", 0, "agent: pintle "),
        ("completion bash", 0, "pintle"),
    ] {
        let output = pintle(&agent, line).await;
        assert_eq!(output.code, code, "{line}: {}{}", output.out, output.err);
        assert!(output.out.contains(text), "{line}:\n{}", output.out);
        assert_eq!(output.err, "", "{line}");
    }
    agent.stop().await;
}

#[tokio::test]
async fn every_json_output_is_a_document() {
    let agent = Agent::start();
    for (line, api_version, kind) in [
        ("status", "pintle.dev/v1", "Status"),
        ("app list", "argoproj.io/v1alpha1", "ApplicationList"),
        ("app get shop", "argoproj.io/v1alpha1", "Application"),
        ("history shop", "pintle.dev/v1", "History"),
        ("diff shop", "pintle.dev/v1", "Diff"),
        ("app manifests shop", "pintle.dev/v1", "Manifests"),
        ("sync shop --dry-run", "pintle.dev/v1", "Plan"),
        ("doctor", "pintle.dev/v1", "Doctor"),
        ("store rebind", "pintle.dev/v1", "StoreBinding"),
        ("version", "pintle.dev/v1", "Version"),
    ] {
        let output = pintle(&agent, &format!("{line} -o json")).await;
        let value: Value = serde_json::from_str(&output.out).unwrap();
        assert_eq!((&value["apiVersion"], &value["kind"]), (&api_version.into(), &kind.into()), "{line}");
        if line != "app manifests shop" {
            let yaml = pintle(&agent, &format!("{line} -o yaml")).await.out;
            assert!(yaml.contains(&format!("kind: {kind}\n")), "{line}: {yaml}");
        }
    }
    agent.stop().await;
}

#[tokio::test]
async fn sync_follows_its_operation_and_shows_what_it_did() {
    let agent = Agent::start();
    let output = pintle(&agent, "sync shop --resource apps:Deployment:web").await;
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("Phase:              Succeeded"), "{}", output.out);
    assert!(output.out.contains("deployment.apps/web configured"), "{}", output.out);
    assert!(output.out.contains("configmap/old pruned"), "{}", output.out);
    assert_eq!(
        output.err,
        "argocd/shop: Running, 3 of 3 objects done; successfully synced (all tasks run)\n"
    );
    let request = api::SyncRequest {
        resources: vec!["apps:Deployment:web".parse().unwrap()],
        ..api::SyncRequest::default()
    };
    let calls = agent.calls();
    assert_eq!(calls[0], Call::AppSync { app: shop(), request });
    assert_eq!(calls.len(), 4, "looked until the operation had ended: {calls:?}");
    agent.stop().await;
}

#[tokio::test]
async fn an_application_that_is_refused_does_not_stop_the_others() {
    let agent = Agent::start();
    let output = pintle(&agent, "sync none shop -o yaml").await;
    assert_eq!(output.code, 1);
    assert!(output.err.contains("reason: NoSuch"), "{}", output.err);
    assert!(output.out.contains("name: shop"), "{}", output.out);
    let output = pintle(&agent, "sync shop shop --async -o yaml").await;
    assert_eq!(output.out.matches("---\n").count(), 1, "two documents: {}", output.out);
    agent.stop().await;
}

#[tokio::test]
async fn async_sync_returns_at_once() {
    let agent = Agent::start();
    let output = pintle(&agent, "sync shop --async").await;
    assert_eq!(output.code, 0);
    assert!(output.out.starts_with("application argocd/shop: operation op-2 started\n"), "{}", output.out);
    assert_eq!(agent.calls().len(), 1);
    agent.stop().await;
}

#[tokio::test]
async fn a_plan_with_refusals_is_shown_and_ends_with_5() {
    let agent = Agent::start();
    for line in ["sync shop --dry-run", "rollback shop 2 --dry-run", "app delete shop --cascade"] {
        let output = pintle(&agent, line).await;
        assert_eq!(output.code, 5, "{line}");
        assert!(output.out.contains("repeat the command with --confirm t0ken"), "{}", output.out);
        assert!(output.out.contains("PruneRefused"), "{}", output.out);
    }
    agent.stop().await;
}

#[tokio::test]
async fn rollback_without_id_takes_the_one_before() {
    let agent = Agent::start();
    pintle(&agent, "rollback shop --dry-run --prune").await;
    let request = api::RollbackRequest { id: 2, prune: true, dry_run: true };
    assert_eq!(agent.calls().last(), Some(&Call::AppRollback { app: shop(), request }));
    agent.stop().await;
}

#[tokio::test]
async fn errors_say_what_where_and_what_to_do() {
    let agent = Agent::start();
    let output = pintle(&agent, "sync shop --revision nowhere").await;
    assert_eq!(output.code, 1);
    assert_eq!(output.out, "");
    assert_eq!(
        output.err,
        "error: application argocd/shop: https://git.example/fleet.git has no revision nowhere\n hint: check targetRevision\n"
    );
    let output = pintle(&agent, "sync shop --revision nowhere -o json").await;
    let value: Value = serde_json::from_str(&output.err).unwrap();
    assert_eq!(value["kind"], "Error");
    assert_eq!(value["reason"], "RevisionNotFound");
    assert_eq!(pintle(&agent, "sync shop --prune").await.code, 5);
    agent.stop().await;
}

#[tokio::test]
async fn a_wait_ends_at_its_time_and_names_what_is_missing() {
    let agent = Agent::start();
    let output = pintle(&agent, "app wait shop --sync --timeout 0").await;
    assert_eq!(output.code, 4);
    assert!(output.err.contains("error: application argocd/shop is OutOfSync after 0 s\n"), "{}", output.err);
    let output = pintle(&agent, "app wait shop --health --timeout 1").await;
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    let output = pintle(&agent, "app wait shop --suspended --timeout 0").await;
    assert!(output.err.contains("is Healthy (Deployment/web Progressing)"), "{}", output.err);
    agent.stop().await;
}

#[tokio::test]
async fn a_format_that_a_command_lacks_is_refused() {
    let agent = Agent::start();
    for line in ["doctor -o name", "sync shop -o wide", "completion bash -o wide", "diff shop -o wide"] {
        let output = pintle(&agent, line).await;
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{line}");
        assert!(output.err.starts_with("error: -o "), "{}", output.err);
    }
    agent.stop().await;
}

#[tokio::test]
async fn a_named_socket_is_never_replaced_by_an_agent_of_our_own() {
    let agent = Agent::start();
    let output = pintle(&agent, "--kubeconfig /k status").await;
    assert_eq!(output.code, 2);
    assert!(output.err.contains("--kubeconfig: an agent is running"), "{}", output.err);
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("none.sock");
    let cli = Cli::try_parse_from(["pintle", "--socket", socket.to_str().unwrap(), "status"]).unwrap();
    let (mut out, mut err) = (vec![], vec![]);
    let mut screen = Screen::new(&mut out, &mut err, cli.globals.output, (false, false));
    let Err(Failure::Problem(problem)) = run(&cli, &mut screen).await else { panic!("nobody answers there") };
    assert_eq!(problem.reason, Reason::AgentUnreachable);
    assert!(problem.message.contains("no agent answers at"), "{problem}");
    agent.stop().await;
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (mut out, mut err) = (Closed, vec![]);
    let mut screen = Screen::new(&mut out, &mut err, super::Format::Table, (false, false));
    let error = screen.text("x").unwrap_err();
    assert_eq!(conclude(Err(error.into()), &mut screen), Exit::Done);
    let full = std::io::Error::other("no space");
    assert_eq!(conclude(Err(full.into()), &mut screen), Exit::Error);
    let message = String::from_utf8(err).unwrap();
    assert!(message.starts_with("error: cannot write the output: no space\n"), "{message}");
}

#[test]
fn a_multi_line_or_steering_message_is_harmless() {
    let (mut out, mut err) = (vec![], vec![]);
    let mut screen = Screen::new(&mut out, &mut err, super::Format::Table, (false, false));
    let key = AppKey::new("argocd", "shop");
    screen.problem(&Problem::new(Reason::SyncError, format!("application {key}: \u{1b}[2Jgone\nsecond")));
    assert!(!String::from_utf8(err).unwrap().contains('\u{1b}'));
}
