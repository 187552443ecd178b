//! Putting another database in the place of the one that is there, so that every moment of it survives a power cut.
//!
//! | folder | meaning |
//! |---|---|
//! | `db` | the database |
//! | `db.tmp` | a new one that is being filled; worthless after a crash |
//! | `db.new` | a new one that is complete and waits for its place |
//! | `db.old` | the one before, until the new one has its place |

use std::fs;
use std::path::{Path, PathBuf};

use pintle_model::Problem;

use super::database::{Database, WriteFailure};
use super::failure::io;
use super::lock::sync_folder;
use crate::crash;

/// Bytes of one batch while a database is filled: memory stays bounded however large the store is.
const BATCH_BYTES: u64 = 512 * 1024;

/// What becomes of the database that was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Old {
    /// It goes to `quarantine-<time>`.
    Quarantine,
    /// It goes.
    Remove,
}

/// Ends what a crash has interrupted.
pub(super) fn settle(path: &Path) -> Result<(), Problem> {
    let [db, filling, new, old] = ["db", "db.tmp", "db.new", "db.old"].map(|name| path.join(name));
    remove(&filling)?;
    if exists(&db)? {
        // It either never gave way, or the new one is in place already.
        remove(&new)?;
        return remove(&old);
    }
    if exists(&new)? {
        rename(&new, &db)?;
        sync_folder(path)?;
        return remove(&old);
    }
    if exists(&old)? {
        rename(&old, &db)?;
        sync_folder(path)?;
    }
    Ok(())
}

/// Fills a new database with raw records; it is complete, and on disk, as `db.new`.
pub(super) fn fill(
    path: &Path,
    records: impl Iterator<Item = Result<(sled::IVec, sled::IVec), Problem>>,
) -> Result<(), Problem> {
    let filling = path.join("db.tmp");
    remove(&filling)?;
    let db = Database::open(&filling).map_err(|failure| failure.of_ours(&filling))?;
    let filled = fill_with(&db, records);
    db.close();
    if let Err(problem) = filled {
        // On a full disk the half of a database would take the room that is missing.
        let _ = remove(&filling);
        return Err(problem);
    }
    sync_folder(&filling)?;
    crash::point("store-filled");
    let new = path.join("db.new");
    remove(&new)?;
    rename(&filling, &new)?;
    sync_folder(path)?;
    crash::point("store-new");
    Ok(())
}

fn fill_with(
    db: &Database,
    records: impl Iterator<Item = Result<(sled::IVec, sled::IVec), Problem>>,
) -> Result<(), Problem> {
    let write = |batch, bytes| {
        db.write(batch, bytes).map_err(|failure| match failure {
            WriteFailure::Refused(problem) | WriteFailure::Broken(problem) => problem,
        })
    };
    let mut batch = sled::Batch::default();
    let mut bytes = 0;
    for record in records {
        let (key, value) = record?;
        bytes += (key.len() + value.len()) as u64;
        batch.insert(key, value);
        if bytes >= BATCH_BYTES {
            write(std::mem::take(&mut batch), std::mem::take(&mut bytes))?;
        }
    }
    write(batch, bytes)
}

/// Puts `db.new` in the place of `db`, which must be closed. Returns where the old one went.
pub(super) fn swap(path: &Path, old: Old) -> Result<Option<PathBuf>, Problem> {
    let [db, new, aside] = ["db", "db.new", "db.old"].map(|name| path.join(name));
    let mut kept = None;
    if exists(&db)? {
        let to = match old {
            Old::Quarantine => free_name(path)?,
            Old::Remove => aside.clone(),
        };
        rename(&db, &to)?;
        kept = (old == Old::Quarantine).then_some(to);
    }
    crash::point("store-aside");
    rename(&new, &db)?;
    sync_folder(path)?;
    crash::point("store-swapped");
    remove(&aside)?;
    if let Some(kept) = &kept {
        keep_one_quarantine(path, kept)?;
    }
    Ok(kept)
}

/// A clock that stands still, or was set back, must not make two names collide.
fn free_name(path: &Path) -> Result<PathBuf, Problem> {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
    let mut name = path.join(format!("quarantine-{time}"));
    let mut number = 1;
    while exists(&name)? {
        name = path.join(format!("quarantine-{time}-{number}"));
        number += 1;
    }
    Ok(name)
}

fn keep_one_quarantine(path: &Path, kept: &Path) -> Result<(), Problem> {
    for entry in fs::read_dir(path).map_err(|error| io(path, "read", &error))? {
        let entry = entry.map_err(|error| io(path, "read", &error))?.path();
        let is_one = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("quarantine-"));
        if is_one && entry != kept {
            remove(&entry)?;
        }
    }
    Ok(())
}

/// Is it there? A folder that may not be looked into is not taken for an empty one.
pub(super) fn exists(path: &Path) -> Result<bool, Problem> {
    path.try_exists().map_err(|error| io(path, "look at", &error))
}

fn rename(from: &Path, to: &Path) -> Result<(), Problem> {
    fs::rename(from, to).map_err(|error| io(from, "move", &error))
}

fn remove(path: &Path) -> Result<(), Problem> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path, "remove", &error)),
        _ => Ok(()),
    }
}
