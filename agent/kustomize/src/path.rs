//! Paths into values.

use regex::Regex;

use crate::error::Step;
use crate::node::{Kind, Node, WrongKind};
use crate::{encode, read};

/// Splits at a delimiter that no backslash stands before.
pub(crate) fn split(path: &str, delimiter: char) -> Vec<String> {
    let mut parts: Vec<&str> = path.split(delimiter).collect();
    if parts.len() > 1 && parts[0].is_empty() {
        parts.remove(0);
    }
    let mut all: Vec<String> = Vec::with_capacity(parts.len());
    for part in parts {
        match all.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => all.push(part.to_owned()),
        }
    }
    all
}

/// Splits at dots, but not in brackets: `[name=a.b]` stays as it is, `[a.b]` loses its brackets.
pub(crate) fn split_dots(path: &str) -> Vec<String> {
    let parts = split(path, '.');
    let mut all = Vec::with_capacity(parts.len());
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            all.push(part);
            continue;
        }
        let mut whole = part;
        for next in parts.by_ref() {
            whole.push('.');
            whole.push_str(&next);
            if next.ends_with(']') {
                break;
            }
        }
        all.push(if whole.contains('=') { whole } else { whole.trim_matches(['[', ']']).to_owned() });
    }
    all
}

fn is_list_part(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

fn index_of(part: &str) -> Option<i64> {
    let digits = part.strip_prefix(['+', '-']).unwrap_or(part);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| part.parse().ok())
        .flatten()
}

/// What has to stand before the next part of a path.
fn kind_before(next: Option<&str>, last: Kind) -> Kind {
    match next {
        None | Some("") => last,
        Some(part) if is_list_part(part) || index_of(part).is_some_and(|index| index >= 0) => Kind::Seq,
        Some(_) => Kind::Map,
    }
}

/// `[name=value]` to name and value.
fn name_and_value(part: &str) -> Step<(String, String)> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    let (name, value) = inner.split_once('=').ok_or_else(|| {
        format!("{part:?} selects no element of a list; write `[field=value]`, or `*` for all")
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The way to a value: keys and positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    Key(usize),
    Index(usize),
}

/// Finds a value. Null on the way means nothing is found.
///
/// # Errors
/// A list where the path wants a field, and the like.
pub(crate) fn lookup<'n, S: AsRef<str>>(node: &'n Node, path: &[S]) -> Step<Option<&'n Node>> {
    let mut node = node;
    for part in path.iter().map(|part| part.as_ref().trim()).filter(|part| !part.is_empty()) {
        match step(node, part)? {
            Some(next) => node = next,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

/// As [`lookup`], to change it.
pub(crate) fn lookup_mut<'n, S: AsRef<str>>(node: &'n mut Node, path: &[S]) -> Step<Option<&'n mut Node>> {
    let mut node = node;
    for part in path.iter().map(|part| part.as_ref().trim()).filter(|part| !part.is_empty()) {
        let Some(at) = place(node, part)? else { return Ok(None) };
        match child_mut(node, &at) {
            Some(next) => node = next,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

fn step<'n>(node: &'n Node, part: &str) -> Step<Option<&'n Node>> {
    Ok(match place(node, part)? {
        None => None,
        Some(At::Key(at)) => node.entries().get(at).map(|(_, value)| value),
        Some(At::Index(at)) => node.items().get(at),
    })
}

fn place(node: &Node, part: &str) -> Step<Option<At>> {
    if let Some(index) = index_of(part) {
        if index < 0 {
            return Err(format!("the position {index} in a path is negative"));
        }
        want(node, Kind::Seq)?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        return Ok((index < node.items().len()).then_some(At::Index(index)));
    }
    if part == "-" {
        want(node, Kind::Seq)?;
        return Ok(node.items().len().checked_sub(1).map(At::Index));
    }
    if part == "*" {
        return Err("`*` has no meaning here; name the element".to_owned());
    }
    if is_list_part(part) {
        let (name, value) = name_and_value(part)?;
        want(node, Kind::Seq)?;
        let found = node.items().iter().position(|item| {
            if name.is_empty() {
                item.value() == value
            } else {
                item.get(&name).is_some_and(|field| field.value() == value)
            }
        });
        return Ok(found.map(At::Index));
    }
    want(node, Kind::Map)?;
    Ok(node.entries().iter().position(|(key, _)| &**key == part).map(At::Key))
}

fn want(node: &Node, kind: Kind) -> Result<(), WrongKind> {
    if node.is_null() || node.kind() == kind { Ok(()) } else { Err(WrongKind::new(kind, node)) }
}

fn child_mut<'n>(node: &'n mut Node, at: &At) -> Option<&'n mut Node> {
    match (node, at) {
        (Node::Map(entries), At::Key(at)) => entries.get_mut(*at).map(|(_, value)| value),
        (Node::Seq(items), At::Index(at)) => items.get_mut(*at),
        _ => None,
    }
}

