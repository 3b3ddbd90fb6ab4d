//! A network in virtual time: the glasses' microphone, a shaped path, the gateway's ear and its core, without a socket
//! and without a clock, so that one seed is one log.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::Arc,
};

use audio::{
    codec::Codec,
    jitter::{self, Missing},
    listener::{Config, Fact, Listener},
    vad::silero,
};
use bytes::Bytes;
use device_protocol::down::AudioFormat;
use firmware_sim::{
    microphone::{Background, Clip, Microphone},
    network::{Conditions, Profile, path::Path, schedule::Schedule},
};
use gateway::speech::facts;
use gateway_core::{
    conversation::{self, Conversation},
    driver::Driver,
    input::Input,
    output::Output,
    vocab::{DeviceInfo, DisplaySize, SoundCoding, SoundReport, Timestamp, Transcript},
};
use tokio::sync::oneshot;

/// Steps of the world.
const STEP_US: u64 = 5_000;
/// When the first sentence begins, and what is waited for behind the last one.
pub const FIRST_US: u64 = 1_000_000;
const REST_US: u64 = 10_000_000;
/// Sound after which the gateway acknowledges, and looks at how it came.
const REPORT_US: u64 = 400_000;
/// An outage after which the glasses connect again and send what they have kept; a shorter one they do not notice.
const NOTICED_US: u64 = 2_000_000;
/// Packets that glasses keep.
const KEPT_MAX: usize = 500;
/// Bytes of a request for missing packets, with its headers.
const REQUEST_BYTES: usize = 80;

/// A packet of the microphone.
#[derive(Clone)]
struct Packet {
    sequence: u32,
    capture_us: u64,
    duration_us: u64,
    payload: Bytes,
}

/// Glasses, a network and a gateway.
pub struct World {
    schedule: Schedule,
    path: Path,
    /// The way of requests for missing packets, which come in order and are repaired.
    down: Path,
    is_stream: bool,
    microphone: Microphone,
    captured_us: u64,
    sequence: u32,
    flying: BTreeMap<(u64, u64), Packet>,
    order: u64,
    /// The last packets.
    sent: VecDeque<Packet>,
    /// What an outage holds back, and since when.
    kept: Vec<Packet>,
    out_since_us: Option<u64>,
    /// Packets that the network dropped.
    pub dropped: u64,
    /// While an utterance is open: packets that were heard, and packets that were given up as lost.
    pub in_utterances: (u64, u64),
    /// The gateway's ear.
    pub listener: Listener,
    fastest_us: u64,
    waited_us: u64,
    unreported_us: u64,
    reported: (u64, u64),
    core: Driver<Conversation>,
    /// When each final caption came.
    pub sentences: Vec<u64>,
    /// When each utterance was over, and its sound.
    pub heard: Vec<(u64, Vec<i16>)>,
    /// What the ear and the core did.
    pub log: String,
}

fn device() -> DeviceInfo {
    DeviceInfo {
        id: "glasses".into(),
        user: "wearer".into(),
        display: Some(DisplaySize::new(40, 6)),
        bitmaps: false,
        speaker: true,
        echo_cancelled: true,
        captions: false,
    }
}

fn waits(is_stream: bool) -> jitter::Config {
    if is_stream { jitter::Config::ORDERED } else { jitter::Config::RESENT }
}

impl World {
    /// This network. `is_stream`: nothing is lost, but late.
    pub fn new(profile: Profile, seed: u64, is_stream: bool, silero: &Arc<silero::Model>) -> Self {
        let jitter = waits(is_stream);
        let config = Config { codec: Codec::Opus, rate_hz: 16_000, jitter, ..Config::default() };
        let format = AudioFormat {
            codec: device_protocol::Codec::Opus,
            rate_hz: 16_000,
            frame_ms: 20,
            lc3_frame_us: 0,
            lc3_frame_bytes: 0,
        };
        let mut core = Driver::new(Conversation::new(conversation::Config::default()));
        core.push(Input::Connected { device: device(), resumed: false });
        let mut microphone = Microphone::new(format, Background::Noise(8), seed, None).expect("a microphone");
        microphone.begin_session(true).expect("a coding");
        Self {
            schedule: Schedule::new(profile, seed),
            path: Path::new(seed),
            down: Path::new(!seed),
            is_stream,
            microphone,
            captured_us: 0,
            sequence: 0,
            flying: BTreeMap::new(),
            order: 0,
            sent: VecDeque::new(),
            kept: Vec::new(),
            out_since_us: None,
            dropped: 0,
            in_utterances: (0, 0),
            listener: Listener::new(config, silero.clone()).expect("a listener"),
            fastest_us: u64::MAX,
            waited_us: u64::MAX,
            unreported_us: 0,
            reported: (0, 0),
            core,
            sentences: Vec::new(),
            heard: Vec::new(),
            log: String::new(),
        }
    }

