//! Requests to a real server of this machine, which the policy lists as private.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use gateway_core::vocab::{ToolError, ToolResult};

use super::*;
use crate::{
    code::std::{as_tool_error, policy::StdConfig},
    nested::Outcome,
};

const SECRET: &str = "planted-4711";

/// A server: answers each path in its own way, and keeps what it was sent.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let witness = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&witness)));
            }
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>) -> io::Result<()> {
    let mut request = Vec::new();
    let path = loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                seen.lock().unwrap().push(text.clone());
                break head.split(' ').nth(1).unwrap().to_owned();
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    };
    let ok =
        |body: &[u8]| [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
    let to = |place: &str| format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n").into_bytes();
    let answer = match path.as_str() {
        "/near" => to("/echo"),
        "/far" => to("http://far.example:1/"),
        "/other-port" => to("http://127.0.0.1:1/"),
        "/loop" => to("/loop"),
        "/bytes" => ok(&[&[0xff, 0][..], SECRET.as_bytes(), SECRET.as_bytes(), &[1]].concat()),
        "/most" => ok(&vec![b'x'; RESPONSE_BYTES_MAX]),
        "/more" => ok(&vec![b'x'; RESPONSE_BYTES_MAX + 1]),
        "/stream" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 65_536]).await?;
            }
        }
        "/hang" => std::future::pending().await,
        "/breaks" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab".to_vec(),
        "/missing" => b"HTTP/1.1 404 Not Found\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: 2\r\n\r\nno".to_vec(),
        _ => ok(&request),
    };
    stream.write_all(&answer).await
}

/// Finds what a test says, and counts.
struct Scripted {
    addresses: Vec<SocketAddr>,
    asked: AtomicUsize,
}

#[async_trait]
impl Lookup for Scripted {
    async fn lookup(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        assert!(host.ends_with(".example"), "{host}");
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.addresses.clone())
    }
}

fn policy(server: &Server) -> StdPolicy {
    let port = server.address.port();
    let text = format!(
        "http.hosts = [{{host = '127.0.0.1', scheme = 'http', port = {port}, private = true}},
            {{host = 'near.example', scheme = 'http', port = {port}, private = true}},
            {{host = 'public.example', scheme = 'http', port = {port}}}, 'a.example']
        secrets.KEY = {{value = '{SECRET}', hosts = ['127.0.0.1']}}"
    );
    let config: StdConfig = toml::from_str(&text).unwrap();
    StdPolicy::check(config, |_| None).unwrap()
}

async fn send_by(lookup: Arc<Scripted>, server: &Server, request: Value) -> Result<Value, HostError> {
    // The gateway does so at its start; a second time does no harm.
    drop(rustls::crypto::ring::default_provider().install_default());
    let policy = policy(server);
    let http = Http::with_lookup(&policy, lookup).unwrap();
    let sent = http.request(&policy, "ann", serde_json::from_value(request).unwrap()).await;
    // The host does so.
    let secrets = crate::secret::Secrets::default();
    policy.secrets().for_each(|secret| secrets.keep(secret));
    sent.map(|mut answer| {
        secrets.redact_value(&mut answer);
        answer
    })
}

async fn send(server: &Server, request: Value) -> Result<Value, HostError> {
    let lookup = Scripted { addresses: vec![server.address], asked: AtomicUsize::new(0) };
    send_by(Arc::new(lookup), server, request).await
}

async fn get(server: &Server, path: &str) -> Result<Value, HostError> {
    send(server, json!({"url": server.url(path)})).await
}

