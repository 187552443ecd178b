//! shim
use pintle_model::Object;
use crate::fields::{FieldPath, OwnedSet};
#[derive(Debug, Clone, PartialEq)]
pub struct Difference { pub path: FieldPath }
pub fn differences(a: &Object, b: &Object, s: &[&OwnedSet]) -> Vec<Difference> { if s.iter().any(|s| crate::fields::projection_digest(a,s)!=crate::fields::projection_digest(b,s)) { vec![Difference{path:FieldPath::default()}] } else { vec![] } }
pub fn describe(_: &Difference) -> String { String::new() }
