//! Durations as Argo CD reads them: Go's text (`1h30m`, `500ms`) or whole seconds.

use std::time::Duration;

const NANOS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads `text`: whole seconds (`90`) or Go's `time.ParseDuration` form. A negative one is refused, since
/// nothing here can wait backwards.
///
/// Errors: a sentence that names the text and shows the form.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 90s, 3m, 1h30m or 500ms");
    let too_long = || format!("`{text}` is too long; the longest duration is 292 years");
    let trimmed = text.strip_prefix('+').unwrap_or(text);
    if trimmed.starts_with('-') {
        return Err(format!("`{text}` is negative; a duration is zero or more"));
    }
    if trimmed.is_empty() {
        return Err(wrong());
    }
    if trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: u64 = trimmed.parse().map_err(|_| too_long())?;
        // The bound of Go's int64 nanoseconds, so that both forms have one limit.
        return match seconds.checked_mul(1_000_000_000) {
            Some(nanos) if i64::try_from(nanos).is_ok() => Ok(Duration::from_secs(seconds)),
            _ => Err(too_long()),
        };
    }
    let mut rest = trimmed;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (part, after) = number_and_unit(rest).ok_or_else(wrong)?;
        rest = after;
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(too_long)?;
    }
    if i64::try_from(total).is_err() { Err(too_long()) } else { Ok(Duration::from_nanos(total)) }
}

/// One `1.5h`: its nanoseconds (`None` on overflow) and the text behind it; `None` where the form is wrong.
fn number_and_unit(text: &str) -> Option<(Option<u64>, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let nanos = NANOS.iter().find(|(name, _)| *name == unit)?.1;
    let whole = if whole.is_empty() { Some(0) } else { whole.parse::<u64>().ok() };
    // Digits below a nanosecond of an hour (19 digits) cannot matter.
    let mut scaled: u128 = 0;
    let mut scale: u128 = 1;
    for digit in fraction.bytes().take(18) {
        scaled = scaled * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    let part = u64::try_from(scaled * u128::from(nanos) / scale).ok();
    let value = whole.and_then(|whole| whole.checked_mul(nanos)).and_then(|whole| whole.checked_add(part?));
    Some((value, rest))
}

/// The shortest text that [`parse`] reads back to the same duration: `3m`, `1h30m`, `1.5s` as `1s500ms`.
pub fn format(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, nanos) in [
        ("h", 3_600_000_000_000_u128),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ] {
        if rest >= nanos {
            text.push_str(&format!("{}{unit}", rest / nanos));
            rest %= nanos;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_and_argo_cd_read_them() {
        for (text, millis) in [
            ("0", 0),
            ("90", 90_000),
            ("3m", 180_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("2.s", 2_000),
            ("+5s", 5_000),
            ("1m0.25s", 60_250),
            ("0s", 0),
        ] {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        assert_eq!(parse("3\u{b5}s").unwrap(), Duration::from_micros(3));
        assert_eq!(parse("1us2ns").unwrap(), Duration::from_nanos(1_002));
    }

    #[test]
    fn what_is_no_duration_is_refused_with_its_text() {
        for text in ["", " ", "m", "3 m", "3d", "1h30", ".s", "3m-1s", "x", "1e3s", "\u{663}s"] {
            assert!(parse(text).unwrap_err().contains(&format!("`{text}`")), "{text}");
        }
        assert!(parse("-3m").unwrap_err().contains("negative"));
        for text in ["9999999999999999999999s", "99999999999999999999", "9223372037s", "2562048h"] {
            assert!(parse(text).unwrap_err().contains("too long"), "{text}");
        }
    }

    #[test]
    fn format_is_read_back() {
        for text in ["0s", "3m", "1h30m", "1s500ms", "24h", "7us"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