#[tokio::test]
async fn requests_arrive_with_their_secrets_and_answers_without_them() {
    let server = Server::start().await;
    let answer = send(
        &server,
        json!({"url": server.url("/echo?a=1#b"), "method": "POST", "text": "größe",
            "headers": {"Authorization": "Bearer ${secret:KEY}", "X-Twice": "${secret:KEY}${secret:KEY}."}}),
    )
    .await
    .unwrap();
    let seen = server.seen().remove(0);
    assert!(seen.starts_with("POST /echo?a=1 HTTP/1.1\r\n") && seen.ends_with("\r\n\r\ngröße"), "{seen}");
    assert!(seen.contains(&format!("authorization: Bearer {SECRET}\r\n")), "{seen}");
    assert!(seen.contains(&format!("x-twice: {SECRET}{SECRET}.\r\n")), "{seen}");
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("authorization: Bearer [secret]\r\n") && !text.contains(SECRET), "{text}");
    assert_eq!(answer["status"], 200);

    let answer = get(&server, "/bytes").await.unwrap();
    let expected = [&[0xff, 0][..], b"[secret][secret]", &[1]].concat();
    assert_eq!(answer["bytes"], to_base64(&expected));
    let answer = get(&server, "/missing").await.unwrap();
    assert_eq!(
        (&answer["status"], &answer["text"], &answer["headers"]["x-a"]),
        (&json!(404), &json!("no"), &json!("1, 2"))
    );
}

#[tokio::test]
async fn redirects_stay_with_their_host() {
    let server = Server::start().await;
    let near = get(&server, "/near").await.unwrap();
    assert_eq!(near["url"], server.url("/echo"));
    for (path, expected) in [
        ("/far", "the server redirects to http://far.example:1"),
        ("/other-port", "the server redirects to http://127.0.0.1:1"),
        ("/loop", "more than 5 times"),
    ] {
        let error = get(&server, path).await.unwrap_err();
        assert!(error.code == "not_allowed" && error.message.contains(expected), "{error:?}");
    }
}

