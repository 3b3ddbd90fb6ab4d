//! One task per pair of glasses: the link, the clock's ticks and the wearer's commands meet here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use device_protocol::{
    Class, Frame, GoodbyeReason, LinkKind, Message as _, MicEnd, Stamp, Up, encode, limits, up,
};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, timeout};

use crate::clock::Clock;
use crate::display::Screen;
use crate::faults;
use crate::glasses::{Command, Error, Options};
use crate::handshake::{self, Resume, Welcome};
use crate::identity::Identity;
use crate::microphone::Microphone;
use crate::random::Random;
use crate::seen::{Log, Seen};
use crate::session::Books;
use crate::speaker::{Heard, Report, Speaker};
use crate::tools::{Answer, Controls};
use crate::transport::{self, Inbound, Link, Target};

/// Waits before the next attempt to connect, in milliseconds; the last one stays (PROTOCOL.md, section 7).
const BACK_OFF_MS: [u64; 6] = [0, 500, 1_000, 2_000, 4_000, 8_000];

/// Kept sound goes out again at most four times as fast as real time.
const REPLAY_SPEED: u64 = 4;

/// How long the gateway may take to close after a goodbye.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Microphone packets that are made up for in one go when the machine was busy: two seconds.
const CATCH_UP_PACKETS_MAX: u32 = 100;

/// Answers of device tools that are kept for a repeated call.
pub(crate) const ANSWERS_MAX: usize = 64;

type Connected = (Identity, Result<(Link, Welcome), Error>);

/// Everything that one pair of glasses is.
pub(crate) struct Driver {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) books: Books,
    pub(crate) turn: u32,
    pub(crate) speaker: Speaker,
    pub(crate) screen: Screen,
    pub(crate) controls: Controls,
    pub(crate) answers: VecDeque<(u32, Answer)>,
    pub(crate) approvals: Vec<(u32, u64)>,
    pub(crate) echo: Option<(u64, u64)>,
    heard: Arc<Mutex<Vec<Heard>>>,
    commands: mpsc::Receiver<Command>,
    first: Option<oneshot::Sender<Result<(), Error>>>,
    identity: Option<Identity>,
    link: Option<Link>,
    connecting: Option<BoxFuture<'static, Connected>>,
    retry_us: Option<u64>,
    attempts: usize,
    random: Random,
    welcome: Option<Welcome>,
    microphone: Option<Microphone>,
    capture_us: u64,
    muted: bool,
    replay: VecDeque<Bytes>,
    replay_us: u64,
    heartbeat_us: u64,
    last_received_us: u64,
    buffer: Vec<u8>,
    over: bool,
}

impl Driver {
    pub(crate) fn new(
        options: Options,
        identity: Identity,
        clock: Clock,
        log: Log,
        heard: Arc<Mutex<Vec<Heard>>>,
        commands: mpsc::Receiver<Command>,
        first: oneshot::Sender<Result<(), Error>>,
    ) -> Self {
        let (columns, rows) = options.profile.display.unwrap_or((1, 1));
        let mut speaker = Speaker::new(options.decode);
        let controls = Controls::default();
        // The file of what was heard is for people: it is recorded at full volume.
        speaker.set_volume(100);
        Self {
            random: Random::new(options.faults.seed),
            options,
            clock,
            log,
            books: Books::default(),
            turn: 0,
            speaker,
            screen: Screen::new(columns, rows),
            controls,
            answers: VecDeque::new(),
            approvals: Vec::new(),
            echo: None,
            heard,
            commands,
            first: Some(first),
            identity: Some(identity),
            link: None,
            connecting: None,
            retry_us: None,
            attempts: 0,
            welcome: None,
            microphone: None,
            capture_us: 0,
            muted: false,
            replay: VecDeque::new(),
            replay_us: 0,
            heartbeat_us: 0,
            last_received_us: 0,
            buffer: vec![0; limits::FRAME_BYTES_MAX],
            over: false,
        }
    }

