//! Real `git http-backend` behind HTTPS with its own CA and basic auth, with modes to break it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::counted::Counted;
use super::pki::Authority;

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// As it should.
    Up,
    /// Every connection is closed at once.
    Down,
    /// Requests are taken and never answered.
    Hang,
    /// HTTP 500.
    Failing,
    /// Answers end after 200 bytes.
    Cut,
}

/// A running server.
pub struct GitFront {
    runtime: Option<tokio::runtime::Runtime>,
    shared: Arc<Shared>,
    address: SocketAddr,
    ca: String,
}

struct Shared {
    root: PathBuf,
    mode: AtomicU8,
    user: String,
    password: String,
    requests: Mutex<Vec<String>>,
    /// Both ways, TLS included.
    bytes: Arc<AtomicU64>,
}

impl GitFront {
    /// Serves every repository below `root`.
    pub fn start(root: &Path, user: &str, password: &str) -> Self {
        pintle::tls::install_crypto_provider();
        let authority = Authority::new("git test authority");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(authority.server()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("tokio");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            mode: AtomicU8::new(Mode::Up as u8),
            user: user.to_owned(),
            password: password.to_owned(),
            requests: Mutex::default(),
            bytes: Arc::default(),
        });
        let state = shared.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if state.is(Mode::Down) {
                    continue;
                }
                let (acceptor, state) = (acceptor.clone(), state.clone());
                tokio::spawn(async move {
                    let stream = Counted::new(stream, state.bytes.clone());
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request| answer(state.clone(), request));
                    let io = hyper_util::rt::TokioIo::new(stream);
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
                });
            }
        });
        Self { runtime: Some(runtime), shared, address, ca: authority.pem() }
    }

    pub fn url(&self, repository: &str) -> String {
        format!("https://{}/{repository}.git", self.address)
    }

    /// The same, by name instead of address.
    pub fn url_by_name(&self, repository: &str) -> String {
        format!("https://localhost:{}/{repository}.git", self.address.port())
    }

    pub fn prefix(&self) -> String {
        format!("https://{}/", self.address)
    }

    pub fn ca(&self) -> &str {
        &self.ca
    }

    pub fn set(&self, mode: Mode) {
        self.shared.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Bytes on the wire so far, both ways, TLS included.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::SeqCst)
    }

    /// `METHOD path` of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().expect("requests").clone()
    }
}

impl Drop for GitFront {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn is(&self, mode: Mode) -> bool {
        self.mode.load(Ordering::SeqCst) == mode as u8
    }

    fn is_welcome(&self, headers: &HeaderMap) -> bool {
        let wanted = format!("Basic {}", base64(format!("{}:{}", self.user, self.password).as_bytes()));
        headers.get("authorization").is_some_and(|value| value.as_bytes() == wanted.as_bytes())
    }
}

async fn answer(
    state: Arc<Shared>,
    request: Request<hyper::body::Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    state.requests.lock().expect("requests").push(format!("{} {}", request.method(), request.uri().path()));
    // A connection that was opened before git went away ends like a new one.
    if state.is(Mode::Down) {
        return Err(std::io::Error::other("down"));
    }
    if state.is(Mode::Hang) {
        std::future::pending::<()>().await;
    }
    let plain = |status: StatusCode| {
        let mut response = Response::new(Body::from("no"));
        *response.status_mut() = status;
        Ok(response)
    };
    if state.is(Mode::Failing) {
        return plain(StatusCode::INTERNAL_SERVER_ERROR);
    }
    if !state.is_welcome(request.headers()) {
        return plain(StatusCode::UNAUTHORIZED);
    }
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(Body::new(body), 64 << 20).await.map_err(std::io::Error::other)?;
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_PROJECT_ROOT", &state.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("PATH_INFO", parts.uri.path())
        .env("QUERY_STRING", parts.uri.query().unwrap_or(""))
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", &state.user)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(&body).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let mut response = cgi(&output.stdout);
    if state.is(Mode::Cut) {
        let bytes =
            axum::body::to_bytes(std::mem::take(response.body_mut()), usize::MAX).await.unwrap_or_default();
        *response.body_mut() = Body::from(bytes.slice(..bytes.len().min(200)));
    }
    Ok(response)
}

/// A CGI answer: headers, an empty line, the body.
fn cgi(bytes: &[u8]) -> Response<Body> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
    let mut builder = Response::builder();
    for line in String::from_utf8_lossy(&bytes[..end]).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        if name.eq_ignore_ascii_case("status") {
            builder =
                builder.status(value.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500));
        } else {
            builder = builder.header(name, value);
        }
    }
    let body = bytes.get(end + 4..).unwrap_or_default().to_vec();
    builder.body(Body::from(body)).expect("an answer")
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for index in 0..4 {
            if index <= chunk.len() {
                text.push(char::from(ALPHABET[(word >> (18 - 6 * index) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
