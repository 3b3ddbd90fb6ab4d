//! A scripted device: raw frames over a real transport, valid or not.

use bytes::Bytes;
use device_protocol::{
    Buttons, ChannelBinding, Codecs, Decoded, DisplayKind, Down, Frame, Sensors, Stamp, Up, auth::Handshake,
    decode_down, encode, limits, up,
};
use firmware_sim::{
    identity::{Identity, random_bytes},
    transport::{self, Inbound, Link},
};
use sha2::{Digest as _, Sha256};

use crate::world::{WAIT, World};

/// A message of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The handshake was refused: code and reason.
    Reject(String, String),
    /// The session was ended: code and reason.
    Goodbye(String, String),
    /// Another message, by its name.
    Other(&'static str),
    /// The link ended.
    Closed,
}

/// A scripted device.
pub struct Peer {
    /// Its declared capabilities.
    pub capabilities: up::Capabilities,
    /// Its declared channel binding.
    pub binding: ChannelBinding,
    pub link: Link,
    pub identity: Identity,
    pub nonce: [u8; 32],
    /// Its declared model.
    pub model: String,
    /// Its declared version of the firmware.
    pub firmware: String,
    pub control: u32,
    /// The token of the session that it goes on with.
    pub token: Vec<u8>,
}

/// The bytes of a frame with this sequence, of no turn.
pub fn frame(sequence: u32, message: Up<'_>) -> Vec<u8> {
    frame_at(1, sequence, message)
}

/// As [`frame`], with this time on the device's clock.
pub fn frame_at(time_us: u64, sequence: u32, message: Up<'_>) -> Vec<u8> {
    let stamp = Stamp { sequence, turn: 0, time_us };
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let length = encode(&Frame::new(stamp, message), &mut buffer).expect("it fits");
    buffer.truncate(length);
    buffer
}

impl Peer {
    /// Connects without sending anything.
    pub async fn connect(world: &World, scheme: &str, name: &str) -> Self {
        Self::connect_to(&world.address(scheme), &world.folder().join(name)).await
    }

    /// As [`Self::connect`], to this address.
    pub async fn connect_to(address: &str, state: &std::path::Path) -> Self {
        let link = transport::open(&address.parse().expect("an address")).await.expect("a link");
        let identity = Identity::load_or_make(state).expect("an identity");
        let nonce = random_bytes().expect("random");
        let (capabilities, binding) = (capabilities(), ChannelBinding::Exporter);
        Self {
            capabilities,
            binding,
            link,
            identity,
            nonce,
            model: "By hand".to_owned(),
            firmware: "1".to_owned(),
            control: 0,
            token: Vec::new(),
        }
    }

    /// A device in a session, paired before by simulated glasses with the same name.
    pub async fn welcomed(world: &World, scheme: &str, name: &str) -> Self {
        Self::welcomed_with(world, scheme, name, capabilities()).await
    }

    /// As [`Self::welcomed`], with these capabilities.
    pub async fn welcomed_with(world: &World, scheme: &str, name: &str, capabilities: up::Capabilities) -> Self {
        world.glasses(scheme, name).await.goodbye().await;
        let mut peer = Self::connect(world, scheme, name).await;
        peer.capabilities = capabilities;
        peer.shake().await;
        peer
    }

    /// A valid handshake up to the welcome. Returns whether the session goes on whose token it shows.
    pub async fn shake(&mut self) -> bool {
        let handshake = self.hello().await;
        self.prove(&handshake).await;
        let bytes = self.receive().await.expect("a welcome");
        let Ok(Decoded::Frame(Frame { message: Down::Welcome(welcome), .. })) = decode_down(&bytes) else {
            panic!("no welcome: {:?}", named(&bytes));
        };
        self.token = welcome.resume_token.to_vec();
        welcome.resumed.is_some()
    }

    /// Sends a hello; returns the state after the challenge.
    pub async fn hello(&mut self) -> Handshake {
        let nonce_commitment = self.say_hello().await;
        let bytes = self.receive().await.expect("a challenge");
        let Ok(Decoded::Frame(Frame { message: Down::Challenge(challenge), .. })) = decode_down(&bytes) else {
            panic!("no challenge: {:?}", named(&bytes));
        };
        Handshake {
            device_key: self.identity.public_key(),
            gateway_key: challenge.gateway_key,
            nonce_commitment,
            gateway_nonce: challenge.nonce,
            binding: self.link.binding,
        }
    }