    /// Says these one after the other, one every `every_us`, and waits until all that was said has come.
    pub fn run(mut self, clips: &[&[i16]], every_us: u64) -> Self {
        let end_us = clips.len() as u64 * every_us + REST_US;
        let mut clips = clips.iter().zip(0_u64..).peekable();
        for now_us in (0..end_us).step_by(STEP_US as usize) {
            if let Some((pcm, _)) = clips.next_if(|(_, n)| now_us >= n * every_us + FIRST_US) {
                self.microphone.say(Clip::new("a sentence", pcm, None), oneshot::channel().0);
            }
            self.capture(now_us);
            self.arrive(now_us);
            self.send_missing(now_us);
            self.decide(now_us);
        }
        self
    }

    fn capture(&mut self, now_us: u64) {
        let conditions = self.schedule.at(now_us);
        if conditions.outage && self.out_since_us.is_none() {
            self.out_since_us = Some(now_us);
        }
        if !conditions.outage
            && let Some(since_us) = self.out_since_us.take()
        {
            let kept = std::mem::take(&mut self.kept);
            if self.is_stream || now_us - since_us >= NOTICED_US {
                self.listener.resume(waits(self.is_stream), now_us);
                for (packet, n) in kept.into_iter().zip(0u64..) {
                    let sent_us = now_us + n * packet.duration_us / 4;
                    self.send(packet, sent_us);
                }
            } else {
                self.dropped += kept.len() as u64;
            }
        }
        while self.captured_us + self.microphone.frame_us() <= now_us {
            let (capture_us, duration_us) = (self.captured_us, self.microphone.frame_us());
            self.captured_us += duration_us;
            let packet = self.microphone.capture(capture_us).expect("sound");
            if packet.is_sent {
                self.sequence += 1;
                let packet = Packet { sequence: self.sequence, capture_us, duration_us, payload: packet.payload };
                self.sent.push_back(packet.clone());
                if self.sent.len() > KEPT_MAX {
                    self.sent.pop_front();
                }
                if conditions.outage { self.kept.push(packet) } else { self.send(packet, now_us) }
            }
        }
    }

    /// Sends again what the gateway misses.
    fn send_missing(&mut self, now_us: u64) {
        let after = self.listener.last_sequence().unwrap_or(0);
        let Some(Missing { count, others }) = self.listener.take_missing(now_us) else { return };
        let is_missing = |sequence: u32| match sequence.checked_sub(after + 1) {
            Some(nth) if nth < count => true,
            Some(nth) => others.checked_shr(nth - count).unwrap_or(0) & 1 == 1,
            None => false,
        };
        let conditions = self.schedule.at(now_us);
        let asked_us = self.down.segment(now_us, REQUEST_BYTES, conditions.down, &conditions);
        let missing: Vec<Packet> = self.sent.iter().filter(|packet| is_missing(packet.sequence)).cloned().collect();
        for (packet, n) in missing.into_iter().zip(0u64..) {
            let sent_us = asked_us + n * packet.duration_us / 4;
            self.send(packet, sent_us);
        }
    }

    fn send(&mut self, packet: Packet, at_us: u64) {
        let conditions = self.schedule.at(at_us.min(self.captured_us));
        // What the device protocol, QUIC or WebSocket, and TLS add.
        let bytes = packet.payload.len() + 55;
        let arrivals = if self.is_stream {
            [Some(self.path.segment(at_us, bytes, conditions.up, &conditions)), None]
        } else {
            // A network that blocks UDP is left for WebSocket, which the end-to-end tests show.
            let conditions = Conditions { blocks_udp: false, outage: false, ..conditions };
            self.path.datagram(at_us, bytes, conditions.up, &conditions)
        };
        self.dropped += u64::from(arrivals[0].is_none());
        for arrival in arrivals.into_iter().flatten() {
            self.order += 1;
            self.flying.insert((arrival, self.order), packet.clone());
        }
    }

