//! Tokens to events: a state machine with a stack of its own, so that depth costs no stack of the thread.

use std::sync::Arc;

use crate::error::Error;
use crate::node::Style;
use crate::scan::{Mark, Scanner, Token, TokenKind};

/// What a document consists of, in the order of the text.
#[derive(Debug)]
pub(crate) enum EventKind {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(String),
    Scalar { text: String, style: Style, properties: Properties },
    SequenceStart(Properties),
    SequenceEnd,
    MappingStart(Properties),
    MappingEnd,
}

/// What may stand before a value: `&anchor` and `!tag`, in short form.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    pub(crate) anchor: Option<String>,
    pub(crate) tag: Option<Arc<str>>,
}

/// An event and where it begins.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) mark: Mark,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirst,
    BlockSequence,
    IndentlessSequence,
    BlockMappingFirst,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirst,
    FlowSequence,
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingFirst,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// Where a node may stand, which says what it may be.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Block,
    /// As a value or key of a block mapping: a sequence may begin at the indentation of its parent.
    BlockOrIndentless,
    Flow,
}

pub(crate) struct Parser<'t> {
    pub(crate) scanner: Scanner<'t>,
    state: State,
    states: Vec<State>,
    /// Where the open collections begin, for messages.
    opened: Vec<Mark>,
    handles: Vec<(String, String)>,
}

