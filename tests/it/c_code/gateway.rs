//! A scripted gateway for the client in C: raw bytes over TLS, valid or not.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use device_protocol::{
    Class, Codec, Decoded, DisplayAction, Down, Frame, ListeningState, Message, PairingMethod, SUBPROTOCOL, Stamp, Up,
    View,
    auth::{EXPORTER_LABEL, Handshake},
    decode_up, down, encode, limits,
};
use firmware_sim::identity::{Identity, random_bytes};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    net::{TcpListener, TcpSocket, TcpStream},
    process::Command,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::{identity::relay::acceptor, world::WAIT};

/// Opcodes of WebSocket.
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// The rate of the sound, both ways.
pub const RATE_HZ: u32 = 16_000;

pub type Stream = TlsStream<TcpStream>;

/// It listens, and does what a test says.
pub struct Gateway {
    folder: TempDir,
    listener: TcpListener,
    acceptor: TlsAcceptor,
    identity: Identity,
    pub address: SocketAddr,
}

/// How the client ended.
#[derive(Debug)]
pub struct Ended {
    /// Nothing: by a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub said: String,
    /// Standard error.
    pub complaint: String,
}

/// Runs the client to its end, which no sanitizer brought about.
pub async fn run(client: &Path, state: &Path, address: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(client);
    command.arg(state).arg(address).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(WAIT, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("it does not end: {address} {arguments:?}")).expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (said, complaint) = (text(output.stdout), text(output.stderr));
    assert!(!complaint.contains("Sanitizer") && !complaint.contains("runtime error"), "{complaint}");
    Ended { code: output.status.code(), said, complaint }
}

impl Gateway {
    pub async fn start(address: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address: SocketAddr = address.parse().expect("an address");
        let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }.expect("a socket");
        // What is not read stays with the client soon.
        socket.set_recv_buffer_size(64 * 1024).expect("a small buffer");
        socket.bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        let listener = socket.listen(4).expect("it listens");
        let address = listener.local_addr().expect("its address");
        let identity = Identity::load_or_make(&folder.path().join("gateway")).expect("a key");
        let gateway = Self { folder, listener, acceptor: acceptor(), identity, address };
        std::fs::create_dir(gateway.state()).expect("a folder");
        std::fs::write(gateway.state().join("gateway.key"), gateway.identity.public_key()).expect("the pin");
        gateway
    }

    /// The state of a client that has pinned it.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("client")
    }

    /// The client that has pinned it, with these further words.
    pub async fn visited(&self, client: &Path, arguments: &[&str]) -> Ended {
        run(client, &self.state(), &self.address.to_string(), arguments).await
    }

    pub async fn tcp(&self) -> TcpStream {
        let (stream, _) = self.listener.accept().await.expect("the client");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    pub async fn tls(&self) -> Stream {
        self.acceptor.accept(self.tcp().await).await.expect("TLS")
    }

    /// Up to the answer to its upgrade; and the request for it.
    pub async fn upgraded(&self) -> (Stream, String) {
        let mut stream = self.tls().await;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.expect("a request"));
        }
        let request = String::from_utf8(request).expect("a request");
        let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\
             Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        stream.write_all(answer.as_bytes()).await.expect("answered");
        stream.flush().await.expect("answered");
        (stream, request)
    }

    /// Up to the proof of the client.
    pub async fn proven(&self) -> (Inbound, Outbound) {
        let (stream, _) = self.upgraded().await;
        let binding = stream.get_ref().1.export_keying_material([0; 32], EXPORTER_LABEL, Some(&[]));
        let (read, write) = tokio::io::split(stream);
        let (mut inbound, mut outbound) = (Inbound(read), Outbound { stream: write, control: 0, audio: 0 });
        let (_, hello) = inbound.next().await.expect("a hello");
        let Ok(Decoded::Frame(Frame { message: Up::Hello(hello), .. })) = decode_up(&hello) else {
            panic!("no hello: {hello:?}");
        };
        let handshake = Handshake {
            device_key: hello.device_key,
            gateway_key: self.identity.public_key(),
            nonce_commitment: hello.nonce_commitment,
            gateway_nonce: random_bytes().expect("random"),
            binding: binding.expect("the exporter"),
        };
        let challenge = down::Challenge {
            nonce: handshake.gateway_nonce,
            gateway_key: handshake.gateway_key,
            signature: self.identity.sign(&handshake.gateway_proof()),
        };
        outbound.say(Down::Challenge(challenge)).await;
        let (_, proof) = inbound.next().await.expect("a proof");
        assert!(matches!(decode_up(&proof), Ok(Decoded::Frame(Frame { message: Up::Proof(_), .. }))), "{proof:?}");
        (inbound, outbound)
    }

    /// Up to the welcome.
    pub async fn welcomed(&self) -> (Inbound, Outbound) {
        let (inbound, mut outbound) = self.proven().await;
        outbound.say(Down::Welcome(welcome())).await;
        (inbound, outbound)
    }
}

