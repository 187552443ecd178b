//! Certificates, credentials, redirects, URLs.

use pintle::source::{Repository, Secret, Sources};
use pintle_model::{Problem, Reason};

use super::env::{Env, access};
use crate::support::git_front::{Access, GitFront, Mode};

async fn resolve_with(env: &Env, repositories: Vec<Repository>) -> Result<(), Problem> {
    env.sources.with_repositories(repositories).resolve(&env.url, "main").await.map(|_| ())
}

fn require_password(env: &Env) {
    env.front.set_access(Access::Basic { user: "agent".into(), password: "s3cret".into() });
}

#[tokio::test]
async fn basic_credentials_are_used_for_poll_and_fetch_without_a_refused_request() {
    let env = Env::new().await;
    require_password(&env);
    let sources = env.sources.with_repositories(vec![access(&env.front, Some("s3cret"))]);
    let resolved = sources.resolve(&env.url, "main").await.unwrap();
    sources.fetch(&env.url, "main", resolved.revision).await.unwrap();
    let requests = env.front.take_requests();
    assert!(requests.iter().all(|request| request.authorization && request.status == 200), "{requests:#?}");
}

#[tokio::test]
async fn a_bearer_token_is_used_for_poll_and_fetch() {
    let env = Env::new().await;
    env.front.set_access(Access::Bearer { token: "t0ken".into() });
    let repository = Repository { bearer: true, ..access(&env.front, Some("t0ken")) };
    let sources = env.sources.with_repositories(vec![repository]);
    let resolved = sources.resolve(&env.url, "main").await.unwrap();
    sources.fetch(&env.url, "main", resolved.revision).await.unwrap();
}

#[tokio::test]
async fn bad_and_missing_credentials_are_told_apart_and_not_shown() {
    let env = Env::new().await;
    require_password(&env);
    let wrong = resolve_with(&env, vec![access(&env.front, Some("hunter2"))]).await.unwrap_err();
    let missing = resolve_with(&env, vec![access(&env.front, None)]).await.unwrap_err();
    for problem in [&wrong, &missing] {
        assert_eq!(problem.reason, Reason::GitUnauthorized);
        assert!(
            problem.message.contains(&env.url) && !problem.message.contains("hunter2"),
            "{}",
            problem.message
        );
    }
    assert!(wrong.message.contains("refused"), "{}", wrong.message);
    assert!(missing.message.contains("none are configured"), "{}", missing.message);
    // The same for a pinned commit, which is fetched without a poll.
    let problem = env.sources.fetch(&env.url, "main", env.revision("main")).await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnauthorized);
}

#[tokio::test]
async fn credentials_that_expire_between_poll_and_fetch_are_unauthorized() {
    let env = Env::new().await;
    let resolved = env.sources.resolve(&env.url, "main").await.unwrap();
    require_password(&env);
    let problem = env.sources.fetch(&env.url, "main", resolved.revision).await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnauthorized, "{}", problem.message);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let env = Env::new().await;
    for mode in [Mode::OtherCa, Mode::ExpiredCertificate, Mode::FutureCertificate, Mode::OtherHost] {
        env.front.set_mode(mode);
        let problem = env.sources.resolve(&env.url, "main").await.unwrap_err();
        assert_eq!(problem.reason, Reason::GitCertificate, "{mode:?}: {}", problem.message);
        let expected = match mode {
            Mode::OtherCa => "not trusted",
            Mode::OtherHost => "git.example.com",
            _ => "clock",
        };
        assert!(problem.message.contains(expected), "{mode:?}: {}", problem.message);
        let problem = env.sources.fetch(&env.url, "main", env.revision("main")).await.unwrap_err();
        assert_eq!(problem.reason, Reason::GitCertificate, "{mode:?}: {}", problem.message);
    }
    assert!(env.front.requests().is_empty());
}

#[tokio::test]
async fn a_certificate_that_turns_bad_before_the_fetch_is_a_certificate_problem() {
    let env = Env::new().await;
    let resolved = env.sources.resolve(&env.url, "main").await.unwrap();
    env.front.set_mode(Mode::OtherCa);
    let problem = env.sources.fetch(&env.url, "main", resolved.revision).await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitCertificate, "{}", problem.message);
}

#[tokio::test]
async fn the_systems_authorities_do_not_know_the_test_server() {
    let env = Env::new().await;
    let problem = resolve_with(&env, Vec::new()).await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitCertificate, "{}", problem.message);
}

#[tokio::test]
async fn a_broken_ca_file_is_named() {
    let env = Env::new().await;
    for pem in [&b""[..], b"no pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let repository = Repository { ca_pem: Some(pem.to_vec()), ..access(&env.front, None) };
        let problem = resolve_with(&env, vec![repository]).await.unwrap_err();
        assert_eq!(problem.reason, Reason::GitCertificate, "{}", problem.message);
    }
}