const CORE: &str = "tag:yaml.org,2002:";

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str, first_line: u32) -> Self {
        Self {
            scanner: Scanner::new(text, first_line),
            state: State::ImplicitDocumentStart,
            states: Vec::new(),
            opened: Vec::new(),
            handles: Vec::new(),
        }
    }

    pub(crate) fn next_event(&mut self) -> Result<Event, Error> {
        match self.state {
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Place::Block),
            State::BlockSequenceFirst => {
                self.open();
                self.block_sequence()
            }
            State::BlockSequence => self.block_sequence(),
            State::IndentlessSequence => self.indentless_sequence(),
            State::BlockMappingFirst => {
                self.open();
                self.block_mapping_key()
            }
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirst => {
                self.open();
                self.flow_sequence(true)
            }
            State::FlowSequence => self.flow_sequence(false),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_pair_value(),
            State::FlowPairEnd => {
                let mark = self.scanner.peek()?.start;
                self.state = State::FlowSequence;
                Ok(Event { kind: EventKind::MappingEnd, mark })
            }
            State::FlowMappingFirst => {
                self.open();
                self.flow_mapping_key(true)
            }
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(),
            State::FlowMappingEmptyValue => {
                let mark = self.scanner.peek()?.start;
                Ok(self.empty(mark, State::FlowMappingKey))
            }
            State::End => Ok(Event { kind: EventKind::StreamEnd, mark: Mark::default() }),
        }
    }

    /// Takes the token that begins a collection, which the event of its start has left in place.
    fn open(&mut self) {
        if let Some(token) = self.scanner.take() {
            self.opened.push(token.start);
        }
    }

    fn pop(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Ends a collection with the token that is next.
    fn close(&mut self, kind: EventKind) -> Result<Event, Error> {
        let mark = self.scanner.peek()?.start;
        self.scanner.take();
        self.opened.pop();
        self.pop();
        Ok(Event { kind, mark })
    }

    fn empty(&mut self, mark: Mark, then: State) -> Event {
        self.state = then;
        let properties = Properties::default();
        Event { kind: EventKind::Scalar { text: String::new(), style: Style::Plain, properties }, mark }
    }

    /// Takes an indicator; gives where it ended.
    fn skip(&mut self) -> Mark {
        self.scanner.take().map_or_else(Mark::default, |token| token.end)
    }

    fn document_start(&mut self, implicit: bool) -> Result<Event, Error> {
        if !implicit {
            while matches!(self.scanner.peek()?.kind, TokenKind::DocumentEnd) {
                self.scanner.take();
            }
        }
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        match kind {
            TokenKind::StreamEnd => {
                self.scanner.take();
                self.state = State::End;
                return Ok(Event { kind: EventKind::StreamEnd, mark });
            }
            TokenKind::Version(..) | TokenKind::TagDirective { .. } | TokenKind::DocumentStart => {
                self.directives()?;
                let Token { kind, start, .. } = self.scanner.peek()?;
                if !matches!(kind, TokenKind::DocumentStart) {
                    let start = *start;
                    return Err(self.stray(start));
                }
                self.scanner.take();
                self.states.push(State::DocumentEnd);
                self.state = State::DocumentContent;
            }
            _ if implicit => {
                self.directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
            }
            _ => return Err(self.stray(mark)),
        }
        Ok(Event { kind: EventKind::DocumentStart, mark })
    }

    fn stray(&self, mark: Mark) -> Error {
        self.scanner.error(
            mark,
            "text that belongs to no document: the indentation of this line fits nothing above it, or the line is a \
             %YAML directive (kubectl takes none)",
        )
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut version = false;
        loop {
            let Token { kind, start, .. } = self.scanner.peek()?;
            let start = *start;
            match kind {
                TokenKind::Version(major, minor) => {
                    if version || (*major, *minor) != (1, 1) {
                        return Err(self.scanner.error(
                            start,
                            "kubectl takes no other directive than `%YAML 1.1`; remove the line",
                        ));
                    }
                    version = true;
                }
                TokenKind::TagDirective { handle, prefix } => {
                    let (handle, prefix) = (handle.clone(), prefix.clone());
                    if self.handles.iter().any(|(known, _)| *known == handle) {
                        return Err(self.scanner.error(start, "a second %TAG directive for the same handle"));
                    }
                    self.handles.push((handle, prefix));
                }
                _ => break,
            }
            self.scanner.take();
        }
        for (handle, prefix) in [("!", "!"), ("!!", CORE)] {
            if !self.handles.iter().any(|(known, _)| known == handle) {
                self.handles.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if matches!(
            kind,
            TokenKind::Version(..)
                | TokenKind::TagDirective { .. }
                | TokenKind::DocumentStart
                | TokenKind::DocumentEnd
                | TokenKind::StreamEnd
        ) {
            self.pop();
            let state = self.state;
            return Ok(self.empty(mark, state));
        }
        self.node(Place::Block)
    }

    fn document_end(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if matches!(kind, TokenKind::DocumentEnd) {
            self.scanner.take();
        }
        self.handles.clear();
        self.state = State::DocumentStart;
        Ok(Event { kind: EventKind::DocumentEnd, mark })
    }

    fn node(&mut self, place: Place) -> Result<Event, Error> {
        let start = self.scanner.peek()?.start;
        if let TokenKind::Alias(name) = &self.scanner.peek()?.kind {
            let name = name.clone();
            self.scanner.take();
            self.pop();
            return Ok(Event { kind: EventKind::Alias(name), mark: start });
        }
        let properties = self.properties()?;
        let event = |kind| Ok(Event { kind, mark: start });
        let Token { kind, start: content, .. } = self.scanner.peek()?;
        match kind {
            TokenKind::BlockEntry if place == Place::BlockOrIndentless => {
                self.state = State::IndentlessSequence;
                event(EventKind::SequenceStart(properties))
            }
            TokenKind::Scalar { .. } => {
                self.pop();
                match self.scanner.take() {
                    Some(Token { kind: TokenKind::Scalar { text, style }, .. }) => {
                        event(EventKind::Scalar { text, style, properties })
                    }
                    _ => event(EventKind::StreamEnd),
                }
            }
            TokenKind::FlowSequenceStart => {
                self.state = State::FlowSequenceFirst;
                event(EventKind::SequenceStart(properties))
            }
            TokenKind::FlowMappingStart => {
                self.state = State::FlowMappingFirst;
                event(EventKind::MappingStart(properties))
            }
            TokenKind::BlockSequenceStart if place != Place::Flow => {
                self.state = State::BlockSequenceFirst;
                event(EventKind::SequenceStart(properties))
            }
            TokenKind::BlockMappingStart if place != Place::Flow => {
                self.state = State::BlockMappingFirst;
                event(EventKind::MappingStart(properties))
            }
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                self.pop();
                event(EventKind::Scalar { text: String::new(), style: Style::Plain, properties })
            }
            _ => {
                let content = *content;
                Err(self.scanner.error(content, "a value is expected here"))
            }
        }
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self) -> Result<Properties, Error> {
        let mut properties = Properties::default();
        loop {
            let Token { kind, start, .. } = self.scanner.peek()?;
            let mark = *start;
            match kind {
                TokenKind::Anchor(name) if properties.anchor.is_none() => {
                    properties.anchor = Some(name.clone());
                }
                TokenKind::Tag { handle, suffix } if properties.tag.is_none() => {
                    let (handle, suffix) = (handle.clone(), suffix.clone());
                    properties.tag = Some(self.tag(&handle, &suffix, mark)?);
                }
                _ => return Ok(properties),
            }
            self.scanner.take();
        }
    }

    fn tag(&self, handle: &str, suffix: &str, mark: Mark) -> Result<Arc<str>, Error> {
        if handle.is_empty() {
            return Ok(short(suffix));
        }
        match self.handles.iter().find(|(known, _)| known == handle) {
            Some((_, prefix)) => Ok(short(&format!("{prefix}{suffix}"))),
            None => Err(self.scanner.error(
                mark,
                "the handle of this tag is not declared; a text that begins with `!` needs quotes",
            )),
        }
    }

    fn block_sequence(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        match kind {
            TokenKind::BlockEntry => {
                let end = self.skip();
                match self.scanner.peek()?.kind {
                    TokenKind::BlockEntry | TokenKind::BlockEnd => Ok(self.empty(end, State::BlockSequence)),
                    _ => {
                        self.states.push(State::BlockSequence);
                        self.node(Place::Block)
                    }
                }
            }
            TokenKind::BlockEnd => self.close(EventKind::SequenceEnd),
            _ => Err(self.misplaced(mark, "`- ` is expected here, as in the list that begins")),
        }
    }

    fn misplaced(&self, mark: Mark, what: &str) -> Error {
        let opened = self.opened.last().map(|mark| self.scanner.span(*mark)).unwrap_or_default();
        let message = format!(
            "{what} in line {}, column {}; correct the indentation, or put the text in quotes",
            opened.line, opened.column
        );
        self.scanner.error(mark, message)
    }

    fn indentless_sequence(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if !matches!(kind, TokenKind::BlockEntry) {
            self.pop();
            return Ok(Event { kind: EventKind::SequenceEnd, mark });
        }
        let end = self.skip();
        match self.scanner.peek()?.kind {
            TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                Ok(self.empty(end, State::IndentlessSequence))
            }
            _ => {
                self.states.push(State::IndentlessSequence);
                self.node(Place::Block)
            }
        }
    }

    fn block_mapping_key(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        match kind {
            TokenKind::Key => {
                let end = self.skip();
                match self.scanner.peek()?.kind {
                    TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                        Ok(self.empty(end, State::BlockMappingValue))
                    }
                    _ => {
                        self.states.push(State::BlockMappingValue);
                        self.node(Place::BlockOrIndentless)
                    }
                }
            }
            TokenKind::BlockEnd => self.close(EventKind::MappingEnd),
            _ => Err(self.misplaced(mark, "a `key:` is expected here, as in the mapping that begins")),
        }
    }

    fn block_mapping_value(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if !matches!(kind, TokenKind::Value) {
            return Ok(self.empty(mark, State::BlockMappingKey));
        }
        let end = self.skip();
        match self.scanner.peek()?.kind {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                Ok(self.empty(end, State::BlockMappingKey))
            }
            _ => {
                self.states.push(State::BlockMappingKey);
                self.node(Place::BlockOrIndentless)
            }
        }
    }

    /// Passes the `,` between two entries of a flow collection.
    fn flow_separator(&mut self, first: bool, what: &str) -> Result<(), Error> {
        if first {
            return Ok(());
        }
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if matches!(kind, TokenKind::FlowEntry) {
            self.scanner.take();
            return Ok(());
        }
        Err(self.misplaced(mark, what))
    }

    fn flow_sequence(&mut self, first: bool) -> Result<Event, Error> {
        if !matches!(self.scanner.peek()?.kind, TokenKind::FlowSequenceEnd) {
            self.flow_separator(first, "`,` or `]` is expected here, for the `[`")?;
            let Token { kind, start, .. } = self.scanner.peek()?;
            let mark = *start;
            match kind {
                TokenKind::Key => {
                    self.scanner.take();
                    self.state = State::FlowPairKey;
                    return Ok(Event { kind: EventKind::MappingStart(Properties::default()), mark });
                }
                TokenKind::FlowSequenceEnd => {}
                _ => {
                    self.states.push(State::FlowSequence);
                    return self.node(Place::Flow);
                }
            }
        }
        self.close(EventKind::SequenceEnd)
    }

    fn flow_pair_key(&mut self) -> Result<Event, Error> {
        match self.scanner.peek()?.kind {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // go-yaml takes the token behind an empty key here, whatever it is.
                let end = self.skip();
                Ok(self.empty(end, State::FlowPairValue))
            }
            _ => {
                self.states.push(State::FlowPairValue);
                self.node(Place::Flow)
            }
        }
    }

    fn flow_pair_value(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if matches!(kind, TokenKind::Value) {
            self.scanner.take();
            if !matches!(self.scanner.peek()?.kind, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                self.states.push(State::FlowPairEnd);
                return self.node(Place::Flow);
            }
        }
        Ok(self.empty(mark, State::FlowPairEnd))
    }

    fn flow_mapping_key(&mut self, first: bool) -> Result<Event, Error> {
        if !matches!(self.scanner.peek()?.kind, TokenKind::FlowMappingEnd) {
            self.flow_separator(first, "`,` or `}` is expected here, for the `{`")?;
            match self.scanner.peek()?.kind {
                TokenKind::Key => {
                    self.scanner.take();
                    let Token { kind, start, .. } = self.scanner.peek()?;
                    let mark = *start;
                    if matches!(kind, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                        return Ok(self.empty(mark, State::FlowMappingValue));
                    }
                    self.states.push(State::FlowMappingValue);
                    return self.node(Place::Flow);
                }
                TokenKind::FlowMappingEnd => {}
                _ => {
                    self.states.push(State::FlowMappingEmptyValue);
                    return self.node(Place::Flow);
                }
            }
        }
        self.close(EventKind::MappingEnd)
    }

    fn flow_mapping_value(&mut self) -> Result<Event, Error> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if matches!(kind, TokenKind::Value) {
            self.scanner.take();
            if !matches!(self.scanner.peek()?.kind, TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                self.states.push(State::FlowMappingKey);
                return self.node(Place::Flow);
            }
        }
        Ok(self.empty(mark, State::FlowMappingKey))
    }
}

fn short(tag: &str) -> Arc<str> {
    match tag.strip_prefix(CORE) {
        Some(name) => format!("!!{name}").into(),
        None => tag.into(),
    }
}
