//! Network endpoints: which connections are accepted, in which form, and how many.

use firmware_sim::{Glasses, transport};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    namespaces::{OUTSIDE, again_outside},
    world::{WAIT, World, answered, connect, text},
};

async fn get(url: &str) -> (u16, String) {
    // The certificate of this gateway is self-signed.
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build().expect("a client");
    let reply = client.get(url).send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    (reply.status().as_u16(), reply.text().await.expect("its text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_for_both_kinds_of_addresses_knows_its_own_machine() {
    if again_outside("endpoints::a_listener_for_both_kinds_of_addresses_knows_its_own_machine") {
        return;
    }
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
    for path in ["healthz", "try", "glasses"] {
        let (status, told) = get(&format!("http://{OUTSIDE}:{port}/{path}")).await;
        assert_eq!(status, 403, "{path}: {told}");
        assert!(told.contains("https://") && told.contains("listen.plain"), "{path}: {told}");
    }
    assert_eq!(get(&format!("https://{OUTSIDE}:{port}/healthz")).await, (200, "ok\n".to_owned()));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quic_for_both_kinds_of_addresses_serves_each() {
    let world = World::tuned("", |config| config.listen.quic = Some("[::]:0".parse().expect("an address"))).await;
    let port = world.gateway().quic.expect("QUIC is on").port();
    for host in ["127.0.0.1", "[::1]"] {
        let mut options = world.options("quic", "glasses");
        options.target = format!("quic://{host}:{port}").parse().expect("an address");
        let mut glasses = connect(&world.data(), options).await;
        let all = world.gateway().services().roster.all();
        let from: Vec<_> = all.iter().map(|(_, present)| present.via.peer.ip().to_string()).collect();
        assert_eq!(from, [host.trim_matches(['[', ']'])], "an IPv4 address is told as one");
        text(&mut glasses, "what is two plus two").await;
        answered(&mut glasses).await;
        glasses.goodbye().await;
    }
    world.stop().await;
}

/// Places that are reserved for this machine.
const RESERVED: usize = 16;
/// Connections of peers that have not said who they are, in the share of one address with eight connections, and in
/// the places reserved for this machine.
const SILENT_MAX: usize = 1 + RESERVED;

/// Waits until the gateway has closed a connection.
async fn is_closed(link: &mut transport::Link) {
    let closed = async { while let Some(transport::Inbound::Frame(_)) = link.down.recv().await {} };
    tokio::time::timeout(WAIT, closed).await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_who_he_is_takes_no_place_of_those_that_are_known() {
    let world = World::tuned("", |config| config.limits.connections_max = 8).await;
    // Two are known before, and hold their places.
    let mut glasses = world.glasses("wss", "glasses").await;
    let mut ring = world.glasses("quic", "ring").await;
    let open = async |scheme: &str| transport::open(&world.address(scheme).parse().expect("an address")).await;
    // WebSockets that are upgraded and say nothing.
    let mut silent = Vec::new();
    for _ in 0..SILENT_MAX {
        silent.push(open("wss").await.expect("a place"));
    }
    // It is one quota for both transports: one more gets in, and the oldest gives way.
    for (scheme, oldest) in [("wss", 0), ("quic", SILENT_MAX), ("ws", SILENT_MAX + 1)] {
        silent.push(open(scheme).await.unwrap_or_else(|error| panic!("{scheme}: {error}")));
        is_closed(&mut silent[oldest]).await;
    }
    for known in [&mut glasses, &mut ring] {
        text(known, "what is two plus two").await;
        answered(known).await;
    }
    // Known glasses get in at once, and are answered while more come.
    let more = async {
        loop {
            match open("ws").await {
                Ok(link) => drop(link),
                Err(error) => return error,
            }
        }
    };
    let mut again = Glasses::start(world.options("wss", "glasses")).expect("an identity");
    let welcomed = tokio::time::timeout(WAIT, again.welcomed()).await.expect("an answer");
    welcomed.expect("a place");
    text(&mut again, "what is two plus two").await;
    tokio::select! {
        _ = answered(&mut again) => {}
        error = more => panic!("a connection was refused: {error}"),
    }
    world.stop().await;
}

/// Places of peers of one address that have not said who they are, with 64 connections.
const SHARE: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn known_glasses_get_in_while_strangers_come_from_the_same_address() {
    let world = World::tuned("", |config| config.limits.connections_max = 64).await;
    world.glasses("wss", "glasses").await.goodbye().await;
    let open = async |scheme: &str| transport::open(&world.address(scheme).parse().expect("an address")).await;
    // With the places reserved for this machine all are taken.
    let mut silent = Vec::new();
    for _ in 0..SHARE + RESERVED {
        silent.push(open("ws").await.expect("a place"));
    }
    for scheme in ["ws", "wss", "quic"] {
        let mut again = Glasses::start(world.options(scheme, "glasses")).expect("an identity");
        // As many as were there before give way: the glasses would be the next.
        let strangers = async {
            for _ in 1..SHARE {
                silent.push(open("ws").await.expect("a place"));
            }
        };
        let both = async { tokio::join!(again.welcomed(), strangers).0 };
        let welcomed = tokio::time::timeout(WAIT, both).await.expect("an answer");
        welcomed.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        text(&mut again, "what is two plus two").await;
        answered(&mut again).await;
        again.goodbye().await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_stranger_of_an_address_gives_way() {
    if again_outside("endpoints::the_oldest_stranger_of_an_address_gives_way") {
        return;
    }
    let world = World::tuned("", |config| {
        config.listen.web = "0.0.0.0:0".parse().expect("an address");
        config.limits.connections_max = 8;
    })
    .await;
    let address = format!("wss://{OUTSIDE}:{}/glasses", world.web().port()).parse().expect("an address");
    // One place is the share of an address.
    let mut silent = transport::open(&address).await.expect("the first one of a stranger");
    let mut second = transport::open(&address).await.expect("the second one");
    is_closed(&mut silent).await;
    // Another address has its own share, and glasses that are paired get in from the stranger's.
    world.connect(target(&world, "127.0.0.1")).await.goodbye().await;
    world.connect(target(&world, &OUTSIDE.to_string())).await.goodbye().await;
    is_closed(&mut second).await;
    world.stop().await;
}

/// All answers to requests over one connection, which are sent without waiting for any.
async fn pipelined(world: &World, request: &str, count: usize) -> String {
    let mut stream = TcpStream::connect(world.web()).await.expect("a connection");
    drop(stream.write_all(request.repeat(count).as_bytes()).await);
    let mut answers = Vec::new();
    // A connection that is closed with unread requests is reset.
    drop(tokio::time::timeout(WAIT, stream.read_to_end(&mut answers)).await.expect("an end"));
    String::from_utf8(answers).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_has_some_requests_over_one_connection() {
    let world = World::start().await;
    let answers = pipelined(&world, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 40).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 32, "{answers}");
    assert_eq!(answers.matches("connection: close").count(), 1, "{answers}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_wrong_key_the_connection_is_closed() {
    let world = World::start().await;
    for path in ["/mcp", "/api/sdk/simple-storage/wearer", "/appsettings/user/com.example.app"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer a:guess\r\n\r\n");
        let answers = pipelined(&world, &request, 3).await;
        assert_eq!(answers.matches("HTTP/1.1 401").count(), 1, "{path}: {answers}");
    }
    world.stop().await;
}

/// Status of a request from this machine under this name of it.
async fn named(world: &World, path: &str, host: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = pipelined(world, &request, 1).await;
    answer.split(' ').nth(1).expect("a status").parse().expect("a number")
}

/// A page of another site could let its own name resolve to this machine.
#[tokio::test(flavor = "multi_thread")]
async fn programs_are_answered_under_a_name_of_this_machine_only() {
    const PERMISSIONS: &str = "/api/public/permissions/com.example.app";
    let world = World::with("[mcp]\nhosts = [\"box.lan\"]\n").await;
    for (path, found) in [("/healthz", 200), (PERMISSIONS, 404), ("/app-ws", 426)] {
        for host in ["127.0.0.1:8460", "localhost", "192.0.2.7", "lorgnette.local", "Box.lan:8460"] {
            assert_eq!(named(&world, path, host).await, found, "{path} {host}");
        }
        for host in ["evil.example", "box.lan.evil.example", ""] {
            assert_eq!(named(&world, path, host).await, 421, "{path} {host:?}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mini_apps_connect_from_this_machine_unless_they_run_elsewhere() {
    if again_outside("endpoints::mini_apps_connect_from_this_machine_unless_they_run_elsewhere") {
        return;
    }
    let paths = [("/app-ws", 426), ("/tpa-ws", 426), ("/api/public/permissions/a", 404), ("/appsettings/user/a", 401)];
    for (settings, elsewhere) in [("", false), ("[apps]\nurl = \"wss://box.lan:8460/app-ws\"\n", true)] {
        let world = World::tuned(settings, |config| config.listen.web = "0.0.0.0:0".parse().expect("an address")).await;
        let port = world.web().port();
        for (path, found) in paths {
            assert_eq!(named(&world, path, "127.0.0.1").await, found, "{path}");
            let (status, told) = get(&format!("https://{OUTSIDE}:{port}{path}")).await;
            assert_eq!(status, if elsewhere { found } else { 403 }, "{path}: {told}");
            assert_eq!(told.contains("apps.url"), !elsewhere, "{path}: {told}");
        }
        world.stop().await;
    }
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
    const NOTHING: &str = "nothing here\n";
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
