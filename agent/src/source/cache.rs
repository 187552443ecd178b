//! The bare cache of one repository: packs, kept revisions as refs, trees and blobs.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gix::bstr::ByteSlice as _;
use jiff::Timestamp;
use pintle_model::{Digest, Problem, Reason, Revision, limits};

use super::{CommitInfo, Entry, Tree};

/// Folder below a cache where packs arrive.
const INCOMING: &str = "incoming";

/// Name of a repository's cache folder.
pub(super) fn name(url: &str) -> String {
    Digest::of(url.trim_end_matches('/').trim_end_matches(".git").as_bytes()).short(16)
}

/// Makes the cache if it is not there, sets a damaged one aside, and clears what an aborted fetch left.
pub(super) fn prepare(folder: &Path) -> Result<(), Problem> {
    if folder.exists() && open(folder).is_err() {
        let aside = folder.with_extension("damaged");
        let _ = fs::remove_dir_all(&aside);
        fs::rename(folder, &aside).map_err(|error| disk("move", folder, &error))?;
        tracing::warn!("the git cache {} was damaged and is fetched anew", folder.display());
    }
    if !folder.exists() {
        fs::create_dir_all(folder).map_err(|error| disk("make", folder, &error))?;
        gix::init_bare(folder).map_err(|error| git(folder, "make", &error))?;
    }
    let incoming = folder.join(INCOMING);
    if incoming.exists() {
        fs::remove_dir_all(&incoming).map_err(|error| disk("clear", &incoming, &error))?;
    }
    fs::create_dir_all(&incoming).map_err(|error| disk("make", &incoming, &error))
}

/// A pack that is arriving; its file goes when this is dropped.
pub(super) struct Incoming(PathBuf);

impl Incoming {
    pub(super) fn new(folder: &Path) -> Result<Self, Problem> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let incoming = folder.join(INCOMING);
        if !incoming.exists() {
            fs::create_dir_all(&incoming).map_err(|error| disk("make", &incoming, &error))?;
        }
        Ok(Self(incoming.join(format!("{}.pack", COUNT.fetch_add(1, Ordering::Relaxed)))))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Verifies and indexes a pack, then makes the revision visible: a broken pack changes nothing.
pub(super) fn store(
    folder: &Path,
    incoming: &Incoming,
    revision: Revision,
    shallow: &[Revision],
    url: &str,
) -> Result<(), Problem> {
    let packs = folder.join("objects/pack");
    fs::create_dir_all(&packs).map_err(|error| disk("make", &packs, &error))?;
    let file = fs::File::open(incoming.path()).map_err(|error| disk("read", incoming.path(), &error))?;
    let outcome = gix::odb::pack::Bundle::write_to_directory(
        &mut BufReader::new(file),
        Some(&packs),
        &mut gix::progress::Discard,
        &AtomicBool::new(false),
        None::<gix::objs::find::Never>,
        gix::hash::Kind::Sha1,
        gix::odb::pack::bundle::write::Options::default(),
    )
    .map_err(|error| Problem::new(Reason::SourceError, format!("{url}: the pack is damaged: {error}")))?;
    add_shallow(folder, shallow)?;
    // The ref makes the revision one that is kept; written last.
    let refs = folder.join("refs/pintle");
    fs::create_dir_all(&refs).map_err(|error| disk("make", &refs, &error))?;
    let name = refs.join(revision.to_string());
    fs::write(&name, format!("{revision}\n")).map_err(|error| disk("write", &name, &error))?;
    if let Some(keep) = outcome.keep_path {
        let _ = fs::remove_file(keep);
    }
    if has(folder, revision) {
        return Ok(());
    }
    let _ = fs::remove_file(&name);
    Err(Problem::new(Reason::SourceError, format!("{url}: the pack does not hold the commit {revision}")))
}

/// Where history is cut, for every tool that reads the cache.
fn add_shallow(folder: &Path, shallow: &[Revision]) -> Result<(), Problem> {
    let path = folder.join("shallow");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    lines.extend(shallow.iter().map(ToString::to_string));
    lines.sort();
    lines.dedup();
    if lines.is_empty() {
        return Ok(());
    }
    fs::write(&path, lines.join("\n") + "\n").map_err(|error| disk("write", &path, &error))
}

/// Is the commit here, with its tree?
pub(super) fn has(folder: &Path, revision: Revision) -> bool {
    let Ok(repo) = open(folder) else { return false };
    repo.find_commit(id(revision)).is_ok_and(|commit| commit.tree().is_ok())
}

/// Author, time, subject.
pub(super) fn commit(folder: &Path, revision: Revision, url: &str) -> Result<CommitInfo, Problem> {
    let repo = open(folder).map_err(|error| absent(url, revision, &error))?;
    let commit = repo.find_commit(id(revision)).map_err(|error| absent(url, revision, &error.to_string()))?;
    let broken =
        |error: String| Problem::new(Reason::SourceError, format!("{url}: commit {revision}: {error}"));
    let author = commit.author().map_err(|error| broken(error.to_string()))?.name.to_string();
    let seconds = commit.time().map_err(|error| broken(error.to_string()))?.seconds;
    let subject = commit.message_raw_sloppy().lines().next().unwrap_or_default().to_str_lossy().into_owned();
    Ok(CommitInfo { author, time: Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH), subject })
}

