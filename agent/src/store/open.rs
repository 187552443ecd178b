//! Opening: lock first, then the ladder. What only cannot be reached (a held lock, a full disk, missing rights) is
//! reported and left alone; only damage moves things aside.
//!
//! | found | then |
//! |---|---|
//! | all that was promised | go on |
//! | older than promised, not older than the newest export | go on, `CommitsLost` |
//! | older than the newest export | `quarantine-<time>`, the export, `CommitsLost` if it is older than promised |
//! | damaged, also without sled's snapshots | the same |
//! | no database | the export if there is one |
//!
//! Whatever is not "all that was promised" has the inventory united with what the cluster holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

use pintle_model::Problem;

use super::codec::Codec;
use super::database::{self, Database, OpenFailure};
use super::export::{Export, Exports};
use super::failure::io;
use super::lock::{self, make_folder, sync_folder};
use super::root::Root;
use super::spare;
use super::swap::{self, Old};
use super::witness::Witness;
use super::{Batch, COMMITS_LOST, Inner, Options, REBUILT, SCHEMA, SCHEMA_KEY, Store, Table, codec};

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
    /// The store is older than what it had acknowledged.
    CommitsLost {
        /// The generation that it had reached.
        known: u64,
        /// The one that is there.
        found: u64,
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
            Self::CommitsLost { known, found } => write!(
                f,
                "CommitsLost: the store had reached generation {known}, and its disk holds generation {found}; \
                 the inventory is rebuilt from the cluster (check this disk)"
            ),
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

/// What lies in `db`.
enum Found {
    Missing,
    Sound(Database, Root),
    Damaged(String),
}

/// Opens the store, or makes it. Blocking.
pub fn open(options: Options) -> Result<Opened, Problem> {
    let path = options.path.as_path();
    make_folder(path)?;
    let lock = lock::take(path, options.wait_for_lock)?;
    lock::check_schema(path)?;
    make_folder(&path.join("exports"))?;
    let codec = Codec::new(lock::read_key(&options)?);
    let witness_file = path.join("witness");
    let (witness, promised) =
        Witness::open(&witness_file).map_err(|error| io(&witness_file, "open", &error))?;
    swap::settle(path)?;
    let mut notes = Vec::new();
    let found = look(path, &codec, &mut notes)?;
    let exports = match Exports::read(path, &codec) {
        Ok(exports) => exports,
        // Not needed, so it may wait for its own next turn.
        Err(_) if matches!(&found, Found::Sound(_, root) if root.generation >= promised) => {
            Exports::default()
        }
        Err(problem) => return Err(problem),
    };
    let slots = exports.slots;
    let (db, root, lost) = choose(path, &codec, found, promised, exports.newest, &mut notes)?;
    lock::write_schema(path)?;
    sync_folder(path)?;
    spare::keep(path);
    if root.generation > promised {
        witness.promise(root.generation).map_err(|error| io(&witness_file, "write", &error))?;
    }
    let store = Store {
        inner: Arc::new(Inner {
            path: path.to_owned(),
            slot: RwLock::new(Some(db)),
            codec,
            root: Mutex::new(root),
            commits: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            turn: Mutex::new(()),
            exports: Mutex::new(slots),
            compacted: Mutex::new(None),
            witness,
            _lock: lock,
        }),
    };
    if let Some(loss) = lost {
        go_on_after_loss(&store, loss)?;
    }
    notes.extend(loss_not_healed(&store, &notes)?);
    Ok(Opened { store, notes })
}

/// Looks at `db`: as it is, and without sled's snapshots, as the log holds everything that they hold.
fn look(path: &Path, codec: &Codec, notes: &mut Vec<Note>) -> Result<Found, Problem> {
    let folder = path.join("db");
    if !swap::exists(&folder)? {
        return Ok(Found::Missing);
    }
    let cause = match sound(&folder, codec) {
        Ok((db, root)) => return known_schema(path, codec, db, root),
        Err(OpenFailure::Unreachable(problem) | OpenFailure::Full(problem)) => return Err(problem),
        Err(OpenFailure::Damaged(cause)) => cause,
    };
    if !move_snapshots(path)? {
        return Ok(Found::Damaged(cause));
    }
    match sound(&folder, codec) {
        Ok((db, root)) => {
            notes.push(Note::SnapshotsMovedAside);
            known_schema(path, codec, db, root)
        }
        Err(OpenFailure::Unreachable(problem) | OpenFailure::Full(problem)) => Err(problem),
        Err(OpenFailure::Damaged(_)) => Ok(Found::Damaged(cause)),
    }
}

/// Opens a database and reads all of it: sled opens some damaged files without a word, and panics in others later.
pub(super) fn sound(folder: &Path, codec: &Codec) -> Result<(Database, Root), OpenFailure> {
    let db = match Database::open(folder) {
        Err(OpenFailure::Full(_)) if folder.parent().is_some_and(spare::give_up) => Database::open(folder)?,
        result => result?,
    };
    let cause = match database::quietly(|| Root::verify(&db, codec)) {
        Ok(Ok(Some(root))) => return Ok((db, root)),
        // A database gets its place only when it is filled, so an empty one has lost everything.
        Ok(Ok(None)) => "it has lost all its records".to_owned(),
        Ok(Err(problem)) => problem.message,
        Err(panic) => panic,
    };
    db.close();
    Err(OpenFailure::Damaged(cause))
}

fn known_schema(path: &Path, codec: &Codec, db: Database, root: Root) -> Result<Found, Problem> {
    if let Some(raw) = db.get(&codec::head_key(Table::Meta, SCHEMA_KEY))? {
        let head = codec.open_head(Table::Meta, SCHEMA_KEY, &raw)?;
        let schema = codec::unpack(&head.bytes, SCHEMA_KEY)?;
        lock::refuse_newer(path, Store::decode(Table::Meta, SCHEMA_KEY, &schema)?)?;
    }
    Ok(Found::Sound(db, root))
}

/// Returns whether there were any.
fn move_snapshots(path: &Path) -> Result<bool, Problem> {
    let (folder, aside) = (path.join("db"), path.join("snapshots-aside"));
    let mut moved = false;
    for entry in fs::read_dir(&folder).map_err(|error| io(&folder, "read", &error))? {
        let entry = entry.map_err(|error| io(&folder, "read", &error))?;
        if entry.file_name().to_string_lossy().starts_with("snap.") {
            make_folder(&aside)?;
            fs::rename(entry.path(), aside.join(entry.file_name()))
                .map_err(|error| io(&entry.path(), "move", &error))?;
            moved = true;
        }
    }
    Ok(moved)
}

/// The generation that was known, and the one that is there.
type Loss = (u64, u64);

/// The best there is; and what has still to be written down when it is older than what was known.
fn choose(
    path: &Path,
    codec: &Codec,
    found: Found,
    promised: u64,
    export: Option<Export>,
    notes: &mut Vec<Note>,
) -> Result<(Database, Root, Option<Loss>), Problem> {
    let exported = export.as_ref().map_or(0, |export| export.generation);
    let known = promised.max(exported);
    let (cause, was_there) = match found {
        Found::Sound(db, root) if root.generation >= exported => {
            let lost = root.generation < known;
            if lost {
                notes.push(Note::CommitsLost { known, found: root.generation });
            }
            return Ok((db, root, lost.then_some((known, root.generation))));
        }
        Found::Sound(db, root) => {
            db.close();
            (format!("its generation {} is older than its own export", root.generation), true)
        }
        Found::Damaged(cause) => (cause, true),
        Found::Missing => (String::new(), false),
    };
    // An export is written after its commit is on disk, so nothing is lost when it holds the last promise.
    let lost = exported < known;
    let restored = export.is_some();
    fill(path, codec, export, lost.then_some((known, exported)), known.max(1))?;
    if let Some(to) = swap::swap(path, Old::Quarantine)? {
        notes.push(Note::Quarantined { to, cause });
    }
    if restored {
        notes.push(Note::RestoredFromExport { generation: exported });
    } else if !was_there && !lost {
        notes.push(Note::Fresh);
    }
    if lost {
        notes.push(Note::CommitsLost { known, found: exported });
    }
    let folder = path.join("db");
    let (db, root) = sound(&folder, codec).map_err(|failure| failure.of_ours(&folder))?;
    Ok((db, root, None))
}

/// Makes `db.new` of an export, or of nothing. It lacks the mark that the inventory has been united with the cluster's:
/// an export may be older than what the cluster holds.
fn fill(
    path: &Path,
    codec: &Codec,
    export: Option<Export>,
    lost: Option<Loss>,
    known: u64,
) -> Result<(), Problem> {
    let mut batch = Batch::new();
    for (prefix, key, bytes) in export.into_iter().flat_map(|export| export.records) {
        if let Some(table) = Table::ALL.into_iter().find(|table| table.prefix() == prefix) {
            batch.puts.insert((table, key), Some(bytes));
        }
    }
    batch.put(Table::Meta, SCHEMA_KEY, &SCHEMA)?;
    batch.puts.remove(&(Table::Meta, REBUILT.to_owned()));
    batch.puts.remove(&(Table::Meta, COMMITS_LOST.to_owned()));
    let mut root = Root::new(known);
    if let Some(loss) = lost {
        // Generations are not used twice.
        root.generation += 1;
        batch.put(Table::Meta, COMMITS_LOST, &loss)?;
    }
    let mut raw = Vec::new();
    for ((table, key), value) in &batch.puts {
        for (name, sealed) in codec.seal_record(*table, key, value.as_deref().unwrap_or_default())? {
            root.add(&name, &sealed);
            raw.push((name, sealed));
        }
    }
    raw.push(root.seal(codec)?);
    swap::fill(path, raw.into_iter().map(|(name, sealed)| Ok((name.into(), sealed.into()))))
}

/// The rebuild from the cluster begins, and generations are not used twice.
fn go_on_after_loss(store: &Store, loss: Loss) -> Result<(), Problem> {
    super::opened_again(store.inner.root.lock()).generation = loss.0;
    let mut batch = Batch::new();
    batch.delete(Table::Meta, REBUILT);
    batch.put(Table::Meta, COMMITS_LOST, &loss)?;
    store.commit(batch).map(|_| ())
}

/// A loss is told at every start until the inventory has been rebuilt: whoever opened the store first may have been a
/// command that lived for a second.
fn loss_not_healed(store: &Store, notes: &[Note]) -> Result<Option<Note>, Problem> {
    let told = notes.iter().any(|note| matches!(note, Note::CommitsLost { .. }));
    if told || store.get(Table::Meta, REBUILT)?.unwrap_or(false) {
        return Ok(None);
    }
    let loss: Option<Loss> = store.get(Table::Meta, COMMITS_LOST)?;
    Ok(loss.map(|(known, found)| Note::CommitsLost { known, found }))
}
