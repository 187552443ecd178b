//! The clock of the shell: monotonic time since the process began, and wall time.
//!
//! Builds with debug assertions can be given a file by `PINTLE_TEST_CLOCK` that holds two numbers, seconds added to
//! the wall clock and seconds added to the monotonic clock: tests make hours pass without waiting. A release
//! build has no such door.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use pintle_core::engine::Now;

/// Clock.
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    #[cfg(debug_assertions)]
    file: Option<std::sync::Arc<std::path::PathBuf>>,
}

impl Clock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(debug_assertions)]
            file: std::env::var_os("PINTLE_TEST_CLOCK").map(|path| std::sync::Arc::new(path.into())),
        }
    }

    /// The time now.
    pub fn now(&self) -> Now {
        let (wall, mono) = self.offsets();
        let wall =
            Timestamp::now().checked_add(jiff::SignedDuration::from_secs(wall)).unwrap_or(Timestamp::MAX);
        Now { mono: self.start.elapsed() + Duration::from_secs(mono), wall }
    }

    /// The instant at which a monotonic time is reached, as far as it can be said now.
    pub fn instant(&self, mono: Duration) -> tokio::time::Instant {
        let (_, offset) = self.offsets();
        let wait = mono.saturating_sub(self.start.elapsed() + Duration::from_secs(offset));
        // A year is as good as never, and `Instant` cannot hold `Duration::MAX`.
        tokio::time::Instant::now() + wait.min(Duration::from_hours(8760))
    }

    /// Can the clock be moved from outside? Then timers have to be looked at again now and then.
    pub fn is_injected(&self) -> bool {
        #[cfg(debug_assertions)]
        {
            self.file.is_some()
        }
        #[cfg(not(debug_assertions))]
        {
            false
        }
    }

    #[cfg(debug_assertions)]
    fn offsets(&self) -> (i64, u64) {
        let Some(text) = self.file.as_ref().and_then(|path| std::fs::read_to_string(path.as_path()).ok())
        else {
            return (0, 0);
        };
        let mut numbers = text.split_whitespace();
        let wall = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let mono = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        (wall, mono)
    }

    #[cfg(not(debug_assertions))]
    #[allow(clippy::unused_self, reason = "the same signature as with debug assertions")]
    fn offsets(&self) -> (i64, u64) {
        (0, 0)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
