//! A disk that is really full: a small tmpfs in a mount namespace of its own, so that it ends with the process that
//! has mounted it, however that ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pintle::store::{Batch, Store, Table};

use super::support::{Rng, files, my_part, open_at, part, part_through, precious, put, run, say, text};

/// A commit, and an open, have an answer within this.
const ANSWER: Duration = Duration::from_secs(10);

/// Runs a part that may mount. Not root: a user namespace makes us root in it, if the kernel lets us.
fn run_with_mounts(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = rustix::process::geteuid().is_root();
    let unshare: &[&str] = if root { &["unshare", "-m"] } else { &["unshare", "-rm"] };
    let able = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
    match able {
        Ok(output) if output.status.success() => {}
        other => {
            let why = match other {
                Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(std::env::var_os("CI").is_none() && !root, "{unshare:?} does not work here: {why}");
            eprintln!("SKIPPED {name}: only root may mount, and {unshare:?} does not work here: {why}");
            return;
        }
    }
    let said = run(part_through(unshare, name, folder.path()), Duration::from_mins(2));
    for line in said.lines().filter_map(|line| line.strip_prefix('@')) {
        eprintln!("{line}");
    }
}

fn mount(folder: &Path, args: &[&str]) {
    let status = Command::new("mount").args(args).arg(folder).status().unwrap();
    assert!(status.success());
}

/// A disk of `mib` MiB at `folder/disk`.
fn disk(folder: &Path, mib: u32) -> PathBuf {
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).unwrap();
    mount(&disk, &["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]);
    disk
}

/// Fills the disk to the last block.
fn fill(disk: &Path) -> PathBuf {
    use std::io::Write as _;
    let ballast = disk.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    for size in [1 << 20, 4_096] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    ballast
}

/// A batch that all belongs together: records that are rewritten, and `size` bytes that are added.
fn numbered(number: u64, size: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(Table::Apps, "counter", &number).unwrap();
    for record in 0..8_u64 {
        batch.put(Table::History, &format!("{record}"), &(number, Rng(number).text(300))).unwrap();
    }
    batch.put(Table::Renders, &format!("{number:08}"), &Rng(number).text(size)).unwrap();
    batch
}

/// The number of the batch that is there, whole.
fn whole(store: &Store) -> u64 {
    let number = store.get::<u64>(Table::Apps, "counter").unwrap().unwrap_or(0);
    for (key, (found, _)) in store.scan::<(u64, String)>(Table::History, "").unwrap() {
        assert_eq!(found, number, "record {key}");
    }
    let newest = store.keys(Table::Renders, "").unwrap().pop();
    assert!(newest.is_none_or(|newest| newest == format!("{number:08}")));
    assert_eq!(store.check().1, [""; 0]);
    number
}

fn in_time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    assert!(begin.elapsed() < ANSWER, "{what} took {:?}", begin.elapsed());
    result
}

#[test]
fn a_commit_on_a_full_disk_is_refused_at_once_and_works_again_when_there_is_room() {
    run_with_mounts("store::full_disk::part_that_fills_its_disk");
}

#[test]
fn part_that_fills_its_disk() {
    let Some(folder) = my_part() else { return };
    let disk = disk(&folder, 64);
    let state = disk.join("state");
    let store = open_at(&state).unwrap().store;
    let mut committed = 0;
    for round in 0..4_u64 {
        // From a batch that fits often into the room reserved to one that is larger.
        let size = 64_000 << round;
        for number in committed + 1..=committed + 3 {
            store.commit(numbered(number, 200)).unwrap();
        }
        committed += 3;
        let ballast = fill(&disk);
        let mut refused = None;
        for number in committed + 1..committed + 1_000 {
            match in_time("a commit on a full disk", || store.commit(numbered(number, size))) {
                // What was reserved before may still be used.
                Ok(_) => committed = number,
                Err(problem) => {
                    refused = Some(problem);
                    break;
                }
            }
        }
        let problem = refused.expect("the disk is full");
        assert!(problem.message.contains(&state.join("db").display().to_string()), "{problem}");
        assert!(
            problem.message.contains("No space left") && problem.message.contains("free space"),
            "{problem}"
        );
        // Reading goes on, and nothing of the refused batch is there.
        assert_eq!(in_time("a read on a full disk", || whole(&store)), committed);
        // An export is refused as well, and the ones before stay.
        if let Err(problem) = store.export() {
            assert!(
                problem.message.contains("exports") && problem.message.contains("free space"),
                "{problem}"
            );
        }
        if round == 0 {
            say(&problem.message);
        }
        std::fs::remove_file(ballast).unwrap();
        // No restart.
        committed += 1;
        in_time("a commit with room again", || store.commit(numbered(committed, size)).unwrap());
        assert_eq!(whole(&store), committed);
        // What was kept so far may go, so that the next round has a disk to fill.
        let mut batch = numbered(committed + 1, 0);
        store.keys(Table::Renders, "").unwrap().iter().for_each(|key| batch.delete(Table::Renders, key));
        store.commit(batch).unwrap();
        committed += 1;
        assert_eq!(whole(&store), committed);
    }
    let generation = store.generation();
    drop(store);
    let opened = open_at(&state).unwrap();
    assert_eq!((opened.notes, opened.store.generation()), (vec![], generation));
    assert_eq!(whole(&opened.store), committed);
}

#[test]
fn a_store_opens_on_a_full_disk_and_a_new_one_is_refused() {
    run_with_mounts("store::full_disk::part_that_opens_on_a_full_disk");
}

#[test]
fn part_that_opens_on_a_full_disk() {
    let Some(folder) = my_part() else { return };
    let disk = disk(&folder, 24);
    // A first start.
    let ballast = fill(&disk);
    let fresh = disk.join("fresh");
    let problem = in_time("a first start", || open_at(&fresh).err().unwrap());
    assert!(problem.message.contains("free space"), "{problem}");
    std::fs::remove_file(&ballast).unwrap();
    assert!(open_at(&fresh).is_ok());
    // A store that is there. One that was killed has more to do when it is opened, so kill it.
    let state = disk.join("state");
    aborted(&state);
    let ballast = fill(&disk);
    for round in 0..3 {
        let opened = in_time("an open", || open_at(&state).unwrap());
        assert_eq!(opened.notes, [], "round {round}");
        assert_eq!(text(&opened.store, Table::Apps, "a").unwrap(), "one");
    }
    std::fs::remove_file(ballast).unwrap();
    let opened = open_at(&state).unwrap();
    assert_eq!(opened.notes, []);
    put(&opened.store, Table::Apps, "a", "two").unwrap();
}

#[test]
fn an_open_for_which_there_is_no_room_at_all_is_reported_and_touches_nothing() {
    run_with_mounts("store::full_disk::part_that_opens_without_its_spare_room");
}

#[test]
fn part_that_opens_without_its_spare_room() {
    let Some(folder) = my_part() else { return };
    let disk = disk(&folder, 24);
    let state = disk.join("state");
    aborted(&state);
    std::fs::remove_file(state.join("spare")).unwrap();
    let before = precious(&state);
    let mut refused = 0;
    for free_kib in [0, 4, 8, 16, 64] {
        let ballast = fill(&disk);
        let len = std::fs::metadata(&ballast).unwrap().len();
        std::fs::OpenOptions::new()
            .write(true)
            .open(&ballast)
            .unwrap()
            .set_len(len - free_kib * 1_024)
            .unwrap();
        match in_time("an open", || open_at(&state)) {
            Err(problem) => {
                refused += 1;
                assert!(problem.message.contains("free space"), "{free_kib} KiB free: {problem}");
                // sled fills the rest of its last segment with zeros: that is free space to it.
                let mut now = precious(&state);
                for (path, bytes) in &before {
                    let now = now.get_mut(path).unwrap();
                    if path.ends_with("db/db") {
                        assert!(now[bytes.len().min(now.len())..].iter().all(|byte| *byte == 0));
                        now.truncate(bytes.len());
                    }
                    assert_eq!(now, bytes, "{}", path.display());
                }
            }
            Ok(opened) => {
                assert_eq!(opened.notes, [], "{free_kib} KiB free");
                assert_eq!(text(&opened.store, Table::Apps, "a").unwrap(), "one");
            }
        }
        std::fs::remove_file(ballast).unwrap();
    }
    assert!(refused > 0);
    let opened = open_at(&state).unwrap();
    assert_eq!(opened.notes, []);
    assert_eq!(text(&opened.store, Table::Apps, "a").unwrap(), "one");
}

/// A store whose process died.
fn aborted(state: &Path) {
    let (_, said) = super::support::outcome(&mut part("store::full_disk::part_that_aborts", state), ANSWER);
    assert!(said.contains("@committed"), "{said}");
}

#[test]
fn part_that_aborts() {
    let Some(folder) = my_part() else { return };
    let store = open_at(&folder).unwrap().store;
    for number in 0..20 {
        put(&store, Table::History, "h", &Rng(number).text(9_000)).unwrap();
    }
    put(&store, Table::Apps, "a", "one").unwrap();
    store.export().unwrap();
    say("committed");
    std::process::abort();
}

#[test]
fn a_read_only_file_system_is_reported_and_touches_nothing() {
    run_with_mounts("store::full_disk::part_whose_disk_becomes_read_only");
}

#[test]
fn part_whose_disk_becomes_read_only() {
    let Some(folder) = my_part() else { return };
    let disk = disk(&folder, 24);
    let state = disk.join("state");
    {
        let store = open_at(&state).unwrap().store;
        put(&store, Table::Apps, "a", "one").unwrap();
        store.export().unwrap();
    }
    let before = files(&state);
    mount(&disk, &["-o", "remount,ro"]);
    let problem = in_time("an open", || open_at(&state).err().unwrap());
    assert!(problem.message.contains("Read-only") && problem.message.contains("read-write"), "{problem}");
    say(&problem.message);
    assert_eq!(files(&state), before);
    mount(&disk, &["-o", "remount,rw"]);
    let opened = open_at(&state).unwrap();
    assert_eq!(opened.notes, []);
    assert_eq!(text(&opened.store, Table::Apps, "a").unwrap(), "one");
    put(&opened.store, Table::Apps, "a", "two").unwrap();
}
