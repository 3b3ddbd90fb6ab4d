//! Everything that can happen to a [`Conversation`](crate::conversation) or a [`User`](crate::user).

use alloc::{string::String, vec::Vec};

use crate::vocab::{
    AnsweredBy, AppEvent, Approval, ApprovalChoice, Clarity, Content, DeviceFacts, DeviceInfo, Means, Message,
    ModelEvent, ModelOutcome, Service, Shortage, ToolResult, Transcript, Turn, Usage, VoiceFact,
};

/// What happens to one device's conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The device has proven who it is; the session begins, or goes on when `resumed`.
    Connected {
        /// The device.
        device: DeviceInfo,
        /// Whether the session goes on where it was cut.
        resumed: bool,
    },
    /// The link broke without a goodbye; the device may come back and resume.
    LinkLost,
    /// Any frame arrived: the device is alive.
    Alive,
    /// The listener noticed something.
    Voice(VoiceFact),
    /// A decode that was asked for by `Transcribe` is there.
    Transcript(Transcript),
    /// A decode that was asked for failed or was not accepted.
    TranscriptFailed {
        /// The utterance.
        utterance: u32,
        /// The core's number of the request.
        revision: u16,
    },
    /// The text of a `Consider` was weighed.
    Considered {
        /// The utterance.
        utterance: u32,
        /// The core's number of the question.
        revision: u16,
        /// How well it is understood as a command.
        clarity: Clarity,
    },
    /// Whether an app follows what is said, word by word.
    Followed(bool),
    /// The wearer typed instead of speaking; always meant for the assistant.
    Text(String),
    /// The user's machine gives this device the turn that it asked for.
    Granted {
        /// The turn that it belongs to.
        turn: Turn,
        /// The conversation so far, oldest first, trimmed for the model.
        history: Vec<Message>,
        /// Which models it may ask.
        means: Means,
    },
    /// The request that `AskModel` asked for is being answered on the box, in the model's place.
    AnsweredOnBox {
        /// The turn that it belongs to.
        turn: Turn,
    },
    /// The tools of this device have changed since the model was asked, and are to count at once.
    ApplyTools,
    /// The model streams.
    Model {
        /// The turn that it belongs to.
        turn: Turn,
        /// What the model said.
        event: ModelEvent,
    },
    /// A tool that `RunTool` named takes long, by its own word, and asks nothing before it runs.
    SlowTool {
        /// The turn that it belongs to.
        turn: Turn,
    },
    /// A tool call came to its one result.
    Tool {
        /// The turn that it belongs to.
        turn: Turn,
        /// The call.
        call_id: String,
        /// What came of it.
        result: ToolResult,
    },
    /// The first sound of a clause is on its way to the device; `duration_us` is the clause's length.
    Spoken {
        /// The speech.
        speech: u32,
        /// The clause, from 0 on.
        clause: u16,
        /// The clause's length in microseconds.
        duration_us: u64,
    },
    /// A clause could not be synthesised.
    SpeechFailed {
        /// The speech.
        speech: u32,
        /// The clause, from 0 on.
        clause: u16,
    },
    /// The device really played the speech up to here; `clauses_done` clauses are fully played and
    /// `clause_part` (0 to 1) of the next one.
    Played {
        /// The speech.
        speech: u32,
        /// Clauses fully played; a clause that failed counts once playback is past it.
        clauses_done: u16,
        /// Part of the next clause that was played, 0 to 1.
        clause_part: f32,
        /// Whether the speech is over.
        finished: bool,
    },
    /// A button or touch gesture.
    Button(Button),
    /// The wearer or the device switched the microphone off or on.
    Mute(bool),
    /// The executor needs the wearer's consent.
    ApprovalAsked(Approval),
    /// Answered by tap or by an operator; spoken answers arrive as transcripts.
    ApprovalAnswered {
        /// Number of the question.
        id: u64,
        /// The answer.
        choice: ApprovalChoice,
        /// By which of the two ways.
        by: AnsweredBy,
    },
    /// Whoever wished for the call does not wait for it any more.
    ApprovalWithdrawn {
        /// Number of the question.
        id: u64,
    },
    /// How the glasses are, as far as they have told.
    Status(DeviceFacts),
    /// Texts that the model is told with every request from now on, for example an index of skills.
    Briefing(Vec<String>),
    /// A mini-app of the wearer's does something with these glasses.
    App(AppEvent),
    /// The wearer raises the head, or lowers it again.
    Look {
        /// Whether the wearer looks up.
        up: bool,
    },
    /// The wearer's timers that run.
    Timers(Vec<RunningTimer>),
    /// The user's machine has something to tell the wearer.
    Announce(Announcement),
    /// What was to be announced is not wanted any more.
    Withdraw {
        /// Number of the announcement.
        id: u64,
    },
    /// The gateway is stopping.
    Shutdown,
}

/// What the wearer did with a finger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// Short press: open the ear, or stop what is being said.
    Press,
    /// Long press: mute or unmute.
    LongPress,
    /// The talk button went down: until it comes up, what is said is a request, pauses and all.
    Down,
    /// It came up again. Soon after `Down` both are a short press.
    Up,
}

