//! How a string is written: what its characters allow and what a reader would take it for.

use crate::resolve::{self, Resolver, Scalar};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarStyle {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// What the characters of a string allow.
pub(super) struct Shape {
    multiline: bool,
    plain: bool,
    single_quoted: bool,
    block: bool,
}

impl Shape {
    pub(super) fn of(text: &str) -> Self {
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return Self { multiline: false, plain: true, single_quoted: true, block: false };
        };
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let (mut previous, mut after_space) = (None, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let before_space = matches!(chars.peek(), None | Some(' ' | '\t'));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if previous.is_none() =>
                {
                    true
                }
                '?' | '-' if previous.is_none() => before_space,
                ':' => before_space,
                '#' => after_space,
                _ => false,
            };
            special |= !is_printable(c);
            if c == ' ' {
                break_space |= previous.is_some_and(is_break);
            } else if is_break(c) {
                breaks = true;
                space_break |= previous == Some(' ');
            }
            after_space = matches!(c, ' ' | '\t') || is_break(c);
            previous = Some(c);
        }
        let edges = first == ' ' || last == ' ' || is_break(first) || is_break(last);
        Self {
            multiline: breaks,
            plain: !(edges || breaks || break_space || space_break || special || indicators),
            single_quoted: !(break_space || space_break || special),
            block: !(last == ' ' || space_break || special),
        }
    }

    pub(super) fn style(&self, text: &str, simple_key: bool) -> ScalarStyle {
        if simple_key && self.multiline {
            return ScalarStyle::DoubleQuoted;
        }
        if text.contains('\n') {
            return if self.block && !simple_key { ScalarStyle::Literal } else { ScalarStyle::DoubleQuoted };
        }
        if is_ambiguous(text) {
            return ScalarStyle::DoubleQuoted;
        }
        match (self.plain, self.single_quoted) {
            (true, _) => ScalarStyle::Plain,
            (false, true) => ScalarStyle::SingleQuoted,
            (false, false) => ScalarStyle::DoubleQuoted,
        }
    }
}

/// Whether a reader of YAML 1.1 would take the bare text for something else than a string.
fn is_ambiguous(text: &str) -> bool {
    !matches!(resolve::plain(text, Resolver::V2), Scalar::Text(_)) || is_base_60(text)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn is_base_60(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (body, fraction) = body.split_once('.').unwrap_or((body, ""));
    let underscored = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = body.split(':');
    let whole = parts.next().unwrap_or_default();
    let mut count = 0;
    let sixties = parts.all(|part| {
        count += 1;
        match part.as_bytes() {
            [a] => a.is_ascii_digit(),
            [a, b] => (b'0'..=b'5').contains(a) && b.is_ascii_digit(),
            _ => false,
        }
    });
    sixties
        && count > 0
        && whole.starts_with(|c: char| c.is_ascii_digit())
        && underscored(whole)
        && underscored(fraction)
}

pub(super) fn has_breaks(text: &str) -> bool {
    text.chars().any(is_break)
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What go-yaml writes as it is: no tab, and nothing beyond the basic plane.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

pub(super) fn escaped(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(c) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
