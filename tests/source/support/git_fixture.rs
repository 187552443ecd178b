//! Repositories made by the git binary, the same commit ids at every run.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A work tree and the bare repository that a server shows.
pub struct GitFixture {
    work: PathBuf,
    bare: PathBuf,
    /// Seconds since 1970 of the next commit; each is a minute later.
    clock: u64,
}

impl GitFixture {
    /// An empty repository `<root>/<name>.git` with its work tree below `<root>/.work`, on branch `main`.
    pub fn new(root: &Path, name: &str) -> Self {
        let work = root.join(".work").join(name);
        let bare = root.join(format!("{name}.git"));
        fs::create_dir_all(&work).expect("a writable directory");
        fs::create_dir_all(&bare).expect("a writable directory");
        let fixture = Self { work, bare, clock: 1_767_225_600 };
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture.git_bare(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        // As forges do: any commit that exists may be fetched by its id.
        fixture.git_bare(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        fixture
    }

    /// The bare repository.
    pub fn bare(&self) -> &Path {
        &self.bare
    }

    /// Writes a file of the work tree.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().expect("a file below the work tree")).expect("a writable directory");
        fs::write(path, content).expect("a writable file");
    }

    /// Makes a symbolic link in the work tree.
    pub fn symlink(&self, path: &str, target: &str) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().expect("a link below the work tree")).expect("a writable directory");
        std::os::unix::fs::symlink(target, path).expect("a writable directory");
    }

    /// Removes a file of the work tree.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.work.join(path)).expect("the file exists");
    }

    /// Commits the whole work tree, also without a change, and returns the commit id. Not yet published.
    pub fn commit(&mut self, message: &str) -> String {
        self.clock += 60;
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.rev_parse("HEAD")
    }

    /// Commits and publishes.
    pub fn push_commit(&mut self, message: &str) -> String {
        let id = self.commit(message);
        self.publish();
        id
    }

    /// Makes the bare repository equal to the work tree's: all branches and tags, also forced and deleted ones.
    pub fn publish(&self) {
        let bare = self.bare.to_str().expect("a UTF-8 path").to_owned();
        self.git(&["push", "--quiet", "--mirror", &bare]);
    }

    /// The object id of `revision`.
    pub fn rev_parse(&self, revision: &str) -> String {
        self.git(&["rev-parse", "--verify", revision])
    }

    /// Runs git in the work tree and returns what it printed, without the last newline. Panics if it fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.run(&self.work, arguments)
    }

    /// As [`GitFixture::git`], with `input` on its standard input.
    pub fn git_with_input(&self, arguments: &[&str], input: &str) -> String {
        let mut command = clean_git(&self.work);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("git is installed");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("git reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("git ends");
        assert!(output.status.success(), "{}", describe(&command, &output));
        String::from_utf8(output.stdout).expect("UTF-8 from git").trim_end().to_owned()
    }

    /// Runs git in the bare repository.
    pub fn git_bare(&self, arguments: &[&str]) -> String {
        self.run(&self.bare, arguments)
    }

    fn run(&self, dir: &Path, arguments: &[&str]) -> String {
        let mut command = clean_git(dir);
        let date = format!("{} +0000", self.clock);
        command.args(arguments).env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        let output = command.output().expect("git is installed");
        assert!(output.status.success(), "{}", describe(&command, &output));
        String::from_utf8(output.stdout).expect("UTF-8 from git").trim_end().to_owned()
    }
}

/// The git command in `dir`, without any configuration of this machine or user, with a fixed identity.
pub fn clean_git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("HOME", dir)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Ada Author")
        .env("GIT_AUTHOR_EMAIL", "ada@example.com")
        .env("GIT_COMMITTER_NAME", "Carl Committer")
        .env("GIT_COMMITTER_EMAIL", "carl@example.com");
    command
}

fn describe(command: &Command, output: &Output) -> String {
    format!(
        "{command:?}: {}\nstdout: {}\nstderr: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
