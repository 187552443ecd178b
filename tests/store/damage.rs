//! Damaged files: never a panic, never silently an older state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use pintle::store::{Batch, Note, REBUILT, Table};

use super::story::{Base, Outcome, Story, base, change, content, db, judge, modified};
use super::support::{Rng, copy, names, open_at, part, put, run_to_crash};

fn snapshot(state: &Path) -> PathBuf {
    let name = names(&state.join("db"), "snap.").pop().unwrap();
    state.join("db").join(name)
}

#[test]
fn damaged_snapshots_cost_nothing() {
    let base = base(5);
    // sled makes its snapshot when it opens.
    drop(open_at(base.folder.path()).unwrap());
    for (what, told) in [("empty", true), ("bit flip", true), ("cut", true), ("gone", false)] {
        let (outcome, notes) = judge(&base, what, |state| {
            let path = snapshot(state);
            match what {
                "empty" => fs::write(path, "").unwrap(),
                "bit flip" => change(&path, |bytes| bytes[7] ^= 4),
                "cut" => change(&path, |bytes| bytes.truncate(bytes.len() / 2)),
                _ => fs::remove_file(path).unwrap(),
            }
        });
        assert_eq!(outcome, Outcome::Intact, "{what}");
        assert_eq!(notes.contains(&Note::SnapshotsMovedAside), told, "{what}: {notes:?}");
    }
}

#[test]
fn a_snapshot_that_was_being_written_is_not_even_worth_a_note() {
    let base = base(5);
    drop(open_at(base.folder.path()).unwrap());
    let (outcome, notes) = judge(&base, "leftover", |state| {
        fs::write(state.join("db/snap.00000000FFFFFFFF.generating"), "half").unwrap();
    });
    assert_eq!((outcome, notes), (Outcome::Intact, vec![]));
}

#[test]
fn the_settings_of_the_database_may_be_lost() {
    let base = base(5);
    for what in ["deleted", "empty"] {
        let (outcome, notes) = judge(&base, what, |state| match what {
            "deleted" => fs::remove_file(state.join("db/conf")).unwrap(),
            _ => fs::write(state.join("db/conf"), "").unwrap(),
        });
        assert_eq!((outcome, notes), (Outcome::Intact, vec![]), "{what}");
    }
}

#[test]
fn a_lost_tail_is_told_and_nothing_older_is_shown_silently() {
    let base = base(5);
    let mut seen = BTreeMap::new();
    // sled's file ends in zeros after an open; its log ends before them.
    let len = {
        let bytes = fs::read(db(base.folder.path())).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
    };
    for lost in [1, 100, 4_096, 16_384, 65_536, 200_000] {
        for cut in [true, false] {
            let what = format!("{lost} bytes {}", if cut { "cut" } else { "zeroed" });
            let (outcome, _) = judge(&base, &what, |state| {
                change(&db(state), |bytes| {
                    if cut { bytes.truncate(len - lost) } else { bytes[len - lost..].fill(0) }
                });
            });
            *seen.entry(outcome).or_insert(0) += 1;
            assert!(outcome != Outcome::Intact && outcome != Outcome::Empty, "{what}: {outcome:?}");
        }
    }
    eprintln!("lost tails: {seen:?}");
}

#[test]
fn a_database_cut_in_half_is_moved_aside_and_the_newest_export_restored() {
    for (after, parts) in [(5, 2), (0, 2), (5, 4), (5, 100)] {
        let base = base(after);
        let (outcome, notes) = judge(&base, "cut in half", |state| {
            change(&db(state), |bytes| bytes.truncate(bytes.len() / parts));
        });
        assert_eq!(outcome, Outcome::FromExport, "{notes:?}");
        assert!(notes.contains(&Note::RestoredFromExport { generation: base.exported }), "{notes:?}");
        // With nothing committed since the export, nothing is lost.
        let lost = notes.iter().any(|note| matches!(note, Note::CommitsLost { .. }));
        assert_eq!(lost, after > 0, "{notes:?}");
    }
}

#[test]
fn an_emptied_or_missing_database_is_no_fresh_one() {
    let base = base(5);
    for what in ["empty", "zeroed", "file gone", "folder gone"] {
        let (outcome, notes) = judge(&base, what, |state| match what {
            "empty" => fs::write(db(state), "").unwrap(),
            "zeroed" => change(&db(state), |bytes| bytes.fill(0)),
            "file gone" => fs::remove_file(db(state)).unwrap(),
            _ => fs::remove_dir_all(state.join("db")).unwrap(),
        });
        assert_eq!(outcome, Outcome::FromExport, "{what}: {notes:?}");
        assert!(!notes.contains(&Note::Fresh), "{what}: {notes:?}");
    }
}

