//! Where a command writes: documents, text, progress and errors, in the format asked for.

use std::io::{self, Write};

use clap::ValueEnum;
use pintle_api::{Document, ErrorBody};
use pintle_model::{Problem, Reason};
use serde_json::Value;

use super::text::{Paint, Tint, clean_lines};

/// `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// As table, with more columns.
    Wide,
    /// JSON with apiVersion and kind.
    Json,
    /// YAML with apiVersion and kind.
    Yaml,
    /// Names only, one a line.
    Name,
}

/// Output of one command.
pub struct Screen<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    format: Format,
    out_paint: Paint,
    err_paint: Paint,
    /// A document was printed: a further one in YAML needs a separator.
    printed: bool,
}

impl<'a> Screen<'a> {
    /// Writes to `out` and `err`; colour only where asked for.
    pub fn new(
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
        format: Format,
        (out_colour, err_colour): (bool, bool),
    ) -> Self {
        Self { out, err, format, out_paint: Paint(out_colour), err_paint: Paint(err_colour), printed: false }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Is the output for a person (not JSON, YAML or names)?
    pub(super) fn for_people(&self) -> bool {
        matches!(self.format, Format::Table | Format::Wide)
    }

    /// Refuses a format that this command does not have, instead of ignoring it.
    pub(super) fn allow(&self, more: &[Format]) -> Result<(), Problem> {
        let always = [Format::Table, Format::Json, Format::Yaml];
        if always.contains(&self.format) || more.contains(&self.format) {
            return Ok(());
        }
        let name = |format: &Format| {
            format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        let known: Vec<String> = always.iter().chain(more).map(name).collect();
        Err(Problem::new(
            Reason::Usage,
            format!("-o {} is not for this command; it has {}", name(&self.format), known.join(", ")),
        ))
    }

    /// The document as JSON or YAML, or the text that is made for people.
    pub(super) fn document<T: Document>(
        &mut self,
        document: &T,
        text: impl FnOnce(&T, Paint) -> String,
    ) -> io::Result<()> {
        if self.for_people() || self.format == Format::Name {
            let text = text(document, self.out_paint);
            return self.text(&text);
        }
        self.value(&document.to_document())
    }

    /// A JSON value as JSON or YAML.
    pub(super) fn value(&mut self, value: &Value) -> io::Result<()> {
        let separator = if self.printed { "---\n" } else { "" };
        self.printed = true;
        let text = match self.format {
            Format::Json => format!("{value:#}\n"),
            _ => format!("{separator}{}", yaml(value)),
        };
        self.text(&text)
    }

    /// Text as it is.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// A line of progress or a note, on stderr so that it never mixes with the result.
    pub(super) fn note(&mut self, line: &str) {
        // A closed stderr must not end the work.
        let _ = writeln!(self.err, "{}", clean_lines(line));
    }

    /// What went wrong, where, and what to do.
    pub fn problem(&mut self, problem: &Problem) {
        let text = match self.format {
            Format::Json => format!("{:#}\n", ErrorBody::from(problem).to_document()),
            Format::Yaml => yaml(&ErrorBody::from(problem).to_document()),
            _ => format!(
                "{} {}\n{} {}\n",
                self.err_paint.text("error:", Some(Tint::Bad)),
                clean_lines(&problem.message),
                self.err_paint.text(" hint:", Some(Tint::Faint)),
                problem.reason.hint()
            ),
        };
        let _ = self.err.write_all(text.as_bytes());
    }
}

/// A JSON value as one YAML document.
pub(super) fn yaml(value: &Value) -> String {
    pintle_yaml::to_string(value)
}
