//! Glob patterns as Argo CD matches them in projects and ignore rules: `*`, `**`, `?`, `[a-z]`, `[!a]`,
//! `{one,two}` and `\` before a character that stands for itself.

/// How many alternatives `{a,b}` may make of one pattern; a pattern with more matches nothing.
const MAX_ALTERNATIVES: usize = 1_000;

/// Does `text` match `pattern` as a whole? Without `separator`, `*` and `?` match anything; with one they stop
/// at it and only `**` goes over it.
///
/// A pattern of wrong form (an open bracket) matches nothing. Time is at most the product of both lengths for
/// each alternative: a pattern from a repository cannot make the agent slow.
pub fn matches(pattern: &str, text: &str, separator: Option<char>) -> bool {
    let Some(alternatives) = expand(pattern) else { return false };
    let text: Vec<char> = text.chars().collect();
    alternatives.iter().any(|pattern| tokens(pattern).is_some_and(|tokens| run(&tokens, &text, separator)))
}

enum Token {
    Literal(char),
    One,
    Many,
    Any,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// Replaces the first `{a,b}` by each of its alternatives until none is left.
fn expand(pattern: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() > MAX_ALTERNATIVES {
            return None;
        }
        match first_braces(&pattern)? {
            None => done.push(pattern),
            Some((before, choices, after)) => {
                open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    Some(done)
}

type Braces<'a> = Option<(&'a str, Vec<&'a str>, &'a str)>;

/// The parts around the first outermost `{...}`; the outer `None` says that the form is wrong.
fn first_braces(pattern: &str) -> Option<Braces<'_>> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut cuts = Vec::new();
    let mut escaped = false;
    for (at, character) in pattern.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match character {
            '\\' => escaped = true,
            '{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            ',' if depth == 1 => cuts.push(at),
            '}' if depth == 1 => {
                let mut choices = Vec::new();
                let mut from = start + 1;
                for cut in cuts {
                    choices.push(&pattern[from..cut]);
                    from = cut + 1;
                }
                choices.push(&pattern[from..at]);
                return Some(Some((&pattern[..start], choices, &pattern[at + 1..])));
            }
            '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    if depth == 0 { Some(None) } else { None }
}

fn tokens(pattern: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '\\' => Token::Literal(characters.next()?),
            '?' => Token::One,
            '*' if characters.next_if_eq(&'*').is_some() => Token::Any,
            '*' => Token::Many,
            '[' => class(&mut characters)?,
            other => Token::Literal(other),
        });
    }
    Some(tokens)
}

fn class(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Token> {
    let negated = characters.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let from = match characters.next()? {
            ']' if !ranges.is_empty() => return Some(Token::Class { negated, ranges }),
            ']' => return None,
            '\\' => characters.next()?,
            other => other,
        };
        let to = if characters.next_if_eq(&'-').is_some() { characters.next()? } else { from };
        if to == ']' || to < from {
            return None;
        }
        ranges.push((from, to));
    }
}

/// Runs all positions of the pattern side by side over the text.
fn run(tokens: &[Token], text: &[char], separator: Option<char>) -> bool {
    let mut at = vec![false; tokens.len() + 1];
    at[0] = true;
    skip_stars(tokens, &mut at);
    for &character in text {
        let mut next = vec![false; tokens.len() + 1];
        let is_separator = separator == Some(character);
        for (index, token) in tokens.iter().enumerate().filter(|(index, _)| at[*index]) {
            match token {
                Token::Literal(wanted) if *wanted == character => next[index + 1] = true,
                Token::One if !is_separator => next[index + 1] = true,
                Token::Many if !is_separator => next[index] = true,
                Token::Any => next[index] = true,
                Token::Class { negated, ranges }
                    if ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *negated =>
                {
                    next[index + 1] = true;
                }
                _ => {}
            }
        }
        skip_stars(tokens, &mut next);
        at = next;
    }
    at[tokens.len()]
}

/// A star may also match nothing.
fn skip_stars(tokens: &[Token], at: &mut [bool]) {
    for (index, token) in tokens.iter().enumerate() {
        if at[index] && matches!(token, Token::Many | Token::Any) {
            at[index + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_argo_cd_documents() {
        for (pattern, text, separator, expected) in [
            ("*", "anything/at all", None, true),
            ("", "", None, true),
            ("", "a", None, false),
            ("team-*", "team-a", None, true),
            ("team-*", "other", None, false),
            ("*-dev", "a-b-dev", None, true),
            ("https://git.example/*", "https://git.example/a", Some('/'), true),
            ("https://git.example/*", "https://git.example/a/b", Some('/'), false),
            ("https://git.example/**", "https://git.example/a/b", Some('/'), true),
            ("https://git.example/*", "https://git.example/a/b", None, true),
            ("a?c", "abc", None, true),
            ("a?c", "a/c", Some('/'), false),
            ("[a-c]x", "bx", None, true),
            ("[!a-c]x", "bx", None, false),
            ("[!a-c]x", "dx", None, true),
            ("{dev,test}-*", "test-1", None, true),
            ("{dev,test}-*", "prod-1", None, false),
            ("{a,b{c,d}}", "bd", None, true),
            ("\\*", "*", None, true),
            ("\\*", "a", None, false),
            ("*.{json,yaml}", "x.yaml", None, true),
            ("[", "[", None, false),
            ("{a", "{a", None, false),
            ("[]", "]", None, false),
        ] {
            assert_eq!(matches(pattern, text, separator), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let pattern = "*a".repeat(200);
        assert!(!matches(&pattern, &"a".repeat(199), None));
        assert!(!matches(&"{a,b}".repeat(30), "a", None), "too many alternatives match nothing");
    }
}
