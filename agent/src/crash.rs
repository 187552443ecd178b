//! Named crash points: in builds with debug assertions, `PINTLE_TEST_CRASH=name` kills the process with SIGKILL at
//! the first passage of that point, `name:3` at the third. A release build has none.

/// Passes a crash point. The names are listed in docs/testing.md.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Ok(wanted) = std::env::var("PINTLE_TEST_CRASH") else { return };
    let (wanted, count) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == count.parse().unwrap_or(1) {
        // SIGKILL and not abort(): nothing may run after it, as with a power cut.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Passes a crash point.
#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}
