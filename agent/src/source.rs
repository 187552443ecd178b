//! Git over HTTPS: a pinned revision into a bare cache, and trees read from its object database.
//!
//! A poll is one `ls-refs` request of protocol v2 on a long-lived client; a fetch is one `fetch` request that asks for
//! exactly one commit at depth 1. Both are spoken here on the async client, because gix's blocking transport can
//! neither be cancelled nor notices a stalled transfer; gix writes and verifies packs, and reads objects and refs.
//!
//! Guarantees
//! - No work tree is ever written; only blobs below the application's path are read.
//! - Every request has a deadline and ends when no byte comes for a while; an aborted fetch leaves nothing behind.
//! - A credential is sent to the host of its own URL prefix only; redirects to another host are refused.

mod cache;
mod client;
mod packet;
mod protocol;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use pintle_model::{Problem, Reason, Revision, limits};
use pintle_render::SourceTree;

use client::Remote;

/// A secret text. Its Debug shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(...)")
    }
}

/// Settings of repositories below a URL prefix; the longest prefix wins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Repository {
    /// `https://git.example/` or a whole repository URL.
    pub url_prefix: String,
    /// User of basic auth.
    pub username: Option<String>,
    /// Password or token.
    pub secret: Option<Secret>,
    /// Send the secret as a bearer token.
    pub bearer: bool,
    /// CA certificates (PEM) trusted beside the system's.
    pub ca_pem: Option<Vec<u8>>,
}

/// How long things may take. The defaults stand in `limits`.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// One poll.
    pub poll: Duration,
    /// One fetch.
    pub fetch: Duration,
    /// Silence within a fetch.
    pub stall: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(limits::POLL_TIMEOUT_SECS),
            fetch: Duration::from_secs(limits::FETCH_TIMEOUT_SECS),
            stall: Duration::from_secs(limits::FETCH_STALL_SECS),
        }
    }
}

/// What a target revision resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The commit.
    pub revision: Revision,
    /// Full name of the ref; `None` for a commit id.
    pub name: Option<String>,
}

/// A commit's author, time and subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Author's name.
    pub author: String,
    /// Commit time.
    pub time: Timestamp,
    /// First line of the message.
    pub subject: String,
}

/// A file or a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Content.
    File(Arc<[u8]>),
    /// Target, as it stands.
    Symlink(String),
}

/// The part of a commit's tree that an application uses, by path from the repository's root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Files and links.
    pub files: BTreeMap<String, Entry>,
}

impl Tree {
    /// For the renderer.
    pub fn into_source_tree(self) -> SourceTree {
        self.files
            .into_iter()
            .map(|(path, entry)| {
                let entry = match entry {
                    Entry::File(bytes) => pintle_render::Entry::File(bytes),
                    Entry::Symlink(target) => pintle_render::Entry::Symlink(target),
                };
                (path, entry)
            })
            .collect()
    }
}

/// Requests that were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// Polls.
    pub polls: u64,
    /// Fetches that asked a server.
    pub fetches: u64,
}

/// All git sources. Cheap to clone.
#[derive(Clone)]
pub struct Sources {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    deadlines: Deadlines,
    repositories: RwLock<Vec<Repository>>,
    /// One client for each set of repository settings: connections and TLS sessions are used again.
    clients: Mutex<BTreeMap<String, Remote>>,
    /// One fetch at a time into each cache.
    fetching: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    polls: AtomicU64,
    fetches: AtomicU64,
}

impl Sources {
    /// Caches live in `folder`.
    pub fn new(folder: PathBuf, repositories: Vec<Repository>) -> Self {
        Self::with_deadlines(folder, repositories, Deadlines::default())
    }

    /// With other deadlines.
    pub fn with_deadlines(folder: PathBuf, repositories: Vec<Repository>, deadlines: Deadlines) -> Self {
        crate::tls::install_crypto_provider();
        Self {
            inner: Arc::new(Inner {
                folder,
                deadlines,
                repositories: RwLock::new(repositories),
                clients: Mutex::default(),
                fetching: Mutex::default(),
                polls: AtomicU64::new(0),
                fetches: AtomicU64::new(0),
            }),
        }
    }

    /// Takes over new settings of repositories.
    pub fn set_repositories(&self, repositories: Vec<Repository>) {
        *self.inner.repositories.write().unwrap_or_else(std::sync::PoisonError::into_inner) = repositories;
        self.inner.clients.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    }

    /// What a target revision means now. A full commit id is answered without a request.
    pub async fn resolve(&self, url: &str, target: &str) -> Result<Resolved, Problem> {
        if let Ok(revision) = target.parse() {
            return Ok(Resolved { revision, name: None });
        }
        check_target(target)?;
        let remote = self.remote(url)?;
        self.inner.polls.fetch_add(1, Ordering::Relaxed);
        let refs = within(self.inner.deadlines.poll, url, protocol::ls_refs(&remote, target)).await?;
        protocol::pick(&refs, target).ok_or_else(|| {
            Problem::new(
                Reason::RevisionNotFound,
                format!("{url} has no branch or tag {}", if target.is_empty() { "HEAD" } else { target }),
            )
        })
    }

