use std::path::Path;

use super::*;

fn open_at(path: &Path) -> Result<Opened, Problem> {
    open(Options { path: path.to_owned(), key_file: None, wait_for_lock: Duration::ZERO })
}

fn put(store: &Store, table: Table, key: &str, value: &str) -> u64 {
    let mut batch = Batch::new();
    batch.put(table, key, value).unwrap();
    store.commit(batch).unwrap()
}

fn files(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push((entry.path(), std::fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn records_and_blobs_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(300_000);
    let digest = {
        let store = open_at(folder.path()).unwrap().store;
        put(&store, Table::Apps, "b", "two");
        put(&store, Table::Apps, "a", "one");
        put(&store, Table::History, "long", &long);
        let mut batch = Batch::new();
        let digest = batch.put_blob(b"manifest");
        store.commit(batch).unwrap();
        digest
    };
    let opened = open_at(folder.path()).unwrap();
    assert_eq!(opened.notes, []);
    assert_eq!(opened.store.keys(Table::Apps, "").unwrap(), ["a", "b"]);
    assert_eq!(opened.store.get::<String>(Table::Apps, "a").unwrap().as_deref(), Some("one"));
    assert_eq!(opened.store.get::<String>(Table::History, "long").unwrap(), Some(long));
    assert_eq!(opened.store.get_blob(digest).unwrap().as_deref(), Some(b"manifest".as_slice()));
}

#[test]
fn a_batch_that_changes_nothing_writes_nothing_and_every_other_commit_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    let first = put(&store, Table::Apps, "a", "one");
    let (writes, before) = (store.writes(), files(folder.path()));
    assert_eq!(put(&store, Table::Apps, "a", "one"), first);
    assert_eq!((store.writes(), files(folder.path())), (writes, before));
    assert_eq!(put(&store, Table::Apps, "a", "two"), first + 1);
    assert_eq!(store.writes().syncs, writes.syncs + 1);
    assert_eq!(store.writes().commits, writes.commits + 1);
}

#[test]
fn large_records_are_cut_into_chunks_and_rewriting_them_does_not_blow_up_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    for round in 0..60_u64 {
        // Numbers that do not deflate well.
        let text: String =
            (0..20_000_u64).map(|n| Digest::of(&(n * 7_919 + round).to_be_bytes()).short(8)).collect();
        put(&store, Table::Renders, "big", &text);
    }
    assert!(store.size_on_disk() < 40 << 20, "{} bytes", store.size_on_disk());
    let beside = std::fs::read_dir(folder.path().join("db/blobs")).map_or(0, Iterator::count);
    assert_eq!(beside, 0, "values lie in files that our fsync does not cover");
    put(&store, Table::Renders, "big", "small");
    assert_eq!(store.get::<String>(Table::Renders, "big").unwrap().as_deref(), Some("small"));
}

#[test]
fn no_value_lies_on_disk_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    let marker = "marker-of-a-secret-value";
    for table in Table::ALL.into_iter().filter(|table| !matches!(table, Table::Meta | Table::Manifests)) {
        put(&store, table, "k", marker);
    }
    let mut batch = Batch::new();
    batch.put_blob(marker.as_bytes());
    store.commit(batch).unwrap();
    store.export().unwrap();
    for (path, bytes) in files(folder.path()) {
        let clear = bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
        assert!(!clear, "{}", path.display());
    }
}

#[test]
fn a_second_holder_is_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open_at(folder.path()).unwrap();
    let problem = open_at(folder.path()).err().unwrap();
    assert_eq!(problem.reason, Reason::StoreHeld);
    assert!(problem.message.contains(&std::process::id().to_string()), "{problem}");
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open_at(folder.path()).unwrap().store;
        let mut batch = Batch::new();
        batch.put(Table::Meta, SCHEMA_KEY, &(SCHEMA + 1)).unwrap();
        store.commit(batch).unwrap();
    }
    assert_eq!(open_at(folder.path()).err().unwrap().reason, Reason::StoreNewer);
    let kept = std::fs::read_dir(folder.path()).unwrap().flatten().any(|entry| entry.file_name() == "db");
    assert!(kept);
}

#[test]
fn a_damaged_database_is_moved_aside_and_the_newest_export_restored() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open_at(folder.path()).unwrap().store;
        put(&store, Table::Apps, "a", "one");
        store.export().unwrap();
    }
    let file = folder.path().join("db/db");
    let bytes = std::fs::read(&file).unwrap();
    let damaged: Vec<u8> =
        bytes.iter().enumerate().map(|(at, byte)| if at % 97 == 0 { !byte } else { *byte }).collect();
    std::fs::write(&file, damaged).unwrap();
    let opened = open_at(folder.path()).unwrap();
    assert!(opened.notes.iter().any(|note| matches!(note, Note::Quarantined { .. })), "{:?}", opened.notes);
    assert!(
        opened.notes.iter().any(|note| matches!(note, Note::RestoredFromExport { .. })),
        "{:?}",
        opened.notes
    );
    assert_eq!(opened.store.get::<String>(Table::Apps, "a").unwrap().as_deref(), Some("one"));
    let aside = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("quarantine-"));
    assert_eq!(aside.count(), 1);
}

#[test]
fn random_damage_never_panics_and_never_answers_what_was_not_written() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open_at(folder.path()).unwrap().store;
        for round in 0..20 {
            put(&store, Table::Apps, &format!("k{round}"), "value");
        }
    }
    let file = folder.path().join("db/db");
    let good = std::fs::read(&file).unwrap();
    for seed in 0..12_u64 {
        let mut bytes = good.clone();
        for n in 0..20_u64 {
            let digest = Digest::of(&(seed * 100 + n).to_be_bytes());
            let at = u64::from_be_bytes(digest.as_bytes()[..8].try_into().unwrap()) as usize % bytes.len();
            bytes[at] ^= digest.as_bytes()[9] | 1;
        }
        std::fs::write(&file, bytes).unwrap();
        match open_at(folder.path()) {
            Ok(opened) => {
                for (_, value) in opened.store.scan::<String>(Table::Apps, "").unwrap() {
                    assert_eq!(value, "value");
                }
            }
            Err(problem) => assert_eq!(problem.reason, Reason::StoreError),
        }
    }
}

#[test]
fn blobs_that_nobody_names_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    let mut batch = Batch::new();
    let (kept, dropped) = (batch.put_blob(b"kept"), batch.put_blob(b"dropped"));
    store.commit(batch).unwrap();
    assert_eq!(store.collect_blobs(&HashSet::from([kept])).unwrap(), 1);
    assert!(store.get_blob(kept).unwrap().is_some() && store.get_blob(dropped).unwrap().is_none());
}