#[test]
fn random_byte_flips_never_panic_and_never_show_an_older_state_silently() {
    let base = base(5);
    let len = fs::metadata(db(base.folder.path())).unwrap().len();
    let mut seen = BTreeMap::new();
    for seed in 0..40 {
        let (outcome, _) = judge(&base, &format!("seed {seed}"), |state| {
            let mut rng = Rng(seed);
            change(&db(state), |bytes| {
                for _ in 0..20 {
                    bytes[rng.below(len) as usize] ^= 1 << rng.below(8);
                }
            });
        });
        *seen.entry(outcome).or_insert(0) += 1;
    }
    eprintln!("40 x 20 byte flips: {seen:?}");
}

#[test]
fn single_byte_flips_never_show_an_older_state_silently() {
    let base = base(5);
    let len = fs::metadata(db(base.folder.path())).unwrap().len();
    let mut seen = BTreeMap::new();
    for seed in 0..40 {
        // Mostly at the end, where the newest commits are.
        let mut rng = Rng(1_000 + seed);
        let at = if seed % 4 == 0 { rng.below(len) } else { len - 1 - rng.below(len / 8) };
        let (outcome, _) = judge(&base, &format!("byte {at}"), |state| {
            change(&db(state), |bytes| bytes[at as usize] ^= 0x20);
        });
        *seen.entry(outcome).or_insert(0) += 1;
    }
    eprintln!("40 single byte flips: {seen:?}");
}

/// What a power cut does on a disk that lies about its cache: of the blocks that were written last, any may be missing.
#[test]
fn dropped_writes_are_never_shown_silently() {
    const BLOCK: usize = 4_096;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let mut story = Story::new();
    let mut versions = Vec::new();
    let mut rng = Rng(23);
    let store = open_at(state).unwrap().store;
    let mut batch = Batch::new();
    batch.put(Table::Meta, REBUILT, &true).unwrap();
    story.insert(store.commit(batch).unwrap(), BTreeMap::new());
    let mut exported = 0;
    for number in 0..80 {
        let mut batch = Batch::new();
        for _ in 0..3 {
            let (key, len) = (format!("k{}", rng.below(12)), 200 + rng.below(7_000) as usize);
            batch.put(Table::History, &key, &rng.text(len)).unwrap();
        }
        let generation = store.commit(batch).unwrap();
        story.insert(generation, content(&store));
        if number == 40 {
            store.export().unwrap();
            exported = generation;
        }
        if number >= 60 {
            versions.push(fs::read(db(state)).unwrap());
        }
    }
    let last = store.generation();
    drop(store);
    // As it was after the last commit: closing and opening are not part of it.
    let newest = versions.pop().unwrap();
    fs::write(db(state), &newest).unwrap();
    let base = Base { folder, story, last, exported };
    let mut seen = BTreeMap::new();
    for seed in 0..60 {
        let (outcome, _) = judge(&base, &format!("seed {seed}"), |state| {
            let mut rng = Rng(seed);
            let older = &versions[rng.below(versions.len() as u64) as usize];
            change(&db(state), |bytes| {
                let blocks: Vec<usize> = (0..bytes.len().div_ceil(BLOCK))
                    .filter(|block| {
                        let (from, to) = (block * BLOCK, bytes.len().min((block + 1) * BLOCK));
                        older.get(from..to) != Some(&bytes[from..to])
                    })
                    .collect();
                // One block, or about half of them.
                let one = rng.below(blocks.len() as u64) as usize;
                for (index, block) in blocks.iter().enumerate() {
                    if if seed % 2 == 0 { index == one } else { rng.below(2) == 0 } {
                        for at in block * BLOCK..bytes.len().min((block + 1) * BLOCK) {
                            bytes[at] = older.get(at).copied().unwrap_or(0);
                        }
                    }
                }
            });
        });
        *seen.entry(outcome).or_insert(0) += 1;
    }
    eprintln!("60 power cuts with dropped writes: {seen:?}");
}

#[test]
fn an_older_copy_of_the_database_is_noticed() {
    let base = base(0);
    let older = tempfile::tempdir().unwrap();
    copy(&base.folder.path().join("db"), older.path());
    let state = base.folder.path();
    let (last, now) = {
        let store = open_at(state).unwrap().store;
        for number in 0..3 {
            put(&store, Table::History, "k1", &format!("{number}")).unwrap();
        }
        (base.last, store.generation())
    };
    fs::remove_dir_all(state.join("db")).unwrap();
    copy(older.path(), &state.join("db"));
    let lost = Note::CommitsLost { known: now, found: last };
    let opened = open_at(state).unwrap();
    assert_eq!(opened.notes, std::slice::from_ref(&lost));
    assert!(opened.notes[0].to_string().starts_with("CommitsLost: "), "{}", opened.notes[0]);
    assert_eq!(opened.store.get::<bool>(Table::Meta, REBUILT).unwrap(), None);
    drop(opened);
    // Whoever opened it first may have been a command that lived for a second: told until the rebuild is done.
    let opened = open_at(state).unwrap();
    assert_eq!(opened.notes, [lost]);
    let mut batch = Batch::new();
    batch.put(Table::Meta, REBUILT, &true).unwrap();
    opened.store.commit(batch).unwrap();
    drop(opened);
    assert_eq!(open_at(state).unwrap().notes, []);
}