/// The files below a path, and the targets of links that are reached from there.
pub(super) fn tree(folder: &Path, revision: Revision, path: &str, url: &str) -> Result<Tree, Problem> {
    let repo = open(folder).map_err(|error| absent(url, revision, &error))?;
    let commit = repo.find_commit(id(revision)).map_err(|error| absent(url, revision, &error.to_string()))?;
    let root = commit.tree().map_err(|error| absent(url, revision, &error.to_string()))?;
    let mut walk = Walk { repo: &repo, root, url, revision, files: BTreeMap::new(), bytes: 0 };
    let start = clean(path).ok_or_else(|| {
        Problem::new(Reason::RenderError, format!("path {path:?} leaves the repository {url}"))
    })?;
    if !walk.add(&start)? {
        return Err(walk.no_such_path(path));
    }
    walk.follow_links()?;
    Ok(Tree { files: walk.files })
}

struct Walk<'a> {
    repo: &'a gix::Repository,
    root: gix::Tree<'a>,
    url: &'a str,
    revision: Revision,
    files: BTreeMap<String, Entry>,
    bytes: usize,
}

impl Walk<'_> {
    /// Adds a file, or a folder with all below it. Returns whether it exists.
    fn add(&mut self, path: &str) -> Result<bool, Problem> {
        let mut queue: VecDeque<(String, gix::ObjectId, gix::object::tree::EntryKind)> = VecDeque::new();
        if path.is_empty() {
            queue.push_back((String::new(), self.root.id, gix::object::tree::EntryKind::Tree));
        } else {
            let found =
                self.root.lookup_entry_by_path(path).map_err(|error| self.broken(&error.to_string()))?;
            let Some(entry) = found else { return Ok(false) };
            queue.push_back((path.to_owned(), entry.object_id(), entry.mode().kind()));
        }
        while let Some((path, id, kind)) = queue.pop_front() {
            if self.files.contains_key(&path) {
                continue;
            }
            self.add_one(path, id, kind, &mut queue)?;
        }
        Ok(true)
    }

    fn add_one(
        &mut self,
        path: String,
        id: gix::ObjectId,
        kind: gix::object::tree::EntryKind,
        queue: &mut VecDeque<(String, gix::ObjectId, gix::object::tree::EntryKind)>,
    ) -> Result<(), Problem> {
        use gix::object::tree::EntryKind;
        match kind {
            EntryKind::Tree => {
                let tree = self.repo.find_tree(id).map_err(|error| self.broken(&error.to_string()))?;
                for entry in tree.iter() {
                    let entry = entry.map_err(|error| self.broken(&error.to_string()))?;
                    let name = entry.filename().to_str_lossy();
                    let below = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
                    queue.push_back((below, entry.object_id(), entry.mode().kind()));
                }
            }
            EntryKind::Blob | EntryKind::BlobExecutable => {
                let bytes = self.blob(id, &path)?;
                self.insert(path, Entry::File(Arc::from(bytes)))?;
            }
            EntryKind::Link => {
                let target = self.blob(id, &path)?.to_str_lossy().into_owned();
                self.insert(path, Entry::Symlink(target))?;
            }
            // A submodule: its content is not here, and what refers to it will say so.
            EntryKind::Commit => {}
        }
        Ok(())
    }

    fn insert(&mut self, path: String, entry: Entry) -> Result<(), Problem> {
        if self.files.len() >= limits::TREE_MAX_FILES {
            return Err(self.too_much(&format!("more than {} files below its path", limits::TREE_MAX_FILES)));
        }
        self.files.insert(path, entry);
        Ok(())
    }

    fn blob(&mut self, id: gix::ObjectId, path: &str) -> Result<Vec<u8>, Problem> {
        // The size is known before the content is read.
        let size = self.repo.find_header(id).map_err(|error| self.broken(&error.to_string()))?.size();
        if size > limits::BLOB_MAX_BYTES as u64 {
            return Err(
                self.too_much(&format!("{path} has {size} bytes, more than {}", limits::BLOB_MAX_BYTES))
            );
        }
        self.bytes += usize::try_from(size).unwrap_or(usize::MAX);
        if self.bytes > 10 * limits::DIRECTORY_MAX_BYTES {
            return Err(self
                .too_much(&format!("more than {} bytes below its path", 10 * limits::DIRECTORY_MAX_BYTES)));
        }
        let object = self.repo.find_object(id).map_err(|error| self.broken(&error.to_string()))?;
        Ok(object.detach().data)
    }

    /// Brings in the targets of links that stay inside the repository; others are refused by the renderer, which
    /// knows whether they matter.
    fn follow_links(&mut self) -> Result<(), Problem> {
        for _ in 0..16 {
            let missing: Vec<String> = self
                .files
                .iter()
                .filter_map(|(path, entry)| match entry {
                    Entry::Symlink(target) => resolve_link(path, target),
                    Entry::File(_) => None,
                })
                .filter(|target| !self.files.contains_key(target))
                .filter(|target| !self.files.keys().any(|path| path.starts_with(&format!("{target}/"))))
                .collect();
            if missing.is_empty() {
                return Ok(());
            }
            let mut any = false;
            for target in missing {
                any |= self.add(&target)?;
            }
            if !any {
                return Ok(());
            }
        }
        Ok(())
    }

    fn no_such_path(&self, path: &str) -> Problem {
        // The nearest folder that exists tells where the path goes wrong.
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut folder = None;
        while parts.pop().is_some() {
            let parent = parts.join("/");
            let tree = if parent.is_empty() {
                self.repo.find_tree(self.root.id).ok()
            } else {
                let entry = self.root.lookup_entry_by_path(&parent).ok().flatten();
                entry.and_then(|entry| self.repo.find_tree(entry.object_id()).ok())
            };
            if let Some(tree) = tree {
                let names: Vec<String> = tree
                    .iter()
                    .filter_map(Result::ok)
                    .filter(|entry| entry.mode().is_tree())
                    .map(|entry| entry.filename().to_str_lossy().into_owned())
                    .take(20)
                    .collect();
                folder = Some((parent, names.join(", ")));
                break;
            }
        }
        let (parent, names) = folder.unwrap_or_default();
        Problem::new(
            Reason::RenderError,
            format!(
                "path {path:?} does not exist in {} at {}; folders in {:?}: {names}",
                self.url,
                self.revision.short(),
                if parent.is_empty() { "." } else { &parent }
            ),
        )
    }

    fn broken(&self, error: &str) -> Problem {
        Problem::new(
            Reason::SourceError,
            format!("{} at {}: the cache is damaged: {error}", self.url, self.revision),
        )
    }

    fn too_much(&self, what: &str) -> Problem {
        Problem::new(Reason::RenderError, format!("{} at {}: {what}", self.url, self.revision.short()))
    }
}

