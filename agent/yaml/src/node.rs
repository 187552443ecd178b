//! The tree of one document.

use std::fmt;
use std::sync::Arc;

/// What one stream may cost. Every limit is an error that names it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the stream, and also of all its scalars after aliases are expanded.
    pub max_bytes: usize,
    /// Documents of the stream that hold something.
    pub max_documents: usize,
    /// Depth of nesting. A thread of 2 MiB of stack can resolve 1,000.
    pub max_depth: usize,
    /// Nodes of the stream after aliases are expanded.
    pub max_nodes: usize,
}

/// A place in the text, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// How a scalar or collection was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// A scalar without quotes: the only one that can be something else than a string, unless tagged.
    Plain,
    /// `'...'`
    SingleQuoted,
    /// `"..."`
    DoubleQuoted,
    /// `|`
    Literal,
    /// `>`
    Folded,
    /// A sequence or mapping, in block or flow form.
    Collection,
}

/// A scalar, sequence or mapping. Clones share their content.
#[derive(Clone, PartialEq)]
pub struct Node {
    /// Where it begins. The expansion of an alias keeps the place of its anchor.
    pub span: Span,
    /// Its content.
    pub kind: NodeKind,
    /// Its tag in short form (`!!str`, `!mine`), where one was written.
    pub tag: Option<Arc<str>>,
    /// How it was written.
    pub style: Style,
}

/// The content of a node, with aliases expanded (and shared).
#[derive(Clone, PartialEq)]
pub enum NodeKind {
    /// Text, with quotes, escapes and folds resolved; its type is not.
    Scalar(Arc<str>),
    /// Items.
    Sequence(Arc<[Node]>),
    /// Keys and values in the order of the text, with duplicates and `<<`.
    Mapping(Arc<[(Node, Node)]>),
}

impl Node {
    /// The value of a plain mapping entry, found by the text of its key; the last one where it stands twice.
    /// Merge keys are not looked into.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let NodeKind::Mapping(entries) = &self.kind else { return None };
        entries.iter().rev().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Scalar(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Debug for Node {
    /// Shape and place only: the values may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { line, column } = self.span;
        match &self.kind {
            NodeKind::Scalar(_) => write!(f, "scalar at {line}:{column}"),
            NodeKind::Sequence(items) => write!(f, "sequence of {} at {line}:{column}", items.len()),
            NodeKind::Mapping(entries) => write!(f, "mapping of {} at {line}:{column}", entries.len()),
        }
    }
}

impl fmt::Debug for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar(_) => "scalar",
            Self::Sequence(_) => "sequence",
            Self::Mapping(_) => "mapping",
        })
    }
}
