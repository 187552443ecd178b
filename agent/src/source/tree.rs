//! Files of a commit, read from the object database. No work tree is ever written: no path on the disk of the
//! node is made from a name in the repository.

use std::collections::HashSet;
use std::sync::Arc;

use gix::objs::tree::EntryKind;
use pintle_model::limits::{BLOB_MAX_BYTES, TREE_MAX_BYTES, TREE_MAX_FILES};
use pintle_model::{Problem, Reason, Revision};

use super::cache::object_id;
use super::{CommitInfo, Entry, Tree};

/// Symbolic links followed on the way to one file; Linux stops at 40 too.
const MAX_LINKS: usize = 40;
/// Longest path in a repository that is read; PATH_MAX of Linux.
const MAX_PATH_BYTES: usize = 4096;

/// Why a read failed.
#[derive(Debug)]
pub enum ReadFailure {
    /// The repository's content or the request is refused.
    Refused(Problem),
    /// An object is missing or broken: the cache has to be fetched again.
    Damaged(Problem),
}

/// Reads everything below `path` at `revision`, and what symbolic links found there lead to.
pub fn read(
    repository: &gix::Repository,
    url: &str,
    revision: Revision,
    path: &str,
) -> Result<Tree, ReadFailure> {
    let mut repository = repository.clone();
    repository.object_cache_size(4 * 1024 * 1024);
    let root =
        commit_of(&repository, url, revision)?.tree_id().map_err(|error| damaged(url, &error))?.detach();
    let start = normalise(path).ok_or_else(|| {
        refused(
            Reason::InvalidSpecError,
            format!("{url}: path {path:?} is not a relative path inside the repository"),
        )
    })?;
    let mut reader =
        Reader { repository: &repository, url, root, tree: Tree::default(), bytes: 0, entries: 0 };
    let mut queue = vec![(start.clone(), 0)];
    let mut seen = HashSet::new();
    while let Some((wanted, links)) = queue.pop() {
        if links > MAX_LINKS || !seen.insert(wanted.clone()) {
            continue;
        }
        let found = reader.visit(&wanted, links, &mut queue)?;
        // A dangling link inside the tree is the reader's business; the path that was asked for is not.
        if !found && links == 0 {
            return Err(refused(
                Reason::InvalidSpecError,
                format!("{url}: path {path:?} does not exist at commit {revision}"),
            ));
        }
    }
    Ok(reader.tree)
}

/// Author, committer time and subject of `revision`.
pub fn commit_info(
    repository: &gix::Repository,
    url: &str,
    revision: Revision,
) -> Result<CommitInfo, ReadFailure> {
    let commit = commit_of(repository, url, revision)?;
    let author = commit.author().map_err(|error| damaged(url, &error))?.name.to_string();
    let seconds = commit.time().map_err(|error| damaged(url, &error))?.seconds;
    let subject = commit.message().map_err(|error| damaged(url, &error))?.summary().to_string();
    // A commit may claim any time; one that no calendar has reads as 1970.
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Ok(CommitInfo { author, time, subject })
}

fn commit_of<'repo>(
    repository: &'repo gix::Repository,
    url: &str,
    revision: Revision,
) -> Result<gix::Commit<'repo>, ReadFailure> {
    match repository.try_find_object(object_id(revision)) {
        Ok(Some(object)) => object
            .try_into_commit()
            .map_err(|_| refused(Reason::RevisionNotFound, format!("{url}: {revision} is not a commit"))),
        Ok(None) => Err(refused(
            Reason::SourceError,
            format!("{url}: commit {revision} is not in the cache: it has not been fetched yet"),
        )),
        Err(error) => Err(damaged(url, &error)),
    }
}

struct Reader<'a> {
    repository: &'a gix::Repository,
    url: &'a str,
    root: gix::ObjectId,
    tree: Tree,
    bytes: usize,
    /// Files, links and folders seen: a tree may name one folder many times over (a "git bomb").
    entries: usize,
}

/// Paths still to visit, each with the number of links that led to it.
type Queue = Vec<(String, usize)>;

