//! At rest nothing is written: SD cards die of writes.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pintle::store::{Batch, Store, Table};

use super::support::{Rng, files, open_at};

/// Size and time of each file and folder.
fn stamps(path: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let meta = std::fs::metadata(&folder).unwrap();
        found.insert(folder.clone(), (0, meta.modified().unwrap()));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), (meta.len(), meta.modified().unwrap()));
            }
        }
    }
    found
}

fn everything() -> Batch {
    let mut rng = Rng(5);
    let mut batch = Batch::new();
    for table in [Table::Apps, Table::Inventory, Table::History, Table::Renders] {
        for record in 0..10 {
            let len = 10 + 1_500 * record as usize;
            batch.put(table, &format!("{record}"), &rng.text(len)).unwrap();
        }
    }
    batch.put_blob(rng.text(50_000).as_bytes());
    batch
}

/// All that an agent does whose world stands still.
fn rest(store: &Store) {
    store.commit(everything()).unwrap();
    store.commit(Batch::new()).unwrap();
    let mut batch = Batch::new();
    batch.delete(Table::Apps, "not there");
    store.commit(batch).unwrap();
    store.export().unwrap();
    let keep: HashSet<_> =
        store.keys(Table::Manifests, "").unwrap().iter().map(|key| key.parse().unwrap()).collect();
    assert_eq!(store.collect_blobs(&keep).unwrap(), 0);
    assert_eq!(store.scan::<String>(Table::History, "").unwrap().len(), 10);
    assert_eq!(store.check().1, [""; 0]);
    let _ = (store.generation(), store.size_on_disk(), store.mask_key());
}

#[test]
fn at_rest_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    let generation = store.commit(everything()).unwrap();
    store.export().unwrap();
    let (writes, stamps_before, files_before) = (store.writes(), stamps(folder.path()), files(folder.path()));
    for _ in 0..20 {
        rest(&store);
    }
    assert_eq!((store.generation(), store.writes()), (generation, writes));
    assert_eq!(stamps(folder.path()), stamps_before);
    assert_eq!(files(folder.path()), files_before);
}

#[test]
fn a_commit_writes_what_has_changed_and_little_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    store.commit(everything()).unwrap();
    let before = store.writes();
    let mut batch = everything();
    batch.put(Table::Apps, "3", "changed").unwrap();
    store.commit(batch).unwrap();
    let after = store.writes();
    assert_eq!((after.commits, after.syncs), (before.commits + 1, before.syncs + 1));
    // The record and the root.
    assert!(after.bytes - before.bytes < 400, "{}", after.bytes - before.bytes);
}

#[test]
fn an_open_and_close_changes_no_record_and_no_export() {
    let folder = tempfile::tempdir().unwrap();
    drop({
        let store = open_at(folder.path()).unwrap().store;
        store.commit(everything()).unwrap();
        store.export().unwrap();
        store
    });
    drop(open_at(folder.path()).unwrap());
    let (before, generation) = (stamps(folder.path()), open_at(folder.path()).unwrap().store.generation());
    let opened = open_at(folder.path()).unwrap();
    assert_eq!((opened.notes, opened.store.generation()), (vec![], generation));
    rest(&opened.store);
    let after = stamps(folder.path());
    for name in ["exports/0.export", "exports/1.export", "witness", "schema", "key"] {
        let path = folder.path().join(name);
        assert_eq!(after.get(&path), before.get(&path), "{name}");
    }
}
