//! Keeps a cache small without the network: what the kept revisions reach goes into one pack of a new cache.
//!
//! gix has no garbage collection, and every fetch adds a pack, a ref and a line of `shallow`, which are sent with each
//! later fetch. A line of `shallow` may not simply be dropped: while the commit is there, it is told to the server as
//! ours, and the server would then leave out files that only its history has.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix::objs::Kind;
use gix::odb::pack;
use gix::refs::transaction::PreviousValue;
use pintle_model::Revision;

use super::cache::{Cache, REF_PREFIX, object_id};

/// Why a cache was not compacted; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// Reading the old or writing the new cache by gix.
    #[error("{0:#}")]
    Git(#[from] gix::Error),
    /// Files of the new cache.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The new cache could not be made.
    #[error(transparent)]
    Create(#[from] pintle_model::Problem),
}

/// Replaces `cache` by one that holds only `keep`. The caller holds the cache's lock.
pub fn compact(cache: &Cache, keep: &[Revision]) -> Result<(), CompactError> {
    let Some(old) = cache.open()? else { return Ok(()) };
    let new = cache.create_beside()?;
    let written = write_new(&old, &new, keep);
    drop((old, new));
    match written {
        Ok(()) => Ok(cache.replace()?),
        Err(error) => {
            cache.remove_beside()?;
            Err(error)
        }
    }
}

fn write_new(old: &gix::Repository, new: &gix::Repository, keep: &[Revision]) -> Result<(), CompactError> {
    let reachable = Reachable::of(old, keep)?;
    write_pack(old, &reachable.objects, new.objects.store_ref().path())?;
    if !reachable.shallow.is_empty() {
        let lines: String = reachable.shallow.iter().map(|id| format!("{id}\n")).collect::<Vec<_>>().concat();
        std::fs::write(new.git_dir().join("shallow"), lines)?;
    }
    for revision in keep {
        new.reference(format!("{REF_PREFIX}{revision}"), object_id(*revision), PreviousValue::Any, "")?;
    }
    Ok(())
}

/// Objects of some commits, without their history.
struct Reachable {
    objects: Vec<gix::ObjectId>,
    /// The commits that have parents.
    shallow: Vec<gix::ObjectId>,
}

impl Reachable {
    fn of(repository: &gix::Repository, commits: &[Revision]) -> Result<Self, gix::Error> {
        let mut reachable = Self { objects: Vec::new(), shallow: Vec::new() };
        let mut seen = HashSet::new();
        let mut trees = Vec::new();
        for revision in commits {
            let commit = repository.find_commit(object_id(*revision))?;
            if seen.insert(commit.id) {
                reachable.objects.push(commit.id);
                if commit.parent_ids().next().is_some() {
                    reachable.shallow.push(commit.id);
                }
                trees.push(commit.tree_id()?.detach());
            }
        }
        while let Some(id) = trees.pop() {
            if !seen.insert(id) {
                continue;
            }
            reachable.objects.push(id);
            let tree = repository.find_tree(id)?;
            for entry in &tree.decode()?.entries {
                let id = entry.oid.to_owned();
                if entry.mode.is_tree() {
                    trees.push(id);
                } else if !entry.mode.is_commit() && seen.insert(id) {
                    reachable.objects.push(id);
                }
            }
        }
        Ok(reachable)
    }
}

/// Writes a pack of whole objects (no deltas: configuration is small, and each fetch brings deltas again) and its
/// index below `objects_dir`.
fn write_pack(
    old: &gix::Repository,
    objects: &[gix::ObjectId],
    objects_dir: &Path,
) -> Result<(), CompactError> {
    let pack_dir = objects_dir.join("pack");
    let raw_path = pack_dir.join("raw");
    let raw = File::options().read(true).write(true).create_new(true).open(&raw_path)?;
    let mut out =
        HashingWriter { inner: BufWriter::new(&raw), hasher: gix::hash::hasher(gix::hash::Kind::Sha1) };
    let count = u32::try_from(objects.len()).map_err(io::Error::other)?;
    out.write_all(b"PACK\0\0\0\x02")?;
    out.write_all(&count.to_be_bytes())?;
    for id in objects {
        let object = old.find_object(*id)?;
        out.write_all(&entry_header(object.kind, object.data.len()))?;
        let mut encoder = ZlibEncoder::new(&mut out, Compression::default());
        encoder.write_all(&object.data)?;
        encoder.finish()?;
    }
    let HashingWriter { mut inner, hasher } = out;
    inner.write_all(hasher.try_finalize()?.as_slice())?;
    inner.flush()?;
    drop(inner);
    (&raw).seek(SeekFrom::Start(0))?;
    let outcome = pack::Bundle::write_to_directory(
        &mut BufReader::new(&raw),
        Some(&pack_dir),
        &mut gix::progress::Discard,
        &AtomicBool::new(false),
        None::<gix::OdbHandle>,
        gix::hash::Kind::Sha1,
        pack::bundle::write::Options::default(),
    )?;
    if let Some(keep) = outcome.keep_path {
        std::fs::remove_file(keep)?;
    }
    Ok(std::fs::remove_file(raw_path)?)
}

/// Type and size of a pack entry: gitformat-pack(5), "pack-*.pack files have the following format".
fn entry_header(kind: Kind, size: usize) -> Vec<u8> {
    let kind = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut header = vec![(kind << 4) | (size & 0x0f) as u8];
    let mut rest = size >> 4;
    while rest > 0 {
        if let Some(last) = header.last_mut() {
            *last |= 0x80;
        }
        header.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    header
}

struct HashingWriter<W> {
    inner: W,
    hasher: gix::hash::Hasher,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_groups_of_seven_bits_after_the_first_four() {
        assert_eq!(entry_header(Kind::Blob, 0), [0x30]);
        assert_eq!(entry_header(Kind::Commit, 15), [0x1f]);
        assert_eq!(entry_header(Kind::Tree, 16), [0xa0, 0x01]);
        assert_eq!(entry_header(Kind::Blob, 0x1234), [0xb4, 0xa3, 0x02]);
    }
}
