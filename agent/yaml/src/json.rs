//! JSON streams: objects one after another, fed into the same builder.

use serde_json::Value;

use crate::builder::Builder;
use crate::error::Error;
use crate::node::{Node, Span, Style};

pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn next_value(&mut self, builder: &mut Builder<'_>) -> Result<Option<Node>, Error> {
        let rest = &self.text[self.at..];
        if rest.trim().is_empty() {
            return Ok(None);
        }
        let start = self.at + (rest.len() - rest.trim_start().len());
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => {
                let (line, column) = self.place(self.at);
                let line = line + u32::try_from(error.line()).unwrap_or(1).saturating_sub(1);
                let _ = column;
                let text = error.to_string();
                let what = text.split(" at line").next().unwrap_or("is not JSON").to_owned();
                return Err(Error::syntax(line, u32::try_from(error.column()).unwrap_or(0), what));
            }
            None => return Ok(None),
        };
        self.at += stream.byte_offset();
        let (line, column) = self.place(start);
        feed(&value, Span { line, column }, builder)?;
        Ok(builder.take())
    }

    fn place(&self, at: usize) -> (u32, u32) {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
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
