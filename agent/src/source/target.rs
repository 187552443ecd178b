//! What a `targetRevision` asks for.

use pintle_model::{Problem, Reason, Revision};

/// A parsed `targetRevision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A full commit id: pinned, never polled.
    Commit(Revision),
    /// 7 to 39 hex digits: a shortened commit id, or the name of a branch or tag.
    ShortCommit(String),
    /// A branch or a tag.
    Name(String),
    /// A full ref name, `refs/...`.
    FullName(String),
    /// The default branch of the server.
    Head,
}

impl Target {
    /// Parses `text`.
    ///
    /// Errors: `InvalidSpecError` for version ranges and for what can be no ref name.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text.is_empty() || text == "HEAD" {
            return Ok(Self::Head);
        }
        if let Ok(revision) = text.parse() {
            return Ok(Self::Commit(revision));
        }
        if is_version_range(text) {
            return Err(Problem::new(
                Reason::InvalidSpecError,
                format!(
                    "targetRevision {text:?} is a version range, which is not supported yet: name a tag, a branch or a \
                     commit"
                ),
            ));
        }
        let full_name =
            if text.starts_with("refs/") { text.to_owned() } else { format!("refs/heads/{text}") };
        if gix::validate::reference::name(full_name.as_str().into()).is_err() {
            return Err(Problem::new(
                Reason::InvalidSpecError,
                format!("targetRevision {text:?} cannot be the name of a branch, a tag or a ref"),
            ));
        }
        if text.starts_with("refs/") {
            return Ok(Self::FullName(text.to_owned()));
        }
        if (7..40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self::ShortCommit(text.to_owned()));
        }
        Ok(Self::Name(text.to_owned()))
    }

    /// Full names of the refs that answer this target, the one that wins first.
    ///
    /// A branch wins over a tag of the same name, as in Argo CD (the order of the server's list).
    pub fn candidates(&self) -> Vec<String> {
        match self {
            Self::Commit(_) => Vec::new(),
            Self::Head => vec!["HEAD".to_owned()],
            Self::FullName(name) => vec![name.clone()],
            Self::Name(name) | Self::ShortCommit(name) => {
                vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")]
            }
        }
    }
}

/// Masterminds' range syntax, as Argo CD takes it: no ref name has these signs but `*`, which git refuses too.
fn is_version_range(text: &str) -> bool {
    let digits_then_wildcard = || {
        let mut parts = text.trim_start_matches('v').split('.').peekable();
        let numeric =
            parts.peek().is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        numeric && parts.any(|part| matches!(part, "x" | "X" | "*"))
    };
    text == "*"
        || text.starts_with(['^', '~', '>', '<', '='])
        || text.contains("||")
        || text.contains(" - ")
        || digits_then_wildcard()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_target_revision_is_recognised() {
        let sha = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(Target::parse(sha).unwrap(), Target::Commit(sha.parse().unwrap()));
        assert_eq!(Target::parse("").unwrap(), Target::Head);
        assert_eq!(Target::parse("HEAD").unwrap(), Target::Head);
        assert_eq!(Target::parse("ABCDEF1").unwrap(), Target::ShortCommit("ABCDEF1".into()));
        assert_eq!(Target::parse("abcdef").unwrap(), Target::Name("abcdef".into()));
        assert_eq!(Target::parse("feature/a").unwrap(), Target::Name("feature/a".into()));
        assert_eq!(Target::parse("v1.2.3").unwrap(), Target::Name("v1.2.3".into()));
        assert_eq!(Target::parse("1.2").unwrap(), Target::Name("1.2".into()));
        assert_eq!(Target::parse("refs/pull/1/head").unwrap(), Target::FullName("refs/pull/1/head".into()));
    }

    #[test]
    fn version_ranges_are_refused_by_name() {
        for text in ["^1.2", "~1.2.0", ">=1.0 <2.0", "1.2.x", "v1.*", "*", "1.0 - 2.0", "1.2 || 1.4", "=1.2"]
        {
            let problem = Target::parse(text).unwrap_err();
            assert!(problem.message.contains("version range"), "{text}: {}", problem.message);
        }
    }

    #[test]
    fn what_can_be_no_ref_is_refused() {
        for text in ["a b", "a..b", "refs/heads/", "a\n0000", "x.lock", "-\u{7f}", "a:b"] {
            assert_eq!(Target::parse(text).unwrap_err().reason, Reason::InvalidSpecError, "{text:?}");
        }
    }

    #[test]
    fn a_branch_wins_over_a_tag() {
        assert_eq!(Target::parse("v1").unwrap().candidates(), ["refs/heads/v1", "refs/tags/v1"]);
    }
}
