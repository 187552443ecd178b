//! The HTTP side of a repository: one client with its CA, credentials and redirect rule.

use std::time::Duration;

use pintle_model::{Problem, Reason};
use reqwest::{Client, StatusCode};

use super::{Repository, Secret};

/// A repository's URL with the client that may talk to it.
#[derive(Clone)]
pub(super) struct Remote {
    client: Client,
    pub(super) url: String,
    username: Option<String>,
    secret: Option<Secret>,
    bearer: bool,
}

impl Remote {
    pub(super) fn new(url: &str, settings: &Repository) -> Result<Self, Problem> {
        let mut builder = Client::builder()
            .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION"), " git/2"))
            .connect_timeout(Duration::from_secs(20))
            .pool_idle_timeout(Duration::from_mins(10))
            .no_proxy()
            .https_only(true)
            .redirect(reqwest::redirect::Policy::custom(|attempt| {
                let same = attempt.previous().first().is_some_and(|first| {
                    first.host_str() == attempt.url().host_str() && first.port() == attempt.url().port()
                });
                // A credential must never reach another host.
                if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
            }));
        if let Some(pem) = &settings.ca_pem {
            let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(|error| {
                Problem::new(
                    Reason::InvalidConfig,
                    format!("the CA file of {} is no PEM: {error}", settings.url_prefix),
                )
            })?;
            if certificates.is_empty() {
                let text = format!("the CA file of {} holds no certificate", settings.url_prefix);
                return Err(Problem::new(Reason::InvalidConfig, text));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        let client = builder.build().map_err(|error| {
            Problem::new(Reason::SourceError, format!("no HTTP client for {url}: {}", chain(&error)))
        })?;
        let remote = Self {
            client,
            url: String::new(),
            username: settings.username.clone(),
            secret: settings.secret.clone(),
            bearer: settings.bearer,
        };
        remote.to(url)
    }

    /// The same client for another repository below the same prefix.
    pub(super) fn to(&self, url: &str) -> Result<Self, Problem> {
        let invalid = |what: &str| Problem::new(Reason::InvalidSpecError, format!("repoURL {what}"));
        let parsed =
            reqwest::Url::parse(url).map_err(|error| invalid(&format!("{url:?} is no URL: {error}")))?;
        if parsed.password().is_some() || !parsed.username().is_empty() {
            // Not printed: the text may hold a password.
            return Err(invalid(
                "holds a user or password; put them into repositories: of the configuration",
            ));
        }
        if parsed.scheme() != "https" {
            return Err(invalid(&format!(
                "{url:?} is not https://: other transports are not supported by this version"
            )));
        }
        Ok(Self { url: url.trim_end_matches('/').to_owned(), ..self.clone() })
    }

    /// One protocol v2 request.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<reqwest::Response, Problem> {
        let mut request = self
            .client
            .post(format!("{}/git-upload-pack", self.url))
            .header("Git-Protocol", "version=2")
            .header("Content-Type", "application/x-git-upload-pack-request")
            .header("Accept", "application/x-git-upload-pack-result")
            .body(body);
        if let Some(secret) = &self.secret {
            request = if self.bearer {
                request.bearer_auth(secret.expose())
            } else {
                request.basic_auth(self.username.as_deref().unwrap_or("git"), Some(secret.expose()))
            };
        }
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        self.judge(response)
    }

    fn judge(&self, response: reqwest::Response) -> Result<reqwest::Response, Problem> {
        let status = response.status();
        let problem = |reason, what: String| Err(Problem::new(reason, format!("{}: {what}", self.url)));
        match status {
            StatusCode::OK => {
                let kind = response
                    .headers()
                    .get("content-type")
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or("");
                if kind.starts_with("application/x-git-upload-pack-result") {
                    return Ok(response);
                }
                problem(Reason::GitNotFound, format!("the server answers with {kind:?}, which is not git"))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let sent = if self.secret.is_some() {
                    "the credentials are refused"
                } else {
                    "credentials are needed"
                };
                problem(Reason::GitUnauthorized, format!("{sent} (HTTP {})", status.as_u16()))
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                problem(Reason::GitNotFound, format!("there is no repository (HTTP {})", status.as_u16()))
            }
            _ if status.is_redirection() => {
                let to = response
                    .headers()
                    .get("location")
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or("elsewhere");
                problem(
                    Reason::GitNotFound,
                    format!("the server redirects to another host ({to}); write that URL"),
                )
            }
            _ => problem(Reason::GitUnreachable, format!("the server answers HTTP {}", status.as_u16())),
        }
    }

    /// A request or an answer that broke.
    pub(super) fn failed(&self, error: &reqwest::Error) -> Problem {
        let text = chain(error);
        let lower = text.to_lowercase();
        if lower.contains("certificate") || lower.contains("unknownissuer") || lower.contains("invalid peer")
        {
            return Problem::new(
                Reason::GitCertificate,
                format!(
                    "{}: the server's certificate is not trusted: {text}; the clock says {}",
                    self.url,
                    jiff::Timestamp::now()
                ),
            );
        }
        Problem::new(Reason::GitUnreachable, format!("{} cannot be reached: {text}", self.url))
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
