//! The embedded store: records and content-addressed blobs in one sled tree, encrypted, checksummed, written at
//! commit points only. All sled calls are here.
//!
//! Guarantees
//! - A commit is atomic, and on disk when `commit` returns: sled's own flush does not reach the disk (it calls
//!   `sync_file_range`), so its file is fsynced here after every batch.
//! - A batch that changes nothing writes nothing.
//! - A damaged store is moved aside, never deleted; one that is held, unreadable for another reason, or of a newer
//!   schema is left alone and named.
//! - Values of every record are encrypted and bound to their key.

mod codec;
mod export;
mod open;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use pintle_model::{Digest, Problem, Reason, limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

use codec::Codec;
pub use open::{Note, Opened, open};

/// Version of the layout; a store of a newer one is refused.
pub const SCHEMA: u32 = 1;

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
    db: RwLock<Option<sled::Db>>,
    codec: Codec,
    /// Digest of the plain bytes of each small record, to tell what a batch would change without decrypting.
    generation: AtomicU64,
    commits: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    /// Commits are serialised: two must not interleave their generation.
    commit: Mutex<()>,
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

/// Changes that are committed together.
#[derive(Debug, Default)]
pub struct Batch {
    puts: BTreeMap<(Table, String), Option<Vec<u8>>>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a record.
    pub fn put<T: Serialize + ?Sized>(&mut self, table: Table, key: &str, value: &T) -> Result<(), Problem> {
        let mut bytes = Vec::new();
        ciborium::into_writer(value, &mut bytes).map_err(|error| {
            Problem::new(Reason::Internal, format!("the record {key:?} cannot be encoded: {error}"))
        })?;
        self.puts.insert((table, key.to_owned()), Some(bytes));
        Ok(())
    }

    /// Removes a record.
    pub fn delete(&mut self, table: Table, key: &str) {
        self.puts.insert((table, key.to_owned()), None);
    }

    /// Writes a blob under its digest; one that is there already is not written again.
    pub fn put_blob(&mut self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        self.blobs.entry(digest).or_insert_with(|| bytes.to_vec());
        digest
    }