/// Finds a value by field names only, and makes what is missing. `None` where null stands in the way.
pub(crate) fn lookup_create<'n>(node: &'n mut Node, path: &[&str], kind: Kind) -> Step<Option<&'n mut Node>> {
    let mut node = node;
    for (at, part) in path.iter().enumerate() {
        if node.is_null() {
            return Ok(None);
        }
        let Node::Map(_) = node else { return Err(WrongKind::new(Kind::Map, node).into()) };
        if node.get(part).is_none() {
            let made = if at + 1 == path.len() { kind } else { Kind::Map };
            if let Node::Map(entries) = node {
                entries.push(((*part).into(), Node::of_kind(made)));
            }
        }
        match node.get_mut(part) {
            Some(next) => node = next,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

/// A value that a path of a replacement matches.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Match {
    /// In the object.
    Here(Vec<At>),
    /// In a text that is YAML itself. What is set there is lost, as in the reference.
    Inside(Node),
}

/// Everything that a path matches: `*` stands for every element, values in `[field=value]` are regular expressions.
/// With `create`, what is missing is made and ends in a value of that kind.
pub(crate) fn matches(node: &mut Node, path: &[String], create: Option<Kind>) -> Step<Vec<Match>> {
    let mut found = Vec::new();
    search(node, path, create, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// The value at a place.
pub(crate) fn at_mut<'n>(node: &'n mut Node, place: &[At]) -> Option<&'n mut Node> {
    let mut node = node;
    for at in place {
        node = child_mut(node, at)?;
    }
    Some(node)
}

fn search(
    node: &mut Node,
    path: &[String],
    create: Option<Kind>,
    way: &mut Vec<At>,
    found: &mut Vec<Match>,
) -> Step<()> {
    let Some((part, rest)) = path.split_first() else {
        found.push(Match::Here(way.clone()));
        return Ok(());
    };
    let next = rest.first().map(String::as_str);
    if let Some(index) = index_of(part).filter(|index| *index >= 0) {
        want(node, Kind::Seq)?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let (Some(kind), Node::Seq(items)) = (create, &mut *node)
            && items.len() == index
        {
            items.push(Node::of_kind(kind_before(next, kind)));
        }
        if index >= node.items().len() {
            return Err(format!(
                "position {index} is asked for, but the list has only {}",
                node.items().len()
            ));
        }
        return below(node, At::Index(index), rest, create, way, found);
    }
    if is_list_part(part) {
        return search_list(node, part, rest, create, way, found);
    }
    if part == "*" {
        want(node, Kind::Seq)?;
        for index in 0..node.items().len() {
            below(node, At::Index(index), rest, create, way, found)?;
        }
        return Ok(());
    }
    want(node, Kind::Map)?;
    if node.is_null() {
        return match create {
            None => Ok(()),
            // The reference makes the field in a null, where it is lost.
            Some(kind) => {
                let mut lost = Node::map();
                let mut inner = Vec::new();
                lost.set(part, Node::of_kind(kind_before(next, kind)))?;
                search(&mut lost, path, create, &mut Vec::new(), &mut inner)?;
                found.extend(inner.into_iter().filter_map(|found| match found {
                    Match::Here(way) => at_mut(&mut lost, &way).cloned().map(Match::Inside),
                    inside @ Match::Inside(_) => Some(inside),
                }));
                Ok(())
            }
        };
    }
    let mut at = node.entries().iter().position(|(key, _)| **key == **part);
    if at.is_none() {
        let (Some(kind), Node::Map(entries)) = (create, &mut *node) else { return Ok(()) };
        entries.push((part.as_str().into(), Node::of_kind(kind_before(next, kind))));
        at = Some(entries.len() - 1);
    }
    let Some(at) = at else { return Ok(()) };
    let field = &node.entries()[at].1;
    if matches!(field, Node::Scalar(_)) && !rest.is_empty() {
        let mut inner = read::text(field.value()).ok_or("the text of the field is not YAML")?;
        let mut matched = Vec::new();
        search(&mut inner, rest, create, &mut Vec::new(), &mut matched)?;
        found.extend(matched.into_iter().filter_map(|matched| match matched {
            Match::Here(way) => at_mut(&mut inner, &way).cloned().map(Match::Inside),
            inside @ Match::Inside(_) => Some(inside),
        }));
        return Ok(());
    }
    below(node, At::Key(at), rest, create, way, found)
}

fn below(
    node: &mut Node,
    at: At,
    rest: &[String],
    create: Option<Kind>,
    way: &mut Vec<At>,
    found: &mut Vec<Match>,
) -> Step<()> {
    let Some(child) = child_mut(node, &at) else { return Ok(()) };
    way.push(at);
    let result = search(child, rest, create, way, found);
    way.pop();
    result
}

fn search_list(
    node: &mut Node,
    part: &str,
    rest: &[String],
    create: Option<Kind>,
    way: &mut Vec<At>,
    found: &mut Vec<Match>,
) -> Step<()> {
    let (name, value) = name_and_value(part)?;
    let pattern = Regex::new(&value)
        .map_err(|error| format!("{value:?} in {part:?} is no regular expression: {error}"))?;
    want(node, Kind::Seq)?;
    let before = found.len();
    for round in 0..2 {
        for index in 0..node.items().len() {
            let item = &node.items()[index];
            let text = if name.is_empty() { Some(item) } else { item.get(&name) };
            if text.is_some_and(|text| pattern.is_match(encode::to_string(text).trim())) {
                let rest = if name.is_empty() { &[] } else { rest };
                below(node, At::Index(index), rest, create, way, found)?;
            }
        }
        if found.len() > before || create.is_none() || round == 1 {
            break;
        }
        let made = if name.is_empty() {
            Node::text(&value)
        } else {
            Node::Map(vec![(name.as_str().into(), Node::text(&value))])
        };
        match node {
            Node::Seq(items) => items.push(made),
            _ => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_brackets_and_behind_backslashes_do_not_split() {
        assert_eq!(split_dots("a.[name=b.c].d"), ["a", "[name=b.c]", "d"]);
        assert_eq!(split_dots("metadata.annotations.[a.b/c]"), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_dots(r"a.b\.c"), ["a", "b.c"]);
        assert_eq!(split(r"/a/b\/c", '/'), ["a", "b/c"]);
    }
}
