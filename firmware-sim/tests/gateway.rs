//! The glasses against a minimal gateway.

use std::sync::Arc;

use device_protocol::auth::{self, Handshake, pairing_code};
use device_protocol::{
    Decoded, Down, Frame, GoodbyeReason, ListeningState, Message as _, PairingMethod, RejectCode, SUBPROTOCOL, Stamp,
    Up, decode_up, down, encode, limits,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use firmware_sim::Error;
use firmware_sim::{Glasses, Options, Seen, handshake};
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

/// How the gateway behaves.
#[derive(Clone, Copy, PartialEq)]
enum Conduct {
    /// Correctly.
    Honest,
    /// Signs something else.
    WrongSignature,
    /// Signs for another TLS connection, as a man in the middle does.
    OtherBinding,
    /// Welcomes without pairing.
    NoPairing,
    /// Refuses with a reason and words.
    Refuses,
    /// Says nothing after the proof.
    Unanswered,
}

trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire for S {}

struct Peer {
    socket: WebSocketStream<Box<dyn Wire>>,
    control: u32,
    audio: u32,
}

impl Peer {
    #[allow(clippy::result_large_err)] // the callback's type is the library's
    async fn accept(stream: Box<dyn Wire>) -> Self {
        let check = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
            assert_eq!(request.uri().path(), device_protocol::PATH);
            assert_eq!(request.headers()["sec-websocket-protocol"], SUBPROTOCOL);
            response.headers_mut().insert("sec-websocket-protocol", SUBPROTOCOL.parse().unwrap());
            Ok(response)
        };
        Self { socket: accept_hdr_async(stream, check).await.unwrap(), control: 0, audio: 0 }
    }

    async fn send(&mut self, message: impl Into<Down<'_>>) {
        let message = message.into();
        let sequence = match message.class() {
            device_protocol::Class::Control => &mut self.control,
            device_protocol::Class::Audio => &mut self.audio,
            _ => &mut 0,
        };
        *sequence += 1;
        let sequence = if message.class() == device_protocol::Class::Link { 0 } else { *sequence };
        let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
        let stamp = Stamp { sequence, turn: 3, time_us: 1 };
        let length = encode(&Frame::new(stamp, message), &mut buffer).unwrap();
        buffer.truncate(length);
        self.socket.send(Message::Binary(buffer.into())).await.unwrap();
    }

    /// The next frame, or `None` at the end.
    async fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.socket.next().await? {
                Ok(Message::Binary(bytes)) => return Some(bytes.to_vec()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next frame that `pick` selects.
    async fn until<T>(&mut self, mut pick: impl FnMut(&Stamp, &Up<'_>) -> Option<T>) -> T {
        loop {
            let bytes = self.receive().await.expect("the glasses went away");
            let Ok(Decoded::Frame(frame)) = decode_up(&bytes) else { panic!("not decodable") };
            if let Some(found) = pick(&frame.stamp, &frame.message) {
                return found;
            }
        }
    }

    /// The gateway's side of the handshake. Returns the code that an operator would type, if the glasses get that far.
    async fn shake(&mut self, key: &SigningKey, binding: [u8; 32], conduct: Conduct) -> Option<String> {
        let (device_key, nonce_commitment) = self
            .until(|_, up| match up {
                Up::Hello(hello) => Some((hello.device_key, hello.nonce_commitment)),
                _ => None,
            })
            .await;
        let handshake = Handshake {
            device_key,
            gateway_key: key.verifying_key().to_bytes(),
            nonce_commitment,
            gateway_nonce: [9; 32],
            binding: if conduct == Conduct::OtherBinding { [1; 32] } else { binding },
        };
        let signed = match conduct {
            Conduct::WrongSignature => key.sign(b"something else"),
            _ => key.sign(&handshake.gateway_proof()),
        };
        self.send(down::Challenge { nonce: [9; 32], gateway_key: handshake.gateway_key, signature: signed.to_bytes() })
            .await;
        let proof = self.receive().await?;
        let Ok(Decoded::Frame(Frame { message: Up::Proof(proof), .. })) = decode_up(&proof) else { panic!("no proof") };
        assert_eq!(<[u8; 32]>::from(Sha256::digest(proof.nonce)), nonce_commitment);
        VerifyingKey::from_bytes(&device_key)
            .unwrap()
            .verify_strict(&handshake.device_proof(&proof.nonce), &Signature::from_bytes(&proof.signature))
            .unwrap();
        let digest: [u8; 32] = Sha256::digest(handshake.pairing_transcript(&proof.nonce)).into();
        let code = String::from_utf8(pairing_code(&digest).to_vec()).unwrap();
        match conduct {
            Conduct::Refuses => {
                self.send(down::Reject { code: RejectCode::Revoked, message: "no more", retry_after_ms: 0 }).await;
                return Some(code);
            }
            Conduct::Unanswered => return Some(code),
            Conduct::NoPairing => {}
            _ => {
                self.send(down::PairingCode { method: PairingMethod::Code, expires_s: 60, tries_left: 5 }).await;
            }
        }
        self.welcome().await;
        Some(code)
    }

    async fn welcome(&mut self) {
        let format = |rate_hz| down::AudioFormat {
            codec: device_protocol::Codec::Pcm16,
            rate_hz,
            frame_ms: 20,
            lc3_frame_us: 0,
            lc3_frame_bytes: 0,
        };
        self.send(down::Welcome {
            session: 1,
            resume_token: b"token",
            resume_ms: 30_000,
            resumed: None,
            gateway_name: "test",
            user_name: "ada",
            heartbeat_ms: 5_000,
            audio_up: format(16_000),
            audio_down: format(16_000),
            wall_ms: 0,
            zone_offset_s: 0,
            listening: ListeningState::Idle,
            continued: None,
        })
        .await;
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, format!("ws://{address}/glasses"))
}

fn options(address: &str, state: &std::path::Path) -> Options {
    let mut options = Options::new(address.parse().unwrap(), state);
    options.reconnect = false;
    options
}

/// One connection over plain WebSocket; the outcomes of both sides.
async fn meet(state: &std::path::Path, seed: u8, conduct: Conduct) -> (Result<Glasses, Error>, Option<String>, Peer) {
    let (listener, address) = listener().await;
    let gateway = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Peer::accept(Box::new(stream)).await;
        let code = peer.shake(&key(seed), auth::NO_BINDING, conduct).await;
        (code, peer)
    };
    let (glasses, (code, peer)) = tokio::join!(Glasses::connect(options(&address, state)), gateway);
    (glasses, code, peer)
}

fn handshake_error(outcome: Result<Glasses, Error>) -> handshake::Error {
    match outcome.err() {
        Some(Error::Handshake(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn pairing_shows_the_gateways_code_and_pins_its_key() {
    let state = tempfile::tempdir().unwrap();
    let (glasses, code, _peer) = meet(state.path(), 1, Conduct::Honest).await;
    let glasses = glasses.unwrap();
    let shown = glasses.log().since(0).into_iter().find_map(|event| match event.seen {
        Seen::PairingCode { code, .. } => Some(code),
        _ => None,
    });
    assert_eq!(shown.unwrap(), code);
    // The same gateway needs no further pairing.
    assert!(meet(state.path(), 1, Conduct::NoPairing).await.0.is_ok());
    // Another gateway does not reach the proof.
    let (outcome, code, _peer) = meet(state.path(), 2, Conduct::Honest).await;
    assert!(matches!(handshake_error(outcome), handshake::Error::WrongGateway { .. }));
    assert_eq!(code, None);
}

#[tokio::test]
async fn who_cannot_sign_gets_no_proof() {
    for conduct in [Conduct::WrongSignature, Conduct::OtherBinding] {
        let state = tempfile::tempdir().unwrap();
        let (outcome, code, _peer) = meet(state.path(), 1, conduct).await;
        assert!(matches!(handshake_error(outcome), handshake::Error::BadSignature));
        assert_eq!(code, None, "the glasses revealed their nonce");
    }
}

#[tokio::test]
async fn an_unasked_welcome_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let (outcome, ..) = meet(state.path(), 1, Conduct::NoPairing).await;
    assert!(matches!(handshake_error(outcome), handshake::Error::UnaskedWelcome));
}

#[tokio::test]
async fn a_refusal_is_told_in_words() {
    let state = tempfile::tempdir().unwrap();
    let (outcome, ..) = meet(state.path(), 1, Conduct::Refuses).await;
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("revoked") && error.contains("no more"), "{error}");
}

#[tokio::test]
async fn over_tls_the_binding_is_the_exporter() {
    let made = rcgen::generate_simple_self_signed(vec!["nobody".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let private = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], private.into())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    for (conduct, works) in [(Conduct::Honest, true), (Conduct::OtherBinding, false)] {
        let (listener, address) = listener().await;
        let state = tempfile::tempdir().unwrap();
        let gateway = async {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            let connection = stream.get_ref().1;
            let binding = connection.export_keying_material([0; 32], auth::EXPORTER_LABEL, Some(&[])).unwrap();
            assert_ne!(binding, auth::NO_BINDING);
            let mut peer = Peer::accept(Box::new(stream)).await;
            let code = peer.shake(&key(1), binding, conduct).await;
            (code, peer)
        };
        let address = address.replace("ws://", "wss://");
        let (outcome, _gateway) = tokio::join!(Glasses::connect(options(&address, state.path())), gateway);
        assert_eq!(outcome.is_ok(), works);
    }
}

#[tokio::test]
async fn glasses_introduce_themselves_and_answer_calls_once() {
    let state = tempfile::tempdir().unwrap();
    let (glasses, _, mut peer) = meet(state.path(), 1, Conduct::Honest).await;
    let glasses = glasses.unwrap();
    let mut kinds = Vec::new();
    peer.until(|stamp, up| {
        if up.class() == device_protocol::Class::Control {
            assert_eq!(stamp.sequence as usize, kinds.len() + 1);
            kinds.push(up.name());
        }
        (kinds.len() == 3).then_some(())
    })
    .await;
    assert_eq!(kinds, ["tool_list", "battery", "connection"]);
    let call = down::ToolCall { call: 5, name: "camera.photo", arguments: "{}", deadline_ms: 1_000 };
    peer.send(call).await;
    peer.send(call).await;
    let (mut bytes, mut results) = (0, Vec::new());
    peer.until(|_, up| {
        match up {
            Up::PhotoChunk(chunk) => {
                assert_eq!((chunk.call, chunk.mime, results.len()), (5, "image/png", 0));
                bytes += chunk.payload.len();
            }
            Up::ToolResult(result) => results.push((result.ok, result.data.to_owned())),
            _ => {}
        }
        (results.len() == 2).then_some(())
    })
    .await;
    assert!(bytes > 16 * 1024, "more than one piece, so that their order matters");
    assert_eq!(results, vec![(true, r#"{"photo":1}"#.to_owned()); 2]);
    drop(glasses);
    peer.until(|_, up| matches!(up, Up::Goodbye(_)).then_some(())).await;
}

#[tokio::test]
async fn a_gap_in_the_sequences_ends_the_session() {
    let state = tempfile::tempdir().unwrap();
    let (glasses, _, mut peer) = meet(state.path(), 1, Conduct::Honest).await;
    let glasses = glasses.unwrap();
    peer.control = 4;
    peer.send(down::Listening { state: ListeningState::Wake }).await;
    let reason = peer.until(|_, up| match up {
        Up::Goodbye(goodbye) => Some(goodbye.reason),
        _ => None,
    });
    assert_eq!(reason.await, GoodbyeReason::BadSequence);
    let (event, _) = glasses.log().find(0, |event| matches!(event.seen, Seen::Violation { .. })).await;
    assert!(matches!(event.seen, Seen::Violation { what } if what.contains('5')));
}

#[tokio::test]
async fn a_spoken_clip_arrives_whole_and_in_order() {
    let state = tempfile::tempdir().unwrap();
    let (glasses, _, mut peer) = meet(state.path(), 1, Conduct::Honest).await;
    let glasses = glasses.unwrap();
    let clip: Vec<i16> = (0..3_200).map(|n| 5_000 + n).collect();
    let expected = clip.clone();
    let listening = async {
        let mut samples: Vec<i16> = Vec::new();
        let mut last: Option<(u32, u64)> = None;
        peer.until(|stamp, up| {
            let Up::Audio(audio) = up else { return None };
            if let Some((sequence, time_us)) = last {
                assert_eq!((stamp.sequence, stamp.time_us), (sequence + 1, time_us + 20_000));
            }
            last = Some((stamp.sequence, stamp.time_us));
            let decoded = audio.payload.chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
            samples.extend(decoded.filter(|sample| *sample > 100));
            (samples.len() >= 3_200).then_some(())
        })
        .await;
        samples
    };
    let (said, samples) = tokio::join!(glasses.say_pcm("count", &clip, None), listening);
    // Background noise of up to 8 is added to the voice.
    assert!(samples.iter().zip(&expected).all(|(heard, said)| (heard - said).abs() <= 8));
    let said = said.unwrap();
    assert_eq!(said.t0_us - said.begins_us, 200_000);
}

#[tokio::test]
async fn what_is_said_into_a_muted_microphone_is_said_and_goes_nowhere() {
    let state = tempfile::tempdir().unwrap();
    let (glasses, _, mut peer) = meet(state.path(), 1, Conduct::Honest).await;
    let glasses = glasses.unwrap();
    glasses.mute(true).await.unwrap();
    let clip: Vec<i16> = (0..3_200).map(|n| 5_000 + n).collect();
    glasses.say_pcm("count", &clip, None).await.expect("said to its end");
    glasses.text("over").await.unwrap();
    let mut muted = false;
    peer.until(|_, up| match up {
        Up::Mute(mute) => {
            muted = mute.muted;
            None
        }
        Up::Audio(_) => {
            assert!(!muted, "sound left a muted microphone");
            None
        }
        Up::TextInput(_) => Some(()),
        _ => None,
    })
    .await;
    assert!(muted);
}

#[tokio::test]
async fn a_new_session_after_a_cut_counts_from_one() {
    let (listener, address) = listener().await;
    let state = tempfile::tempdir().unwrap();
    let gateway = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Peer::accept(Box::new(stream)).await;
        peer.shake(&key(1), auth::NO_BINDING, Conduct::Honest).await;
        // A speech is in progress when the link breaks.
        peer.send(down::SpeechStart { speech: 1, codec: device_protocol::Codec::Pcm16, rate_hz: 16_000, text: "" })
            .await;
        for n in 0..5 {
            let payload = [0; 640];
            let (position_us, duration_us) = (n * 20_000, 20_000);
            peer.send(down::SpeechChunk { speech: 1, clause: 0, position_us, duration_us, payload: &payload }).await;
        }
        peer.until(|_, up| matches!(up, Up::Played(_)).then_some(())).await;
        drop(peer);
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Peer::accept(Box::new(stream)).await;
        peer.shake(&key(1), auth::NO_BINDING, Conduct::NoPairing).await;
        let first = peer
            .until(|stamp, up| (up.class() == device_protocol::Class::Control).then(|| (stamp.sequence, up.name())));
        assert_eq!(first.await, (1, "tool_list"));
    };
    let mut options = options(&address, state.path());
    options.reconnect = true;
    let glasses = async { Glasses::connect(options).await.unwrap() };
    let (_glasses, ()) = tokio::join!(glasses, gateway);
}

#[tokio::test]
async fn who_is_replaced_by_a_connection_that_it_gave_up_resumes_with_the_token_that_it_has() {
    let (listener, address) = listener().await;
    let state = tempfile::tempdir().unwrap();
    let gateway = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut first = Peer::accept(Box::new(stream)).await;
        first.shake(&key(1), auth::NO_BINDING, Conduct::Honest).await;
        // It falls silent, so that the glasses try another connection. The answer to that one does not arrive.
        let (stream, _) = listener.accept().await.unwrap();
        let mut second = Peer::accept(Box::new(stream)).await;
        second.shake(&key(1), auth::NO_BINDING, Conduct::Unanswered).await;
        assert_eq!(second.receive().await, None, "given up");
        first.send(down::Goodbye { reason: GoodbyeReason::Replaced, message: "", retry_after_ms: 0 }).await;
        let (stream, _) = listener.accept().await.unwrap();
        let mut third = Peer::accept(Box::new(stream)).await;
        let token = third.until(|_, up| match up {
            Up::Hello(hello) => Some(hello.resume.map(|resume| resume.token.to_vec())),
            _ => None,
        });
        assert_eq!(token.await.as_deref(), Some(b"token".as_slice()));
    };
    let mut options = options(&address, state.path());
    options.reconnect = true;
    let glasses = async { Glasses::connect(options).await.unwrap() };
    let (_glasses, ()) = tokio::join!(glasses, gateway);
}

#[tokio::test]
async fn who_is_replaced_by_others_does_not_take_that_for_an_attempt_that_proved_nothing() {
    let (listener, address) = listener().await;
    let state = tempfile::tempdir().unwrap();
    let gateway = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut first = Peer::accept(Box::new(stream)).await;
        first.shake(&key(1), auth::NO_BINDING, Conduct::Honest).await;
        // It falls silent. The other connection that the glasses try ends before they have proven who they are.
        let (stream, _) = listener.accept().await.unwrap();
        let mut second = Peer::accept(Box::new(stream)).await;
        second.until(|_, up| matches!(up, Up::Hello(_)).then_some(())).await;
        drop(second);
        first.send(down::Goodbye { reason: GoodbyeReason::Replaced, message: "", retry_after_ms: 0 }).await;
        first
    };
    let mut options = options(&address, state.path());
    options.reconnect = true;
    let glasses = async { Glasses::connect(options).await.unwrap() };
    let (glasses, _first) = tokio::join!(glasses, gateway);
    let is_left = |seen: &Seen| matches!(seen, Seen::Goodbye { .. } | Seen::LinkLost { .. });
    let (event, _) = glasses.log().find(0, |event| is_left(&event.seen)).await;
    assert!(matches!(event.seen, Seen::Goodbye { resumes: false, .. }), "{event:?}");
}
