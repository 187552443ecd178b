//! Go's text/template. So far its first layer: a text cut into literal text and actions, with positions.

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text outside of actions.
    Text(&'t str),
    /// What stands between `{{` and `}}`, without trim markers.
    Action {
        /// The action's text.
        text: &'t str,
        /// Line on which it begins, counted from 1.
        line: u32,
    },
    /// `{{/* ... */}}`.
    Comment,
}

/// An action that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: an action is not closed with }}}}")]
pub struct Unclosed {
    /// Line on which it begins.
    pub line: u32,
}

/// Cuts a template into pieces. Strings inside of actions may hold `}}`.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Unclosed> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut line = 1_u32;
    while let Some(start) = rest.find("{{") {
        let (before, action) = rest.split_at(start);
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        line += lines(before);
        let end = end_of_action(&action[2..]).ok_or(Unclosed { line })? + 2;
        pieces.push(piece(&action[2..end], line));
        line += lines(&action[..end + 2]);
        rest = &action[end + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Does the text hold an action? Then it is likely a Helm template and not a manifest.
pub fn contains_action(text: &str) -> bool {
    pieces(text).is_ok_and(|pieces| pieces.iter().any(|piece| matches!(piece, Piece::Action { .. })))
}

fn piece(inner: &str, line: u32) -> Piece<'_> {
    let inner = inner.strip_prefix("- ").unwrap_or(inner);
    let inner = inner.strip_suffix(" -").unwrap_or(inner).trim();
    if inner.starts_with("/*") && inner.ends_with("*/") {
        Piece::Comment
    } else {
        Piece::Action { text: inner, line }
    }
}

/// Position of the closing `}}`, strings and comments apart.
fn end_of_action(text: &str) -> Option<usize> {
    let trimmed = text.trim_start_matches(['-', ' ']);
    if trimmed.starts_with("/*") {
        let comment = text.find("*/")? + 2;
        return text[comment..].find("}}").map(|at| comment + at);
    }
    let bytes = text.as_bytes();
    let mut quote: Option<u8> = None;
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(b'`'), b'`') => quote = None,
            (Some(open), byte) if open != b'`' && byte == b'\\' => at += 1,
            (Some(open), byte) if open == byte => quote = None,
            (None, byte @ (b'"' | b'`' | b'\'')) => quote = Some(byte),
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_in_an_action_may_hold_its_end() {
        let found = pieces("a\n{{- printf \"}}\" -}}\nb{{/* no */}}").unwrap();
        assert_eq!(
            found,
            [
                Piece::Text("a\n"),
                Piece::Action { text: "printf \"}}\"", line: 2 },
                Piece::Text("\nb"),
                Piece::Comment
            ]
        );
    }

    #[test]
    fn an_unclosed_action_is_named_by_its_line() {
        assert_eq!(pieces("x\n\n{{ .Values.a"), Err(Unclosed { line: 3 }));
    }

    #[test]
    fn braces_of_json_are_no_actions() {
        assert!(!contains_action("{\"a\": {\"b\": 1}}"));
        assert!(contains_action("replicas: {{ .Values.replicas }}"));
    }
}