    /// Sends only a hello; returns its commitment.
    pub async fn say_hello(&mut self) -> [u8; 32] {
        let nonce_commitment = Sha256::digest(self.nonce).into();
        let resume = up::Resume { token: &self.token, control_received: 0, audio_received: 0 };
        let hello = up::Hello {
            device_key: self.identity.public_key(),
            nonce_commitment,
            device_id: "by-hand",
            model: &self.model,
            firmware: &self.firmware,
            language: "en",
            capabilities: self.capabilities,
            resume: (!self.token.is_empty()).then_some(resume),
            binding: self.binding,
        };
        self.raw(frame(0, Up::Hello(hello))).await;
        nonce_commitment
    }

    /// Signs and sends the proof.
    pub async fn prove(&mut self, handshake: &Handshake) {
        let signature = self.identity.sign(&handshake.device_proof(&self.nonce));
        self.proof(signature).await;
    }

    /// Sends this signature as the proof.
    pub async fn proof(&mut self, signature: [u8; 64]) {
        let proof = up::Proof { nonce: self.nonce, signature, invitation: [0; 32] };
        self.raw(frame(0, Up::Proof(proof))).await;
    }

    /// Sends these bytes as one envelope.
    pub async fn raw(&self, bytes: impl Into<Bytes>) {
        // Some tests expect that the gateway has closed already.
        drop(self.link.up.send(bytes.into()).await);
    }

    /// Sends the next control message.
    pub async fn control(&mut self, message: Up<'_>) {
        self.control += 1;
        self.raw(frame(self.control, message)).await;
    }

    /// The next frame; `None` if the link has ended.
    pub async fn receive(&mut self) -> Option<Bytes> {
        let inbound = tokio::time::timeout(WAIT, self.link.down.recv());
        match inbound.await.expect("something in time") {
            Some(Inbound::Frame(frame)) => Some(frame),
            Some(Inbound::Closed { .. }) | None => None,
        }
    }

    /// The gateway's close code; other messages are skipped.
    pub async fn closed(&mut self) -> u16 {
        loop {
            let inbound = tokio::time::timeout(WAIT, self.link.down.recv());
            match inbound.await.expect("something in time") {
                Some(Inbound::Frame(_)) => {}
                Some(Inbound::Closed { code, .. }) => return code,
                None => panic!("the link ended without a close"),
            }
        }
    }

    /// The next message of the gateway.
    pub async fn next(&mut self) -> Said {
        match self.receive().await {
            Some(bytes) => named(&bytes),
            None => Said::Closed,
        }
    }

    /// How the gateway ended the session; other messages are skipped.
    pub async fn end(&mut self) -> Said {
        loop {
            match self.next().await {
                Said::Other(_) => {}
                said => return said,
            }
        }
    }
}

/// A microphone, a speaker and a small display.
pub fn capabilities() -> up::Capabilities {
    up::Capabilities {
        codecs_up: Codecs::PCM16,
        codecs_down: Codecs::PCM16,
        audio_up_hz: 16_000,
        audio_down_hz: 16_000,
        display: up::Screen {
            kind: DisplayKind::Text,
            width_px: 0,
            height_px: 0,
            columns: 40,
            rows: 6,
            colour_bits: 1,
            captions: false,
        },
        speakers: 1,
        buttons: Buttons::MAIN,
        sensors: Sensors::BATTERY,
        echo_cancelled: true,
        tools: 0,
        frame_bytes_max: 0,
        heartbeat_ms: 0,
        image_bytes_max: 0,
        hardware: 0,
        lc3_frame_us: 0,
        lc3_frame_bytes: 0,
    }
}

fn named(bytes: &[u8]) -> Said {
    let message = match decode_down(bytes) {
        Ok(Decoded::Frame(frame)) => frame.message,
        other => panic!("the gateway sent {other:?}"),
    };
    match message {
        Down::Reject(reject) => Said::Reject(reject.code.name().unwrap_or("?").to_owned(), reject.message.to_owned()),
        Down::Goodbye(goodbye) => {
            Said::Goodbye(goodbye.reason.name().unwrap_or("?").to_owned(), goodbye.message.to_owned())
        }
        message => Said::Other(message.name()),
    }
}
