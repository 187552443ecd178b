//! Pintle's shell: thin modules that do IO and hold no policy.
//!
//! What to do is decided in `pintle_core`; here it is done. `pipeline` is the only file that knows the order of
//! stages, `runtime` the only one with a loop.

pub mod apps;
pub mod backups;
pub mod cli;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod crash;
pub mod disk;
pub mod handle;
pub mod overrides;
pub mod pipeline;
pub mod prepare;
pub mod records;
pub mod report;
pub mod runtime;
pub mod server;
pub mod socket;
pub mod source;
pub mod store;
pub mod tls;

#[cfg(test)]
mod sample;
