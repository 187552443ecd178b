//! What cannot be opened or written for a reason that is not the store's: reported, left alone, and it goes on when
//! the reason is gone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pintle::store::{self, Batch, Options, SCHEMA, Table};
use pintle_model::Reason;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::support::{Rng, files, my_part, open_at, part, part_through, precious, put, run, say, text};

const LIMIT: Duration = Duration::from_mins(2);

fn filled(path: &Path) {
    let store = open_at(path).unwrap().store;
    put(&store, Table::Apps, "a", "one").unwrap();
    store.export().unwrap();
    put(&store, Table::Apps, "b", "two").unwrap();
}

#[test]
fn a_write_that_fails_inside_the_database_is_an_error_and_the_next_one_works_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    // Ignored, SIGXFSZ becomes the error EFBIG; the reservation of room does not see this limit, so the write itself
    // fails, as it does when a disk breaks.
    let shell = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
    let said =
        run(part_through(&shell, "store::refused::part_whose_files_may_not_grow", folder.path()), LIMIT);
    eprintln!("{}", said.lines().find_map(|line| line.strip_prefix('@')).unwrap());
}

#[test]
fn part_whose_files_may_not_grow() {
    let Some(folder) = my_part() else { return };
    let store = open_at(&folder).unwrap().store;
    let file = folder.join("db/db");
    let mut rng = Rng(3);
    let mut slowest = Duration::ZERO;
    let mut failures = 0;
    for round in 0..60_u64 {
        put(&store, Table::Apps, "a", &format!("{round}")).unwrap();
        let len = std::fs::metadata(&file).unwrap().len();
        // Often below what is there: sled writes into segments that it has freed.
        let most = 10_000 + rng.below(len + 30_000);
        setrlimit(Resource::Fsize, Rlimit { current: Some(most), maximum: None }).unwrap();
        let mut last = (format!("{round}"), String::new());
        for number in 0..30 {
            let mut batch = Batch::new();
            let wanted = (format!("{round}.{number}"), rng.text(30_000));
            batch.put(Table::Apps, "a", &wanted.0).unwrap();
            batch.put(Table::History, "h", &wanted.1).unwrap();
            let begin = Instant::now();
            let result = store.commit(batch);
            slowest = slowest.max(begin.elapsed());
            match result {
                Ok(_) => last = wanted,
                Err(problem) => {
                    failures += 1;
                    assert!(problem.message.contains("db"), "{problem}");
                    break;
                }
            }
        }
        setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
        // All of the last acknowledged batch, nothing of the failed one.
        assert_eq!(text(&store, Table::Apps, "a").unwrap(), last.0);
        if !last.1.is_empty() {
            assert_eq!(text(&store, Table::History, "h").unwrap(), last.1);
        }
    }
    assert!(failures > 30, "{failures}");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    say(&format!("{failures} failed writes, the slowest took {slowest:?}"));
    drop(store);
    assert_eq!(open_at(&folder).unwrap().notes, []);
}

#[test]
fn no_file_descriptors_left_at_open_is_reported_and_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    run(part("store::refused::part_without_descriptors", folder.path()), LIMIT);
}

#[test]
fn part_without_descriptors() {
    let Some(folder) = my_part() else { return };
    filled(&folder);
    let before = precious(&folder);
    let mut refused = 0;
    // So many as the process may have, from none on: each step of the open fails once.
    for descriptors in 0.. {
        setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), maximum: Some(1_024) }).unwrap();
        let opened = open_at(&folder);
        setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), maximum: Some(1_024) }).unwrap();
        match opened {
            Ok(opened) => {
                assert_eq!(opened.notes, [], "with {descriptors} descriptors");
                assert_eq!(text(&opened.store, Table::Apps, "b").unwrap(), "two");
                break;
            }
            Err(problem) => {
                refused += 1;
                assert!(problem.message.contains("limit of open files"), "{problem}");
                assert_eq!(precious(&folder), before, "with {descriptors} descriptors");
            }
        }
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn a_commit_needs_no_new_file_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    run(part("store::refused::part_that_commits_without_descriptors", folder.path()), LIMIT);
}

#[test]
fn part_that_commits_without_descriptors() {
    let Some(folder) = my_part() else { return };
    let store = open_at(&folder).unwrap().store;
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: Some(1_024) }).unwrap();
    for number in 0..50 {
        put(&store, Table::Apps, "a", &format!("{number}")).unwrap();
    }
    let refused = store.export();
    setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), maximum: Some(1_024) }).unwrap();
    assert!(refused.unwrap_err().message.contains("limit of open files"));
    store.export().unwrap();
}

