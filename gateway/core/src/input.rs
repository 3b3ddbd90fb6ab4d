//! Inputs of a [`Conversation`](crate::conversation), of a [`User`](crate::user) and of a user's mini-apps, their
//! [`AppLifecycles`](crate::app_lifecycle).

use alloc::{string::String, sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::vocab::{
    AnsweredBy, AppCard, AppConnection, AppEvent, AppStopReason, Approval, ApprovalChoice, CommandMatch, Content,
    DeviceFacts, DeviceInfo, FallbackReason, Message, MicrophoneFault, ModelEvent, ModelOutcome, ModelRoute, Remains,
    ScheduleChange, ScheduleEntry, ServiceLevel, SoundReport, ToolFlags, ToolResult, Transcript, Translation, Turn,
    Unkept, Usage, VoiceFact, WebhookCall,
};

/// How the playback of a speech goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Playback {
    /// It continues, or waits for more sound.
    Playing,
    /// It has reached the end of the speech.
    Finished,
    /// The device has stopped it before its end: on a hush, or by itself, for example because its speaker was muted.
    Stopped,
}

/// Inputs of one device's conversation.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The device is authenticated; the session begins or, if `resumed`, continues where the link broke.
    Connected { device: DeviceInfo, resumed: bool },
    /// The link broke without a goodbye; the device may come back and resume.
    LinkLost,
    /// The gateway was restarted, and the device goes on with what is left of its session. Follows `Connected`.
    Restarted(Remains),
    /// This session is not resumed: the device has begun a new one, or has ended it.
    NotResumed,
    /// The device is back, and these packets before the first one that it sent were never received: lost on the way,
    /// late, or too old to be kept. `until_us`: the capture time of that first one, as of voice facts.
    SoundMissed { packets: u32, until_us: u64 },
    /// After a restart: the glasses begin to repeat sound that is so much older than what they capture now.
    SoundRepeated { backlog_ms: u32 },
    /// After a restart: the glasses have not kept the beginning of a sentence that was meant for the assistant.
    SentenceLost,
    /// When something last arrived, in microseconds on the monotonic clock; reported before a timeout, not for each
    /// frame.
    Alive { at_us: u64 },
    /// How sound fared in one direction; reported while there is sound, about twice a second.
    Sound(SoundReport),
    /// A fault of the microphone was found in its sound, or is gone.
    Microphone { fault: MicrophoneFault, present: bool },
    /// The voice detector reported a fact.
    Voice(VoiceFact),
    /// Result of a decode that `Transcribe` requested.
    Transcript(Transcript),
    /// A decode that `Transcribe` requested waits no longer for its turn.
    TranscriptBegun { utterance: u32, revision: u16 },
    /// A requested decode failed or was rejected. `revision`: the core's number of the request.
    TranscriptFailed { utterance: u32, revision: u16 },
    /// How well the text of the `MatchCommand` with this `revision` matches a command. `vocabulary`: sample sentences
    /// of the tools, towards which a second pass is biased; `None`: no matcher is available.
    CommandMatched { utterance: u32, revision: u16, matched: CommandMatch, vocabulary: Option<Arc<[String]>> },
    /// The translation of an utterance that `Translate` requested; `None`: it failed.
    Translated { utterance: u32, translation: Option<Translation> },
    /// Whether an app follows the wearer's speech word by word.
    Followed(bool),
    /// The wearer typed instead of speaking; always meant for the assistant.
    Text(String),
    /// After a restart: the glasses repeat what the wearer typed before it.
    TextRepeated(String),
    /// The user's machine grants this device the requested turn: `history` is the conversation so far, oldest first,
    /// trimmed for the model; `route` lists the models that it may ask.
    Granted { turn: Turn, history: Vec<Message>, route: ModelRoute },
    /// The request of `AskModel` was answered locally instead of by the model, and completely: these are all events.
    AnsweredOnBox { turn: Turn, events: Vec<ModelEvent> },
    /// The device's tools have changed since the model was asked, and the change takes effect at once.
    ApplyTools,
    /// An event of the model's stream.
    Model { turn: Turn, event: ModelEvent },
    /// What the tool of a `RunTool` declares about itself; comes before its result, and not for an unknown tool.
    /// `timeout_ms`: its own time-out.
    ToolKnown { turn: Turn, call_id: String, flags: ToolFlags, timeout_ms: Option<u32> },
    /// What a call that runs is doing now, for the display: a program has begun a call of its own.
    ToolProgress { turn: Turn, call_id: String, line: String },
    /// The one result of a tool call.
    Tool { turn: Turn, call_id: String, result: ToolResult },
    /// The first audio of a clause is on its way to the device; `duration_us` is the clause's length. Clauses count
    /// from 0.
    Spoken { speech: u32, clause: u16, duration_us: u64 },
    /// A clause could not be synthesised.
    SpeechFailed { speech: u32, clause: u16 },
    /// Playback position reported by the device: the first `clauses_done` clauses were played in full, or failed, and
    /// `clause_part` (0 to 1) of the next one.
    Played { speech: u32, clauses_done: u16, clause_part: f32, playback: Playback },
    /// A button or touch gesture.
    Button(Button),
    /// After a restart: the glasses repeat a gesture from before it.
    ButtonRepeated(Button),
    /// The device has switched its microphone off or on.
    Mute(bool),
    /// The device begins a session anew, and in the one before it the wearer had the gateway mute it. Follows `Connected`.
    StaysMuted,
    /// The executor needs the wearer's consent.
    ApprovalAsked(Approval),
    /// Answered by tap or by an operator (`by`); spoken answers arrive as transcripts.
    ApprovalAnswered { id: u64, choice: ApprovalChoice, by: AnsweredBy },
    /// The caller no longer waits for the approval.
    ApprovalWithdrawn { id: u64 },
    /// State of the glasses, as far as they have reported it.
    Status(DeviceFacts),
    /// Texts added to every model request from now on, for example an index of skills.
    Briefing(Vec<String>),
    /// An event of a mini-app on these glasses.
    App(AppEvent),
    /// The wearer raises the head, or lowers it again.
    Look { up: bool },
    /// The wearer's timers that run.
    Timers(Vec<RunningTimer>),
    /// The user's machine has an announcement for the wearer.
    Announce(Announcement),
    /// An announcement is no longer wanted.
    Withdraw { id: AnnouncementId },
    /// Something could not be stored, and nobody else tells the wearer.
    NotKept(Unkept),
    /// The gateway is stopping.
    Shutdown,
}

