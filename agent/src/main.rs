//! Pintle binary.
fn main() {}
