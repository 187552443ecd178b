//! A git server: HTTPS on a free port of 127.0.0.1 before the real `git http-backend`, with faults that can be
//! switched on while it runs, and a record of every request.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::git_fixture::clean_git;
use super::pki::{ServerCertificate, TestCa, Validity};

/// How the server behaves. A change closes all connections that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As it should.
    Up,
    /// Connections are closed before a byte is answered.
    Down,
    /// Requests are taken and never answered.
    Hang,
    /// Bodies come in small pieces at this rate.
    Trickle { bytes_per_second: u32 },
    /// The body of a `fetch` answer ends after that many bytes, with the connection.
    CloseAfter { bytes: usize },
    /// The body of a `fetch` answer stops after that many bytes, with the connection open.
    StallAfter { bytes: usize },
    /// Every answer is this status.
    Status(u16),
    /// Answers a page of HTML, as a captive portal does.
    Html,
    /// A certificate of an authority that nobody knows.
    OtherCa,
    /// A certificate that has expired.
    ExpiredCertificate,
    /// A certificate that is not valid yet.
    FutureCertificate,
    /// A certificate for another host name.
    OtherHost,
}

/// What a request must bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Open,
    /// User name and password.
    Basic { user: String, password: String },
    /// A token.
    Bearer { token: String },
}

/// A request that was answered, or is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub method: String,
    /// With the query.
    pub path: String,
    /// The `command=` of a protocol v2 body, or empty.
    pub command: String,
    /// Did it have an `Authorization` header?
    pub authorization: bool,
    pub request_bytes: usize,
    /// Of the body as the backend made it; with a fault, what the fault left of it is not known here.
    pub response_bytes: usize,
    pub status: u16,
}

/// The server. Ends when dropped.
pub struct GitFront {
    address: SocketAddr,
    ca: TestCa,
    state: Arc<State>,
    accept: tokio::task::JoinHandle<()>,
}

struct State {
    root: PathBuf,
    backend: PathBuf,
    mode: watch::Sender<Mode>,
    settings: Mutex<Settings>,
    tls: BTreeMap<&'static str, Arc<ServerConfig>>,
}

struct Settings {
    access: Access,
    protocol_v2: bool,
    /// Path prefix to the URL or path that replaces it.
    redirects: BTreeMap<String, String>,
    requests: Vec<Recorded>,
    connections: usize,
}

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>;

impl GitFront {
    /// Serves the bare repositories below `root` (`<root>/site.git` at `/site.git`). Needs a tokio runtime.
    pub async fn start(root: &Path) -> io::Result<Self> {
        let (ca, stranger) = (TestCa::new("Pintle test CA"), TestCa::new("Somebody else"));
        let local = ["localhost", "127.0.0.1"];
        let tls = BTreeMap::from([
            ("good", tls_config(ca.server(&local, Validity::Now))?),
            ("other", tls_config(stranger.server(&local, Validity::Now))?),
            ("expired", tls_config(ca.server(&local, Validity::Expired))?),
            ("future", tls_config(ca.server(&local, Validity::NotYet))?),
            ("host", tls_config(ca.server(&["git.example.com"], Validity::Now))?),
        ]);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let settings = Settings {
            access: Access::Open,
            protocol_v2: true,
            redirects: BTreeMap::new(),
            requests: Vec::new(),
            connections: 0,
        };
        let state = Arc::new(State {
            root: root.canonicalize()?,
            backend: backend_path(root)?,
            mode: watch::Sender::new(Mode::Up),
            settings: Mutex::new(settings),
            tls,
        });
        let accept = tokio::spawn(accept_loop(listener, Arc::clone(&state)));
        Ok(Self { address, ca, state, accept })
    }

    /// URL of the repository `name` (`site` is `https://127.0.0.1:PORT/site.git`).
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}.git", self.base())
    }

    /// `https://127.0.0.1:PORT`.
    pub fn base(&self) -> String {
        format!("https://{}", self.address)
    }

    /// PEM of the CA to trust.
    pub fn ca_pem(&self) -> Vec<u8> {
        self.ca.pem()
    }

    /// Switches the behaviour and closes all open connections.
    pub fn set_mode(&self, mode: Mode) {
        self.state.mode.send_replace(mode);
    }

    /// From now on requests must bring this.
    pub fn set_access(&self, access: Access) {
        self.state.settings().access = access;
    }

    /// `false`: the backend does not get the `Git-Protocol` header and speaks version 0.
    pub fn set_protocol_v2(&self, enabled: bool) {
        self.state.settings().protocol_v2 = enabled;
    }

    /// Requests below `prefix` (`/old.git`) are redirected to `target` (`/site.git`, or a whole URL).
    pub fn redirect(&self, prefix: &str, target: &str) {
        self.state.settings().redirects.insert(prefix.to_owned(), target.to_owned());
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.settings().requests.clone()
    }

    /// Forgets the requests so far and returns them.
    pub fn take_requests(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.state.settings().requests)
    }

    /// TCP connections accepted so far.
    pub fn connections(&self) -> usize {
        self.state.settings().connections
    }
}

