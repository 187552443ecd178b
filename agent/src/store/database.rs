//! sled behind a fence: what it is known to do on a bad day is met here and nowhere else.
//!
//! # Guarantees
//! - A write returns within [`WRITE_LIMIT`]: sled sets its error without waking those who wait for the write.
//! - A full disk is met before sled has begun: the room that a commit may need is reserved first.
//! - A panic inside sled is an error.
//! - What `write` has acknowledged is on disk: sled's own flush calls `sync_file_range` and no fsync.

use std::any::Any;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pintle_model::{Problem, Reason};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::failure::{io, is_damage};

/// A write that takes longer has failed. A bad SD card can pause for many seconds, but not for a minute.
const WRITE_LIMIT: Duration = Duration::from_mins(1);
/// How long to wait for sled to let go of its files.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Pause between looks at sled's error, and between tries to get its lock.
const LOOK: Duration = Duration::from_millis(50);
/// Room reserved for a commit beyond its own bytes: sled writes in segments of 512 KiB, and moves what is alive out of
/// segments that are mostly dead while it commits.
const ROOM: u64 = 2 << 20;

/// An open sled.
pub(super) struct Database {
    folder: PathBuf,
    file: PathBuf,
    /// Our own descriptor of sled's file: an fsync on any descriptor of an inode is enough, and opening one for each
    /// commit would fail when there are none left.
    handle: File,
    sled: sled::Db,
    /// The file has blocks up to here.
    reserved: AtomicU64,
}

/// Why it did not open.
#[derive(Debug)]
pub(super) enum OpenFailure {
    /// The files could not be reached; they are left alone.
    Unreachable(Problem),
    /// The same, for want of room on the disk.
    Full(Problem),
    /// The files are damaged.
    Damaged(String),
}

impl OpenFailure {
    /// The same as an error, where damage is one like any other: in a database that we have just made.
    pub(super) fn of_ours(self, folder: &Path) -> Problem {
        match self {
            Self::Unreachable(problem) | Self::Full(problem) => problem,
            Self::Damaged(text) => Problem::new(
                Reason::StoreError,
                format!("the database at {} is damaged: {text}", folder.display()),
            ),
        }
    }
}

/// Why a write failed.
#[derive(Debug)]
pub(super) enum WriteFailure {
    /// Nothing was handed to sled.
    Refused(Problem),
    /// sled failed, and does nothing any more until it is opened anew.
    Broken(Problem),
}

