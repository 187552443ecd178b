//! Timestamps as go-yaml recognises them: four layouts of Go's time.Parse.

use std::fmt;

/// A point in time as it was written, with its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    /// Minutes east of UTC.
    offset: i32,
}

impl Timestamp {
    /// `2006-1-2`, `2006-1-2T15:4:5.9Z07:00` (or `t`) and `2006-1-2 15:4:5.9`, each number of one or two digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.as_bytes();
        let year = rest.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        let year = year.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        rest = &rest[4..];
        expect(&mut rest, b'-')?;
        let month = number(&mut rest).filter(|month| (1..=12).contains(month))?;
        expect(&mut rest, b'-')?;
        let day = number(&mut rest).filter(|day| (1..=days(year, month)).contains(day))?;
        let mut time = Self { year, month, day, hour: 0, minute: 0, second: 0, nanos: 0, offset: 0 };
        let zoned = match rest.first() {
            None => return Some(time),
            Some(b'T' | b't') => {
                rest = &rest[1..];
                true
            }
            Some(b' ') => {
                // A space in a layout of Go stands for any number of them.
                while rest.first() == Some(&b' ') {
                    rest = &rest[1..];
                }
                false
            }
            Some(_) => return None,
        };
        time.hour = number(&mut rest).filter(|hour| *hour < 24)?;
        expect(&mut rest, b':')?;
        time.minute = number(&mut rest).filter(|minute| *minute < 60)?;
        expect(&mut rest, b':')?;
        time.second = number(&mut rest).filter(|second| *second < 60)?;
        time.nanos = fraction(&mut rest);
        if zoned {
            time.offset = zone(&mut rest)?;
        }
        rest.is_empty().then_some(time)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 with as many digits of a fraction as there are, as Go writes a time in JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, nanos, offset } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if *nanos != 0 {
            write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0'))?;
        }
        if *offset == 0 {
            return f.write_str("Z");
        }
        let (sign, minutes) = if *offset < 0 { ('-', -offset) } else { ('+', *offset) };
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

fn expect(rest: &mut &[u8], byte: u8) -> Option<()> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    (*first == byte).then_some(())
}

/// One or two digits.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let length = rest.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, behind) = rest.split_at(length);
    *rest = behind;
    (length > 0).then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}

/// A fraction of a second in nanoseconds; digits below them are dropped.
fn fraction(rest: &mut &[u8]) -> u32 {
    let [b'.' | b',', digits @ ..] = *rest else { return 0 };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return 0;
    }
    let mut nanos = 0;
    for digit in digits[..length].iter().chain(b"00000000").take(9) {
        nanos = nanos * 10 + u32::from(digit - b'0');
    }
    *rest = &digits[length..];
    nanos
}

/// `Z` or `+hh:mm`, in minutes.
fn zone(rest: &mut &[u8]) -> Option<i32> {
    let (first, behind) = rest.split_first()?;
    if *first == b'Z' {
        *rest = behind;
        return Some(0);
    }
    let sign = match first {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let [h1 @ b'0'..=b'9', h2 @ b'0'..=b'9', b':', m1 @ b'0'..=b'9', m2 @ b'0'..=b'9', behind @ ..] = behind
    else {
        return None;
    };
    let two = |a: u8, b: u8| i32::from(a - b'0') * 10 + i32::from(b - b'0');
    let (hours, minutes) = (two(*h1, *h2), two(*m1, *m2));
    *rest = behind;
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
