//! Access to MCP: keys, classes, Host and Origin; and the command for standard input and output.

use std::{net::SocketAddr, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Command,
};

use crate::{
    process::{binary, configure, fails},
    world::{WAIT, World, basics, write_secret},
};

const KEY: &str = "correct horse battery staple";

/// Status of an `initialize` with these headers.
async fn knock(world: &World, path: &str, host: &str, headers: &str) -> u16 {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } })
    .to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(world.web()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    String::from_utf8_lossy(&status).split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_right_key_on_the_right_path_gets_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    write_secret(&file, KEY);
    let world = World::with(&format!(
        "[mcp]\nkeys = [{{ user = \"wearer\", class = \"external\", file = {:?} }}]\n",
        file.display().to_string()
    ))
    .await;
    let host = format!("127.0.0.1:{}", world.web().port());
    let right = format!("Authorization: Bearer {KEY}\r\n");
    let origin = |origin: &str| format!("{right}Origin: {origin}\r\n");
    let table = [
        ("/mcp/external", &host, right.clone(), 200),
        ("/mcp/external", &host, String::new(), 401),
        ("/mcp/external", &host, "Authorization: Bearer wrong horse battery staple\r\n".into(), 401),
        ("/mcp/external", &host, format!("Authorization: Basic {KEY}\r\n"), 401),
        ("/mcp", &host, right.clone(), 403),
        ("/mcp/copilot", &host, right.clone(), 403),
        ("/mcp", &host, String::new(), 401),
        ("/mcp/else", &host, right.clone(), 404),
        ("/mcp/external", &"evil.example".to_owned(), right.clone(), 403),
        ("/mcp/external", &host, origin("http://evil.example"), 403),
        ("/mcp/external", &host, origin("null"), 403),
        ("/mcp/external", &host, origin(&format!("http://{host}")), 200),
    ];
    for (path, host, headers, wanted) in table {
        assert_eq!(knock(&world, path, host, &headers).await, wanted, "{path} {host} {headers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_it_is_not_there() {
    let world = World::with("[mcp]\nhttp = false\n").await;
    assert_eq!(knock(&world, "/mcp", "localhost", "").await, 404);
}

/// Status line of a request over a connection of its own.
async fn status(address: SocketAddr, request: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = request.replace("HOST", &address.to_string()).replace('\n', "\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    String::from_utf8_lossy(&status).split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_named_ways_in_are_there() {
    const GLASSES: &str = "GET /glasses HTTP/1.1\nHost: HOST\nConnection: close\n\n";
    const PAGE: &str = "GET /try HTTP/1.1\nHost: HOST\nConnection: close\n\n";
    const MCP: &str = "POST /mcp HTTP/1.1\nHost: HOST\nConnection: close\nContent-Length: 0\n\n";
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = configure(&data, "");
    let mut seen = Vec::new();
    for only in ["websocket", "quic", "page", "mcp", "websocket,quic,page,mcp"] {
        let mut child = Command::new(binary())
            .args(["serve", "--only", only, "--config"])
            .arg(&file)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the gateway runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let ready = tokio::time::timeout(WAIT, lines.next_line()).await.expect("in time").unwrap().expect("a line");
        let after = |word: &str| {
            let mut words = ready.split_whitespace().skip_while(move |other| *other != word);
            words.nth(1).unwrap_or_default().to_owned()
        };
        let web = after("web").parse().expect("an address");
        let there = |status: u16| status != 404;
        seen.push((
            only,
            there(status(web, GLASSES).await),
            after("quic") != "off",
            there(status(web, PAGE).await),
            there(status(web, MCP).await),
        ));
        child.kill().await.expect("killed");
    }
    let wanted = [
        ("websocket", true, false, false, false),
        ("quic", false, true, false, false),
        ("page", false, false, true, false),
        ("mcp", false, false, false, true),
        ("websocket,quic,page,mcp", true, true, true, true),
    ];
    assert_eq!(seen, wanted);
    let error = fails(&["serve", "--only", "telepathy"]).await;
    assert!(error.contains("websocket") && error.contains("mcp"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_reaches_the_running_gateway() {
    let world = World::start().await;
    let file = world.folder().join("client.toml");
    std::fs::write(&file, basics(&world.data())).unwrap();
    let mut child = Command::new(binary())
        .args(["mcp", "--class", "external", "--config"])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the command runs");
    let mut input = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "calculator.evaluate", "arguments": { "expression": "6*7" } } }),
    ];
    for message in messages {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let answered = async {
        loop {
            let line = lines.next_line().await.expect("a line").expect("an answer");
            // Standard output carries only the protocol.
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == 2 {
                return message;
            }
        }
    };
    let answer = tokio::time::timeout(WAIT, answered).await.expect("in time");
    assert!(answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("42")), "{answer}");
    drop(input);
    let status = tokio::time::timeout(WAIT, child.wait()).await.expect("it ends with its input");
    assert!(status.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_the_command_says_what_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.toml");
    std::fs::write(&file, basics(&folder.path().join("data"))).unwrap();
    let error = fails(&["mcp", "--config", &file.display().to_string()]).await;
    assert!(error.contains("lorgnette serve"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_what_is_wrong_with_the_section() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let servers = folder.path().join("mcp.json");
    std::fs::write(&servers, r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${LORGNETTE_UNSET}"}}}}"#).unwrap();
    for (text, words) in [
        ("[mcp]\nhtpp = true\n", "htpp"),
        ("[mcp]\nfile = \"mcp.json\"\n", "LORGNETTE_UNSET is not set"),
        ("[mcp]\nfile = \"nowhere.json\"\n", "nowhere.json"),
        ("[mcp]\nflatten = \"b\"\n", "no server"),
        ("[mcp]\nkeys = [{ user = \"u\", class = \"external\", env = \"LORGNETTE_UNSET\" }]\n", "LORGNETTE_UNSET"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = fails(&["check", "--config", &file.display().to_string()]).await;
        assert!(error.contains(words), "{text}: {error}");
    }
}
