//! Repositories made by git, with fixed dates and identities.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A bare repository with a work tree to commit from.
pub struct Repo {
    work: PathBuf,
}

impl Repo {
    /// Makes `name.git` below `root`.
    pub fn new(root: &Path, name: &str) -> Self {
        let bare = root.join(format!("{name}.git"));
        let work = root.join(format!("{name}-work"));
        std::fs::create_dir_all(&work).expect("a folder");
        git(root, &["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().expect("a path")]);
        git(&bare, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
        git(&work, &["remote", "add", "origin", bare.to_str().expect("a path")]);
        Self { work }
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let file = self.work.join(path);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.work.join(path)).expect("a file");
    }

    /// Commits and pushes everything. Returns the commit id.
    pub fn commit(&self, message: &str) -> String {
        git(&self.work, &["add", "--all"]);
        git(&self.work, &["commit", "--quiet", "--allow-empty", "--message", message]);
        git(&self.work, &["push", "--quiet", "--force", "origin", "HEAD:main"]);
        git(&self.work, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// An annotated tag on HEAD.
    pub fn tag(&self, name: &str) {
        git(&self.work, &["tag", "--annotate", "--message", name, name]);
        git(&self.work, &["push", "--quiet", "origin", name]);
    }
}

/// git with a clean environment.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Anna")
        .env("GIT_AUTHOR_EMAIL", "anna@example.invalid")
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_NAME", "Anna")
        .env("GIT_COMMITTER_EMAIL", "anna@example.invalid")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .output()
        .expect("git runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
