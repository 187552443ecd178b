//! The files of a source, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file or a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Content.
    File(Arc<[u8]>),
    /// Target, as it stands.
    Symlink(String),
}

/// Files by path from the root, `/` between parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceTree {
    files: BTreeMap<String, Entry>,
}

/// Why a path cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// A link leads out of the tree.
    #[error(
        "{0}: the symbolic link leads out of the repository (to {1:?}); only links inside of it are followed"
    )]
    Outside(String, String),
    /// A link leads nowhere.
    #[error("{0}: the symbolic link leads to {1:?}, which does not exist")]
    Dangling(String, String),
    /// Links lead in a circle.
    #[error("{0}: the symbolic links lead in a circle")]
    Circle(String),
}

/// Links followed for one file, as Linux does.
const MAX_LINKS: usize = 40;

impl FromIterator<(String, Entry)> for SourceTree {
    fn from_iter<I: IntoIterator<Item = (String, Entry)>>(entries: I) -> Self {
        Self { files: entries.into_iter().collect() }
    }
}

impl SourceTree {
    /// Names of files and links directly in a folder.
    pub fn names_in(&self, folder: &str) -> Vec<String> {
        let prefix = prefix_of(folder);
        self.files
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix))
            .filter(|rest| !rest.contains('/'))
            .map(str::to_owned)
            .collect()
    }

    /// Is there anything at or below the path?
    pub fn exists(&self, path: &str) -> bool {
        let prefix = prefix_of(path);
        prefix.is_empty()
            || self.files.contains_key(path.trim_matches('/'))
            || self.files.keys().any(|known| known.starts_with(&prefix))
    }

    /// Folders directly in a folder.
    pub fn folders_in(&self, folder: &str) -> BTreeSet<String> {
        let prefix = prefix_of(folder);
        self.files
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix)?.split_once('/').map(|(name, _)| name.to_owned()))
            .collect()
    }

    /// Paths of all files at or below a path, links to folders followed, in order. A link leads to the files of its
    /// target under the link's own name.
    pub fn walk(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let path = path.trim_matches('/');
        let mut found = Vec::new();
        self.walk_into(path, path, 0, &mut found)?;
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn walk_into(
        &self,
        real: &str,
        shown: &str,
        depth: usize,
        found: &mut Vec<String>,
    ) -> Result<(), TreeError> {
        if depth > MAX_LINKS {
            return Err(TreeError::Circle(shown.to_owned()));
        }
        let prefix = prefix_of(real);
        for (path, entry) in &self.files {
            let rest = if path == real {
                ""
            } else {
                match path.strip_prefix(&prefix) {
                    Some(rest) => rest,
                    None => continue,
                }
            };
            let name = join(shown, rest);
            match entry {
                Entry::File(_) => found.push(name),
                Entry::Symlink(target) => {
                    let to = resolve(path, target)
                        .ok_or_else(|| TreeError::Outside(name.clone(), target.clone()))?;
                    match self.files.get(&to) {
                        Some(Entry::File(_)) => found.push(name),
                        Some(Entry::Symlink(_)) => self.walk_into(&to, &name, depth + 1, found)?,
                        None if self.exists(&to) && !to.is_empty() => {
                            self.walk_into(&to, &name, depth + 1, found)?;
                        }
                        None => return Err(TreeError::Dangling(name, target.clone())),
                    }
                }
            }
        }
        Ok(())
    }

    /// Content of a file, links on the way followed.
    pub fn read(&self, path: &str) -> Result<Option<Arc<[u8]>>, TreeError> {
        let mut at = path.trim_matches('/').to_owned();
        for _ in 0..MAX_LINKS {
            match self.files.get(&at) {
                Some(Entry::File(bytes)) => return Ok(Some(bytes.clone())),
                Some(Entry::Symlink(target)) => {
                    at = resolve(&at, target)
                        .ok_or_else(|| TreeError::Outside(path.to_owned(), target.clone()))?;
                }
                // A folder on the way may be a link.
                None => match self.through_link(&at) {
                    Some(next) => at = next?,
                    None => return Ok(None),
                },
            }
        }
        Err(TreeError::Circle(path.to_owned()))
    }

    fn through_link(&self, path: &str) -> Option<Result<String, TreeError>> {
        let mut end = path.len();
        while let Some(at) = path[..end].rfind('/') {
            if let Some(Entry::Symlink(target)) = self.files.get(&path[..at]) {
                let to = resolve(&path[..at], target);
                return Some(match to {
                    Some(to) => Ok(join(&to, &path[at + 1..])),
                    None => Err(TreeError::Outside(path.to_owned(), target.clone())),
                });
            }
            end = at;
        }
        None
    }
}

fn prefix_of(folder: &str) -> String {
    let folder = folder.trim_matches('/');
    if folder.is_empty() || folder == "." { String::new() } else { format!("{folder}/") }
}

fn join(folder: &str, rest: &str) -> String {
    match (folder.is_empty() || folder == ".", rest.is_empty()) {
        (true, _) => rest.to_owned(),
        (false, true) => folder.to_owned(),
        (false, false) => format!("{folder}/{rest}"),
    }
}

/// The path that a link at `path` means; `None` when it leaves the tree.
fn resolve(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
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
