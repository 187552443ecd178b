//! JSON streams: objects one after another, fed into the same builder.

use serde_json::Value;

use crate::builder::Builder;
use crate::compose::{self, Rest};
use crate::error::Error;
use crate::node::{Limits, Node, Span, Style};
use crate::value::to_json;

pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// The place of `at`.
    place: Span,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, place: Span { line: 1, column: 1 } }
    }

    pub(crate) fn next_value(&mut self, builder: &mut Builder<'_>) -> Result<Option<Node>, Error> {
        let rest = &self.text[self.at..];
        if rest.trim().is_empty() {
            return Ok(None);
        }
        self.advance(self.at + (rest.len() - rest.trim_start().len()));
        let (begin, span) = (self.at, self.place);
        let rest = &self.text[begin..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => {
                let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let line = span.line.saturating_add(number(error.line()).saturating_sub(1));
                let text = error.to_string();
                let what = text.split(" at line").next().unwrap_or("is not JSON").to_owned();
                return Err(Error::syntax(line, number(error.column()), what));
            }
            None => return Ok(None),
        };
        let end = begin + stream.byte_offset();
        self.advance(end);
        feed(&value, span, builder)?;
        let flat = builder.take();
        Ok(with_places(&self.text[begin..end], span.line, builder.limits(), &value).or(flat))
    }

    fn advance(&mut self, to: usize) {
        let passed = &self.text[self.at..to];
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let lines = count(passed.matches('\n').count());
        let last = count(passed.rsplit('\n').next().unwrap_or_default().chars().count());
        self.place.column = if lines == 0 { self.place.column.saturating_add(last) } else { last + 1 };
        self.place.line = self.place.line.saturating_add(lines);
        self.at = to;
    }
}

/// The same value from the reader of YAML, which knows where each part stands and which keys stand twice. Nearly all
/// JSON is YAML of the same meaning; what is not keeps the place of its object.
fn with_places(text: &str, line: u32, limits: &Limits, value: &Value) -> Option<Node> {
    let root = compose::document(text, line, Rest::Nothing, &mut Builder::new(limits)).ok()??;
    (to_json(&root, &mut Vec::new(), false).ok().as_ref() == Some(value)).then_some(root)
}

fn feed(value: &Value, span: Span, builder: &mut Builder<'_>) -> Result<(), Error> {
    match value {
        Value::Null => builder.scalar(span, "null", Style::Plain, None, None),
        Value::Bool(flag) => {
            builder.scalar(span, if *flag { "true" } else { "false" }, Style::Plain, None, None)
        }
        Value::Number(number) => builder.scalar(span, &number.to_string(), Style::Plain, None, None),
        Value::String(text) => builder.scalar(span, text, Style::DoubleQuoted, None, None),
        Value::Array(items) => {
            builder.begin_sequence(span, None, None)?;
            for item in items {
                feed(item, span, builder)?;
            }
            builder.end()
        }
        Value::Object(map) => {
            builder.begin_mapping(span, None, None)?;
            for (name, item) in map {
                builder.scalar(span, name, Style::DoubleQuoted, None, None)?;
                feed(item, span, builder)?;
            }
            builder.end()
        }
    }
}
