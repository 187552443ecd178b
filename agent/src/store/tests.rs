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
fn no_value_in_the_database_is_larger_than_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    let mut largest = 0;
    for len in [0, 1, 255, 4_000, 4_046, 4_047, 4_048, 4_096, 4_097, 20_000, 500_000] {
        // Digests do not deflate.
        let bytes: Vec<u8> =
            (0..=len as u64 / 32).flat_map(|n| *Digest::of(&n.to_be_bytes()).as_bytes()).collect();
        let mut batch = Batch::new();
        batch.put_blob(&bytes[..len]);
        store.commit(batch).unwrap();
        store
            .with(|db| {
                for pair in db.pairs() {
                    largest = largest.max(pair?.1.len());
                }
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(largest, pintle_model::limits::STORE_VALUE_MAX_BYTES);
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

/// A page of sled that has lost its last change has a good checksum; its record is whole and authentic, and old.
#[test]
fn an_old_record_beside_new_ones_is_found_at_open() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open_at(folder.path()).unwrap().store;
        put(&store, Table::Apps, "a", "old");
        let name = codec::head_key(Table::Apps, "a");
        let old = store.with(|db| db.get(&name)).unwrap().unwrap();
        put(&store, Table::Apps, "a", "new");
        let mut raw = sled::Batch::default();
        raw.insert(name, old);
        let written = store.with(|db| Ok(db.write(raw, 0).is_ok())).unwrap();
        assert!(written);
        assert_eq!(store.get::<String>(Table::Apps, "a").unwrap().as_deref(), Some("old"));
    }
    let opened = open_at(folder.path()).unwrap();
    let told = opened.notes.iter().any(
        |note| matches!(note, Note::Quarantined { cause, .. } if cause.contains("do not belong to its generation")),
    );
    assert!(told, "{:?}", opened.notes);
    assert_eq!(opened.store.get::<String>(Table::Apps, "a").unwrap(), None);
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
