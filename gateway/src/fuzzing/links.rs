//! What a connection carries, up to admission.

use std::{
    net::Ipv4Addr,
    sync::{LazyLock, OnceLock},
};

use bytes::{Bytes, BytesMut};
use device_protocol::{
    Decoded, Down, Frame, Stamp, Up,
    auth::Handshake,
    decode_down, decode_up, down, encode, limits,
    up::{self, Proof},
};
use ed25519_dalek::{Signer as _, SigningKey};
use hyper::{Response, StatusCode, body::Incoming, service::service_fn, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    sync::oneshot,
};

use super::{run, store};
use crate::{
    clock,
    identity::{self, GatewayKey, Pairings},
    limits::Traffic,
    runtime::spawn,
    store::Store,
    telemetry::LogThrottle,
    transport::{
        memory,
        quic::{sound_only, take_frame},
        websocket::{self, Form},
    },
};

/// Bytes of an input that are sent: the pipe must hold all of them.
const SENT_BYTES_MAX: usize = 256 * 1024;

/// A connection after the upgrade, on which the peer sends these bytes and then nothing more.
async fn upgraded(bytes: &[u8]) -> Option<Upgraded> {
    let (mut client, server) = duplex(2 * SENT_BYTES_MAX);
    let head = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    client.write_all(head.as_bytes()).await.ok()?;
    let (tell, told) = oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let upgraded = hyper::upgrade::on(&mut request);
        if let Some(tell) = tell.lock().ok().and_then(|mut tell| tell.take()) {
            drop(tell.send(upgraded));
        }
        let mut response = Response::new(String::new());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", "upgrade".parse().expect("a value"));
        response.headers_mut().insert("upgrade", "websocket".parse().expect("a value"));
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(server), service);
    spawn("fuzz-connection", connection.with_upgrades());
    let upgraded = told.await.ok()?.await.ok()?;
    client.write_all(&bytes[..bytes.len().min(SENT_BYTES_MAX)]).await.ok()?;
    client.shutdown().await.ok()?;
    // What is answered must go somewhere.
    spawn("fuzz-peer", async move { client.read_to_end(&mut Vec::new()).await });
    Some(upgraded)
}

/// WebSocket frames of glasses; the first byte: which form, and whether they are admitted already.
pub fn websocket(bytes: &[u8]) {
    // Two seconds' worth at once, and what is refilled meanwhile.
    const NEWCOMERS_FRAMES_PER_S: u64 = 8;
    let Some((form, bytes)) = bytes.split_first() else { return };
    let json = form & 1 == 1;
    let admitted = form & 2 == 2;
    run(async {
        let upgraded = upgraded(bytes).await.expect("the request is a valid one");
        let (receiver, sender) = websocket::open(upgraded, if json { Form::Json } else { Form::Binary }).await;
        let mut receiver = crate::transport::Receiver::WebSocket(receiver);
        if admitted {
            receiver.allow(Traffic { frames_per_s_max: 1_000_000, bytes_per_s_max: 1_000_000_000 });
        }
        let (mut frames, begun_us) = (0, clock::mono_us());
        // A connection that has ended says so: this loop ends.
        while let Ok(Some(frame)) = receiver.recv().await {
            frames += 1;
            assert!(frame.len() <= limits::FRAME_BYTES_MAX, "{} bytes", frame.len());
            if json {
                assert!(decode_up(&frame).is_ok(), "the JSON form becomes a valid envelope");
            }
        }
        let seconds = 2 + (clock::mono_us() - begun_us).div_ceil(1_000_000);
        assert!(admitted || frames <= NEWCOMERS_FRAMES_PER_S * seconds, "{frames} frames of a newcomer");
        drop(sender);
        drop(receiver);
    });
}

/// The control stream of a QUIC connection, and each frame as a datagram; the first byte: how many bytes arrive at once.
pub fn quic(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let whole = taken(bytes, bytes.len().max(1));
    assert_eq!(whole, taken(bytes, usize::from(*piece).max(1)), "the pieces in which a stream arrives do not matter");
    drop(sound_only(Bytes::copy_from_slice(bytes)));
    for frame in &whole.0 {
        drop(sound_only(frame.clone()));
    }
}

/// All frames of a stream, and whether it was refused.
fn taken(bytes: &[u8], piece: usize) -> (Vec<Bytes>, bool) {
    let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match take_frame(&mut buffer) {
                Ok(Some(frame)) => {
                    assert!(!frame.is_empty());
                    let unknown = matches!(decode_up(&frame), Err(device_protocol::Error::UnknownVersion { .. }));
                    frames.push(frame);
                    // The decoder's error ends the connection, and how much of the rest came with it is chance.
                    if unknown {
                        frames.pop();
                        return (frames, true);
                    }
                    assert!(frames.last().is_some_and(|frame| frame.len() <= limits::FRAME_BYTES_MAX));
                }
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
        assert!(buffer.len() <= limits::FRAME_BYTES_MAX + piece.len(), "{} bytes wait", buffer.len());
    }
    (frames, false)
}

