//! One pair of glasses: the router between link, floor, agent and reply. Policy lives in those and
//! in `coordination` and `presence`; here every input and every timer has one line.

mod announcing;
mod by_hand;
mod consent;
mod coordination;
mod earcons;
mod interruption;
mod muting;
mod owed;
mod presence;
mod repeated;
mod stopping;
mod talk;
mod translating;
mod unkept;

use alloc::{collections::VecDeque, string::String, vec::Vec};

pub use self::owed::restart_told_elsewhere;
pub use crate::{
    config::{BargeIn, Config, Earcons},
    display::Config as DisplayConfig,
    timers::Timer,
};

use self::{consent::Unanswered, repeated::Repeated, talk::Held};
use crate::{
    agent::Agent,
    approval::Approvals,
    context::Context,
    driver::Machine,
    floor::{Event, Floor, wake::Phrases},
    input::{AnnouncementId, Input},
    interpreter::Interpreter,
    link::{Link, quality::Quality},
    microphone::Microphone,
    notices::Notices,
    output::Output,
    reply::Reply,
    vocab::{ListeningState, Timestamp},
};

/// Timers that one wake-up may fire. Each fires once and re-arms in the future, so this is a
/// backstop against a clock that leaps.
const TIMERS_PER_WAKE_MAX: usize = 64;

/// The machine of one device, to be driven by a [`Driver`](crate::driver::Driver).
/// It lives as long as the device's session, lost links and resumptions included.
#[derive(Debug)]
pub struct Conversation {
    cx: Context,
    link: Link,
    quality: Quality,
    floor: Floor,
    agent: Agent,
    reply: Reply,
    approvals: Approvals,
    notices: Notices,
    microphone: Microphone,
    interpreter: Interpreter,
    /// What another device is told instead, while the wearer has not yet been told what the restart cut off, or been
    /// asked again.
    restart_untold: Option<String>,
    /// Calls about which the wearer is to be asked again after a restart.
    unanswered: Option<Unanswered>,
    repeated: Repeated,
    /// When the wearer last called or asked by hand, monotonic.
    by_hand_us: u64,
    /// What the wearer is told once nobody has the floor: what calls of interrupted turns have done, and the like.
    afterwards: VecDeque<String>,
    /// Those of `afterwards` that are being said now, alone or beside an answer.
    telling: Vec<String>,
    /// When the wearer was last told that a photo is lost, monotonic.
    photo_lost_us: Option<u64>,
    /// An announcement that the wearer spoke over, until it is known what was said.
    cut_notice: Option<AnnouncementId>,
    /// Whether the last notice could only be read.
    notice_only_read: bool,
    /// A question for consent was cut off by a voice, of which it is not known yet what it says.
    cut_question: bool,
    /// The talk button, while it is held.
    held: Option<Held>,
    muted: bool,
    /// It is the gateway that mutes, as the wearer wanted: the device does not know it by itself.
    mute_stays: bool,
    listening: ListeningState,
}

/// Whether a wake phrase has a sound that can be heard; one without Latin letters has none.
pub fn can_hear_wake_phrase(phrase: &str) -> bool {
    Phrases::can_hear(phrase)
}

impl Conversation {
    /// A conversation that waits for its device.
    pub fn new(config: Config) -> Self {
        Self {
            floor: Floor::new(&config),
            cx: Context::new(config),
            link: Link::default(),
            quality: Quality::default(),
            agent: Agent::default(),
            reply: Reply::default(),
            approvals: Approvals::default(),
            notices: Notices::default(),
            microphone: Microphone::default(),
            interpreter: Interpreter::default(),
            restart_untold: None,
            unanswered: None,
            repeated: Repeated::default(),
            by_hand_us: 0,
            afterwards: VecDeque::new(),
            telling: Vec::new(),
            photo_lost_us: None,
            cut_notice: None,
            notice_only_read: false,
            cut_question: false,
            held: None,
            muted: false,
            mute_stays: false,
            listening: ListeningState::default(),
        }
    }

    /// The listening indicator, as last reported.
    pub fn listening(&self) -> ListeningState {
        self.listening
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Heartbeat => self.link.handle_heartbeat(&mut self.cx),
            Timer::DeviceSilent => self.device_silent(),
            Timer::ResumeExpired => self.resume_expired(),
            Timer::PartialDue => self.partial_due(),
            Timer::TalkReleased => self.talk_released(),
            Timer::PauseOver => self.pause_over(),
            Timer::UtteranceStalled => self.utterance_stalled(),
            Timer::TranscriptMissing => self.transcript_missing(),
            Timer::VoiceConfirmed => self.voice_confirmed(),
            // The moment itself closes it; the listening sign follows in `settle`.
            Timer::EarCloses => self.floor.watch_question(&mut self.cx),
            Timer::GrantMissing => {
                let events = self.agent.handle_grant_missing(&mut self.cx);
                self.answer(events);
            }
            Timer::ModelSilent => {
                let events = self.agent.handle_model_silent(&mut self.cx);
                self.answer(events);
            }
            Timer::TurnBudget => {
                let events = self.agent.handle_turn_budget(&mut self.cx);
                self.answer(events);
            }
            Timer::ToolMissing => {
                let events = self.agent.handle_tool_missing(&mut self.cx);
                self.answer(events);
            }
            Timer::PreambleDue => {
                let events = self.agent.handle_preamble_due(&mut self.cx);
                self.answer(events);
            }
            Timer::ProgressDue => self.agent.handle_progress_due(&mut self.cx),
            Timer::SettleExpired => self.agent.handle_settle_expired(&mut self.cx),
            Timer::SpeechStalled => self.speech_stalled(),
            Timer::DisplayDue => self.reply.display.handle_display_due(&mut self.cx),
            Timer::PageDue => self.reply.display.handle_page_due(&mut self.cx),
            Timer::ApprovalExpired => self.approval_expired(),
            Timer::QuestionPageDue => self.approvals.handle_page_due(&mut self.cx),
            Timer::ScreenDue => self.cx.screen(|screen, now| screen.handle_timeout(now)),
            Timer::NoticeDue => self.notices.handle_due(),
            Timer::TranslationPage => self.interpreter.handle_page_due(&mut self.cx),
            Timer::TranslationIdle => self.translation_idle(),
            // It follows in `settle`.
            Timer::AskAgain => {}
            Timer::WorkingDue => self.working_due(),
        }
    }
}

