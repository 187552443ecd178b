//! The store against what happens to it in the field: the process is killed, the disk is full, files are damaged. Each
//! failure is really caused. A test's name is its rule.

// A test ends at the first thing that is not as it should be, and says where.
#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stderr, reason = "counts, and why a test cannot run here")]

mod store {
    mod bounds;
    mod damage;
    mod full_disk;
    mod kill;
    mod refused;
    mod rest;
    mod secrets;
    mod story;
    mod support;
}
