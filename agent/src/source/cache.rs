//! The bare repositories below the cache directory: one per repository URL, a cache that can be fetched again.
//!
//! Guarantees: a cache directory with its final name is complete (it is made beside and renamed); revisions that
//! were fetched whole have a ref `refs/pintle/<sha>`, written last. Nothing here takes the repository's lock; who
//! calls a function that changes files holds it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use pintle_model::{Problem, Reason, Revision};

/// Where fetched revisions are remembered, so that their objects count as reachable.
pub const REF_PREFIX: &str = "refs/pintle/";

/// Suffixes of directories that are not caches: being made, replaced, being removed.
const NEW: &str = "new";
const OLD: &str = "old";

/// The cache of one repository.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    pub fn new(root: &Path, name: &str) -> Self {
        Self { dir: root.join(name) }
    }

    /// Its directory, which may not exist.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Opens the repository; `None` if there is none.
    pub fn open(&self) -> Result<Option<gix::Repository>, gix::Error> {
        if !self.dir.is_dir() {
            return Ok(None);
        }
        open(&self.dir).map(Some)
    }

    /// Opens the repository for reading `revision`.
    ///
    /// Errors: `SourceError` if there is no cache or it cannot be opened.
    pub fn open_for_reading(&self, url: &str, revision: Revision) -> Result<gix::Repository, Problem> {
        match self.open() {
            Ok(Some(repository)) => Ok(repository),
            Ok(None) => Err(Problem::new(
                Reason::SourceError,
                format!("{url}: commit {revision} is not in the cache: it has not been fetched yet"),
            )),
            Err(error) => Err(Problem::new(
                Reason::SourceError,
                format!("{url}: cannot open {}: {error:#}", self.dir.display()),
            )),
        }
    }

    /// Was `revision` fetched whole, and is its commit still there?
    pub fn has(&self, revision: Revision) -> bool {
        let Ok(Some(repository)) = self.open() else { return false };
        let name = format!("{REF_PREFIX}{revision}");
        matches!(repository.try_find_reference(name.as_str()), Ok(Some(_)))
            && repository.find_commit(object_id(revision)).is_ok_and(|commit| commit.tree().is_ok())
    }

    /// The fetched revisions whose id starts with `prefix` (any case).
    pub fn revisions_with_prefix(&self, prefix: &str) -> Vec<Revision> {
        let prefix = prefix.to_ascii_lowercase();
        let mut found = self.revisions();
        found.retain(|revision| revision.to_string().starts_with(&prefix));
        found
    }

    /// Every fetched revision.
    pub fn revisions(&self) -> Vec<Revision> {
        let Ok(Some(repository)) = self.open() else { return Vec::new() };
        let Ok(platform) = repository.references() else { return Vec::new() };
        let Ok(references) = platform.prefixed(REF_PREFIX) else { return Vec::new() };
        references
            .filter_map(Result::ok)
            .filter_map(|one| one.name().as_bstr().to_string().strip_prefix(REF_PREFIX)?.parse().ok())
            .collect()
    }

    /// Number of packs; each fetch adds one.
    pub fn packs(&self) -> usize {
        let names = file_names(&self.dir.join("objects").join("pack")).unwrap_or_default();
        names.iter().filter(|name| Path::new(name).extension().is_some_and(|suffix| suffix == "idx")).count()
    }

    /// Forgets the refs of revisions that are not in `keep`.
    pub fn forget_revisions_except(&self, keep: &[Revision]) -> Result<(), gix::Error> {
        let Some(repository) = self.open()? else { return Ok(()) };
        for revision in self.revisions() {
            if !keep.contains(&revision)
                && let Some(reference) =
                    repository.try_find_reference(format!("{REF_PREFIX}{revision}").as_str())?
            {
                reference.delete()?;
            }
        }
        Ok(())
    }

    /// Removes what an aborted fetch left: temporary packs, packs without index, lock files. They would fill the
    /// disk (50 GiB in argo-cd#18831), and a `shallow.lock` would refuse every later fetch.
    pub fn remove_leftovers(&self) -> io::Result<()> {
        remove_leftovers(&self.dir)
    }

    /// Makes an empty bare repository beside the cache; [`Cache::replace`] puts it into place.
    pub fn create_beside(&self) -> Result<gix::Repository, Problem> {
        let beside = self.beside(NEW);
        let failed = |what: &dyn std::fmt::Display| {
            Problem::new(Reason::SourceError, format!("cannot create {}: {what}", beside.display()))
        };
        if let Some(root) = beside.parent() {
            // Manifests may hold what other users of the node must not read.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|error| failed(&error))?;
        }
        remove_dir(&beside).map_err(|error| failed(&error))?;
        let options = gix::create::Options::default();
        gix::ThreadSafeRepository::init_opts(&beside, gix::create::Kind::Bare, options, open_options())
            .map_err(|error| failed(&format!("{error:#}")))?;
        // Thirteen sample scripts that nobody runs.
        remove_dir(&beside.join("hooks")).map_err(|error| failed(&error))?;
        open(&beside).map_err(|error| failed(&format!("{error:#}")))
    }

    /// Puts the repository made by [`Cache::create_beside`] in the place of the cache.
    pub fn replace(&self) -> io::Result<()> {
        let old = self.beside(OLD);
        remove_dir(&old)?;
        match fs::rename(&self.dir, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(self.beside(NEW), &self.dir)?;
        remove_dir(&old)
    }

    /// Removes the repository being made, if there is one.
    pub fn remove_beside(&self) -> io::Result<()> {
        remove_dir(&self.beside(NEW))
    }

    /// Removes the whole cache.
    pub fn remove(&self) -> io::Result<()> {
        let old = self.beside(OLD);
        remove_dir(&old)?;
        // Renamed first: a reader or a crash never meets half a cache under the final name.
        match fs::rename(&self.dir, &old) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => remove_dir(&old),
        }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.dir.with_extension(suffix)
    }
}