/// Button and touch gestures.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Button {
    /// Short press: open the ear, or stop speech.
    Press,
    /// Long press: mute or unmute.
    LongPress,
    /// The talk button went down: until it is released, speech is one request, pauses included. `at_us`: when, on the
    /// glasses' clock, as the times of voice facts.
    Down { at_us: u64 },
    /// It was released. Soon after `Down`, the two are a short press.
    Up { at_us: u64 },
}

/// Unsolicited output: a due reminder or timer, or speech or sound of a mini-app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// What it belongs to.
    pub id: AnnouncementId,
    /// What the wearer hears.
    pub voice: AnnouncementVoice,
    /// What to show, after a chime. `None`: audio only, without a chime.
    pub show: Option<Content>,
}

/// What an announcement belongs to, which decides who receives its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AnnouncementId {
    /// An entry of the user's schedule, by its number; the user's machine receives the outcome.
    Schedule(u64),
    /// Speech or sound of a mini-app, by the number from the mini-apps' host, which receives the outcome.
    App(u64),
}

/// What the wearer hears of an announcement.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnnouncementVoice {
    /// Said by the voice.
    Words(String),
    /// A recorded sound of this length, stored by the shell under this number.
    Recording { sound: u64, ms: u32 },
}

/// A timer that counts down, as the user's machine tells it to each device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTimer {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// When it expires, in microseconds on the monotonic clock.
    pub due_us: u64,
}

