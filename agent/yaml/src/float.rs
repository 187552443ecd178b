//! Floats as Go's strconv writes them with the verb `g` and the least digits that read back equal.

/// A float of 64 bits.
pub(crate) fn shortest_64(number: f64) -> String {
    special(number).unwrap_or_else(|| from_scientific(&format!("{number:e}")))
}

/// A float of 32 bits.
pub(crate) fn shortest_32(number: f32) -> String {
    special(f64::from(number)).unwrap_or_else(|| from_scientific(&format!("{number:e}")))
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

/// `-1.25e3` to `-1250`: an exponent stays below -4 and from 6 on, with two digits at least.
fn from_scientific(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    if !(-4..6).contains(&exponent) {
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{direction}{:02}", exponent.abs());
    }
    let digits = mantissa.replace('.', "");
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    };
    if digits.len() <= whole + 1 {
        return format!("{sign}{digits}{}", "0".repeat(whole + 1 - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..=whole], &digits[whole + 1..])
}