impl Database {
    /// Opens or makes it.
    pub(super) fn open(folder: &Path) -> Result<Self, OpenFailure> {
        let unreachable = |path: &Path, what: &str, error| OpenFailure::Unreachable(io(path, what, &error));
        drop_half_snapshots(folder).map_err(|error| unreachable(folder, "read", error))?;
        let sled = open_sled(folder)?;
        let file = folder.join("db");
        let handle = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&file)
            .map_err(|error| unreachable(&file, "open", error))?;
        Ok(Self { folder: folder.to_owned(), file, handle, sled, reserved: AtomicU64::new(0) })
    }

    /// A value.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, Problem> {
        self.sled.get(key).map_err(|error| self.failed("read", &error))
    }

    /// Keys that begin with `prefix`, sorted.
    pub(super) fn keys(&self, prefix: &[u8]) -> impl Iterator<Item = Result<sled::IVec, Problem>> + '_ {
        self.sled.scan_prefix(prefix).keys().map(|key| key.map_err(|error| self.failed("read", &error)))
    }

    /// All keys and values, sorted.
    pub(super) fn pairs(&self) -> impl Iterator<Item = Result<(sled::IVec, sled::IVec), Problem>> + '_ {
        self.sled.iter().map(|pair| pair.map_err(|error| self.failed("read", &error)))
    }

    /// Bytes on disk.
    pub(super) fn size(&self) -> u64 {
        self.sled.size_on_disk().unwrap_or_default()
    }

    /// Writes a batch of about `bytes`; it is on disk when this returns.
    pub(super) fn write(&self, batch: sled::Batch, bytes: u64) -> Result<(), WriteFailure> {
        self.reserve(bytes).map_err(WriteFailure::Refused)?;
        let (sender, receiver) = mpsc::channel();
        let sled = self.sled.clone();
        let work = move || {
            let result = quietly(|| sled.apply_batch(batch).and_then(|()| sled.flush().map(|_| ())));
            drop(sled);
            let _ = sender.send(result);
        };
        std::thread::Builder::new()
            .name("store-write".to_owned())
            .spawn(work)
            .map_err(|error| WriteFailure::Refused(io(&self.file, "start a thread to write", &error)))?;
        self.wait(&receiver, WRITE_LIMIT).map_err(WriteFailure::Broken)?;
        self.handle.sync_all().map_err(|error| WriteFailure::Broken(io(&self.file, "sync", &error)))
    }

    fn wait(
        &self,
        receiver: &mpsc::Receiver<Result<Result<(), sled::Error>, String>>,
        limit: Duration,
    ) -> Result<(), Problem> {
        let deadline = Instant::now() + limit;
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(Ok(result)) => return result.map_err(|error| self.failed("write", &error)),
                Ok(Err(panic)) => return Err(self.gave_up(&panic)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gave_up("its thread ended")),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(self.gave_up(&format!("no answer within {} s", limit.as_secs())));
                }
                Err(RecvTimeoutError::Timeout) => self.wake(),
            }
        }
    }

    /// sled notes a failed write and does not tell the thread that waits for it; the next flush, which fails at
    /// once, wakes it. Not on this thread: it could be the next to wait.
    fn wake(&self) {
        if self.sled.context.global_error().is_err() {
            let sled = self.sled.clone();
            let _ = std::thread::Builder::new().name("store-wake".to_owned()).spawn(move || sled.flush());
        }
    }

    /// Gives the file the blocks that this commit may need. They lie beyond its end until sled writes there, so that
    /// nothing is half-written when there are none.
    fn reserve(&self, bytes: u64) -> Result<(), Problem> {
        let fail = |error: Errno| io(&self.file, "reserve room in", &error.into());
        let len = self.handle.metadata().map_err(|error| io(&self.file, "read", &error))?.len();
        let wanted = len + ROOM + 2 * bytes;
        if wanted <= self.reserved.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A little more, so that not every commit asks.
        let wanted = wanted + ROOM;
        loop {
            match rustix::fs::fallocate(&self.handle, FallocateFlags::KEEP_SIZE, 0, wanted) {
                Ok(()) => {
                    self.reserved.store(wanted, Ordering::SeqCst);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                // Some file systems cannot; then the free space at this moment has to do.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        let free = rustix::fs::fstatvfs(&self.handle).map_err(fail)?;
        if free.f_bavail.saturating_mul(free.f_frsize) < ROOM + 2 * bytes {
            Err(fail(Errno::NOSPC))
        } else {
            Ok(())
        }
    }

    /// Closes it; sled's threads may hold its files for a moment longer.
    pub(super) fn close(self) {
        let (sender, receiver) = mpsc::channel();
        let work = move || {
            // sled unwraps its last fsync.
            let _ = quietly(|| drop(self.sled));
            let _ = sender.send(());
        };
        if std::thread::Builder::new().name("store-close".to_owned()).spawn(work).is_ok() {
            let _ = receiver.recv_timeout(CLOSE_LIMIT);
        }
    }

    fn failed(&self, what: &str, error: &sled::Error) -> Problem {
        match error {
            sled::Error::Io(error) => io(&self.file, what, error),
            error => Problem::new(
                Reason::StoreError,
                format!("cannot {what} the store at {}: {error}", self.folder.display()),
            ),
        }
    }

    fn gave_up(&self, why: &str) -> Problem {
        Problem::new(
            Reason::StoreError,
            format!("the database at {} failed while it wrote: {why}", self.folder.display()),
        )
    }
}

/// A snapshot that was being written when the process died. sled would take it for the newest one and refuse to open;
/// the one before it is still there, and the log holds everything anyway.
fn drop_half_snapshots(folder: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Opens sled with our settings. A panic inside (known for sled 0.34 after power loss) counts as damage.
fn open_sled(folder: &Path) -> Result<sled::Db, OpenFailure> {
    let config = sled::Config::new().path(folder).cache_capacity(4 << 20).flush_every_ms(None);
    let deadline = Instant::now() + CLOSE_LIMIT;
    loop {
        match quietly(|| config.open()) {
            Ok(Ok(sled)) => return Ok(sled),
            Ok(Err(sled::Error::Io(error))) if is_sleds_lock(&error) => {
                // We hold the lock of the directory, so this is our own sled that has not quite ended.
                if Instant::now() >= deadline {
                    return Err(OpenFailure::Unreachable(io(folder, "open", &error)));
                }
                std::thread::sleep(LOOK);
            }
            Ok(Err(sled::Error::Io(error))) if !is_damage(&error) => {
                let problem = io(folder, "open", &error);
                return Err(match error.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => OpenFailure::Full(problem),
                    _ => OpenFailure::Unreachable(problem),
                });
            }
            Ok(Err(error)) => return Err(OpenFailure::Damaged(error.to_string())),
            Err(panic) => return Err(OpenFailure::Damaged(panic)),
        }
    }
}

/// sled makes a text of the number.
fn is_sleds_lock(error: &std::io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("could not acquire lock")
}

/// Runs something in which sled may panic. Its message goes into the result and not to stderr.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    use std::cell::Cell;
    use std::sync::Once;
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    // Installed once and for good: taking the hook away and putting it back loses it when two threads do so at once.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = std::panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.map_err(|panic| text_of(&*panic))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic inside the database").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_never_answers_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path()).unwrap();
        let (_sender, receiver) = mpsc::channel();
        let begin = Instant::now();
        let problem = db.wait(&receiver, LOOK * 2).unwrap_err();
        assert!(problem.message.contains("no answer within"), "{problem}");
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_panic_inside_is_an_error_and_other_threads_keep_their_hook() {
        let panic = quietly(|| -> u8 { panic!("inside") }).unwrap_err();
        assert_eq!(panic, "inside");
        assert_eq!(quietly(|| 7), Ok(7));
    }
}
