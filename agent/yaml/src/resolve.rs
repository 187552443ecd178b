//! What a plain scalar means: the resolvers of go-yaml v2 and v3.

use crate::timestamp::Timestamp;

/// Whose rules give a plain scalar its type and a mapping its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Resolver {
    /// go-yaml v2 below sigs.k8s.io/yaml, the way of kubectl, Argo CD and Helm: YAML 1.1 booleans (`yes`, `on`, `y`),
    /// dates are strings, keys are resolved like values, a key twice counts last, merges in document order.
    #[default]
    V2,
    /// go-yaml v3 below kyaml, the way of kustomize: only `true` and `false` are booleans, dates become timestamps,
    /// keys keep their text, a key twice is an error, a merge never overrides an explicit key.
    V3,
}

/// A scalar with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Time(Timestamp),
    Text(String),
}

impl Scalar {
    /// The short tag of the type, for messages.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Time(_) => "!!timestamp",
            Self::Text(_) => "!!str",
        }
    }
}

pub(crate) fn is_null_text(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Resolves an untagged plain scalar.
pub(crate) fn plain(text: &str, resolver: Resolver) -> Scalar {
    resolve(text, resolver, true)
}

/// Resolves a plain scalar. Go looks for a timestamp only where there is no tag or that of timestamps.
pub(crate) fn resolve(text: &str, resolver: Resolver, timestamps: bool) -> Scalar {
    let text_as_it_is = || Scalar::Text(text.to_owned());
    if is_null_text(text) {
        return Scalar::Null;
    }
    match text {
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" if resolver == Resolver::V2 => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" if resolver == Resolver::V2 => {
            return Scalar::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        _ => {}
    }
    match text.as_bytes().first() {
        Some(b'.') if underscores_separate_digits(text) => {
            float(&text.replace('_', "")).unwrap_or_else(text_as_it_is)
        }
        Some(b'0'..=b'9' | b'+' | b'-') => {
            if timestamps && let Some(time) = Timestamp::parse(text) {
                return Scalar::Time(time);
            }
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| float(&digits)).unwrap_or_else(text_as_it_is)
        }
        _ => text_as_it_is(),
    }
}

/// The forms of Go's ParseInt with base 0, then, without a sign, of ParseUint.
fn integer(text: &str) -> Option<Scalar> {
    let (sign, body) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.as_bytes().first().copied(), rest),
        None => (None, text),
    };
    // `from_str_radix` would take a sign of its own.
    if !body.bytes().next()?.is_ascii_digit() || body.contains(['+', '-']) {
        return None;
    }
    let value = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => u128::from_str_radix(&body[2..], 16),
        [b'0', b'b' | b'B', ..] => u128::from_str_radix(&body[2..], 2),
        [b'0', b'o' | b'O', ..] => u128::from_str_radix(&body[2..], 8),
        [b'0', _, ..] => u128::from_str_radix(body, 8),
        _ => body.parse(),
    }
    .ok()?;
    let signed = i128::try_from(value).ok()?;
    let signed = if sign == Some(b'-') { -signed } else { signed };
    match (i64::try_from(signed), sign) {
        (Ok(value), _) => Some(Scalar::Int(value)),
        (Err(_), None) => u64::try_from(value).ok().map(Scalar::Uint),
        (Err(_), Some(_)) => None,
    }
}

/// ParseFloat is given the underscores of what begins with a dot, and takes them between two digits only.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    (0..bytes.len()).all(|at| bytes[at] != b'_' || at > 0 && digit(at - 1) && digit(at + 1))
}

/// A float that a 64-bit one can hold: where Go's ParseFloat finds it out of range, the scalar stays a string.
fn float(text: &str) -> Option<Scalar> {
    if !is_float(text) {
        return None;
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Scalar::Float)
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