impl Reader<'_> {
    /// Goes to `path`, component by component, and reads what is there. `false` if there is nothing.
    fn visit(&mut self, path: &str, links: usize, queue: &mut Queue) -> Result<bool, ReadFailure> {
        let mut here = self.root;
        let mut walked = String::new();
        let mut components = path.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(component) = components.next() {
            let Some((kind, id)) = self.entry_of(here, component)? else { return Ok(false) };
            push_component(&mut walked, component);
            match kind {
                EntryKind::Tree => here = id,
                EntryKind::Link => {
                    let mut target = self.add_link(&walked, id)?;
                    for rest in components {
                        push_component(&mut target, rest);
                    }
                    queue.push((target, links + 1));
                    return Ok(true);
                }
                EntryKind::Blob | EntryKind::BlobExecutable if components.peek().is_none() => {
                    self.add_file(walked, id)?;
                    return Ok(true);
                }
                EntryKind::Blob | EntryKind::BlobExecutable => return Ok(false),
                EntryKind::Commit => {
                    self.tree.submodules.push(walked);
                    return Ok(true);
                }
            }
        }
        self.add_folder(walked, here, links, queue)?;
        Ok(true)
    }

    fn add_folder(
        &mut self,
        path: String,
        id: gix::ObjectId,
        links: usize,
        queue: &mut Queue,
    ) -> Result<(), ReadFailure> {
        let mut folders = vec![(path, id)];
        while let Some((path, id)) = folders.pop() {
            for (name, kind, id) in self.entries_of(id, &path)? {
                let mut full = path.clone();
                push_component(&mut full, &name);
                self.count(&full)?;
                match kind {
                    EntryKind::Tree => folders.push((full, id)),
                    EntryKind::Blob | EntryKind::BlobExecutable => self.add_file(full, id)?,
                    EntryKind::Link => {
                        let target = self.add_link(&full, id)?;
                        queue.push((target, links + 1));
                    }
                    EntryKind::Commit => self.tree.submodules.push(full),
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: String, id: gix::ObjectId) -> Result<(), ReadFailure> {
        if self.tree.files.contains_key(&path) {
            return Ok(());
        }
        let size = self.repository.find_header(id).map_err(|error| damaged(self.url, &error))?.size();
        if size > BLOB_MAX_BYTES as u64 {
            return Err(self.content(format!(
                "file {path:?} has {size} bytes; at most {} MiB are read: move it out of the application's path",
                BLOB_MAX_BYTES >> 20
            )));
        }
        self.bytes += usize::try_from(size).unwrap_or(usize::MAX);
        if self.bytes > TREE_MAX_BYTES {
            return Err(self.content(format!(
                "the files below the application's path have more than {} MiB",
                TREE_MAX_BYTES >> 20
            )));
        }
        let data = self.repository.find_object(id).map_err(|error| damaged(self.url, &error))?.detach().data;
        self.tree.files.insert(path, Entry::File(Arc::from(data)));
        Ok(())
    }

    /// Records the link at `path` and returns where it leads, from the repository's root.
    fn add_link(&mut self, path: &str, id: gix::ObjectId) -> Result<String, ReadFailure> {
        let size = self.repository.find_header(id).map_err(|error| damaged(self.url, &error))?.size();
        if size > MAX_PATH_BYTES as u64 {
            return Err(self.content(format!("the target of the symbolic link {path:?} is too long")));
        }
        let data = self.repository.find_object(id).map_err(|error| damaged(self.url, &error))?.detach().data;
        let target = String::from_utf8(data)
            .map_err(|_| self.content(format!("the target of the symbolic link {path:?} is not UTF-8")))?;
        let resolved = resolve_link(path, &target).ok_or_else(|| {
            self.content(format!("the symbolic link {path:?} leads out of the repository (to {target:?})"))
        })?;
        self.tree.files.insert(path.to_owned(), Entry::Symlink(target));
        Ok(resolved)
    }

    fn entry_of(
        &self,
        tree: gix::ObjectId,
        name: &str,
    ) -> Result<Option<(EntryKind, gix::ObjectId)>, ReadFailure> {
        let tree = self.repository.find_tree(tree).map_err(|error| damaged(self.url, &error))?;
        let decoded = tree.decode().map_err(|error| damaged(self.url, &error))?;
        let found = decoded.entries.iter().find(|entry| entry.filename == name);
        Ok(found.map(|entry| (entry.mode.kind(), entry.oid.to_owned())))
    }

    fn entries_of(
        &self,
        tree: gix::ObjectId,
        path: &str,
    ) -> Result<Vec<(String, EntryKind, gix::ObjectId)>, ReadFailure> {
        let tree = self.repository.find_tree(tree).map_err(|error| damaged(self.url, &error))?;
        let decoded = tree.decode().map_err(|error| damaged(self.url, &error))?;
        let mut entries = Vec::with_capacity(decoded.entries.len());
        for entry in &decoded.entries {
            let name = std::str::from_utf8(entry.filename).ok().filter(|name| is_plain_name(name));
            let Some(name) = name else {
                return Err(self.content(format!(
                    "folder {path:?} holds an entry whose name is not allowed: {:?}",
                    entry.filename.to_string()
                )));
            };
            entries.push((name.to_owned(), entry.mode.kind(), entry.oid.to_owned()));
        }
        Ok(entries)
    }

    fn count(&mut self, path: &str) -> Result<(), ReadFailure> {
        self.entries += 1;
        if self.entries > TREE_MAX_FILES {
            return Err(self.content(format!(
                "there are more than {TREE_MAX_FILES} files below the application's path"
            )));
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(self.content(format!("a path has more than {MAX_PATH_BYTES} bytes")));
        }
        Ok(())
    }

    fn content(&self, text: String) -> ReadFailure {
        refused(Reason::RenderError, format!("{}: {text}", self.url))
    }
}

fn refused(reason: Reason, message: String) -> ReadFailure {
    ReadFailure::Refused(Problem::new(reason, message))
}

/// An I/O error (out of descriptors, no permission) says nothing about the cache; all else does.
fn damaged(url: &str, error: &gix::Error) -> ReadFailure {
    let problem = Problem::new(Reason::SourceError, format!("{url}: cannot read the git cache: {error:#}"));
    let healthy_disk_error = error.iter_errors().any(|one| {
        one.downcast_ref::<std::io::Error>().is_some_and(|error| {
            !matches!(
                error.kind(),
                std::io::ErrorKind::NotFound
                    | std::io::ErrorKind::UnexpectedEof
                    | std::io::ErrorKind::InvalidData
            )
        })
    });
    if healthy_disk_error { ReadFailure::Refused(problem) } else { ReadFailure::Damaged(problem) }
}

fn push_component(path: &mut String, component: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(component);
}

/// Names that git itself would not write to a work tree, and that would confuse every reader of paths.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// `path` without `.`, empty parts and surrounding slashes; `None` if it is absolute or has `..`.
fn normalise(path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\0') {
        return None;
    }
    let mut out = String::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => push_component(&mut out, part),
        }
    }
    Some(out)
}

