//! Opening: lock first, then the ladder. An IO error (a held lock, a full disk, missing rights) never touches a file;
//! only corruption, or a panic inside sled, moves things aside.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use pintle_model::{Problem, Reason};

use super::codec::Codec;
use super::{Batch, GENERATION, Inner, Options, SCHEMA, SCHEMA_KEY, Store, Table, export};

/// What the ladder did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A new store was made.
    Fresh,
    /// Damaged snapshot files were moved aside; the data was rebuilt from the log.
    SnapshotsMovedAside,
    /// The database was moved aside.
    Quarantined {
        /// Where to.
        to: PathBuf,
        /// Why.
        cause: String,
    },
    /// The newest export was read into the new database.
    RestoredFromExport {
        /// Its generation.
        generation: u64,
    },
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fresh => f.write_str("the store is new"),
            Self::SnapshotsMovedAside => {
                f.write_str("damaged snapshot files of the store were moved aside; no data was lost")
            }
            Self::Quarantined { to, cause } => {
                write!(f, "the store was damaged and moved to {}: {cause}", to.display())
            }
            Self::RestoredFromExport { generation } => {
                write!(f, "the store was restored from the export of generation {generation}")
            }
        }
    }
}

/// An open store and what it took.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// What the ladder did.
    pub notes: Vec<Note>,
}

/// Why sled did not open.
pub(super) enum SledFailure {
    /// The files could not be reached; they are left alone.
    Io(std::io::Error),
    /// The files are damaged.
    Corrupt(String),
}

/// Opens the store, or makes it. Blocking.
pub fn open(options: Options) -> Result<Opened, Problem> {
    make_folder(&options.path)?;
    let lock = take_lock(&options.path, options.wait_for_lock)?;
    make_folder(&options.path.join("exports"))?;
    let key = read_key(&options)?;
    let mut notes = Vec::new();
    let db_path = options.path.join("db");
    let existed = db_path.join("db").exists();
    let db = match open_sled(&db_path) {
        Ok(db) => db,
        Err(SledFailure::Io(error)) => return Err(io(&db_path, "open", &error)),
        Err(SledFailure::Corrupt(cause)) => climb(&options.path, cause, &mut notes)?,
    };
    let store = build(&options.path, db, key, lock)?;
    if !existed {
        notes.push(Note::Fresh);
    }
    match check(&store, existed) {
        Ok(()) => {}
        Err(problem) if problem.reason == Reason::StoreNewer => return Err(problem),
        Err(problem) => {
            quarantine(&store, &options.path, problem.message, &mut notes)?;
        }
    }
    if notes.iter().any(|note| matches!(note, Note::Quarantined { .. }))
        && let Some(generation) = export::restore(&store)?
    {
        notes.push(Note::RestoredFromExport { generation });
    }
    initialise(&store)?;
    Ok(Opened { store, notes })
}

/// Opens sled with our settings. A panic inside (known for sled 0.34 after power loss) counts as corruption.
pub(super) fn open_sled(path: &Path) -> Result<sled::Db, SledFailure> {
    let config = sled::Config::new().path(path).cache_capacity(4 << 20).flush_every_ms(None);
    let hook = std::panic::take_hook();
    // The panic is handled here; its message goes into the note and not to stderr.
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| config.open()));
    std::panic::set_hook(hook);
    match result {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(sled::Error::Io(error))) => Err(SledFailure::Io(error)),
        Ok(Err(error)) => Err(SledFailure::Corrupt(error.to_string())),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Err(SledFailure::Corrupt(text.unwrap_or("a panic inside the database").to_owned()))
        }
    }
}

/// First without the snapshots (the log holds everything), then in a new folder.
fn climb(path: &Path, cause: String, notes: &mut Vec<Note>) -> Result<sled::Db, Problem> {
    let db_path = path.join("db");
    let aside = path.join("snapshots-aside");
    let snapshots: Vec<PathBuf> = fs::read_dir(&db_path)
        .map_err(|error| io(&db_path, "read", &error))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snap.")))
        .collect();
    if !snapshots.is_empty() {
        make_folder(&aside)?;
        for snapshot in &snapshots {
            if let Some(name) = snapshot.file_name() {
                fs::rename(snapshot, aside.join(name)).map_err(|error| io(snapshot, "move", &error))?;
            }
        }
        match open_sled(&db_path) {
            Ok(db) => {
                notes.push(Note::SnapshotsMovedAside);
                return Ok(db);
            }
            Err(SledFailure::Io(error)) => return Err(io(&db_path, "open", &error)),
            Err(SledFailure::Corrupt(_)) => {}
        }
    }
    let to = move_aside(path)?;
    notes.push(Note::Quarantined { to, cause });
    reopen(&db_path)
}

fn reopen(db_path: &Path) -> Result<sled::Db, Problem> {
    match open_sled(db_path) {
        Ok(db) => Ok(db),
        Err(SledFailure::Io(error)) => Err(io(db_path, "open", &error)),
        Err(SledFailure::Corrupt(text)) => Err(Problem::new(
            Reason::StoreError,
            format!("a new store at {} cannot be opened: {text}", db_path.display()),
        )),
    }
}

