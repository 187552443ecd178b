//! Errors and warnings with their place, and paths through a document.

use std::fmt;

use crate::node::Span;

/// What is wrong with a text, and where. Holds no scalar of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong and, where that is not plain, what to do.
    pub message: String,
    /// Line, counted from 1; 0 where no place is known.
    pub line: u32,
    /// Column in characters, counted from 1; 0 where no place is known.
    pub column: u32,
    /// The field, such as `spec.sources[0].path`; empty at the root and for errors of syntax.
    pub path: String,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, self.line, self.column, &self.path)?;
        f.write_str(&self.message)
    }
}

/// Something that kubectl takes without a word, but that is likely a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is.
    pub message: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// The field.
    pub path: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, self.line, self.column, &self.path)?;
        f.write_str(&self.message)
    }
}

fn place(f: &mut fmt::Formatter<'_>, line: u32, column: u32, path: &str) -> fmt::Result {
    if line != 0 {
        write!(f, "{line}:{column}: ")?;
    }
    if path.is_empty() { Ok(()) } else { write!(f, "{path}: ") }
}

impl Error {
    pub(crate) fn new(span: Span, path: &Path<'_>, message: impl Into<String>) -> Self {
        Self { message: message.into(), line: span.line, column: span.column, path: path.to_string() }
    }

    pub(crate) fn syntax(line: u32, column: u32, message: impl Into<String>) -> Self {
        Self { message: message.into(), line, column, path: String::new() }
    }

    /// Gives an error that serde made its place, once: the innermost place is the right one.
    pub(crate) fn or_at(mut self, span: Span, path: &Path<'_>) -> Self {
        if self.line == 0 {
            self.line = span.line;
            self.column = span.column;
            self.path = path.to_string();
        }
        self
    }
}

/// The way from the root to a node: a list on the stack, written out only when something is wrong.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut at = self;
        loop {
            match at {
                Self::Root => break,
                Self::Key(parent, _) | Self::Index(parent, _) => {
                    steps.push(at);
                    at = parent;
                }
            }
        }
        for (position, step) in steps.iter().rev().enumerate() {
            match step {
                Self::Root => {}
                Self::Index(_, index) => write!(f, "[{index}]")?,
                Self::Key(_, key) if is_simple(key) => {
                    let dot = if position == 0 { "" } else { "." };
                    write!(f, "{dot}{key}")?;
                }
                Self::Key(_, key) => write!(f, "[{:?}]", shorten(key))?,
            }
        }
        Ok(())
    }
}

fn is_simple(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= MAX_KEY
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

/// Longest key shown whole: the longest qualified name of Kubernetes has 253 + 1 + 63 characters.
const MAX_KEY: usize = 317;

/// A key for a message, cut where it is longer than any name of Kubernetes.
pub(crate) fn shorten(key: &str) -> String {
    match key.char_indices().nth(MAX_KEY) {
        Some((end, _)) => format!("{}...", &key[..end]),
        None => key.to_owned(),
    }
}

/// Ways where `a` of the document could be meant where `b` is known: a small edit distance, by its length.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = match name.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        6..=9 => 2,
        10..=MAX_KEY => 3,
        _ => return None,
    };
    known
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, without regard to case.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (above + 1).min(row[j] + 1).min(diagonal + usize::from(left != *right));
            diagonal = above;
        }
    }
    row[b.len()]
}
