//! The witness: what has been promised, beside the database.
//!
//! sled opens some damaged files without a word and shows an older state. The root record in the database tells when
//! its records do not belong together; only something outside of it can tell that all of them are old. So each
//! commit writes, after the database is on disk, its generation into one of two slots of a small file.
//!
//! # Guarantees
//! - A slot is one sector and has a checksum: a torn write leaves the other slot, one generation older.
//! - The file never grows after its creation: a full disk does not keep it from being written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// First bytes of a slot.
const MAGIC: [u8; 4] = *b"pwt1";
/// Distance of the slots: one page, so that one torn page cannot take both.
const SLOT: u64 = 4_096;
/// Magic, generation, checksum.
const LEN: usize = 16;

/// The open witness.
pub(super) struct Witness {
    file: File,
}

impl Witness {
    /// Opens or makes it. Returns the newest generation that was promised.
    pub(super) fn open(path: &Path) -> io::Result<(Self, u64)> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o640).open(path)?;
        if file.metadata()?.len() < 2 * SLOT {
            // Written and not only sized: a hole would need a free block later.
            file.write_all_at(&[0; 2 * SLOT as usize], 0)?;
            file.sync_all()?;
        }
        let promised = (0..2).filter_map(|slot| read(&file, slot)).max().unwrap_or(0);
        Ok((Self { file }, promised))
    }

    /// Promises a generation, durably.
    pub(super) fn promise(&self, generation: u64) -> io::Result<()> {
        let mut slot = [0_u8; LEN];
        slot[..4].copy_from_slice(&MAGIC);
        slot[4..12].copy_from_slice(&generation.to_be_bytes());
        let sum = crc32c::crc32c(&slot[..12]);
        slot[12..].copy_from_slice(&sum.to_be_bytes());
        self.file.write_all_at(&slot, generation % 2 * SLOT)?;
        self.file.sync_data()
    }
}

fn read(file: &File, slot: u64) -> Option<u64> {
    let mut bytes = [0_u8; LEN];
    file.read_exact_at(&mut bytes, slot * SLOT).ok()?;
    let (head, sum) = bytes.split_first_chunk::<12>()?;
    let (magic, generation) = head.split_first_chunk::<4>()?;
    let sound = *magic == MAGIC && crc32c::crc32c(head).to_be_bytes() == *sum;
    sound.then(|| u64::from_be_bytes(generation.try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_promise_is_found_and_a_torn_slot_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        let (witness, none) = Witness::open(&path).unwrap();
        assert_eq!(none, 0);
        for generation in 1..=7 {
            witness.promise(generation).unwrap();
        }
        assert_eq!(Witness::open(&path).unwrap().1, 7);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4_096 + 9] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Witness::open(&path).unwrap().1, 6);
    }
}
