//! Pintle's shell: thin modules that do IO and hold no policy.

pub mod handle;
