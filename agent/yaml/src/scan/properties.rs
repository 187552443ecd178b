//! Anchors, aliases, tags and directives.

use super::reader::Mark;
use super::{Scanner, TokenKind};
use crate::error::Error;

impl Scanner<'_> {
    pub(super) fn scan_anchor(&mut self, alias: bool) -> Result<(), Error> {
        let start = self.reader.mark;
        self.reader.skip();
        let name = self.word();
        let reader = &self.reader;
        let ended = reader.is_blank_or_end(0)
            || matches!(reader.byte(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ended {
            let message = if alias {
                "`*` begins an alias, whose name has only letters, digits, `_` and `-`; put the text in quotes"
            } else {
                "`&` begins an anchor, whose name has only letters, digits, `_` and `-`; put the text in quotes"
            };
            return Err(self.error(start, message));
        }
        self.push(if alias { TokenKind::Alias(name) } else { TokenKind::Anchor(name) }, start);
        Ok(())
    }

    fn word(&mut self) -> String {
        let mut name = String::new();
        while self.reader.is_word() {
            self.reader.read(&mut name);
        }
        name
    }

    pub(super) fn scan_tag(&mut self) -> Result<(), Error> {
        let start = self.reader.mark;
        let (mut handle, suffix);
        if self.reader.byte(1) == b'<' {
            self.reader.skip_many(2);
            handle = String::new();
            suffix = self.scan_uri("", start)?;
            if self.reader.byte(0) != b'>' {
                return Err(self.bad_tag(start));
            }
            self.reader.skip();
        } else {
            handle = self.scan_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                suffix = self.scan_uri("", start)?;
            } else {
                let rest = self.scan_uri(&handle, start)?;
                // `!` alone is a tag of its own.
                (handle, suffix) =
                    if rest.is_empty() { (String::new(), "!".to_owned()) } else { ("!".to_owned(), rest) };
            }
        }
        if !self.reader.is_blank_or_end(0) {
            return Err(self.bad_tag(start));
        }
        self.push(TokenKind::Tag { handle, suffix }, start);
        Ok(())
    }

    fn bad_tag(&self, start: Mark) -> Error {
        self.error(start, "`!` begins a tag, and this one is not well-formed; put the text in quotes")
    }

    /// `!`, `!!` or `!name!`; outside of a directive also the begin of `!name`.
    fn scan_handle(&mut self, directive: bool, start: Mark) -> Result<String, Error> {
        if self.reader.byte(0) != b'!' {
            return Err(self.bad_tag(start));
        }
        self.reader.skip();
        let mut handle = format!("!{}", self.word());
        if self.reader.byte(0) == b'!' {
            self.reader.read(&mut handle);
        } else if directive && handle != "!" {
            return Err(self.bad_tag(start));
        }
        Ok(handle)
    }

    /// The rest of a tag behind `head`, whose first character is the `!` of the handle.
    fn scan_uri(&mut self, head: &str, start: Mark) -> Result<String, Error> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut found = !head.is_empty();
        while self.reader.is_word()
            || matches!(
                self.reader.byte(0),
                b';' | b'/'
                    | b'?'
                    | b':'
                    | b'@'
                    | b'&'
                    | b'='
                    | b'+'
                    | b'$'
                    | b','
                    | b'.'
                    | b'!'
                    | b'~'
                    | b'*'
                    | b'\''
                    | b'('
                    | b')'
                    | b'['
                    | b']'
                    | b'%'
            )
        {
            if self.reader.byte(0) == b'%' {
                self.scan_uri_escape(&mut uri, start)?;
            } else {
                uri.push(self.reader.byte(0));
                self.reader.skip();
            }
            found = true;
        }
        if !found {
            return Err(self.bad_tag(start));
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// The escapes of one character of UTF-8.
    fn scan_uri_escape(&mut self, uri: &mut Vec<u8>, start: Mark) -> Result<(), Error> {
        let mut left = 0;
        loop {
            let digit = |ahead| char::from(self.reader.byte(ahead)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.reader.byte(0), digit(1), digit(2)) else {
                return Err(self.bad_tag(start));
            };
            let octet = u8::try_from(high << 4 | low).unwrap_or(0);
            if left == 0 {
                left = match octet {
                    0..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => return Err(self.bad_tag(start)),
                };
            } else if octet & 0xc0 != 0x80 {
                return Err(self.bad_tag(start));
            }
            uri.push(octet);
            self.reader.skip_many(3);
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
    }

    pub(super) fn scan_directive(&mut self) -> Result<(), Error> {
        let start = self.reader.mark;
        self.reader.skip();
        let name = self.word();
        let kind = match name.as_str() {
            "YAML" if self.reader.is_blank_or_end(0) => {
                self.reader.skip_blanks();
                let major = self.scan_version_number(start)?;
                if self.reader.byte(0) != b'.' {
                    return Err(self.bad_directive(start));
                }
                self.reader.skip();
                TokenKind::Version(major, self.scan_version_number(start)?)
            }
            "TAG" if self.reader.is_blank_or_end(0) => self.scan_tag_directive(start)?,
            _ => return Err(self.bad_directive(start)),
        };
        self.push(kind, start);
        self.reader.skip_blanks();
        if self.reader.byte(0) == b'#' {
            self.reader.skip_comment();
        }
        if !self.reader.is_break_or_end(0) {
            return Err(self.bad_directive(start));
        }
        self.reader.skip_line();
        Ok(())
    }

    fn bad_directive(&self, start: Mark) -> Error {
        self.error(start, "a line that begins with `%` is a directive of YAML, and this one is unknown")
    }

    fn scan_version_number(&mut self, start: Mark) -> Result<u32, Error> {
        let (mut value, mut length) = (0, 0);
        while let Some(digit) = char::from(self.reader.byte(0)).to_digit(10) {
            value = value * 10 + digit;
            length += 1;
            if length > 2 {
                return Err(self.bad_directive(start));
            }
            self.reader.skip();
        }
        if length == 0 { Err(self.bad_directive(start)) } else { Ok(value) }
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Result<TokenKind, Error> {
        self.reader.skip_blanks();
        let handle = self.scan_handle(true, start)?;
        if !self.reader.is_blank(0) {
            return Err(self.bad_directive(start));
        }
        self.reader.skip_blanks();
        let prefix = self.scan_uri("", start)?;
        if !self.reader.is_blank_or_end(0) {
            return Err(self.bad_directive(start));
        }
        Ok(TokenKind::TagDirective { handle, prefix })
    }
}