/// Removes caches that are not named, and half-made ones.
pub(super) fn remove_unused(folder: &Path, keep: &[String]) -> Result<(), Problem> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !keep.contains(&name) {
            fs::remove_dir_all(entry.path()).map_err(|error| disk("remove", &entry.path(), &error))?;
        }
    }
    Ok(())
}

/// A path inside the repository, without `.` and empty parts; `None` when it leaves it.
fn clean(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn resolve_link(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    clean(&format!("{folder}/{target}"))
}

/// Opens without looking at any configuration outside the cache.
fn open(folder: &Path) -> Result<gix::Repository, String> {
    gix::open_opts(folder, gix::open::Options::isolated().open_path_as_is(true))
        .map_err(|error| error.to_string())
}

fn id(revision: Revision) -> gix::ObjectId {
    gix::ObjectId::from_bytes_or_panic(revision.as_bytes())
}

fn disk(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Reason::SourceError, format!("cannot {what} {}: {error}", path.display()))
}

fn git(path: &Path, what: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Reason::SourceError, format!("cannot {what} the git cache {}: {error}", path.display()))
}

fn absent(url: &str, revision: Revision, error: &str) -> Problem {
    Problem::new(Reason::SourceError, format!("{url}: the commit {revision} is not in the cache: {error}"))
}