/// At start: removes what an earlier process left in any cache. A swap that was cut off is completed.
pub fn clean_root(root: &Path) -> io::Result<()> {
    for name in cache_entries(root)? {
        let path = root.join(&name);
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some(NEW) => remove_dir(&path)?,
            Some(OLD) => {
                let cache = path.with_extension("");
                // Between the two renames of a swap the old cache is the only one.
                if cache.exists() { remove_dir(&path)? } else { fs::rename(&path, &cache)? }
            }
            _ => remove_leftovers(&path)?,
        }
    }
    Ok(())
}

/// Names of the directories below `root`; none if it does not exist.
pub fn cache_entries(root: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// The commit id as gix names it.
pub fn object_id(revision: Revision) -> gix::ObjectId {
    gix::ObjectId::Sha1(*revision.as_bytes())
}

fn open(dir: &Path) -> Result<gix::Repository, gix::Error> {
    Ok(gix::ThreadSafeRepository::open_opts(dir, open_options())?.to_thread_local())
}

/// No system, user or environment configuration; the directory is ours whoever owns it.
fn open_options() -> gix::open::Options {
    gix::open::Options::isolated().with(gix::sec::Trust::Full)
}

fn remove_leftovers(dir: &Path) -> io::Result<()> {
    let pack_dir = dir.join("objects").join("pack");
    for name in file_names(&pack_dir)? {
        let path = pack_dir.join(&name);
        let known = name.starts_with("pack-")
            && matches!(
                path.extension().and_then(|suffix| suffix.to_str()),
                Some("pack" | "idx" | "keep" | "rev")
            );
        // The index is written last: a pack without one was never finished.
        let finished = known && path.with_extension("idx").is_file() && path.with_extension("pack").is_file();
        if !finished {
            remove_file(&path)?;
        }
    }
    for folder in [dir.to_owned(), dir.join("refs").join("pintle")] {
        for name in file_names(&folder)? {
            if Path::new(&name).extension().is_some_and(|suffix| suffix == "lock") {
                remove_file(&folder.join(name))?;
            }
        }
    }
    Ok(())
}

fn file_names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"x").unwrap();
    }

    #[test]
    fn leftovers_of_an_aborted_fetch_are_removed_and_finished_packs_stay() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("0123456789abcdef");
        let pack = dir.join("objects/pack");
        for name in
            ["pack-1.pack", "pack-1.idx", "pack-1.keep", "Ab3xYz", ".tmpQ", "pack-2.pack", "pack-3.keep"]
        {
            touch(&pack.join(name));
        }
        touch(&dir.join("shallow.lock"));
        touch(&dir.join("shallow"));
        touch(&dir.join("refs/pintle/aa.lock"));
        clean_root(root.path()).unwrap();
        let mut left = file_names(&pack).unwrap();
        left.sort();
        assert_eq!(left, ["pack-1.idx", "pack-1.keep", "pack-1.pack"]);
        assert!(!dir.join("shallow.lock").exists() && !dir.join("refs/pintle/aa.lock").exists());
        assert!(dir.join("shallow").exists());
    }

    #[test]
    fn a_swap_that_was_cut_off_keeps_the_old_cache() {
        let root = tempfile::tempdir().unwrap();
        touch(&root.path().join("a.old/HEAD"));
        touch(&root.path().join("b.old/HEAD"));
        touch(&root.path().join("b/HEAD"));
        touch(&root.path().join("c.new/HEAD"));
        clean_root(root.path()).unwrap();
        let mut names = cache_entries(root.path()).unwrap();
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_missing_cache_has_nothing() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(&root.path().join("none"), "0123456789abcdef");
        assert!(!cache.has(Revision::from_bytes([1; 20])));
        assert!(cache.revisions().is_empty());
        clean_root(&root.path().join("none")).unwrap();
    }
}
