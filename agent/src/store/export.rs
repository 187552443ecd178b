//! Exports: two in turn, encrypted like everything else, written atomically. The small part that cannot be had again
//! from git or the cluster.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use pintle_model::Problem;
use serde::{Deserialize, Serialize};

use super::{Batch, GENERATION, Store, Table, codec, open};

/// Associated data of an export.
const NAME: &[u8] = b"pintle-export-1";

#[derive(Serialize, Deserialize)]
pub(super) struct Export {
    pub(super) generation: u64,
    /// (table prefix, key, plain bytes).
    records: Vec<(u8, String, Vec<u8>)>,
}

impl Store {
    /// Writes an export over the older of the two.
    pub fn export(&self) -> Result<(), Problem> {
        let mut export = Export { generation: self.generation(), records: Vec::new() };
        for table in Table::ALL.into_iter().filter(|table| table.is_essential()) {
            for key in self.keys(table, "")? {
                if let Some(bytes) = self.plain(table, &key)? {
                    export.records.push((table.prefix(), key, bytes));
                }
            }
        }
        let mut plain = Vec::new();
        ciborium::into_writer(&export, &mut plain).map_err(|error| {
            Problem::new(pintle_model::Reason::Internal, format!("the export cannot be encoded: {error}"))
        })?;
        let sealed = self.inner.codec.seal(NAME, &codec::pack(&plain)?)?;
        let folder = self.path().join("exports");
        let target = folder.join(format!("{}.export", export.generation % 2));
        let temporary = folder.join("new.export");
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(&sealed).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, &target))
            .map_err(|error| open::io(&target, "write", &error))?;
        open::sync_folder(&folder)
    }
}

/// The newest export that verifies.
pub(super) fn newest(store: &Store) -> Option<Export> {
    let folder = store.path().join("exports");
    ["0.export", "1.export"]
        .into_iter()
        .filter_map(|name| fs::read(folder.join(name)).ok())
        .filter_map(|raw| store.inner.codec.open(NAME, &raw).ok())
        .filter_map(|packed| codec::unpack(&packed, "export").ok())
        .filter_map(|plain| ciborium::from_reader::<Export, _>(plain.as_slice()).ok())
        .max_by_key(|export| export.generation)
}

/// Reads the newest export that verifies into the (new) store. Returns its generation.
pub(super) fn restore(store: &Store) -> Result<Option<u64>, Problem> {
    let Some(export) = newest(store) else { return Ok(None) };
    let mut batch = Batch::new();
    for (prefix, key, bytes) in export.records {
        let Some(table) = Table::ALL.into_iter().find(|table| table.prefix() == prefix) else { continue };
        if table == Table::Meta && key == GENERATION {
            continue;
        }
        batch.puts.insert((table, key), Some(bytes));
    }
    // It may be older than what the cluster holds: the inventory is always united with a rebuild.
    batch.delete(Table::Meta, "rebuilt");
    store.inner.generation.store(export.generation, std::sync::atomic::Ordering::SeqCst);
    store.commit(batch)?;
    Ok(Some(export.generation))
}