/// Frames of a peer that wants to be admitted, one envelope after another. Where the first is a hello with the key and
/// the commitment of the fuzzer, a right proof is sent behind it.
pub fn handshake(bytes: &[u8]) {
    static PARTS: LazyLock<(Store, GatewayKey)> = LazyLock::new(|| {
        let (store, folder) = store("handshake");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let key = GatewayKey::load_or_make(&folder).expect("a key can be made");
        drop(std::fs::remove_dir_all(folder));
        (store, key)
    });
    let (store, key) = &*PARTS;
    let (pairings, waits) = (Pairings::default(), LogThrottle::default());
    run(async {
        let (mut link, ends) = memory::link();
        link.peer = (Ipv4Addr::new(192, 0, 2, 1), 1).into();
        let memory::Ends { up, mut down, .. } = ends;
        let peer = async {
            let mut rest = bytes;
            let (mut first, mut last) = (true, None);
            while !rest.is_empty() {
                let length = device_protocol::first_frame(rest).ok().flatten().map_or(rest.len(), <[u8]>::len);
                let (frame, after) = rest.split_at(length);
                rest = after;
                if up.send(Bytes::copy_from_slice(frame)).await.is_err() {
                    break;
                }
                if std::mem::take(&mut first)
                    && let Some(hello) = own_hello(frame)
                {
                    last = down.recv().await;
                    // A Challenge, or already a Reject.
                    let Some(proof) = last.as_deref().and_then(|challenge| proof(&hello, challenge)) else { break };
                    drop(up.send(proof).await);
                }
            }
            drop(up);
            while let Some(frame) = down.recv().await {
                last = Some(frame);
            }
            last
        };
        let admitting = async {
            let context =
                identity::AdmissionContext { key, pairings: &pairings, users_max: 64, waits: &waits, slot: None };
            let admitted = identity::admit(&mut link, &context, store).await;
            drop(link);
            admitted
        };
        let (admitted, last) = tokio::join!(admitting, peer);
        let Err(refusal) = admitted else { panic!("nobody has paired this device") };
        let last = last.expect("a device is told why");
        let Ok(Decoded::Frame(Frame { message: Down::Reject(reject), .. })) = decode_down(&last) else {
            panic!("the last frame is no Reject")
        };
        assert_eq!(reject.code, refusal.code);
        assert!(reject.message.len() <= limits::LABEL_BYTES_MAX && refusal.message.starts_with(reject.message));
        assert!(!refusal.message.contains(char::is_control), "{:?}", refusal.message);
        assert!(pairings.waiting(clock::mono_us()).is_empty(), "a device that is gone waits for nothing");
    });
}

/// The fuzzer's own device: key and nonce of PROTOCOL.md's example.
fn device() -> &'static (SigningKey, [u8; 32]) {
    static DEVICE: OnceLock<(SigningKey, [u8; 32])> = OnceLock::new();
    DEVICE.get_or_init(|| (SigningKey::from_bytes(&[7; 32]), [9; 32]))
}

fn own_hello(frame: &[u8]) -> Option<up::Hello<'_>> {
    let (key, nonce) = device();
    match decode_up(frame) {
        Ok(Decoded::Frame(Frame { message: Up::Hello(hello), .. })) => {
            let ours = hello.device_key == key.verifying_key().to_bytes()
                && hello.nonce_commitment[..] == Sha256::digest(nonce)[..];
            ours.then_some(hello)
        }
        _ => None,
    }
}

fn proof(hello: &up::Hello<'_>, challenge: &[u8]) -> Option<Bytes> {
    let Ok(Decoded::Frame(Frame { message: Down::Challenge(challenge), .. })) = decode_down(challenge) else {
        return None;
    };
    let down::Challenge { nonce, gateway_key, .. } = challenge;
    let handshake = Handshake {
        device_key: hello.device_key,
        gateway_key,
        nonce_commitment: hello.nonce_commitment,
        gateway_nonce: nonce,
        binding: [0; 32],
    };
    let (key, nonce) = device();
    let proof =
        Proof { nonce: *nonce, signature: key.sign(&handshake.device_proof(nonce)).to_bytes(), invitation: [0; 32] };
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let stamp = Stamp { sequence: 0, turn: 0, time_us: 1 };
    let length = encode(&Frame::new(stamp, Up::Proof(proof)), &mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer.into())
}
