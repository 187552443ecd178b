//! Pintle's shell: thin modules that do IO and hold no policy.

pub mod client;
pub mod handle;
pub mod server;
pub mod socket;

#[cfg(test)]
mod sample;
