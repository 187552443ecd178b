//! A proxy before the API server that breaks what a test asks it to break: refused, delayed, hanging and cut
//! connections, error answers, expired watches.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, Response};
use base64::Engine as _;
use futures::StreamExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::pki::Authority;

/// What happens to a request that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This status, with a Kubernetes Status as the body, and `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Taken and never answered.
    Hang,
    /// The connection is closed without an answer.
    Close,
    /// The request is carried out and its answer lost: the connection is closed.
    LoseAnswer,
    /// A watch that is told in its stream that its resourceVersion is too old (410).
    Expired,
}

struct Rule {
    method: &'static str,
    path: String,
    fault: Fault,
    left: usize,
}

/// A running proxy.
pub struct FaultProxy {
    runtime: Option<tokio::runtime::Runtime>,
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    cut: watch::Sender<u64>,
}

struct Shared {
    server: String,
    client: reqwest::Client,
    rules: Mutex<Vec<Rule>>,
    /// `METHOD path?query` of what a rule broke.
    broken: Mutex<Vec<String>>,
    down: std::sync::atomic::AtomicBool,
}

impl FaultProxy {
    /// Starts one before the API server of a kubeconfig; its own kubeconfig is written into `folder`.
    pub fn start(kubeconfig: &Path, folder: &Path) -> Self {
        pintle::tls::install_crypto_provider();
        let text = std::fs::read_to_string(kubeconfig).expect("a kubeconfig");
        let config: serde_json::Value = serde_yaml::from_str(&text).expect("a kubeconfig");
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let pem = |value: &serde_json::Value| {
            let text = value.as_str().expect("inline data");
            base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
        };
        let ca = reqwest::Certificate::from_pem(&pem(&cluster["certificate-authority-data"])).expect("a CA");
        let mut identity = pem(&user["client-certificate-data"]);
        identity.extend(pem(&user["client-key-data"]));
        let client = reqwest::Client::builder()
            .tls_certs_only([ca])
            .identity(reqwest::Identity::from_pem(&identity).expect("an identity"))
            .build()
            .expect("a client");
        let shared = Arc::new(Shared {
            server: cluster["server"].as_str().expect("a server").to_owned(),
            client,
            rules: Mutex::default(),
            broken: Mutex::default(),
            down: std::sync::atomic::AtomicBool::new(false),
        });
        let authority = Authority::new("api test authority");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(authority.server()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("tokio");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (cut, cuts) = watch::channel(0);
        runtime.spawn(serve(listener, acceptor, shared.clone(), cuts));
        let path = folder.join("proxy.kubeconfig");
        std::fs::write(&path, own_kubeconfig(address, &authority.pem())).expect("a file");
        Self { runtime: Some(runtime), shared, kubeconfig: path, cut }
    }

    /// The kubeconfig that leads through the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The next `times` requests of this method whose path and query contain `path` meet the fault.
    pub fn fail(&self, method: &'static str, path: &str, fault: Fault, times: usize) {
        let rule = Rule { method, path: path.to_owned(), fault, left: times };
        self.shared.rules.lock().expect("rules").push(rule);
    }

    /// No rule holds any more.
    pub fn heal(&self) {
        self.shared.rules.lock().expect("rules").clear();
    }

    /// Closes every open connection, as a network that breaks: watches end, answers are lost.
    pub fn cut(&self) {
        self.cut.send_modify(|count| *count += 1);
    }

    /// While down every connection is closed at once.
    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, std::sync::atomic::Ordering::SeqCst);
        if down {
            self.cut();
        }
    }

    /// What was broken so far.
    pub fn broken(&self) -> Vec<String> {
        self.shared.broken.lock().expect("broken").clone()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn own_kubeconfig(address: SocketAddr, ca: &str) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: proxy\n\
         clusters: [{{name: proxy, cluster: {{server: 'https://{address}', certificate-authority-data: {ca}}}}}]\n\
         users: [{{name: proxy, user: {{}}}}]\n\
         contexts: [{{name: proxy, context: {{cluster: proxy, user: proxy}}}}]\n"
    )
}

async fn serve(
    listener: TcpListener,
    acceptor: tokio_rustls::TlsAcceptor,
    shared: Arc<Shared>,
    cuts: watch::Receiver<u64>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        if shared.down.load(std::sync::atomic::Ordering::SeqCst) {
            continue;
        }
        let (acceptor, shared, mut cuts) = (acceptor.clone(), shared.clone(), cuts.clone());
        cuts.mark_unchanged();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = hyper::service::service_fn(move |request| answer(shared.clone(), request));
            let io = hyper_util::rt::TokioIo::new(stream);
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
            tokio::select! {
                _ = connection => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<hyper::body::Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let fault = shared.fault(request.method().as_str(), &target);
    match fault {
        Some(Fault::Hang) => std::future::pending::<()>().await,
        Some(Fault::Close) => return Err(std::io::Error::other("closed by the test")),
        Some(Fault::Status(code, retry_after)) => return Ok(refusal(code, retry_after)),
        Some(Fault::Expired) => return Ok(expired()),
        Some(Fault::LoseAnswer) | None => {}
    }
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(Body::new(body), 64 << 20).await.map_err(std::io::Error::other)?;
    let mut forward = shared.client.request(parts.method.clone(), format!("{}{target}", shared.server));
    for (name, value) in &parts.headers {
        if name != "host" && name != "content-length" {
            forward = forward.header(name, value);
        }
    }
    let answer = forward.body(body).send().await.map_err(std::io::Error::other)?;
    if fault == Some(Fault::LoseAnswer) {
        // Read to its end, so that the server has certainly done it.
        let _ = answer.bytes().await;
        return Err(std::io::Error::other("the answer is lost"));
    }
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if name != "transfer-encoding" && name != "content-length" {
            response = response.header(name, value);
        }
    }
    let stream = answer.bytes_stream().map(|chunk| chunk.map_err(std::io::Error::other));
    response.body(Body::from_stream(stream)).map_err(std::io::Error::other)
}

impl Shared {
    fn fault(&self, method: &str, target: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().expect("rules");
        let rule = rules
            .iter_mut()
            .find(|rule| rule.left > 0 && rule.method == method && target.contains(&rule.path))?;
        rule.left -= 1;
        self.broken.lock().expect("broken").push(format!("{method} {target}"));
        Some(rule.fault)
    }
}

fn status_body(code: u16) -> String {
    let reason = match code {
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"broken by the test","reason":"{reason}","code":{code}}}"#
    )
}

fn refusal(code: u16, retry_after: Option<u32>) -> Response<Body> {
    let mut response = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    response.body(Body::from(status_body(code))).expect("an answer")
}

fn expired() -> Response<Body> {
    let line = format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status_body(410));
    Response::builder().header("content-type", "application/json").body(Body::from(line)).expect("an answer")
}