    /// Runs until the session is over for good or the glasses are dropped.
    pub(crate) async fn run(mut self) {
        self.connect();
        while !self.over {
            self.run_due();
            let due = self.next_due().map(|at| self.clock.instant(at));
            tokio::select! {
                biased;
                inbound = next_inbound(&mut self.link) => self.handle_inbound(inbound),
                (identity, result) = next_connected(&mut self.connecting) => {
                    self.connecting = None;
                    self.identity = Some(identity);
                    self.handle_connected(result);
                }
                command = self.commands.recv() => match command {
                    Some(command) => self.handle_command(command),
                    None => self.say_goodbye(GoodbyeReason::PowerOff, "switched off"),
                },
                () = async { match due { Some(due) => sleep_until(due).await, None => std::future::pending().await } } => {}
            }
        }
        let now_us = self.clock.now_us();
        self.speaker.reset(now_us);
        self.take_reports();
        self.close().await;
    }

    /// Lets what is queued go out before the connection is dropped.
    async fn close(&mut self) {
        let Some(Link { up, mut down, .. }) = self.link.take() else { return };
        drop(up);
        let drained = async {
            while let Some(inbound) = down.recv().await {
                if matches!(inbound, Inbound::Closed { .. }) {
                    return;
                }
            }
        };
        drop(timeout(CLOSE_MAX, drained).await);
    }

    fn connect(&mut self) {
        let Some(identity) = self.identity.take() else { return };
        let (clock, log) = (self.clock, self.log.clone());
        let (target, profile, faults) =
            (self.options.target.clone(), self.options.profile.clone(), self.options.faults);
        let resume = self.welcome.as_ref().filter(|welcome| !welcome.token.is_empty() && self.books.can_resume());
        let (control, audio) = self.books.received();
        let resume = resume.map(|welcome| Resume { token: welcome.token.clone(), control, audio });
        self.retry_us = None;
        self.attempts += 1;
        self.connecting = Some(Box::pin(async move {
            let result = async {
                let mut link = faults::spoil(transport::open(&target).await?, faults);
                let welcome = handshake::shake(&mut link, &identity, &profile, resume.as_ref(), clock, &log).await?;
                Ok((link, welcome))
            };
            let result = result.await;
            (identity, result)
        }));
    }

    fn handle_connected(&mut self, result: Result<(Link, Welcome), Error>) {
        let error = match result {
            Ok((link, welcome)) => match self.open_session(link, welcome) {
                Ok(()) => return self.settle(Ok(())),
                Err(error) => error,
            },
            Err(error) => error,
        };
        if let Error::Handshake(handshake::Error::Rejected { code, message, .. }) = &error {
            self.see(Seen::Rejected { code: code.clone(), message: message.clone() });
        } else {
            self.see(Seen::LinkLost { reason: error.to_string() });
        }
        // The first attempt's failure belongs to the caller; later ones are the back-off's.
        if self.first.is_some() || !error.may_retry() || !self.options.reconnect {
            self.over |= self.first.is_some() || !error.may_retry();
            self.settle(Err(error));
            return;
        }
        self.retry_later();
    }

    fn settle(&mut self, outcome: Result<(), Error>) {
        if let Some(first) = self.first.take() {
            drop(first.send(outcome));
        }
    }

    fn retry_later(&mut self) {
        let wait_us = BACK_OFF_MS[self.attempts.min(BACK_OFF_MS.len() - 1)] * 1_000;
        let more_us = self.random.below(wait_us / 4 + 1);
        self.retry_us = Some(self.clock.now_us() + wait_us + more_us);
    }

