//! Floats as Go's strconv writes them with the verb `g` and the least digits that read back equal.

use serde_json::Number;

/// A float of 64 bits.
pub(crate) fn shortest_64(number: f64) -> String {
    special(number).unwrap_or_else(|| general(&Decimal::of(number)))
}

/// A float of 32 bits.
pub(crate) fn shortest_32(number: f32) -> String {
    special(f64::from(number)).unwrap_or_else(|| general(&Decimal::of(number)))
}

/// A float as the number that a reader of Go's JSON finds: below 1e21 the digits stand without an exponent, filled up
/// with zeros, so that a whole number becomes an integer. None for what JSON cannot hold.
pub(crate) fn json_number(number: f64) -> Option<Number> {
    if number.fract() == 0.0 && number.abs() < 1e20 {
        let text = general_below(&Decimal::of(number), 21);
        if let Ok(whole) = text.parse::<i64>() {
            return Some(Number::from(whole));
        }
        if let Ok(whole) = text.parse::<u64>() {
            return Some(Number::from(whole));
        }
    }
    Number::from_f64(number)
}

fn special(number: f64) -> Option<String> {
    if number.is_nan() {
        return Some(".nan".to_owned());
    }
    if number.is_infinite() {
        return Some(if number > 0.0 { ".inf" } else { "-.inf" }.to_owned());
    }
    None
}

/// The least digits that read back equal: `0.d1d2d3... * 10^point`.
struct Decimal {
    sign: &'static str,
    digits: String,
    point: i32,
}

impl Decimal {
    /// By serde_json, which like Go takes the even one of two texts that are equally near; the formatting of the
    /// standard library does not.
    fn of(number: impl serde::Serialize) -> Self {
        let text = serde_json::to_string(&number).unwrap_or_default();
        let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let leading = all.len() - all.trim_start_matches('0').len();
        let digits = all.trim_matches('0').to_owned();
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
        let point = length(whole.len()) - length(leading) + exponent.parse::<i32>().unwrap_or(0);
        if digits.is_empty() {
            return Self { sign, digits: "0".to_owned(), point: 1 };
        }
        Self { sign, digits, point }
    }
}

/// Go's verb `g`: an exponent below -4 and from 6 on.
fn general(decimal: &Decimal) -> String {
    general_below(decimal, 6)
}

fn general_below(decimal: &Decimal, most: i32) -> String {
    let Decimal { sign, digits, point } = decimal;
    let exponent = point - 1;
    let length = |length: i32| usize::try_from(length).unwrap_or(0);
    if !(-4..most).contains(&exponent) {
        let direction = if exponent < 0 { '-' } else { '+' };
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{dot}{rest}e{direction}{:02}", exponent.abs());
    }
    if *point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(length(-point)));
    }
    let whole = length(*point);
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}
