//! YAML as Kubernetes reads and writes it: the YAML 1.1 rules of go-yaml v2, which stand behind kubectl,
//! Argo CD and Helm, with a line and column on everything.
//!
//! The way of a text: [`documents`] splits a stream at kubectl's separators and builds a tree of [`Node`]s;
//! [`to_json`] resolves a tree to JSON as a plain manifest; [`from_node`] reads it into a Rust type as a typed
//! object of ours. [`to_string`] writes JSON back as YAML.

mod base64;
mod builder;
mod compose;
mod de;
mod emit;
mod error;
mod float;
mod json;
mod node;
mod parse;
mod resolve;
mod scan;
mod stream;
mod timestamp;
mod value;

pub use de::{Converted, from_node, from_node_with_notes};
pub use emit::to_string;
pub use error::{Error, Warning};
pub use node::{Limits, Node, NodeKind, Span, Style};
pub use resolve::Resolver;
pub use stream::{Document, document, documents, documents_as};
pub use value::{to_json, to_json_as};

#[cfg(test)]
mod tests;