    fn arrive(&mut self, now_us: u64) {
        let mut facts = Vec::new();
        let (before, was_open) = (self.listener.stats(), self.listener.open_utterance().is_some());
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now_us) {
            let packet = entry.remove();
            let took_us = now_us - packet.capture_us;
            self.fastest_us = self.fastest_us.min(took_us);
            self.waited_us = self.waited_us.min(took_us - self.fastest_us);
            self.unreported_us += packet.duration_us;
            let Packet { sequence, capture_us, payload, .. } = packet;
            self.listener.push_packet(sequence, capture_us, &payload, now_us, &mut facts).expect("Opus");
            self.hear_more(now_us, &mut facts);
        }
        // While the link is lost the gateway's ear does not tick; a short outage it does not notice.
        if self.out_since_us.is_none_or(|since_us| now_us - since_us < NOTICED_US) {
            self.listener.tick(now_us, &mut facts);
            self.hear_more(now_us, &mut facts);
        }
        if was_open || self.listener.open_utterance().is_some() {
            let after = self.listener.stats();
            self.in_utterances.0 += after.packets - before.packets;
            self.in_utterances.1 += after.lost - before.lost;
        }
        if self.unreported_us >= REPORT_US {
            self.unreported_us = 0;
            let counts = self.listener.stats();
            let (packets, lost) = std::mem::replace(&mut self.reported, (counts.packets, counts.lost));
            let report = SoundReport {
                up: true,
                received: (counts.packets - packets) as u32,
                lost: (counts.lost - lost) as u32,
                waited_us: std::mem::replace(&mut self.waited_us, u64::MAX).min(5_000_000) as u32,
            };
            self.core.push(Input::Sound(report));
        }
    }

    /// Has the core decide about these facts, and hears one packet after the other that has come, until nothing follows.
    fn hear_more(&mut self, now_us: u64, facts: &mut Vec<Fact>) {
        loop {
            let is_new = !facts.is_empty();
            for fact in facts.drain(..) {
                writeln!(self.log, "{now_us} {fact:?}").expect("a string");
                self.core.push(Input::Voice(facts::of_listener(fact)));
            }
            if is_new {
                self.decide(now_us);
            }
            if !self.listener.is_ready(now_us) {
                return;
            }
            self.listener.tick(now_us, facts);
        }
    }

    fn decide(&mut self, now_us: u64) {
        let now = Timestamp { mono_us: now_us, wall_ms: (now_us / 1_000) as i64, offset_s: 0 };
        self.core.push(Input::Alive { at_us: now_us });
        if self.core.poll_timeout().is_some_and(|(at_us, _)| at_us <= now_us) {
            self.core.push_timeout();
        }
        while let Some(output) = self.core.poll_output(now) {
            match output {
                Output::Transcribe { utterance, revision, kind, .. } => {
                    // Talk among people: it begins no turn.
                    let text = "the weather in the mountains was very nice".to_owned();
                    self.core.push(Input::Transcript(Transcript {
                        utterance,
                        revision,
                        kind,
                        text,
                        confidence: 0.9,
                        last_word: 0.9,
                        breaks_off: 0.0,
                        foreign: false,
                    }));
                }
                Output::CloseUtterance { utterance } => {
                    let pcm = self.listener.utterance_pcm(utterance).unwrap_or_default().to_vec();
                    self.heard.push((now_us, pcm));
                    self.listener.close_utterance(utterance);
                }
                Output::CodeSound(coding) => {
                    writeln!(self.log, "{now_us} {coding:?}").expect("a string");
                    let SoundCoding { bitrate, packet_ms, loss_percent } = coding;
                    self.microphone.set_coding(bitrate, packet_ms, loss_percent).expect("a coding");
                }
                Output::Caption { last: true, utterance, .. } => {
                    writeln!(self.log, "{now_us} sentence {utterance}").expect("a string");
                    self.sentences.push(now_us);
                }
                _ => {}
            }
        }
    }
}
