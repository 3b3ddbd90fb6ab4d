//! Effects requested by a [`Conversation`](crate::conversation), by a [`User`](crate::user) and by a user's mini-apps,
//! their [`AppLifecycles`](crate::app_lifecycle).

use alloc::{string::String, sync::Arc, vec::Vec};

use crate::{
    input::{Announcement, AnnouncementId, RunningTimer, Spending},
    vocab::{
        Addressing, AppCard, AppConnection, AppEvent, AppStopReason, Approval, DisplayCommand, FallbackReason,
        ListeningState, Message, ModelOutcome, ModelRoute, OpenEar, OpenQuestion, Pending, Preference, ScheduleEntry,
        ServiceLevel, Settlement, SoundCoding, ToolCall, TranscriptKind, Turn, Usage, WebhookCall,
    },
};

/// What a conversation requests from the shell.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Decode the utterance so far. A partial may be dropped; the others must end in `Input::Transcript` or
    /// `Input::TranscriptFailed` with the same `revision`. `meant`: whether it is for the assistant. `from_us`: capture
    /// time before which no sound is decoded; `None`: all of it is.
    Transcribe { utterance: u32, revision: u16, kind: TranscriptKind, meant: Addressing, from_us: Option<u64> },
    /// Translate an utterance that is over into English. Ends in `Input::Translated`.
    Translate { utterance: u32 },
    /// What came of an utterance that needed a wake phrase in its sound: for the statistics.
    Wake(WakeOutcome),
    /// An utterance was lost without a transcript: for the statistics. The wearer has been informed if necessary.
    /// `addressed`: it was certainly meant for the assistant.
    UtteranceLost { addressed: bool },
    /// Report in `Input::CommandMatched` how well this text, without its wake phrase, matches a command. `pending`: the
    /// request that it may answer or continue. No side effects.
    MatchCommand { utterance: u32, revision: u16, text: String, pending: Option<Pending> },
    /// From now on the second pass over an utterance is biased towards these sentences.
    SetVocabulary(Arc<[String]>),
    /// Cancel decodes of this utterance that are older than `revision`, except these.
    CancelTranscribe { utterance: u32, revision: u16, except: Vec<u16> },
    /// What matters of the open utterance begins at this capture time: from there it may be as long as any other.
    MeasureFrom { utterance: u32, from_us: u64 },
    /// Pauses of the open utterance are to be reported after so much silence: it may be no more than a word that is waited for.
    PauseAfter { utterance: u32, silence_us: u64 },
    /// The utterance has ended: the next voice opens a new one. Where it has ended is stored for a restart, until
    /// `UtterancesSettled`.
    CloseUtterance { utterance: u32 },
    /// All utterances up to this one are dealt with: their words were acted upon, passed over, or are lost. After a
    /// restart their sound need not be heard again.
    UtterancesSettled { until: u32 },
    /// Stop or resume audio capture. It is stored for a restart, and in the status that tools read. `stays`: the device does
    /// not know of it by itself, so that a session which it begins anew begins with `Input::StaysMuted`.
    SetMuted { muted: bool, stays: bool },
    /// The listening indicator of the glasses. `turn` is the one under way. Unless it is idle or muted, the shell also
    /// holds back new firmware for the device.
    Listening { turn: Option<Turn>, state: ListeningState },
    /// Transcript for the display's caption line and for mini-apps that listen. `turn`: the turn that it begins, if it
    /// does and if that is known. `revision` increases by one within the utterance, from 1; after the `last` one
    /// nothing follows. The shell also translates the utterance of the `last` one where an app wants that: the core
    /// knows that apps follow the words, but not that they want them in English.
    Caption { turn: Option<Turn>, utterance: u32, revision: u16, last: bool, addressed: bool, text: String },
    /// The current utterance is meant for the assistant, so that a model will be asked soon: probably the one of this
    /// rank. The shell also stores, for a restart, when somebody was speaking to the assistant last.
    ExpectRequest { rank: u8 },
    /// The time in which no wake phrase is needed has begun, was moved, or is over (`None`): store it for a restart.
    EarOpen(Option<OpenEar>),
    /// The wearer is being asked about a request that is not whole, or an answer no longer counts (`None`): store it for a
    /// restart.
    QuestionOpen(Option<OpenQuestion>),
    /// The wearer was told what a restart has cut off, and is being asked again what waited for consent, or does not want
    /// to be; or all of it is told `elsewhere`. After another restart it need not be told once more.
    RestartTold { elsewhere: bool },
    /// Ask the user's machine for the turn; once more, for the same one, where the link was lost before it was granted.
    /// `request`: what the wearer wants; store it for a restart.
    RequestTurn { turn: Turn, request: String },
    /// The wearer has said more of the turn's request: this is all of it, to be stored as that of `RequestTurn` was.
    TurnReopened { turn: Turn, request: String },
    /// Ask the model of this rank, with the current tools. Messages are in order, oldest first; `pending` is the
    /// request that the wearer's words may answer or continue.
    AskModel { turn: Turn, rank: u8, messages: Vec<Message>, pending: Option<Pending> },
    /// Discard all further output of the model in this turn.
    CancelModel { turn: Turn },
    /// A model request has ended: for the user's accounting.
    ModelUsed { turn: Turn, rank: u8, usage: Usage, outcome: ModelOutcome },
    /// The wearer is being informed of a reduced level of service.
    FallbackTold { reason: FallbackReason, level: ServiceLevel },
    /// The display suggests this number of sentences that the wearer may say next.
    FollowUpsOffered { turn: Turn, count: u8 },
    /// Run a tool. Ends in exactly one `Input::Tool`.
    RunTool { turn: Turn, call: ToolCall },
    /// The turn was interrupted: stop the call if that is safe. Its result still comes.
    CancelTool { turn: Turn, call_id: String },
    /// The wearer has chosen between sides: store the choice, so that it is not asked for again.
    Prefer(Preference),
    /// Report tool activity to the glasses. `tool` is its full name; the wearer sees its title.
    ToolActivity { turn: Turn, call_id: String, tool: String, state: ToolActivityState },
    /// Show on the glasses what a running call is doing now, in place of its title and of earlier lines.
    ToolProgress { turn: Turn, call_id: String, line: String },
    /// Say a clause. Clauses of one speech are numbered from 0 on; `last` ends the speech. Announcements, questions and
    /// repetitions belong to no turn. `from`: the part of the clause, 0 to 1, that was heard in an earlier speech; its
    /// sound goes on there, and `Input::Played` counts that part as played.
    Speak { turn: Option<Turn>, speech: u32, clause: u16, text: String, from: f32, last: bool },
    /// A speech has no more clauses than those before this number: it is `finished` once they were played.
    EndSpeech { speech: u32, clause: u16 },
    /// Play a piece of a recorded sound as a clause of a speech. `sound`: the shell's number of it; `piece`: index of
    /// the piece of `SOUND_PIECE_MS`, from 0 on; `from`: as that of `Speak`.
    Play { speech: u32, clause: u16, sound: u64, piece: u16, from: f32, last: bool },
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
    /// The turn is over; `messages` hold what was said and what was heard: for the user's machine. Nothing of it is
    /// stored for a restart any more, its record is complete, and what a model still sends in it is discarded.
    TurnDone { turn: Turn, messages: Vec<Message>, outcome: TurnOutcome },
    /// The glasses did not come back, and the wearer has not heard this: an answer, or what else was to be told. For the user's
    /// machine.
    Undelivered { text: String },
    /// A stage of the turn's latency record, in microseconds on the monotonic clock; capture time for `LastVoice`.
    Mark { turn: Turn, stage: Stage, at_us: u64 },
    /// The announcement was played to its end (`heard`) or could not be: for its owner.
    Announced { id: AnnouncementId, heard: bool },
    /// From now on sound is coded like this, in both directions.
    CodeSound(SoundCoding),
    /// Probe whether the device is alive.
    Heartbeat,
    /// End the session, or only its link: see the reasons.
    Close { reason: CloseReason },
}

