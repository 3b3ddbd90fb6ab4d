//! Everything that can happen to a [`Conversation`](crate::conversation), a [`User`](crate::user) or a user's mini-apps, their
//! [`AppLifecycles`](crate::app_life).

use alloc::{string::String, sync::Arc, vec::Vec};

use crate::vocab::{
    AnsweredBy, AppCard, AppConnection, AppEvent, AppStopReason, Approval, ApprovalChoice, CommandMatch, Content,
    DeviceFacts, DeviceInfo, FallbackReason, Message, ModelEvent, ModelOutcome, ModelRoute, ScheduleChange,
    ScheduleEntry, ServiceLevel, ToolResult, Transcript, Turn, Usage, VoiceFact, WebhookCall,
};

/// What happens to one device's conversation.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The device has proven who it is; the session begins, or goes on where it was cut when `resumed`.
    Connected { device: DeviceInfo, resumed: bool },
    /// The link broke without a goodbye; the device may come back and resume.
    LinkLost,
    /// When something last arrived, in microseconds on the monotonic clock: told before a timeout, not for each frame.
    Alive { at_us: u64 },
    /// The listener noticed something.
    Voice(VoiceFact),
    /// A decode that was asked for by `Transcribe` is there.
    Transcript(Transcript),
    /// A decode that was asked for failed or was not accepted. `revision`: the core's number of the request.
    TranscriptFailed { utterance: u32, revision: u16 },
    /// How well the text of the `MatchCommand` with this `revision` is understood as a command. `vocabulary`: sentences of
    /// the tools, as a wearer would say them, towards which a second pass is biased; `None`: nobody can say.
    CommandMatched { utterance: u32, revision: u16, matched: CommandMatch, vocabulary: Option<Arc<[String]>> },
    /// Whether an app follows what is said, word by word.
    Followed(bool),
    /// The wearer typed instead of speaking; always meant for the assistant.
    Text(String),
    /// The user's machine gives this device the turn that it asked for: `history` is the conversation so far, oldest first,
    /// trimmed for the model; `means` are the models that it may ask.
    Granted { turn: Turn, history: Vec<Message>, route: ModelRoute },
    /// The request that `AskModel` asked for is answered on the box, in the model's place, and whole: these are all events.
    AnsweredOnBox { turn: Turn, events: Vec<ModelEvent> },
    /// The tools of this device have changed since the model was asked, and are to count at once.
    ApplyTools,
    /// The model streams.
    Model { turn: Turn, event: ModelEvent },
    /// A tool that `RunTool` named takes long, by its own word, and asks nothing before it runs.
    SlowTool { turn: Turn },
    /// A tool call came to its one result.
    Tool { turn: Turn, call_id: String, result: ToolResult },
    /// The first sound of a clause is on its way to the device; `duration_us` is the clause's length. Clauses count from 0.
    Spoken { speech: u32, clause: u16, duration_us: u64 },
    /// A clause could not be synthesised.
    SpeechFailed { speech: u32, clause: u16 },
    /// The device really played the speech up to here; `clauses_done` clauses are fully played and
    /// `clause_part` (0 to 1) of the next one. A clause that failed counts as played once playback is past it. With `finished`,
    /// the speech is over.
    Played { speech: u32, clauses_done: u16, clause_part: f32, finished: bool },
    /// A button or touch gesture.
    Button(Button),
    /// The wearer or the device switched the microphone off or on.
    Mute(bool),
    /// The executor needs the wearer's consent.
    ApprovalAsked(Approval),
    /// Answered by tap or by an operator (`by`); spoken answers arrive as transcripts.
    ApprovalAnswered { id: u64, choice: ApprovalChoice, by: AnsweredBy },
    /// Whoever wished for the call does not wait for it any more.
    ApprovalWithdrawn { id: u64 },
    /// How the glasses are, as far as they have told.
    Status(DeviceFacts),
    /// Texts that the model is told with every request from now on, for example an index of skills.
    Briefing(Vec<String>),
    /// A mini-app of the wearer's does something with these glasses.
    App(AppEvent),
    /// The wearer raises the head, or lowers it again.
    Look { up: bool },
    /// The wearer's timers that run.
    Timers(Vec<RunningTimer>),
    /// The user's machine has something to tell the wearer.
    Announce(Announcement),
    /// What was to be announced is not wanted any more.
    Withdraw { id: AnnouncementId },
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

