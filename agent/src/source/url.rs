//! Repository URLs: what is accepted, how two spellings of one repository are recognised, and whose
//! credentials belong to one.

use pintle_model::{Digest, Problem, Reason};

/// An accepted repository URL: `https://host[:port]/path`, no userinfo, no query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryUrl {
    url: reqwest::Url,
}

impl RepositoryUrl {
    /// Checks `text`.
    ///
    /// Errors: `InvalidSpecError` that says what is accepted. A URL with userinfo is never printed.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let refuse = |message: String| Err(Problem::new(Reason::InvalidSpecError, message));
        if let Some(problem) = refuse_ssh(text) {
            return Err(problem);
        }
        let mut url = match reqwest::Url::parse(text) {
            Ok(url) => url,
            // The text may hold a password in a place where the parser did not find it.
            Err(error) if text.contains('@') => {
                return refuse(format!(
                    "repository URL is not valid ({error}); it is not shown since it contains '@'"
                ));
            }
            Err(error) => {
                return refuse(format!(
                    "repository URL {text:?} is not valid: {error}; expected https://host/path"
                ));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            let host = url.host_str().unwrap_or_default();
            return refuse(format!(
                "repository URL of host {host} contains a user name or password: take it out of the URL and set \
                 username and passwordFile of this repository in the configuration"
            ));
        }
        if url.scheme() != "https" {
            return refuse(format!(
                "repository URL {text:?} has scheme {:?}: only https:// is supported, so that neither credentials nor \
                 manifests can be read or changed on the way",
                url.scheme()
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse(format!(
                "repository URL {text:?} has a query or fragment: give only https://host/path"
            ));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        if path.is_empty() {
            return refuse(format!(
                "repository URL {text:?} names a host but no repository: expected https://host/path"
            ));
        }
        url.set_path(&path);
        Ok(Self { url })
    }

    /// The URL as requests use it: as written, host in lower case, no trailing slash.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The parsed URL.
    pub fn url(&self) -> &reqwest::Url {
        &self.url
    }

    /// Name of the cache directory: 16 hex digits of the SHA-256 of the URL without a trailing `.git`, since
    /// every server of note serves one repository under both names.
    pub fn cache_name(&self) -> String {
        let text = self.url.as_str();
        Digest::of(text.strip_suffix(".git").unwrap_or(text).as_bytes()).short(16)
    }

    /// How many bytes of this URL `prefix` covers, if it covers it: same scheme, host and port, and whole path
    /// segments (`https://h/team` does not cover `https://h/team2/x`, else that repository would get its password).
    pub fn covered_by(&self, prefix: &str) -> Option<usize> {
        let prefix = reqwest::Url::parse(prefix).ok()?;
        if !same_origin(&prefix, &self.url) {
            return None;
        }
        let path = prefix.path().trim_end_matches('/');
        let rest = self.url.path().strip_prefix(path)?;
        (rest.is_empty() || rest.starts_with('/') || rest == ".git").then_some(path.len() + 1)
    }
}

/// Do both URLs have one scheme, host and port?
pub fn same_origin(one: &reqwest::Url, other: &reqwest::Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn refuse_ssh(text: &str) -> Option<Problem> {
    // `git@host:path`, which no URL parser takes, and ssh://.
    let scp_like = !text.contains("://") && text.split_once(':').is_some_and(|(host, _)| host.contains('@'));
    (scp_like || text.starts_with("ssh://")).then(|| {
        Problem::new(
            Reason::InvalidSpecError,
            "repository URL is an SSH address: only https:// is supported; use the https address of the repository \
             and set a token for it in the configuration",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> RepositoryUrl {
        RepositoryUrl::parse(text).unwrap()
    }

    #[test]
    fn only_https_without_userinfo_is_accepted() {
        assert_eq!(
            url("https://Git.Example.com:443/team/site.git/").as_str(),
            "https://git.example.com/team/site.git"
        );
        for (text, expected) in [
            ("http://git.example.com/a", "only https://"),
            ("http://127.0.0.1/a", "only https://"),
            ("git@git.example.com:team/site.git", "SSH"),
            ("ssh://git@git.example.com/team/site.git", "SSH"),
            ("file:///srv/git", "only https://"),
            ("https://git.example.com", "no repository"),
            ("https://git.example.com/a?token=x", "query"),
            ("team/site", "not valid"),
            ("", "not valid"),
        ] {
            let problem = RepositoryUrl::parse(text).unwrap_err();
            assert_eq!(problem.reason, Reason::InvalidSpecError, "{text}");
            assert!(problem.message.contains(expected), "{text}: {}", problem.message);
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_shown() {
        for text in [
            "https://joe:hunter2@git.example.com/a",
            "https://hunter2@git.example.com/a",
            "https://a b:hunter2@/x",
        ] {
            let problem = RepositoryUrl::parse(text).unwrap_err();
            assert!(!problem.message.contains("hunter2"), "{}", problem.message);
        }
    }

    #[test]
    fn two_spellings_of_one_repository_share_a_cache() {
        assert_eq!(url("https://h.example/a.git").cache_name(), url("https://H.example:443/a/").cache_name());
        assert_ne!(url("https://h.example/a").cache_name(), url("https://h.example/b").cache_name());
        assert_eq!(url("https://h.example/a").cache_name().len(), 16);
    }

    #[test]
    fn credentials_cover_whole_path_segments_of_one_host() {
        let site = url("https://h.example/team/site.git");
        assert!(site.covered_by("https://h.example").is_some());
        assert!(site.covered_by("https://h.example/team/").is_some());
        assert!(site.covered_by("https://h.example/team/site") > site.covered_by("https://h.example/team"));
        for prefix in [
            "https://h.example/tea",
            "https://h.example/team/site.g",
            "https://h.example:8443/team",
            "http://h.example/team",
            "https://h.example.evil/team",
            "h.example/team",
        ] {
            assert_eq!(site.covered_by(prefix), None, "{prefix}");
        }
    }
}