/// The database opened, but its records are not what they should be.
fn quarantine(store: &Store, path: &Path, cause: String, notes: &mut Vec<Note>) -> Result<(), Problem> {
    *store.inner.db.write().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    let to = move_aside(path)?;
    notes.push(Note::Quarantined { to, cause });
    let db = reopen(&path.join("db"))?;
    *store.inner.db.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(db);
    store.inner.generation.store(0, std::sync::atomic::Ordering::SeqCst);
    Ok(())
}

/// Moves `db/` to `quarantine-<time>`; one is kept.
fn move_aside(path: &Path) -> Result<PathBuf, Problem> {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
    let to = path.join(format!("quarantine-{time}"));
    fs::rename(path.join("db"), &to).map_err(|error| io(&path.join("db"), "move", &error))?;
    let mut others: Vec<PathBuf> = fs::read_dir(path)
        .map_err(|error| io(path, "read", &error))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|other| {
            *other != to
                && other.file_name().is_some_and(|name| name.to_string_lossy().starts_with("quarantine-"))
        })
        .collect();
    others.sort();
    for old in others {
        fs::remove_dir_all(&old).map_err(|error| io(&old, "remove", &error))?;
    }
    sync_folder(path)?;
    Ok(to)
}

fn build(path: &Path, db: sled::Db, key: [u8; 32], lock: File) -> Result<Store, Problem> {
    let store = Store {
        inner: Arc::new(Inner {
            path: path.to_owned(),
            db: RwLock::new(Some(db)),
            codec: Codec::new(key),
            generation: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            commit: Mutex::new(()),
            _lock: lock,
        }),
    };
    sync_folder(path)?;
    Ok(store)
}

/// Schema, generation, and every record readable: sled opens some damaged files without a word.
fn check(store: &Store, existed: bool) -> Result<(), Problem> {
    let schema: Option<u32> = store.get(Table::Meta, SCHEMA_KEY)?;
    if let Some(schema) = schema
        && schema > SCHEMA
    {
        return Err(Problem::new(
            Reason::StoreNewer,
            format!(
                "the store at {} has schema {schema}, and this version knows {SCHEMA}",
                store.path().display()
            ),
        ));
    }
    for table in Table::ALL {
        for key in store.keys(table, "")? {
            store.plain(table, &key)?;
        }
    }
    if existed && schema.is_none() {
        return Err(Problem::new(Reason::StoreError, "the store has lost its records"));
    }
    let generation: Option<u64> = store.get(Table::Meta, GENERATION)?;
    // An export is written after its commit is on disk: a newer one means that the database lost its end.
    let exported = export::newest(store).map(|export| export.generation);
    if existed && exported > generation {
        return Err(Problem::new(Reason::StoreError, "the store is older than its own export"));
    }
    if schema.is_some() && generation.is_none() {
        return Err(Problem::new(Reason::StoreError, "the store has lost its generation counter"));
    }
    store.inner.generation.store(generation.unwrap_or(0), std::sync::atomic::Ordering::SeqCst);
    Ok(())
}

fn initialise(store: &Store) -> Result<(), Problem> {
    let mut batch = Batch::new();
    batch.put(Table::Meta, SCHEMA_KEY, &SCHEMA)?;
    store.commit(batch)?;
    Ok(())
}

/// Our own lock, before sled opens anything: sled reports a held lock as an IO error like any other.
fn take_lock(path: &Path, wait: Duration) -> Result<File, Problem> {
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
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(Problem::new(
                    Reason::StoreHeld,
                    format!("the store at {} is held by process {}", path.display(), holder.trim()),
                ));
            }
            Err(fs::TryLockError::Error(error)) => return Err(io(&name, "lock", &error)),
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{}", std::process::id()))
        .map_err(|error| io(&name, "write", &error))?;
    Ok(file)
}

/// The key: a systemd credential, or 32 random bytes made at the first start.
fn read_key(options: &Options) -> Result<[u8; 32], Problem> {
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
            Ok(*pintle_model::Digest::of(&bytes).as_bytes())
        }
        Ok(bytes) => bytes.try_into().map_err(|bytes: Vec<u8>| {
            let text = format!("the key {} has {} bytes and must have 32", path.display(), bytes.len());
            Problem::new(Reason::StoreError, text)
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && options.key_file.is_none() => {
            make_key(&own)
        }
        Err(error) => Err(io(&path, "read", &error)),
    }
}

fn make_key(path: &Path) -> Result<[u8; 32], Problem> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key)
        .map_err(|error| Problem::new(Reason::StoreError, format!("no random numbers: {error}")))?;
    let temporary = path.with_extension("new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(&key).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| io(path, "write", &error))?;
    Ok(key)
}

pub(super) fn make_folder(path: &Path) -> Result<(), Problem> {
    fs::DirBuilder::new().recursive(true).mode(0o750).create(path).map_err(|error| io(path, "make", &error))
}

pub(super) fn sync_folder(path: &Path) -> Result<(), Problem> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| io(path, "sync", &error))
}

/// What, where, as whom.
pub(super) fn io(path: &Path, what: &str, error: &std::io::Error) -> Problem {
    let user = rustix::process::geteuid().as_raw();
    Problem::new(Reason::StoreError, format!("cannot {what} {} as user {user}: {error}", path.display()))
}
