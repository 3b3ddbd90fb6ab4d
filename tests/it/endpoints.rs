//! Network endpoints: which connections are accepted, in which form, and how many.

use firmware_sim::Glasses;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    peer::{Peer, Said},
    world::{WAIT, World, connect, outside, until},
};

async fn get(url: &str) -> (u16, String) {
    // The certificate of this gateway is self-signed.
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build().expect("a client");
    let reply = client.get(url).send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    (reply.status().as_u16(), reply.text().await.expect("its text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_for_both_kinds_of_addresses_knows_its_own_machine() {
    let world = World::tuned("", |config| config.listen.web = "[::]:0".parse().expect("an address")).await;
    let port = world.web().port();
    for host in ["127.0.0.1", "[::1]"] {
        assert_eq!(get(&format!("http://{host}:{port}/healthz")).await, (200, "ok\n".to_owned()), "{host}");
        assert_eq!(get(&format!("http://{host}:{port}/try")).await.0, 200, "{host}");
    }
    let mut options = world.options("ws", "glasses");
    options.target = format!("ws://127.0.0.1:{port}/glasses").parse().expect("an address");
    connect(&world.data(), options).await.goodbye().await;
    // From other machines TLS is required, and a refusal says so.
    let Some(outside) = outside() else { return world.stop().await };
    for path in ["healthz", "try", "glasses"] {
        let (status, told) = get(&format!("http://{outside}:{port}/{path}")).await;
        assert_eq!(status, 403, "{path}: {told}");
        assert!(told.contains("https://") && told.contains("listen.plain"), "{path}: {told}");
    }
    assert_eq!(get(&format!("https://{outside}:{port}/healthz")).await, (200, "ok\n".to_owned()));
    world.stop().await;
}

/// Two connections at most, one of which may be in its handshake.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_keeps_its_place() {
    let world = World::tuned("", |config| {
        config.listen.web = "0.0.0.0:0".parse().expect("an address");
        config.limits.connections_max = 2;
    })
    .await;
    let port = world.web().port();
    let mut glasses = world.connect(target(&world, "127.0.0.1")).await;
    // A silent connection occupies the only place for handshakes, and the last one of all.
    let silent = Peer::connect_to(&format!("wss://127.0.0.1:{port}/glasses"), &world.folder().join("silent")).await;
    let mut crowded =
        Peer::connect_to(&format!("wss://127.0.0.1:{port}/glasses"), &world.folder().join("crowded")).await;
    let said = crowded.next().await;
    assert!(matches!(&said, Said::Reject(code, _) if code == "busy"), "{said:?}");
    assert_eq!(crowded.next().await, Said::Closed);
    if let Some(outside) = outside() {
        let refused = reqwest::Client::builder().danger_accept_invalid_certs(true).build().expect("a client");
        let refused = refused.get(format!("https://{outside}:{port}/healthz")).send().await;
        assert!(refused.is_err(), "{refused:?}");
    }
    // Connections from this machine and those in a session are still served.
    assert_eq!(get(&format!("http://127.0.0.1:{port}/healthz")).await, (200, "ok\n".to_owned()));
    glasses.text("what is two plus two").await.expect("sent");
    until(&mut glasses, "an answer", |event| matches!(event.seen, firmware_sim::Seen::SpeechStart { .. })).await;
    drop(silent);
    // Its place is free again, so that the next one is accepted.
    let again = async {
        loop {
            let mut other = Glasses::start(target(&world, "127.0.0.1")).expect("an identity");
            if other.welcomed().await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT, again).await.expect("a place");
    world.stop().await;
}

fn target(world: &World, host: &str) -> firmware_sim::Options {
    let mut options = world.options("wss", "glasses");
    options.target = format!("wss://{host}:{}/glasses", world.web().port()).parse().expect("an address");
    options
}

/// The answers to raw requests, each over a connection of its own.
async fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let head = format!("{request} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_has_its_paths_and_answers_every_method() {
    const NOTHING: &str = "nothing here; people open /try on this machine, glasses connect to /glasses\n";
    const SOCKET: &str = "this path speaks WebSocket: /glasses as in PROTOCOL.md, /app-ws as in docs/apps-host.md\n";
    const NO_USER: &str = r#"{"error":"the path names no user","success":false}"#;
    const NO_SESSION: &str = r#"{"error":"no such session runs","success":false}"#;
    const NO_APP: &str = r#"{"error":"no such app is installed","success":false}"#;
    let world = World::start().await;
    for (request, status, body) in [
        ("POST /healthz", 200, "ok\n"),
        ("OPTIONS /healthz?x", 200, "ok\n"),
        ("GET /healthz/", 404, NOTHING),
        ("DELETE /", 303, "the page is at /try\n"),
        ("OPTIONS /try", 405, "wrong method\n"),
        ("POST /try/app.js", 405, "wrong method\n"),
        ("GET /try/pair", 405, "wrong method\n"),
        ("POST /try/pair/", 404, "the page has no such file\n"),
        ("GET /tryx", 404, NOTHING),
        ("GET /glasses", 426, SOCKET),
        ("POST /app-ws", 426, SOCKET),
        ("GET /tpa-ws", 426, SOCKET),
        ("GET /app-ws/", 404, NOTHING),
        ("GET /mcp/", 404, NOTHING),
        ("GET /api/sdk/simple-storage", 404, NOTHING),
        ("GET /api/sdk/simple-storage/", 400, NO_USER),
        ("PATCH /app-ws/api/sdk/simple-storage/%ff", 400, NO_USER),
        ("GET /app-ws/app-ws/api/sdk/simple-storage/a", 404, NOTHING),
        ("GET /app-wsx/api/sdk/simple-storage/a", 404, NOTHING),
        ("PUT /tpa-ws/appsettings/user/a/b?c", 401, NO_SESSION),
        ("GET /api/public/permissions/", 404, NO_APP),
        ("HEAD /healthz", 200, "ok\n"),
        ("HEAD /try/app.js", 405, "wrong method\n"),
        ("HEAD /appsettings/user/a", 401, NO_SESSION),
        ("OPTIONS *", 404, NOTHING),
        ("GET /%74ry", 404, NOTHING),
        ("FOO /nothing", 404, NOTHING),
    ] {
        let answer = exchange(world.web().port(), request).await;
        let (head, said) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{request}: {answer}");
        let is_head = request.starts_with("HEAD");
        assert_eq!(said, if is_head { "" } else { body }, "{request}");
    }
    world.stop().await;
}
