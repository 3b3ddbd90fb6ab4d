//! A scripted shell on a virtual clock: one user's machine, its devices' conversations, and fakes for recogniser,
//! model, tools, speaker and store, each with a configurable delay.
#![allow(dead_code)]

mod log;
pub mod machines;
mod shell;
mod speaker;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gateway_core::{
    conversation,
    input::{Input, Spending, UserInput},
    user,
    vocab::{
        CommandMatch, DeviceInfo, DisplaySize, FailureKind, LostTurn, Message, OpenEar, OpenQuestion, Remains,
        ScheduleEntry, Timestamp, ToolCall, ToolFlags, ToolResult, Transcript, Translation, Turn, Usage, VoiceFact,
    },
};

use machines::{InPlace, Machines, Which};

/// Starts a user's machine, with these settings.
pub type Start = fn(user::Config) -> Box<dyn Machines>;

/// Milliseconds since the beginning of the scenario.
pub type Ms = u64;

/// After which time without sound the listener takes glasses as silent.
const VANISHED_MS: Ms = 20_000;

/// A scheduled event.
#[derive(Clone, Debug)]
pub enum Event {
    To(usize, Input),
    ToUser(UserInput),
    /// A voice fact, unless the utterance was closed meanwhile.
    Voice(usize, VoiceFact),
    /// The same, of sound that was kept while the link was lost.
    Replayed(usize, VoiceFact),
    /// The pause of this utterance continues.
    Silence(usize, u32, Ms),
    /// A decode that was not cancelled meanwhile.
    Decoded(usize, Transcript),
    /// The model's next event, unless it was cancelled.
    Model(usize, Turn, u64, gateway_core::vocab::ModelEvent),
    /// A tool's result, unless it has one.
    Tool(usize, Turn, String, ToolResult),
    /// The playback position advances.
    Play(usize, u64),
}

impl Event {
    /// The part of a shell that delivers it, if it may be late; the device's own reports are not.
    fn source(&self) -> Option<(&'static str, usize)> {
        match self {
            Self::Decoded(device, _) => Some(("recogniser", *device)),
            Self::Model(device, ..) => Some(("model", *device)),
            Self::Tool(device, ..) => Some(("tool", *device)),
            Self::ToUser(_) => Some(("user", 0)),
            Self::To(device, Input::CommandMatched { .. }) => Some(("grammar", *device)),
            Self::To(device, Input::Granted { .. } | Input::Timers(_) | Input::Announce(_)) => {
                Some(("user's", *device))
            }
            Self::To(..) | Self::Voice(..) | Self::Replayed(..) | Self::Silence(..) | Self::Play(..) => None,
        }
    }
}

/// The behaviour of the fake recogniser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recogniser {
    Works,
    Fails,
    Dead,
}

/// A model's reaction to one request.
#[derive(Clone, Debug)]
pub struct ModelScript {
    pub after: Ms,
    pub text: String,
    /// Tool name, call id.
    pub calls: Vec<(String, String)>,
    /// Text after its calls.
    pub adds: String,
    pub end: ModelEnd,
    pub usage: Usage,
    /// It thinks before each text and call.
    pub ponders: bool,
    /// The local engine answers instead.
    pub on_box: bool,
    /// The text for a wearer who was already told what can be said.
    pub brief: Option<String>,
    /// The app that it takes the wearer to have chosen, and the one that it was chosen over.
    pub chooses: Option<(String, String)>,
    /// The words about which its text asks.
    pub asks_about: Option<String>,
}

