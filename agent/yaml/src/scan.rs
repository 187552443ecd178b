//! Text to tokens, with the grammar that go-yaml's port of libyaml accepts: nothing more, nothing less.
//!
//! The grammar is of one pass: a token that may turn out to be a key (`a` before `: `) is held back in a queue until
//! the `:` was seen or cannot come any more, at most 1,024 characters and one line later. So the queue is short
//! however long the text is.

mod properties;
mod reader;
mod scalar;

use std::collections::{HashMap, VecDeque};

use crate::error::Error;
use crate::node::{Span, Style};
pub(crate) use reader::Mark;
use reader::Reader;

/// What a token is, with its text.
#[derive(Debug)]
pub(crate) enum TokenKind {
    StreamEnd,
    Version(u32, u32),
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { text: String, style: Style },
}

/// A token and where it stands.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: Mark,
    pub(crate) end: Mark,
}

/// A place where a key without `?` may have begun, one for each level of flow collections.
#[derive(Clone, Copy)]
struct SimpleKey {
    possible: bool,
    /// In a block mapping nothing but a key can stand at its indentation.
    required: bool,
    token: usize,
    mark: Mark,
}

/// go-yaml's own limits of `[` and of indentation; ours of nodes come earlier.
const MAX_LEVELS: usize = 10_000;

/// How far a `:` may be from the begin of its key.
const MAX_KEY: usize = 1024;

