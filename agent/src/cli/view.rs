//! What people read: one function per document. Pure: documents in, text out.

mod application;
mod report;

pub(super) use application::{application, history, list, operation_block};
pub(super) use report::{backups, diff, doctor, manifests, plan, status, store_check};

use std::fmt::Write as _;

use super::text::{Paint, Tint, clean};

/// `Name:               value`, the value in column 21 as in `argocd app get`.
fn field(out: &mut String, paint: Paint, name: &str, value: &str, tint: Option<Tint>) {
    let name = format!("{name}:");
    // No blanks behind the name of an empty value.
    let width = if value.is_empty() { 0 } else { 20 };
    let _ = writeln!(out, "{name:<width$}{}", paint.text(&clean(value), tint));
}

/// A JSON value in one short line: a string bare, everything else as JSON.
fn scalar(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "(none)".to_owned(),
        serde_json::Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
