//! Bases, components and files that lie elsewhere: how their URLs are read.

use crate::{Remote, RemoteKind};

/// Whether a path is a URL of the web.
pub(crate) fn is_http(path: &str) -> bool {
    let lower = path.get(..8).unwrap_or(path).to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

/// Whether an entry of `resources` is a single file on the web and not a repository.
pub(crate) fn is_file(path: &str) -> bool {
    if !is_http(path) {
        return false;
    }
    let plain = path.split(['?', '#']).next().unwrap_or(path).to_ascii_lowercase();
    let ends_as_file = [".yaml", ".yml", ".json"].iter().any(|ending| plain.ends_with(ending));
    ends_as_file || plain.contains("://raw.githubusercontent.com/") || repository(path).is_none()
}

/// The repository that a path means, if it means one: `https://host/org/repo//path?ref=v1`, `git@host:org/repo`,
/// `github.com/org/repo/path`, `ssh://...`, `file://...`.
pub(crate) fn repository(path: &str) -> Option<Remote> {
    if path.starts_with('/') {
        return None;
    }
    let (rest, query) = path.split_once('?').unwrap_or((path, ""));
    let (host, rest) = host(rest)?;
    let (repo, folder) = split_path(&rest, host.starts_with("file://"))?;
    if repo.is_empty() {
        return None;
    }
    let folder = folder.strip_prefix('/').unwrap_or(&folder).to_owned();
    if crate::load::clean("", &folder).is_none() {
        return None;
    }
    Some(Remote {
        url: format!("{host}{repo}"),
        reference: reference(query),
        subpath: folder,
        kind: RemoteKind::Repository,
    })
}

fn reference(query: &str) -> String {
    let of = |name: &str| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
            .filter(|value| !value.is_empty())
    };
    of("ref").or_else(|| of("version")).map(decode).unwrap_or_default()
}

/// `%2F` and the like.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        let hex = tail
            .get(..2)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Scheme, user and host, and what follows.
fn host(text: &str) -> Option<(String, String)> {
    let text = strip(text, "git::").unwrap_or(text);
    let (scheme, text) = ["ssh://", "https://", "http://", "file://"]
        .iter()
        .find_map(|scheme| strip(text, scheme).map(|rest| (*scheme, rest)))
        .unwrap_or(("", text));
    let user_end = text
        .find('@')
        .filter(|end| {
            let user = &text[..*end];
            user.starts_with(|c: char| c.is_ascii_alphabetic())
                && user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
        .map_or(0, |end| end + 1);
    let (user, text) = text.split_at(user_end);
    let lower = text.to_ascii_lowercase();
    let github = lower.starts_with("github.com/") || lower.starts_with("github.com:");
    let scp = scheme.is_empty() && (!user.is_empty() || github);
    if scheme.is_empty() && !scp {
        return None;
    }
    if scheme == "file://" {
        return Some((scheme.to_owned(), format!("{user}{text}")));
    }
    let slash = text.find('/');
    let colon = text.find(':').filter(|_| scp);
    let end = match (slash, colon) {
        (None, colon) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        (slash, _) => slash,
    };
    let (host, rest) = end.map_or((text, ""), |end| text.split_at(end + 1));
    if github {
        let ssh = scheme == "ssh://" || !user.is_empty();
        let host = if ssh { format!("{user}github.com:") } else { "https://github.com/".to_owned() };
        return Some((host, rest.to_owned()));
    }
    (!host.is_empty()).then(|| (format!("{scheme}{user}{host}"), rest.to_owned()))
}

fn strip<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.get(..prefix.len()).filter(|start| start.eq_ignore_ascii_case(prefix)).map(|_| &text[prefix.len()..])
}

/// Repository and folder in it.
fn split_path(text: &str, whole: bool) -> Option<(String, String)> {
    if let Some(at) = text.find("_git/") {
        let (start, rest) = text.split_at(at + "_git/".len());
        let (repo, folder) = rest.split_once('/').unwrap_or((rest, ""));
        return Some((format!("{start}{repo}"), folder.to_owned()));
    }
    if let Some((repo, folder)) = text.split_once("//") {
        return Some((repo.to_owned(), folder.to_owned()));
    }
    if let Some(at) = text.find(".git") {
        let (repo, folder) = text.split_at(at + ".git".len());
        return Some((repo.to_owned(), folder.to_owned()));
    }
    if whole {
        return Some((text.to_owned(), String::new()));
    }
    let parts: Vec<&str> = text.split('/').collect();
    (parts.len() >= 2).then(|| (parts[..2].join("/"), parts[2..].join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_repositories_are_read_as_the_reference_reads_them() {
        let cases = [
            ("https://github.com/org/repo//base?ref=v1", "https://github.com/org/repo", "v1", "base"),
            ("github.com/org/repo/a/b?version=main", "https://github.com/org/repo", "main", "a/b"),
            ("git@github.com:org/repo.git//x?ref=a%2Fb", "git@github.com:org/repo.git", "a/b", "x"),
            ("ssh://git@example.com/org/repo.git/x", "ssh://git@example.com/org/repo.git", "", "x"),
            ("https://dev.azure.com/o/p/_git/r/x/y?ref=1", "https://dev.azure.com/o/p/_git/r", "1", "x/y"),
            ("git::https://example.com/org/repo", "https://example.com/org/repo", "", ""),
            ("file:///srv/repo//x", "file:///srv/repo", "", "x"),
        ];
        for (text, url, reference, subpath) in cases {
            let found = repository(text);
            let found = found.map(|remote| (remote.url, remote.reference, remote.subpath));
            assert_eq!(found, Some((url.to_owned(), reference.to_owned(), subpath.to_owned())), "{text}");
        }
        for local in
            ["../base", "base", "/abs", "a.b/c", "https://example.com/x", "https://github.com/o/r//../x"]
        {
            assert_eq!(repository(local), None, "{local}");
        }
        assert!(is_file("https://example.com/org/repo/x.yaml"));
        assert!(!is_file("https://example.com/org/repo//x?ref=1"));
    }
}
