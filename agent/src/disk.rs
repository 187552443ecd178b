//! A directory on disk seen as a source tree, for `pintle render`: the paths that a commit of it would have.
//!
//! # Guarantees
//! No path and no symlink leads outside the directory; sizes and counts have the agent's own limits.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use pintle_model::{Problem, Reason, limits};

/// Files below a directory.
#[derive(Debug, Clone)]
pub struct DiskTree {
    root: PathBuf,
    files: BTreeMap<String, PathBuf>,
}

impl DiskTree {
    /// Lists the files below `dir`. Git's own directory is left out, as a commit has none.
    ///
    /// # Errors
    /// The directory cannot be read, a symlink leads outside or nowhere, a name is not UTF-8, or there are too many files.
    pub fn open(dir: &Path) -> Result<Self, Problem> {
        let root = dir.canonicalize().map_err(|error| failed("open", dir, &error))?;
        if !root.is_dir() {
            return Err(Problem::new(Reason::Usage, format!("{} is not a directory", dir.display())));
        }
        let mut tree = Self { root, files: BTreeMap::new() };
        tree.list(&tree.root.clone(), "", &mut vec![tree.root.clone()])?;
        Ok(tree)
    }

    /// Every file's path below the directory, with `/` between parts, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// A file's bytes; none where there is no such file.
    ///
    /// # Errors
    /// It cannot be read or is larger than [`limits::BLOB_MAX_BYTES`].
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Problem> {
        let Some(real) = self.files.get(path) else { return Ok(None) };
        let mut bytes = vec![];
        fs::File::open(real)
            // One byte more than allowed tells that there is more.
            .and_then(|file| file.take(limits::BLOB_MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| failed("read", real, &error))?;
        if bytes.len() > limits::BLOB_MAX_BYTES {
            let message = format!("{path}: larger than {} bytes", limits::BLOB_MAX_BYTES);
            return Err(Problem::new(Reason::RenderError, message));
        }
        Ok(Some(bytes))
    }

    /// `above` holds the real directories on the way here, so that a symlink to one of them ends the walk.
    fn list(&mut self, dir: &Path, prefix: &str, above: &mut Vec<PathBuf>) -> Result<(), Problem> {
        let entries = fs::read_dir(dir).map_err(|error| failed("list", dir, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed("list", dir, &error))?;
            let name = entry.file_name().into_string().map_err(|name| {
                let message = format!("{}: the name {} is not UTF-8", dir.display(), name.to_string_lossy());
                Problem::new(Reason::RenderError, message)
            })?;
            if name == ".git" {
                continue;
            }
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let link = entry.path();
            let real = link.canonicalize().map_err(|error| failed("follow", &link, &error))?;
            if !real.starts_with(&self.root) {
                let message = format!("{path}: the symlink leads outside of {}", self.root.display());
                return Err(Problem::new(Reason::RenderError, message));
            }
            if real.is_dir() {
                if above.contains(&real) {
                    let message = format!("{path}: the symlink leads to a directory that holds it");
                    return Err(Problem::new(Reason::RenderError, message));
                }
                above.push(real.clone());
                self.list(&real, &path, above)?;
                above.pop();
            } else if real.is_file() {
                self.files.insert(path, real);
                self.count()?;
            }
        }
        Ok(())
    }

    fn count(&self) -> Result<(), Problem> {
        if self.files.len() <= limits::TREE_MAX_FILES {
            return Ok(());
        }
        let message = format!("{}: more than {} files", self.root.display(), limits::TREE_MAX_FILES);
        Err(Problem::new(Reason::RenderError, message))
    }
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Reason::RenderError, format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("in/deep")).unwrap();
        fs::create_dir_all(dir.path().join("in/.git")).unwrap();
        fs::write(dir.path().join("in/a.yaml"), "a").unwrap();
        fs::write(dir.path().join("in/deep/b.yaml"), "b").unwrap();
        fs::write(dir.path().join("in/.git/config"), "x").unwrap();
        fs::write(dir.path().join("outside"), "secret").unwrap();
        dir
    }

    #[test]
    fn files_have_the_paths_of_a_commit() {
        let dir = tree();
        symlink("deep", dir.path().join("in/link")).unwrap();
        let tree = DiskTree::open(&dir.path().join("in")).unwrap();
        assert_eq!(tree.paths().collect::<Vec<_>>(), ["a.yaml", "deep/b.yaml", "link/b.yaml"]);
        assert_eq!(tree.read("link/b.yaml").unwrap().unwrap(), b"b");
        assert_eq!(tree.read("../outside").unwrap(), None);
    }

    #[test]
    fn a_symlink_outside_or_to_itself_or_nowhere_is_refused_by_name() {
        for (target, text) in
            [("../outside", "leads outside"), (".", "directory that holds it"), ("nothing", "cannot follow")]
        {
            let dir = tree();
            symlink(target, dir.path().join("in/link")).unwrap();
            let problem = DiskTree::open(&dir.path().join("in")).unwrap_err();
            assert!(problem.message.contains("link") && problem.message.contains(text), "{problem}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_when_it_is_read() {
        let dir = tree();
        let file = fs::File::create(dir.path().join("in/large.bin")).unwrap();
        file.set_len(limits::BLOB_MAX_BYTES as u64 + 1).unwrap();
        let tree = DiskTree::open(&dir.path().join("in")).unwrap();
        assert!(tree.read("large.bin").unwrap_err().message.contains("larger than"));
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let dir = tree();
        assert_eq!(DiskTree::open(&dir.path().join("outside")).unwrap_err().reason, Reason::Usage);
        assert!(DiskTree::open(&dir.path().join("none")).unwrap_err().message.contains("cannot open"));
    }
}
