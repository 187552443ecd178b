//! A store with a known story, and the judge of what is left of it after damage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use pintle::store::{Batch, Note, REBUILT, Store, Table};

use super::support::{Rng, copy, names, open_at, text};

/// What the store holds after each generation.
pub type Story = BTreeMap<u64, BTreeMap<String, String>>;

/// A store with a story: `after` commits after its last export.
pub struct Base {
    pub folder: tempfile::TempDir,
    pub story: Story,
    pub last: u64,
    pub exported: u64,
}

pub fn base(after: u64) -> Base {
    let folder = tempfile::tempdir().unwrap();
    let mut story = Story::new();
    let mut rng = Rng(11);
    let store = open_at(folder.path()).unwrap().store;
    let mut batch = Batch::new();
    batch.put(Table::Meta, REBUILT, &true).unwrap();
    story.insert(store.commit(batch).unwrap(), BTreeMap::new());
    let mut exported = 0;
    for number in 0..60 + after {
        if number == 50 || number == 60 {
            store.export().unwrap();
            exported = store.generation();
        }
        let mut batch = Batch::new();
        // Few keys, so that each is rewritten often: an old page is then an old answer.
        for _ in 0..3 {
            let (key, len) = (format!("k{}", rng.below(12)), 1_000 + rng.below(9_000) as usize);
            batch.put(Table::History, &key, &rng.text(len)).unwrap();
        }
        batch.put_blob(number.to_string().as_bytes());
        let generation = store.commit(batch).unwrap();
        story.insert(generation, content(&store));
    }
    if after == 0 {
        store.export().unwrap();
        exported = store.generation();
    }
    let last = store.generation();
    Base { folder, story, last, exported }
}

pub fn content(store: &Store) -> BTreeMap<String, String> {
    store.scan::<String>(Table::History, "").unwrap().into_iter().collect()
}

/// What became of a damaged store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Intact,
    OlderAndTold,
    FromExport,
    Empty,
}

/// Opens a copy of the store that `damage` has had its way with, and holds what is there against the story: the state
/// of one generation, whole; if it is not the last one, it is told and the rebuild is asked for.
pub fn judge(base: &Base, what: &str, damage: impl FnOnce(&Path)) -> (Outcome, Vec<Note>) {
    let folder = tempfile::tempdir().unwrap();
    copy(base.folder.path(), folder.path());
    damage(folder.path());
    let begin = Instant::now();
    let opened = open_at(folder.path()).unwrap_or_else(|problem| panic!("{what}: {problem}"));
    assert!(begin.elapsed() < Duration::from_secs(20), "{what}: {:?}", begin.elapsed());
    let (store, notes) = (opened.store, opened.notes);
    let lost = notes.iter().find_map(|note| match note {
        Note::CommitsLost { known, found } => Some((*known, *found)),
        _ => None,
    });
    let quarantined = notes.iter().any(|note| matches!(note, Note::Quarantined { .. }));
    let restored = notes.iter().find_map(|note| match note {
        Note::RestoredFromExport { generation } => Some(*generation),
        _ => None,
    });
    assert_eq!(names(folder.path(), "quarantine-").len(), usize::from(quarantined), "{what}: {notes:?}");
    let found = lost.map_or(base.last, |(_, found)| found);
    if found == 0 {
        assert_eq!(content(&store), BTreeMap::new(), "{what}: {notes:?}");
    } else {
        assert!(
            content(&store) == base.story[&found],
            "{what}: not the state of generation {found}: {notes:?}"
        );
    }
    if let Some((known, found)) = lost {
        assert_eq!(known, base.last, "{what}");
        assert!(found < known, "{what}");
        assert!(store.generation() > base.last, "{what}: a generation would be used twice");
    }
    let rebuilt = store.get::<bool>(Table::Meta, REBUILT).unwrap();
    assert_eq!(rebuilt.is_none(), lost.is_some() || quarantined || restored.is_some(), "{what}: {notes:?}");
    assert_eq!(store.check().1, [""; 0], "{what}");
    // It goes on, and what is wrong is not told as if it were new.
    let mut batch = Batch::new();
    batch.put(Table::Meta, REBUILT, &true).unwrap();
    batch.put(Table::History, "new", "new").unwrap();
    let generation = store.commit(batch).unwrap();
    drop(store);
    let again = open_at(folder.path()).unwrap();
    assert_eq!(again.notes, [], "{what}");
    assert_eq!(again.store.generation(), generation, "{what}");
    assert_eq!(text(&again.store, Table::History, "new").unwrap(), "new", "{what}");
    let outcome = match (restored, lost) {
        (Some(_), _) => Outcome::FromExport,
        (None, Some((_, 0))) => Outcome::Empty,
        (None, Some(_)) => Outcome::OlderAndTold,
        (None, None) if quarantined => Outcome::Empty,
        (None, None) => Outcome::Intact,
    };
    (outcome, notes)
}

pub fn db(state: &Path) -> PathBuf {
    state.join("db/db")
}

pub fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

pub fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}
