//! The decisions of Pintle: what differs, what is done, in which order, and how the agent moves from state to
//! state. Pure: no IO, no clock; `now` is an argument.

pub mod adopt;
pub mod diff;
pub mod engine;
pub mod fields;
pub mod health;
pub mod hook;
pub mod identity;
pub mod order;
pub mod plan;
pub mod policy;
pub mod schedule;
