//! Devices that violate the protocol: each gets an error with the reason, and the gateway continues to serve others.

use std::{net::SocketAddr, time::Duration};

use device_protocol::{Codec, GoodbyeReason, Up, limits, up};
use firmware_sim::Seen;
use gateway::control::{Answer, Request};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::{
    peer::{Peer, Said, frame},
    world::{WAIT, World, answered, text},
};

/// Checks that another device's request is still answered.
async fn still_serves(world: &World) {
    let mut glasses = world.glasses("wss", "witness").await;
    text(&mut glasses, "what is six times seven").await;
    let answer = answered(&mut glasses).await;
    assert!(answer.contains("42") || answer.contains("forty"), "{answer}");
    glasses.goodbye().await;
}

fn heartbeat() -> Up<'static> {
    Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 })
}

fn battery(percent: u8) -> Up<'static> {
    Up::Battery(up::Battery { percent, charging: false })
}

fn sound(codec: Codec, rate_hz: u32, payload: &[u8]) -> Up<'_> {
    Up::Audio(up::Audio { codec, rate_hz, duration_us: 20_000, payload })
}

/// A control frame of a kind that no version defines yet.
fn unknown_kind(sequence: u8) -> Vec<u8> {
    // Version 1, kind 0x1ffe (up, control), three bytes of stamp and two that only a later version reads.
    vec![1, 0, 0xfe, 0x1f, 5, 0, 0, 0, sequence, 0, 1, 9, 9]
}

/// The same for the link.
fn unknown_link_kind() -> Vec<u8> {
    vec![1, 0, 0xfe, 0x0f, 5, 0, 0, 0, 0, 0, 1, 9, 9]
}

/// Waits until the gateway has handled everything that was sent so far.
async fn settled(peer: &mut Peer) {
    peer.raw(frame(0, heartbeat())).await;
    loop {
        match peer.next().await {
            Said::Other("heartbeat") => return,
            Said::Other(_) => {}
            said => panic!("{said:?}"),
        }
    }
}