#[tokio::test]
async fn redirects_on_the_same_host_are_followed_and_remembered() {
    let env = Env::new().await;
    env.front.redirect("/old.git", "/site.git");
    let url = env.front.url("old");
    let resolved = env.sources.resolve(&url, "main").await.unwrap();
    assert_eq!(env.front.take_requests().len(), 2);
    env.sources.fetch(&url, "main", resolved.revision).await.unwrap();
    env.sources.resolve(&url, "main").await.unwrap();
    let requests = env.front.take_requests();
    assert!(requests.iter().all(|request| request.path.starts_with("/site.git/")), "{requests:#?}");
    assert!(env.sources.tree(&url, resolved.revision, "apps").await.is_ok());
}

#[tokio::test]
async fn a_pinned_commit_behind_a_redirect_is_fetched() {
    let env = Env::new().await;
    env.front.redirect("/old.git", "/site.git");
    let url = env.front.url("old");
    let revision = env.revision("main");
    env.sources.fetch(&url, &revision.to_string(), revision).await.unwrap();
    assert!(env.sources.has(&url, revision).await);
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_host() {
    let env = Env::new().await;
    let thief = GitFront::start(&env.dir.path().join("served")).await.unwrap();
    env.front.redirect("/site.git", &thief.url("site"));
    let mut first = access(&env.front, Some("s3cret"));
    // Even with both certificates trusted.
    first.ca_pem = Some([env.front.ca_pem(), thief.ca_pem()].concat());
    let sources = env.sources.with_repositories(vec![first]);
    let poll = sources.resolve(&env.url, "main").await.unwrap_err();
    let fetch = sources.fetch(&env.url, "main", env.revision("main")).await.unwrap_err();
    for problem in [poll, fetch] {
        assert_eq!(problem.reason, Reason::GitNotFound);
        assert!(problem.message.contains("another host"), "{}", problem.message);
    }
    assert_eq!(thief.connections(), 0);
}

#[tokio::test]
async fn a_redirect_that_begins_between_poll_and_fetch_leaks_nothing() {
    let env = Env::new().await;
    let thief = GitFront::start(&env.dir.path().join("served")).await.unwrap();
    let mut both = access(&env.front, Some("s3cret"));
    both.ca_pem = Some([env.front.ca_pem(), thief.ca_pem()].concat());
    let sources = env.sources.with_repositories(vec![both]);
    let resolved = sources.resolve(&env.url, "main").await.unwrap();
    env.front.redirect("/site.git", &thief.url("site"));
    let problem = sources.fetch(&env.url, "main", resolved.revision).await.unwrap_err();
    assert!(problem.reason.retryable(), "{problem:?}");
    assert_eq!(thief.connections(), 0);
}

#[tokio::test]
async fn a_redirect_to_a_login_page_and_endless_redirects_are_told() {
    let env = Env::new().await;
    env.front.redirect("/site.git/git-upload-pack", "/users/sign_in");
    let problem = env.sources.resolve(&env.url, "main").await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitNotFound);
    assert!(problem.message.contains("login"), "{}", problem.message);
    env.front.redirect("/round.git", "/round.git");
    let problem = env.sources.resolve(&env.front.url("round"), "main").await.unwrap_err();
    assert!(problem.message.contains("without end"), "{}", problem.message);
}

#[tokio::test]
async fn a_repository_that_does_not_exist_is_told() {
    let env = Env::new().await;
    let problem = env.sources.resolve(&env.front.url("none"), "main").await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitNotFound);
    assert!(problem.message.contains("/none.git"), "{}", problem.message);
}

#[tokio::test]
async fn a_url_with_a_password_is_refused_everywhere_and_never_printed() {
    let env = Env::new().await;
    let url = env.url.replace("https://", "https://joe:hunter2@");
    let revision = env.revision("main");
    let problems = [
        env.sources.resolve(&url, "main").await.unwrap_err(),
        env.sources.fetch(&url, "main", revision).await.unwrap_err(),
        env.sources.tree(&url, revision, "").await.unwrap_err(),
        env.sources.commit(&url, revision).await.unwrap_err(),
    ];
    for problem in problems {
        assert_eq!(problem.reason, Reason::InvalidSpecError);
        assert!(!problem.message.contains("hunter2"), "{}", problem.message);
    }
    assert!(!env.sources.has(&url, revision).await);
    assert!(env.front.requests().is_empty());
}

#[tokio::test]
async fn nothing_listens_at_the_address() {
    let env = Env::new().await;
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("https://{}/site.git", free.local_addr().unwrap());
    drop(free);
    let problem = env.sources.resolve(&url, "main").await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnreachable);
    assert!(problem.message.to_lowercase().contains("refused"), "{}", problem.message);
    let problem = env.sources.resolve("https://pintle-test.invalid/site.git", "main").await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnreachable, "{}", problem.message);
}

#[test]
fn debug_output_shows_no_secret() {
    let repository = Repository {
        url_prefix: "https://git.example.com".into(),
        username: Some("agent".into()),
        secret: Some(Secret::new("hunter2")),
        bearer: false,
        ca_pem: None,
    };
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources::new(dir.path().join("cache"), vec![repository]);
    assert!(!format!("{sources:?}").contains("hunter2"));
}