pub(crate) struct Scanner<'t> {
    reader: Reader<'t>,
    /// Line of the stream on which the text begins, counted from 1.
    first_line: u32,
    tokens: VecDeque<Token>,
    taken: usize,
    available: bool,
    ended: bool,
    /// Column of the innermost block collection, -1 outside of all.
    indent: isize,
    indents: Vec<isize>,
    flow_level: usize,
    key_allowed: bool,
    keys: Vec<SimpleKey>,
    keys_by_token: HashMap<usize, usize>,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str, first_line: u32) -> Self {
        let reader = Reader::new(text);
        let none = SimpleKey { possible: false, required: false, token: 0, mark: reader.mark };
        Self {
            reader,
            first_line,
            tokens: VecDeque::new(),
            taken: 0,
            available: false,
            ended: false,
            indent: -1,
            indents: Vec::new(),
            flow_level: 0,
            key_allowed: true,
            keys: vec![none],
            keys_by_token: HashMap::new(),
        }
    }

    /// The next token, which stays the next one.
    pub(crate) fn peek(&mut self) -> Result<&Token, Error> {
        if !self.available {
            self.fetch_more()?;
            self.available = true;
        }
        // `fetch_more` ends with a token in the queue; after the last one there is always an end of the stream.
        if self.tokens.is_empty() {
            let mark = self.reader.mark;
            self.tokens.push_back(Token { kind: TokenKind::StreamEnd, start: mark, end: mark });
        }
        Ok(&self.tokens[0])
    }

    /// Takes the token that `peek` showed.
    pub(crate) fn take(&mut self) -> Option<Token> {
        self.available = false;
        self.taken += 1;
        self.tokens.pop_front()
    }

    /// A place of the stream.
    pub(crate) fn span(&self, mark: Mark) -> Span {
        Span {
            line: u32::try_from(mark.line).unwrap_or(u32::MAX).saturating_add(self.first_line),
            column: u32::try_from(mark.column + 1).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn error(&self, mark: Mark, message: impl Into<String>) -> Error {
        let span = self.span(mark);
        Error::syntax(span.line, span.column, message)
    }

    fn fetch_more(&mut self) -> Result<(), Error> {
        while !self.ended {
            if !self.tokens.is_empty() {
                // The first token stays while it may still become a key.
                let Some(&level) = self.keys_by_token.get(&self.taken) else { break };
                if !self.key_is_valid(level)? {
                    break;
                }
            }
            self.fetch_next()?;
        }
        Ok(())
    }

    fn fetch_next(&mut self) -> Result<(), Error> {
        self.skip_to_token();
        let column = self.column();
        self.unroll_indent(column);
        let reader = &self.reader;
        let first = reader.byte(0);
        let at_start = reader.mark.column == 0;
        if reader.is_end(0) {
            return self.fetch_stream_end();
        }
        if at_start && first == b'%' {
            return self.fetch_directive();
        }
        if reader.at_document_mark() {
            let kind = if first == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd };
            return self.fetch_document_mark(kind);
        }
        let in_flow = self.flow_level > 0;
        let blank_next = self.reader.is_blank_or_end(1);
        match first {
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if blank_next => self.fetch_block_entry(),
            b'?' if in_flow || blank_next => self.fetch_key(),
            b':' if in_flow || blank_next => self.fetch_value(),
            b'*' | b'&' | b'!' => self.fetch_property(first),
            b'|' if !in_flow => self.fetch_block_scalar(Style::Literal),
            b'>' if !in_flow => self.fetch_block_scalar(Style::Folded),
            b'\'' | b'"' => self.fetch_flow_scalar(first == b'\''),
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => Err(self.wrong_start(first)),
            _ => self.fetch_plain(),
        }
    }

    fn wrong_start(&self, first: u8) -> Error {
        let message = match first {
            b'\t' => "a tab stands where YAML wants spaces; indent with spaces".to_owned(),
            b'%' => {
                "no value begins with `%`; put it in quotes (a Helm template is no plain manifest)".to_owned()
            }
            _ => format!("no value begins with `{}`; put it in quotes", char::from(first)),
        };
        self.error(self.reader.mark, message)
    }

    fn column(&self) -> isize {
        isize::try_from(self.reader.mark.column).unwrap_or(isize::MAX)
    }

    /// White space, comments and line ends up to the next token. A tab is white space except where it would indent.
    fn skip_to_token(&mut self) {
        if self.reader.at_start() && self.reader.is_bom() {
            self.reader.skip();
        }
        loop {
            while self.reader.byte(0) == b' '
                || ((self.flow_level > 0 || !self.key_allowed) && self.reader.byte(0) == b'\t')
            {
                self.reader.skip();
            }
            if self.reader.byte(0) == b'#' {
                self.reader.skip_comment();
            }
            if !self.reader.is_break(0) {
                return;
            }
            self.reader.skip_line();
            if self.flow_level == 0 {
                self.key_allowed = true;
            }
        }
    }

    fn push(&mut self, kind: TokenKind, start: Mark) {
        let end = self.reader.mark;
        self.tokens.push_back(Token { kind, start, end });
    }

    fn key_is_valid(&mut self, level: usize) -> Result<bool, Error> {
        let now = self.reader.mark;
        let Some(key) = self.keys.get_mut(level) else { return Ok(false) };
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < now.line || key.mark.index + MAX_KEY < now.index {
            if key.required {
                let mark = key.mark;
                return Err(self.no_colon(mark));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    fn no_colon(&self, mark: Mark) -> Error {
        self.error(
            mark,
            "`key: value` is expected here, and there is no `: ` on this line (one space behind the colon is needed)",
        )
    }

    fn save_key(&mut self) -> Result<(), Error> {
        if !self.key_allowed {
            return Ok(());
        }
        let required = self.flow_level == 0 && self.indent == self.column();
        let key = SimpleKey {
            possible: true,
            required,
            token: self.taken + self.tokens.len(),
            mark: self.reader.mark,
        };
        self.remove_key()?;
        let level = self.keys.len().saturating_sub(1);
        if let Some(last) = self.keys.last_mut() {
            *last = key;
            self.keys_by_token.insert(key.token, level);
        }
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), Error> {
        let Some(key) = self.keys.last_mut() else { return Ok(()) };
        if !key.possible {
            return Ok(());
        }
        let SimpleKey { required, mark, token, .. } = *key;
        if required {
            return Err(self.no_colon(mark));
        }
        key.possible = false;
        self.keys_by_token.remove(&token);
        Ok(())
    }

    /// Begins a block collection where `column` is deeper than the innermost one. `token` is the number of the token
    /// before which it begins, none for the end of the queue.
    fn roll_indent(
        &mut self,
        column: isize,
        token: Option<usize>,
        kind: TokenKind,
        mark: Mark,
    ) -> Result<(), Error> {
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            return Err(self.error(mark, format!("more than {MAX_LEVELS} levels of indentation")));
        }
        self.insert(token, Token { kind, start: mark, end: mark });
        Ok(())
    }

    fn insert(&mut self, number: Option<usize>, token: Token) {
        match number.and_then(|number| number.checked_sub(self.taken)) {
            Some(at) if at <= self.tokens.len() => self.tokens.insert(at, token),
            _ => self.tokens.push_back(token),
        }
    }

    /// Ends the block collections that are deeper than `column`.
    fn unroll_indent(&mut self, column: isize) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(TokenKind::BlockEnd, self.reader.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_stream_end(&mut self) -> Result<(), Error> {
        self.reader.end_line();
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        self.ended = true;
        self.push(TokenKind::StreamEnd, self.reader.mark);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        self.scan_directive()
    }

    fn fetch_document_mark(&mut self, kind: TokenKind) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        let start = self.reader.mark;
        self.reader.skip_many(3);
        self.push(kind, start);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: TokenKind) -> Result<(), Error> {
        self.save_key()?;
        let mark = self.reader.mark;
        let token = self.taken + self.tokens.len();
        self.keys.push(SimpleKey { possible: false, required: false, token, mark });
        self.flow_level += 1;
        if self.flow_level > MAX_LEVELS {
            return Err(self.error(mark, format!("more than {MAX_LEVELS} levels of `[` and `{{`")));
        }
        self.key_allowed = true;
        self.reader.skip();
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind) -> Result<(), Error> {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            if let Some(key) = self.keys.pop() {
                self.keys_by_token.remove(&key.token);
            }
        }
        self.key_allowed = false;
        self.indicator(kind);
        Ok(())
    }

    /// Takes one character as a token.
    fn indicator(&mut self, kind: TokenKind) {
        let start = self.reader.mark;
        self.reader.skip();
        self.push(kind, start);
    }

    fn fetch_flow_entry(&mut self) -> Result<(), Error> {
        self.remove_key()?;
        self.key_allowed = true;
        self.indicator(TokenKind::FlowEntry);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            let mark = self.reader.mark;
            if !self.key_allowed {
                return Err(self.error(
                    mark,
                    "a list item `- ` cannot begin here; put it on a line of its own, or the text in quotes",
                ));
            }
            self.roll_indent(self.column(), None, TokenKind::BlockSequenceStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.indicator(TokenKind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            let mark = self.reader.mark;
            if !self.key_allowed {
                return Err(self.error(mark, "a key `? ` cannot begin here; put the text in quotes"));
            }
            self.roll_indent(self.column(), None, TokenKind::BlockMappingStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow_level == 0;
        self.indicator(TokenKind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let level = self.keys.len().saturating_sub(1);
        if self.key_is_valid(level)? {
            let SimpleKey { token, mark, .. } = self.keys[level];
            self.insert(Some(token), Token { kind: TokenKind::Key, start: mark, end: mark });
            let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
            self.roll_indent(column, Some(token), TokenKind::BlockMappingStart, mark)?;
            self.keys[level].possible = false;
            self.keys_by_token.remove(&token);
            self.key_allowed = false;
        } else {
            if self.flow_level == 0 {
                let mark = self.reader.mark;
                if !self.key_allowed {
                    return Err(self.error(
                        mark,
                        "a second `: ` on this line, or a line that is indented too deep; quote the text or correct \
                         the indentation",
                    ));
                }
                self.roll_indent(self.column(), None, TokenKind::BlockMappingStart, mark)?;
            }
            self.key_allowed = self.flow_level == 0;
        }
        self.indicator(TokenKind::Value);
        Ok(())
    }

    fn fetch_property(&mut self, first: u8) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        match first {
            b'!' => self.scan_tag(),
            _ => self.scan_anchor(first == b'*'),
        }
    }

    fn fetch_block_scalar(&mut self, style: Style) -> Result<(), Error> {
        self.remove_key()?;
        self.key_allowed = true;
        self.scan_block_scalar(style)
    }

    fn fetch_flow_scalar(&mut self, single: bool) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        self.scan_flow_scalar(single)
    }

    fn fetch_plain(&mut self) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        self.scan_plain()
    }
}