    /// Brings one commit into the cache; nothing is asked when it is there.
    pub async fn fetch(&self, url: &str, target: &str, revision: Revision) -> Result<(), Problem> {
        let remote = self.remote(url)?;
        let turn = {
            let mut fetching = self.inner.fetching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            fetching.entry(url.to_owned()).or_default().clone()
        };
        let _turn = turn.lock().await;
        if self.has(url, revision).await {
            return Ok(());
        }
        let folder = self.folder(url);
        let prepared = folder.clone();
        blocking(move || cache::prepare(&prepared)).await?;
        self.inner.fetches.fetch_add(1, Ordering::Relaxed);
        let incoming = cache::Incoming::new(&folder)?;
        let download = protocol::fetch(&remote, revision, incoming.path(), self.inner.deadlines.stall);
        let shallow = match within(self.inner.deadlines.fetch, url, download).await {
            Ok(shallow) => shallow,
            Err(problem) if problem.reason == Reason::RevisionNotFound => {
                return Err(Problem::new(
                    Reason::RevisionNotFound,
                    format!("{url} does not have the commit {revision} (targetRevision {target}): {problem}"),
                ));
            }
            Err(problem) => return Err(problem),
        };
        let url = url.to_owned();
        blocking(move || cache::store(&folder, &incoming, revision, &shallow, &url)).await
    }

    /// Is the commit in the cache, with its tree?
    pub async fn has(&self, url: &str, revision: Revision) -> bool {
        let folder = self.folder(url);
        blocking(move || Ok(cache::has(&folder, revision))).await.unwrap_or(false)
    }

    /// The files below `path` at a commit that is in the cache.
    pub async fn tree(&self, url: &str, revision: Revision, path: &str) -> Result<Tree, Problem> {
        let (folder, path, url) = (self.folder(url), path.to_owned(), url.to_owned());
        blocking(move || cache::tree(&folder, revision, &path, &url)).await
    }

    /// Author, time and subject of a commit that is in the cache.
    pub async fn commit(&self, url: &str, revision: Revision) -> Result<CommitInfo, Problem> {
        let (folder, url) = (self.folder(url), url.to_owned());
        blocking(move || cache::commit(&folder, revision, &url)).await
    }

    /// Removes caches of repositories that are not named.
    pub async fn remove_unused(&self, keep: Vec<String>) -> Result<(), Problem> {
        let folder = self.inner.folder.clone();
        let keep: Vec<String> = keep.iter().map(|url| cache::name(url)).collect();
        blocking(move || cache::remove_unused(&folder, &keep)).await
    }

    /// Counters.
    pub fn requests(&self) -> Requests {
        Requests {
            polls: self.inner.polls.load(Ordering::Relaxed),
            fetches: self.inner.fetches.load(Ordering::Relaxed),
        }
    }

    fn folder(&self, url: &str) -> PathBuf {
        self.inner.folder.join(cache::name(url))
    }

    fn remote(&self, url: &str) -> Result<Remote, Problem> {
        let repositories = self.inner.repositories.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let settings = repositories
            .iter()
            .filter(|repository| url.starts_with(&repository.url_prefix))
            .max_by_key(|repository| repository.url_prefix.len())
            .cloned()
            .unwrap_or_default();
        drop(repositories);
        let mut clients = self.inner.clients.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = clients.get(&settings.url_prefix) {
            return known.to(url);
        }
        let remote = Remote::new(url, &settings)?;
        clients.insert(settings.url_prefix, remote.clone());
        Ok(remote)
    }
}

/// Forms of `targetRevision` that need more than a poll can say.
fn check_target(target: &str) -> Result<(), Problem> {
    let hex = target.len() >= 7 && target.bytes().all(|byte| byte.is_ascii_hexdigit());
    if target.starts_with(['^', '~', '>', '<', '=']) || target.contains('*') || target.contains(" || ") {
        return Err(Problem::new(
            Reason::InvalidSpecError,
            format!(
                "targetRevision {target:?}: version ranges are not supported by this version; name a tag"
            ),
        ));
    }
    if hex && target.bytes().any(|byte| byte.is_ascii_digit()) && target.len() < 40 {
        return Err(Problem::new(
            Reason::RevisionNotFound,
            format!(
                "targetRevision {target:?} looks like a shortened commit id: git servers resolve only full ids (40 digits) \
                 without a clone; write the full one"
            ),
        ));
    }
    Ok(())
}

async fn within<T>(
    limit: Duration,
    url: &str,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(Problem::new(
            Reason::FetchTimeout,
            format!("{url} did not finish its answer within {} s", limit.as_secs_f64()),
        )),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Problem::new(Reason::Internal, format!("a git worker ended early: {error}"))),
    }
}
