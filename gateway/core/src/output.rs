//! Everything that a [`Conversation`](crate::conversation) or a [`User`](crate::user) can want.

use alloc::{string::String, vec::Vec};

use crate::{
    input::{Announcement, RunningTimer, ScheduleEntry, Spending},
    vocab::{
        Approval, DisplayCommand, ListeningState, Means, Meant, Message, ModelOutcome, Pending, Preference, Service,
        Settlement, Shortage, ToolCall, TranscriptKind, Turn, Usage,
    },
};

/// What a conversation wants from the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Decode the utterance as far as it goes. A partial may be dropped; the others must end in
    /// `Input::Transcript` or `Input::TranscriptFailed`.
    Transcribe {
        /// The utterance.
        utterance: u32,
        /// The core's number of the request.
        revision: u16,
        /// Kind.
        kind: TranscriptKind,
        /// Whether it is meant for the assistant.
        meant: Meant,
    },
    /// What was said in an utterance is not known and never will be: for the books. The wearer was told where that is due.
    UtteranceLost {
        /// Whether it was certainly meant for the assistant.
        addressed: bool,
    },
    /// Say in `Input::Considered` how well this text is understood as a command. Changes nothing.
    Consider {
        /// The utterance.
        utterance: u32,
        /// The core's number of the question.
        revision: u16,
        /// What may be a command, without the wake phrase.
        text: String,
        /// What it may be the answer to, or go on with.
        pending: Option<Pending>,
    },
    /// Cancel decodes of this utterance that are older than `revision`.
    CancelTranscribe {
        /// The utterance.
        utterance: u32,
        /// The core's number of the request.
        revision: u16,
    },
    /// The utterance has ended: the next voice opens a new one.
    CloseUtterance {
        /// The utterance.
        utterance: u32,
    },
    /// Stop or start taking sound in.
    SetMuted(bool),
    /// The listening sign of the glasses.
    Listening {
        /// The turn that is under way; 0: none.
        turn: Turn,
        /// The sign.
        state: ListeningState,
    },
    /// What is understood, for the display's caption line and for debugging.
    Caption {
        /// The turn that it begins; 0: none, or not known yet.
        turn: Turn,
        /// The utterance.
        utterance: u32,
        /// Counts up by one within the utterance, from 1.
        revision: u16,
        /// Whether nothing follows.
        last: bool,
        /// Whether it was meant for the assistant.
        addressed: bool,
        /// The text.
        text: String,
    },
    /// What is being said is meant for the assistant, so that a model will be asked soon.
    ExpectRequest,
    /// Ask the user's machine for the turn.
    RequestTurn {
        /// The turn that it belongs to.
        turn: Turn,
    },
    /// Ask a model, with the tools of this moment.
    AskModel {
        /// The turn that it belongs to.
        turn: Turn,
        /// Which model.
        rank: u8,
        /// In order, oldest first.
        messages: Vec<Message>,
        /// What the wearer's words may be the answer to, or go on with.
        pending: Option<Pending>,
    },
    /// Whatever the model still says in this turn is not wanted.
    CancelModel {
        /// The turn that it belongs to.
        turn: Turn,
    },
    /// A request has come to its end: for the user's books.
    ModelUsed {
        /// The turn that it belongs to.
        turn: Turn,
        /// Which model.
        rank: u8,
        /// What it took.
        usage: Usage,
        /// How it ended.
        outcome: ModelOutcome,
    },
    /// The wearer is being told that there is less than usual.
    ShortageTold {
        /// What is short.
        shortage: Shortage,
        /// What is left.
        service: Service,
    },
    /// The display says what the wearer may say next.
    FollowUpsOffered {
        /// The turn that it belongs to.
        turn: Turn,
        /// How many sentences.
        count: u8,
    },
    /// Run a tool. Ends in exactly one `Input::Tool`.
    RunTool {
        /// The turn that it belongs to.
        turn: Turn,
        /// The call, with its arguments.
        call: ToolCall,
    },
    /// The turn was interrupted: stop the call if that is safe. Its result still comes.
    CancelTool {
        /// The turn that it belongs to.
        turn: Turn,
        /// The call.
        call_id: String,
    },
    /// The wearer has chosen between sides: to be kept, so that nobody asks again.
    Prefer(Preference),
    /// Tell the glasses what is being done.
    ToolActivity {
        /// The turn that it belongs to.
        turn: Turn,
        /// The call.
        call_id: String,
        /// Full name of the tool; the wearer reads what it is called in words.
        tool: String,
        /// How far it is.
        state: ToolActivityState,
    },
    /// Say a clause. Clauses of one speech are numbered from 0 on; `last` ends the speech. The text
    /// is empty when only the end is told: nothing is synthesised for it, and the speech is
    /// `finished` once everything before it was played. `turn` is 0 for announcements, questions
    /// and repetitions.
    Speak {
        /// The turn that it belongs to.
        turn: Turn,
        /// The speech.
        speech: u32,
        /// The clause, from 0 on.
        clause: u16,
        /// The text.
        text: String,
        /// Whether nothing follows.
        last: bool,
    },
    /// Play a piece of a recorded sound as a clause of a speech.
    Play {
        /// The speech.
        speech: u32,
        /// The clause, from 0 on.
        clause: u16,
        /// Number of the announcement that brought the sound.
        sound: u64,
        /// Which piece of `SOUND_PIECE_MS`, from 0 on.
        piece: u16,
        /// Whether nothing follows.
        last: bool,
    },
    /// Stop the speech at once.
    Hush {
        /// The speech.
        speech: u32,
    },
    /// Draw.
    Display(DisplayCommand),
    /// A short sound.
    Chime(Chime),
    /// Put the question to the wearer's display.
    AskApproval(Approval),
    /// The question is settled; the executor goes on.
    ApprovalSettled(Settlement),
    /// The turn is over; `messages` hold what was said and what was heard.
    TurnDone {
        /// The turn that it belongs to.
        turn: Turn,
        /// In order, oldest first.
        messages: Vec<Message>,
        /// How it ended.
        outcome: TurnOutcome,
    },
    /// A moment of the turn's latency record.
    Mark {
        /// The turn that it belongs to.
        turn: Turn,
        /// Which moment.
        stage: Stage,
        /// When, in microseconds on the monotonic clock; capture time for `LastVoice`.
        at_us: u64,
    },
    /// The announcement came to its end (`heard`), or could not be made.
    Announced {
        /// Number of the entry or the question.
        id: u64,
        /// Whether the wearer got it.
        heard: bool,
    },
    /// Ask the device whether it is alive.
    Heartbeat,
    /// End the session.
    Close {
        /// Why, in words.
        reason: CloseReason,
    },
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
#[derive(Clone, Debug, PartialEq)]
pub enum UserOutput {
    /// The device may go on with its turn; `history` is trimmed for the model.
    Grant {
        /// The device.
        device: String,
        /// The turn that it belongs to.
        turn: Turn,
        /// The conversation so far, oldest first, trimmed for the model.
        history: Vec<Message>,
        /// Which models it may ask.
        means: Means,
    },
    /// Have a model sum these up; ends in `Summarised` with the same number. The first may be the summary so far.
    Summarise {
        /// Its number.
        request: u64,
        /// The model's rank.
        rank: u8,
        /// In order, oldest first.
        messages: Vec<Message>,
    },
    /// Keep this; ends in `Persisted` or `PersistFailed` with the same ticket.
    Persist {
        /// Number of the `Persist`.
        ticket: u64,
        /// What to keep.
        record: Record,
    },
    /// The entry is stored.
    Scheduled {
        /// The caller's own number, given back with the answer.
        request: u64,
        /// The entry.
        entry: ScheduleEntry,
    },
    /// The entry is gone; `None`: there was none.
    Unscheduled {
        /// The caller's own number, given back with the answer.
        request: u64,
        /// The entry.
        entry: Option<ScheduleEntry>,
    },
    /// The request failed; nothing was stored.
    ScheduleFailed {
        /// The caller's own number, given back with the answer.
        request: u64,
        /// Why, in words.
        reason: String,
    },
    /// These timers run.
    Timers {
        /// The device.
        device: String,
        /// All of them, in any order.
        running: Vec<RunningTimer>,
    },
    /// Tell the wearer through this device.
    Announce {
        /// The device.
        device: String,
        /// What to tell.
        announcement: Announcement,
    },
    /// Put the question to the wearer on this device; `None`: to an operator, since no device is there.
    Ask {
        /// The device.
        device: Option<String>,
        /// The question.
        approval: Approval,
    },
    /// A question that no device has is settled.
    ApprovalSettled(Settlement),
}

/// What is kept of a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Append to the conversation.
    Messages(Vec<Message>),
    /// A new conversation: what is appended from now on belongs to it.
    ConversationBegan,
    /// What the old messages of the conversation come to; replaces the summary before.
    Summary {
        /// The summary.
        text: String,
        /// The newest messages that it does not stand for.
        behind: usize,
    },
    /// Forget the conversation.
    HistoryCleared,
    /// What models took today; replaces what was kept before.
    Spending(Spending),
    /// Keep an entry; replaces the one with the same id.
    Entry(ScheduleEntry),
    /// Drop an entry.
    EntryRemoved {
        /// Number of the entry or the question.
        id: u64,
    },
}
