//! The words of Pintle: objects and their keys, digests, revisions, the names of labels and annotations,
//! and every limit. Pure data; no IO, no clock.

pub mod application;
pub mod digest;
pub mod duration;
pub mod glob;
pub mod key;
pub mod limits;
pub mod names;
pub mod nearest;
pub mod object;
pub mod project;
pub mod reason;
pub mod revision;
pub mod syntax;

pub use application::{AppKey, Application, SpecError};
pub use digest::Digest;
pub use key::{GroupKind, ObjectKey};
pub use object::{DesiredObject, Object, Origin};
pub use project::AppProject;
pub use reason::{Problem, Reason};
pub use revision::Revision;