    fn open_session(&mut self, link: Link, welcome: Welcome) -> Result<(), Error> {
        let now_us = self.clock.now_us();
        if welcome.paired_now
            && let Some(identity) = &mut self.identity
        {
            identity.pin(welcome.gateway_key).map_err(handshake::Error::Identity)?;
        }
        if welcome.resumed.is_none() {
            self.books = Books::default();
            self.turn = 0;
            self.speaker.reset(now_us);
            self.take_reports();
            self.screen.reset();
            self.answers.clear();
            self.approvals.clear();
            self.replay.clear();
        }
        if self.options.profile.microphone_hz > 0 && self.microphone.is_none() {
            let (background, seed) = (self.options.background, self.options.faults.seed);
            let microphone = Microphone::new(welcome.audio_up, background, seed, self.options.silence.clone());
            self.microphone = Some(microphone.map_err(Error::Format)?);
            self.capture_us = now_us;
        }
        self.see(Seen::Welcome {
            session: welcome.session,
            gateway: welcome.gateway_name.clone(),
            user: welcome.user_name.clone(),
            resumed: welcome.resumed.is_some(),
            transport: link.name,
            up: (codec_name(welcome.audio_up.0), welcome.audio_up.1),
            down: (codec_name(welcome.audio_down.0), welcome.audio_down.1),
        });
        self.see(Seen::Listening { turn: self.turn, state: welcome.listening.clone() });
        let resumed = welcome.resumed;
        self.heartbeat_us = now_us + micros(welcome.heartbeat);
        self.last_received_us = now_us;
        self.echo = None;
        self.attempts = 0;
        self.welcome = Some(welcome);
        self.link = Some(link);
        match resumed {
            Some((control, audio)) => {
                let (frames, sound) = self.books.replay(control, audio);
                for frame in frames {
                    self.put(frame);
                }
                self.replay = sound;
                self.replay_us = now_us;
            }
            None => self.introduce(),
        }
        Ok(())
    }

    fn introduce(&mut self) {
        if self.options.profile.offer_tools {
            let offers = crate::tools::offers();
            self.control(up::ToolList { revision: 1, tools: device_protocol::List::new(&offers) });
        }
        self.control(up::Battery { percent: self.options.battery_percent, charging: false });
        self.control(up::Connection { link: LinkKind::Wired, rssi_dbm: 0 });
        if self.muted {
            self.control(up::Mute { muted: true });
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Say(clip, done) => {
                if let Some(microphone) = &mut self.microphone {
                    microphone.say(clip, done);
                }
            }
            Command::Button(button, action) => {
                self.control(up::Button { button, action });
            }
            Command::Touch(gesture) => {
                self.control(up::Touch { gesture });
            }
            Command::Mute(muted) => {
                if muted && !self.muted {
                    self.end_sound(MicEnd::Muted);
                }
                self.muted = muted;
                self.control(up::Mute { muted });
            }
            Command::Text(text) => {
                self.control(up::TextInput { text: &text });
            }
            Command::Approve(approval, choice) => {
                self.approvals.retain(|(open, _)| *open != approval);
                self.control(up::ApprovalAnswer { approval, choice });
            }
            Command::Battery(percent) => {
                self.control(up::Battery { percent, charging: false });
            }
            Command::Cut => {
                self.options.reconnect = false;
                self.lose("cut by the wearer's script");
            }
            Command::Reconnect(target) => {
                if let Some(target) = target {
                    self.options.target = target;
                }
                if self.link.is_some() {
                    self.lose("moves to another connection");
                }
                self.options.reconnect = true;
                if self.connecting.is_none() {
                    self.connect();
                }
            }
            Command::Goodbye => self.say_goodbye(GoodbyeReason::PowerOff, "switched off"),
        }
    }

    fn say_goodbye(&mut self, reason: GoodbyeReason, message: &str) {
        let goodbye = up::Goodbye { reason, message, retry_after_ms: 0 };
        if self.link.is_some() {
            self.send(Up::Goodbye(goodbye), self.clock.now_us(), self.turn);
        }
        self.over = true;
    }

    /// The gateway broke the protocol.
    pub(crate) fn violation(&mut self, reason: GoodbyeReason, what: String) {
        self.see(Seen::Violation { what: what.clone() });
        let message: String = what.chars().take(limits::LABEL_BYTES_MAX / 4).collect();
        self.say_goodbye(reason, &message);
    }