impl Machine for Conversation {
    type Input = Input;
    type Output = Output;
    type Timer = Timer;

    fn handle_input(&mut self, now: Timestamp, input: Input) {
        debug_assert!(self.cx.is_drained(), "an input came before all outputs were taken");
        self.cx.now = now;
        self.cx.note_muted(self.muted);
        if self.link == Link::Closed && !matches!(input, Input::Connected { .. }) {
            self.refuse(input);
            return;
        }
        self.note_awake(&input);
        match input {
            Input::Connected { device, resumed } => self.connected(&device, resumed),
            Input::LinkLost => self.link_lost(),
            Input::Restarted(remains) => self.restarted(remains),
            Input::NotResumed => self.resume_expired(),
            Input::SoundMissed { packets, until_us } => self.sound_missed(packets, until_us),
            Input::SoundRepeated { backlog_ms } => self.sound_repeated(backlog_ms),
            Input::SentenceLost => self.heard(Some(Event::Lost { addressed: true })),
            Input::Alive { at_us } => self.link.handle_alive(&mut self.cx, at_us),
            Input::Sound(report) => self.sound_reported(report),
            Input::Microphone { fault, present } => self.microphone.handle_fault(fault, present),
            Input::Voice(fact) => self.voice(fact),
            Input::Transcript(transcript) => self.transcript(transcript),
            Input::TranscriptBegun { utterance, revision } => self.transcript_begun(utterance, revision),
            Input::TranscriptFailed { utterance, revision } => self.transcript_failed(utterance, revision),
            Input::CommandMatched { utterance, revision, matched, vocabulary } => {
                self.command_matched(utterance, revision, matched, vocabulary);
            }
            Input::Translated { utterance, translation } => self.interpreter.handle_translated(utterance, translation),
            Input::Followed(followed) => self.followed(followed),
            Input::Text(text) => self.typed(&text),
            Input::TextRepeated(text) => self.typed_before(&text),
            Input::Granted { turn, history, route } => {
                let events = self.agent.handle_granted(&mut self.cx, turn, history, route);
                self.answer(events);
            }
            Input::AnsweredOnBox { turn, events } => self.answered_on_box(turn, events),
            Input::ApplyTools => self.apply_tools(),
            Input::Model { turn, event } => {
                let events = self.agent.handle_model(&mut self.cx, turn, event);
                self.answer(events);
            }
            Input::ToolKnown { turn, call_id, flags, timeout_ms } => {
                let events = self.agent.handle_tool_known(&mut self.cx, turn, &call_id, (flags, timeout_ms));
                self.answer(events);
            }
            Input::ToolProgress { turn, call_id, line } => {
                self.agent.handle_progress(&mut self.cx, turn, &call_id, &line);
            }
            Input::Tool { turn, call_id, result } => {
                let events = self.agent.handle_tool(&mut self.cx, turn, &call_id, result);
                self.answer(events);
            }
            Input::Spoken { speech, clause, duration_us } => {
                self.reply.handle_spoken(&mut self.cx, speech, clause, duration_us)
            }
            Input::SpeechFailed { speech, clause } => {
                let ended = self.reply.handle_failed(&mut self.cx, speech, clause);
                self.played(ended);
            }
            Input::Played { speech, clauses_done, clause_part, playback } => {
                let ended = self.reply.handle_played(&mut self.cx, speech, clauses_done, clause_part, playback);
                self.played(ended);
            }
            Input::Button(button) => self.button(button),
            Input::ButtonRepeated(button) => self.pressed_before(button),
            Input::Mute(muted) => self.mute(muted, false),
            Input::StaysMuted => self.mute(true, true),
            Input::ApprovalAsked(approval) => self.approval_asked(approval),
            Input::ApprovalAnswered { id, choice, by } => self.approval_answered(id, choice, by),
            Input::ApprovalWithdrawn { id } => self.approval_withdrawn(id),
            Input::Status(facts) => self.cx.learn(facts),
            Input::Briefing(blocks) => self.cx.brief(blocks),
            Input::App(event) => self.app(event),
            Input::Look { up } => self.cx.screen(|screen, now| screen.handle_look(now, up)),
            Input::Timers(running) => self.cx.screen(|screen, now| screen.handle_timers(now, running)),
            Input::Announce(announcement) => self.announce(announcement),
            Input::Withdraw { id } => self.withdraw(id),
            Input::NotKept(what) => self.not_kept(what),
            Input::Shutdown => self.shutdown(),
        }
        self.settle();
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.cx.pop()
    }

    fn poll_timeout(&self) -> Option<(u64, Timer)> {
        self.cx.next_timer()
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        debug_assert!(self.cx.is_drained(), "a timeout came before all outputs were taken");
        self.cx.now = now;
        for _ in 0..TIMERS_PER_WAKE_MAX {
            let Some(timer) = self.cx.take_due() else {
                break;
            };
            self.fire(timer);
            self.settle();
        }
    }
}