/// Something that was not asked for: a reminder or a timer that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Entry that it belongs to.
    pub id: u64,
    /// What to say.
    pub say: String,
    /// What to show. With an empty text nothing is shown and no sound goes before: a voice and no more.
    pub show: Content,
    /// Milliseconds of a recorded sound that is played in place of words; the shell has it under the same number.
    pub sound_ms: Option<u32>,
}

/// A timer that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTimer {
    /// Its name, or empty.
    pub name: String,
    /// When it is over, in microseconds on the monotonic clock.
    pub due_us: u64,
}

/// What happens to the machine that outlives connections.
#[derive(Clone, Debug, PartialEq)]
pub enum UserInput {
    /// What the store held at start-up. Comes first, once.
    Restored {
        /// What was said before `history` in the same conversation, summed up.
        summary: Option<String>,
        /// The conversation so far, oldest first, without what the summary stands for.
        history: Vec<Message>,
        /// When something was last said in it, milliseconds since the Unix epoch.
        last_wall_ms: Option<i64>,
        /// Entries that are not done yet.
        schedule: Vec<ScheduleEntry>,
        /// First number that no entry ever had.
        next_id: u64,
        /// What the last day took on which models were asked.
        spending: Spending,
    },
    /// A device of this user connected.
    DeviceJoined {
        /// The device.
        device: String,
    },
    /// It is gone.
    DeviceLeft {
        /// The device.
        device: String,
    },
    /// A device wants a turn; turns of one user are serialised.
    TurnRequested {
        /// The device.
        device: String,
        /// The turn that it belongs to.
        turn: Turn,
    },
    /// The turn is over; `messages` hold what was said and what was *heard*. Also sent, with what
    /// there is, when the turn was cancelled or never granted.
    TurnDone {
        /// The device.
        device: String,
        /// The turn that it belongs to.
        turn: Turn,
        /// In order, oldest first.
        messages: Vec<Message>,
    },
    /// A tool wants an entry kept. Answered by `Scheduled` only after it is stored.
    ScheduleAdd {
        /// The caller's own number, given back with the answer.
        request: u64,
        /// When.
        due: Due,
        /// Kind.
        kind: ScheduleKind,
        /// The text.
        text: String,
    },
    /// A tool wants an entry gone. Answered by `Unscheduled` only after that is stored.
    ScheduleRemove {
        /// The caller's own number, given back with the answer.
        request: u64,
        /// Number of the entry or the question.
        id: u64,
    },
    /// The store has kept what `Persist` with this ticket asked for.
    Persisted {
        /// Number of the `Persist`.
        ticket: u64,
    },
    /// It could not.
    PersistFailed {
        /// Number of the `Persist`.
        ticket: u64,
        /// Why, in words.
        reason: String,
    },
    /// A device said or showed an announcement to its end, or could not.
    Announced {
        /// The device.
        device: String,
        /// Number of the entry or the question.
        id: u64,
        /// Whether the wearer got it.
        heard: bool,
    },
    /// A model was asked and has answered or failed.
    ModelUsed {
        /// Its rank.
        rank: u8,
        /// What that took.
        usage: Usage,
        /// How it ended.
        outcome: ModelOutcome,
    },
    /// A device has told the wearer of a shortage.
    ShortageTold {
        /// What is short.
        shortage: Shortage,
        /// What is left.
        service: Service,
    },
    /// Old turns were summed up, or could not be (`None`).
    Summarised {
        /// Number of the `Summarise`.
        request: u64,
        /// The summary.
        text: Option<String>,
        /// Rank of the model that was asked.
        rank: u8,
        /// What that took, also where it failed.
        usage: Usage,
    },
    /// Forget the conversation.
    ClearHistory,
    /// What is said from now on, after the turn that is under way, belongs to a new conversation.
    NewConversation,
    /// The store has erased the conversation: it is not told to a model any more.
    HistoryErased,
    /// A call from outside needs the wearer's consent.
    ApprovalAsked {
        /// The question.
        approval: Approval,
        /// Whether an operator is there who can answer where no device is.
        watched: bool,
    },
    /// An operator answers a question that no device has.
    ApprovalAnswered {
        /// Number of the question.
        id: u64,
        /// The answer.
        choice: ApprovalChoice,
    },
    /// Whoever wished for the call does not wait for it any more.
    ApprovalWithdrawn {
        /// Number of the question.
        id: u64,
    },
}

/// What a user's models took on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Days since the Unix epoch, in the user's time zone.
    pub day: i64,
    /// Money, in billionths.
    pub nano: u64,
    /// Tokens of requests.
    pub input: u64,
    /// Tokens of answers.
    pub output: u64,
}

/// When an entry is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// After this much time has passed, whatever the wall clock does: a timer.
    In {
        /// Milliseconds.
        duration_ms: u64,
    },
    /// When the wall clock shows this: a reminder.
    At {
        /// Milliseconds since the Unix epoch.
        wall_ms: i64,
    },
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// A countdown.
    Timer,
    /// A reminder.
    Reminder,
}

/// An entry of the schedule, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry {
    /// Unique within the user.
    pub id: u64,
    /// Timer or reminder.
    pub kind: ScheduleKind,
    /// Timer: its name or empty. Reminder: what to be reminded of.
    pub text: String,
    /// Wall time when it is due, in milliseconds since the Unix epoch; a timer's is what was
    /// expected when it was set, and counts only after a restart.
    pub due_wall_ms: i64,
    /// Length of a timer; 0 for reminders.
    pub duration_ms: u64,
}
