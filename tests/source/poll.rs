//! What a poll asks, and what it costs.

use pintle::source::RefKind;
use pintle_model::Reason;

use super::env::Env;

#[tokio::test]
async fn a_poll_is_exactly_one_request_on_one_connection() {
    let mut env = Env::new().await;
    for _ in 0..3 {
        let resolved = env.sources.resolve(&env.url, "main").await.unwrap();
        assert_eq!(resolved.revision, env.revision("main"));
        assert_eq!(resolved.name.as_deref(), Some("refs/heads/main"));
        assert_eq!(resolved.kind, RefKind::Branch);
    }
    let requests = env.front.take_requests();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    for request in &requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/site.git/git-upload-pack"));
        assert_eq!(request.command, "ls-refs");
        assert!(request.request_bytes < 250 && request.response_bytes < 100, "{request:?}");
    }
    assert_eq!(env.front.connections(), 1);
    // A moved branch costs no more.
    env.fixture.write("apps/web/a.yaml", "one: 2\n");
    env.fixture.push_commit("second");
    assert_eq!(env.sources.resolve(&env.url, "main").await.unwrap().revision, env.revision("main"));
    assert_eq!(env.front.take_requests().len(), 1);
    let counts = env.sources.requests();
    assert_eq!((counts.polls, counts.http_requests, counts.fetches), (4, 4, 0));
}

#[tokio::test]
async fn a_poll_of_a_repository_with_many_refs_transfers_only_the_wanted_one() {
    let env = Env::new().await;
    let head = env.fixture.rev_parse("main");
    let lines: Vec<String> = (0..2_000).map(|n| format!("{head} refs/pull/{n}/head\n")).collect();
    std::fs::write(env.fixture.bare().join("packed-refs"), lines.concat()).unwrap();
    env.sources.resolve(&env.url, "main").await.unwrap();
    env.pull("main").await;
    for request in env.front.take_requests().iter().filter(|request| request.command == "ls-refs") {
        assert!(request.response_bytes < 100, "{request:?}");
    }
}

#[tokio::test]
async fn a_full_commit_id_is_never_polled() {
    let env = Env::new().await;
    let id = env.fixture.rev_parse("main");
    let resolved = env.sources.resolve(&env.url, &id).await.unwrap();
    assert_eq!((resolved.revision.to_string(), resolved.name, resolved.kind), (id, None, RefKind::Commit));
    assert!(env.front.requests().is_empty());
    assert_eq!(env.sources.requests().polls, 0);
}

#[tokio::test]
async fn tags_are_peeled_to_the_commit() {
    let env = Env::new().await;
    env.fixture.git(&["tag", "light"]);
    env.fixture.git(&["tag", "--annotate", "--message", "a release", "v1.0.0"]);
    env.fixture.git(&["tag", "--annotate", "--message", "a tag of a tag", "nested", "v1.0.0"]);
    env.fixture.publish();
    assert_ne!(env.fixture.rev_parse("v1.0.0"), env.fixture.rev_parse("main"));
    for name in ["light", "v1.0.0", "nested", "refs/tags/v1.0.0"] {
        let resolved = env.sources.resolve(&env.url, name).await.unwrap();
        assert_eq!(resolved.revision, env.revision("main"), "{name}");
        assert_eq!(resolved.kind, RefKind::Tag, "{name}");
        env.sources.fetch(&env.url, name, resolved.revision).await.unwrap();
    }
}

#[tokio::test]
async fn a_branch_wins_over_a_tag_and_over_names_that_only_start_so() {
    let mut env = Env::new().await;
    env.fixture.git(&["tag", "release"]);
    env.fixture.git(&["branch", "release-2"]);
    env.fixture.commit("moved on");
    env.fixture.git(&["branch", "release"]);
    env.fixture.publish();
    let resolved = env.sources.resolve(&env.url, "release").await.unwrap();
    assert_eq!(resolved.name.as_deref(), Some("refs/heads/release"));
    assert_eq!(resolved.revision, env.revision("refs/heads/release"));
    assert_eq!(env.sources.resolve(&env.url, "refs/tags/release").await.unwrap().kind, RefKind::Tag);
    assert_eq!(env.sources.resolve(&env.url, "releas").await.unwrap_err().reason, Reason::RevisionNotFound);
}

