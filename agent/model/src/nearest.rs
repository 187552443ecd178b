//! The known name that somebody probably meant.

/// The entry of `known` nearest to `name`, if one is near enough to be a likely typing error: equal but for
/// case, or at most a third of the letters (at least one) away by edit distance.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if let Some(same) = known.iter().find(|candidate| candidate.eq_ignore_ascii_case(name)) {
        return Some(same);
    }
    let limit = (name.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `(did you mean X?)` with a leading space, or nothing.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or_else(String::new, |candidate| format!(" (did you mean `{candidate}`?)"))
}

/// Shortens serde's `unknown field` text: the nearest known name instead of a list of thirty.
///
/// A text of another form is returned as it is. serde writes "unknown field `x`, expected one of `a`, `b`" or
/// "unknown field `x`, expected `a`"; what follows the list (a place) is kept.
pub fn shorten_unknown_field(message: &str) -> String {
    const START: &str = "unknown field `";
    let Some(at) = message.find(START) else { return message.to_owned() };
    let rest = &message[at + START.len()..];
    let Some((field, rest)) = rest.split_once('`') else { return message.to_owned() };
    let Some(list) = rest.strip_prefix(", expected ") else { return message.to_owned() };
    let list = list.strip_prefix("one of ").unwrap_or(list);
    let end = list.rfind('`').map_or(0, |end| end + 1);
    let known: Vec<&str> = list[..end].split('`').skip(1).step_by(2).collect();
    let hint = match nearest(field, &known) {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => format!("; known here: {}", known.join(", ")),
    };
    format!("{}unknown field `{field}`{hint}{}", &message[..at], &list[end..])
}

/// Levenshtein's distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to) in right.iter().enumerate() {
            let replace = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replace.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name() {
        let known = ["targetRevision", "repoURL", "path"];
        assert_eq!(nearest("targetRevison", &known), Some("targetRevision"));
        assert_eq!(nearest("repoUrl", &known), Some("repoURL"));
        assert_eq!(nearest("replicas", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn the_list_of_serde_becomes_one_name() {
        let text = "spec: unknown field `pth`, expected one of `path`, `repoURL` at line 3 column 5";
        assert_eq!(
            shorten_unknown_field(text),
            "spec: unknown field `pth` (did you mean `path`?) at line 3 column 5"
        );
        let text = "unknown field `x`, expected one of `alpha`, `beta`";
        assert_eq!(shorten_unknown_field(text), "unknown field `x`; known here: alpha, beta");
        assert_eq!(
            shorten_unknown_field("unknown field `pats`, expected `path`"),
            "unknown field `pats` (did you mean `path`?)"
        );
        assert_eq!(shorten_unknown_field("missing field `a`"), "missing field `a`");
    }
}