/// Inputs of the machine that outlives connections.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum UserInput {
    /// Contents of the store at start-up. The first input, once.
    Restored {
        /// Summary of the part of the conversation before `history`.
        summary: Option<String>,
        /// The conversation so far, oldest first, without the part that the summary covers.
        history: Vec<Message>,
        /// Time of its last message, in milliseconds since the Unix epoch.
        last_wall_ms: Option<i64>,
        /// Entries not done yet.
        schedule: Vec<ScheduleEntry>,
        /// First number never used by an entry.
        next_id: u64,
        /// Spending of the last days on which models were asked, newest first.
        spending: Vec<Spending>,
    },
    /// A device of this user connected; not a session in which somebody types on the box. One that is there already begins anew.
    DeviceJoined { device: String },
    /// It disconnected.
    DeviceLeft { device: String },
    /// An answer, or what else was to be told, was not heard to its end, and the device on which it was given did not come back.
    Undelivered { text: String },
    /// A device requests a turn; turns of one user are serialised.
    TurnRequested { device: String, turn: Turn },
    /// The turn is over; `messages` hold what was said and what was *heard*, oldest first. Also sent, with the messages
    /// so far, if the turn was cancelled or never granted.
    TurnDone { device: String, turn: Turn, messages: Vec<Message> },
    /// A tool adds or removes an entry; `request` is the tool's own number, returned with the answer: `Scheduled` or
    /// `Unscheduled` once the change is stored, else `ScheduleFailed`.
    Schedule { request: u64, change: ScheduleChange },
    /// The store has written the record of the `Persist` with this ticket.
    Persisted { ticket: u64 },
    /// The write failed, for this reason in words.
    PersistFailed { ticket: u64, reason: String },
    /// A device has finished the announcement of this entry; `heard`: the wearer received it.
    Announced { device: String, id: u64, heard: bool },
    /// The model of this rank has answered or failed; `usage` is what the request used.
    ModelUsed { rank: u8, usage: Usage, outcome: ModelOutcome },
    /// A device has reported a fallback to the wearer: its reason, and the level that is left.
    FallbackTold { reason: FallbackReason, level: ServiceLevel },
    /// The model of this rank has summarised old turns, or failed to (`None`). `request`: number of the `Summarise`.
    Summarised {
        request: u64,
        text: Option<String>,
        rank: u8,
        /// Usage of the request, also if it failed.
        usage: Usage,
    },
    /// Forget the conversation.
    ClearHistory,
    /// Messages after the turn under way belong to a new conversation.
    NewConversation,
    /// The store has erased the conversation; it is no longer sent to a model.
    HistoryErased,
    /// A call from outside a turn needs the wearer's consent.
    ApprovalAsked {
        approval: Approval,
        /// Whether an operator is connected who can answer if there is no device.
        watched: bool,
    },
    /// An operator answers a question that is on no device.
    ApprovalAnswered { id: u64, choice: ApprovalChoice },
    /// The caller no longer waits for the approval.
    ApprovalWithdrawn { id: u64 },
}

/// Inputs of a user's mini-apps.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppInput {
    /// A request to start it.
    Start(AppCard),
    /// It was running when the gateway stopped.
    Restore(AppCard),
    /// Outcome of a webhook call. An error: the call did not reach the app, and why.
    Answered { package: String, call: WebhookCall, outcome: Result<(), String> },
    /// A socket dialled for it was rejected: no other one will come.
    TurnedAway { package: String, why: String },
    /// Its socket completed the handshake and was acknowledged. `resumed`: the session continues; otherwise the app was
    /// informed of the loss.
    Joined { package: String, connection: AppConnection, resumed: bool },
    /// Its socket closed.
    Lost { package: String, connection: AppConnection },
    /// It hands its session over or shuts down: it will not reconnect by itself, and should not be called again.
    Released { package: String, connection: AppConnection },
    /// A request to stop it.
    Stop { package: String, reason: AppStopReason },
    /// Whether the user has glasses connected.
    Present(bool),
}

/// What a user's models used on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Days since the Unix epoch, in the user's time zone.
    pub day: i64,
    /// Cost, in billionths of the currency unit.
    pub nano: u64,
    /// Tokens of requests.
    pub input: u64,
    /// Tokens of answers.
    pub output: u64,
}
