//! Git: from a repository URL and a target revision to a pinned commit and its files.
//!
//! Guarantees: no git binary and no work tree; a poll is one HTTP request; a full commit id is never polled;
//! credentials go only to the host they were configured for; every wait has an end; what was fetched stays readable
//! while the server is away.
//!
//! Assumptions: one process uses the cache directory (the store's lock).

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_model::limits::{
    FETCH_STALL_SECS, FETCH_TIMEOUT_SECS, GIT_CACHE_MAX_PACKS, GIT_CONNECT_TIMEOUT_SECS, POLL_TIMEOUT_SECS,
};
use pintle_model::{Problem, Reason, Revision};

mod cache;
mod compact;
mod counters;
mod credential;
mod failure;
mod fetch;
mod http;
mod pktline;
mod refs;
mod target;
mod tree;
mod url;

pub use counters::Requests;
pub use credential::{Repository, Secret};

use cache::Cache;
use counters::Counters;
use http::Http;
use target::Target;
use tree::ReadFailure;
use url::RepositoryUrl;

/// What a target revision stands for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The commit.
    pub revision: Revision,
    /// Full name of the ref, `refs/heads/main`; `None` for a commit id.
    pub name: Option<String>,
    /// What the target revision named.
    pub kind: RefKind,
}

/// What a target revision names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    /// A commit id: it cannot move.
    Commit,
    /// A branch, or any other ref that is expected to move (`refs/pull/1/head`).
    Branch,
    /// A tag: expected not to move.
    Tag,
    /// The default branch of the server.
    Head,
}

/// Files of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// By path from the repository's root. Besides what is below the requested path, whatever symbolic links found
    /// there lead to.
    pub files: BTreeMap<String, Entry>,
    /// Paths of submodules, whose content is not fetched.
    pub submodules: Vec<String>,
}

/// One file of a [`Tree`].
#[derive(Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File(Arc<[u8]>),
    /// A symbolic link with its text as committed; it stays inside the repository, but may dangle.
    Symlink(String),
}

impl std::fmt::Debug for Entry {
    /// Without the content: a file may be a Secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(data) => write!(f, "File({} bytes)", data.len()),
            Self::Symlink(target) => write!(f, "Symlink({target:?})"),
        }
    }
}

/// What a person wants to know about a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Name of the author.
    pub author: String,
    /// When it was committed (committer time).
    pub time: jiff::Timestamp,
    /// First paragraph of the message, on one line.
    pub subject: String,
}

/// How long git may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// One request of a poll, whole.
    pub poll: Duration,
    /// One fetch, whole, with the wait for an earlier one of the same repository.
    pub fetch: Duration,
    /// A fetch without any byte.
    pub stall: Duration,
    /// TCP and TLS handshake.
    pub connect: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(POLL_TIMEOUT_SECS),
            fetch: Duration::from_secs(FETCH_TIMEOUT_SECS),
            stall: Duration::from_secs(FETCH_STALL_SECS),
            connect: Duration::from_secs(GIT_CONNECT_TIMEOUT_SECS),
        }
    }
}

/// All git repositories of the agent. Cheap to clone; clones share caches, connections and counters.
#[derive(Debug, Clone)]
pub struct Sources {
    shared: Arc<Shared>,
    repositories: Arc<[Repository]>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    deadlines: Deadlines,
    counters: Arc<Counters>,
    http: Http,
    caches: Mutex<HashMap<String, Arc<CacheState>>>,
}

/// What is kept in memory about one cache.
#[derive(Debug, Default)]
struct CacheState {
    /// Held by whoever changes the cache, also by a fetch that nobody waits for any more.
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Reading met a missing or broken object.
    damaged: AtomicBool,
}

impl Sources {
    /// Sources with caches below `cache_dir`, which is made at the first fetch. Removes what an earlier process left
    /// unfinished there (a few directory reads; blocking).
    pub fn new(cache_dir: PathBuf, repositories: Vec<Repository>) -> Self {
        Self::with_deadlines(cache_dir, repositories, Deadlines::default())
    }

