//! The events of one document to its tree.

use crate::builder::Builder;
use crate::error::Error;
use crate::node::Node;
use crate::parse::{EventKind, Parser};

/// What may stand behind the document.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rest {
    /// Nothing but white space and comments.
    Nothing,
    /// Anything; it is not read.
    Unread,
}

/// The first document in `text`, none where there is only white space and comments. `first_line` is the line of the
/// stream on which `text` begins.
pub(crate) fn document(
    text: &str,
    first_line: u32,
    rest: Rest,
    builder: &mut Builder<'_>,
) -> Result<Option<Node>, Error> {
    let mut parser = Parser::new(text, first_line);
    loop {
        let event = parser.next_event()?;
        let span = parser.scanner.span(event.mark);
        match event.kind {
            EventKind::DocumentStart => {}
            EventKind::StreamEnd => return Ok(builder.take()),
            EventKind::DocumentEnd => break,
            EventKind::Alias(name) => builder.alias(span, &name)?,
            EventKind::Scalar { text, style, properties } => {
                builder.scalar(span, &text, style, properties.tag, properties.anchor.as_deref())?;
            }
            EventKind::SequenceStart(properties) => {
                builder.begin_sequence(span, properties.tag, properties.anchor.as_deref())?;
            }
            EventKind::MappingStart(properties) => {
                builder.begin_mapping(span, properties.tag, properties.anchor.as_deref())?;
            }
            EventKind::SequenceEnd | EventKind::MappingEnd => builder.end()?,
        }
    }
    let root = builder.take();
    if rest == Rest::Nothing {
        let event = parser.next_event()?;
        if !matches!(event.kind, EventKind::StreamEnd) {
            return Err(parser.scanner.error(
                event.mark,
                "text after the document's end mark `...`, which kubectl would drop; begin a further document with a \
                 line `---`",
            ));
        }
    }
    Ok(root)
}
