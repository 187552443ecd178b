//! Committing: what a batch changes, written at once, acknowledged when it is on disk.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pintle_model::{Digest, Problem, Reason};
use serde::Serialize;

use super::database::{Database, WriteFailure};
use super::root::Root;
use super::{Store, Table, codec, opened_again};

/// Changes that are committed together.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) puts: BTreeMap<(Table, String), Option<Vec<u8>>>,
    pub(super) blobs: BTreeMap<Digest, Vec<u8>>,
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

/// What a batch changes, ready for sled.
struct Staged {
    raw: sled::Batch,
    bytes: u64,
    root: Root,
    changed: bool,
}

impl Store {
    /// Writes a batch; durable when it returns. Returns the generation.
    ///
    /// # Errors
    /// The disk is full or fails. Nothing of the batch is there then, or (when only the last fsync failed) all of it;
    /// the same batch can be committed again.
    pub fn commit(&self, batch: Batch) -> Result<u64, Problem> {
        let _turn = opened_again(self.inner.turn.lock());
        let staged = self.with(|db| self.stage_all(db, &batch))?;
        if !staged.changed {
            return Ok(self.generation());
        }
        let Staged { raw, bytes, root, .. } = staged;
        match self.with(|db| Ok(db.write(raw, bytes)))? {
            Ok(()) => {}
            Err(WriteFailure::Refused(problem)) => return Err(problem),
            Err(WriteFailure::Broken(problem)) => {
                // What sled has in memory is not what is on disk: the next access opens it anew.
                self.forget();
                return Err(problem);
            }
        }
        *opened_again(self.inner.root.lock()) = root;
        // The batch is on disk. A witness that cannot be written makes a loss harder to notice, and is no loss.
        if let Err(error) = self.inner.witness.promise(root.generation) {
            tracing::warn!("{} cannot be written: {error}", self.path().join("witness").display());
        }
        self.inner.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.syncs.fetch_add(1, Ordering::SeqCst);
        self.inner.bytes.fetch_add(bytes, Ordering::SeqCst);
        Ok(root.generation)
    }

    fn stage_all(&self, db: &Database, batch: &Batch) -> Result<Staged, Problem> {
        let root = *opened_again(self.inner.root.lock());
        let mut staged = Staged { raw: sled::Batch::default(), bytes: 0, root, changed: false };
        for (digest, blob) in &batch.blobs {
            let key = digest.to_string();
            if self.head(db, Table::Manifests, &key)?.is_none() {
                self.stage(db, &mut staged, Table::Manifests, &key, Some(blob))?;
            }
        }
        for ((table, key), value) in &batch.puts {
            if self.plain_in(db, *table, key)?.as_deref() != value.as_deref() {
                self.stage(db, &mut staged, *table, key, value.as_deref())?;
            }
        }
        staged.root.generation += 1;
        let (key, sealed) = staged.root.seal(&self.inner.codec)?;
        staged.bytes += sealed.len() as u64;
        staged.raw.insert(key, sealed);
        Ok(staged)
    }

    /// Puts a record in the place of the old one: old chunks that are no longer used go.
    fn stage(
        &self,
        db: &Database,
        staged: &mut Staged,
        table: Table,
        key: &str,
        value: Option<&[u8]>,
    ) -> Result<(), Problem> {
        staged.changed = true;
        if let Some(head) = self.head(db, table, key)? {
            let chunks = (0..head.chunks).map(|chunk| codec::chunk_key(table, key, chunk));
            for name in chunks.chain([codec::head_key(table, key)]) {
                if let Some(old) = db.get(&name)? {
                    staged.root.remove(&name, &old);
                }
                // A later insert of the same key in the batch wins.
                staged.raw.remove(name);
            }
        }
        if let Some(value) = value {
            for (name, sealed) in self.inner.codec.seal_record(table, key, value)? {
                staged.root.add(&name, &sealed);
                staged.bytes += sealed.len() as u64;
                staged.raw.insert(name, sealed);
            }
        }
        Ok(())
    }
}
