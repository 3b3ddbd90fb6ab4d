//! Gateways that send what they may not, too much of it, or nothing at all: the client ends with its reason.

use std::{future::pending, path::Path, time::Duration};

use device_protocol::{Down, PlayState, Up, down, up};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::{
    gateway::{
        BINARY, CLOSE, Ended, Gateway, Outbound, PING, PONG, RATE_HZ, display, envelope, heartbeat, hush, pairing_code,
        speech_chunk, speech_end, speech_start, websocket,
    },
    sanitized_client, talking,
};

/// A number of a link message that no version has.
const LATER: u16 = 0x8fff;

/// An envelope by hand: the body begins with the stamp.
fn by_hand(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("it fits");
    [&[1, 0][..], &kind.to_le_bytes(), &length.to_le_bytes(), body].concat()
}

/// A whole message with an envelope of this length, which the client skips.
fn skipped(length: usize) -> Vec<u8> {
    websocket(BINARY, &by_hand(LATER, &vec![0; length - 8]))
}

/// The first bytes of a message that would be so long.
fn beginning(length: u64) -> Vec<u8> {
    [&[0x82, 127][..], &length.to_be_bytes()].concat()
}

/// What a gateway may not send in a session, and what the client says of it.
fn forbidden() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let pieces = "a message in pieces, masked, or of an extension";
    let first = |kind: u16| websocket(BINARY, &by_hand(kind, &[1, 0, 0]));
    let beat = Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 });
    let mut cases = vec![
        ("one byte too long", beginning(65_537), "a message is too long"),
        ("half of all lengths", beginning(1 << 63), "a message is too long"),
        ("the greatest length", beginning(u64::MAX), "a message is too long"),
        ("masked", vec![0x82, 0x85], pieces),
        ("a first piece", vec![0x02, 3, 1, 0, 0], pieces),
        ("a piece in the middle", vec![0x00, 3, 1, 0, 0], pieces),
        ("a ping in pieces", vec![0x09, 0], pieces),
        ("of an extension", vec![0xc2, 0], pieces),
        ("a last piece", vec![0x80, 1, 0], "not binary: opcode 0"),
        ("a text", websocket(1, b"{}"), "not binary: opcode 1"),
        ("reserved for data", vec![0x83, 0], "not binary: opcode 3"),
        ("reserved for control", vec![0x8b, 0], "not binary: opcode 11"),
        ("a long ping", websocket(PING, &[0; 126]), "a message is too long"),
        ("a ping with the greatest length", [&[0x89, 127][..], &[0xff; 8]].concat(), "a message is too long"),
        ("a close", websocket(CLOSE, &4_208_u16.to_be_bytes()), "the gateway closed: 4208"),
        ("a close without a code", websocket(CLOSE, b""), "the gateway closed: 0"),
        ("an empty message", websocket(BINARY, b""), "a malformed frame"),
        ("half a header", websocket(BINARY, &[1, 0, 0]), "a malformed frame"),
        ("no stamp", websocket(BINARY, &by_hand(LATER, &[])), "a malformed frame"),
        ("another version", websocket(BINARY, &[2, 0, 5, 0x80, 3, 0, 0, 0, 0, 0, 0]), "a malformed frame"),
        ("longer than it is", websocket(BINARY, &[1, 0, 5, 0x80, 255, 255, 255, 255, 0, 0, 0]), "a malformed frame"),
        ("of the other direction", websocket(BINARY, &envelope(0, beat)), "a malformed frame"),
        ("a gap", websocket(BINARY, &envelope(2, display("late"))), "control frame 2 follows 0"),
        ("half a transcript", first(0x9002), "a malformed frame of kind 0x9002"),
        ("half a display", first(0x9003), "a malformed display"),
        ("half an end", first(0x9005), "a malformed frame of kind 0x9005"),
        ("half a hush", first(0x9006), "a malformed frame of kind 0x9006"),
        ("half an offer", first(0x900f), "a malformed offer"),
        ("half a packet", first(0xa001), "a malformed chunk"),
        ("speech at no rate", first(0x9004), "speech in another format"),
    ];
    let speeches = (1..=9).flat_map(|speech| websocket(BINARY, &envelope(speech, speech_start(speech))));
    cases.push(("nine speeches at once", speeches.collect(), "too many speeches"));
    cases
}

