//! What a plain scalar means: go-yaml v2's resolver (YAML 1.1).

/// A scalar with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
}

pub(crate) fn is_null_text(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Resolves an untagged plain scalar.
pub(crate) fn plain(text: &str) -> Scalar {
    if is_null_text(text) {
        return Scalar::Null;
    }
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return Scalar::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        _ => {}
    }
    number(text).unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Integers in the forms of Go's ParseInt with base 0 (underscores dropped), then floats.
fn number(text: &str) -> Option<Scalar> {
    let first = text.bytes().next()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let digits = text.replace('_', "");
    if let Some(found) = integer(&digits) {
        return Some(found);
    }
    if is_float(&digits) {
        return digits.parse::<f64>().ok().map(Scalar::Float);
    }
    None
}

fn integer(text: &str) -> Option<Scalar> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !body.bytes().next()?.is_ascii_digit() {
        return None;
    }
    let lower = body.to_ascii_lowercase();
    let parsed = if let Some(hex) = lower.strip_prefix("0x") {
        u128::from_str_radix(hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        u128::from_str_radix(binary, 2)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        u128::from_str_radix(octal, 8)
    } else if lower.len() > 1 && lower.starts_with('0') {
        u128::from_str_radix(&lower, 8)
    } else {
        lower.parse()
    };
    let value = parsed.ok().filter(|_| !body.contains('+'))?;
    if negative {
        return i64::try_from(-(i128::try_from(value).ok()?)).ok().map(Scalar::Int);
    }
    if let Ok(value) = i64::try_from(value) {
        return Some(Scalar::Int(value));
    }
    u64::try_from(value).ok().map(Scalar::Uint)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa_ok
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
