//! The lock, the version and the key of a state directory: all that is looked at before sled opens anything.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use pintle_model::{Digest, Problem, Reason};

use super::failure::io;
use super::{Options, SCHEMA};

/// Takes our own lock, before sled opens anything: sled reports a held lock as an IO error like any other.
pub(super) fn take(path: &Path, wait: Duration) -> Result<File, Problem> {
    let name = path.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o660)
        .open(&name)
        .map_err(|error| io(&name, "open", &error))?;
    let deadline = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(fs::TryLockError::WouldBlock) => return Err(held(path, &mut file)),
            Err(fs::TryLockError::Error(error)) => return Err(io(&name, "lock", &error)),
        }
    }
    // Who holds it is for people only: a full disk must not keep the store from being read.
    let _ =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    Ok(file)
}

fn held(path: &Path, file: &mut File) -> Problem {
    let mut holder = String::new();
    let _ = file.read_to_string(&mut holder);
    let who = match holder.trim().parse::<u32>() {
        Ok(pid) => format!("process {pid}"),
        Err(_) => "a process that did not write its number".to_owned(),
    };
    Problem::new(Reason::StoreHeld, format!("the store at {} is held by {who}", path.display()))
}

/// Refuses a store of a newer version before anything in it is touched: even to open its database would write.
pub(super) fn check_schema(path: &Path) -> Result<(), Problem> {
    let name = path.join("schema");
    match fs::read_to_string(&name) {
        // What is no number is damage, and the record in the database decides.
        Ok(text) => text.trim().parse().map_or(Ok(()), |schema| refuse_newer(path, schema)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => Ok(()),
        Err(error) => Err(io(&name, "read", &error)),
    }
}

/// Writes the version in the clear, unless it is there.
pub(super) fn write_schema(path: &Path) -> Result<(), Problem> {
    let name = path.join("schema");
    let text = format!("{SCHEMA}\n");
    if fs::read_to_string(&name).is_ok_and(|known| known == text) {
        return Ok(());
    }
    write_whole(&name, text.as_bytes(), 0o644).map_err(|error| io(&name, "write", &error))
}

pub(super) fn refuse_newer(path: &Path, schema: u32) -> Result<(), Problem> {
    if schema <= SCHEMA {
        return Ok(());
    }
    Err(Problem::new(
        Reason::StoreNewer,
        format!("the store at {} has schema {schema}, and this version knows {SCHEMA}", path.display()),
    ))
}

/// The key: a systemd credential, or 32 random bytes made at the first start.
pub(super) fn read_key(options: &Options) -> Result<[u8; 32], Problem> {
    let own = options.path.join("key");
    let path = options.key_file.clone().unwrap_or_else(|| own.clone());
    match fs::read(&path) {
        Ok(bytes) if options.key_file.is_some() => {
            // A credential may have any length from 32 bytes on.
            if bytes.len() < 32 {
                let text =
                    format!("the key {} has {} bytes; at least 32 are needed", path.display(), bytes.len());
                return Err(Problem::new(Reason::StoreError, text));
            }
            Ok(*Digest::of(&bytes).as_bytes())
        }
        Ok(bytes) => bytes.try_into().map_err(|bytes: Vec<u8>| {
            let text = format!("the key {} has {} bytes and must have 32", path.display(), bytes.len());
            Problem::new(Reason::StoreError, text)
        }),
        Err(error) if error.kind() == ErrorKind::NotFound && options.key_file.is_none() => make_key(&own),
        Err(error) => Err(io(&path, "read", &error)),
    }
}

fn make_key(path: &Path) -> Result<[u8; 32], Problem> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key)
        .map_err(|error| Problem::new(Reason::StoreError, format!("no random numbers: {error}")))?;
    write_whole(path, &key, 0o600).map_err(|error| io(path, "write", &error))?;
    Ok(key)
}

/// Writes a file that is either the old or the new one, also after a power cut.
pub(super) fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let temporary = path.with_extension("new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // On a full disk the half of a file would take the room that is missing.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

pub(super) fn make_folder(path: &Path) -> Result<(), Problem> {
    fs::DirBuilder::new().recursive(true).mode(0o750).create(path).map_err(|error| io(path, "make", &error))
}

pub(super) fn sync_folder(path: &Path) -> Result<(), Problem> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| io(path, "sync", &error))
}
