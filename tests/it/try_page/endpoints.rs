//! The endpoints of the page, by raw requests.

use firmware_sim::identity::Identity;
use gateway::store::{DeviceRecord, Write};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::fixture;
use crate::peer::{Peer, Said};

const KEY_DIGITS: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Sends one raw request; returns status line, headers and body.
async fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn get(port: u16, path: &str, host: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(port, &request).await
}

async fn pair(port: u16, host: &str, headers: &str, body: &str) -> String {
    let request = format!(
        "POST /try/pair HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    exchange(port, &request).await
}

/// The page shows which model answers, every machine that words are sent to, and where sound is sent.
#[tokio::test]
async fn the_page_knows_who_answers_and_who_hears() {
    let settings = |model: &str, hears: &str| {
        format!(
            "[model]\nkind = \"chat_completions\"\nmodel = \"qwen3\"\nbase_url = \"{model}\"\n\
             [hearing]\nremote = {{ base_url = \"http://192.0.2.1:9/v1\", model = \"m\", use = \"{hears}\" }}"
        )
    };
    let hears = |always: bool| json!({"host": "192.0.2.1", "here": false, "always": always});
    for (settings, expected, hears) in [
        (String::new(), Value::Null, Value::Null),
        (
            settings("http://127.0.0.1:9/v1", "instead"),
            json!({"name": "qwen3", "host": "127.0.0.1", "here": true}),
            hears(true),
        ),
        (
            settings("https://models.example/v1", "fallback"),
            json!({"name": "qwen3", "host": "models.example", "here": false}),
            hears(false),
        ),
    ] {
        let fixture = fixture(&settings).await;
        let answer = get(fixture.port, "/try/about.json", &format!("127.0.0.1:{}", fixture.port)).await;
        let about: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!((&about["model"], &about["hears"], &about["console"]), (&expected, &hears, &Value::Bool(true)));
        let texts = if settings.contains("models.example") { json!(["models.example"]) } else { json!([]) };
        assert_eq!((&about["texts"], &about["apps"]), (&texts, &json!([])));
        fixture.running.stop().await;
    }
}

#[tokio::test]
async fn the_endpoints_of_the_page() {
    let fixture = fixture("").await;
    let port = fixture.port;
    let host = format!("127.0.0.1:{port}");
    let answer = get(port, "/try", &host).await;
    assert_eq!(status(&answer), 200);
    let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
    for header in [
        "content-security-policy: default-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "content-type: text/html",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    for (path, host, expected) in [
        ("/try", "localhost", 200),
        ("/try/app.js", &host, 200),
        ("/try/about.json", &host, 200),
        ("/", &host, 303),
        ("/try/nothing.js", &host, 404),
        ("/try/../try/pair", &host, 404),
        ("/try", "evil.example", 403),
        ("/try/app.js", "127.0.0.1.evil.example", 403),
        ("/try/about.json", "evil.example", 403),
        ("/try/pair", &host, 405),
    ] {
        let answer = get(port, path, host).await;
        assert_eq!(status(&answer), expected, "{path} of {host}");
    }

    let own = format!("Origin: http://{host}\r\n");
    let script = &format!("X-Lorgnette-Try: {}\r\n", fixture.token());
    let guessed = format!("{own}X-Lorgnette-Try: 1\r\n");
    let elsewhere = format!("Origin: http://evil.example\r\n{script}");
    let other_port = format!("Origin: http://127.0.0.1:1\r\n{script}");
    let sealed = format!("Origin: null\r\n{script}");
    let good = format!("{own}{script}");
    let proxied = format!("{good}X-Forwarded-For: 203.0.113.9\r\n");
    for (why, host, headers, body, expected) in [
        ("foreign origin", host.as_str(), elsewhere.as_str(), KEY_DIGITS, 403),
        ("another port", &host, &other_port, KEY_DIGITS, 403),
        ("sealed frame", &host, &sealed, KEY_DIGITS, 403),
        ("no origin", &host, script, KEY_DIGITS, 403),
        ("no header of the script", &host, &own, KEY_DIGITS, 403),
        ("another token", &host, &guessed, KEY_DIGITS, 403),
        ("through a proxy", &host, &proxied, KEY_DIGITS, 403),
        ("foreign host", "evil.example", &good, KEY_DIGITS, 403),
        ("no key", &host, &good, "", 400),
        ("no hexadecimal", &host, &good, &"zz".repeat(32), 400),
        ("too long", &host, &good, &"00".repeat(4096), 400),
        ("our page", &host, &good, KEY_DIGITS, 200),
        ("our page once more", &host, &good, KEY_DIGITS, 403),
    ] {
        let answer = pair(port, host, headers, body).await;
        assert_eq!(status(&answer), expected, "{why}: {answer}");
    }
    fixture.running.stop().await;
}

/// A program on this machine that has the operator's link, and keys of others.
#[tokio::test]
async fn the_link_pairs_no_key_that_is_revoked_or_waits() {
    let fixture = fixture("").await;
    let host = format!("127.0.0.1:{}", fixture.port);
    let headers = format!("Origin: http://{host}\r\nX-Lorgnette-Try: {}\r\n", fixture.token());
    let digits = |identity: &Identity| identity.public_key().map(|byte| format!("{byte:02x}")).concat();
    let address = format!("ws://{host}/glasses");

    // Somebody's glasses wait for the operator.
    let mut waiting = Peer::connect_to(&address, &fixture.folder.path().join("waiting")).await;
    let handshake = waiting.hello().await;
    waiting.prove(&handshake).await;
    assert_eq!(waiting.next().await, Said::Other("pairing_code"));
    let answer = pair(fixture.port, &host, &headers, &digits(&waiting.identity)).await;
    assert!(status(&answer) == 409 && answer.contains("waits for pairing"), "{answer}");

    // A browser that was shut out.
    let revoked = Identity::load_or_make(&fixture.folder.path().join("revoked")).unwrap();
    let device = DeviceRecord {
        key: revoked.public_key(),
        name: "Browser".to_owned(),
        user: "wearer".to_owned(),
        model: "Lorgnette page".to_owned(),
        paired_wall_ms: 0,
        revoked: false,
    };
    for device in [device.clone(), DeviceRecord { revoked: true, ..device }] {
        let write = Write::PutDevice { id: revoked.fingerprint(), device };
        fixture.running.services().store.write(write).await.unwrap();
    }
    let answer = pair(fixture.port, &host, &headers, &digits(&revoked)).await;
    assert!(status(&answer) == 409 && answer.contains("revoked"), "{answer}");
    let mut peer = Peer::connect_to(&address, &fixture.folder.path().join("revoked")).await;
    let handshake = peer.hello().await;
    peer.prove(&handshake).await;
    let said = peer.next().await;
    assert!(matches!(&said, Said::Reject(code, _) if code == "revoked"), "{said:?}");

    // Neither has used up the link.
    let answer = pair(fixture.port, &host, &headers, KEY_DIGITS).await;
    assert_eq!(status(&answer), 200, "{answer}");
    fixture.running.stop().await;
}

#[tokio::test]
async fn switched_off_it_does_not_exist() {
    let fixture = fixture("try_page = false").await;
    let host = format!("127.0.0.1:{}", fixture.port);
    for path in ["/", "/try", "/try/", "/try/app.js", "/try/about.json"] {
        let answer = get(fixture.port, path, &host).await;
        assert!(status(&answer) == 404 && answer.contains("`listen.try_page = true`"), "{path}: {answer}");
    }
    let headers = format!("Origin: http://{host}\r\nX-Lorgnette-Try: 1\r\n");
    let answer = pair(fixture.port, &host, &headers, KEY_DIGITS).await;
    assert_eq!(status(&answer), 404);
    fixture.running.stop().await;
}
