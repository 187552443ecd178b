//! From what went wrong below (HTTP, TLS, git) to a reason and a text for a person.

use std::error::Error;
use std::time::Duration;

use pintle_model::{Problem, Reason, Revision};
use reqwest::StatusCode;
use rustls::CertificateError;

use super::refs::BadAnswer;
use super::url::RepositoryUrl;

/// A failed HTTP exchange, without an answer.
pub fn of_exchange(url: &RepositoryUrl, error: &(dyn Error + 'static)) -> Problem {
    let causes = causes(error);
    problem_of_causes(url, false, &causes).unwrap_or_else(|| unreachable_problem(url, &text_of(&causes)))
}

/// An answer with a status other than success.
pub fn of_status(url: &RepositoryUrl, status: StatusCode, has_credentials: bool) -> Problem {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let what = if has_credentials {
                "refused the configured credentials"
            } else {
                "wants credentials and none are configured for this URL"
            };
            Problem::new(
                Reason::GitUnauthorized,
                format!("{}: the git server {what} ({status})", url.as_str()),
            )
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            let hint = if has_credentials {
                ""
            } else {
                ", or it is private and no credentials are configured for it"
            };
            Problem::new(
                Reason::GitNotFound,
                format!("{}: there is no such repository{hint} ({status})", url.as_str()),
            )
        }
        _ => unreachable_problem(url, &format!("it answered {status}")),
    }
}

/// An answer that is not git's, or git's own error.
pub fn of_answer(url: &RepositoryUrl, answer: &BadAnswer) -> Problem {
    let reason = match answer {
        BadAnswer::Framing(_) | BadAnswer::NotGit | BadAnswer::Line => Reason::GitNotFound,
        BadAnswer::Server(_) => Reason::GitUnreachable,
        BadAnswer::ObjectFormat(_) => Reason::SourceError,
    };
    Problem::new(reason, format!("{}: {answer}", url.as_str()))
}

/// The answer of our credentials callback: gix asks it only after the server refused the request as it was.
#[derive(Debug, thiserror::Error)]
#[error("the git server did not accept the request")]
pub struct NotAccepted;

/// A failed fetch by gix. `local` tells that the cause is not the server or the link, so that a new cache may help.
#[derive(Debug)]
pub struct FetchFailure {
    /// For a person.
    pub problem: Problem,
    /// Neither the server nor the link: the cache itself.
    pub local: bool,
}

