//! How connections end: messages that were sent last still arrive, whatever else was in progress.

use std::{net::SocketAddr, path::Path, sync::Arc};

use device_protocol::{
    ALPN, Decoded, Down, Frame, GoodbyeReason, RejectCode, Stamp, Up, decode_down, down, encode, limits, up,
};
use gateway::{
    control::{Answer, Request},
    transport::{quic, tls},
};
use quinn::{Connection, ConnectionError, Endpoint, TransportConfig, VarInt, crypto::rustls::QuicClientConfig};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{
    identity::relay,
    peer::frame,
    process::simulator,
    world::{WAIT, World},
};

/// Bytes of a message that is too large for either side, and larger than the buffers on the path.
const HUGE: usize = 8 * 1024 * 1024;

/// Upgrades to a WebSocket without a library, sends one message that is far too large, and reads to the end.
async fn answer_to_a_huge_message(world: &World, path: &str, protocol: &str) -> Vec<(u8, Vec<u8>)> {
    let (mut read, mut write) = TcpStream::connect(world.web()).await.expect("a connection").into_split();
    let upgrade = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{protocol}\r\n",
        world.web()
    );
    write.write_all(upgrade.as_bytes()).await.expect("the upgrade");
    let sending = tokio::spawn(async move {
        // One masked binary message; the mask is 0.
        let mut message = vec![0x82, 0xff];
        message.extend((HUGE as u64).to_be_bytes());
        message.extend([0; 4]);
        message.resize(message.len() + HUGE, 0);
        write.write_all(&message).await.expect("it is taken in, or dropped, but not refused");
    });
    let mut bytes = Vec::new();
    let ended = timeout(WAIT, read.read_to_end(&mut bytes)).await.expect("it ends in time");
    ended.expect("the connection is ended, not reset");
    sending.await.expect("sent");
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("the answer to the upgrade");
    assert!(bytes.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&bytes[..head]));
    messages(&bytes[head + 4..])
}