#[test]
fn lost_commits_reach_the_status() {
    let base = base(5);
    let state = base.folder.path();
    change(&db(state), |bytes| bytes.truncate(bytes.len() / 2));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("pintle.yaml");
    let kubeconfig = folder.path().join("none");
    let text = format!(
        "cluster: {{kubeconfig: {}}}\nstore: {{path: {}}}\napplications: {{dirs: [{}]}}\n",
        kubeconfig.display(),
        state.display(),
        folder.path().join("apps.d").display()
    );
    fs::write(&config, text).unwrap();
    for command in [&["status"][..], &["status", "-o", "json"], &["store", "check"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(command)
            .arg("--config")
            .arg(&config)
            .env_remove("KUBECONFIG")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let told = format!("CommitsLost: the store had reached generation {}", base.last);
        assert!(said.contains(&told), "{command:?}\n{said}");
    }
}

#[test]
fn a_damaged_witness_costs_nothing() {
    let base = base(5);
    for what in ["gone", "empty", "one slot", "both slots"] {
        let (outcome, notes) = judge(&base, what, |state| {
            let path = state.join("witness");
            match what {
                "gone" => fs::remove_file(path).unwrap(),
                "empty" => fs::write(path, "").unwrap(),
                "one slot" => change(&path, |bytes| bytes[5] ^= 1),
                _ => change(&path, |bytes| bytes.fill(0xaa)),
            }
        });
        assert_eq!((outcome, notes), (Outcome::Intact, vec![]), "{what}");
    }
}

#[test]
fn of_two_exports_a_torn_one_leaves_the_other() {
    let base = base(5);
    for what in ["cut", "bit flip", "empty", "gone", "both"] {
        let (outcome, notes) = judge(&base, what, |state| {
            let mut exports: Vec<(SystemTime, PathBuf)> = ["0.export", "1.export"]
                .into_iter()
                .map(|name| Path::new("exports").join(name))
                // A copy is as old as the copying.
                .map(|name| (modified(&base.folder.path().join(&name)), state.join(name)))
                .collect();
            exports.sort();
            let newest = &exports[1].1;
            match what {
                "cut" | "both" => change(newest, |bytes| bytes.truncate(bytes.len() / 2)),
                "bit flip" => change(newest, |bytes| bytes[200] ^= 1),
                "empty" => fs::write(newest, "").unwrap(),
                _ => fs::remove_file(newest).unwrap(),
            }
            if what == "both" {
                fs::write(&exports[0].1, "").unwrap();
            }
            change(&db(state), |bytes| bytes.truncate(1_000));
        });
        let older = Note::RestoredFromExport { generation: base.exported - 10 };
        assert_eq!(notes.contains(&older), what != "both", "{what}: {notes:?}");
        // Without any, what is left of the database is the best there is, and told.
        let left = matches!(outcome, Outcome::Empty | Outcome::OlderAndTold);
        assert_eq!(left, what == "both", "{what}: {notes:?}");
    }
}

#[test]
fn one_quarantine_is_kept_and_it_is_the_newest() {
    let base = base(5);
    let state = base.folder.path();
    let mut before = String::new();
    for round in 0..3 {
        change(&db(state), |bytes| bytes.truncate(1_000));
        let opened = open_at(state).unwrap();
        assert!(
            opened.notes.iter().any(|note| matches!(note, Note::Quarantined { .. })),
            "{:?}",
            opened.notes
        );
        let kept = names(state, "quarantine-");
        assert_eq!(kept.len(), 1, "round {round}");
        assert_ne!(kept[0], before);
        before = kept[0].clone();
        // Something to damage.
        for number in 0..40 {
            put(&opened.store, Table::History, "k1", &Rng(number).text(9_000)).unwrap();
        }
    }
}

#[test]
fn a_restore_that_is_killed_at_any_step_is_done_by_the_next_start() {
    let base = base(0);
    for point in ["store-filled", "store-new", "store-aside", "store-swapped"] {
        let folder = tempfile::tempdir().unwrap();
        copy(base.folder.path(), folder.path());
        change(&db(folder.path()), |bytes| bytes.truncate(bytes.len() / 2));
        run_to_crash(&mut part("store::kill::part_that_compacts", folder.path()), point);
        let opened = open_at(folder.path()).unwrap();
        assert!(content(&opened.store) == base.story[&base.last], "{point}: {:?}", opened.notes);
        assert_eq!(opened.store.get::<bool>(Table::Meta, REBUILT).unwrap(), None, "{point}");
        // The damaged one is kept, whoever has put it there.
        assert_eq!(names(folder.path(), "quarantine-").len(), 1, "{point}");
        assert_eq!(names(folder.path(), "db"), ["db"], "{point}");
        drop(opened);
        assert_eq!(open_at(folder.path()).unwrap().notes, [], "{point}");
    }
}
