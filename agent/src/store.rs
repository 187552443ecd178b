//! The embedded store: records and content-addressed blobs in one sled tree, encrypted, checksummed, written at
//! commit points only. All sled calls are in `database`.
//!
//! # Guarantees
//! - A commit is atomic, and on disk when `commit` returns.
//! - A batch that changes nothing writes nothing.
//! - A store that is older than what it had acknowledged, or holds records that do not belong together, says so.
//! - A damaged store is moved aside, never deleted; one that is held, unreadable for another reason, or of a newer
//!   schema is left alone and named.
//! - After a failure (a full disk) the next commit works when its cause is gone, without a restart.
//! - Values of every record are encrypted and bound to their key.

mod codec;
mod commit;
mod compact;
mod database;
mod export;
mod failure;
mod lock;
mod open;
mod root;
mod spare;
mod swap;
#[cfg(test)]
mod tests;
mod witness;

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LockResult, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pintle_model::{Digest, Problem, Reason};
use serde::de::DeserializeOwned;

use codec::Codec;
pub use commit::Batch;
pub use compact::Compacted;
use database::{Database, OpenFailure};
pub use open::{Note, Opened, open};
use root::Root;
use witness::Witness;

/// Version of the layout; a store of a newer one is refused.
pub const SCHEMA: u32 = 1;
/// Meta key: the inventory has been united with the cluster's. A store that is not what it was lacks it.
pub const REBUILT: &str = "rebuilt";
/// Meta key: the generations that were known, and found, when commits were lost for the last time.
const COMMITS_LOST: &str = "commits-lost";
const GENERATION: &str = "generation";
const SCHEMA_KEY: &str = "schema";

/// Kinds of records, each with its key prefix in the one tree (batches are atomic only within a tree).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Schema version, generation, cluster UID, refs.
    Meta,
    /// Applications.
    Apps,
    /// Inventories.
    Inventory,
    /// Owned sets, by digest.
    Sets,
    /// Journal of running operations.
    Operations,
    /// Renders, by digest.
    Renders,
    /// History.
    History,
    /// Content-addressed blobs in chunks.
    Manifests,
    /// Kinds of the cluster, for a start without it.
    Discovery,
    /// What objects were before they were deleted, replaced or made anew.
    Backups,
}

impl Table {
    fn prefix(self) -> u8 {
        match self {
            Self::Meta => b'm',
            Self::Apps => b'a',
            Self::Inventory => b'i',
            Self::Sets => b's',
            Self::Operations => b'o',
            Self::Renders => b'r',
            Self::History => b'h',
            Self::Manifests => b'b',
            Self::Discovery => b'd',
            Self::Backups => b'k',
        }
    }

    /// Is it part of an export? What can be had again from git or the cluster is not.
    fn is_essential(self) -> bool {
        !matches!(self, Self::Manifests | Self::Discovery | Self::Renders | Self::Backups)
    }

    const ALL: [Self; 10] = [
        Self::Meta,
        Self::Apps,
        Self::Inventory,
        Self::Sets,
        Self::Operations,
        Self::Renders,
        Self::History,
        Self::Manifests,
        Self::Discovery,
        Self::Backups,
    ];
}

/// Where and how to open.
#[derive(Debug, Clone)]
pub struct Options {
    /// State directory: `db/`, `git/`, `apps.d/`, `exports/`, `key`.
    pub path: PathBuf,
    /// Key from a systemd credential, instead of `key` in the state directory.
    pub key_file: Option<PathBuf>,
    /// How long to wait for another holder to end.
    pub wait_for_lock: Duration,
}

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// Empty after a failure: the next access opens it anew.
    slot: RwLock<Option<Database>>,
    codec: Codec,
    root: Mutex<Root>,
    commits: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    /// Commits are serialised: two must not interleave their generation.
    turn: Mutex<()>,
    /// Generations of the two exports.
    exports: Mutex<[u64; 2]>,
    /// When the database was last rewritten.
    compacted: Mutex<Option<Instant>>,
    witness: Witness,
    _lock: File,
}

/// Counters of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Commits that wrote something.
    pub commits: u64,
    /// Bytes given to the database.
    pub bytes: u64,
    /// fsyncs of the database file.
    pub syncs: u64,
}

