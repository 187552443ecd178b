//! x
pub mod clock;
pub mod cluster;
pub mod crash;
pub mod store;
pub mod tls;