impl Drop for GitFront {
    fn drop(&mut self) {
        self.accept.abort();
        // Connections end with the mode change; a backend under way is killed on drop.
        self.state.mode.send_replace(Mode::Down);
    }
}

impl State {
    fn settings(&self) -> std::sync::MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn tls_of(&self, mode: Mode) -> Arc<ServerConfig> {
        let name = match mode {
            Mode::OtherCa => "other",
            Mode::ExpiredCertificate => "expired",
            Mode::FutureCertificate => "future",
            Mode::OtherHost => "host",
            _ => "good",
        };
        Arc::clone(&self.tls[name])
    }
}

fn tls_config(certificate: ServerCertificate) -> io::Result<Arc<ServerConfig>> {
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certificate.chain, certificate.key)
        .map_err(io::Error::other)?;
    Ok(Arc::new(config))
}

fn backend_path(dir: &Path) -> io::Result<PathBuf> {
    let output = clean_git(dir).arg("--exec-path").output()?;
    let folder = String::from_utf8(output.stdout).map_err(io::Error::other)?;
    let path = Path::new(folder.trim_end()).join("git-http-backend");
    if path.is_file() {
        Ok(path)
    } else {
        Err(io::Error::other(format!("{} does not exist", path.display())))
    }
}

async fn accept_loop(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        state.settings().connections += 1;
        let mut changes = state.mode.subscribe();
        let mode = *changes.borrow_and_update();
        if mode == Mode::Down {
            continue; // dropped: the client sees the connection closed
        }
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            tokio::select! {
                () = serve_connection(stream, mode, state) => {}
                // Also an error, which means that the front is gone.
                _ = changes.changed() => {}
            }
        });
    }
}

async fn serve_connection(stream: TcpStream, mode: Mode, state: Arc<State>) {
    // A client that refuses the certificate, or goes away, is part of the tests.
    let Ok(stream) = TlsAcceptor::from(state.tls_of(mode)).accept(stream).await else { return };
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(answer(request, mode, &state).await) }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, mode: Mode, state: &State) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return text_response(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let authorization = head.headers.get("authorization").and_then(|value| value.to_str().ok());
    let index = {
        let mut settings = state.settings();
        settings.requests.push(Recorded {
            method: head.method.to_string(),
            path: path.clone(),
            command: command_of(&body),
            authorization: authorization.is_some(),
            request_bytes: body.len(),
            response_bytes: 0,
            status: 0,
        });
        settings.requests.len() - 1
    };
    let (redirect, refused) = {
        let settings = state.settings();
        (redirect_of(&settings, &path), refusal(&settings.access, authorization))
    };
    let answer = match mode {
        Mode::Hang => std::future::pending().await,
        Mode::Status(code) => plain(StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT), "fault"),
        Mode::Html => Answer {
            headers: vec![("content-type".into(), "text/html".into())],
            ..plain(StatusCode::OK, "<html>please log in</html>")
        },
        _ if redirect.is_some() => Answer {
            headers: vec![("location".into(), redirect.unwrap_or_default())],
            ..plain(StatusCode::MOVED_PERMANENTLY, "")
        },
        _ if refused.is_some() => Answer {
            headers: vec![("www-authenticate".into(), refused.unwrap_or_default())],
            ..plain(StatusCode::UNAUTHORIZED, "who are you?")
        },
        _ => match run_backend(&head, &body, state).await {
            Ok(answer) => answer,
            Err(error) => plain(StatusCode::BAD_GATEWAY, &error.to_string()),
        },
    };
    let fetch = {
        let mut settings = state.settings();
        // The record may have been taken away meanwhile.
        if let Some(recorded) = settings.requests.get_mut(index) {
            recorded.response_bytes = answer.body.len();
            recorded.status = answer.status.as_u16();
        }
        command_of(&body) == "fetch" || body.windows(5).any(|window| window == b"want ")
    };
    shape(answer, mode, fetch)
}

struct Answer {
    status: StatusCode,
    headers: Vec<(String, String)>,
    body: Bytes,
}

fn plain(status: StatusCode, text: &str) -> Answer {
    Answer { status, headers: Vec::new(), body: Bytes::copy_from_slice(text.as_bytes()) }
}

