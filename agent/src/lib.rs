//! Pintle's shell: thin modules that do IO and hold no policy.

pub mod cli;
pub mod client;
pub mod disk;
pub mod handle;
pub mod overrides;
pub mod runtime;
pub mod server;
pub mod socket;

#[cfg(test)]
mod sample;