/// Where a link at `link` with the text `target` leads; `None` if that is outside the repository.
fn resolve_link(link: &str, target: &str) -> Option<String> {
    if target.starts_with('/') || target.contains('\0') || target.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in target.split('/') {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_applications_stay_inside() {
        assert_eq!(normalise("").as_deref(), Some(""));
        assert_eq!(normalise(".").as_deref(), Some(""));
        assert_eq!(normalise("./apps//web/").as_deref(), Some("apps/web"));
        for path in ["/etc", "..", "apps/../../etc", "a\0b"] {
            assert_eq!(normalise(path), None, "{path:?}");
        }
    }

    #[test]
    fn links_are_resolved_from_their_folder() {
        assert_eq!(resolve_link("apps/web/a.yaml", "../base/a.yaml").as_deref(), Some("apps/base/a.yaml"));
        assert_eq!(resolve_link("a", "b/./c").as_deref(), Some("b/c"));
        assert_eq!(resolve_link("apps/x", "..").as_deref(), Some(""));
        for (link, target) in
            [("a", ".."), ("apps/a", "../../x"), ("a", "/etc/passwd"), ("a", ""), ("a", "x/../../y")]
        {
            assert_eq!(resolve_link(link, target), None, "{link} -> {target}");
        }
    }

    #[test]
    fn names_that_are_no_names_are_refused() {
        assert!(is_plain_name("a.yaml") && is_plain_name("..."));
        for name in ["", ".", "..", "a/b", "a\0"] {
            assert!(!is_plain_name(name), "{name:?}");
        }
    }
}
