//! Files of a commit.

use std::os::unix::ffi::OsStrExt as _;

use pintle::source::Entry;
use pintle_model::Reason;

use super::env::Env;

fn text(entry: &Entry) -> String {
    match entry {
        Entry::File(data) => String::from_utf8(data.to_vec()).unwrap(),
        Entry::Symlink(target) => format!("-> {target}"),
    }
}

#[tokio::test]
async fn only_files_below_the_path_are_read() {
    let env = Env::new().await;
    let revision = env.pull("main").await;
    let tree = env.sources.tree(&env.url, revision, "./apps/web/").await.unwrap();
    assert_eq!(
        tree.files.iter().map(|(path, entry)| (path.as_str(), text(entry))).collect::<Vec<_>>(),
        [("apps/web/a.yaml", "one: 1\n".to_owned())]
    );
    let all = env.sources.tree(&env.url, revision, "").await.unwrap();
    assert_eq!(all.files.keys().collect::<Vec<_>>(), ["apps/web/a.yaml", "other/b.yaml"]);
    let one = env.sources.tree(&env.url, revision, "other/b.yaml").await.unwrap();
    assert_eq!(one.files.keys().collect::<Vec<_>>(), ["other/b.yaml"]);
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_named() {
    let env = Env::new().await;
    let revision = env.pull("main").await;
    for path in ["apps/none", "apps/web/a.yaml/x", "app"] {
        let problem = env.sources.tree(&env.url, revision, path).await.unwrap_err();
        assert_eq!(problem.reason, Reason::InvalidSpecError);
        assert!(
            problem.message.contains(path) && problem.message.contains("does not exist"),
            "{}",
            problem.message
        );
    }
    for path in ["/etc", "../x", "apps/../../x"] {
        let problem = env.sources.tree(&env.url, revision, path).await.unwrap_err();
        assert_eq!(problem.reason, Reason::InvalidSpecError, "{path}");
    }
}

#[tokio::test]
async fn links_inside_the_repository_bring_what_they_lead_to() {
    let mut env = Env::new().await;
    env.fixture.write("shared/values.yaml", "x: 1\n");
    env.fixture.write("bases/db/db.yaml", "db: 1\n");
    env.fixture.symlink("apps/web/values.yaml", "../../shared/values.yaml");
    env.fixture.symlink("apps/web/db", "../../bases/db");
    env.fixture.symlink("apps/web/dangling", "nothing-here");
    env.fixture.symlink("apps/web/loop", "loop/loop");
    env.fixture.symlink("current", "apps");
    env.fixture.push_commit("links");
    let revision = env.pull("main").await;
    let tree = env.sources.tree(&env.url, revision, "apps/web").await.unwrap();
    let expected = [
        ("apps/web/a.yaml", "one: 1\n"),
        ("apps/web/dangling", "-> nothing-here"),
        ("apps/web/db", "-> ../../bases/db"),
        ("apps/web/loop", "-> loop/loop"),
        ("apps/web/values.yaml", "-> ../../shared/values.yaml"),
        ("bases/db/db.yaml", "db: 1\n"),
        ("shared/values.yaml", "x: 1\n"),
    ];
    let found: Vec<_> = tree.files.iter().map(|(path, entry)| (path.as_str(), text(entry))).collect();
    assert_eq!(found, expected.map(|(path, text)| (path, text.to_owned())));
    // The path itself may go through a link.
    let through = env.sources.tree(&env.url, revision, "current/web").await.unwrap();
    assert_eq!(text(&through.files["current"]), "-> apps");
    assert!(through.files.contains_key("apps/web/a.yaml"));
}

#[tokio::test]
async fn a_link_that_leaves_the_repository_is_refused() {
    for target in ["/etc/passwd", "../../../etc/passwd", "../../.."] {
        let mut env = Env::new().await;
        env.fixture.symlink("apps/web/evil.yaml", target);
        env.fixture.push_commit("a link out");
        let revision = env.pull("main").await;
        let problem = env.sources.tree(&env.url, revision, "apps").await.unwrap_err();
        assert_eq!(problem.reason, Reason::RenderError);
        assert!(
            problem.message.contains("apps/web/evil.yaml") && problem.message.contains(target),
            "{}",
            problem.message
        );
        // Other applications of the repository do not suffer.
        assert!(env.sources.tree(&env.url, revision, "other").await.is_ok());
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_is_named() {
    let mut env = Env::new().await;
    env.fixture.write("apps/web/image.bin", vec![7_u8; pintle_model::limits::BLOB_MAX_BYTES + 1]);
    env.fixture.push_commit("a large file");
    let revision = env.pull("main").await;
    let problem = env.sources.tree(&env.url, revision, "apps").await.unwrap_err();
    assert_eq!(problem.reason, Reason::RenderError);
    assert!(problem.message.contains("apps/web/image.bin"), "{}", problem.message);
    assert!(env.sources.tree(&env.url, revision, "other").await.is_ok());
}

#[tokio::test]
async fn names_that_are_not_text_or_leave_the_folder_are_refused() {
    let env = Env::new().await;
    let blob = env.fixture.rev_parse("main:apps/web/a.yaml");
    for name in [&b".."[..], b".", b"\xff\xfe"] {
        // A tree as no work tree could make it.
        let mut tree = b"100644 ".to_vec();
        tree.extend_from_slice(name);
        tree.push(0);
        let hex = |at: usize| u8::from_str_radix(&blob[at..at + 2], 16).unwrap();
        tree.extend((0..40).step_by(2).map(hex));
        std::fs::write(env.dir.path().join("tree"), &tree).unwrap();
        let file = env.dir.path().join("tree");
        let file = std::str::from_utf8(file.as_os_str().as_bytes()).unwrap();
        let id = env.fixture.git(&["hash-object", "-t", "tree", "-w", "--literally", file]);
        let commit = env.fixture.git(&["commit-tree", &id, "-m", "bad tree"]);
        env.fixture.git(&["branch", "--force", "bad", &commit]);
        env.fixture.publish();
        let revision = env.pull("bad").await;
        let problem = env.sources.tree(&env.url, revision, "").await.unwrap_err();
        assert_eq!(problem.reason, Reason::RenderError, "{}", problem.message);
    }
}

#[tokio::test]
async fn a_tree_that_names_one_folder_over_and_over_is_refused() {
    let env = Env::new().await;
    let mut id = env.fixture.rev_parse("main:apps/web");
    // Ten to the power of nine files in ten objects.
    for _ in 0..9 {
        let lines: Vec<String> = (0..10).map(|n| format!("040000 tree {id}\td{n}\n")).collect();
        id = env.fixture.git_with_input(&["mktree"], &lines.concat());
    }
    let commit = env.fixture.git(&["commit-tree", &id, "-m", "a bomb"]);
    env.fixture.git(&["branch", "bomb", &commit]);
    env.fixture.publish();
    let revision = env.pull("bomb").await;
    let problem = env.sources.tree(&env.url, revision, "").await.unwrap_err();
    assert_eq!(problem.reason, Reason::RenderError);
    assert!(problem.message.contains("100000 files"), "{}", problem.message);
}

#[tokio::test]
async fn submodules_are_told_and_not_followed() {
    let env = Env::new().await;
    let head = env.fixture.rev_parse("main");
    env.fixture.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},apps/lib")]);
    env.fixture.git(&["commit", "--quiet", "--message", "a submodule"]);
    env.fixture.publish();
    let revision = env.pull("main").await;
    let tree = env.sources.tree(&env.url, revision, "apps").await.unwrap();
    assert_eq!(tree.submodules, ["apps/lib"]);
    assert_eq!(tree.files.len(), 1);
}

#[tokio::test]
async fn a_commit_tells_author_time_and_subject() {
    let mut env = Env::new().await;
    env.fixture.push_commit("Change the port\n\nBecause of a reason.");
    let revision = env.pull("main").await;
    let info = env.sources.commit(&env.url, revision).await.unwrap();
    assert_eq!(info.author, "Ada Author");
    assert_eq!(info.subject, "Change the port");
    assert_eq!(info.time.to_string(), "2026-01-01T00:02:00Z");
}

#[tokio::test]
async fn what_was_not_fetched_says_so() {
    let env = Env::new().await;
    let revision = env.revision("main");
    for _ in 0..2 {
        let problem = env.sources.tree(&env.url, revision, "apps").await.unwrap_err();
        assert_eq!(problem.reason, Reason::SourceError);
        assert!(problem.message.contains("not been fetched"), "{}", problem.message);
        // Once with no cache at all, once with another commit in it.
        let other = env.fixture.git(&["commit-tree", "main^{tree}", "-m", "other"]);
        env.fixture.git(&["branch", "--force", "other", &other]);
        env.fixture.publish();
        env.pull("other").await;
    }
}

#[tokio::test]
async fn contents_do_not_appear_in_debug_output() {
    let mut env = Env::new().await;
    env.fixture.write("apps/web/secret.yaml", "password: hunter2\n");
    env.fixture.push_commit("a secret");
    let revision = env.pull("main").await;
    let tree = env.sources.tree(&env.url, revision, "apps").await.unwrap();
    assert!(!format!("{tree:?}").contains("hunter2"));
}
