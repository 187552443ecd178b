//! Caches that are damaged, unfinished, or no longer used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use pintle::source::Sources;
use pintle_model::Reason;

use super::env::{Env, access};
use crate::support::git_fixture::clean_git;
use crate::support::git_front::Mode;

/// Overwrites the start of every pack, so that its objects cannot be read.
fn damage_packs(env: &Env) {
    for entry in fs::read_dir(env.cache_dir().join("objects/pack")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|suffix| suffix == "pack") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let mut data = fs::read(&path).unwrap();
            let end = data.len() - 20;
            data[12..end].fill(0xff);
            fs::write(&path, data).unwrap();
        }
    }
}

#[tokio::test]
async fn a_damaged_cache_is_told_and_fetched_anew() {
    let env = Env::new().await;
    let revision = env.pull("main").await;
    damage_packs(&env);
    let problem = env.sources.tree(&env.url, revision, "apps").await.unwrap_err();
    assert_eq!(problem.reason, Reason::SourceError, "{}", problem.message);
    assert!(!env.sources.has(&env.url, revision).await);
    // While the server is away the old cache stays where it is.
    env.front.set_mode(Mode::Down);
    env.sources.fetch(&env.url, "main", revision).await.unwrap_err();
    assert!(env.cache_dir().join("HEAD").exists());
    env.front.set_mode(Mode::Up);
    env.sources.fetch(&env.url, "main", revision).await.unwrap();
    assert_eq!(env.sources.tree(&env.url, revision, "apps").await.unwrap().files.len(), 1);
    assert!(env.sources.has(&env.url, revision).await);
    assert_eq!(env.sources.requests().rebuilt_caches, 1);
}

#[tokio::test]
async fn a_cache_that_does_not_open_or_lost_its_packs_is_fetched_anew() {
    let mut env = Env::new().await;
    env.pull("main").await;
    for damage in ["HEAD", "config", "objects/pack"] {
        let path = env.cache_dir().join(damage);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::write(&path, b"\0garbage[").unwrap();
        }
        env.fixture.push_commit(damage);
        let revision = env.pull("main").await;
        assert_eq!(env.sources.tree(&env.url, revision, "").await.unwrap().files.len(), 2, "{damage}");
    }
}

#[tokio::test]
async fn leftovers_of_a_killed_process_are_removed_at_start_and_before_a_fetch() {
    let mut env = Env::new().await;
    let first = env.pull("main").await;
    let cache = env.cache_dir();
    let litter = || {
        for name in ["objects/pack/Xy12Za", "objects/pack/pack-0000.pack", "shallow.lock", "packed-refs.lock"]
        {
            fs::write(cache.join(name), b"litter").unwrap();
        }
    };
    litter();
    env.fixture.push_commit("second");
    let second = env.pull("main").await;
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
    litter();
    fs::create_dir(cache.with_extension("new")).unwrap();
    let restarted = Sources::new(env.dir.path().join("cache"), vec![access(&env.front, None)]);
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
    for revision in [first, second] {
        assert!(restarted.has(&env.url, revision).await);
        assert!(restarted.tree(&env.url, revision, "apps").await.is_ok());
    }
}

#[tokio::test]
async fn caches_of_repositories_no_longer_used_are_removed() {
    let mut env = Env::new().await;
    let first = env.pull("main").await;
    env.fixture.push_commit("second");
    let second = env.pull("main").await;
    env.sources.remove_unused(&[(env.url.clone(), vec![second])]).await;
    assert!(env.sources.has(&env.url, second).await);
    assert!(!env.sources.has(&env.url, first).await);
    // What was forgotten can be had again.
    env.sources.fetch(&env.url, "main^", first).await.unwrap();
    assert!(env.sources.has(&env.url, first).await);
    // A URL that cannot be read must not remove anything.
    env.sources.remove_unused(&[("not a url".to_owned(), Vec::new())]).await;
    assert!(env.sources.has(&env.url, second).await);
    env.sources.remove_unused(&[]).await;
    assert!(!env.sources.has(&env.url, second).await);
    assert_eq!(fs::read_dir(env.dir.path().join("cache")).unwrap().count(), 0);
    env.pull("main").await;
}

