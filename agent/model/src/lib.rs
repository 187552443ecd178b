//! The words of Pintle: objects and their keys, digests, revisions, the names of labels and annotations,
//! and every limit. Pure data; no IO, no clock.

pub mod application;
pub mod digest;
pub mod key;
pub mod limits;
pub mod names;
pub mod object;
pub mod reason;
pub mod revision;

pub use application::AppKey;
pub use digest::Digest;
pub use key::{GroupKind, ObjectKey};
pub use object::{DesiredObject, Object, Origin};
pub use reason::{Problem, Reason};
pub use revision::Revision;
