//! One task per pair of glasses: it handles the link, the clock's ticks and the wearer's commands.

mod joining;
mod lag;
mod loss;
mod sound;
mod update;

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use device_protocol::{
    Choice, Class, Frame, GoodbyeReason, LinkKind, Message as _, MicEnd, Stamp, Up, encode, limits, up,
};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, timeout};

use crate::acoustics::Ambience;
use crate::clock::Clock;
use crate::command::Command;
use crate::display::Screen;
use crate::error::Error;
use crate::firmware::Updater;
use crate::handshake::{self, Resume, Welcome};
use crate::identity::Identity;
use crate::microphone::Microphone;
use crate::network::Network;
use crate::options::Options;
use crate::random::Random;
use crate::seen::{Log, Seen};
use crate::session::{Replayed, Sequences};
use crate::speaker::{Heard, Report, Speaker};
use crate::tools::{Answer, Controls};
use crate::transport::{self, Inbound, Link};
use crate::wake::{Captured, Wake};

use self::lag::Lag;
use self::loss::Loss;

/// Delays before the next attempt to connect, in milliseconds; the last one repeats (PROTOCOL.md, section 7).
const BACK_OFF_MS: [u64; 6] = [0, 500, 1_000, 2_000, 4_000, 8_000];

/// Silence of the gateway, while sound is unacknowledged, after which another connection is tried.
const SILENT_US_MAX: u64 = 700_000;

/// The same where there is no other way: the next connection would meet what this one meets, unless that was an outage.
const SILENT_ALONE_US_MAX: u64 = 2_000_000;

/// Between two tries of another connection while the link stands.
const PROBE_EVERY_US: u64 = 2_000_000;

/// How long such a try may take: behind an outage a new one is sooner there than the next repetition of an old one.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// How long the gateway may take to close after a goodbye.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Most microphone packets sent at once to catch up after the machine was busy: two seconds.
const CATCH_UP_PACKETS_MAX: u32 = 100;

/// Most frames of the gateway that are handled before the microphone's next turn. Where a busy machine leaves a turn of it much to
/// catch up with, one frame for each would be none soon enough.
const FRAMES_TOGETHER_MAX: usize = 64;

/// Answers of device tools kept for repeated calls.
pub(crate) const ANSWERS_MAX: usize = 64;

/// A question of the gateway, until the wearer answers it or it expires.
pub(crate) struct StandingQuestion {
    pub(crate) approval: u32,
    /// When the wearer can have read it.
    pub(crate) readable_us: u64,
    pub(crate) expires_us: u64,
    /// An answer that came before that, and is held back.
    pub(crate) choice: Option<Choice>,
}

impl StandingQuestion {
    /// When it next needs handling.
    fn due_us(&self) -> u64 {
        if self.choice.is_some() { self.readable_us } else { self.expires_us }
    }
}

type Connected = Result<(Link, Welcome), Error>;

