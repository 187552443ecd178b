//! What the integration binaries share.
// Each binary uses a part of it only.
#![allow(dead_code)]

pub mod git_fixture;
pub mod git_front;
pub mod pki;
