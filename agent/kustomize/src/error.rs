//! Errors: what is wrong, where, and what to do.

use std::fmt;

/// Why there is no build. There is never a partial result beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
pub struct Error {
    /// The file from the root of the tree; empty where none is to blame.
    pub file: String,
    /// Line in that file, counted from 1, where one is known.
    pub line: Option<u32>,
    /// Field in that file, such as `patches[0].target`; empty where none is to blame.
    pub field: String,
    /// What is wrong and, where that is not plain, what to do.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            f.write_str(&self.file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::from(message.into())
    }

    /// Gives an error without a file its file: the innermost one is the right one.
    pub(crate) fn in_file(mut self, file: &str) -> Self {
        if self.file.is_empty() {
            file.clone_into(&mut self.file);
        }
        self
    }

    /// Gives an error without file and field its field in that file.
    pub(crate) fn at(mut self, file: &str, field: &str, line: Option<u32>) -> Self {
        if self.file.is_empty() {
            file.clone_into(&mut self.file);
            field.clone_into(&mut self.field);
            self.line = line;
        }
        self
    }
}

/// Errors of pure steps: a text, which gets its file and field further up.
pub(crate) type Step<T> = Result<T, String>;