    /// As [`Sources::new`], with other deadlines.
    pub fn with_deadlines(cache_dir: PathBuf, repositories: Vec<Repository>, deadlines: Deadlines) -> Self {
        crate::tls::install_crypto_provider();
        if let Err(error) = cache::clean_root(&cache_dir) {
            tracing::warn!(dir = %cache_dir.display(), %error, "cannot remove leftovers in the git cache");
        }
        let counters = Arc::new(Counters::default());
        let http = Http::new(Arc::clone(&counters), deadlines);
        let shared = Shared { root: cache_dir, deadlines, counters, http, caches: Mutex::default() };
        Self { shared: Arc::new(shared), repositories: repositories.into() }
    }

    /// The same caches and connections with another configuration of access.
    pub fn with_repositories(&self, repositories: Vec<Repository>) -> Self {
        Self { shared: Arc::clone(&self.shared), repositories: repositories.into() }
    }

    /// What `target_revision` stands for now: by one request, or by none for a full commit id.
    ///
    /// Errors: `InvalidSpecError`, `RevisionNotFound`, `GitUnreachable`, `GitUnauthorized`, `GitCertificate`,
    /// `GitNotFound`.
    pub async fn resolve(&self, url: &str, target_revision: &str) -> Result<Resolved, Problem> {
        let url = RepositoryUrl::parse(url)?;
        let target = Target::parse(target_revision)?;
        match &target {
            Target::Commit(revision) => {
                return Ok(Resolved { revision: *revision, name: None, kind: RefKind::Commit });
            }
            Target::ShortCommit(prefix) => {
                if let Some(resolved) = self.resolve_in_cache(&url, prefix).await? {
                    return Ok(resolved);
                }
            }
            Target::Name(_) | Target::FullName(_) | Target::Head => {}
        }
        let candidates = target.candidates();
        let refs = self.shared.http.refs(&url, self.access(&url), &candidates).await?;
        candidates
            .iter()
            .find_map(|name| refs.iter().find(|one| one.name == *name))
            .map(resolved_ref)
            .ok_or_else(|| no_such_revision(&url, target_revision, &target))
    }

    /// Fetches exactly `revision` (depth 1) unless it is there. `target_revision` only appears in messages.
    ///
    /// When the returned future is dropped, the fetch is told to end.
    pub async fn fetch(&self, url: &str, target_revision: &str, revision: Revision) -> Result<(), Problem> {
        let url = RepositoryUrl::parse(url)?;
        if self.has_revision(&url, revision).await {
            return Ok(());
        }
        let deadline = self.shared.deadlines.fetch;
        let result = match tokio::time::timeout(deadline, self.fetch_under_lock(&url, revision)).await {
            Ok(result) => result,
            Err(_) => Err(Problem::new(
                Reason::FetchTimeout,
                format!(
                    "{}: the fetch of {} did not end within {} s",
                    url.as_str(),
                    revision.short(),
                    deadline.as_secs_f32()
                ),
            )),
        };
        result.map_err(|mut problem| {
            Counters::add(&self.shared.counters.fetch_failures);
            self.shared.http.forget(&url);
            if problem.reason == Reason::RevisionNotFound {
                problem.message = format!("{} (targetRevision {target_revision:?})", problem.message);
            }
            problem
        })
    }

    /// Was `revision` fetched whole?
    pub async fn has(&self, url: &str, revision: Revision) -> bool {
        match RepositoryUrl::parse(url) {
            Ok(url) => self.has_revision(&url, revision).await,
            Err(_) => false,
        }
    }

    /// The files below `path` (a folder or one file; empty or `.` for all) at `revision`. Needs no network.
    ///
    /// Errors: `InvalidSpecError` for a path that does not exist or leaves the repository; `RenderError` for a link
    /// that leaves it, a name that is none, or what is too large; `SourceError` when it was not fetched or the cache
    /// is damaged (the next fetch replaces it).
    pub async fn tree(&self, url: &str, revision: Revision, path: &str) -> Result<Tree, Problem> {
        let path = path.to_owned();
        self.read(url, revision, move |repository, url| tree::read(repository, url, revision, &path)).await
    }

    /// Author, time and subject of `revision`. Needs no network.
    pub async fn commit(&self, url: &str, revision: Revision) -> Result<CommitInfo, Problem> {
        self.read(url, revision, move |repository, url| tree::commit_info(repository, url, revision)).await
    }

