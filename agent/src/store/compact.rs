//! Compaction: export, a new database with what is alive, and a swap. sled frees segments late; what has once grown
//! stays on disk.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use pintle_model::{Problem, Reason};

use super::database::Database;
use super::root::Root;
use super::swap::{self, Old};
use super::{Store, opened_again};

/// Below this many bytes on disk it does not pay.
const FROM_BYTES: u64 = 64 << 20;
/// sled needs two to four times what is alive; more is waste.
const FACTOR: u64 = 8;
/// It costs a write of all that is alive, so at most so often.
const PAUSE: Duration = Duration::from_hours(24);

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes on disk before.
    pub before: u64,
    /// Bytes on disk after.
    pub after: u64,
}

/// Does it pay? `since`: the time since the last one of this process.
fn is_due(disk: u64, live: u64, since: Option<Duration>) -> bool {
    disk > FROM_BYTES.max(live.saturating_mul(FACTOR)) && since.is_none_or(|since| since >= PAUSE)
}

impl Store {
    /// Rewrites the database with what is alive. Readers wait only while it is put in place.
    pub fn compact(&self) -> Result<Compacted, Problem> {
        let turn = opened_again(self.inner.turn.lock());
        self.write_export()?;
        self.compact_now(&turn)
    }

    /// The time of the last try and not of the last success: one that fails for want of room must not be repeated
    /// with every operation. By the monotonic clock, as wall clocks jump.
    pub(super) fn compact_if_due(&self, turn: &MutexGuard<'_, ()>) -> Result<(), Problem> {
        let mut last = opened_again(self.inner.compacted.lock());
        let live = opened_again(self.inner.root.lock()).live_bytes;
        if !is_due(self.size_on_disk(), live, last.map(|last| last.elapsed())) {
            return Ok(());
        }
        *last = Some(Instant::now());
        let Compacted { before, after } = self.compact_now(turn)?;
        tracing::info!("the store was compacted from {} to {} KiB", before / 1_024, after / 1_024);
        Ok(())
    }

    /// `_turn`: nothing may be committed between the copy and the swap.
    fn compact_now(&self, _turn: &MutexGuard<'_, ()>) -> Result<Compacted, Problem> {
        let before = self.size_on_disk();
        let path = self.path();
        self.with(|db| swap::fill(path, db.pairs()))?;
        self.verify_new()?;
        {
            let mut slot = opened_again(self.inner.slot.write());
            if let Some(db) = slot.take() {
                db.close();
            }
            if let Err(problem) = swap::swap(path, Old::Remove) {
                swap::settle(path)?;
                return Err(problem);
            }
        }
        self.with(|_| Ok(()))?;
        Ok(Compacted { before, after: self.size_on_disk() })
    }

    /// The old database goes only for one that has been read back.
    fn verify_new(&self) -> Result<(), Problem> {
        let path = self.path().join("db.new");
        let db = Database::open(&path).map_err(|failure| failure.of_ours(&path))?;
        let copy = Root::verify(&db, &self.inner.codec);
        db.close();
        if copy? == Some(*opened_again(self.inner.root.lock())) {
            return Ok(());
        }
        Err(Problem::new(Reason::StoreError, format!("the copy at {} is not the store", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_when_the_disk_holds_far_more_than_is_alive_and_once_a_day() {
        let mib = 1 << 20;
        assert!(!is_due(64 * mib, mib, None));
        assert!(is_due(65 * mib, mib, None));
        assert!(!is_due(65 * mib, 10 * mib, None));
        assert!(is_due(81 * mib, 10 * mib, None));
        assert!(!is_due(81 * mib, 10 * mib, Some(PAUSE / 2)));
        assert!(is_due(81 * mib, 10 * mib, Some(PAUSE)));
    }
}
