//! A server or a link that fails.

use std::time::{Duration, Instant};

use pintle::source::Deadlines;
use pintle_model::{Reason, Revision};

use super::env::{DEADLINES, Env};
use crate::support::git_front::Mode;

/// A second commit with enough bytes that a pack can break off in the middle.
async fn env_with_large_commit(deadlines: Deadlines) -> (Env, Revision) {
    let mut env = Env::with_deadlines(deadlines).await;
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    env.fixture.write("apps/web/noise.bin", noise);
    env.fixture.push_commit("large");
    let revision = env.revision("main");
    (env, revision)
}

#[tokio::test]
async fn a_server_that_is_down_leaves_what_was_fetched_readable() {
    let env = Env::new().await;
    let revision = env.pull("main").await;
    env.front.set_mode(Mode::Down);
    let problem = env.sources.resolve(&env.url, "main").await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnreachable, "{}", problem.message);
    assert!(problem.message.contains(&env.url), "{}", problem.message);
    assert!(env.sources.has(&env.url, revision).await);
    env.sources.fetch(&env.url, "main", revision).await.unwrap();
    assert_eq!(env.sources.tree(&env.url, revision, "apps").await.unwrap().files.len(), 1);
    assert_eq!(env.sources.commit(&env.url, revision).await.unwrap().subject, "first commit");
    // Also for a process that starts while it is down.
    let restarted = pintle::source::Sources::new(env.dir.path().join("cache"), Vec::new());
    assert_eq!(restarted.tree(&env.url, revision, "apps").await.unwrap().files.len(), 1);
    env.front.set_mode(Mode::Up);
    env.sources.resolve(&env.url, "main").await.unwrap();
}

#[tokio::test]
async fn a_server_that_goes_down_before_the_fetch_is_unreachable() {
    let env = Env::new().await;
    let resolved = env.sources.resolve(&env.url, "main").await.unwrap();
    env.front.set_mode(Mode::Down);
    let problem = env.sources.fetch(&env.url, "main", resolved.revision).await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnreachable, "{}", problem.message);
}

#[tokio::test]
async fn errors_and_pages_instead_of_git_are_told() {
    let env = Env::new().await;
    let resolved = env.sources.resolve(&env.url, "main").await.unwrap();
    for (mode, reason, text) in [
        (Mode::Status(500), Reason::GitUnreachable, "500"),
        (Mode::Status(503), Reason::GitUnreachable, "503"),
        (Mode::Status(429), Reason::GitUnreachable, "429"),
        (Mode::Html, Reason::GitNotFound, "login page"),
    ] {
        env.front.set_mode(mode);
        let problem = env.sources.resolve(&env.url, "main").await.unwrap_err();
        assert_eq!(problem.reason, reason, "{mode:?}: {}", problem.message);
        assert!(problem.message.contains(text), "{mode:?}: {}", problem.message);
        let problem = env.sources.fetch(&env.url, "main", resolved.revision).await.unwrap_err();
        assert_ne!(problem.reason, Reason::Internal, "{mode:?}: {}", problem.message);
        assert!(problem.reason.retryable() && env.leftovers().is_empty(), "{mode:?}: {problem:?}");
    }
    env.front.set_mode(Mode::Up);
    env.pull("main").await;
}

#[tokio::test]
async fn a_pack_that_breaks_off_leaves_nothing_behind_and_the_next_fetch_works() {
    let (env, revision) = env_with_large_commit(DEADLINES).await;
    for into_existing in [false, true] {
        env.front.set_mode(Mode::Up);
        env.sources.resolve(&env.url, "main").await.unwrap();
        for bytes in [1, 200, 50_000] {
            env.front.set_mode(Mode::CloseAfter { bytes });
            let problem = env.sources.fetch(&env.url, "main", revision).await.unwrap_err();
            assert_eq!(problem.reason, Reason::GitUnreachable, "{bytes}: {}", problem.message);
            assert!(env.leftovers().is_empty(), "{bytes}: {:?}", env.leftovers());
            assert!(!env.sources.has(&env.url, revision).await);
        }
        env.front.set_mode(Mode::Up);
        if into_existing {
            env.pull("main").await;
            assert_eq!(env.sources.requests().rebuilt_caches, 0);
        } else {
            let parent = env.revision("main^");
            env.sources.fetch(&env.url, "main^", parent).await.unwrap();
        }
    }
    assert_eq!(env.sources.tree(&env.url, revision, "apps").await.unwrap().files.len(), 2);
}