/// The messages of an unmasked stream: opcode and payload.
fn messages(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut messages = Vec::new();
    while let [opcode, length, rest @ ..] = bytes {
        let (length, rest) = match (*length, rest) {
            (126, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
            (length @ ..126, rest) => (usize::from(length), rest),
            _ => panic!("no message of the gateway's is that long"),
        };
        let (payload, rest) = rest.split_at(length);
        messages.push((opcode & 0x0f, payload.to_vec()));
        bytes = rest;
    }
    messages
}

fn close_code(message: &(u8, Vec<u8>)) -> u16 {
    match message {
        (8, payload) => u16::from_be_bytes([payload[0], payload[1]]),
        other => panic!("{other:?} is no close"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_arrives_over_unread_bytes() {
    let world = World::start().await;
    let said = answer_to_a_huge_message(&world, "/glasses", "Sec-WebSocket-Protocol: lorgnette.v1\r\n").await;
    let [(2, reject), close] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(close_code(close), RejectCode::Malformed.close_code());
    let Ok(Decoded::Frame(frame)) = decode_down(reject) else { panic!("{reject:?}") };
    assert!(matches!(&frame.message, Down::Reject(reject) if reject.code == RejectCode::Malformed), "{frame:?}");
    // The same for an app's socket, which sends a message of its own before.
    let said = answer_to_a_huge_message(&world, "/app-ws", "").await;
    assert!(said.len() > 1, "{said:?}");
    assert_eq!(said.last().map(close_code), Some(1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goodbye_is_answered_with_a_normal_close() {
    let world = World::start().await;
    let device = async |scheme: &str| {
        let mut peer = crate::peer::Peer::welcomed(&world, scheme, "peer").await;
        peer.control(Up::Goodbye(goodbye())).await;
        peer.closed().await
    };
    assert_eq!(device("ws").await, 1000);
    assert_eq!(device("wss").await, 1000);
    assert_eq!(device("quic").await, 0);
}

/// A stream that is reset costs the gateway as much as one with a frame in it.
#[tokio::test]
async fn streams_that_are_reset_are_counted() {
    let world = World::start().await;
    let connection = connect(&client(), world.gateway().quic.expect("QUIC is on")).await;
    let (mut control, _answers) = connection.open_bi().await.expect("the control stream");
    // A piece of a frame, so that the gateway knows of the stream.
    control.write_all(&[1]).await.expect("sent");
    let resetting = async {
        while let Ok(mut stream) = connection.open_uni().await {
            drop(stream.reset(VarInt::from_u32(1)));
        }
    };
    let ((), (code, reason)) = tokio::join!(resetting, closed_with(&connection));
    assert_eq!(code, u64::from(RejectCode::RateLimited.close_code()), "{reason}");
    assert!(reason.contains("sends too much"), "{reason}");
}

fn goodbye() -> up::Goodbye<'static> {
    up::Goodbye { reason: GoodbyeReason::PowerOff, message: "", retry_after_ms: 0 }
}

/// A QUIC client without any behaviour of its own.
fn client() -> Endpoint {
    client_with(TransportConfig::default())
}

fn client_with(transport: TransportConfig) -> Endpoint {
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let mut config = relay::client();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let config = QuicClientConfig::try_from(config).expect("TLS 1.3");
    let mut config = quinn::ClientConfig::new(Arc::new(config));
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    endpoint
}

/// The gateway's end of QUIC, without a gateway.
fn server(folder: &Path) -> Endpoint {
    let tls = tls::load_or_make(folder, vec!["localhost".to_owned()]).expect("a certificate");
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls.quic).expect("TLS 1.3");
    let server = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    Endpoint::server(server, "127.0.0.1:0".parse().expect("an address")).expect("a port")
}

async fn connect(client: &Endpoint, address: SocketAddr) -> Connection {
    client.connect(address, "localhost").expect("an address").await.expect("a connection")
}

/// The close code and reason of the gateway. quinn forgets both if a stateless reset comes behind them, as it does where the gateway
/// has no time for its part of the close: who asks for them needs a runtime of one thread, in which this wakes before the next packet
/// is read.
async fn closed_with(connection: &Connection) -> (u64, String) {
    match timeout(WAIT, connection.closed()).await.expect("it closes in time") {
        ConnectionError::ApplicationClosed(close) => {
            (close.error_code.into_inner(), String::from_utf8_lossy(&close.reason).into_owned())
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_quic_peer_that_only_waits_is_told_and_closed() {
    let world = World::start().await;
    let (client, address) = (client(), world.gateway().quic.expect("QUIC is on"));
    // Nothing is ever sent on this connection.
    let silent = connect(&client, address).await;
    let connection = connect(&client, address).await;
    let (mut up, mut down) = connection.open_bi().await.expect("a stream");
    up.write_all(&[9; 8]).await.expect("another version");
    let (code, _) = closed_with(&connection).await;
    assert_eq!(code, u64::from(RejectCode::UnsupportedVersion.close_code()));
    let bytes = down.read_to_end(1_000).await.expect("what was said before the close");
    let Ok(Decoded::Frame(frame)) = decode_down(&bytes) else { panic!("{bytes:?}") };
    assert!(matches!(&frame.message, Down::Reject(reject) if reject.code == RejectCode::UnsupportedVersion));
    let (code, words) = closed_with(&silent).await;
    assert_eq!(code, u64::from(RejectCode::Timeout.close_code()), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goodbye_is_heard_though_the_connection_ends_right_behind_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(folder.path());
    let (client, address) = (client(), server.local_addr().expect("its address"));
    // Which of two ready events is handled first may be chance.
    for _ in 0..20 {
        let accepting = async { server.accept().await.expect("a client").await.expect("a connection") };
        let (connection, accepted) = tokio::join!(connect(&client, address), accepting);
        let (mut up, _down) = connection.open_bi().await.expect("a stream");
        up.write_all(&frame(1, Up::Goodbye(goodbye()))).await.expect("sent");
        up.finish().expect("open until now");
        let ended = accepted.clone();
        let mut link = quic::open(accepted, [0; 32]).await.expect("a link");
        up.stopped().await.expect("all of it is there");
        connection.close(VarInt::from_u32(0), b"");
        timeout(WAIT, ended.closed()).await.expect("the end is known in time");
        let heard = link.up.recv().await.expect("no error").expect("a frame");
        assert_eq!(heard, frame(1, Up::Goodbye(goodbye())));
        assert!(link.up.recv().await.expect("no error").is_none());
    }
}

/// A message down, of no turn.
fn envelope(sequence: u32, message: Down<'_>) -> Vec<u8> {
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let length = encode(&Frame::new(Stamp { sequence, turn: 0, time_us: 1 }, message), &mut buffer).expect("it fits");
    buffer.truncate(length);
    buffer
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_that_finds_no_free_stream_holds_up_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(folder.path());
    let mut transport = TransportConfig::default();
    transport.max_concurrent_uni_streams(VarInt::from_u32(1));
    let (client, address) = (client_with(transport), server.local_addr().expect("its address"));
    let accepting = async { server.accept().await.expect("a device").await.expect("a connection") };
    let (connection, accepted) = tokio::join!(connect(&client, address), accepting);
    let (mut up, mut down) = connection.open_bi().await.expect("a stream");
    up.write_all(&frame(1, Up::Goodbye(goodbye()))).await.expect("sent");
    let link = quic::open(accepted, [0; 32]).await.expect("a link");
    // Too large for a datagram, and the device reads no stream.
    let payload = [1; 4_000];
    for sequence in 1..=3 {
        let chunk = down::SpeechChunk { speech: 1, clause: 0, position_us: 0, duration_us: 20_000, payload: &payload };
        link.down.put(envelope(sequence, Down::SpeechChunk(chunk)).into()).expect("room");
    }
    let shown = envelope(0, Down::Heartbeat(down::Heartbeat { echo_us: 0, held_us: 0 }));
    link.down.put(shown.clone().into()).expect("room");
    let mut bytes = vec![0; shown.len()];
    timeout(WAIT, down.read_exact(&mut bytes)).await.expect("in time").expect("what is behind the sound");
    assert_eq!(bytes, shown);
}

/// A script's network is shaped inside the process, which ends with the script.
#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_has_said_goodbye_when_its_process_ends() {
    let world = World::start().await;
    world.glasses("wss", "leaving").await.goodbye().await;
    let script = world.folder().join("script");
    std::fs::write(&script, "text \"take a note that it rains\"\nexpect heard \"rains\" within 60s\n").expect("a file");
    let mut command = tokio::process::Command::new(simulator());
    command.args(["script", "--delay-ms", "100", "--gateway", &world.address("wss"), "--state"]);
    let output = command.arg(world.folder().join("leaving")).arg(&script).kill_on_drop(true).output();
    let output = timeout(WAIT, output).await.expect("it ends in time").expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    loop {
        let Ok(Answer::Devices { paired, .. }) = world.ask(Request::Devices).await else { panic!() };
        match &paired[0].session {
            None => return,
            Some(session) => assert_eq!(session.lost_s, None, "the glasses are gone without a goodbye"),
        }
        tokio::task::yield_now().await;
    }
}
