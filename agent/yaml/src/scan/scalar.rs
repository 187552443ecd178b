//! Scalars: plain, quoted, literal and folded.

use super::reader::Mark;
use super::{Scanner, TokenKind};
use crate::error::Error;
use crate::node::Style;

/// Line ends between two parts of a folded scalar: one becomes a space, of several the first is dropped.
#[derive(Default)]
struct Fold {
    blanks: String,
    first: String,
    more: String,
    /// A line end was met, and white space since then is indentation.
    in_break: bool,
}

impl Fold {
    /// White space and line ends at the reader.
    fn blank_or_break(&mut self, scanner: &mut Scanner<'_>) {
        let reader = &mut scanner.reader;
        if reader.is_blank(0) {
            if self.in_break {
                reader.skip();
            } else {
                reader.read(&mut self.blanks);
            }
        } else if self.in_break {
            reader.read_line(&mut self.more);
        } else {
            self.blanks.clear();
            reader.read_line(&mut self.first);
            self.in_break = true;
        }
    }

    fn join(&mut self, text: &mut String) {
        if self.in_break {
            // After an escaped line end there is no first one.
            if !self.first.starts_with('\n') {
                text.push_str(&self.first);
                text.push_str(&self.more);
            } else if self.more.is_empty() {
                text.push(' ');
            } else {
                text.push_str(&self.more);
            }
            self.first.clear();
            self.more.clear();
            self.in_break = false;
        } else {
            text.push_str(&self.blanks);
        }
        self.blanks.clear();
    }
}