#[test]
fn lost_permissions_are_reported_and_touch_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // root may do everything, so another user has to try.
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let command = if rustix::process::geteuid().is_root() {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        part_through(&nobody, "store::refused::part_that_loses_its_permissions", folder.path())
    } else {
        part("store::refused::part_that_loses_its_permissions", folder.path())
    };
    run(command, LIMIT);
}

#[test]
fn part_that_loses_its_permissions() {
    let Some(folder) = my_part() else { return };
    let state = folder.join("state");
    filled(&state);
    let before = precious(&state);
    for (name, mode, back) in [
        ("", 0o500, 0o750),
        ("", 0o000, 0o750),
        ("db", 0o500, 0o750),
        ("db", 0o000, 0o750),
        ("db/db", 0o400, 0o640),
        ("db/db", 0o000, 0o640),
        ("key", 0o000, 0o600),
        ("lock", 0o000, 0o660),
        ("witness", 0o400, 0o640),
        ("schema", 0o000, 0o644),
    ] {
        let place = state.join(name);
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
        let opened = open_at(&state);
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(back)).unwrap();
        match opened {
            Err(problem) => {
                assert!(problem.message.contains("Permission denied"), "{name} {mode:o}: {problem}");
                assert!(problem.message.contains("the right to"), "{name} {mode:o}: {problem}");
            }
            // Nothing had to be written there.
            Ok(opened) => assert_eq!(opened.notes, [], "{name} {mode:o}"),
        }
        assert_eq!(precious(&state), before, "{name} {mode:o}");
    }
    let opened = open_at(&state).unwrap();
    assert_eq!(opened.notes, []);
    assert_eq!(text(&opened.store, Table::Apps, "b").unwrap(), "two");
}

#[test]
fn a_held_lock_is_named_with_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let first = open_at(folder.path()).unwrap();
    let options =
        || Options { path: folder.path().to_owned(), key_file: None, wait_for_lock: Duration::ZERO };
    let problem = store::open(options()).err().unwrap();
    assert_eq!(problem.reason, Reason::StoreHeld);
    assert!(problem.message.ends_with(&format!("is held by process {}", std::process::id())), "{problem}");
    assert!(problem.message.contains(&folder.path().display().to_string()), "{problem}");
    // An empty lock file names nobody, and says so.
    std::fs::write(folder.path().join("lock"), "").unwrap();
    let problem = store::open(options()).err().unwrap();
    assert!(problem.message.contains("did not write its number"), "{problem}");
    drop(first);
    assert_eq!(open_at(folder.path()).unwrap().notes, []);
}

#[test]
fn the_lock_of_a_process_that_died_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let part = &mut part("store::full_disk::part_that_aborts", folder.path());
    let (status, said) = super::support::outcome(part, LIMIT);
    assert!(!status.success() && said.contains("@committed"), "{said}");
    assert_eq!(open_at(folder.path()).unwrap().notes, []);
}

#[test]
fn a_newer_schema_is_refused_and_not_one_byte_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    std::fs::write(folder.path().join("schema"), format!("{}\n", SCHEMA + 1)).unwrap();
    // What a newer version writes is not readable for us, and must not be taken for damage.
    std::fs::write(folder.path().join("db/db"), "another layout").unwrap();
    let mut before = files(folder.path());
    let problem = open_at(folder.path()).err().unwrap();
    assert_eq!(problem.reason, Reason::StoreNewer);
    assert!(problem.message.contains(&format!("schema {}", SCHEMA + 1)), "{problem}");
    let mut after = files(folder.path());
    let lock = folder.path().join("lock");
    assert!(before.remove(&lock).is_some() && after.remove(&lock).is_some());
    assert_eq!(after, before);
}

#[test]
fn a_newer_schema_inside_the_database_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open_at(folder.path()).unwrap().store;
        let mut batch = Batch::new();
        batch.put(Table::Meta, "schema", &(SCHEMA + 1)).unwrap();
        store.commit(batch).unwrap();
    }
    std::fs::remove_file(folder.path().join("schema")).unwrap();
    let before = precious(folder.path());
    assert_eq!(open_at(folder.path()).err().unwrap().reason, Reason::StoreNewer);
    assert_eq!(precious(folder.path()), before);
}

#[test]
fn no_test_program_is_missing() {
    for program in ["sh", "unshare", "mount", "setpriv"] {
        assert!(Command::new(program).arg("--help").output().is_ok(), "{program} is not installed");
    }
}