#[tokio::test]
async fn head_and_empty_are_the_default_branch() {
    let env = Env::new().await;
    for target in ["HEAD", ""] {
        let resolved = env.sources.resolve(&env.url, target).await.unwrap();
        assert_eq!((resolved.kind, resolved.name.as_deref()), (RefKind::Head, Some("refs/heads/main")));
        assert_eq!(resolved.revision, env.revision("main"));
    }
}

#[tokio::test]
async fn other_refs_are_resolved_by_their_full_name() {
    let env = Env::new().await;
    env.fixture.git(&["update-ref", "refs/pull/7/head", "main"]);
    env.fixture.publish();
    let resolved = env.sources.resolve(&env.url, "refs/pull/7/head").await.unwrap();
    assert_eq!((resolved.revision, resolved.kind), (env.revision("main"), RefKind::Branch));
}

#[tokio::test]
async fn a_revision_that_does_not_exist_is_named_with_its_url() {
    let env = Env::new().await;
    for target in ["no-such-branch", "refs/heads/none"] {
        let problem = env.sources.resolve(&env.url, target).await.unwrap_err();
        assert_eq!(problem.reason, Reason::RevisionNotFound);
        assert!(
            problem.message.contains(target) && problem.message.contains(&env.url),
            "{}",
            problem.message
        );
    }
}

#[tokio::test]
async fn a_short_commit_id_is_looked_up_in_the_cache_only() {
    let env = Env::new().await;
    let short = env.fixture.rev_parse("main")[..8].to_owned();
    let problem = env.sources.resolve(&env.url, &short).await.unwrap_err();
    assert_eq!(problem.reason, Reason::RevisionNotFound);
    assert!(problem.message.contains("40 digits"), "{}", problem.message);
    env.pull("main").await;
    env.front.take_requests();
    let resolved = env.sources.resolve(&env.url, &short).await.unwrap();
    assert_eq!((resolved.revision, resolved.kind), (env.revision("main"), RefKind::Commit));
    assert!(env.front.requests().is_empty());
    // A branch may be called like one.
    env.fixture.git(&["branch", "deadbee"]);
    env.fixture.publish();
    assert_eq!(env.sources.resolve(&env.url, "deadbee").await.unwrap().kind, RefKind::Branch);
}

#[tokio::test]
async fn version_ranges_are_refused_without_a_request() {
    let env = Env::new().await;
    let problem = env.sources.resolve(&env.url, ">=1.0.0 <2.0.0").await.unwrap_err();
    assert_eq!(problem.reason, Reason::InvalidSpecError);
    assert!(problem.message.contains("version range"), "{}", problem.message);
    assert!(env.front.requests().is_empty());
}

#[tokio::test]
async fn an_empty_repository_says_so() {
    let env = Env::new().await;
    crate::support::git_fixture::GitFixture::new(&env.dir.path().join("served"), "empty");
    let problem = env.sources.resolve(&env.front.url("empty"), "HEAD").await.unwrap_err();
    assert_eq!(problem.reason, Reason::RevisionNotFound);
    assert!(problem.message.contains("empty"), "{}", problem.message);
}

#[tokio::test]
async fn a_server_without_protocol_version_2_is_polled_by_its_advertisement() {
    let mut env = Env::new().await;
    env.fixture.git(&["tag", "--annotate", "--message", "a release", "v1"]);
    env.fixture.publish();
    env.front.set_protocol_v2(false);
    let first = env.pull("main").await;
    assert_eq!(env.sources.tree(&env.url, first, "apps").await.unwrap().files.len(), 1);
    env.front.take_requests();
    // Now that it is known, one request is enough again.
    let resolved = env.sources.resolve(&env.url, "v1").await.unwrap();
    assert_eq!((resolved.revision, resolved.kind), (first, RefKind::Tag));
    assert_eq!(env.sources.resolve(&env.url, "HEAD").await.unwrap().name.as_deref(), Some("refs/heads/main"));
    let requests = env.front.take_requests();
    assert_eq!(requests.len(), 2, "{requests:#?}");
    assert!(requests.iter().all(|request| request.path == "/site.git/info/refs?service=git-upload-pack"));
    // A later commit over version 0, and the upgrade of the server.
    env.fixture.push_commit("second");
    env.pull("main").await;
    env.front.set_protocol_v2(true);
    env.fixture.push_commit("third");
    env.pull("main").await;
    env.front.take_requests();
    env.sources.resolve(&env.url, "main").await.unwrap();
    assert_eq!(env.front.take_requests()[0].command, "ls-refs");
}