#[tokio::test]
async fn caches_do_not_grow_with_the_years() {
    let mut env = Env::new().await;
    env.fixture.write("apps/web/noise.bin", vec![b'x'; 70_000]);
    env.fixture.symlink("apps/web/link", "a.yaml");
    env.fixture.push_commit("more kinds of objects");
    let first = env.pull("main").await;
    let mut most_packs = 0;
    let mut asked = Vec::new();
    for number in 0..40 {
        // Every other commit is never fetched, and takes back a file that is not in the cache any more.
        env.fixture.write("other/b.yaml", format!("back: {}\n", number % 5));
        env.fixture.commit("not fetched");
        env.fixture.write("apps/web/a.yaml", format!("number: {}\n", number % 7));
        env.fixture.push_commit("fetched");
        env.front.take_requests();
        let revision = env.pull("main").await;
        asked.extend(env.front.take_requests().iter().map(|request| request.request_bytes));
        env.sources.remove_unused(&[(env.url.clone(), vec![first, revision])]).await;
        assert_eq!(env.sources.tree(&env.url, revision, "").await.unwrap().files.len(), 4);
        assert_eq!(env.sources.tree(&env.url, first, "").await.unwrap().files.len(), 4);
        let packs = fs::read_dir(env.cache_dir().join("objects/pack")).unwrap().count();
        most_packs = most_packs.max(packs);
    }
    // A pack and its index each.
    assert_eq!(most_packs, 2 * pintle_model::limits::GIT_CACHE_MAX_PACKS);
    assert!(asked.iter().max() < Some(&3_000), "{asked:?}");
    assert_eq!(env.sources.requests().rebuilt_caches, 0);
    let mut command = clean_git(&env.cache_dir());
    let output = command.args(["fsck", "--strict", "--no-dangling"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
}

#[tokio::test]
async fn a_damaged_cache_is_not_compacted_away() {
    let mut env = Env::new().await;
    let mut revision = env.pull("main").await;
    for _ in 0..pintle_model::limits::GIT_CACHE_MAX_PACKS {
        env.fixture.push_commit("next");
        revision = env.pull("main").await;
    }
    damage_packs(&env);
    env.sources.remove_unused(&[(env.url.clone(), vec![revision])]).await;
    assert!(env.leftovers().is_empty(), "{:?}", env.leftovers());
    env.sources.tree(&env.url, revision, "").await.unwrap_err();
    env.sources.fetch(&env.url, "main", revision).await.unwrap();
    assert!(env.sources.tree(&env.url, revision, "").await.is_ok());
}

#[tokio::test]
async fn the_cache_is_bare_and_only_for_its_owner() {
    let env = Env::new().await;
    env.pull("main").await;
    let mode = fs::metadata(env.dir.path().join("cache")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    let cache = env.cache_dir();
    assert!(!cache.join("index").exists() && !cache.join("hooks").exists() && !cache.join("apps").exists());
    let config = fs::read_to_string(cache.join("config")).unwrap();
    assert!(config.contains("bare = true"), "{config}");
    assert!(!config.contains("127.0.0.1"), "no URL is written: {config}");
}

#[tokio::test]
async fn a_cache_directory_that_cannot_be_written_is_named() {
    let env = Env::new().await;
    // A file where the directory should be: this holds for root too, unlike permissions.
    let blocked = env.dir.path().join("blocked");
    fs::write(&blocked, b"").unwrap();
    let sources = Sources::new(blocked.join("git"), vec![access(&env.front, None)]);
    let problem = sources.fetch(&env.url, "main", env.revision("main")).await.unwrap_err();
    assert_eq!(problem.reason, Reason::SourceError);
    assert!(problem.message.contains("blocked"), "{}", problem.message);
}
