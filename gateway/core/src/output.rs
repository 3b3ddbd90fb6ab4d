//! Everything that a [`Conversation`](crate::conversation) or a [`User`](crate::user) can want.

use alloc::{string::String, vec::Vec};

use crate::{
    input::{Announcement, ScheduleEntry},
    vocab::{
        Approval, ApprovalOutcome, DisplayCommand, ListeningState, Message, ToolCall,
        TranscriptKind, Turn,
    },
};

/// What a conversation wants from the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Decode the utterance as far as it goes. A partial may be dropped; the others must end in
    /// `Input::Transcript` or `Input::TranscriptFailed`.
    Transcribe {
        utterance: u32,
        revision: u16,
        kind: TranscriptKind,
    },
    /// Cancel decodes of this utterance that are older than `revision`.
    CancelTranscribe { utterance: u32, revision: u16 },
    /// The utterance has ended: the next voice opens a new one.
    CloseUtterance { utterance: u32 },
    /// Stop or start taking sound in.
    SetMuted(bool),
    /// The listening sign of the glasses.
    Listening(ListeningState),
    /// What is understood, for the display's caption line and for debugging.
    Caption {
        turn: Turn,
        utterance: u32,
        revision: u16,
        last: bool,
        addressed: bool,
        text: String,
    },
    /// Ask the user's machine for the turn.
    RequestTurn { turn: Turn },
    /// Ask the model, with the tools of this moment.
    AskModel { turn: Turn, messages: Vec<Message> },
    /// Whatever the model still says in this turn is not wanted.
    CancelModel { turn: Turn },
    /// Run a tool. Ends in exactly one `Input::Tool`.
    RunTool { turn: Turn, call: ToolCall },
    /// The turn was interrupted: stop the call if that is safe. Its result still comes.
    CancelTool { turn: Turn, call_id: String },
    /// Tell the glasses what is being done.
    ToolActivity {
        turn: Turn,
        call_id: String,
        label: String,
        state: ToolActivityState,
    },
    /// Say a clause. Clauses of one speech are numbered from 0 on; `last` ends the speech.
    Speak {
        turn: Turn,
        speech: u32,
        clause: u16,
        text: String,
        last: bool,
    },
    /// Stop the speech at once.
    Hush { speech: u32 },
    /// Draw.
    Display(DisplayCommand),
    /// A short sound.
    Chime(Chime),
    /// Put the question to the wearer's display.
    AskApproval(Approval),
    /// The question is settled; the executor goes on.
    ApprovalSettled { id: u64, outcome: ApprovalOutcome },
    /// The turn is over; `messages` hold what was said and what was heard.
    TurnDone {
        turn: Turn,
        messages: Vec<Message>,
        outcome: TurnOutcome,
    },
    /// A moment of the turn's latency record.
    Mark {
        turn: Turn,
        stage: Stage,
        at_us: u64,
    },
    /// The announcement came to its end (`heard`), or could not be made.
    Announced { id: u64, heard: bool },
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
    /// The wearer spoke over it or cancelled it.
    Interrupted,
    /// The model or the link failed.
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
    /// The final transcript is there.
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
        device: String,
        turn: Turn,
        history: Vec<Message>,
    },
    /// Keep this; ends in `Persisted` or `PersistFailed` with the same ticket.
    Persist { ticket: u64, record: Record },
    /// The entry is stored.
    Scheduled { request: u64, entry: ScheduleEntry },
    /// The entry is gone; `None`: there was none.
    Unscheduled {
        request: u64,
        entry: Option<ScheduleEntry>,
    },
    /// The request failed; nothing was stored.
    ScheduleFailed { request: u64, reason: String },
    /// Tell the wearer through this device.
    Announce {
        device: String,
        announcement: Announcement,
    },
}

/// What is kept of a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Append to the conversation.
    Messages(Vec<Message>),
    /// Forget the conversation.
    HistoryCleared,
    /// Keep an entry; replaces the one with the same id.
    Entry(ScheduleEntry),
    /// Drop an entry.
    EntryRemoved { id: u64 },
}
