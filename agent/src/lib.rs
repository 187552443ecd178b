//! Pintle.
