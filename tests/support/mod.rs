//! The one test environment: a real control plane, real git over HTTPS, the real binary, all in temporary folders, on
//! free loopback ports, and ended with the test.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod agent;
pub mod control_plane;
pub mod counted;
pub mod fault_proxy;
pub mod git;
pub mod git_front;
pub mod pki;

use std::time::{Duration, Instant};

/// Waits for a condition with a generous deadline; the condition says what it last saw.
pub fn wait_for<T>(what: &str, seconds: u64, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match look() {
            Ok(value) => return value,
            Err(seen) if Instant::now() >= deadline => {
                panic!("{what}: not within {seconds} s; last seen: {seen}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}
