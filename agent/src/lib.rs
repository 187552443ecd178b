//! Pintle's shell: thin modules that do IO and hold no policy.

pub mod cli;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod crash;
pub mod disk;
pub mod handle;
pub mod overrides;
#[path = "cli_runtime.rs"]
pub mod runtime;
pub mod server;
pub mod socket;
pub mod store;
pub mod tls;

#[cfg(test)]
mod sample;
