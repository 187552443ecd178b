//! The order of keys: letters behind everything else, numbers by their value.

/// Keys in go-yaml's natural order: `a2` before `a10`.
pub(super) fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut names: Vec<(Vec<char>, &String)> = names.map(|name| (name.chars().collect(), name)).collect();
    merge_sort(&mut names);
    names.into_iter().map(|(_, name)| name).collect()
}

/// The comparison is not a total order for every set of names, which the sort of the standard library may answer with a
/// panic.
fn merge_sort(names: &mut Vec<(Vec<char>, &String)>) {
    if names.len() < 2 {
        return;
    }
    let mut right = names.split_off(names.len() / 2);
    merge_sort(names);
    merge_sort(&mut right);
    let mut all = Vec::with_capacity(names.len() + right.len());
    let (mut left, mut right) = (names.drain(..).peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if less(&b.0, &a.0) { right.next() } else { left.next() };
        all.extend(next);
    }
    all.extend(left);
    all.extend(right);
    *names = all;
}

fn less(a: &[char], b: &[char]) -> bool {
    let Some(at) = a.iter().zip(b).position(|(x, y)| x != y) else { return a.len() < b.len() };
    let (x, y) = (a[at], b[at]);
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x < y,
        (false, false) => {}
        (_, second) => return second,
    }
    // Behind digits of a number a zero is a further place of it.
    let mut start = 0_i64;
    if x == '0' || y == '0' {
        let digits = a[..at].iter().rev().take_while(|c| c.is_ascii_digit());
        start = i64::from(digits.into_iter().any(|c| *c != '0'));
    }
    let (left, left_end) = number(start, a, at);
    let (right, right_end) = number(start, b, at);
    if left != right {
        return left < right;
    }
    if left_end != right_end {
        return left_end < right_end;
    }
    x < y
}

/// A number that begins at `at`, and where it ends; overflow wraps as in Go.
fn number(start: i64, text: &[char], at: usize) -> (i64, usize) {
    let mut value = start;
    let mut end = at;
    while let Some(digit) = text.get(end).and_then(|c| c.to_digit(10)) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        end += 1;
    }
    (value, end)
}