    pub(crate) fn finish(&mut self) {
        self.over = true;
    }

    fn handle_inbound(&mut self, inbound: Option<Inbound>) {
        match inbound {
            Some(Inbound::Frame(bytes)) => {
                self.last_received_us = self.clock.now_us();
                self.handle_frame(&bytes);
            }
            Some(Inbound::Closed { code, reason }) => self.lose(&format!("closed with {code} {reason}")),
            None => self.lose("the transport ended"),
        }
        self.take_reports();
    }

    /// The link is gone; the session may go on.
    pub(crate) fn lose(&mut self, reason: &str) {
        if self.link.take().is_none() {
            return;
        }
        self.see(Seen::LinkLost { reason: reason.to_owned() });
        if self.options.reconnect && !self.over {
            self.retry_later();
        }
    }

    fn next_due(&self) -> Option<u64> {
        let online = self.link.is_some();
        let welcome = self.welcome.as_ref().filter(|_| online);
        let silent = welcome.map(|welcome| self.last_received_us + self.patience_us(welcome));
        [
            self.retry_us,
            welcome.map(|_| self.heartbeat_us),
            silent,
            self.books.ack_due().filter(|_| online),
            self.microphone.as_ref().map(|microphone| self.capture_us + microphone.frame_us()),
            self.speaker.poll_timeout(),
            self.screen.poll_timeout(),
            self.approvals.iter().map(|(_, expires)| *expires).min(),
            (online && !self.replay.is_empty()).then_some(self.replay_us),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn patience_us(&self, welcome: &Welcome) -> u64 {
        micros(welcome.heartbeat) * u64::from(limits::HEARTBEATS_MISSED_MAX)
    }

    fn run_due(&mut self) {
        let now_us = self.clock.now_us();
        if self.retry_us.is_some_and(|at| at <= now_us) {
            self.connect();
        }
        self.run_link(now_us);
        self.run_microphone(now_us);
        self.speaker.poll(now_us);
        self.take_reports();
        if self.screen.handle_timeout(now_us) {
            self.draw();
        }
        // The gateway counts a question without an answer as no; the glasses only take it off.
        self.approvals.retain(|(_, expires)| *expires > now_us);
    }

    fn run_link(&mut self, now_us: u64) {
        let (true, Some(welcome)) = (self.link.is_some(), &self.welcome) else { return };
        let heartbeat_us = micros(welcome.heartbeat);
        if self.last_received_us + self.patience_us(welcome) <= now_us {
            return self.lose("the gateway is silent");
        }
        if self.heartbeat_us <= now_us {
            self.heartbeat_us = now_us + heartbeat_us;
            let (echo_us, held_us) = self.echo.map_or((0, 0), |(echo, at)| (echo, now_us.saturating_sub(at)));
            self.send(Up::Heartbeat(up::Heartbeat { echo_us, held_us }), now_us, self.turn);
        }
        if self.books.ack_due().is_some_and(|at| at <= now_us) {
            let (control, audio) = self.books.received();
            self.books.acknowledged();
            self.send(Up::Ack(up::Ack { control, audio }), now_us, self.turn);
        }
        while self.replay_us <= now_us
            && let Some(frame) = self.replay.pop_front()
        {
            let frame_us = self.microphone.as_ref().map_or(0, Microphone::frame_us);
            self.replay_us += frame_us / REPLAY_SPEED;
            self.put(frame);
        }
    }

    fn run_microphone(&mut self, now_us: u64) {
        for _ in 0..CATCH_UP_PACKETS_MAX {
            let Some(microphone) = &mut self.microphone else { return };
            let (capture_us, frame_us) = (self.capture_us, microphone.frame_us());
            if capture_us + frame_us > now_us {
                return;
            }
            self.capture_us += frame_us;
            if self.muted {
                continue;
            }
            let packet = match microphone.capture(capture_us) {
                Ok(packet) => packet,
                Err(what) => {
                    self.microphone = None;
                    self.see(Seen::Violation { what: format!("the microphone failed: {what}") });
                    return self.end_sound(MicEnd::Failed);
                }
            };
            let audio = up::Audio {
                codec: microphone.wire_codec(),
                rate_hz: microphone.rate_hz(),
                duration_us: u32::try_from(frame_us).unwrap_or(0),
                payload: &packet.payload,
            };
            self.send(Up::Audio(audio), capture_us, self.turn);
            if let Some(said) = packet.said {
                self.see(Seen::Said { label: said.label, begins_us: said.begins_us, t0_us: said.t0_us });
            }
        }
        // The machine stood still for longer: what was not captured is silence.
        self.capture_us = self.capture_us.max(now_us);
    }

    fn end_sound(&mut self, reason: MicEnd) {
        let last_audio_sequence = self.books.audio_sent();
        self.control(up::AudioEnd { last_audio_sequence, reason });
    }

    pub(crate) fn take_reports(&mut self) {
        while let Some(report) = self.speaker.poll_report() {
            match report {
                Report::Played { speech, turn, clause, played_us, at_us, state } => {
                    self.send(Up::Played(up::Played { speech, clause, played_us, state }), at_us, turn);
                }
                Report::FirstSound { speech, turn, at_us } => {
                    self.log.push(at_us, Seen::FirstSound { turn, speech });
                }
                Report::Over(heard) => {
                    self.log.push(
                        heard.ended_us,
                        Seen::SpeechHeard {
                            turn: heard.turn,
                            speech: heard.speech,
                            text: heard.text.clone(),
                            played_us: heard.played_us,
                            complete: heard.complete,
                        },
                    );
                    self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
                }
            }
        }
    }

    pub(crate) fn see(&self, seen: Seen) {
        self.log.push(self.clock.now_us(), seen);
    }

    /// Sends a control message now.
    pub(crate) fn control<'a>(&mut self, message: impl Into<Up<'a>>) {
        self.send(message.into(), self.clock.now_us(), self.turn);
    }

    /// Stamps, keeps and sends. Before the first session there is nobody to send to.
    fn send(&mut self, message: Up<'_>, time_us: u64, turn: u32) {
        if self.welcome.is_none() {
            return;
        }
        let class = message.class();
        let sequence = match class {
            Class::Control => self.books.next_control(),
            Class::Audio => self.books.next_audio(),
            Class::Link | Class::Reserved => 0,
        };
        let frame = Frame::new(Stamp { sequence, turn, time_us }, message);
        let bytes = match encode(&frame, &mut self.buffer) {
            Ok(length) => Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default()),
            Err(error) => {
                // The number is used up; the gateway would see a gap, so that the session cannot go on.
                self.see(Seen::Violation { what: format!("own message does not fit: {error}") });
                self.over = true;
                return;
            }
        };
        match class {
            Class::Control => self.books.keep(sequence, bytes.clone()),
            Class::Audio => self.books.keep_sound(sequence, time_us, bytes.clone()),
            Class::Link | Class::Reserved => {}
        }
        // Sound that is older goes first.
        if class == Class::Audio && !self.replay.is_empty() && self.link.is_some() {
            self.replay.push_back(bytes);
        } else {
            self.put(bytes);
        }
    }

    fn put(&mut self, bytes: Bytes) {
        let Some(link) = &self.link else { return };
        if let Err(error) = link.up.try_send(bytes) {
            let full = matches!(error, mpsc::error::TrySendError::Full(_));
            self.lose(if full { "the gateway takes nothing" } else { "the transport ended" });
        }
    }
}

fn codec_name(codec: device_protocol::Codec) -> String {
    crate::names::named(codec.name())
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

async fn next_inbound(link: &mut Option<Link>) -> Option<Inbound> {
    match link {
        Some(link) => link.down.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_connected(connecting: &mut Option<BoxFuture<'static, Connected>>) -> Connected {
    match connecting {
        Some(connecting) => connecting.await,
        None => std::future::pending().await,
    }
}
