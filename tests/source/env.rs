//! One git server with one repository, and sources that may use it.

use std::path::PathBuf;
use std::time::Duration;

use pintle::source::{Deadlines, Repository, Secret, Sources};
use pintle_model::Revision;
use tempfile::TempDir;

use crate::support::git_fixture::{GitFixture, clean_git};
use crate::support::git_front::GitFront;

/// Deadlines that end a hang within a test, and that a busy machine still keeps.
pub const DEADLINES: Deadlines = Deadlines {
    poll: Duration::from_secs(20),
    fetch: Duration::from_secs(40),
    stall: Duration::from_secs(20),
    connect: Duration::from_secs(20),
};

pub struct Env {
    pub dir: TempDir,
    pub front: GitFront,
    pub fixture: GitFixture,
    pub sources: Sources,
    pub url: String,
}

impl Env {
    /// A repository `site` with one commit: `apps/web/a.yaml` and `other/b.yaml`.
    pub async fn new() -> Self {
        Self::with_deadlines(DEADLINES).await
    }

    pub async fn with_deadlines(deadlines: Deadlines) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("served");
        std::fs::create_dir(&root).unwrap();
        let mut fixture = GitFixture::new(&root, "site");
        fixture.write("apps/web/a.yaml", "one: 1\n");
        fixture.write("other/b.yaml", "two: 2\n");
        fixture.push_commit("first commit");
        let front = GitFront::start(&root).await.unwrap();
        let access = access(&front, None);
        let sources = Sources::with_deadlines(dir.path().join("cache"), vec![access], deadlines);
        let url = front.url("site");
        Self { dir, front, fixture, sources, url }
    }

    pub fn revision(&self, name: &str) -> Revision {
        self.fixture.rev_parse(name).parse().unwrap()
    }

    /// Resolves and fetches.
    pub async fn pull(&self, target: &str) -> Revision {
        let resolved = self.sources.resolve(&self.url, target).await.unwrap();
        self.sources.fetch(&self.url, target, resolved.revision).await.unwrap();
        resolved.revision
    }

    /// The only cache directory.
    pub fn cache_dir(&self) -> PathBuf {
        let mut entries: Vec<_> = std::fs::read_dir(self.dir.path().join("cache"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    /// Does the cache hold the object, without fetching it?
    pub fn cached(&self, object: &str) -> bool {
        let mut command = clean_git(&self.cache_dir());
        command.args(["cat-file", "-e", object]);
        command.output().unwrap().status.success()
    }

    /// Number of objects in the cache, as git counts them.
    pub fn cached_objects(&self) -> usize {
        let mut command = clean_git(&self.cache_dir());
        let output = command.args(["cat-file", "--batch-all-objects", "--batch-check"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().count()
    }

    /// Files in the cache's pack folder that are not finished packs, and locks.
    pub fn leftovers(&self) -> Vec<String> {
        let root = self.dir.path().join("cache");
        let Ok(caches) = std::fs::read_dir(&root) else { return Vec::new() };
        let mut found = Vec::new();
        for cache in caches.map(|entry| entry.unwrap().path()) {
            if cache.extension().is_some() {
                found.push(cache.display().to_string());
            }
            for folder in [cache.join("objects/pack"), cache.clone()] {
                let Ok(files) = std::fs::read_dir(folder) else { continue };
                for file in files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
                    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
                    let temporary = file.parent().unwrap().ends_with("pack") && !name.starts_with("pack-");
                    if temporary || file.extension().is_some_and(|suffix| suffix == "lock") {
                        found.push(file.display().to_string());
                    }
                }
            }
        }
        found
    }
}

/// Access to everything on `front`, with user `agent` and `password` if there is one.
pub fn access(front: &GitFront, password: Option<&str>) -> Repository {
    Repository {
        url_prefix: front.base(),
        username: password.map(|_| "agent".to_owned()),
        secret: password.map(Secret::new),
        bearer: false,
        ca_pem: Some(front.ca_pem()),
    }
}