impl Scanner<'_> {
    pub(super) fn scan_plain(&mut self) -> Result<(), Error> {
        let start = self.reader.mark;
        let mut end = start;
        let indent = self.indent + 1;
        let mut text = String::new();
        let mut fold = Fold::default();
        loop {
            if self.reader.at_document_mark() || self.reader.byte(0) == b'#' {
                break;
            }
            while !self.reader.is_blank_or_end(0) {
                let byte = self.reader.byte(0);
                let ends = (byte == b':' && self.reader.is_blank_or_end(1))
                    || (self.flow_level > 0 && matches!(byte, b',' | b'?' | b'[' | b']' | b'{' | b'}'));
                if ends {
                    break;
                }
                if fold.in_break || !fold.blanks.is_empty() {
                    fold.join(&mut text);
                }
                self.reader.read(&mut text);
                end = self.reader.mark;
            }
            if !(self.reader.is_blank(0) || self.reader.is_break(0)) {
                break;
            }
            while self.reader.is_blank(0) || self.reader.is_break(0) {
                if fold.in_break && self.column() < indent && self.reader.byte(0) == b'\t' {
                    return Err(self.tab());
                }
                fold.blank_or_break(self);
            }
            if self.flow_level == 0 && self.column() < indent {
                break;
            }
        }
        // A scalar that ran on to a next line ends with that line: a key may follow.
        if fold.in_break {
            self.key_allowed = true;
        }
        self.push_scalar(text, Style::Plain, start, end);
        Ok(())
    }

    fn push_scalar(&mut self, text: String, style: Style, start: Mark, end: Mark) {
        self.tokens.push_back(super::Token { kind: TokenKind::Scalar { text, style }, start, end });
    }

    fn tab(&self) -> Error {
        self.error(self.reader.mark, "a tab stands where YAML wants spaces; indent with spaces")
    }

    pub(super) fn scan_flow_scalar(&mut self, single: bool) -> Result<(), Error> {
        let start = self.reader.mark;
        let quote = if single { b'\'' } else { b'"' };
        self.reader.skip();
        let mut text = String::new();
        let mut fold = Fold::default();
        loop {
            if self.reader.at_document_mark() || self.reader.is_end(0) {
                let message = format!("the quote {} that opens here is never closed", char::from(quote));
                return Err(self.error(start, message));
            }
            while !self.reader.is_blank_or_end(0) {
                let byte = self.reader.byte(0);
                if single && byte == b'\'' && self.reader.byte(1) == b'\'' {
                    text.push('\'');
                    self.reader.skip_many(2);
                } else if byte == quote {
                    break;
                } else if !single && byte == b'\\' && self.reader.is_break(1) {
                    self.reader.skip();
                    self.reader.skip_line();
                    fold.in_break = true;
                    break;
                } else if !single && byte == b'\\' {
                    self.scan_escape(&mut text)?;
                } else {
                    self.reader.read(&mut text);
                }
            }
            if self.reader.byte(0) == quote {
                break;
            }
            while self.reader.is_blank(0) || self.reader.is_break(0) {
                fold.blank_or_break(self);
            }
            fold.join(&mut text);
        }
        self.reader.skip();
        let style = if single { Style::SingleQuoted } else { Style::DoubleQuoted };
        let end = self.reader.mark;
        self.push_scalar(text, style, start, end);
        Ok(())
    }

    /// A backslash in double quotes and what it stands for.
    fn scan_escape(&mut self, text: &mut String) -> Result<(), Error> {
        let mark = self.reader.mark;
        let digits = match self.reader.byte(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            byte => {
                let Some(c) = escaped(byte) else {
                    return Err(self.error(
                        mark,
                        "an unknown escape in double quotes; write `\\\\` for a backslash, or use single quotes",
                    ));
                };
                text.push(c);
                0
            }
        };
        self.reader.skip_many(2);
        let mut code = 0_u32;
        for _ in 0..digits {
            let Some(digit) = char::from(self.reader.byte(0)).to_digit(16) else {
                return Err(
                    self.error(mark, format!("{digits} hexadecimal digits belong behind this escape"))
                );
            };
            code = code.wrapping_shl(4) | digit;
            self.reader.skip();
        }
        if digits > 0 {
            let c = char::from_u32(code)
                .ok_or_else(|| self.error(mark, "this escape is no character of Unicode"))?;
            text.push(c);
        }
        Ok(())
    }

    pub(super) fn scan_block_scalar(&mut self, style: Style) -> Result<(), Error> {
        let start = self.reader.mark;
        self.reader.skip();
        let (keep, increment) = self.scan_block_header(start)?;
        let mut indent = if increment > 0 { self.indent.max(0) + increment } else { 0 };

        let mut text = String::new();
        let (mut first, mut more) = (String::new(), String::new());
        let mut end = self.reader.mark;
        self.scan_block_breaks(&mut indent, &mut more, &mut end)?;
        let mut was_blank = false;
        while self.column() == indent && !self.reader.is_end(0) {
            let blank = self.reader.is_blank(0);
            // A line that is indented deeper is not folded, nor are the ends of lines around it.
            if style == Style::Folded && !was_blank && !blank && first.starts_with('\n') {
                if more.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&first);
            }
            first.clear();
            text.push_str(&more);
            more.clear();
            was_blank = blank;
            while !self.reader.is_break_or_end(0) {
                self.reader.read(&mut text);
            }
            self.reader.read_line(&mut first);
            self.scan_block_breaks(&mut indent, &mut more, &mut end)?;
        }
        if keep != Some(false) {
            text.push_str(&first);
        }
        if keep == Some(true) {
            text.push_str(&more);
        }
        self.push_scalar(text, style, start, end);
        Ok(())
    }

    /// `+` or `-` and a digit, in any order, then nothing but a comment.
    fn scan_block_header(&mut self, start: Mark) -> Result<(Option<bool>, isize), Error> {
        let mut keep = self.scan_chomping();
        let mut increment = 0;
        let byte = self.reader.byte(0);
        if byte == b'0' {
            return Err(self.error(self.reader.mark, "an indentation of 0 is not possible here"));
        }
        if byte.is_ascii_digit() {
            increment = isize::from(byte - b'0');
            self.reader.skip();
            if keep.is_none() {
                keep = self.scan_chomping();
            }
        }
        self.reader.skip_blanks();
        if self.reader.byte(0) == b'#' {
            self.reader.skip_comment();
        }
        if !self.reader.is_break_or_end(0) {
            return Err(self.error(
                start,
                "behind `|` or `>` only `+`, `-`, a digit and a comment may stand; put the text on the next line, \
                 or in quotes",
            ));
        }
        self.reader.skip_line();
        Ok((keep, increment))
    }

    fn scan_chomping(&mut self) -> Option<bool> {
        let keep = match self.reader.byte(0) {
            b'+' => true,
            b'-' => false,
            _ => return None,
        };
        self.reader.skip();
        Some(keep)
    }

    /// Indentation and empty lines. Where `indent` is 0, it becomes the depth of the deepest line up to the first
    /// that has text.
    fn scan_block_breaks(
        &mut self,
        indent: &mut isize,
        breaks: &mut String,
        end: &mut Mark,
    ) -> Result<(), Error> {
        let mut deepest = 0;
        *end = self.reader.mark;
        loop {
            while (*indent == 0 || self.column() < *indent) && self.reader.byte(0) == b' ' {
                self.reader.skip();
            }
            deepest = deepest.max(self.column());
            if (*indent == 0 || self.column() < *indent) && self.reader.byte(0) == b'\t' {
                return Err(self.tab());
            }
            if !self.reader.is_break(0) {
                break;
            }
            self.reader.read_line(breaks);
            *end = self.reader.mark;
        }
        if *indent == 0 {
            *indent = deepest.max(self.indent + 1).max(1);
        }
        Ok(())
    }
}

fn escaped(byte: u8) -> Option<char> {
    Some(match byte {
        b'0' => '\0',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\u{b}',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'e' => '\u{1b}',
        b' ' | b'"' | b'\'' | b'\\' => char::from(byte),
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
