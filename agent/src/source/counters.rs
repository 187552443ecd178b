//! Counts of what the source module did, for metrics and tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Live counters.
#[derive(Debug, Default)]
pub struct Counters {
    pub polls: AtomicU64,
    pub http_requests: AtomicU64,
    pub fetches: AtomicU64,
    pub fetch_failures: AtomicU64,
    pub rebuilt_caches: AtomicU64,
}

/// A reading of the counters, since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    /// Polls of a ref.
    pub polls: u64,
    /// HTTP requests to git servers, of polls and fetches.
    pub http_requests: u64,
    /// Fetches that were started.
    pub fetches: u64,
    /// Fetches that failed.
    pub fetch_failures: u64,
    /// Caches that were replaced because they were damaged.
    pub rebuilt_caches: u64,
}

impl Counters {
    /// Adds one to `counter`.
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now.
    pub fn read(&self) -> Requests {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Requests {
            polls: get(&self.polls),
            http_requests: get(&self.http_requests),
            fetches: get(&self.fetches),
            fetch_failures: get(&self.fetch_failures),
            rebuilt_caches: get(&self.rebuilt_caches),
        }
    }
}
