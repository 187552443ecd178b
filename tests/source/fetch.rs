//! Fetches bring one commit.

use pintle_model::Reason;

use super::env::Env;

#[tokio::test]
async fn a_fetch_brings_exactly_one_commit() {
    let mut env = Env::new().await;
    let old_blob = env.fixture.rev_parse("main:apps/web/a.yaml");
    let parent = env.fixture.rev_parse("main");
    env.fixture.write("apps/web/a.yaml", "one: 2\n");
    env.fixture.push_commit("second");
    let revision = env.pull("main").await;
    // One commit, four folders (root, apps, web, other), two files.
    assert_eq!(env.cached_objects(), 7);
    assert!(env.cached(&revision.to_string()));
    assert!(!env.cached(&old_blob) && !env.cached(&parent));
    assert!(env.sources.has(&env.url, revision).await);
    assert!(!env.sources.has(&env.url, parent.parse().unwrap()).await);
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
}

#[tokio::test]
async fn a_commit_that_is_no_tip_is_fetched_by_its_id() {
    let mut env = Env::new().await;
    let first = env.revision("main");
    env.fixture.write("apps/web/a.yaml", "one: 2\n");
    env.fixture.push_commit("second");
    let id = first.to_string();
    env.sources.fetch(&env.url, &id, first).await.unwrap();
    assert_eq!(env.sources.commit(&env.url, first).await.unwrap().subject, "first commit");
    assert!(!env.cached(&env.fixture.rev_parse("main")));
}

#[tokio::test]
async fn a_fetch_of_what_is_there_makes_no_request() {
    let env = Env::new().await;
    let revision = env.pull("main").await;
    env.front.take_requests();
    env.sources.fetch(&env.url, "main", revision).await.unwrap();
    assert!(env.front.requests().is_empty());
    assert_eq!(env.sources.requests().fetches, 1);
}

#[tokio::test]
async fn the_next_fetch_brings_only_what_changed() {
    let mut env = Env::new().await;
    env.fixture.write("apps/web/big.txt", pseudo_random_text(200_000));
    env.fixture.push_commit("with a large file");
    env.pull("main").await;
    env.fixture.write("apps/web/a.yaml", "one: 2\n");
    env.fixture.push_commit("a small change");
    env.front.take_requests();
    let revision = env.pull("main").await;
    let transferred: usize = env.front.take_requests().iter().map(|request| request.response_bytes).sum();
    assert!(transferred < 10_000, "{transferred} bytes");
    let tree = env.sources.tree(&env.url, revision, "apps").await.unwrap();
    assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["apps/web/a.yaml", "apps/web/big.txt"]);
}

#[tokio::test]
async fn many_fetches_at_once_of_one_commit_are_one_fetch() {
    let env = Env::new().await;
    let revision = env.revision("main");
    let fetches = (0..5).map(|_| env.sources.fetch(&env.url, "main", revision));
    for result in futures::future::join_all(fetches).await {
        result.unwrap();
    }
    assert_eq!(env.sources.requests().fetches, 1);
}

#[tokio::test]
async fn force_pushed_and_deleted_branches_do_not_disturb() {
    let env = Env::new().await;
    env.fixture.git(&["branch", "work"]);
    let first = env.pull("main").await;
    env.fixture.write("apps/web/a.yaml", "rewritten: true\n");
    env.fixture.git(&["add", "--all"]);
    env.fixture.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    env.fixture.publish();
    let second = env.pull("main").await;
    assert_ne!(first, second);
    env.fixture.git(&["branch", "--delete", "--force", "work"]);
    env.fixture.publish();
    assert_eq!(env.sources.resolve(&env.url, "work").await.unwrap_err().reason, Reason::RevisionNotFound);
    for revision in [first, second] {
        assert!(env.sources.tree(&env.url, revision, "apps").await.is_ok());
    }
}

#[tokio::test]
async fn a_commit_id_that_does_not_exist_is_named() {
    let env = Env::new().await;
    let id = "0123456789abcdef0123456789abcdef01234567";
    let problem = env.sources.fetch(&env.url, id, id.parse().unwrap()).await.unwrap_err();
    assert_eq!(problem.reason, Reason::RevisionNotFound, "{}", problem.message);
    assert!(problem.message.contains(id) && problem.message.contains(&env.url), "{}", problem.message);
    assert!(!env.sources.has(&env.url, id.parse().unwrap()).await);
}

#[tokio::test]
async fn a_server_that_refuses_a_commit_that_no_ref_reaches_says_so() {
    let env = Env::new().await;
    let first = env.revision("main");
    env.fixture.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    env.fixture.publish();
    env.fixture.git_bare(&["config", "uploadpack.allowAnySHA1InWant", "false"]);
    env.front.set_protocol_v2(false);
    let id = first.to_string();
    let problem = env.sources.fetch(&env.url, &id, first).await.unwrap_err();
    assert_eq!(problem.reason, Reason::RevisionNotFound, "{}", problem.message);
    assert!(
        problem.message.contains(&id) && problem.message.contains("branch or tag"),
        "{}",
        problem.message
    );
    // The tip itself can be had.
    env.pull("main").await;
}

#[tokio::test]
async fn the_counters_count_every_http_request() {
    let env = Env::new().await;
    env.pull("main").await;
    assert_eq!(env.sources.requests().http_requests, env.front.requests().len() as u64);
}

#[tokio::test]
async fn an_id_that_is_no_commit_is_refused() {
    let env = Env::new().await;
    env.pull("main").await;
    let blob = env.fixture.rev_parse("main:apps/web/a.yaml");
    let problem = env.sources.fetch(&env.url, &blob, blob.parse().unwrap()).await.unwrap_err();
    assert_eq!(problem.reason, Reason::RevisionNotFound, "{}", problem.message);
    assert!(!env.sources.has(&env.url, blob.parse().unwrap()).await);
}

/// Text that does not compress to nothing: a linear congruential generator, the same at every run.
fn pseudo_random_text(bytes: usize) -> String {
    let mut state = 12_345_u32;
    (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b' ' + (state >> 24) as u8 % 94)
        })
        .collect()
}