/// The state of one pair of glasses.
pub(crate) struct Driver {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) sequences: Sequences,
    pub(crate) turn: u32,
    pub(crate) speaker: Speaker,
    pub(crate) screen: Screen,
    pub(crate) controls: Controls,
    pub(crate) answers: VecDeque<(u32, Answer)>,
    pub(crate) approvals: Vec<StandingQuestion>,
    pub(crate) echo: Option<(u64, u64)>,
    /// What takes new firmware; `None`: these glasses take none.
    pub(crate) updater: Option<Updater>,
    /// Whether the glasses start again when the session is over.
    restarting: bool,
    heard: Arc<Mutex<Vec<Heard>>>,
    commands: mpsc::Receiver<Command>,
    first: Option<oneshot::Sender<Result<(), Error>>>,
    identity: Identity,
    link: Option<Link>,
    connecting: Option<BoxFuture<'static, Connected>>,
    retry_us: Option<u64>,
    /// When another way is tried next, while the link stands.
    probe_us: u64,
    /// Whether the link, or the next one, is the other way to the gateway.
    on_other: bool,
    trying_other: bool,
    attempts: usize,
    /// When an attempt last sent its proof since the session was opened or resumed, in microseconds; 0: none did.
    proven_us: Arc<AtomicU64>,
    random: Random,
    /// Shared by its connections, one after the other; `None`: they are as they are.
    network: Option<Network>,
    welcome: Option<Welcome>,
    microphone: Option<Microphone>,
    /// What hears the wake phrase at the microphone.
    wake: Option<Wake>,
    /// Whether the gateway takes what is said for meant for it, or is at work.
    pub(crate) is_needed: bool,
    /// The sound of the noise around the wearer.
    ambience: Option<Arc<Ambience>>,
    capture_us: u64,
    muted: bool,
    replay: VecDeque<Replayed>,
    replay_us: u64,
    /// Sound that is sent again beside what is new.
    missing: VecDeque<Replayed>,
    missing_us: u64,
    lag: Lag,
    loss: Loss,
    heartbeat_us: u64,
    last_received_us: u64,
    last_opened_us: u64,
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
        // The recording is for people: it is made at full volume.
        speaker.set_volume(100);
        let mut options = options;
        options.profile.hears_wake = options.wake.is_some();
        Self {
            random: Random::new(options.seed),
            network: options.network.clone().map(|profile| Network::start(profile, options.seed)),
            options,
            clock,
            log,
            sequences: Sequences::default(),
            turn: 0,
            speaker,
            screen: Screen::new(columns, rows),
            controls,
            answers: VecDeque::new(),
            approvals: Vec::new(),
            echo: None,
            updater: None,
            restarting: false,
            heard,
            commands,
            first: Some(first),
            identity,
            link: None,
            connecting: None,
            retry_us: None,
            probe_us: 0,
            on_other: false,
            trying_other: false,
            attempts: 0,
            proven_us: Arc::default(),
            welcome: None,
            microphone: None,
            wake: None,
            is_needed: false,
            ambience: None,
            capture_us: 0,
            muted: false,
            replay: VecDeque::new(),
            replay_us: 0,
            missing: VecDeque::new(),
            missing_us: 0,
            lag: Lag::default(),
            loss: Loss::default(),
            heartbeat_us: 0,
            last_received_us: 0,
            last_opened_us: 0,
            buffer: vec![0; limits::FRAME_BYTES_MAX],
            over: false,
        }
    }

    /// Runs until the session has ended permanently or the glasses are dropped.
    pub(crate) async fn run(mut self) {
        if !self.prepare_sound().await {
            return;
        }
        self.connect(false);
        loop {
            self.run_session().await;
            let now_us = self.clock.now_us();
            self.speaker.reset(now_us);
            self.take_reports();
            self.close().await;
            if !self.restart() {
                return;
            }
        }
    }

    async fn run_session(&mut self) {
        while !self.over {
            self.run_due();
            let due = self.next_due().map(|at| self.clock.instant(at));
            tokio::select! {
                biased;
                inbound = next_inbound(&mut self.link) => {
                    self.handle_inbound(inbound);
                    self.handle_waiting();
                }
                result = next_connected(&mut self.connecting) => {
                    self.connecting = None;
                    self.handle_connected(result);
                }
                command = self.commands.recv() => match command {
                    Some(command) => self.handle_command(command),
                    None => self.say_goodbye(GoodbyeReason::PowerOff, "switched off"),
                },
                () = async { match due { Some(due) => sleep_until(due).await, None => std::future::pending().await } } => {}
            }
        }
    }

    /// Sends queued frames before the connection is dropped.
    async fn close(&mut self) {
        let Some(Link { up, mut down, .. }) = self.link.take() else {
            return;
        };
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

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Say(clip, done) => {
                if let Some(microphone) = &mut self.microphone {
                    microphone.say(clip, done);
                }
            }
            Command::Button(button, action) => {
                let now_us = self.clock.now_us();
                self.wake.iter_mut().for_each(|wake| wake.wake(now_us));
                self.control(up::Button { button, action });
            }
            Command::Touch(gesture) => {
                self.control(up::Touch { gesture });
            }
            Command::Mute(muted) => {
                if muted && !self.muted {
                    self.end_sound(MicEnd::Muted);
                    self.wake.iter_mut().for_each(Wake::forget);
                }
                self.muted = muted;
                self.control(up::Mute { muted });
            }
            Command::Text(text) => {
                self.control(up::TextInput { text: &text });
            }
            Command::Approve(approval, choice) => {
                self.approve(approval, choice);
            }
            Command::Battery(percent) => {
                self.control(up::Battery { percent, charging: false });
            }
            Command::Network(profile) => match &self.network {
                Some(network) => network.play(profile),
                // For the connections to come.
                None => self.network = Some(Network::start(profile, self.options.seed)),
            },
            Command::Acoustics(change, ambience) => self.change_acoustics(change, ambience),
            Command::Rebind => {
                if let Some(network) = &self.network {
                    network.change_address();
                } else {
                    self.move_link();
                }
            }
            Command::Cut => {
                self.options.reconnect = false;
                // An attempt that is still to come is called off,
                self.retry_us = None;
                // and a connection that is being opened breaks as well.
                self.connecting = None;
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
                    self.connect(false);
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

    /// Reports a protocol violation by the gateway and ends the session.
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

    /// Handles what else has come.
    fn handle_waiting(&mut self) {
        for _ in 1..FRAMES_TOGETHER_MAX {
            let Some(inbound) = self.link.as_mut().filter(|_| !self.over).and_then(|link| link.down.try_recv().ok())
            else {
                return;
            };
            self.handle_inbound(Some(inbound));
        }
    }

    fn next_due(&self) -> Option<u64> {
        let online = self.link.is_some();
        let welcome = self.welcome.as_ref().filter(|_| online);
        let silent = welcome.map(|welcome| self.last_received_us + self.patience_us(welcome));
        [
            self.retry_us,
            self.loss.due_us(),
            self.probe_due().filter(|_| online),
            welcome.map(|_| self.heartbeat_us),
            silent,
            self.sequences.ack_due().filter(|_| online),
            self.microphone.as_ref().map(|microphone| self.capture_us + microphone.frame_us()),
            self.speaker.poll_timeout(),
            self.screen.poll_timeout(),
            self.approvals.iter().map(StandingQuestion::due_us).min(),
            (online && !self.replay.is_empty()).then_some(self.replay_us),
            (online && !self.missing.is_empty()).then_some(self.missing_us),
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
            // One way after the other.
            self.connect(!self.on_other);
        }
        if self.probe_due().is_some_and(|at| at <= now_us) {
            self.connect(!self.on_other);
        }
        self.tell_of_loss(now_us);
        self.run_link(now_us);
        self.run_microphone(now_us);
        self.speaker.poll(now_us);
        self.take_reports();
        if self.screen.handle_timeout(now_us) {
            self.draw();
        }
        // The gateway counts a question without an answer as no; the glasses only remove it.
        self.approvals.retain(|asked| asked.expires_us > now_us);
        let answered = self.approvals.iter().filter(|asked| asked.due_us() <= now_us);
        for (approval, choice) in answered.filter_map(|asked| Some((asked.approval, asked.choice?))).collect::<Vec<_>>()
        {
            self.approve(approval, choice);
        }
    }

    /// Answers a question; a new one only once the wearer can have read it.
    fn approve(&mut self, approval: u32, choice: Choice) {
        let now_us = self.clock.now_us();
        if let Some(asked) = self.approvals.iter_mut().find(|asked| asked.approval == approval)
            && asked.readable_us > now_us
        {
            asked.choice = Some(choice);
            return;
        }
        self.approvals.retain(|asked| asked.approval != approval);
        self.control(up::ApprovalAnswer { approval, choice });
    }

    fn run_link(&mut self, now_us: u64) {
        let (true, Some(welcome)) = (self.link.is_some(), &self.welcome) else {
            return;
        };
        let heartbeat_us = micros(welcome.heartbeat);
        if self.last_received_us + self.patience_us(welcome) <= now_us {
            return self.lose("the gateway is silent");
        }
        if self.heartbeat_us <= now_us {
            self.heartbeat_us = now_us + heartbeat_us;
            let (echo_us, held_us) = self.echo.map_or((0, 0), |(echo, at)| (echo, now_us.saturating_sub(at)));
            self.send(Up::Heartbeat(up::Heartbeat { echo_us, held_us }), now_us, self.turn);
        }
        if self.sequences.ack_due().is_some_and(|at| at <= now_us) {
            let (control, audio) = self.sequences.received();
            self.sequences.acknowledged();
            let (audio_lost, audio_held_us) = self.sequences.sound_received(now_us);
            self.send(Up::Ack(up::Ack { control, audio, audio_lost, audio_held_us }), now_us, self.turn);
        }
        while self.replay_us <= now_us
            && let Some(frame) = self.replay.pop_front()
        {
            self.replay_us += frame.interval_us();
            self.put(frame.bytes);
        }
        while self.missing_us <= now_us
            && let Some(frame) = self.missing.pop_front()
        {
            self.missing_us += frame.interval_us();
            self.put(frame.bytes);
        }
    }
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