/// How a session ends after these envelopes.
async fn ends_with(world: &World, scheme: &str, envelopes: Vec<Vec<u8>>) -> Said {
    let mut peer = Peer::welcomed(world, scheme, "peer").await;
    for envelope in envelopes {
        peer.raw(envelope).await;
    }
    peer.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_frames_end_the_session_with_their_reason() {
    let world = World::start().await;
    let whole = frame(1, battery(50));
    let mut overlong = whole.clone();
    overlong[4..8].copy_from_slice(&(limits::FRAME_BYTES_MAX as u32).to_le_bytes());
    let mut version = whole.clone();
    version[0] = 9;
    let mut downwards = whole.clone();
    downwards[3] |= 0x80;
    let hello_again = frame(0, Up::Proof(up::Proof { nonce: [0; 32], signature: [0; 64], invitation: [0; 32] }));
    for scheme in ["ws", "wss", "quic"] {
        let mut cases = vec![
            ("malformed", vec![overlong.clone()]),
            ("malformed", vec![version.clone()]),
            ("malformed", vec![downwards.clone()]),
            ("bad_sequence", vec![whole.clone(), frame(3, battery(50))]),
            ("unexpected_message", vec![hello_again.clone()]),
            ("bad_format", vec![frame(1, sound(Codec::Opus, 16_000, &[0xf8, 0xff, 0xfe]))]),
            ("bad_format", vec![frame(1, sound(Codec::Pcm16, 48_000, &[0; 1_920]))]),
        ];
        if scheme != "quic" {
            // A stream has no envelope ends: the gateway waits for the rest of a truncated envelope.
            cases.push(("malformed", vec![whole[..whole.len() - 1].to_vec()]));
            cases.push(("malformed", vec![Vec::new()]));
            cases.push(("malformed", vec![vec![0; limits::FRAME_BYTES_MAX + 1]]));
            // Over QUIC sound is sent in datagrams, and of so many at once some are dropped.
            let undecodable = (1..=100).map(|number| frame(number, sound(Codec::Pcm16, 16_000, &[7; 641])));
            cases.push(("bad_format", undecodable.collect()));
        }
        for (wanted, envelopes) in cases {
            let shown: Vec<_> = envelopes.iter().map(|bytes| bytes.len()).collect();
            match ends_with(&world, scheme, envelopes).await {
                Said::Goodbye(reason, words) => {
                    assert_eq!(reason, wanted, "{scheme} {shown:?}: {words}");
                    assert!(!words.is_empty());
                }
                said => panic!("{scheme} {wanted} {shown:?}: {said:?}"),
            }
        }
    }
    still_serves(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_frames_and_unknown_kinds_are_passed_over() {
    let world = World::start().await;
    for scheme in ["ws", "quic"] {
        let mut peer = Peer::welcomed(&world, scheme, "peer").await;
        peer.raw(frame(1, battery(50))).await;
        peer.raw(frame(1, battery(50))).await;
        peer.raw(unknown_kind(2)).await;
        peer.raw(frame(3, battery(51))).await;
        settled(&mut peer).await;
        let goodbye = up::Goodbye { reason: GoodbyeReason::PowerOff, message: "", retry_after_ms: 0 };
        peer.control(Up::Goodbye(goodbye)).await;
    }
    still_serves(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_handshakes_are_rejected_with_their_reason() {
    let world = World::start().await;
    let mut version = frame(0, heartbeat());
    version[0] = 2;
    let mut overlong = frame(0, heartbeat());
    overlong[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    for scheme in ["ws", "wss", "quic"] {
        for (wanted, bytes) in [
            ("unsupported_version", version.clone()),
            ("malformed", overlong.clone()),
            ("unexpected_message", frame(0, heartbeat())),
            ("unexpected_message", unknown_kind(1)),
        ] {
            let mut peer = Peer::connect(&world, scheme, "stranger").await;
            // An unknown message about the link is ignored.
            peer.raw(unknown_link_kind()).await;
            peer.raw(bytes).await;
            match peer.next().await {
                Said::Reject(code, words) => assert_eq!(code, wanted, "{scheme}: {words}"),
                said => panic!("{scheme} {wanted}: {said:?}"),
            }
            assert_eq!(peer.next().await, Said::Closed);
        }
    }
    still_serves(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_floods_is_told_and_closed() {
    let world = World::start().await;
    for scheme in ["ws", "wss", "quic"] {
        let mut peer = Peer::welcomed(&world, scheme, "peer").await;
        let up = peer.link.up.clone();
        // Frames without an answer: answers would fill the downlink first.
        let flood = tokio::spawn(async move {
            let bytes: bytes::Bytes = frame(0, battery(50)).into();
            while up.send(bytes.clone()).await.is_ok() {}
        });
        let said = peer.end().await;
        assert!(matches!(&said, Said::Goodbye(reason, _) if reason == "flooding"), "{scheme}: {said:?}");
        drop(peer);
        flood.await.unwrap();
    }
    still_serves(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_floods_before_being_known_is_told_and_closed() {
    let world = World::start().await;
    for scheme in ["ws", "wss", "quic"] {
        // A device that waits for its pairing may send heartbeats for two minutes: a few at a time.
        let mut peer = Peer::connect(&world, scheme, "stranger").await;
        let handshake = peer.hello().await;
        peer.prove(&handshake).await;
        let up = peer.link.up.clone();
        let flood = tokio::spawn(async move {
            let bytes: bytes::Bytes = frame(0, heartbeat()).into();
            while up.send(bytes.clone()).await.is_ok() {}
        });
        let said = peer.end().await;
        assert!(matches!(&said, Said::Reject(code, _) if code == "rate_limited"), "{scheme}: {said:?}");
        drop(peer);
        flood.await.unwrap();
    }
    still_serves(&world).await;
}

/// What the gateway still says on a WebSocket at which, after the first ones, these bytes are sent again and again.
async fn told_after(world: &World, first: &[u8], again: &[u8]) -> String {
    let (mut read, mut write) = TcpStream::connect(world.web()).await.expect("a connection").into_split();
    let request = upgrade(world, "", "Sec-WebSocket-Protocol: lorgnette.v1\r\n");
    write.write_all(request.as_bytes()).await.expect("sent");
    write.write_all(first).await.expect("sent");
    let many = again.repeat(1_000);
    let sending = tokio::spawn(async move { while write.write_all(&many).await.is_ok() {} });
    let mut told = Vec::new();
    drop(tokio::time::timeout(WAIT, read.read_to_end(&mut told)).await.expect("the connection ends"));
    sending.abort();
    String::from_utf8_lossy(&told).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_and_fragments_count_as_well() {
    let world = World::start().await;
    const PING: [u8; 6] = [0x89, 0x80, 1, 2, 3, 4];
    // The beginning of a message, and more of it, each without a byte.
    const BEGIN: [u8; 6] = [0x02, 0x80, 1, 2, 3, 4];
    const MORE: [u8; 6] = [0x00, 0x80, 1, 2, 3, 4];
    for (what, first, again) in [("pings", PING, PING), ("fragments", BEGIN, MORE)] {
        let told = told_after(&world, &first, &again).await;
        assert!(told.contains("sends too much"), "{what}: {told}");
    }
    still_serves(&world).await;
}

/// A relay that forwards the uplink and, after the challenge and the welcome, nothing of the downlink, like glasses
/// whose program hangs. Its buffers are small, so that it is full soon.
async fn dam(gateway: SocketAddr, open: CancellationToken) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        let (device, _) = listener.accept().await.expect("the device");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let gateway = socket.connect(gateway).await.expect("the gateway");
        let (mut from_device, mut to_device) = device.into_split();
        let (mut from_gateway, mut to_gateway) = gateway.into_split();
        let down = async {
            tokio::select! {
                _ = tokio::io::copy(&mut from_gateway, &mut to_device) => {}
                () = open.cancelled() => std::future::pending().await,
            }
        };
        // Ends when the gateway accepts nothing more.
        tokio::select! {
            _ = tokio::io::copy(&mut from_device, &mut to_gateway) => {}
            () = down => {}
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_never_reads_is_let_go() {
    // Enough answers to fill the buffers on the path within seconds.
    let world = World::with("[limits]\nframes_per_s = 10000\nbytes_per_s = 10000000\n").await;
    for scheme in ["ws", "quic"] {
        world.glasses(scheme, "peer").await.goodbye().await;
        let closed = CancellationToken::new();
        let mut peer = if scheme == "ws" {
            let relay = dam(world.web(), closed.clone()).await;
            Peer::connect_to(&format!("ws://{relay}/glasses"), &world.folder().join("peer")).await
        } else {
            Peer::connect(&world, scheme, "peer").await
        };
        peer.shake().await;
        closed.cancel();
        let fingerprint = peer.identity.fingerprint();
        let connected = || async {
            match world.ask(Request::Devices).await {
                Ok(Answer::Devices { paired, .. }) => {
                    paired.iter().any(|device| device.device == fingerprint && device.session.is_some())
                }
                other => panic!("{other:?}"),
            }
        };
        assert!(connected().await, "{scheme}");
        let (up, first) = (peer.link.up.clone(), peer.control + 1);
        let asking = tokio::spawn(async move {
            // Each one changes the listening indicator, which the gateway reports.
            let mut every = tokio::time::interval(Duration::from_millis(1));
            for sequence in (first..).step_by(5) {
                every.tick().await;
                for sequence in sequence..sequence + 5 {
                    let mute = Up::Mute(up::Mute { muted: sequence % 2 == 0 });
                    if up.send(frame(sequence, mute).into()).await.is_err() {
                        return;
                    }
                }
            }
        });
        let gone = tokio::time::timeout(WAIT, async {
            let mut every = tokio::time::interval(Duration::from_millis(100));
            while connected().await {
                every.tick().await;
            }
        });
        gone.await.unwrap_or_else(|_| panic!("{scheme}: it still holds its session"));
        drop(peer);
        asking.abort();
    }
    still_serves(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_vanishes_leaves_nothing_behind() {
    let world = World::start().await;
    for scheme in ["wss", "quic"] {
        let peer = Peer::welcomed(&world, scheme, "peer").await;
        for number in 1..=20 {
            peer.raw(frame(number, sound(Codec::Pcm16, 16_000, &[7; 640]))).await;
        }
        drop(peer);
        // The same device reconnects at once, and is served; where the gateway has read the first frame of the old connection behind
        // the new `hello`, which therefore looks older, a second later.
        let mut options = world.options(scheme, "peer");
        options.reconnect = true;
        let mut glasses = world.connect(options).await;
        text(&mut glasses, "what is six times seven").await;
        answered(&mut glasses).await;
        let log = glasses.goodbye().await;
        assert!(!log.since(0).iter().any(|event| matches!(event.seen, Seen::Goodbye { .. })));
    }
    still_serves(&world).await;
}

/// Sends bytes to the TCP port; returns the answer, until the gateway closes or the answer is complete.
async fn http(world: &World, request: &str) -> String {
    let mut stream = TcpStream::connect(world.web()).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut bytes = vec![0; 4_096];
    let read = tokio::time::timeout(WAIT, stream.read(&mut bytes)).await;
    let length = read.expect("an answer in time").expect("an answer");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn upgrade(world: &World, origin: &str, protocol: &str) -> String {
    let host = world.web();
    format!(
        "GET /glasses HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{origin}{protocol}\r\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_glasses() {
    let world = World::start().await;
    let ours = "Sec-WebSocket-Protocol: lorgnette.v1\r\n";
    let own_page = format!("Origin: http://{}\r\n", world.web());
    for (request, status) in [
        (upgrade(&world, "", ours), "101"),
        (upgrade(&world, &own_page, ours), "101"),
        (upgrade(&world, "Origin: https://evil.example\r\n", ours), "403"),
        (upgrade(&world, "Origin: null\r\n", ours), "403"),
        (upgrade(&world, "", "Sec-WebSocket-Protocol: chat\r\n"), "400"),
        (upgrade(&world, "", ""), "400"),
        ("GET /glasses HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "426"),
        ("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
        ("\r\n\r\nnonsense\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(20_000)), "431"),
    ] {
        let answer = http(&world, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {request} -> {answer}");
    }
    still_serves(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_ends_is_cut() {
    let world = World::start().await;
    // Nothing at all; an endless header, byte by byte; a TLS ClientHello that stops in the middle.
    for (first, drip) in [("", ""), ("GET /glasses HTTP/1.1\r\n", "x"), ("\u{16}\u{3}\u{1}", "")] {
        let (mut read, mut write) = TcpStream::connect(world.web()).await.expect("a connection").into_split();
        let dripping = tokio::spawn(async move {
            if write.write_all(first.as_bytes()).await.is_err() {
                return;
            }
            let mut every = tokio::time::interval(Duration::from_millis(200));
            loop {
                every.tick().await;
                if write.write_all(drip.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let mut bytes = Vec::new();
        let closed = tokio::time::timeout(WAIT, read.read_to_end(&mut bytes)).await;
        assert!(closed.is_ok(), "{first:?}: the connection is still open");
        dripping.abort();
    }
    still_serves(&world).await;
}
