//! One device and its connections, one after the other, up to the welcome of each.

use std::{collections::BTreeSet, time::Duration};

use audio::codec::Codec;
use device_protocol::{
    Down, ListeningState, RejectCode,
    down::{self, AudioFormat},
    limits,
    up::{Capabilities, HelloOwned, ResumeOwned},
};
use tokio::time::{Instant, timeout_at};

use super::{
    Judge, Judgement, Progress, Rule,
    handshake::{self, Proven},
    session::{Outgoing, Session},
    watch::Watch,
};
use crate::{
    clock,
    device_task::formats::{Agreed, agree, format},
    http::links::Arrival,
    identity::{fingerprint, random},
    runtime::spawn,
    transport::Link,
};

/// Length of a packet, both ways.
/// How long a lost session may be resumed.
const RESUME_MS: u32 = 60_000;

/// A device that is judged.
pub(super) struct Visit<'a> {
    pub(super) judge: &'a mut Judge,
    pub(super) told: &'a mut (dyn FnMut(Progress) + Send),
    pub(super) watch: Watch,
    pub(super) out: Outgoing,
    pub(super) session: Option<Session>,
    /// Its key, and what it says of itself.
    pub(super) hello: HelloOwned,
    pub(super) transport: &'static str,
    pub(super) formats: (AudioFormat, AudioFormat),
    number: u32,
    token: [u8; 32],
    /// Whether the session of before may be resumed.
    pub(super) resumable: bool,
    commitments: BTreeSet<[u8; 32]>,
    /// Whether a frame of a later version was sent in a handshake, and nothing came since.
    tried_unknown: bool,
    /// The rule that fails if the device ends the session now.
    pub(super) at: Rule,
    /// A connection that has said hello, and is not welcomed.
    pub(super) waiting: Option<(Arrival, HelloOwned)>,
}

/// How a connection begins.
pub(super) enum Entry {
    /// The session of before goes on.
    Resumed,
    /// A new one.
    New,
    /// The device did not come, or failed in the handshake.
    None,
}

impl<'a> Visit<'a> {
    /// Waits for a device that says hello; a judgement: it says something else.
    pub(super) async fn begin(
        judge: &'a mut Judge,
        told: &'a mut (dyn FnMut(Progress) + Send),
    ) -> Option<Result<Self, Judgement>> {
        let mut watch = Watch::new(micros(judge.options.grace));
        loop {
            let mut arrival = judge.arrivals.recv().await?;
            let transport = arrival.link.transport.label;
            let hello = match handshake::hello(&mut arrival.link, &mut watch.report).await {
                Ok(hello) => hello,
                Err(error) => {
                    tracing::info!(peer = %arrival.link.peer, error, "a connection came to nothing");
                    if watch.report.verdict(Rule::Hello).is_none() {
                        continue;
                    }
                    handshake::reject(&arrival.link, RejectCode::Malformed, "no hello");
                    spawn("closing", arrival.link.close());
                    return Some(Err(Judgement { device: String::new(), transport, judged: watch.report.finish() }));
                }
            };
            let (id, model) = (fingerprint(&hello.device_key), hello.model.clone());
            told(Progress::Device { id, model, transport });
            let commitments = BTreeSet::from([hello.nonce_commitment]);
            return Some(Ok(Self {
                formats: formats(&hello.capabilities),
                out: Outgoing::new(arrival.link.down.zero_us),
                hello: hello.clone(),
                waiting: Some((arrival, hello)),
                judge,
                told,
                watch,
                session: None,
                transport,
                at: Rule::Proof,
                number: 0,
                token: [0; 32],
                resumable: false,
                commitments,
                tried_unknown: false,
            }));
        }
    }

    pub(super) fn judgement(self) -> Judgement {
        let (device, transport) = (fingerprint(&self.hello.device_key), self.transport);
        if let Some(session) = self.session {
            session.close();
        }
        Judgement { device, transport, judged: self.watch.report.finish() }
    }

