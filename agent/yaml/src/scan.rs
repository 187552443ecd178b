//! One YAML document to events, by `saphyr-parser`.

use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use crate::builder::Builder;
use crate::error::Error;
use crate::node::{Node, Span, Style};

/// The document in `text`, none where there is only white space and comments. `first_line` is the line of the
/// stream on which `text` begins.
pub(crate) fn document(
    text: &str,
    first_line: u32,
    builder: &mut Builder<'_>,
) -> Result<Option<Node>, Error> {
    let at = |mark: Marker| Span {
        line: u32::try_from(mark.line().max(1) - 1).unwrap_or(u32::MAX).saturating_add(first_line),
        column: u32::try_from(mark.col() + 1).unwrap_or(u32::MAX),
    };
    let mut begun = false;
    // Pulled one by one and not by `load`, which recurses as deep as the text likes.
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| syntax_error(&error, at(*error.marker())))?;
        let span = at(span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            Event::DocumentStart(_) if begun => {
                return Err(Error::syntax(
                    span.line,
                    span.column,
                    "text after the document's end mark `...`, which kubectl would drop; begin a further \
                     document with a line `---`",
                ));
            }
            Event::DocumentStart(_) => begun = true,
            Event::Alias(anchor) => builder.alias(span, anchor)?,
            Event::Scalar(text, style, anchor, tag) => {
                builder.scalar(span, &text, style_of(style), short_tag(tag.as_deref()), anchor)?;
            }
            Event::SequenceStart(anchor, tag) => {
                builder.begin_sequence(span, short_tag(tag.as_deref()), anchor)?;
            }
            Event::MappingStart(anchor, tag) => {
                builder.begin_mapping(span, short_tag(tag.as_deref()), anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => builder.end(),
        }
    }
    Ok(builder.take())
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

fn short_tag(tag: Option<&Tag>) -> Option<Arc<str>> {
    const CORE: &str = "tag:yaml.org,2002:";
    let tag = tag?;
    let whole = format!("{}{}", tag.handle, tag.suffix);
    Some(match whole.strip_prefix(CORE) {
        Some(name) => format!("!!{name}").into(),
        None => whole.into(),
    })
}

/// The scanner's texts speak to authors of parsers; those that people meet most are put in plain words.
fn syntax_error(error: &ScanError, at: Span) -> Error {
    let info = error.info();
    let message = if info.contains("tab") && !info.contains("table") {
        "a tab stands where YAML wants spaces; indent with spaces".to_owned()
    } else if info.contains("mapping values are not allowed") {
        "a second `: ` on this line, or a line that is indented too deep; quote the text or correct the \
         indentation"
            .to_owned()
    } else if info.contains("unknown anchor") {
        "an alias (`*name`) without an anchor (`&name`) before it in the same document".to_owned()
    } else if info.contains("recursion limit") {
        "more than 255 levels of `[` and `{`".to_owned()
    } else if info.contains("<document start>") || info.contains("<document-start>") {
        "text that belongs to no document: the indentation of this line fits nothing above it, or the line is a \
         %YAML directive (kubectl takes none)"
            .to_owned()
    } else {
        format!("not valid YAML: {info}")
    };
    Error::syntax(at.line, at.column, message)
}
