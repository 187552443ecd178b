//! A directory on disk as a source tree, for `pintle render`: what a commit of it would hold.
//!
//! # Guarantees
//! Symlinks are taken as text, as git stores them; the renderer follows those that stay inside and refuses the
//! others, as it does for the agent. Sizes and counts have the agent's limits.

use std::fs;
use std::io::Read;
use std::path::Path;

use pintle_model::{Problem, Reason, limits};
use pintle_render::{Entry, SourceTree};

/// Reads the files below `dir`. Git's own directory is left out, as a commit has none.
///
/// # Errors
/// Something cannot be read, a name is not UTF-8, or a limit is passed.
pub fn read(dir: &Path) -> Result<SourceTree, Problem> {
    if !fs::metadata(dir).map_err(|error| failed("open", dir, &error))?.is_dir() {
        return Err(Problem::new(Reason::Usage, format!("{} is not a directory", dir.display())));
    }
    let mut reader = Reader { files: vec![], bytes: 0 };
    reader.folder(dir, "")?;
    Ok(reader.files.into_iter().collect())
}

struct Reader {
    files: Vec<(String, Entry)>,
    bytes: usize,
}

impl Reader {
    fn folder(&mut self, dir: &Path, prefix: &str) -> Result<(), Problem> {
        for entry in fs::read_dir(dir).map_err(|error| failed("list", dir, &error))? {
            let entry = entry.map_err(|error| failed("list", dir, &error))?;
            let name = utf8(dir, entry.file_name())?;
            if name == ".git" {
                continue;
            }
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let real = entry.path();
            let kind = entry.file_type().map_err(|error| failed("read", &real, &error))?;
            if kind.is_dir() {
                self.folder(&real, &path)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&real).map_err(|error| failed("read", &real, &error))?;
                let target = utf8(&real, target.into_os_string())?;
                self.insert(path, Entry::Symlink(target))?;
            } else if kind.is_file() {
                let bytes = self.file(&real)?;
                self.insert(path, Entry::File(bytes.into()))?;
            }
        }
        Ok(())
    }

    fn file(&mut self, real: &Path) -> Result<Vec<u8>, Problem> {
        let mut bytes = vec![];
        fs::File::open(real)
            // One byte more than allowed tells that there is more.
            .and_then(|file| file.take(limits::BLOB_MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| failed("read", real, &error))?;
        if bytes.len() > limits::BLOB_MAX_BYTES {
            return Err(too_much(&format!("{}: more than {} bytes", real.display(), limits::BLOB_MAX_BYTES)));
        }
        self.bytes += bytes.len();
        // The agent's limit on a tree: ten times what may count as manifests.
        if self.bytes > 10 * limits::DIRECTORY_MAX_BYTES {
            let most = 10 * limits::DIRECTORY_MAX_BYTES;
            return Err(too_much(&format!("{}: more than {most} bytes up to here", real.display())));
        }
        Ok(bytes)
    }

    fn insert(&mut self, path: String, entry: Entry) -> Result<(), Problem> {
        if self.files.len() >= limits::TREE_MAX_FILES {
            return Err(too_much(&format!("{path}: more than {} files up to here", limits::TREE_MAX_FILES)));
        }
        self.files.push((path, entry));
        Ok(())
    }
}

fn utf8(place: &Path, name: std::ffi::OsString) -> Result<String, Problem> {
    name.into_string().map_err(|name| {
        let message = format!("{}: {} is not UTF-8", place.display(), name.to_string_lossy());
        Problem::new(Reason::RenderError, message)
    })
}

fn too_much(message: &str) -> Problem {
    Problem::new(Reason::RenderError, message)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Reason::RenderError, format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder() -> tempfile::TempDir {
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
        let dir = folder();
        symlink("deep/b.yaml", dir.path().join("in/link.yaml")).unwrap();
        let tree = read(&dir.path().join("in")).unwrap();
        assert_eq!(tree.walk("").unwrap(), ["a.yaml", "deep/b.yaml", "link.yaml"]);
        assert_eq!(tree.read("link.yaml").unwrap().as_deref(), Some(&b"b"[..]));
    }

    #[test]
    fn a_symlink_out_of_the_directory_is_not_followed() {
        let dir = folder();
        symlink("../outside", dir.path().join("in/link.yaml")).unwrap();
        let tree = read(&dir.path().join("in")).unwrap();
        assert!(tree.read("link.yaml").is_err());
    }

    #[test]
    fn a_file_that_is_too_large_is_named() {
        let dir = folder();
        let file = fs::File::create(dir.path().join("in/large.bin")).unwrap();
        file.set_len(limits::BLOB_MAX_BYTES as u64 + 1).unwrap();
        let problem = read(&dir.path().join("in")).unwrap_err();
        assert!(problem.message.contains("large.bin: more than"), "{problem}");
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let dir = folder();
        assert_eq!(read(&dir.path().join("outside")).unwrap_err().reason, Reason::Usage);
        assert!(read(&dir.path().join("none")).unwrap_err().message.contains("cannot open"));
    }
}