impl Default for ModelScript {
    fn default() -> Self {
        Self {
            after: 200,
            text: String::new(),
            calls: Vec::new(),
            adds: String::new(),
            end: ModelEnd::Done,
            usage: Usage::default(),
            ponders: false,
            on_box: false,
            brief: None,
            chooses: None,
            asks_about: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ModelEnd {
    Done,
    Silent,
    /// It is done, and its text was withheld.
    Filtered,
    Failed(FailureKind),
}

/// A tool's reaction to one call.
#[derive(Clone, Debug)]
pub struct ToolScript {
    pub after: Ms,
    /// `None`: it never answers.
    pub result: Option<ToolResult>,
    /// Whether it stops when it is cancelled.
    pub cancellable: bool,
    /// What it declares about itself.
    pub flags: ToolFlags,
    /// Its own time-out.
    pub timeout_ms: Option<u32>,
}

/// One pair of glasses and its wearer.
pub struct Device {
    pub name: String,
    pub info: DeviceInfo,
    pub connected: bool,
    /// While it is being connected to the session that it had.
    resumes: bool,
    /// Facts about sound that the glasses have kept since the link was lost, with their times.
    kept: Vec<(Ms, VoiceFact)>,
    /// When the replay of them ends.
    replays_until_ms: Ms,
    pub answers_heartbeat: bool,
    pub next_utterance: u32,
    /// Texts of utterances: start, duration in milliseconds and words of each part.
    pub utterances: BTreeMap<u32, Utterance>,
    pub speech: Option<Speech>,
    pub plays: bool,
    /// Whether the microphone works.
    pub records: bool,
    /// Whether a session that it begins anew begins muted.
    pub stored_mute: bool,
    /// What is stored of its session for a restart: the time in which no wake phrase is needed,
    pub stored_ear: Option<OpenEar>,
    /// the question that waits for its answer,
    pub stored_question: Option<OpenQuestion>,
    /// the request of the turn under way,
    pub stored_request: Option<String>,
    /// the calls that wait for consent, by question,
    pub stored_asked: BTreeMap<u64, ToolCall>,
    /// and what a restart has cut off, until the wearer is told, or asked again: the request,
    pub stored_cut_off: Option<String>,
    /// and the calls.
    pub stored_left: Vec<ToolCall>,
    /// The last call that was to run.
    pub last_call: Option<ToolCall>,
    pub tts_fails: BTreeSet<u16>,
    pub turns_open: BTreeSet<Turn>,
    pub turns_done: BTreeSet<Turn>,
    pub calls_run: BTreeMap<String, usize>,
    /// Last revision of each view; true: the main one.
    pub revisions: BTreeMap<bool, u32>,
}

#[derive(Clone, Debug)]
pub struct Utterance {
    /// Start, duration and words.
    pub parts: Vec<(Ms, Ms, String)>,
    pub closed: bool,
    pub score: Option<f32>,
    /// Decodes older than the first are cancelled, except these.
    pub cancelled: (u16, Vec<u16>),
}

/// What the speaker of a device is playing.
#[derive(Clone, Debug)]
pub struct Speech {
    pub id: u32,
    /// Of each clause the length that is not played, at its beginning, and the length that is.
    pub clauses: Vec<(Ms, Ms)>,
    pub done: usize,
    pub since: Option<Ms>,
    pub last: bool,
    pub generation: u64,
}

/// A gateway around the core: devices, user, apps, models, tools and store, all simulated.
pub struct World {
    pub now_ms: Ms,
    pub wall_ms: i64,
    events: BTreeMap<(Ms, u64), Event>,
    sequence: u64,
    /// Delays of answers in milliseconds, used in rotation; empty: none.
    pub lags: Vec<Ms>,
    latest: BTreeMap<(&'static str, usize), Ms>,
    machines: Box<dyn Machines>,
    pub devices: Vec<Device>,
    pub log: Vec<Line>,
    pub models: VecDeque<ModelScript>,
    /// The models' summaries of old turns; empty: they fail.
    pub summaries: VecDeque<String>,
    /// The stored summary, and the number of stored messages that it covers.
    pub stored_summary: Option<(String, usize)>,
    pub tools: BTreeMap<String, ToolScript>,
    pub recogniser: Recogniser,
    pub decode_ms: Ms,
    /// The text of a second pass, with its delay; `None`: the same as the first.
    pub second_pass: Option<String>,
    /// The next translations, with the language; `None`: it fails. Empty: the words themselves, in English.
    pub translations: VecDeque<(Ms, Option<Translation>)>,
    /// The text of a third pass; `None`: that of the second.
    pub third_pass: Option<String>,
    pub second_pass_ms: Option<Ms>,
    pub second_pass_fails: bool,
    pub second_pass_sure: f32,
    /// How sure it is of a first text, and of its last word.
    pub sure: (f32, f32),
    /// The text of each utterance as a whole, whatever it began with.
    pub text_at_end: Option<String>,
    /// Whether it hears another language than English.
    pub foreign: bool,
    /// The command matches of particular texts.
    pub matched: BTreeMap<String, CommandMatch>,
    /// The command match of all other texts.
    pub matched_else: CommandMatch,
    pub partials: bool,
    pub store_ms: Option<Ms>,
    pub store_works: bool,
    pub model_generation: u64,
    pub stale_models: bool,
    pub config: conversation::Config,
    pub user_config: user::Config,
    pub stored_spending: Spending,
    /// The content of the store.
    pub stored: BTreeMap<u64, ScheduleEntry>,
    pub stored_messages: Vec<Message>,
    pub results_given: BTreeSet<String>,
    /// The devices on which questions from outside were asked.
    pub asked_on: BTreeMap<u64, usize>,
    /// Every result in a finished turn, by call.
    pub results_kept: BTreeMap<String, usize>,
    /// Lengths of recorded sounds, by their numbers.
    pub sounds: BTreeMap<u64, Ms>,
}

/// An output of the core.
#[derive(Clone, Debug)]
pub struct Line {
    pub at: Ms,
    pub text: String,
}

impl World {
    /// A world with machines in it.
    pub fn new(config: conversation::Config) -> Self {
        Self::with(config, user::Config::default(), |user| Box::new(InPlace::new(user)))
    }

    /// A world with machines started by `start`.
    pub fn with(
        config: conversation::Config,
        user_config: user::Config,
        start: impl FnOnce(user::Config) -> Box<dyn Machines>,
    ) -> Self {
        Self {
            now_ms: 0,
            wall_ms: 1_800_000_000_000,
            events: BTreeMap::new(),
            sequence: 0,
            lags: Vec::new(),
            latest: BTreeMap::new(),
            machines: start(user_config.clone()),
            devices: Vec::new(),
            log: Vec::new(),
            models: VecDeque::new(),
            summaries: VecDeque::new(),
            stored_summary: None,
            tools: BTreeMap::new(),
            recogniser: Recogniser::Works,
            decode_ms: 120,
            second_pass: None,
            translations: VecDeque::new(),
            second_pass_ms: Some(120),
            third_pass: None,
            second_pass_fails: false,
            second_pass_sure: 0.9,
            sure: (0.9, 0.9),
            matched: BTreeMap::new(),
            text_at_end: None,
            foreign: false,
            matched_else: CommandMatch::Exact,
            partials: true,
            store_ms: Some(5),
            store_works: true,
            model_generation: 0,
            stale_models: false,
            config,
            user_config,
            stored_spending: Spending::default(),
            stored: BTreeMap::new(),
            stored_messages: Vec::new(),
            results_given: BTreeSet::new(),
            asked_on: BTreeMap::new(),
            results_kept: BTreeMap::new(),
            sounds: BTreeMap::new(),
        }
    }

    /// The current time for the core. As on a real machine, the monotonic clock does not start at 0.
    pub fn now(&self) -> Timestamp {
        Timestamp {
            mono_us: (self.now_ms + 1_000_000) * 1_000,
            wall_ms: self.wall_ms + i64::try_from(self.now_ms).unwrap(),
            offset_s: 0,
        }
    }

    pub fn add_device(
        &mut self,
        name: &str,
        display: Option<DisplaySize>,
        speaker: bool,
        echo_cancelled: bool,
    ) -> usize {
        self.machines.add_device(self.config.clone());
        self.devices.push(Device {
            name: name.into(),
            info: DeviceInfo {
                id: name.into(),
                user: "wearer".into(),
                display,
                bitmaps: name != "phone",
                speaker,
                echo_cancelled,
                captions: false,
            },
            connected: false,
            kept: Vec::new(),
            replays_until_ms: 0,
            resumes: false,
            answers_heartbeat: true,
            next_utterance: 1,
            utterances: BTreeMap::new(),
            speech: None,
            plays: true,
            records: true,
            stored_mute: false,
            stored_ear: None,
            stored_question: None,
            stored_request: None,
            stored_asked: BTreeMap::new(),
            stored_cut_off: None,
            stored_left: Vec::new(),
            last_call: None,
            tts_fails: BTreeSet::new(),
            turns_open: BTreeSet::new(),
            turns_done: BTreeSet::new(),
            calls_run: BTreeMap::new(),
            revisions: BTreeMap::new(),
        });
        self.devices.len() - 1
    }

    pub fn after(&mut self, delay: Ms, event: Event) {
        self.sequence += 1;
        let mut at = self.now_ms + delay;
        if let Some(lag) = self.lags.get(self.sequence as usize % self.lags.len().max(1))
            && let Some(source) = event.source()
        {
            // Late, but in order: the results of one source come through one queue.
            let last = self.latest.entry(source).or_default();
            at = (at + lag).max(*last);
            *last = at;
        }
        self.events.insert((at, self.sequence), event);
    }

    /// The wearer speaks: parts of an utterance, each with its length and the pause before it.
    pub fn speak(&mut self, device: usize, parts: &[(Ms, Ms, &str)], score: Option<f32>) {
        let id = self.devices[device].next_utterance;
        self.devices[device].next_utterance += 1;
        let mut at = 0;
        let mut spoken = Vec::new();
        for (index, (pause, length, words)) in parts.iter().enumerate() {
            at += pause;
            let start_us = (self.now_ms + at) * 1_000;
            let fact = if index == 0 {
                VoiceFact::SpeechStarted { utterance: id, at_us: start_us, voiced_us: 0 }
            } else {
                VoiceFact::Resumed { utterance: id, at_us: start_us }
            };
            self.after(at, Event::Voice(device, fact));
            spoken.push((self.now_ms + at, *length, (*words).to_string()));
            at += length;
            let end_us = (self.now_ms + at) * 1_000;
            // The listener reports a pause after 100 ms of silence.
            self.after(
                at + 100,
                Event::Voice(device, VoiceFact::Paused { utterance: id, at_us: end_us, silence_us: 100_000 }),
            );
            let next_pause = parts.get(index + 1).map(|part| part.0);
            let mut silence = 150;
            while silence < next_pause.unwrap_or(5_000) {
                self.after(at + silence, Event::Silence(device, id, silence));
                silence += 50;
            }
            if next_pause.is_none() {
                self.after(at + VANISHED_MS, Event::Silence(device, id, VANISHED_MS));
            }
        }
        self.devices[device]
            .utterances
            .insert(id, Utterance { parts: spoken, closed: false, score, cancelled: (0, Vec::new()) });
    }

    /// Advances the time to `until`; everything that is due by then happens.
    pub fn run_until(&mut self, until: Ms) {
        while self.step(until) {}
        self.now_ms = self.now_ms.max(until);
    }

    /// Performs the next event that is due by `until`.
    pub fn step(&mut self, until: Ms) -> bool {
        self.drain();
        let event = self.events.keys().next().map(|key| key.0);
        let mono_offset = 1_000_000;
        let timer = self
            .all()
            .filter_map(|which| self.machines.timeout_us(which))
            .min()
            .map(|at_us| at_us.div_ceil(1_000).saturating_sub(mono_offset));
        let next = match (event, timer) {
            (Some(event), Some(timer)) => event.min(timer),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return false,
        };
        if next > until {
            return false;
        }
        self.now_ms = self.now_ms.max(next);
        let now = self.now();
        if event.is_some_and(|at| at <= next) {
            let (_, event) = self.events.pop_first().unwrap();
            self.happen(event);
        } else {
            for which in self.all() {
                if self.machines.timeout_us(which).is_some_and(|at_us| at_us <= now.mono_us) {
                    self.machines.wake(which, now);
                    self.drain();
                }
            }
        }
        self.drain();
        true
    }

    /// All machines, the user's last.
    fn all(&self) -> impl Iterator<Item = Which> + use<> {
        (0..self.devices.len()).map(Which::Device).chain([Which::User])
    }

    pub fn input(&mut self, device: usize, input: Input) {
        self.machines.tell_device(device, input);
        self.drain();
    }

    pub fn user_input(&mut self, input: UserInput) {
        self.machines.tell_user(input);
        self.drain();
    }

    pub fn connect(&mut self, device: usize, resumed: bool) {
        let info = self.devices[device].info.clone();
        self.devices[device].connected = true;
        self.devices[device].answers_heartbeat = true;
        let id = info.id.clone();
        self.devices[device].resumes = resumed;
        self.input(device, Input::Connected { device: info, resumed });
        self.devices[device].resumes = false;
        if !resumed && self.devices[device].stored_mute {
            self.input(device, Input::StaysMuted);
        }
        self.user_input(UserInput::DeviceJoined { device: id });
        if resumed {
            self.replay(device);
        } else {
            self.devices[device].speech = None;
            self.devices[device].kept.clear();
        }
    }

    /// A link that has stalled goes on as it was.
    pub fn recover(&mut self, device: usize) {
        self.devices[device].answers_heartbeat = true;
        self.replay(device);
    }

    pub fn lose(&mut self, device: usize) {
        self.devices[device].connected = false;
        self.input(device, Input::LinkLost);
        let id = self.devices[device].info.id.clone();
        self.user_input(UserInput::DeviceLeft { device: id });
    }

    /// The gateway is killed and starts again after `down`: only stored data remains. `back`: the devices go on with
    /// what is left of their sessions.
    pub fn restart(&mut self, down: Ms, back: bool) {
        self.events.clear();
        self.now_ms += down;
        self.machines.restart(&self.config, &self.user_config);
        let spending = vec![self.stored_spending];
        let schedule = self.stored.values().cloned().collect();
        let next_id = self.stored.keys().next_back().map_or(1, |id| id + 1);
        let (summary, covers) = self.stored_summary.clone().unzip();
        let (history, last_wall_ms) = (self.stored_messages[covers.unwrap_or(0)..].to_vec(), None);
        self.user_input(UserInput::Restored { summary, history, last_wall_ms, schedule, next_id, spending });
        for device in 0..self.devices.len() {
            self.devices[device].turns_open.clear();
            self.devices[device].turns_done.clear();
            self.devices[device].revisions.clear();
            let state = &mut self.devices[device];
            let mut asked = std::mem::take(&mut state.stored_left);
            asked.extend(std::mem::take(&mut state.stored_asked).into_values());
            for call in &asked {
                // It was asked for, and has not run.
                state.calls_run.remove(&call.id);
            }
            let request = state.stored_request.take();
            let cut_off = state.stored_cut_off.take().or(request);
            if back && cut_off.is_some() {
                state.stored_cut_off.clone_from(&cut_off);
                state.stored_left.clone_from(&asked);
            }
            let turn = cut_off.map(|request| LostTurn { request, unknown: Vec::new(), asked });
            let remains = Remains { ear: state.stored_ear.take(), question: state.stored_question.take(), turn };
            self.connect(device, false);
            if back {
                self.input(device, Input::Restarted(remains));
            }
        }
    }

    /// What no turn puts again is forgotten, once the wearer knows of the restart.
    fn forget_left(&mut self, device: usize) {
        let state = &mut self.devices[device];
        if state.stored_request.is_none() && state.stored_cut_off.is_none() {
            state.stored_left.clear();
        }
    }

    /// Turns that have begun and are not over.
    pub fn open_turns(&self) -> Vec<Turn> {
        self.devices.iter().flat_map(|device| device.turns_open.iter().copied()).collect()
    }
}