#[tokio::test]
async fn a_response_has_an_end() {
    let server = Server::start().await;
    let most = get(&server, "/most").await.unwrap();
    assert_eq!(most["text"].as_str().unwrap().len(), RESPONSE_BYTES_MAX);
    for path in ["/more", "/stream"] {
        assert_eq!(get(&server, path).await.unwrap_err().code, "too_large", "{path}");
    }
    let broken = get(&server, "/breaks").await.unwrap_err();
    assert_eq!((broken.code.as_str(), broken.retryable), ("http_failed", false));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up() {
    let server = Server::start().await;
    let error = get(&server, "/hang").await.unwrap_err();
    assert_eq!((error.code.as_str(), error.retryable), ("timeout", true));
}

#[tokio::test]
async fn names_are_judged_by_the_address_that_is_used() {
    let server = Server::start().await;
    let port = server.address.port();
    let by = |host: &str, addresses: Vec<SocketAddr>| {
        let lookup = Arc::new(Scripted { addresses, asked: AtomicUsize::new(0) });
        let request = json!({"url": format!("http://{host}:{port}/echo")});
        (Arc::clone(&lookup), send_by(lookup, &server, request))
    };
    // Listed as private: the address that was judged is the one that is used, and it is asked for once.
    let (lookup, sent) = by("near.example", vec![server.address]);
    assert_eq!(sent.await.unwrap()["status"], 200);
    assert_eq!(lookup.asked.load(Ordering::SeqCst), 1);
    for (host, address, expected) in [
        ("public.example", "127.0.0.1", "a loopback address"),
        ("public.example", "10.1.2.3", "a private address"),
        ("public.example", "169.254.169.254", "a link-local address"),
        ("public.example", "100.64.0.1", "a carrier's NAT"),
        ("public.example", "fd00::1", "a unique local address"),
        ("public.example", "fe80::1", "a link-local address"),
        ("public.example", "::1", "a loopback address"),
        ("public.example", "::ffff:127.0.0.1", "a loopback address"),
        ("public.example", "0.0.0.0", "an unspecified address"),
        ("public.example", "224.0.0.1", "a multicast address"),
        ("near.example", "0.0.0.0", "an unspecified address"),
        ("near.example", "ff02::1", "a multicast address"),
    ] {
        let address = SocketAddr::new(address.parse().unwrap(), port);
        // A good address before it does not help.
        let good = if host == "near.example" { server.address } else { "1.1.1.1:9".parse().unwrap() };
        let error = by(host, vec![good, address]).1.await.unwrap_err();
        assert!(error.code == "not_allowed" && error.message.contains(expected), "{host} {address}: {error:?}");
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_is_refused_is_not_sent() {
    let server = Server::start().await;
    let url = server.url("/echo");
    let port = server.address.port();
    let many: BTreeMap<String, String> = (0..33).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
    let table = [
        (json!({"url": "https://other.example/"}), "programs may not request https://other.example:"),
        (json!({"url": "http://a.example/"}), "programs may not request http://a.example"),
        (json!({"url": format!("http://[::1]:{port}/")}), "programs may not request"),
        (json!({"url": format!("http://localhost:{port}/")}), "programs may not request"),
        (json!({"url": "file:///etc/passwd"}), "must begin with https://"),
        (json!({"url": "data:text/plain,x"}), "must begin with https://"),
        (json!({"url": "nowhere"}), "the address is none"),
        (json!({"url": url.replace("http://", "http://a:b@")}), "a user or a password"),
        (json!({"url": format!("{url}?key=${{secret:KEY}}")}), "headers only"),
        (json!({"url": "x".repeat(URL_BYTES_MAX + 1)}), "the maximum"),
        (json!({"url": url, "text": "x".repeat(REQUEST_BYTES_MAX)}), "the maximum"),
        (json!({"url": url, "bytes": "*"}), "base64"),
        (json!({"url": url, "text": "a", "bytes": "YQ=="}), "either a text or bytes"),
        (json!({"url": url, "headers": {"Host": "a"}}), "'Host' is set by the gateway"),
        (json!({"url": url, "headers": {"content-length": "1"}}), "is set by the gateway"),
        (json!({"url": url, "headers": {"a b": "1"}}), "no valid name"),
        (json!({"url": url, "headers": {"x": "1\r\ny: 2"}}), "line break"),
        (json!({"url": url, "headers": {"X": "1", "x": "2"}}), "twice"),
        (json!({"url": url, "headers": many}), "at most 32"),
        (json!({"url": url, "headers": {"x": "${secret:KEY"}}), "without a '}'"),
        (json!({"url": url, "headers": {"x": "${secret:NONE}"}}), "there is no secret NONE"),
        (
            json!({"url": format!("http://near.example:{port}/"), "headers": {"x": "${secret:KEY}"}}),
            "the secret KEY is not for the host 'near.example'",
        ),
    ];
    for (request, expected) in table {
        let error = send(&server, request).await.unwrap_err();
        assert!(error.message.contains(expected), "{expected}: {error:?}");
        assert!(!error.message.contains(SECRET), "{error:?}");
    }
    assert!(server.seen().is_empty());
    let off = Http::new(&StdPolicy::default()).unwrap();
    let request = serde_json::from_value(json!({"url": url})).unwrap();
    assert_eq!(off.request(&StdPolicy::default(), "ann", request).await.unwrap_err().code, "not_allowed");
}

fn outcome(error: &HostError) -> Outcome {
    let ToolError { code, message, retryable } = as_tool_error(error);
    Outcome::of(&ToolResult::failed(code, message, retryable), true)
}

fn posted(address: &str) -> Value {
    json!({"url": address, "method": "POST", "text": "x"})
}

#[tokio::test]
async fn what_became_of_a_request_that_changes_something_is_told_truthfully() {
    let server = Server::start().await;
    for path in ["/more", "/stream", "/breaks"] {
        let error = send(&server, posted(&server.url(path))).await.unwrap_err();
        assert_eq!((outcome(&error), error.retryable), (Outcome::Unknown, false), "{path} {error:?}");
        assert_eq!(error.code, "http_failed", "{path} {error:?}");
    }
    // Where it would be redirected to is the program's business.
    for (path, to) in [("/near", "/echo"), ("/far", "http://far.example:1/")] {
        let answer = send(&server, posted(&server.url(path))).await.unwrap();
        assert_eq!((&answer["status"], &answer["headers"]["location"]), (&json!(302), &json!(to)));
    }
    assert_eq!(server.seen().len(), 5, "each was sent once");
    // Nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = Server { address, seen: Arc::default() };
    let error = send(&gone, posted(&gone.url("/echo"))).await.unwrap_err();
    assert_eq!((outcome(&error), error.retryable), (Outcome::Failed, true), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_nobody_confirms_is_not_to_be_repeated() {
    let server = Server::start().await;
    let error = send(&server, posted(&server.url("/hang"))).await.unwrap_err();
    assert_eq!((outcome(&error), error.retryable), (Outcome::Unknown, false), "{error:?}");
}
