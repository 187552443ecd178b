//! Access to repositories as the administrator configured it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;

use super::url::RepositoryUrl;

/// A secret text. Shows itself only through [`Secret::expose`]; `Debug` is redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// Access to every repository whose URL starts with `url_prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// `https://host[:port][/path]`; of several entries the one with the longest prefix is used.
    pub url_prefix: String,
    /// User name of basic authentication. With a secret and no name `git` is sent, which every forge accepts
    /// beside a token.
    pub username: Option<String>,
    /// Password or token.
    pub secret: Option<Secret>,
    /// Send the secret as `Authorization: Bearer` rather than as a password.
    pub bearer: bool,
    /// PEM bundle of the only CAs that are trusted for these repositories; the system's when absent.
    pub ca_pem: Option<Vec<u8>>,
}

impl Repository {
    /// The `Authorization` header, if there is a secret that can be one.
    pub fn authorization(&self) -> Option<HeaderValue> {
        let secret = self.secret.as_ref()?.expose();
        let text = if self.bearer {
            format!("Bearer {secret}")
        } else {
            let user = self.username.as_deref().unwrap_or("git");
            format!("Basic {}", STANDARD.encode(format!("{user}:{secret}")))
        };
        // A secret with a line break cannot be a header. Then nothing is sent and the server says 401.
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// The entry whose prefix covers most of `url`.
pub fn longest_match<'a>(repositories: &'a [Repository], url: &RepositoryUrl) -> Option<&'a Repository> {
    repositories
        .iter()
        .filter_map(|entry| url.covered_by(&entry.url_prefix).map(|length| (length, entry)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(prefix: &str, secret: &str) -> Repository {
        Repository {
            url_prefix: prefix.into(),
            username: None,
            secret: Some(Secret::new(secret)),
            bearer: false,
            ca_pem: None,
        }
    }

    #[test]
    fn the_longest_prefix_wins() {
        let entries = [
            entry("https://h.example", "host"),
            entry("https://h.example/team", "team"),
            entry("https://o.example", "other"),
        ];
        let secret = |url: &str| {
            let url = RepositoryUrl::parse(url).unwrap();
            longest_match(&entries, &url).map(|entry| entry.secret.as_ref().unwrap().expose().to_owned())
        };
        assert_eq!(secret("https://h.example/team/site").as_deref(), Some("team"));
        assert_eq!(secret("https://h.example/team2/site").as_deref(), Some("host"));
        assert_eq!(secret("https://x.example/team/site"), None);
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        let mut repository = entry("https://h.example", "hunter2");
        assert!(!format!("{repository:?}").contains("hunter2"));
        assert!(!format!("{:?}", repository.authorization()).contains("hunter2"));
        repository.bearer = true;
        assert_eq!(repository.authorization().unwrap().to_str().unwrap(), "Bearer hunter2");
        assert!(!format!("{:?}", repository.authorization()).contains("hunter2"));
    }

    #[test]
    fn basic_authentication_is_encoded_as_the_standard_says() {
        let repository =
            Repository { username: Some("Aladdin".into()), ..entry("https://h.example", "open sesame") };
        assert_eq!(
            repository.authorization().unwrap().to_str().unwrap(),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
    }
}