/// What came of an utterance where wake phrases are heard in the sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeOutcome {
    /// None was heard that it would have needed: it was not decoded.
    Unheard,
    /// One was heard, and the text has it as well.
    Verified,
    /// One was heard, and the text denies it: nothing follows from it.
    Vetoed,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The answer was given completely.
    Completed,
    /// The wearer spoke over it, cancelled it, or disconnected.
    Interrupted,
    /// The model failed, or the glasses played nothing.
    Failed,
}

/// Short sounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chime {
    /// The ear is open.
    Attentive,
    /// A spoken request was accepted.
    Understood,
    /// A turn is over in which nothing was to be said: a tool has shown what came of it.
    Done,
    /// The answer takes a while.
    Working,
    /// A timer or reminder is due.
    Notice,
    /// The wearer is asked something that no request of theirs has led to.
    Attention,
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
    /// It ended with an error.
    Failed,
    /// It was stopped before its end.
    Cancelled,
}

/// Stages of a turn that the core observes. The shell adds its own (network, decode, queue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Capture time of the last voiced sample.
    LastVoice,
    /// The end of turn was decided.
    EndDecided,
    /// The request's text is available: the final transcript, or typed text.
    Final,
    /// First event of the model.
    ModelFirst,
    /// First tool call dispatched.
    ToolStart,
    /// Last tool result received.
    ToolEnd,
    /// First clause passed to synthesis.
    FirstClause,
    /// First text on the display.
    FirstDisplay,
    /// The device acknowledged that the answer's first sound was played.
    Heard,
}

