//! Everything that a [`Conversation`](crate::conversation), a [`User`](crate::user) or a user's mini-apps, their
//! [`AppLifecycles`](crate::app_life), can want.

use alloc::{string::String, sync::Arc, vec::Vec};

use crate::{
    input::{Announcement, AnnouncementId, RunningTimer, Spending},
    vocab::{
        AppCard, AppConnection, AppEvent, AppStopReason, Approval, DisplayCommand, FallbackReason, ListeningState,
        Meant, Message, ModelOutcome, ModelRoute, Pending, Preference, ScheduleEntry, ServiceLevel, Settlement,
        ToolCall, TranscriptKind, Turn, Usage, WebhookCall,
    },
};

/// What a conversation wants from the shell.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Decode the utterance as far as it goes. A partial may be dropped; the others must end in
    /// `Input::Transcript` or `Input::TranscriptFailed` with the same `revision`. `meant`: whether it is for the assistant.
    Transcribe { utterance: u32, revision: u16, kind: TranscriptKind, meant: Meant },
    /// What was said in an utterance is not known and never will be: for the statistics. The wearer was told where that is
    /// due. `addressed`: it was certainly meant for the assistant.
    UtteranceLost { addressed: bool },
    /// Say in `Input::CommandMatched` how well this text, without its wake phrase, is understood as a command.
    /// `pending`: what it may be the answer to, or go on with. Changes nothing.
    MatchCommand { utterance: u32, revision: u16, text: String, pending: Option<Pending> },
    /// From now on the second pass over an utterance is biased towards these sentences.
    SetVocabulary(Arc<[String]>),
    /// Cancel decodes of this utterance that are older than `revision`.
    CancelTranscribe { utterance: u32, revision: u16 },
    /// The utterance has ended: the next voice opens a new one.
    CloseUtterance { utterance: u32 },
    /// Stop or start taking sound in.
    SetMuted(bool),
    /// The listening sign of the glasses. `turn` is the one under way.
    Listening { turn: Option<Turn>, state: ListeningState },
    /// What is understood, for the display's caption line and for the mini-apps that listen. `turn` is the one that it
    /// begins, where it begins one and that is known. `revision` counts up by one within the utterance, from 1; after the `last` one nothing follows.
    Caption { turn: Option<Turn>, utterance: u32, revision: u16, last: bool, addressed: bool, text: String },
    /// What is being said is meant for the assistant, so that a model will be asked soon.
    ExpectRequest,
    /// Ask the user's machine for the turn.
    RequestTurn { turn: Turn },
    /// Ask the model of this rank, with the tools of this moment. Messages are in order, oldest first; `pending` is what the
    /// wearer's words may be the answer to, or go on with.
    AskModel { turn: Turn, rank: u8, messages: Vec<Message>, pending: Option<Pending> },
    /// Whatever the model still says in this turn is not wanted.
    CancelModel { turn: Turn },
    /// A request has come to its end: for the user's account.
    ModelUsed { turn: Turn, rank: u8, usage: Usage, outcome: ModelOutcome },
    /// The wearer is being told that there is less than usual.
    FallbackTold { reason: FallbackReason, level: ServiceLevel },
    /// The display says what the wearer may say next: so many sentences.
    FollowUpsOffered { turn: Turn, count: u8 },
    /// Run a tool. Ends in exactly one `Input::Tool`.
    RunTool { turn: Turn, call: ToolCall },
    /// The turn was interrupted: stop the call if that is safe. Its result still comes.
    CancelTool { turn: Turn, call_id: String },
    /// The wearer has chosen between sides: to be kept, so that nobody asks again.
    Prefer(Preference),
    /// Tell the glasses what is being done. `tool` is its full name; the wearer reads what it is called in words.
    ToolActivity { turn: Turn, call_id: String, tool: String, state: ToolActivityState },
    /// Say a clause. Clauses of one speech are numbered from 0 on; `last` ends the speech. Announcements, questions and
    /// repetitions belong to no turn.
    Speak { turn: Option<Turn>, speech: u32, clause: u16, text: String, last: bool },
    /// A speech has no more clauses than those before this number: it is `finished` once they were played.
    EndSpeech { speech: u32, clause: u16 },
    /// Play a piece of a recorded sound as a clause of a speech. `sound`: the shell's number of it; `piece`: which one of
    /// `SOUND_PIECE_MS`, from 0 on.
    Play { speech: u32, clause: u16, sound: u64, piece: u16, last: bool },
    /// Stop the speech at once.
    Hush { speech: u32 },
    /// Draw.
    Display(DisplayCommand),
    /// A short sound.
    Chime(Chime),
    /// Put the question to the wearer's display.
    AskApproval(Approval),
    /// The question is settled; the executor goes on.
    ApprovalSettled(Settlement),
    /// The turn is over; `messages` hold what was said and what was heard.
    TurnDone { turn: Turn, messages: Vec<Message>, outcome: TurnOutcome },
    /// A moment of the turn's latency record, in microseconds on the monotonic clock; capture time for `LastVoice`.
    Mark { turn: Turn, stage: Stage, at_us: u64 },
    /// The announcement came to its end (`heard`), or could not be made: for whom it belongs to.
    Announced { id: AnnouncementId, heard: bool },
    /// Ask the device whether it is alive.
    Heartbeat,
    /// End the session.
    Close { reason: CloseReason },
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The answer was given to its end.
    Completed,
    /// The wearer spoke over it, cancelled it, or went away with the glasses.
    Interrupted,
    /// The model failed, or the glasses played nothing.
    Failed,
}

