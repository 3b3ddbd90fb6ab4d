//! The addresses that the client in C takes, and what it says of others.

use std::process::Stdio;

use gateway::control::Request;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

use super::{
    gateway::{Gateway, run},
    sanitized_client, talking,
};
use crate::world::{USER, WAIT, World};

/// What is no address, and why.
const WRONG: [(&str, &str); 22] = [
    ("", "no port: give the gateway as HOST:PORT or [IPV6]:PORT"),
    ("localhost", "no port"),
    ("[::1]", "no port"),
    ("[::1]8460", "no port"),
    ("::1", "an IPv6 address needs brackets"),
    ("::1:8460", "an IPv6 address needs brackets"),
    ("2001:db8::1", "an IPv6 address needs brackets"),
    ("fe80::1%lo:8460", "an IPv6 address needs brackets"),
    ("::1]:8460", "an IPv6 address needs brackets"),
    ("[::1:8460", "the bracket behind the IPv6 address is missing"),
    ("[", "the bracket behind the IPv6 address is missing"),
    ("[fe80::1%lo]:8460", "an address with a zone is not taken"),
    ("[127.0.0.1]:8460", "no IPv6 address in the brackets"),
    ("[::1::]:8460", "no IPv6 address in the brackets"),
    ("[]:8460", "no host"),
    (":8460", "no host"),
    ("localhost:", "a port is a number from 1 to 65535"),
    ("localhost:0", "a port is a number from 1 to 65535"),
    ("localhost:65536", "a port is a number from 1 to 65535"),
    ("[::1]:184467440737095516160", "a port is a number from 1 to 65535"),
    ("[::1]:-1", "a port is a number from 1 to 65535"),
    ("[::1]:https", "a port is a number from 1 to 65535"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_client_takes_addresses_of_both_kinds_and_says_what_is_wrong_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let state = folder.path().join("state");
    let long = format!("{}:8460", "a".repeat(256));
    for (address, reason) in WRONG.into_iter().chain([(long.as_str(), "no host of 1 to 255 characters")]) {
        let ended = run(&client, &state, address, &[]).await;
        assert!(ended.code == Some(1) && ended.complaint.contains(reason), "{address}: {ended:?}");
    }
    // By name there may be other addresses first, where nobody listens.
    for (place, name) in [("127.0.0.1", "localhost"), ("[::1]", "[0:0::1]")] {
        let gateway = Gateway::start(&format!("{place}:0")).await;
        let port = gateway.address.port();
        let address = format!("{place}:{port}");
        for address in [address.as_str(), &format!("{name}:{port}")] {
            let (state, script) = (gateway.state(), async {
                let (mut inbound, _outbound) = gateway.welcomed().await;
                talking::heard(&mut inbound).await;
            });
            let (ended, ()) = tokio::join!(run(&client, &state, address, &["--wait", "0"]), script);
            assert_eq!(ended.code, Some(0), "{address}: {ended:?}");
        }
        let requested = async { gateway.upgraded().await.1 };
        let (_, request) = tokio::join!(gateway.visited(&client, &[]), requested);
        assert!(request.contains(&format!("\r\nHost: {address}\r\n")), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_at_an_ipv6_address_pairs_the_client() {
    let world = World::tuned("", |config| config.listen.web = "[::1]:0".parse().expect("an address")).await;
    let client = sanitized_client(world.folder());
    let mut child = Command::new(client)
        .arg(world.folder().join("c"))
        .arg(world.web().to_string())
        .args(["--wait", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped")).lines();
    let visit = async {
        let mut words = String::new();
        while let Some(line) = out.next_line().await.expect("a line") {
            if let Some(code) = line.strip_prefix("pairing code ") {
                let (user, name) = (USER.to_owned(), String::new());
                let request = Request::PairCode { code: code.to_owned(), user, name };
                world.ask(request).await.expect("the code is taken");
            }
            words += &line;
            words.push('\n');
        }
        child.stderr.take().expect("piped").read_to_string(&mut words).await.expect("its errors");
        (child.wait().await.expect("a status"), words)
    };
    let (status, words) = tokio::time::timeout(WAIT, visit).await.expect("it ends in time");
    assert!(status.success() && words.contains("welcomed by Lorgnette"), "{status}: {words}");
}