fn welcome() -> down::Welcome<'static> {
    let format =
        down::AudioFormat { codec: Codec::Pcm16, rate_hz: RATE_HZ, frame_ms: 20, lc3_frame_us: 0, lc3_frame_bytes: 0 };
    down::Welcome {
        session: 1,
        resume_token: b"",
        resume_ms: 0,
        resumed: None,
        gateway_name: "A script",
        user_name: "wearer",
        heartbeat_ms: 5_000,
        audio_up: format,
        audio_down: format,
        wall_ms: 0,
        zone_offset_s: 0,
        listening: ListeningState::Idle,
        continued: None,
    }
}

/// What the client sends.
pub struct Inbound(ReadHalf<Stream>);

impl Inbound {
    /// The next message: its opcode and its content; nothing: the client has gone.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let opcode = self.0.read_u8().await.ok()? & 0x0f;
        let length = match self.0.read_u8().await.ok()? & 0x7f {
            126 => u64::from(self.0.read_u16().await.ok()?),
            127 => self.0.read_u64().await.ok()?,
            short => u64::from(short),
        };
        let mut mask = [0; 4];
        self.0.read_exact(&mut mask).await.ok()?;
        let mut content = vec![0; usize::try_from(length).ok()?];
        self.0.read_exact(&mut content).await.ok()?;
        for (byte, mask) in content.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        Some((opcode, content))
    }

    /// The next frame of protocol; nothing: the client has gone.
    pub async fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let (BINARY, frame) = self.next().await? {
                return Some(frame);
            }
        }
    }

    /// The content of the next pong.
    pub async fn pong(&mut self) -> Vec<u8> {
        loop {
            if let (PONG, content) = self.next().await.expect("a pong") {
                return content;
            }
        }
    }

    /// Reads until the client has gone.
    pub async fn drained(&mut self) {
        while self.next().await.is_some() {}
    }
}

/// What it is sent.
pub struct Outbound {
    pub stream: WriteHalf<Stream>,
    control: u32,
    audio: u32,
}

impl Outbound {
    /// Sends these bytes; `false`: the client has gone.
    pub async fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// A message as it is sent, with the next number of its class.
    pub fn numbered(&mut self, message: Down<'_>) -> Vec<u8> {
        let sequence = match message.class() {
            Class::Control => &mut self.control,
            Class::Audio => &mut self.audio,
            Class::Link | Class::Reserved => return websocket(BINARY, &envelope(0, message)),
        };
        *sequence += 1;
        websocket(BINARY, &envelope(*sequence, message))
    }

    /// Sends a message; `false`: the client has gone.
    pub async fn say(&mut self, message: Down<'_>) -> bool {
        let message = self.numbered(message);
        self.bytes(&message).await
    }
}

/// An envelope of either direction.
pub fn envelope<'a, M: Message<'a>>(sequence: u32, message: M) -> Vec<u8> {
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let frame = Frame::new(Stamp { sequence, turn: 0, time_us: 1 }, message);
    let length = encode(&frame, &mut buffer).expect("it fits");
    buffer.truncate(length);
    buffer
}

/// A whole message of WebSocket, as servers send it.
pub fn websocket(opcode: u8, content: &[u8]) -> Vec<u8> {
    let mut message = vec![0x80 | opcode];
    match content.len() {
        short @ 0..126 => message.push(u8::try_from(short).expect("short")),
        long @ 126..65_536 => {
            message.push(126);
            message.extend(u16::try_from(long).expect("two bytes").to_be_bytes());
        }
        longest => {
            message.push(127);
            message.extend(u64::try_from(longest).expect("eight bytes").to_be_bytes());
        }
    }
    message.extend(content);
    message
}

pub fn display(text: &str) -> Down<'_> {
    Down::Display(down::Display {
        action: DisplayAction::Show,
        view: View::Main,
        priority: 1,
        duration_ms: 0,
        revision: 1,
        content: down::Content::text_wall(text),
        bitmap: None,
        countdown_ms: 0,
    })
}

pub fn speech_start(speech: u32) -> Down<'static> {
    Down::SpeechStart(down::SpeechStart { speech, codec: Codec::Pcm16, rate_hz: RATE_HZ, text: "" })
}

/// A packet of 20 ms, if its bytes are 640.
pub fn speech_chunk(speech: u32, position_us: u64, payload: &[u8]) -> Down<'_> {
    Down::SpeechChunk(down::SpeechChunk { speech, clause: 0, position_us, duration_us: 20_000, payload })
}

pub fn speech_end(speech: u32, duration_us: u64) -> Down<'static> {
    Down::SpeechEnd(down::SpeechEnd { speech, last_audio_sequence: 0, duration_us })
}

/// Every speech.
pub fn hush() -> Down<'static> {
    Down::Hush(down::Hush { speech: 0, fade_ms: 0 })
}

pub fn heartbeat() -> Down<'static> {
    Down::Heartbeat(down::Heartbeat { echo_us: 0, held_us: 0 })
}

pub fn pairing_code() -> Down<'static> {
    Down::PairingCode(down::PairingCode { method: PairingMethod::Code, expires_s: 120, tries_left: 3 })
}