/// Why the gateway ends a link or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Nothing was received from the device for too long: the link ends, and the session can be resumed.
    Silent,
    /// The device did not resume in time: the session ends.
    Expired,
    /// The gateway is stopping: the session ends.
    Shutdown,
}

/// What a user's machine requests from the shell.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum UserOutput {
    /// The device may proceed with its turn; `history` is the conversation so far, oldest first, trimmed for the model;
    /// `route` lists the models that it may ask.
    Grant { device: String, turn: Turn, history: Vec<Message>, route: ModelRoute },
    /// Have the model of this rank summarise these, oldest first; ends in `Summarised` with the same number. The first
    /// may be the summary so far. Nothing comes where too many results of this user are awaited, or where everything of
    /// the user is being erased: the machine gives the summary up by itself.
    Summarise { request: u64, rank: u8, messages: Vec<Message> },
    /// Store this record; ends in `Persisted` or `PersistFailed` with the same ticket.
    Persist { ticket: u64, record: Record },
    /// The entry is stored. `request`: the caller's own number.
    Scheduled { request: u64, entry: ScheduleEntry },
    /// The entry is removed; `None`: there was none.
    Unscheduled { request: u64, entry: Option<ScheduleEntry> },
    /// The request failed, for this reason in words; nothing was stored.
    ScheduleFailed { request: u64, reason: String },
    /// The running timers.
    Timers { device: String, running: Vec<RunningTimer> },
    /// Tell the wearer through this device.
    Announce { device: String, announcement: Announcement },
    /// Withdraw the announcement of the entry with this id from this device: the entry was removed or extended.
    Withdraw { device: String, id: u64 },
    /// The store takes no messages any more: have the wearer told on this device.
    MessagesNotKept { device: String },
    /// Put the question to the wearer on this device; `None`: to an operator, since there is no device.
    Ask { device: Option<String>, approval: Approval },
    /// A question that is on no device is settled.
    ApprovalSettled(Settlement),
}

/// What a user's mini-apps request from the shell.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum AppOutput {
    /// Call the webhook with a session request. `afresh`: send a stop request first, then close the socket `old`, as
    /// after any stop: its session is replaced by one of the same name and must not dial again.
    Call { package: String, session: String, call: WebhookCall, afresh: bool, old: Option<AppConnection> },
    /// Call the webhook with a stop request.
    CallStop { package: String, session: String, call: WebhookCall, reason: AppStopReason },
    /// Tell the app that it is stopped, and close its socket. `heard`: it has accepted its stop by webhook, and must
    /// not be stopped a second time.
    Close { connection: AppConnection, heard: bool },
    /// Close the socket without a message.
    Drop { connection: AppConnection },
    /// Report to the glasses. Where the app is `Stopped`, its speeches are withdrawn, its drawing is forgotten, and it
    /// listens no more.
    Glasses(AppEvent),
    /// It runs. Completes the requests that wait for it.
    Started { package: String },
    /// It did not start. Completes the requests that wait for it. `again_ms`: time until the automatic retry.
    Failed { package: String, why: String, again_ms: Option<u64> },
    /// It waits for glasses. Completes the requests that wait for it.
    Asleep { package: String },
    /// It has stopped. Completes the requests that wait for it.
    Stopped { package: String },
    /// Remember it across restarts.
    Remember(AppCard),
    /// No longer remember it.
    Forget { package: String },
}

/// Records stored for a user.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Append to the conversation.
    Messages(Vec<Message>),
    /// A new conversation: messages appended from now on belong to it.
    ConversationBegan,
    /// Summary of the conversation's old messages; replaces the previous one. It does not cover the newest `behind`
    /// messages.
    Summary { text: String, behind: usize },
    /// Forget the conversation.
    HistoryCleared,
    /// What models used today; replaces the previous record.
    Spending(Spending),
    /// Store an entry; replaces the one with the same id.
    Entry(ScheduleEntry),
    /// Remove an entry.
    EntryRemoved { id: u64 },
}