/// Something that was not asked for: a reminder or a timer that is due, or what a mini-app says or plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// What it belongs to.
    pub id: AnnouncementId,
    /// What the wearer hears.
    pub voice: AnnouncementVoice,
    /// What to show, after a chime. `None`: it is for the ear alone, without a chime.
    pub show: Option<Content>,
}

/// What an announcement belongs to, and so who is told how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnnouncementId {
    /// An entry of the user's schedule, by its number: the user's machine.
    Schedule(u64),
    /// What a mini-app says or plays, by the number that the mini-apps' host gave it: that host.
    App(u64),
}

/// What the wearer hears of an announcement.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnouncementVoice {
    /// These words.
    Words(String),
    /// A recorded sound of this length, which the shell has under this number.
    Recording { sound: u64, ms: u32 },
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
#[allow(missing_docs, reason = "the variants say what their fields are")]
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
    DeviceJoined { device: String },
    /// It is gone.
    DeviceLeft { device: String },
    /// A device wants a turn; turns of one user are serialised.
    TurnRequested { device: String, turn: Turn },
    /// The turn is over; `messages` hold what was said and what was *heard*. Also sent, with what
    /// there is, when the turn was cancelled or never granted. Oldest first.
    TurnDone { device: String, turn: Turn, messages: Vec<Message> },
    /// A tool wants an entry kept or gone; `request` is its own number, given back with the answer: `Scheduled` or
    /// `Unscheduled` only after that is stored, else `ScheduleFailed`.
    Schedule { request: u64, change: ScheduleChange },
    /// The store has kept what `Persist` with this ticket asked for.
    Persisted { ticket: u64 },
    /// It could not, for this reason in words.
    PersistFailed { ticket: u64, reason: String },
    /// A device said or showed the announcement of this entry to its end, and whether the wearer got it.
    Announced { device: String, id: u64, heard: bool },
    /// The model of this rank was asked and has answered or failed; `usage` is what that took.
    ModelUsed { rank: u8, usage: Usage, outcome: ModelOutcome },
    /// A device has told the wearer what is short, and what level is left.
    FallbackTold { reason: FallbackReason, level: ServiceLevel },
    /// Old turns were summed up by the model of this rank, or could not be (`None`). `request`: number of the `Summarise`.
    Summarised {
        request: u64,
        text: Option<String>,
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
        approval: Approval,
        /// Whether an operator is there who can answer where no device is.
        watched: bool,
    },
    /// An operator answers a question that no device has.
    ApprovalAnswered { id: u64, choice: ApprovalChoice },
    /// Whoever wished for the call does not wait for it any more.
    ApprovalWithdrawn { id: u64 },
}

/// What happens to a user's mini-apps.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppInput {
    /// Somebody wants it to run.
    Start(AppCard),
    /// It ran when the gateway stopped.
    Restore(AppCard),
    /// What came of a call of its webhook. An error: the app has not heard of it, and why.
    Answered { package: String, call: WebhookCall, outcome: Result<(), String> },
    /// A socket that was to be its own was turned away: no other one will come.
    TurnedAway { package: String, why: String },
    /// Its socket said the right things and was acknowledged. `resumed`: it goes on where it was; any other one that
    /// comes back belongs to an app that was told of the loss.
    Joined { package: String, connection: AppConnection, resumed: bool },
    /// Its socket is gone.
    Lost { package: String, connection: AppConnection },
    /// It hands its session over or shuts down: it will not come back by itself, and should not be called back.
    Released { package: String, connection: AppConnection },
    /// Somebody wants it to stop.
    Stop { package: String, reason: AppStopReason },
    /// The user has glasses on, or none any more.
    Present(bool),
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
