//! The fetch of one commit by gix, on a thread of its own.
//!
//! gix's transport is blocking and cannot be cancelled. So the caller's deadline sets `interrupt` and leaves the
//! thread alone; it still holds the cache's lock, and it ends because gix looks at the flag between reads and every
//! read ends after the stall time.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gix::protocol::transport::client::blocking_io::http;
use gix::remote::{Direction, fetch::Shallow, fetch::Tags, ref_map};
use pintle_model::{Problem, Reason, Revision};
use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::cache::{Cache, REF_PREFIX, object_id};
use super::counters::Counters;
use super::failure::{self, FetchFailure};
use super::http::USER_AGENT;
use super::url::RepositoryUrl;

/// Everything that the thread needs.
pub struct Job {
    pub url: RepositoryUrl,
    /// Where the server has the repository, after redirects.
    pub base: reqwest::Url,
    pub revision: Revision,
    pub cache: Cache,
    /// Reading the cache met a missing or broken object: do not build on it.
    pub damaged: bool,
    pub authorization: Option<HeaderValue>,
    /// The only trusted CAs; the system's when absent.
    pub ca: Option<Vec<reqwest::Certificate>>,
    pub connect_timeout: Duration,
    pub stall_timeout: Duration,
    pub interrupt: Arc<AtomicBool>,
    pub counters: Arc<Counters>,
}

/// Fetches `job.revision` with depth 1 into the cache. A cache that cannot be used is replaced, but only once the
/// new one is complete, so that what can still be read of it stays readable while the server is away.
pub fn run(job: &Job) -> Result<(), Problem> {
    let local = |error: &dyn std::fmt::Display| {
        Problem::new(
            Reason::SourceError,
            format!("{}: cannot clean {}: {error}", job.url.as_str(), job.cache.path().display()),
        )
    };
    job.cache.remove_leftovers().map_err(|error| local(&error))?;
    let existing = if job.damaged { None } else { job.cache.open().unwrap_or_default() };
    if let Some(repository) = existing {
        let result = fetch_into(job, &repository);
        drop(repository);
        job.cache.remove_leftovers().map_err(|error| local(&error))?;
        match result {
            Ok(()) => return Ok(()),
            Err(failure) if !failure.local || job.interrupt.load(Ordering::Relaxed) => {
                return Err(failure.problem);
            }
            Err(failure) => tracing::warn!(
                url = job.url.as_str(),
                error = failure.problem.message,
                "the git cache cannot be used and is fetched anew"
            ),
        }
    }
    fetch_anew(job)
}

fn fetch_anew(job: &Job) -> Result<(), Problem> {
    let replaces = matches!(job.cache.open(), Ok(Some(_)) | Err(_));
    let repository = job.cache.create_beside()?;
    let result = fetch_into(job, &repository);
    drop(repository);
    if let Err(failure) = result {
        if let Err(error) = job.cache.remove_beside() {
            tracing::warn!(url = job.url.as_str(), %error, "cannot remove an unfinished git cache");
        }
        return Err(failure.problem);
    }
    job.cache.replace().map_err(|error| {
        Problem::new(
            Reason::SourceError,
            format!("{}: cannot put the new cache into place: {error}", job.url.as_str()),
        )
    })?;
    if replaces {
        Counters::add(&job.counters.rebuilt_caches);
    }
    Ok(())
}

fn fetch_into(job: &Job, repository: &gix::Repository) -> Result<(), FetchFailure> {
    let has_credentials = job.authorization.is_some();
    receive(job, repository).map_err(|error| {
        failure::of_fetch(&job.url, job.revision, job.stall_timeout, has_credentials, &error)
    })?;
    // The server may have sent less than was asked for; and the id may be that of a tag or a tree.
    let found = repository.find_object(object_id(job.revision)).map(|object| object.kind);
    let problem = match found {
        Ok(gix::object::Kind::Commit) => return Ok(()),
        Ok(kind) => Problem::new(
            Reason::RevisionNotFound,
            format!("{}: {} is a {kind}, not a commit", job.url.as_str(), job.revision),
        ),
        Err(_) => Problem::new(
            Reason::RevisionNotFound,
            format!("{}: the git server did not send commit {}", job.url.as_str(), job.revision),
        ),
    };
    Err(FetchFailure { problem, local: false })
}

fn receive(job: &Job, repository: &gix::Repository) -> Result<(), gix::Error> {
    let refspec = format!("+{0}:{REF_PREFIX}{0}", job.revision);
    let remote = repository
        .remote_at(job.base.as_str())?
        .with_fetch_tags(Tags::None)
        .with_refspecs([refspec.as_str()], Direction::Fetch)?;
    let mut connection = remote.connect(Direction::Fetch)?;
    // Never a credential helper or a prompt: the header is set on each request below.
    connection.set_credentials(|_| Err(gix::Error::from_error(failure::NotAccepted)));
    connection.set_transport_options(Box::new(transport_options(job)));
    let options = ref_map::Options { extra_refspecs: vec![no_refs()], ..Default::default() };
    connection
        .prepare_fetch(gix::progress::Discard, options)?
        .with_shallow(Shallow::DepthAtRemote(NonZeroU32::MIN))
        .receive(gix::progress::Discard, &job.interrupt)?;
    Ok(())
}

/// A refspec that matches nothing. With only a commit id gix sends no ref prefix, and the server lists all its
/// refs (megabytes in a repository with many pull requests) before each fetch.
fn no_refs() -> gix::refspec::RefSpec {
    gix::refspec::parse("refs/pintle-none/*:refs/pintle-none/*".into(), gix::refspec::parse::Operation::Fetch)
        .expect("a constant refspec is valid")
        .to_owned()
}

fn transport_options(job: &Job) -> http::Options {
    let ca = job.ca.clone();
    let (connect_timeout, stall_timeout) = (job.connect_timeout, job.stall_timeout);
    let authorization = job.authorization.clone();
    let counters = Arc::clone(&job.counters);
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |builder| {
            // The timeout of a blocking client bounds the wait for the answer and each read, not the whole request.
            let builder = builder.no_proxy().connect_timeout(connect_timeout).timeout(stall_timeout);
            Ok(match ca.clone() {
                Some(certificates) => builder.tls_certs_only(certificates),
                None => builder,
            })
        })),
        // With this set gix follows no redirect, so the header reaches only the host of `base`.
        configure_request: Some(Box::new(move |request| {
            Counters::add(&counters.http_requests);
            if let Some(value) = authorization.clone() {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            Ok(())
        })),
    };
    http::Options {
        user_agent: Some(USER_AGENT.to_owned()),
        backend: Some(Arc::new(Mutex::new(backend))),
        ..Default::default()
    }
}
