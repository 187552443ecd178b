//! The value model: a tree that keeps the text, tag and style of every scalar.
//!
//! The type of a scalar is decided when it is written, not when it is read: a name `123` with a prefix is text, a
//! quoted number that a patch replaces by a plain one stays quoted. JSON would have forgotten what decides.

use std::sync::Arc;

use crate::scalar;

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    #[default]
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

/// The tag of a scalar; `None` on values that were made here and have none yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Tag {
    #[default]
    None,
    Null,
    Str,
    Bool,
    Int,
    Float,
    Time,
    Binary,
    Other(Arc<str>),
}

/// Text with tag and style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) text: Arc<str>,
    pub(crate) tag: Tag,
    pub(crate) style: Style,
}

/// Keys and values in order, with duplicates.
pub(crate) type Entries = Vec<(Arc<str>, Node)>;

/// A scalar, list or mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Scalar(Scalar),
    /// Items.
    Seq(Vec<Node>),
    /// Entries.
    Map(Entries),
}

/// What to make where a path ends in nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Seq,
    Map,
}

impl Default for Node {
    fn default() -> Self {
        Self::null()
    }
}

impl Node {
    pub(crate) fn null() -> Self {
        Self::Scalar(Scalar { text: "null".into(), tag: Tag::Null, style: Style::Plain })
    }

    /// Untagged text: its type is found when it is written.
    pub(crate) fn text(text: &str) -> Self {
        Self::Scalar(Scalar { text: text.into(), tag: Tag::None, style: Style::Plain })
    }

    /// A string, whatever it looks like.
    pub(crate) fn string(text: &str) -> Self {
        Self::Scalar(Scalar { text: text.into(), tag: Tag::Str, style: Style::Plain })
    }

    pub(crate) fn tagged(text: &str, tag: Tag) -> Self {
        Self::Scalar(Scalar { text: text.into(), tag, style: Style::Plain })
    }

    pub(crate) fn map() -> Self {
        Self::Map(Vec::new())
    }

    pub(crate) fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Scalar => Self::text(""),
            Kind::Seq => Self::Seq(Vec::new()),
            Kind::Map => Self::map(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Scalar(_) => Kind::Scalar,
            Self::Seq(_) => Kind::Seq,
            Self::Map(_) => Kind::Map,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(scalar) if scalar.tag == Tag::Null)
    }

    pub(crate) fn is_empty_map(&self) -> bool {
        matches!(self, Self::Map(entries) if entries.is_empty())
    }

    pub(crate) fn is_nil_or_empty(&self) -> bool {
        match self {
            Self::Scalar(_) => self.is_null(),
            Self::Seq(items) => items.is_empty(),
            Self::Map(entries) => entries.is_empty(),
        }
    }

    /// A string or untagged text.
    pub(crate) fn is_string(&self) -> bool {
        matches!(self, Self::Scalar(scalar) if matches!(scalar.tag, Tag::Str | Tag::None))
    }

    /// The text of a scalar; nothing for lists and mappings, as the reference has it.
    pub(crate) fn value(&self) -> &str {
        match self {
            Self::Scalar(scalar) => &scalar.text,
            _ => "",
        }
    }

    pub(crate) fn style(&self) -> Style {
        match self {
            Self::Scalar(scalar) => scalar.style,
            _ => Style::Plain,
        }
    }

    pub(crate) fn set_style(&mut self, style: Style) {
        if let Self::Scalar(scalar) = self {
            scalar.style = style;
        }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match self {
            Self::Seq(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn entries(&self) -> &[(Arc<str>, Node)] {
        match self {
            Self::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The first entry of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        match self {
            Self::Map(entries) => entries.iter_mut().find(|(key, _)| &**key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Self::Map(entries) = self
            && let Some(at) = entries.iter().position(|(key, _)| &**key == name)
        {
            entries.remove(at);
        }
    }

    /// Sets an entry as the reference's field setter: null removes it, an existing entry keeps its place and style, a
    /// new one gets quotes where YAML 1.1 would read its text as something else. In a null it is lost.
    ///
    /// # Errors
    /// When this is neither mapping nor null.
    pub(crate) fn set(&mut self, name: &str, mut value: Node) -> Result<(), WrongKind> {
        if self.is_null() {
            return Ok(());
        }
        let Self::Map(entries) = self else { return Err(WrongKind::new(Kind::Map, self)) };
        let at = entries.iter().position(|(key, _)| &**key == name);
        if value.is_null() {
            if let Some(at) = at {
                entries.remove(at);
            }
            return Ok(());
        }
        match at {
            Some(at) => {
                value.set_style(entries[at].1.style());
                entries[at].1 = value;
            }
            None => {
                value.quote_if_ambiguous();
                entries.push((name.into(), value));
            }
        }
        Ok(())
    }

    /// Replaces a scalar, which keeps its style; null is left alone by null.
    ///
    /// # Errors
    /// When this is a list or mapping.
    pub(crate) fn set_scalar(&mut self, mut value: Node) -> Result<(), WrongKind> {
        if !self.is_null() && self.kind() != Kind::Scalar {
            return Err(WrongKind::new(Kind::Scalar, self));
        }
        if !value.is_null() {
            value.set_style(self.style());
            *self = value;
        }
        Ok(())
    }

    pub(crate) fn quote_if_ambiguous(&mut self) {
        if let Self::Scalar(scalar) = self
            && scalar.style == Style::Plain
            && matches!(scalar.tag, Tag::Str | Tag::None)
            && scalar::is_ambiguous_in_yaml_1_1(&scalar.text)
        {
            scalar.style = Style::Double;
        }
    }
}

/// A list where a mapping should be, and the like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {} stands where a {} should be", name(.got), name(.wanted))]
pub(crate) struct WrongKind {
    pub(crate) wanted: Kind,
    pub(crate) got: Kind,
}

impl WrongKind {
    pub(crate) fn new(wanted: Kind, got: &Node) -> Self {
        Self { wanted, got: got.kind() }
    }
}

impl From<WrongKind> for String {
    fn from(error: WrongKind) -> Self {
        error.to_string()
    }
}

fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Scalar => "single value",
        Kind::Seq => "list",
        Kind::Map => "mapping",
    }
}
