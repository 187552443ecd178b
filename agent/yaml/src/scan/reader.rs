//! The text under the scanner's hand, and where it is.

/// A place: line and column from 0, and the number of characters before it. Columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub(crate) index: usize,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Reads past the end are bytes of zero, which no text has: the stream refuses control characters.
pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
    pub(super) mark: Mark,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, mark: Mark::default() }
    }

    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn at_start(&self) -> bool {
        self.at == 0
    }

    pub(super) fn is_end(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0
    }

    pub(super) fn is_bom(&self) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with('\u{feff}'))
    }

    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    /// CR, LF, NEL, and the separators of lines and paragraphs of Unicode.
    pub(super) fn is_break(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            b'\r' | b'\n' => true,
            0xc2 => self.byte(ahead + 1) == 0x85,
            0xe2 => self.byte(ahead + 1) == 0x80 && matches!(self.byte(ahead + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.is_end(ahead) || self.is_break(ahead)
    }

    pub(super) fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// Letters, digits, `_` and `-`: what names of anchors and handles are made of.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.byte(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    /// `---` or `...` at the begin of a line, with white space behind.
    pub(super) fn at_document_mark(&self) -> bool {
        self.mark.column == 0
            && matches!((self.byte(0), self.byte(1), self.byte(2)), (b'-', b'-', b'-') | (b'.', b'.', b'.'))
            && self.is_blank_or_end(3)
    }

    fn width(&self) -> usize {
        match self.byte(0) {
            0..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
        }
    }

    /// Passes one character, not a line end.
    pub(super) fn skip(&mut self) {
        self.at = (self.at + self.width()).min(self.text.len());
        self.mark.index += 1;
        self.mark.column += 1;
    }

    pub(super) fn skip_many(&mut self, characters: usize) {
        for _ in 0..characters {
            self.skip();
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    pub(super) fn skip_comment(&mut self) {
        while !self.is_break_or_end(0) {
            self.skip();
        }
    }

    /// Copies one character, not a line end.
    pub(super) fn read(&mut self, into: &mut String) {
        let from = self.at;
        self.skip();
        into.push_str(self.text.get(from..self.at).unwrap_or_default());
    }

    pub(super) fn skip_line(&mut self) {
        self.read_line(&mut String::new());
    }

    /// Copies a line end as `\n`; the separators of Unicode stay what they are.
    pub(super) fn read_line(&mut self, into: &mut String) {
        let (bytes, characters, text) = match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'\r', b'\n', _) => (2, 2, "\n"),
            (b'\r' | b'\n', _, _) => (1, 1, "\n"),
            (0xc2, 0x85, _) => (2, 1, "\n"),
            (0xe2, 0x80, 0xa8) => (3, 1, "\u{2028}"),
            (0xe2, 0x80, 0xa9) => (3, 1, "\u{2029}"),
            _ => return,
        };
        into.push_str(text);
        self.at += bytes;
        self.mark.index += characters;
        self.mark.line += 1;
        self.mark.column = 0;
    }

    /// What ends the stream also ends its last line.
    pub(super) fn end_line(&mut self) {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }
}
