//! Exports: two in turn, encrypted like everything else, written atomically. The small part that cannot be had again
//! from git or the cluster.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pintle_model::{Problem, Reason};
use serde::{Deserialize, Serialize};

use super::codec::{self, Codec};
use super::{GENERATION, Store, Table, failure, lock, opened_again};

/// Associated data of an export.
const NAME: &[u8] = b"pintle-export-1";
/// Linux numbers of what keeps a file from being read although nothing is wrong with it: EPERM, ENOMEM, EACCES,
/// ENFILE, EMFILE.
const NOT_ITS_FAULT: [i32; 5] = [1, 12, 13, 23, 24];

#[derive(Serialize, Deserialize)]
pub(super) struct Export {
    pub(super) generation: u64,
    /// (table prefix, key, plain bytes).
    pub(super) records: Vec<(u8, String, Vec<u8>)>,
}

impl Store {
    /// Writes an export over the older of the two, unless nothing was committed since the last; then compacts the
    /// database when it has grown far beyond what is alive.
    pub fn export(&self) -> Result<(), Problem> {
        let turn = opened_again(self.inner.turn.lock());
        let written = self.write_export();
        // A full disk keeps the export from being written, and compaction is what makes room.
        let compacted = self.compact_if_due(&turn);
        written.and(compacted)
    }

    pub(super) fn write_export(&self) -> Result<(), Problem> {
        let mut slots = opened_again(self.inner.exports.lock());
        let mut export = Export { generation: self.generation(), records: Vec::new() };
        if slots.contains(&export.generation) {
            return Ok(());
        }
        for table in Table::ALL.into_iter().filter(|table| table.is_essential()) {
            for key in self.keys(table, "")? {
                if table == Table::Meta && key == GENERATION {
                    continue;
                }
                if let Some(bytes) = self.plain(table, &key)? {
                    export.records.push((table.prefix(), key, bytes));
                }
            }
        }
        let mut plain = Vec::new();
        ciborium::into_writer(&export, &mut plain).map_err(|error| {
            Problem::new(Reason::Internal, format!("the export cannot be encoded: {error}"))
        })?;
        let sealed = self.inner.codec.seal(NAME, &codec::pack(&plain)?)?;
        let slot = usize::from(slots[1] < slots[0]);
        let target = name(self.path(), slot);
        lock::write_whole(&target, &sealed, 0o600).map_err(|error| failure::io(&target, "write", &error))?;
        slots[slot] = export.generation;
        Ok(())
    }
}

/// The exports that verify.
#[derive(Default)]
pub(super) struct Exports {
    /// Generation of each; 0 where there is none.
    pub(super) slots: [u64; 2],
    /// The newest.
    pub(super) newest: Option<Export>,
}

impl Exports {
    /// Reads both.
    pub(super) fn read(path: &Path, codec: &Codec) -> Result<Self, Problem> {
        let mut found = Self::default();
        for slot in 0..2 {
            let Some(export) = read(&name(path, slot), codec)? else { continue };
            found.slots[slot] = export.generation;
            if found.newest.as_ref().is_none_or(|newest| newest.generation < export.generation) {
                found.newest = Some(export);
            }
        }
        Ok(found)
    }
}

/// One export; `None` when it is not there or damaged: then there is the other.
fn read(path: &Path, codec: &Codec) -> Result<Option<Export>, Problem> {
    let raw = match fs::read(path) {
        Ok(raw) => raw,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error().is_some_and(|number| NOT_ITS_FAULT.contains(&number)) => {
            return Err(failure::io(path, "read", &error));
        }
        Err(_) => return Ok(None),
    };
    let plain = codec.open(NAME, &raw).and_then(|packed| codec::unpack(&packed, "export"));
    Ok(plain.ok().and_then(|plain| ciborium::from_reader(plain.as_slice()).ok()))
}

fn name(path: &Path, slot: usize) -> PathBuf {
    path.join("exports").join(format!("{slot}.export"))
}