impl Store {
    /// A record.
    pub fn get<T: DeserializeOwned>(&self, table: Table, key: &str) -> Result<Option<T>, Problem> {
        match self.plain(table, key)? {
            Some(bytes) => Self::decode(table, key, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// All records whose key begins with `prefix`, sorted by key.
    pub fn scan<T: DeserializeOwned>(&self, table: Table, prefix: &str) -> Result<Vec<(String, T)>, Problem> {
        self.keys(table, prefix)?
            .into_iter()
            .filter_map(|key| match self.get(table, &key) {
                Ok(Some(value)) => Some(Ok((key, value))),
                Ok(None) => None,
                Err(problem) => Some(Err(problem)),
            })
            .collect()
    }

    /// Keys that begin with `prefix`, sorted.
    pub fn keys(&self, table: Table, prefix: &str) -> Result<Vec<String>, Problem> {
        let start = codec::head_key(table, prefix);
        self.with(|db| {
            let mut keys = Vec::new();
            for raw in db.keys(&start) {
                keys.extend(codec::head_of(&raw?));
            }
            Ok(keys)
        })
    }

    /// A blob; its digest is checked.
    pub fn get_blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, Problem> {
        let Some(bytes) = self.plain(Table::Manifests, &digest.to_string())? else { return Ok(None) };
        if Digest::of(&bytes) != digest {
            return Err(Problem::new(
                Reason::StoreError,
                format!(
                    "the stored manifest {} is damaged; `pintle app get --hard-refresh` renders it anew",
                    digest.short(12)
                ),
            ));
        }
        Ok(Some(bytes))
    }

    /// Removes blobs that nobody names any more. Returns how many.
    pub fn collect_blobs(&self, keep: &HashSet<Digest>) -> Result<usize, Problem> {
        let mut batch = Batch::new();
        let mut count = 0;
        for key in self.keys(Table::Manifests, "")? {
            if key.parse::<Digest>().is_ok_and(|digest| !keep.contains(&digest)) {
                batch.delete(Table::Manifests, &key);
                count += 1;
            }
        }
        if count > 0 {
            self.commit(batch)?;
        }
        Ok(count)
    }

    /// Reads every record. Returns how many there are and what is wrong.
    pub fn check(&self) -> (u64, Vec<String>) {
        let mut count = 0;
        let mut problems = Vec::new();
        for table in Table::ALL {
            match self.keys(table, "") {
                Ok(keys) => {
                    for key in keys {
                        count += 1;
                        if let Err(problem) = self.plain(table, &key) {
                            problems.push(problem.message);
                        }
                    }
                }
                Err(problem) => problems.push(problem.message),
            }
        }
        (count, problems)
    }

    /// Grows with every commit that changes something.
    pub fn generation(&self) -> u64 {
        opened_again(self.inner.root.lock()).generation
    }

    /// Bytes of the database on disk.
    pub fn size_on_disk(&self) -> u64 {
        self.with(|db| Ok(db.size())).unwrap_or_default()
    }

    /// What was written since the store was opened.
    pub fn writes(&self) -> Writes {
        Writes {
            commits: self.inner.commits.load(Ordering::SeqCst),
            bytes: self.inner.bytes.load(Ordering::SeqCst),
            syncs: self.inner.syncs.load(Ordering::SeqCst),
        }
    }

    /// A key for masks of secret values, derived from the store's own: stable on this node, unknown elsewhere.
    pub fn mask_key(&self) -> Vec<u8> {
        self.inner.codec.derived(b"mask")
    }

    /// The state directory.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Works with the database; opens it anew first if it failed before.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, Problem>) -> Result<T, Problem> {
        let slot = opened_again(self.inner.slot.read());
        if let Some(db) = slot.as_ref() {
            return work(db);
        }
        drop(slot);
        self.reopen()?;
        match opened_again(self.inner.slot.read()).as_ref() {
            Some(db) => work(db),
            None => Err(self.problem("is being opened anew")),
        }
    }

    fn reopen(&self) -> Result<(), Problem> {
        let mut slot = opened_again(self.inner.slot.write());
        if slot.is_some() {
            return Ok(());
        }
        let folder = self.path().join("db");
        let (db, root) = open::sound(&folder, &self.inner.codec).map_err(|failure| match failure {
            OpenFailure::Damaged(text) => {
                self.problem(&format!("is damaged (restart pintle to restore it): {text}"))
            }
            failure => failure.of_ours(&folder),
        })?;
        let mut known = opened_again(self.inner.root.lock());
        if root.generation < known.generation {
            db.close();
            return Err(self.problem("has lost commits; restart pintle to rebuild it"));
        }
        *known = root;
        *slot = Some(db);
        Ok(())
    }

    /// Forgets the open database; the next access opens it anew.
    fn forget(&self) {
        if let Some(db) = opened_again(self.inner.slot.write()).take() {
            db.close();
        }
    }

    fn problem(&self, what: &str) -> Problem {
        Problem::new(Reason::StoreError, format!("the store at {} {what}", self.path().display()))
    }

    fn decode<T: DeserializeOwned>(table: Table, key: &str, bytes: &[u8]) -> Result<T, Problem> {
        ciborium::from_reader(bytes).map_err(|error| {
            Problem::new(
                Reason::StoreError,
                format!("the record {key:?} of {table:?} cannot be read: {error}"),
            )
        })
    }

    /// The first part of a record.
    fn head(&self, db: &Database, table: Table, key: &str) -> Result<Option<codec::Head>, Problem> {
        let raw = db.get(&codec::head_key(table, key))?;
        raw.map(|raw| self.inner.codec.open_head(table, key, &raw)).transpose()
    }

    /// The plain bytes of a record.
    fn plain(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, Problem> {
        self.with(|db| self.plain_in(db, table, key))
    }

    fn plain_in(&self, db: &Database, table: Table, key: &str) -> Result<Option<Vec<u8>>, Problem> {
        let Some(head) = self.head(db, table, key)? else { return Ok(None) };
        let mut packed = head.bytes;
        for chunk in 0..head.chunks {
            let name = codec::chunk_key(table, key, chunk);
            let raw = db.get(&name)?.ok_or_else(|| {
                Problem::new(
                    Reason::StoreError,
                    format!("the record {key:?} of {table:?} has lost chunk {chunk}"),
                )
            })?;
            packed.extend(self.inner.codec.open(&name, &raw)?);
        }
        codec::unpack(&packed, key).map(Some)
    }
}

/// A thread that panicked with the lock has not left anything half-done: what is behind these locks is set as a whole.
fn opened_again<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
