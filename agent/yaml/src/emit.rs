//! JSON to YAML, byte for byte as sigs.k8s.io/yaml writes it: two spaces, sequences at their parent's indent, keys in
//! natural order, double quotes where a plain scalar would be read as something else. A scalar that runs past column 80
//! goes on in the next line at its next space.

mod order;
mod style;

use serde_json::{Map, Value};

use crate::float::{json_number, shortest_64};
use style::{ScalarStyle, Shape};

/// Writes a JSON value as YAML.
pub fn to_string(value: &Value) -> String {
    let mut emitter =
        Emitter { out: String::new(), column: 0, indent: -1, whitespace: true, indention: true };
    emitter.node(value, Context::Root);
    emitter.write_indent();
    emitter.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    Root,
    Item,
    /// Key or value of a mapping.
    Mapping,
    /// A key without `?`.
    SimpleKey,
}

struct Emitter {
    out: String,
    column: isize,
    indent: isize,
    /// The last character was white space.
    whitespace: bool,
    /// Only indentation and indicators stand on this line so far.
    indention: bool,
}

/// The column behind which a scalar is broken.
const WIDTH: isize = 80;

/// Longest key, in bytes, that is written without `?`.
const MAX_SIMPLE_KEY: usize = 128;

impl Emitter {
    fn node(&mut self, value: &Value, context: Context) {
        match value {
            Value::Null => self.word("null"),
            Value::Bool(flag) => self.word(if *flag { "true" } else { "false" }),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text, context),
            Value::Array(items) if items.is_empty() => {
                self.indicator("[", true, true, false);
                self.indicator("]", false, false, false);
            }
            Value::Object(map) if map.is_empty() => {
                self.indicator("{", true, true, false);
                self.indicator("}", false, false, false);
            }
            Value::Array(items) => self.sequence(items, context),
            Value::Object(map) => self.mapping(map),
        }
    }

    fn sequence(&mut self, items: &[Value], context: Context) {
        let outer = self.indent;
        self.increase_indent(false, context == Context::Mapping && !self.indention);
        for item in items {
            self.write_indent();
            self.indicator("-", true, false, true);
            self.node(item, Context::Item);
        }
        self.indent = outer;
    }

    fn mapping(&mut self, map: &Map<String, Value>) {
        let outer = self.indent;
        self.increase_indent(false, false);
        for name in order::sorted(map.keys()) {
            self.write_indent();
            if !style::has_breaks(name) && name.len() <= MAX_SIMPLE_KEY {
                self.string(name, Context::SimpleKey);
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.string(name, Context::Mapping);
                self.write_indent();
                self.indicator(":", true, false, true);
            }
            self.node(&map[name.as_str()], Context::Mapping);
        }
        self.indent = outer;
    }

    fn increase_indent(&mut self, flow: bool, indentless: bool) {
        if self.indent < 0 {
            self.indent = if flow { 2 } else { 0 };
        } else if !indentless {
            self.indent += 2;
        }
    }

    /// A whole number that JSON would write with a fraction or exponent is read back as an integer first.
    fn number(&mut self, number: &serde_json::Number) {
        let text = match number.as_f64().filter(|_| number.is_f64()) {
            None => number.to_string(),
            Some(float) => match json_number(float).filter(|found| !found.is_f64()) {
                Some(whole) => whole.to_string(),
                None => shortest_64(float),
            },
        };
        self.word(&text);
    }

    fn word(&mut self, text: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        for c in text.chars() {
            self.put(c);
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn string(&mut self, text: &str, context: Context) {
        let outer = self.indent;
        self.increase_indent(true, false);
        match Shape::of(text).style(text, context == Context::SimpleKey) {
            ScalarStyle::Plain => self.plain(text, context != Context::SimpleKey),
            ScalarStyle::SingleQuoted => self.single_quoted(text, context != Context::SimpleKey),
            ScalarStyle::DoubleQuoted => self.double_quoted(text, context != Context::SimpleKey),
            ScalarStyle::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, need_whitespace: bool, whitespace: bool, indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        for c in text.chars() {
            self.put(c);
        }
        self.whitespace = whitespace;
        self.indention = self.indention && indention;
    }

    /// Text without line ends.
    fn plain(&mut self, text: &str, foldable: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' && foldable && !spaces && self.column > WIDTH && chars.peek() != Some(&' ') {
                self.write_indent();
            } else {
                self.put(c);
            }
            self.indention &= c == ' ';
            spaces = c == ' ';
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, foldable: bool) {
        self.indicator("'", true, false, false);
        let (mut spaces, mut breaks, mut first) = (false, false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let inside = !first && chars.peek().is_some_and(|next| *next != ' ');
            first = false;
            if style::is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break('\n');
                }
                self.put_break(c);
                self.indention = true;
                breaks = true;
            } else if c == ' ' {
                if foldable && !spaces && self.column > WIDTH && inside {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn double_quoted(&mut self, text: &str, foldable: bool) {
        self.indicator("\"", true, false, false);
        // go-yaml asks for a byte order mark at the begin of the text where it means the current character.
        let escape_all = text.starts_with('\u{feff}');
        let (mut spaces, mut first) = (false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            if escape_all || !style::is_printable(c) || style::is_break(c) || matches!(c, '"' | '\\') {
                for c in style::escaped(c).chars() {
                    self.put(c);
                }
                spaces = false;
            } else if c == ' ' && foldable && !spaces && self.column > WIDTH && !first && next.is_some() {
                self.write_indent();
                if next == Some(' ') {
                    self.put('\\');
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = c == ' ';
            }
            first = false;
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        if text.starts_with(|c| c == ' ' || style::is_break(c)) {
            self.indicator("2", false, false, false);
        }
        let mut ending = text.chars().rev();
        let last_breaks = ending.next().is_some_and(style::is_break);
        // A lone line end counts as two here.
        if !last_breaks {
            self.indicator("-", false, false, false);
        } else if ending.next().is_none_or(style::is_break) {
            self.indicator("+", false, false, false);
        }
        self.put_break('\n');
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if style::is_break(c) {
                self.put_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }
}