    /// Nothing in it?
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.blobs.is_empty()
    }
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
        let db = self.db()?;
        let mut keys = Vec::new();
        for item in db.scan_prefix(&start).keys() {
            let raw = item.map_err(|error| self.failed("read", &error))?;
            if let Some(key) = codec::head_of(&raw) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Writes a batch; durable when it returns. Returns the generation.
    pub fn commit(&self, batch: Batch) -> Result<u64, Problem> {
        let _turn = self.inner.commit.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let db = self.db()?;
        let mut raw = sled::Batch::default();
        let mut bytes = 0_u64;
        let mut changed = false;
        for (digest, blob) in &batch.blobs {
            let key = digest.to_string();
            if self.head(&db, Table::Manifests, &key)?.is_none() {
                changed = true;
                bytes += self.stage(&db, &mut raw, Table::Manifests, &key, Some(blob))?;
            }
        }
        for ((table, key), value) in &batch.puts {
            let old = self.plain(*table, key)?;
            if old.as_deref() == value.as_deref() {
                continue;
            }
            changed = true;
            bytes += self.stage(&db, &mut raw, *table, key, value.as_deref())?;
        }
        let generation = self.inner.generation.load(Ordering::SeqCst);
        if !changed {
            return Ok(generation);
        }
        let next = generation + 1;
        let mut encoded = Vec::new();
        ciborium::into_writer(&next, &mut encoded).map_err(|error| {
            Problem::new(Reason::Internal, format!("the generation cannot be encoded: {error}"))
        })?;
        bytes += self.stage(&db, &mut raw, Table::Meta, GENERATION, Some(&encoded))?;
        let written = db.apply_batch(raw).and_then(|()| db.flush().map(|_| ()));
        if let Err(error) = written {
            // sled may be stuck after a full disk: the next access opens it anew.
            drop(db);
            self.reopen();
            return Err(self.failed("write", &error));
        }
        self.sync()?;
        self.inner.generation.store(next, Ordering::SeqCst);
        self.inner.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.bytes.fetch_add(bytes, Ordering::SeqCst);
        Ok(next)
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
        self.inner.generation.load(Ordering::SeqCst)
    }

    /// Bytes of the database on disk.
    pub fn size_on_disk(&self) -> u64 {
        self.db().ok().and_then(|db| db.size_on_disk().ok()).unwrap_or_default()
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

    fn db(&self) -> Result<sled::Db, Problem> {
        if let Some(db) = self.inner.db.read().unwrap_or_else(std::sync::PoisonError::into_inner).as_ref() {
            return Ok(db.clone());
        }
        let mut slot = self.inner.db.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(db) = slot.as_ref() {
            return Ok(db.clone());
        }
        let db = open::open_sled(&self.inner.path.join("db")).map_err(|error| match error {
            open::SledFailure::Io(error) => self.failed("open", &sled::Error::Io(error)),
            open::SledFailure::Corrupt(text) => Problem::new(
                Reason::StoreError,
                format!("the store at {} is damaged: {text}", self.inner.path.display()),
            ),
        })?;
        *slot = Some(db.clone());
        Ok(db)
    }

    /// Forgets the open database; the next access opens it anew.
    fn reopen(&self) {
        *self.inner.db.write().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    fn sync(&self) -> Result<(), Problem> {
        let path = self.inner.path.join("db").join("db");
        // fsync on any descriptor of the inode is enough.
        let result = File::open(&path).and_then(|file| file.sync_all());
        self.inner.syncs.fetch_add(1, Ordering::SeqCst);
        result.map_err(|error| {
            Problem::new(Reason::StoreError, format!("{} cannot be synced: {error}", path.display()))
        })
    }

    fn failed(&self, what: &str, error: &sled::Error) -> Problem {
        Problem::new(
            Reason::StoreError,
            format!("cannot {what} the store at {}: {error}", self.inner.path.display()),
        )
    }

    fn decode<T: DeserializeOwned>(table: Table, key: &str, bytes: &[u8]) -> Result<T, Problem> {
        ciborium::from_reader(bytes).map_err(|error| {
            Problem::new(
                Reason::StoreError,
                format!("the record {key:?} of {table:?} cannot be read: {error}"),
            )
        })
    }

    /// The number of chunks of a record, from its head.
    fn head(&self, db: &sled::Db, table: Table, key: &str) -> Result<Option<codec::Head>, Problem> {
        let raw = db.get(codec::head_key(table, key)).map_err(|error| self.failed("read", &error))?;
        raw.map(|raw| self.inner.codec.open_head(table, key, &raw)).transpose()
    }

    /// The plain bytes of a record.
    fn plain(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, Problem> {
        let db = self.db()?;
        let Some(head) = self.head(&db, table, key)? else { return Ok(None) };
        let mut packed = head.bytes;
        for chunk in 0..head.chunks {
            let name = codec::chunk_key(table, key, chunk);
            let raw = db.get(&name).map_err(|error| self.failed("read", &error))?;
            let raw = raw.ok_or_else(|| {
                Problem::new(
                    Reason::StoreError,
                    format!("the record {key:?} of {table:?} has lost chunk {chunk}"),
                )
            })?;
            packed.extend(self.inner.codec.open(&name, &raw)?);
        }
        codec::unpack(&packed, key).map(Some)
    }

    /// Puts a record into a raw batch: head and chunks; old chunks that are no longer used go.
    fn stage(
        &self,
        db: &sled::Db,
        raw: &mut sled::Batch,
        table: Table,
        key: &str,
        value: Option<&[u8]>,
    ) -> Result<u64, Problem> {
        let old = self.head(db, table, key)?.map_or(0, |head| head.chunks);
        let mut new = 0;
        let mut bytes = 0;
        match value {
            None => raw.remove(codec::head_key(table, key)),
            Some(value) => {
                let packed = codec::pack(value)?;
                let (first, rest) = packed.split_at(packed.len().min(limits::STORE_VALUE_MAX_BYTES));
                for (index, chunk) in rest.chunks(limits::STORE_VALUE_MAX_BYTES).enumerate() {
                    let name = codec::chunk_key(table, key, index as u32);
                    let sealed = self.inner.codec.seal(&name, chunk)?;
                    bytes += sealed.len() as u64;
                    raw.insert(name, sealed);
                    new = index as u32 + 1;
                }
                let sealed = self.inner.codec.seal_head(table, key, new, first)?;
                bytes += sealed.len() as u64;
                raw.insert(codec::head_key(table, key), sealed);
            }
        }
        for chunk in new..old {
            raw.remove(codec::chunk_key(table, key, chunk));
        }
        Ok(bytes)
    }
}

const GENERATION: &str = "generation";
const SCHEMA_KEY: &str = "schema";