    /// Removes the caches of repositories that are not in `keep`, in the others the memory of revisions that are not
    /// listed, and whatever aborted fetches left. Rewrites a cache of more than 16 packs into one, without the network.
    /// A cache that a fetch is writing is left alone.
    pub async fn remove_unused(&self, keep: &[(String, Vec<Revision>)]) {
        let mut kept: HashMap<String, Vec<Revision>> = HashMap::new();
        for (url, revisions) in keep {
            match RepositoryUrl::parse(url) {
                Ok(url) => kept.entry(url.cache_name()).or_default().extend(revisions),
                // Its cache, if there is one, cannot be named: better keep all.
                Err(problem) => {
                    tracing::warn!(error = problem.message, "git caches are not cleaned");
                    return;
                }
            }
        }
        let sources = self.clone();
        let cleaning = tokio::task::spawn_blocking(move || sources.remove_unused_blocking(&kept));
        if let Err(error) = cleaning.await {
            tracing::error!(%error, "cleaning the git caches failed");
        }
    }

    /// Counts since the process started.
    pub fn requests(&self) -> Requests {
        self.shared.counters.read()
    }

    fn access(&self, url: &RepositoryUrl) -> Option<&Repository> {
        credential::longest_match(&self.repositories, url)
    }

    fn cache(&self, url: &RepositoryUrl) -> Cache {
        Cache::new(&self.shared.root, &url.cache_name())
    }

    fn cache_state(&self, cache_name: &str) -> Arc<CacheState> {
        let mut caches = self.shared.caches.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(caches.entry(cache_name.to_owned()).or_default())
    }

    async fn has_revision(&self, url: &RepositoryUrl, revision: Revision) -> bool {
        if self.cache_state(&url.cache_name()).damaged.load(Ordering::Relaxed) {
            return false;
        }
        let cache = self.cache(url);
        tokio::task::spawn_blocking(move || cache.has(revision)).await.unwrap_or(false)
    }

    async fn resolve_in_cache(&self, url: &RepositoryUrl, prefix: &str) -> Result<Option<Resolved>, Problem> {
        let (cache, wanted) = (self.cache(url), prefix.to_owned());
        let found = tokio::task::spawn_blocking(move || cache.revisions_with_prefix(&wanted)).await;
        match found.unwrap_or_default().as_slice() {
            [] => Ok(None),
            [revision] => Ok(Some(Resolved { revision: *revision, name: None, kind: RefKind::Commit })),
            several => Err(Problem::new(
                Reason::RevisionNotFound,
                format!(
                    "{}: targetRevision {prefix:?} is the start of {} commit ids that were fetched: give more digits",
                    url.as_str(),
                    several.len()
                ),
            )),
        }
    }

    async fn fetch_under_lock(&self, url: &RepositoryUrl, revision: Revision) -> Result<(), Problem> {
        let state = self.cache_state(&url.cache_name());
        let guard = Arc::clone(&state.lock).lock_owned().await;
        // Another application may have fetched it while we waited.
        if self.has_revision(url, revision).await {
            return Ok(());
        }
        let access = self.access(url);
        let ca = access.and_then(|access| access.ca_pem.as_deref());
        let interrupt = InterruptOnDrop::default();
        let job = fetch::Job {
            base: self.shared.http.base(url, access).await?,
            ca: ca.map(|pem| http::ca_certificates(url, pem)).transpose()?,
            url: url.clone(),
            revision,
            cache: self.cache(url),
            damaged: state.damaged.load(Ordering::Relaxed),
            authorization: access.and_then(Repository::authorization),
            connect_timeout: self.shared.deadlines.connect,
            stall_timeout: self.shared.deadlines.stall,
            interrupt: Arc::clone(&interrupt.0),
            counters: Arc::clone(&self.shared.counters),
        };
        Counters::add(&self.shared.counters.fetches);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // Not a blocking task of the runtime: its shutdown would wait for a fetch that stalls.
        let thread = std::thread::Builder::new().name("git-fetch".into()).spawn(move || {
            let result = fetch::run(&job);
            if result.is_ok() {
                state.damaged.store(false, Ordering::Relaxed);
            }
            drop(guard);
            // Nobody waits any more after the deadline.
            let _ = sender.send(result);
        });
        if let Err(error) = thread {
            return Err(Problem::new(
                Reason::SourceError,
                format!("{}: cannot start a thread: {error}", url.as_str()),
            ));
        }
        receiver.await.unwrap_or_else(|_| {
            Err(Problem::new(Reason::Internal, format!("{}: the fetch of {revision} panicked", url.as_str())))
        })
    }