#[tokio::test]
async fn a_hanging_poll_ends_at_its_deadline() {
    let env = Env::with_deadlines(Deadlines { poll: Duration::from_millis(300), ..DEADLINES }).await;
    env.front.set_mode(Mode::Hang);
    let begin = Instant::now();
    let problem = env.sources.resolve(&env.url, "main").await.unwrap_err();
    assert_eq!(problem.reason, Reason::GitUnreachable);
    assert!(problem.message.contains("0.3 s"), "{}", problem.message);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_fetch_that_trickles_ends_at_its_deadline_and_the_next_one_waits_for_its_thread() {
    let deadlines = Deadlines { fetch: Duration::from_millis(1_500), ..DEADLINES };
    let (env, revision) = env_with_large_commit(deadlines).await;
    env.sources.resolve(&env.url, "main").await.unwrap();
    env.front.set_mode(Mode::Trickle { bytes_per_second: 10_000 });
    let begin = Instant::now();
    let problem = env.sources.fetch(&env.url, "main", revision).await.unwrap_err();
    assert_eq!(problem.reason, Reason::FetchTimeout, "{}", problem.message);
    assert!(problem.message.contains("1.5 s") && problem.message.contains(&env.url), "{}", problem.message);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    env.front.set_mode(Mode::Up);
    // The thread that was left alone still holds the lock; the fetch gets it in time or says so.
    let begin = Instant::now();
    while let Err(problem) = env.sources.fetch(&env.url, "main", revision).await {
        assert!(problem.reason.retryable(), "{problem:?}");
        assert!(begin.elapsed() < Duration::from_mins(1), "{problem:?}");
    }
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
    assert!(env.sources.tree(&env.url, revision, "apps").await.is_ok());
}

#[tokio::test]
async fn a_fetch_that_was_given_up_does_not_go_on_in_the_background() {
    let deadlines = Deadlines { fetch: Duration::from_millis(1_500), ..DEADLINES };
    let (env, revision) = env_with_large_commit(deadlines).await;
    env.sources.resolve(&env.url, "main").await.unwrap();
    // The pack takes 3.3 s: two deadlines are not enough for it, three would be for a thread that went on.
    env.front.set_mode(Mode::Trickle { bytes_per_second: 30_000 });
    for _ in 0..4 {
        let problem = env.sources.fetch(&env.url, "main", revision).await.unwrap_err();
        assert_eq!(problem.reason, Reason::FetchTimeout, "{}", problem.message);
    }
    assert!(!env.sources.has(&env.url, revision).await);
}

#[tokio::test]
async fn a_fetch_that_stalls_ends_after_the_stall_time() {
    let deadlines = Deadlines { stall: Duration::from_millis(700), ..DEADLINES };
    let (env, revision) = env_with_large_commit(deadlines).await;
    env.sources.resolve(&env.url, "main").await.unwrap();
    for mode in [Mode::StallAfter { bytes: 30_000 }, Mode::Hang] {
        env.front.set_mode(Mode::Up);
        env.sources.resolve(&env.url, "main").await.unwrap();
        env.front.set_mode(mode);
        let begin = Instant::now();
        let problem = env.sources.fetch(&env.url, "main", revision).await.unwrap_err();
        assert_eq!(problem.reason, Reason::FetchTimeout, "{mode:?}: {}", problem.message);
        assert!(problem.message.contains("0.7 s"), "{mode:?}: {}", problem.message);
        assert!(begin.elapsed() < Duration::from_secs(15), "{mode:?}: {:?}", begin.elapsed());
        assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
    }
    env.front.set_mode(Mode::Up);
    env.sources.fetch(&env.url, "main", revision).await.unwrap();
}

#[tokio::test]
async fn a_dropped_fetch_ends_and_lets_the_next_one_in() {
    let (env, revision) = env_with_large_commit(DEADLINES).await;
    env.sources.resolve(&env.url, "main").await.unwrap();
    env.front.set_mode(Mode::Trickle { bytes_per_second: 1_000 });
    let dropped =
        tokio::time::timeout(Duration::from_millis(800), env.sources.fetch(&env.url, "main", revision));
    assert!(dropped.await.is_err(), "the fetch is far slower");
    env.front.set_mode(Mode::Up);
    env.sources.fetch(&env.url, "main", revision).await.unwrap();
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
}

#[tokio::test]
async fn a_slow_link_that_delivers_is_good_enough() {
    let env = Env::new().await;
    env.front.set_mode(Mode::Trickle { bytes_per_second: 2_000 });
    let revision = env.pull("main").await;
    assert!(env.sources.has(&env.url, revision).await);
}
