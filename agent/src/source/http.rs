//! Polls: the requests that Pintle makes to a git server itself, on long-lived clients.
//!
//! A poll is one POST (protocol v2 is stateless over HTTP); no request is made before it. Only a server that
//! does not understand it is asked for `info/refs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pintle_model::limits::REFS_MAX_BYTES;
use pintle_model::{Digest, Problem, Reason};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};

use super::counters::Counters;
use super::credential::Repository;
use super::refs::{self, Advertisement, BadAnswer, RemoteRef};
use super::url::{RepositoryUrl, same_origin};
use super::{Deadlines, failure};

/// Forges choose by this prefix between git and their web page (GitLab: a clone URL without `.git`).
pub const USER_AGENT: &str = concat!("git/pintle-", env!("CARGO_PKG_VERSION"));

/// Redirects followed in one exchange. GitLab needs one (`/site` to `/site.git`), a moved host name another.
const MAX_REDIRECTS: usize = 4;

const UPLOAD_PACK: &str = "/git-upload-pack";
const INFO_REFS: &str = "/info/refs";

/// Clients by CA bundle, and what is known about servers. Survives a reload of the configuration.
#[derive(Debug)]
pub struct Http {
    counters: Arc<Counters>,
    deadlines: Deadlines,
    clients: Mutex<HashMap<Option<Digest>, Client>>,
    known: Mutex<HashMap<String, Known>>,
}

/// What earlier requests told about a repository.
#[derive(Debug, Clone)]
struct Known {
    /// The URL after redirects.
    base: Url,
    /// Does the server answer `ls-refs`?
    v2: bool,
}

impl Http {
    pub fn new(counters: Arc<Counters>, deadlines: Deadlines) -> Self {
        Self { counters, deadlines, clients: Mutex::default(), known: Mutex::default() }
    }

    /// The refs of the server that start with one of `prefixes` (all refs, from a server without protocol v2).
    pub async fn refs(
        &self,
        url: &RepositoryUrl,
        access: Option<&Repository>,
        prefixes: &[String],
    ) -> Result<Vec<RemoteRef>, Problem> {
        Counters::add(&self.counters.polls);
        let known = self.known(url);
        if known.as_ref().is_some_and(|known| !known.v2) {
            return match self.advertisement(url, access).await? {
                Advertisement::Refs(refs) => Ok(refs),
                // The server was upgraded.
                Advertisement::V2 => {
                    self.ls_refs(url, access, prefixes).await?.map_err(|bad| failure::of_answer(url, &bad))
                }
            };
        }
        match self.ls_refs(url, access, prefixes).await? {
            Ok(refs) => Ok(refs),
            Err(bad) => match self.advertisement(url, access).await? {
                Advertisement::Refs(refs) => Ok(refs),
                Advertisement::V2 => Err(failure::of_answer(url, &bad)),
            },
        }
    }

    /// The URL at which the server has the repository, after redirects. One request, if none was made before.
    pub async fn base(&self, url: &RepositoryUrl, access: Option<&Repository>) -> Result<Url, Problem> {
        if let Some(known) = self.known(url) {
            return Ok(known.base);
        }
        self.advertisement(url, access).await?;
        Ok(self.known(url).map_or_else(|| url.url().clone(), |known| known.base))
    }

    /// Forgets what is known about `url`, so that the next request starts from the URL as written: the server may
    /// have moved the repository again.
    pub fn forget(&self, url: &RepositoryUrl) {
        lock(&self.known).remove(url.as_str());
    }

    /// The inner error is an answer that is not one of protocol v2.
    async fn ls_refs(
        &self,
        url: &RepositoryUrl,
        access: Option<&Repository>,
        prefixes: &[String],
    ) -> Result<Result<Vec<RemoteRef>, BadAnswer>, Problem> {
        let exchange = Exchange { suffix: UPLOAD_PACK, body: Some(refs::ls_refs_request(prefixes)) };
        let answer = self.exchange(url, access, &exchange).await?;
        let parsed = match answer.status {
            StatusCode::OK if answer.content_type == "application/x-git-upload-pack-result" => {
                refs::parse_ls_refs(&answer.body)
            }
            // What servers without protocol v2, or for uploads of another kind only, answer to this POST.
            StatusCode::OK
            | StatusCode::BAD_REQUEST
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::NOT_IMPLEMENTED => Err(BadAnswer::NotGit),
            status => return Err(failure::of_status(url, status, has_credentials(access))),
        };
        if parsed.is_ok() {
            self.remember(url, answer.base, true);
        }
        Ok(parsed)
    }

    async fn advertisement(
        &self,
        url: &RepositoryUrl,
        access: Option<&Repository>,
    ) -> Result<Advertisement, Problem> {
        let answer = self.exchange(url, access, &Exchange { suffix: INFO_REFS, body: None }).await?;
        if answer.status != StatusCode::OK {
            return Err(failure::of_status(url, answer.status, has_credentials(access)));
        }
        let advertisement = if answer.content_type == "application/x-git-upload-pack-advertisement" {
            refs::parse_advertisement(&answer.body)
        } else {
            Err(BadAnswer::NotGit)
        };
        let advertisement = advertisement.map_err(|bad| failure::of_answer(url, &bad))?;
        self.remember(url, answer.base, advertisement == Advertisement::V2);
        Ok(advertisement)
    }

    /// One request, with redirects, within the poll deadline.
    async fn exchange(
        &self,
        url: &RepositoryUrl,
        access: Option<&Repository>,
        exchange: &Exchange,
    ) -> Result<Answer, Problem> {
        let deadline = self.deadlines.poll;
        match tokio::time::timeout(deadline, self.exchange_unbounded(url, access, exchange)).await {
            Ok(answer) => answer,
            Err(_) => Err(failure::unreachable_problem(
                url,
                &format!("it did not answer in {} s", deadline.as_secs_f32()),
            )),
        }
    }

