//! Timers and reminders, as core, tools and store know them.

use alloc::string::String;

/// When an entry is due.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// After these milliseconds have passed, whatever the wall clock does.
    In { duration_ms: u64 },
    /// When the wall clock shows these milliseconds since the Unix epoch, UTC.
    At { wall_ms: i64 },
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// A countdown.
    Timer,
    /// Something to be told of.
    Reminder,
}

/// An entry of a user's schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry {
    /// Unique within the user.
    pub id: u64,
    /// Timer or reminder.
    pub kind: ScheduleKind,
    /// Timer: its name, or empty. Reminder: what to be reminded of.
    pub text: String,
    /// Wall time when it is due, in milliseconds since the Unix epoch; a timer's is what was
    /// expected when it was set, and counts only after a restart.
    pub due_wall_ms: i64,
    /// Length in milliseconds, where it was set to be due [after a time](Due::In).
    pub duration_ms: Option<u64>,
}

/// An entry that waits or rings, as it is at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEntry {
    /// What is open.
    pub entry: ScheduleEntry,
    /// Milliseconds that its countdown has left; `None`: what is left is what the wall clock says, which is wrong right
    /// after that has jumped.
    pub left_ms: Option<u64>,
}

/// What a tool wants of the schedule.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// Keep an entry.
    Add { due: Due, kind: ScheduleKind, text: String },
    /// Drop the entry with this id.
    Remove { id: u64 },
}