    async fn read<T: Send + 'static>(
        &self,
        url: &str,
        revision: Revision,
        read: impl Fn(&gix::Repository, &str) -> Result<T, ReadFailure> + Send + 'static,
    ) -> Result<T, Problem> {
        let url = RepositoryUrl::parse(url)?;
        let (cache, state) = (self.cache(&url), self.cache_state(&url.cache_name()));
        let reading = tokio::task::spawn_blocking(move || {
            let once = || {
                let repository =
                    cache.open_for_reading(url.as_str(), revision).map_err(ReadFailure::Refused)?;
                read(&repository, url.as_str())
            };
            // The cache may have been replaced by a compacted one while it was read: look once more.
            let result = match once() {
                Err(ReadFailure::Damaged(_)) => once(),
                result => result,
            };
            result.map_err(|failure| match failure {
                ReadFailure::Refused(problem) => problem,
                ReadFailure::Damaged(problem) => {
                    state.damaged.store(true, Ordering::Relaxed);
                    problem
                }
            })
        });
        reading.await.unwrap_or_else(|error| {
            Err(Problem::new(Reason::Internal, format!("reading commit {revision} failed: {error}")))
        })
    }

    fn remove_unused_blocking(&self, keep: &HashMap<String, Vec<Revision>>) {
        let names = match cache::cache_entries(&self.shared.root) {
            Ok(names) => names,
            Err(error) => {
                tracing::warn!(dir = %self.shared.root.display(), %error, "cannot list the git caches");
                return;
            }
        };
        for name in names.iter().filter(|name| !name.contains('.')) {
            let state = self.cache_state(name);
            let Ok(_guard) = state.lock.try_lock() else { continue };
            let cache = Cache::new(&self.shared.root, name);
            let result = match keep.get(name) {
                None => cache.remove().map_err(|error| error.to_string()),
                Some(revisions) => clean_cache(&cache, revisions),
            };
            if let Err(error) = result {
                tracing::warn!(cache = name, error, "cannot clean a git cache");
            }
        }
    }
}

fn clean_cache(cache: &Cache, keep: &[Revision]) -> Result<(), String> {
    cache.remove_leftovers().map_err(|error| error.to_string())?;
    cache.forget_revisions_except(keep).map_err(|error| format!("{error:#}"))?;
    if cache.packs() > GIT_CACHE_MAX_PACKS {
        compact::compact(cache, &cache.revisions()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Tells a running fetch to end when nobody waits for it any more.
#[derive(Default)]
struct InterruptOnDrop(Arc<AtomicBool>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn resolved_ref(one: &refs::RemoteRef) -> Resolved {
    let kind = match one.name.as_str() {
        "HEAD" => RefKind::Head,
        name if name.starts_with("refs/tags/") => RefKind::Tag,
        _ => RefKind::Branch,
    };
    let name = one.symref_target.clone().unwrap_or_else(|| one.name.clone());
    Resolved { revision: one.commit(), name: Some(name), kind }
}

fn no_such_revision(url: &RepositoryUrl, target_revision: &str, target: &Target) -> Problem {
    let text = match target {
        Target::ShortCommit(_) => {
            "is neither a branch nor a tag, and no commit that was fetched starts with it; a git server does not look up \
             shortened commit ids, and only whole commits are fetched, without history: give all 40 digits"
        }
        Target::FullName(_) => "does not exist",
        Target::Head => "has no commit: the repository is empty or has no default branch",
        Target::Name(_) | Target::Commit(_) => {
            "does not exist: there is neither a branch nor a tag of this name"
        }
    };
    let shown = if matches!(target, Target::Head) { "HEAD" } else { target_revision };
    Problem::new(Reason::RevisionNotFound, format!("{}: targetRevision {shown:?} {text}", url.as_str()))
}
