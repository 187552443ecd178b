//! Git sources against the real git server program over HTTPS.

// A test ends at the first thing that is not as it should be, and says where.
#![allow(clippy::unwrap_used)]

#[path = "source/support/mod.rs"]
mod support;

mod source {
    mod cache;
    mod env;
    mod faults;
    mod fetch;
    mod poll;
    mod tree;
    mod trust;
}
