//! The root record: which records belong together.
//!
//! sled checks each page, but a page that has lost its last changes still has a good checksum. The root is written with
//! every batch and holds a sum over all other records as they lie on disk, so that an old page beside a new one is
//! found when the store is opened. Adding and removing a record changes the sum without reading the others.

use pintle_model::{Digest, Problem, Reason};
use serde::{Deserialize, Serialize};

use super::codec::{self, Codec};
use super::database::Database;
use super::{GENERATION, Table};

/// What is known about all records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Root {
    /// Grows with every commit.
    pub(super) generation: u64,
    /// Sum over the records, in two halves.
    sum: (u64, u64),
    /// Bytes of all keys and values, as they lie on disk.
    #[serde(skip)]
    pub(super) live_bytes: u64,
}

impl Root {
    /// Of no records.
    pub(super) fn new(generation: u64) -> Self {
        Self { generation, ..Self::default() }
    }

    /// A record comes.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let (high, low) = of(key, value);
        self.sum = (self.sum.0.wrapping_add(high), self.sum.1.wrapping_add(low));
        self.live_bytes += (key.len() + value.len()) as u64;
    }

    /// A record goes.
    pub(super) fn remove(&mut self, key: &[u8], value: &[u8]) {
        let (high, low) = of(key, value);
        self.sum = (self.sum.0.wrapping_sub(high), self.sum.1.wrapping_sub(low));
        self.live_bytes = self.live_bytes.saturating_sub((key.len() + value.len()) as u64);
    }

    /// The root as a record.
    pub(super) fn seal(&self, codec: &Codec) -> Result<(Vec<u8>, Vec<u8>), Problem> {
        let mut plain = Vec::new();
        ciborium::into_writer(self, &mut plain).map_err(|error| {
            Problem::new(Reason::Internal, format!("the root record cannot be encoded: {error}"))
        })?;
        let sealed = codec.seal_head(Table::Meta, GENERATION, 0, &codec::pack(&plain)?)?;
        Ok((codec::head_key(Table::Meta, GENERATION), sealed))
    }

    /// Reads all records and holds them against the root record. `None`: there are none at all.
    pub(super) fn verify(db: &Database, codec: &Codec) -> Result<Option<Self>, Problem> {
        let own = codec::head_key(Table::Meta, GENERATION);
        let mut counted = Self::default();
        let mut any = false;
        for pair in db.pairs() {
            let (key, value) = pair?;
            any = true;
            if key != own {
                counted.add(&key, &value);
            }
        }
        if !any {
            return Ok(None);
        }
        let Some(raw) = db.get(&own)? else {
            return Err(Problem::new(Reason::StoreError, "the store has lost its root record"));
        };
        let head = codec.open_head(Table::Meta, GENERATION, &raw)?;
        let plain = codec::unpack(&head.bytes, GENERATION)?;
        let stored: Self = ciborium::from_reader(plain.as_slice()).map_err(|error| {
            Problem::new(Reason::StoreError, format!("the root record cannot be read: {error}"))
        })?;
        if stored.sum != counted.sum {
            return Err(Problem::new(
                Reason::StoreError,
                format!("the records of the store do not belong to its generation {}", stored.generation),
            ));
        }
        counted.generation = stored.generation;
        Ok(Some(counted))
    }
}

fn of(key: &[u8], value: &[u8]) -> (u64, u64) {
    let digest = Digest::of_parts([key, value]);
    let half = |at: usize| {
        digest.as_bytes()[at..at + 8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    (half(0), half(8))
}