    async fn exchange_unbounded(
        &self,
        url: &RepositoryUrl,
        access: Option<&Repository>,
        exchange: &Exchange,
    ) -> Result<Answer, Problem> {
        let client = self.client(url, access)?;
        let mut base = self.known(url).map_or_else(|| url.url().clone(), |known| known.base);
        for _ in 0..=MAX_REDIRECTS {
            let mut response = self.send(&client, &base, access, exchange).await;
            // A server may close a kept connection just when it is used again: once more on a new one. All that we
            // send here only reads.
            if response
                .as_ref()
                .is_err_and(|error| error.is_request() && !error.is_connect() && !error.is_timeout())
            {
                response = self.send(&client, &base, access, exchange).await;
            }
            let response = response.map_err(|error| failure::of_exchange(url, &error))?;
            if !is_redirect(response.status()) {
                if !response.status().is_success() {
                    // The server may have moved the repository away from where it redirected to.
                    self.forget(url);
                }
                return read_answer(url, base, response).await;
            }
            base = redirected(url, &base, &response, exchange.suffix)?;
        }
        Err(Problem::new(
            Reason::GitNotFound,
            format!("{}: the git server redirects without end", url.as_str()),
        ))
    }

    async fn send(
        &self,
        client: &Client,
        base: &Url,
        access: Option<&Repository>,
        exchange: &Exchange,
    ) -> Result<Response, reqwest::Error> {
        Counters::add(&self.counters.http_requests);
        let mut target = base.clone();
        target.set_path(&format!("{}{}", base.path(), exchange.suffix));
        let request = match &exchange.body {
            Some(body) => client
                .request(Method::POST, target)
                .header(CONTENT_TYPE, "application/x-git-upload-pack-request")
                .header(ACCEPT, "application/x-git-upload-pack-result")
                .body(body.clone()),
            None => {
                target.set_query(Some("service=git-upload-pack"));
                client.request(Method::GET, target)
            }
        };
        let request = request.header("Git-Protocol", HeaderValue::from_static("version=2"));
        let request = match access.and_then(Repository::authorization) {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        };
        request.send().await
    }

    fn client(&self, url: &RepositoryUrl, access: Option<&Repository>) -> Result<Client, Problem> {
        let ca = access.and_then(|access| access.ca_pem.as_deref());
        let key = ca.map(Digest::of);
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        crate::tls::install_crypto_provider();
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(self.deadlines.connect);
        if let Some(pem) = ca {
            builder = builder.tls_certs_only(ca_certificates(url, pem)?);
        }
        let client = builder.build().map_err(|error| failure::of_exchange(url, &error))?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    fn known(&self, url: &RepositoryUrl) -> Option<Known> {
        lock(&self.known).get(url.as_str()).cloned()
    }

    fn remember(&self, url: &RepositoryUrl, base: Url, v2: bool) {
        lock(&self.known).insert(url.as_str().to_owned(), Known { base, v2 });
    }
}

/// The certificates of a PEM bundle; an empty or broken one is an error that names the URL.
pub fn ca_certificates(url: &RepositoryUrl, pem: &[u8]) -> Result<Vec<reqwest::Certificate>, Problem> {
    let refuse = |text: &str| {
        Problem::new(Reason::GitCertificate, format!("{}: the file of tlsCAFile {text}", url.as_str()))
    };
    let certificates = reqwest::Certificate::from_pem_bundle(pem)
        .map_err(|_| refuse("is not a PEM bundle of certificates"))?;
    if certificates.is_empty() {
        return Err(refuse("holds no certificate"));
    }
    Ok(certificates)
}

struct Exchange {
    suffix: &'static str,
    /// POST with this body, or GET.
    body: Option<Vec<u8>>,
}

struct Answer {
    base: Url,
    status: StatusCode,
    content_type: String,
    body: Vec<u8>,
}

async fn read_answer(url: &RepositoryUrl, base: Url, mut response: Response) -> Result<Answer, Problem> {
    let status = response.status();
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_owned();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failure::of_exchange(url, &error))? {
        if body.len() + chunk.len() > REFS_MAX_BYTES {
            return Err(failure::unreachable_problem(
                url,
                &format!("its list of refs is larger than {} MiB", REFS_MAX_BYTES >> 20),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { base, status, content_type, body })
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// The new base URL of a redirect, if it stays on the host and leads to a repository.
fn redirected(url: &RepositoryUrl, base: &Url, response: &Response, suffix: &str) -> Result<Url, Problem> {
    let refuse = |text: String| Problem::new(Reason::GitNotFound, format!("{}: {text}", url.as_str()));
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut target =
        base.join(location).map_err(|_| refuse("the git server redirects to no valid URL".into()))?;
    if !same_origin(&target, base) {
        let host = target.host_str().unwrap_or_default();
        return Err(refuse(format!(
            "the git server redirects to another host, {host}, which is not followed, since credentials are sent only to \
             the host they are for: set repoURL to the new address"
        )));
    }
    let Some(path) = target.path().strip_suffix(suffix).map(str::to_owned) else {
        return Err(refuse(format!(
            "the git server redirects to {}, which is no git address (a login page?)",
            target.path().chars().take(200).collect::<String>()
        )));
    };
    target.set_path(&path);
    target.set_query(None);
    target.set_fragment(None);
    Ok(target)
}

fn has_credentials(access: Option<&Repository>) -> bool {
    access.is_some_and(|access| access.secret.is_some())
}

/// A panic while a map was held leaves the map whole: inserts and removals are single calls.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
