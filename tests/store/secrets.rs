//! No value lies on disk in the clear, wherever and however it was written.

use std::path::Path;

use pintle::store::{Batch, Note, Store, Table};

use super::support::{files, names, open_at, part, run_to_crash};

const MARKER: &str = "marker-of-a-secret-value";

/// Base64 of the marker at its three possible places in a longer text, without the bytes that depend on the rest.
const IN_BASE64: [&str; 3] =
    ["bWFya2VyLW9mLWEtc2VjcmV0LXZhbHV", "1hcmtlci1vZi1hLXNlY3JldC12YWx1", "tYXJrZXItb2YtYS1zZWNyZXQtdmFsdW"];

const TABLES: [Table; 8] = [
    Table::Apps,
    Table::Inventory,
    Table::Sets,
    Table::Operations,
    Table::Renders,
    Table::History,
    Table::Discovery,
    Table::Meta,
];

/// No file below the state directory holds the marker; the key is random bytes and is looked at like the others.
fn assert_hidden(state: &Path, after: &str) {
    let files = files(state);
    assert!(files.len() > 3);
    for (path, bytes) in files {
        for text in IN_BASE64.iter().chain([&MARKER]) {
            let clear = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!clear, "after {after}: {} holds {text}", path.display());
        }
    }
}

/// Every kind of record: too short to be deflated, and with several chunks.
fn write_everywhere(store: &Store) {
    let mut batch = Batch::new();
    for table in TABLES {
        batch.put(table, "short", MARKER).unwrap();
        let long: Vec<String> = (0..2_000).map(|n| format!("{MARKER} {:x}", n * 2_654_435_761_u64)).collect();
        batch.put(table, "long", &long).unwrap();
    }
    batch.put_blob(MARKER.as_bytes());
    batch.put_blob(MARKER.repeat(3_000).as_bytes());
    store.commit(batch).unwrap();
}

#[test]
fn no_value_lies_on_disk_in_the_clear_after_any_kind_of_write() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let store = open_at(state).unwrap().store;
    write_everywhere(&store);
    assert_hidden(state, "a commit");
    store.export().unwrap();
    let mut batch = Batch::new();
    batch.put(Table::Apps, "short", &format!("{MARKER} again")).unwrap();
    batch.delete(Table::History, "long");
    store.commit(batch).unwrap();
    store.export().unwrap();
    assert_eq!(names(&state.join("exports"), "").len(), 2);
    assert_hidden(state, "two exports");
    store.collect_blobs(&std::collections::HashSet::new()).unwrap();
    assert_hidden(state, "a collection");
    store.compact().unwrap();
    assert_hidden(state, "a compaction");
    drop(store);
    drop(open_at(state).unwrap());
    assert_hidden(state, "another start");
    for name in names(&state.join("db"), "snap.") {
        std::fs::write(state.join("db").join(name), "damaged").unwrap();
    }
    assert_eq!(open_at(state).unwrap().notes, [Note::SnapshotsMovedAside]);
    assert_hidden(state, "damaged snapshots");
    let db = state.join("db/db");
    let mut bytes = std::fs::read(&db).unwrap();
    bytes.iter_mut().step_by(97).for_each(|byte| *byte = !*byte);
    std::fs::write(&db, bytes).unwrap();
    let opened = open_at(state).unwrap();
    assert_eq!(names(state, "quarantine-").len(), 1);
    assert_eq!(opened.store.get::<String>(Table::Apps, "short").unwrap().unwrap(), format!("{MARKER} again"));
    assert_hidden(state, "a quarantine and a restore");
}

#[test]
fn what_a_killed_process_leaves_holds_no_value_in_the_clear() {
    for point in ["store-filled", "store-new", "store-aside", "store-swapped"] {
        let folder = tempfile::tempdir().unwrap();
        write_everywhere(&open_at(folder.path()).unwrap().store);
        run_to_crash(&mut part("store::kill::part_that_compacts", folder.path()), point);
        assert_hidden(folder.path(), point);
    }
}

#[test]
fn messages_about_damaged_records_hold_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    write_everywhere(&store);
    // Read as something that it is not.
    let problem = store.get::<Vec<u64>>(Table::Apps, "short").unwrap_err();
    assert!(!problem.message.contains(MARKER), "{problem}");
    let problem = store.get::<Vec<u64>>(Table::Apps, "long").unwrap_err();
    assert!(!problem.message.contains(MARKER), "{problem}");
}