fn command_of(body: &[u8]) -> String {
    let text = body.get(4..).unwrap_or_default();
    let line = text.split(|byte| *byte == b'\n' || *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(line)
        .strip_prefix("command=")
        .map(|rest| rest.chars().take_while(|c| *c != '0').collect())
        .unwrap_or_default()
}

fn redirect_of(settings: &Settings, path: &str) -> Option<String> {
    settings
        .redirects
        .iter()
        .find_map(|(prefix, target)| path.strip_prefix(prefix.as_str()).map(|rest| format!("{target}{rest}")))
}

/// The `WWW-Authenticate` header, if the request may not pass.
fn refusal(access: &Access, authorization: Option<&str>) -> Option<String> {
    let (expected, challenge) = match access {
        Access::Open => return None,
        Access::Basic { user, password } => {
            (format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))), "Basic realm=\"git\"")
        }
        Access::Bearer { token } => (format!("Bearer {token}"), "Bearer realm=\"git\""),
    };
    (authorization != Some(expected.as_str())).then(|| challenge.to_owned())
}

/// Runs `git http-backend` as a CGI program (RFC 3875).
async fn run_backend(head: &hyper::http::request::Parts, body: &Bytes, state: &State) -> io::Result<Answer> {
    let header =
        |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut command = tokio::process::Command::from(clean_git(&state.root));
    command = {
        // The same clean environment, but the backend itself: `git http-backend` would be one process more.
        let mut backend = tokio::process::Command::new(&state.backend);
        backend.current_dir(&state.root).env_clear();
        backend.envs(command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
        backend
    };
    command
        .env("GIT_PROJECT_ROOT", &state.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", head.method.as_str())
        .env("PATH_INFO", head.uri.path())
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if state.settings().protocol_v2 {
        command.env("GIT_PROTOCOL", header("git-protocol"));
    }
    let mut child = command.spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else {
        return Err(io::Error::other("no pipes"));
    };
    let mut output = Vec::new();
    let write = async {
        // The backend may end without reading all; then its answer tells why.
        let _ = stdin.write_all(body).await;
        drop(stdin);
    };
    let (read, ()) = tokio::join!(stdout.read_to_end(&mut output), write);
    read?;
    child.wait().await?;
    parse_cgi(&output)
}

fn parse_cgi(output: &[u8]) -> io::Result<Answer> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("git http-backend answered without headers"))?;
    let mut answer = Answer {
        status: StatusCode::OK,
        headers: Vec::new(),
        body: Bytes::copy_from_slice(&output[end + 4..]),
    };
    for line in String::from_utf8_lossy(&output[..end]).split("\r\n") {
        let Some((name, value)) = line.split_once(": ") else { continue };
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500);
            answer.status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        } else {
            answer.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
    Ok(answer)
}

/// The response with the faults of `mode` in its body.
fn shape(answer: Answer, mode: Mode, fetch: bool) -> Response<Body> {
    let body = answer.body;
    let stream: BoxStream<'static, io::Result<Bytes>> = match mode {
        Mode::Trickle { bytes_per_second } => trickle(body, bytes_per_second).boxed(),
        Mode::CloseAfter { bytes } if fetch => {
            let start = body.slice(..bytes.min(body.len()));
            // The pause of one turn lets hyper send the start before it meets the error.
            let end = async {
                tokio::task::yield_now().await;
                Err(io::Error::other("closed on purpose"))
            };
            futures::stream::iter([Ok(start)]).chain(futures::stream::once(end)).boxed()
        }
        Mode::StallAfter { bytes } if fetch => {
            let start = body.slice(..bytes.min(body.len()));
            futures::stream::iter([Ok(start)]).chain(futures::stream::pending()).boxed()
        }
        _ => futures::stream::iter([Ok(body)]).boxed(),
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response
        .body(StreamBody::new(stream.map(|piece| piece.map(Frame::data)).boxed()))
        .unwrap_or_else(|error| text_response(StatusCode::BAD_GATEWAY, &error.to_string()))
}

/// `body` in ten pieces a second.
fn trickle(body: Bytes, bytes_per_second: u32) -> impl futures::Stream<Item = io::Result<Bytes>> {
    let piece = (bytes_per_second as usize / 10).max(1);
    futures::stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = rest.split_to(piece.min(rest.len()));
        Some((Ok(now), rest))
    })
}

fn text_response(status: StatusCode, text: &str) -> Response<Body> {
    let piece = Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes())));
    let mut response = Response::new(StreamBody::new(futures::stream::iter([piece]).boxed()));
    *response.status_mut() = status;
    response
}