    pub(super) fn say(&mut self, what: &'static str, within: Duration, asks: bool) {
        (self.told)(Progress::Step { what, within, asks });
    }

    /// The next connection of this device that says hello, until then; those of others are sent away.
    pub(super) async fn arrive(&mut self, within: Duration) -> Option<(Arrival, HelloOwned)> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        let by = Instant::now() + within;
        loop {
            let mut arrival = timeout_at(by, self.judge.arrivals.recv()).await.ok().flatten()?;
            match handshake::hello(&mut arrival.link, &mut self.watch.report).await {
                Ok(hello) if hello.device_key == self.hello.device_key => {
                    self.note(&hello);
                    return Some((arrival, hello));
                }
                Ok(_) => handshake::reject(&arrival.link, RejectCode::Busy, "another device is judged"),
                Err(error) => tracing::info!(peer = %arrival.link.peer, error, "a connection came to nothing"),
            }
            spawn("closing", arrival.link.close());
        }
    }

    fn note(&mut self, hello: &HelloOwned) {
        if !self.commitments.insert(hello.nonce_commitment) {
            self.watch.report.fail(Rule::Nonce, "two connections have the same commitment");
        } else if self.commitments.len() > 1 {
            self.watch.report.pass(Rule::Nonce);
        }
    }

    /// Waits for a connection, and takes it to a session.
    pub(super) async fn enter(&mut self, within: Duration) -> Entry {
        let by = Instant::now() + within;
        loop {
            let Some((arrival, hello)) = self.arrive(by.saturating_duration_since(Instant::now())).await else {
                return Entry::None;
            };
            match self.welcome(arrival, hello).await {
                Ok(entry) => return entry,
                Err(error) => tracing::info!(error, "a handshake came to nothing"),
            }
            if Instant::now() >= by {
                return Entry::None;
            }
        }
    }

    async fn welcome(&mut self, arrival: Arrival, hello: HelloOwned) -> handshake::Outcome<Entry> {
        let Arrival { mut link, slot } = arrival;
        let tries = !self.tried_unknown && self.watch.report.verdict(Rule::UnknownLink).is_none();
        if std::mem::take(&mut self.tried_unknown) {
            self.watch.report.fail(Rule::UnknownLink, "the device closed the link, and came again");
        }
        if tries {
            handshake::send_unknown(&link)?;
            self.tried_unknown = true;
        }
        let signed = handshake::challenge(&link, &self.judge.key, &hello)?;
        let proven = handshake::proof(&mut link, &mut self.watch.report, signed).await;
        let proven = match proven {
            Ok(proven) => proven,
            Err(error) => {
                spawn("closing", link.close());
                return Err(error);
            }
        };
        if std::mem::take(&mut self.tried_unknown) {
            self.watch.report.pass(Rule::UnknownLink);
        }
        self.admit(&mut link, &hello, &proven).await?;
        slot.admit();
        link.up.allow(self.judge.options.traffic);
        self.hello = hello;
        let resume = self.hello.resume.clone();
        let entry = match resume.filter(|_| self.resumable) {
            Some(resume) => self.resume(&link, &resume)?,
            None => self.open(&link)?,
        };
        let (now_us, heartbeat_ms) = (clock::mono_us(), self.heartbeat_ms());
        let heartbeat_us = u64::from(heartbeat_ms) * 1_000;
        self.watch.welcomed(now_us, heartbeat_us, link.transport.ordered);
        self.session = Some(Session {
            link,
            _slot: slot,
            heartbeat_us,
            beat_us: now_us + heartbeat_us,
            heard: None,
            acks: true,
            feed: None,
        });
        Ok(entry)
    }

    /// Pairs a device that is not paired.
    async fn admit(&mut self, link: &mut Link, hello: &HelloOwned, proven: &Proven) -> handshake::Outcome<()> {
        let (id, grace) = (fingerprint(&hello.device_key), self.judge.options.grace);
        if self.judge.paired.contains(&id) {
            return Ok(());
        }
        match handshake::knows(proven, &self.judge.code.0) {
            Some(knows) => {
                self.watch.report.check(Rule::Invitation, knows, || "it does not fit the code".to_owned());
                if !knows {
                    handshake::reject(link, RejectCode::PairingFailed, "another invitation");
                    return Err("another invitation".to_owned());
                }
            }
            None => {
                let (method, shown) = handshake::to_compare(proven, &hello.capabilities);
                (self.told)(Progress::Pairing { method, shown });
                handshake::pair(link, &mut self.watch.report, method, grace).await?;
            }
        }
        self.judge.pair(&id);
        Ok(())
    }

    fn heartbeat_ms(&self) -> u32 {
        let often_ms = u32::try_from(self.judge.options.heartbeat.as_millis()).unwrap_or(limits::HEARTBEAT_MS_MAX);
        self.hello.capabilities.heartbeat_ms.clamp(often_ms, limits::HEARTBEAT_MS_MAX)
    }

    /// Begins a session: a new number, the formats by the device's capabilities, and the welcome.
    fn open(&mut self, link: &Link) -> handshake::Outcome<Entry> {
        self.number += 1;
        self.out = Outgoing::new(link.down.zero_us);
        self.formats = formats(&self.hello.capabilities);
        self.watch.begin(self.formats.0);
        self.send_welcome(link, None)?;
        Ok(Entry::New)
    }

    /// The session goes on: what the device asks is judged, and what it lacks is sent again.
    fn resume(&mut self, link: &Link, resume: &ResumeOwned) -> handshake::Outcome<Entry> {
        let ResumeOwned { token, control_received, audio_received } = resume;
        let (control, audio, _) = self.watch.sent;
        let acknowledged = self.watch.ack.map_or((0, 0), |ack| (ack.control, ack.audio));
        let has_token = token[..] == self.token;
        let is_true =
            (acknowledged.0..=control).contains(control_received) && (acknowledged.1..=audio).contains(audio_received);
        self.watch.report.check(Rule::Resume, has_token && is_true, || match has_token {
            false => "the token is not the last one".to_owned(),
            true => format!(
                "received: {control_received} and {audio_received}; sent: {control} and {audio}, acknowledged: {acknowledged:?}"
            ),
        });
        if !has_token {
            return self.open(link);
        }
        let (control, audio) = self.watch.resume(clock::mono_us());
        self.send_welcome(link, Some(down::Resumed { control_received: control, audio_received: audio }))?;
        self.out.acknowledged(*control_received);
        for bytes in self.out.lacking() {
            link.down.put(bytes).map_err(|error| error.to_string())?;
        }
        Ok(Entry::Resumed)
    }

    fn send_welcome(&mut self, link: &Link, resumed: Option<down::Resumed>) -> handshake::Outcome<()> {
        self.token = random().map_err(|error| error.to_string())?;
        let welcome = down::Welcome {
            session: self.number,
            resume_token: &self.token,
            resume_ms: RESUME_MS,
            resumed,
            gateway_name: "Judge",
            user_name: "",
            heartbeat_ms: self.heartbeat_ms(),
            audio_up: self.formats.0,
            audio_down: self.formats.1,
            wall_ms: u64::try_from(clock::wall_ms()).unwrap_or(0),
            zone_offset_s: 0,
            listening: ListeningState::Idle,
            continued: None,
        };
        let frame = self.out.frame(self.watch.sent.2, clock::mono_us(), Down::Welcome(welcome));
        link.down.put(frame.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
    }
}

/// As the gateway chooses them; PCM where nothing fits, which the rule of the hello tells.
fn formats(capabilities: &Capabilities) -> (AudioFormat, AudioFormat) {
    let agreed = agree(capabilities).unwrap_or_else(|_| Agreed {
        up: Some((Codec::Pcm16, capabilities.audio_up_hz)),
        down: (capabilities.speakers > 0).then_some((Codec::Pcm16, capabilities.audio_down_hz)),
    });
    (format(agreed.up), format(agreed.down))
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