fn assert_failed(name: &str, ended: &Ended, words: &str) {
    assert!(ended.code == Some(1) && ended.complaint.contains(words), "{name}: {ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_may_not_send_ends_the_client_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    for (name, bytes, words) in forbidden() {
        let gateway = Gateway::start("127.0.0.1:0").await;
        let script = async {
            let (mut inbound, mut outbound) = gateway.welcomed().await;
            outbound.bytes(&bytes).await;
            inbound.drained().await;
        };
        let (ended, ()) = tokio::join!(gateway.visited(&client, &["--wait", "60"]), script);
        assert_failed(name, &ended, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_every_length_come_through_split_at_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let gateway = Gateway::start("127.0.0.1:0").await;
    let script = async {
        let (mut inbound, mut outbound) = gateway.welcomed().await;
        for byte in outbound.numbered(display("in bytes")) {
            assert!(outbound.bytes(&[byte]).await);
        }
        for length in [11, 125, 126, 127, 4_168, 65_535, 65_536] {
            assert!(outbound.bytes(&skipped(length)).await);
        }
        // Each split once, at every place of its header.
        for at in 1..12 {
            let message = skipped(65_536);
            let (before, behind) = message.split_at(at);
            assert!(outbound.bytes(before).await && outbound.bytes(behind).await);
        }
        let behind = outbound.numbered(display("behind two"));
        assert!(outbound.bytes(&[skipped(65_536), skipped(65_536), behind].concat()).await);
        for length in [0, 1, 125] {
            let content = vec![7; length];
            assert!(outbound.bytes(&websocket(PING, &content)).await);
            assert_eq!(inbound.pong().await, content);
        }
        outbound.say(speech_start(1)).await;
        for at in 0..3 {
            outbound.say(speech_chunk(1, 20_000 * at, &[0; 640])).await;
        }
        outbound.say(speech_end(1, 60_000)).await;
        talking::heard(&mut inbound).await
    };
    let (ended, heard) = tokio::join!(gateway.visited(&client, &["--wait", "60"]), script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.said.contains("display: in bytes\n") && ended.said.contains("display: behind two\n"), "{ended:?}");
    assert_eq!(heard.played.last(), Some(&(1, 60_000, PlayState::Finished)), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn extreme_numbers_overrun_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let gateway = Gateway::start("127.0.0.1:0").await;
    let script = async {
        let (mut inbound, mut outbound) = gateway.welcomed().await;
        outbound.say(speech_start(1)).await;
        // 60 s are kept: before their end, at it, behind it, and where adding goes round.
        for position_us in [0, 59_872_000, 59_872_063, 59_999_938, 60_000_000, 60_000_001, 1 << 63, u64::MAX] {
            for length in [4_096, 4_095, 3, 1, 0] {
                let payload = vec![1; length];
                assert!(outbound.say(speech_chunk(1, position_us, &payload)).await);
            }
        }
        let message = down::SpeechChunk {
            speech: 1,
            clause: u16::MAX,
            position_us: u64::MAX,
            duration_us: 120_000,
            payload: &[0; 640],
        };
        outbound.say(Down::SpeechChunk(message)).await;
        outbound.say(speech_end(7, 0)).await;
        outbound.say(speech_end(1, u64::MAX)).await;
        outbound.say(Down::Heartbeat(down::Heartbeat { echo_us: u64::MAX, held_us: u64::MAX })).await;
        outbound.say(hush()).await;
        outbound.say(hush()).await;
        outbound.bytes(&websocket(CLOSE, &4_200_u16.to_be_bytes())).await;
        inbound.drained().await;
    };
    let (ended, ()) = tokio::join!(gateway.visited(&client, &["--wait", "60"]), script);
    assert_failed("extremes", &ended, "the gateway closed: 4200");
}

/// What a flood consists of, and what the client counts.
type Flood = (&'static str, fn(&mut Outbound) -> Vec<u8>, &'static str);

const FLOODS: [Flood; 8] = [
    ("pings", |_| websocket(PING, &[7; 125]), "messages a second"),
    ("pongs", |_| websocket(PONG, b""), "messages a second"),
    ("what a later version has", |_| skipped(11), "messages a second"),
    ("displays", |outbound| outbound.numbered(display("again")), "messages a second"),
    ("packets of no speech", |outbound| outbound.numbered(speech_chunk(9, 0, &[0; 640])), "messages a second"),
    ("offers, which are answered", |outbound| outbound.numbered(offer()), "messages a second"),
    (
        "speeches that are hushed",
        |outbound| [outbound.numbered(speech_start(1)), outbound.numbered(hush())].concat(),
        "messages a second",
    ),
    ("the longest messages", |_| skipped(65_536), "bytes a second"),
];

fn offer() -> Down<'static> {
    let offer = down::FirmwareOffer { update: 1, manifest: &[0; 512], signature: [0; 64], chunk_bytes: 1_024 };
    Down::FirmwareOffer(offer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_ended_whatever_it_consists_of() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    for (name, one, counted) in FLOODS {
        let gateway = Gateway::start("127.0.0.1:0").await;
        let script = async {
            let (mut inbound, mut outbound) = gateway.welcomed().await;
            let flood = async {
                loop {
                    let many: Vec<u8> = (0..32).flat_map(|_| one(&mut outbound)).collect();
                    if !outbound.bytes(&many).await {
                        break;
                    }
                }
            };
            tokio::join!(flood, inbound.drained());
        };
        let (ended, ()) = tokio::join!(gateway.visited(&client, &["--wait", "60"]), script);
        assert_failed(name, &ended, "the gateway floods: more than");
        assert_failed(name, &ended, counted);
    }
    // Before the session, too.
    let gateway = Gateway::start("127.0.0.1:0").await;
    let script = async {
        let (mut stream, _) = gateway.upgraded().await;
        while stream.write_all(&skipped(11).repeat(32)).await.is_ok() {}
    };
    let (ended, ()) = tokio::join!(gateway.visited(&client, &[]), script);
    assert_failed("before the session", &ended, "messages a second");
}

/// Sends this again and again: a peer that is never silent for long. It is the peer that is slow here, and not the test.
async fn again(every_ms: u64, stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    let mut beat = tokio::time::interval(Duration::from_millis(every_ms));
    loop {
        beat.tick().await;
        if stream.write_all(bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// The client with a gateway that does this, and then nothing more.
async fn with(client: &Path, words: &[&str], script: impl AsyncFnOnce(&Gateway)) -> Ended {
    let gateway = Gateway::start("127.0.0.1:0").await;
    let never_ending = async {
        script(&gateway).await;
        pending::<()>().await;
    };
    tokio::select! {
        ended = gateway.visited(client, words) => ended,
        () = never_ending => unreachable!("it never ends"),
    }
}

/// The same; the client must fail with this.
async fn fails(client: &Path, words: &[&str], reason: &str, script: impl AsyncFnOnce(&Gateway)) {
    let ended = with(client, words, script).await;
    assert_failed(reason, &ended, reason);
}

/// In each there is something that would hold up a client that does not look at the clock. They are 15 s long together.
#[tokio::test(flavor = "multi_thread")]
async fn no_gateway_holds_up_the_client_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let client = &sanitized_client(folder.path());
    let file = folder.path().join("said.wav");
    audio::wav::write(&file, &vec![0; 30 * 16_000], RATE_HZ).expect("a WAV");
    let speaks = ["--say", file.to_str().expect("UTF-8"), "--wait", "60"];
    let ping = websocket(PING, b"");
    let without_tls = fails(client, &[], "no TLS 1.3 with 127.0.0.1:", async |gateway| {
        let _stream = gateway.tcp().await;
        pending::<()>().await;
    });
    let slow_answer = fails(client, &[], "no answer to the upgrade", async |gateway| {
        again(300, &mut gateway.tls().await, b"H").await;
    });
    let only_pings = fails(client, &[], "no answer to hello", async |gateway| {
        again(100, &mut gateway.upgraded().await.0, &ping).await;
    });
    let only_later_messages = fails(client, &[], "no answer to hello", async |gateway| {
        again(100, &mut gateway.upgraded().await.0, &skipped(11)).await;
    });
    let not_welcomed = fails(client, &[], "no welcome in time", async |gateway| {
        let (_inbound, mut outbound) = gateway.proven().await;
        let beat = outbound.numbered(heartbeat());
        again(1_000, &mut outbound.stream, &beat).await;
    });
    let not_paired = fails(client, &[], "no welcome in time", async |gateway| {
        let (_inbound, mut outbound) = gateway.proven().await;
        outbound.say(pairing_code()).await;
        pending::<()>().await;
    });
    let silent = fails(client, &["--wait", "60"], "the gateway is silent", async |gateway| {
        let (_inbound, mut outbound) = gateway.welcomed().await;
        again(1_000, &mut outbound.stream, &ping).await;
    });
    let unread = fails(client, &speaks, "the gateway takes nothing", async |gateway| {
        let (_inbound, mut outbound) = gateway.welcomed().await;
        let beat = outbound.numbered(heartbeat());
        again(1_000, &mut outbound.stream, &beat).await;
    });
    // It is told in words, and not by the signal of a broken pipe.
    let cut_off = fails(client, &speaks, "connection", async |gateway| {
        let (mut inbound, _outbound) = gateway.welcomed().await;
        inbound.next().await;
    });
    let never_closed = async {
        let ended = with(client, &["--wait", "0"], async |gateway| {
            let (_inbound, mut outbound) = gateway.welcomed().await;
            while outbound.bytes(&ping.repeat(32)).await {}
        });
        let ended = ended.await;
        assert_eq!(ended.code, Some(0), "it has said goodbye: {ended:?}");
    };
    let before = async {
        tokio::join!(without_tls, slow_answer, only_pings, only_later_messages, not_welcomed, not_paired);
    };
    let in_session = async {
        tokio::join!(silent, unread, cut_off, never_closed);
    };
    tokio::join!(before, in_session);
}