/// Classifies an error of gix while fetching `revision`.
pub fn of_fetch(
    url: &RepositoryUrl,
    revision: Revision,
    stall: Duration,
    has_credentials: bool,
    error: &gix::Error,
) -> FetchFailure {
    let mut all: Vec<&(dyn Error + 'static)> = Vec::new();
    for one in error.iter_errors() {
        all.extend(causes(one));
    }
    if let Some(said) = server_text(&all) {
        let problem = Problem::new(
            Reason::RevisionNotFound,
            format!("{}: the git server does not give commit {revision}: {said}", url.as_str()),
        );
        return FetchFailure { problem, local: false };
    }
    if all.iter().any(|one| one.is::<NotAccepted>()) {
        let problem = of_status(url, StatusCode::UNAUTHORIZED, has_credentials);
        return FetchFailure { problem, local: false };
    }
    let timed_out = all.iter().any(|one| {
        one.downcast_ref::<reqwest::Error>().is_some_and(|error| error.is_timeout() && !error.is_connect())
            || io_kind(*one) == Some(std::io::ErrorKind::TimedOut)
    });
    if timed_out {
        let problem = Problem::new(
            Reason::FetchTimeout,
            format!(
                "{}: the fetch of {} stalled: no byte for {} s",
                url.as_str(),
                revision.short(),
                stall.as_secs_f32()
            ),
        );
        return FetchFailure { problem, local: false };
    }
    if let Some(problem) = problem_of_causes(url, has_credentials, &all) {
        return FetchFailure { problem, local: false };
    }
    // A pack that ends early without an error of HTTP may as well be a broken pack on our side.
    let from_link = all.iter().any(|one| one.is::<reqwest::Error>());
    let text = text_of(&all);
    let problem = if from_link {
        unreachable_problem(url, &format!("the fetch of {} broke off: {text}", revision.short()))
    } else {
        Problem::new(
            Reason::SourceError,
            format!("{}: the fetch of {} failed: {text}", url.as_str(), revision.short()),
        )
    };
    FetchFailure { problem, local: !from_link }
}

/// `GitUnreachable` with `text`.
pub fn unreachable_problem(url: &RepositoryUrl, text: &str) -> Problem {
    Problem::new(Reason::GitUnreachable, format!("{}: the git server cannot be used: {text}", url.as_str()))
}

fn problem_of_causes(
    url: &RepositoryUrl,
    has_credentials: bool,
    causes: &[&(dyn Error + 'static)],
) -> Option<Problem> {
    let rustls_error = causes.iter().find_map(|one| one.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidCertificate(error)) = rustls_error {
        return Some(certificate_problem(url, error));
    }
    let http = causes.iter().find_map(|one| one.downcast_ref::<reqwest::Error>())?;
    if let Some(status) = http.status() {
        return Some(of_status(url, status, has_credentials));
    }
    if http.is_builder() {
        // The only input of the client that can be wrong is the CA bundle, or the system has none.
        let text = deepest(causes);
        return Some(Problem::new(
            Reason::GitCertificate,
            format!("{}: the CA certificates cannot be used: {text}", url.as_str()),
        ));
    }
    if http.is_timeout() {
        return Some(unreachable_problem(url, "it did not answer in time"));
    }
    http.is_connect().then(|| unreachable_problem(url, &text_of(causes)))
}

fn certificate_problem(url: &RepositoryUrl, error: &CertificateError) -> Problem {
    let host = url.url().host_str().unwrap_or_default();
    let clock = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let text = match error {
        CertificateError::UnknownIssuer => {
            format!("the certificate of {host} is signed by a CA that is not trusted")
        }
        CertificateError::Expired => {
            format!(
                "the certificate of {host} has expired, or the clock of this machine is wrong (it says {clock})"
            )
        }
        CertificateError::ExpiredContext { not_after, .. } => format!(
            "the certificate of {host} expired at {}, or the clock of this machine is wrong (it says {clock})",
            unix_text(not_after.as_secs())
        ),
        CertificateError::NotValidYet => {
            format!(
                "the certificate of {host} is not valid yet, or the clock of this machine is wrong (it says {clock})"
            )
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "the certificate of {host} is valid from {}, or the clock of this machine is wrong (it says {clock})",
            unix_text(not_before.as_secs())
        ),
        CertificateError::NotValidForName => format!("the certificate of the git server is not for {host}"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("the certificate of the git server is for {}, not for {host}", presented.join(", "))
        }
        other => format!("the certificate of {host} is not valid: {other}"),
    };
    Problem::new(Reason::GitCertificate, format!("{}: {text}", url.as_str()))
}

fn unix_text(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map_or_else(|| format!("second {seconds}"), |time| time.to_string())
}

/// `error` and all below it. `std::io::Error` hides its payload from `source()`, and rustls' errors are there.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut found = Vec::new();
    let mut next = Some(error);
    // A chain is a few links long; the bound is against one that is made to be endless.
    while let Some(one) = next.filter(|_| found.len() < 64) {
        found.push(one);
        next = match one.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => {
                let inner: &(dyn Error + 'static) = inner;
                Some(inner)
            }
            None => one.source(),
        };
    }
    found
}

/// What a `git` error line of the server says. gix types such a line in most places of the protocol. Where it expects
/// a section header it quotes the line in its text; where it expects a side band (protocol version 0) it tells only
/// the first byte, 69, the E of `ERR`.
fn server_text(causes: &[&(dyn Error + 'static)]) -> Option<String> {
    let typed = causes
        .iter()
        .find_map(|one| one.downcast_ref::<gix::protocol::transport::packetline::read::Error>())
        .map(|said| said.message.to_string());
    let quoted = || {
        causes.iter().find_map(|one| {
            let text = one.to_string();
            if text.ends_with("input was malformed: 69") {
                return Some("it may give only commits that a branch or tag leads to".to_owned());
            }
            text.split_once("\"ERR ").map(|(_, said)| said.trim_end_matches('"').to_owned())
        })
    };
    let said = typed.or_else(quoted)?;
    Some(said.chars().filter(|c| !c.is_control()).take(300).collect())
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<std::io::ErrorKind> {
    error.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
}

/// What happened, for a person.
fn text_of(causes: &[&(dyn Error + 'static)]) -> String {
    let closed = causes.iter().any(|one| {
        matches!(
            io_kind(*one),
            Some(
                std::io::ErrorKind::UnexpectedEof
                    | std::io::ErrorKind::ConnectionAborted
                    | std::io::ErrorKind::ConnectionReset
                    | std::io::ErrorKind::BrokenPipe
            )
        )
    });
    if closed { "it closed the connection".to_owned() } else { deepest(causes) }
}

/// The text of the last cause: the ones above only say that something failed.
fn deepest(causes: &[&(dyn Error + 'static)]) -> String {
    causes.last().map(|one| one.to_string().chars().take(400).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> RepositoryUrl {
        RepositoryUrl::parse("https://git.example.com/site").unwrap()
    }

    #[test]
    fn each_status_has_its_reason() {
        for (status, reason) in [
            (401, Reason::GitUnauthorized),
            (403, Reason::GitUnauthorized),
            (404, Reason::GitNotFound),
            (410, Reason::GitNotFound),
            (429, Reason::GitUnreachable),
            (500, Reason::GitUnreachable),
            (502, Reason::GitUnreachable),
        ] {
            let problem = of_status(&url(), StatusCode::from_u16(status).unwrap(), true);
            assert_eq!(problem.reason, reason, "{status}");
            assert!(problem.message.starts_with("https://git.example.com/site: "), "{}", problem.message);
        }
    }

    #[test]
    fn missing_credentials_are_told_apart_from_wrong_ones() {
        let missing = of_status(&url(), StatusCode::UNAUTHORIZED, false).message;
        let wrong = of_status(&url(), StatusCode::UNAUTHORIZED, true).message;
        assert!(missing.contains("none are configured"), "{missing}");
        assert!(wrong.contains("refused the configured"), "{wrong}");
    }

    #[test]
    fn a_certificate_error_is_found_below_io_errors() {
        let error = std::io::Error::other(std::io::Error::other(rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet,
        )));
        let problem = of_exchange(&url(), &error);
        assert_eq!(problem.reason, Reason::GitCertificate);
        assert!(problem.message.contains("clock"), "{}", problem.message);
    }

    #[test]
    fn any_other_error_of_an_exchange_is_unreachable() {
        let problem = of_exchange(&url(), &std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(problem.reason, Reason::GitUnreachable);
    }
}