/// Short sounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chime {
    /// The ear is open.
    Attentive,
    /// A timer or reminder is due.
    Notice,
    /// Something went wrong.
    Trouble,
}

/// State of a tool call, as the glasses show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolActivityState {
    /// It runs.
    Started,
    /// It succeeded.
    Finished,
    /// It failed.
    Failed,
}

/// Stages of a turn that the core itself sees. The shell adds its own (network, decode, queue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Capture time of the last voiced sample.
    LastVoice,
    /// The end of turn was decided.
    EndDecided,
    /// The words of the request are there: the final transcript, or what was typed.
    Final,
    /// First event of the model.
    ModelFirst,
    /// First tool call handed out.
    ToolStart,
    /// Last tool result in.
    ToolEnd,
    /// First clause handed to synthesis.
    FirstClause,
    /// First text on the display.
    FirstDisplay,
    /// The device acknowledged that the answer's first sound was played.
    Heard,
}

/// Why the gateway ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Nothing was heard of the device for too long.
    Silent,
    /// The gateway is stopping.
    Shutdown,
}

/// What a user's machine wants from the shell.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum UserOutput {
    /// The device may go on with its turn; `history` is the conversation so far, oldest first, trimmed for the model;
    /// `means` are the models that it may ask.
    Grant { device: String, turn: Turn, history: Vec<Message>, route: ModelRoute },
    /// Have the model of this rank sum these up, oldest first; ends in `Summarised` with the same number. The first may be the summary so far.
    Summarise { request: u64, rank: u8, messages: Vec<Message> },
    /// Keep this; ends in `Persisted` or `PersistFailed` with the same ticket.
    Persist { ticket: u64, record: Record },
    /// The entry is stored. `request`: the caller's own number.
    Scheduled { request: u64, entry: ScheduleEntry },
    /// The entry is gone; `None`: there was none.
    Unscheduled { request: u64, entry: Option<ScheduleEntry> },
    /// The request failed, for this reason in words; nothing was stored.
    ScheduleFailed { request: u64, reason: String },
    /// These timers run.
    Timers { device: String, running: Vec<RunningTimer> },
    /// Tell the wearer through this device.
    Announce { device: String, announcement: Announcement },
    /// Put the question to the wearer on this device; `None`: to an operator, since no device is there.
    Ask { device: Option<String>, approval: Approval },
    /// A question that no device has is settled.
    ApprovalSettled(Settlement),
}

/// What a user's mini-apps want from the shell.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum AppOutput {
    /// Call the webhook with a session request. `afresh`: with a stop request before it, after which the socket `old` is
    /// closed, as after any stop: its session gives way to one of the same name and must not dial again.
    Call { package: String, session: String, call: WebhookCall, afresh: bool, old: Option<AppConnection> },
    /// Call the webhook with a stop request.
    CallStop { package: String, session: String, call: WebhookCall, reason: AppStopReason },
    /// Tell the app that it is stopped, and close its socket. `heard`: it has taken its stop by webhook, and must not be
    /// made to stop a second time.
    Close { connection: AppConnection, heard: bool },
    /// Drop the socket without a word.
    Drop { connection: AppConnection },
    /// Tell the glasses.
    Glasses(AppEvent),
    /// It runs. Answers whoever waits.
    Started { package: String },
    /// It did not start. Answers whoever waits. `again_ms`: when it is tried again by itself.
    Failed { package: String, why: String, again_ms: Option<u64> },
    /// It waits for glasses. Answers whoever waits.
    Asleep { package: String },
    /// It has stopped. Answers whoever waits.
    Stopped { package: String },
    /// Remember it beyond a restart.
    Remember(AppCard),
    /// Do not.
    Forget { package: String },
}

/// What is kept of a user.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Append to the conversation.
    Messages(Vec<Message>),
    /// A new conversation: what is appended from now on belongs to it.
    ConversationBegan,
    /// What the old messages of the conversation come to; replaces the summary before. It does not stand for the
    /// newest `behind` messages.
    Summary { text: String, behind: usize },
    /// Forget the conversation.
    HistoryCleared,
    /// What models took today; replaces what was kept before.
    Spending(Spending),
    /// Keep an entry; replaces the one with the same id.
    Entry(ScheduleEntry),
    /// Drop an entry.
    EntryRemoved { id: u64 },
}
