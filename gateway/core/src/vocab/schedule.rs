//! Timers and reminders, shared by core, tools and store.

use alloc::string::String;

/// When an entry is due.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// After this many milliseconds, independent of the wall clock.
    In { duration_ms: u64 },
    /// When the wall clock reaches this time, in milliseconds since the Unix epoch, UTC.
    At { wall_ms: i64 },
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// A countdown.
    Timer {
        /// Its name, if it has one.
        name: Option<String>,
    },
    /// An appointment by the wall clock.
    Reminder {
        /// What the wearer is reminded of.
        text: String,
    },
    /// An answer that did not reach the wearer: the glasses were gone.
    Answer {
        /// What would have been said.
        text: String,
    },
}

impl ScheduleKind {
    /// A timer; a blank name counts as none.
    pub fn timer(name: String) -> Self {
        Self::Timer { name: (!name.trim().is_empty()).then_some(name) }
    }

    /// Whether it is a timer.
    pub fn is_timer(&self) -> bool {
        matches!(self, Self::Timer { .. })
    }

    /// Whether it is a reminder.
    pub fn is_reminder(&self) -> bool {
        matches!(self, Self::Reminder { .. })
    }

    /// A timer's name, or the text of another entry, in the form in which they are stored and sent: empty if a timer has no name.
    pub fn text(&self) -> &str {
        match self {
            Self::Timer { name } => name.as_deref().unwrap_or_default(),
            Self::Reminder { text } | Self::Answer { text } => text,
        }
    }
}

/// An entry of a user's schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry {
    /// Unique within the user.
    pub id: u64,
    /// Timer, reminder or answer.
    pub kind: ScheduleKind,
    /// Wall time when it is due, in milliseconds since the Unix epoch; for a timer the time expected when it was set,
    /// which is used only after a restart.
    pub due_wall_ms: i64,
    /// Length in milliseconds, if it is due [after a time](Due::In).
    pub duration_ms: Option<u64>,
}

/// An entry that waits or rings, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEntry {
    /// What was scheduled.
    pub entry: ScheduleEntry,
    /// Milliseconds left on its countdown; `None`: derive it from the wall clock, which is wrong right after the clock
    /// has jumped.
    pub left_ms: Option<u64>,
}

/// A tool's change to the schedule.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// Add an entry.
    Add { due: Due, kind: ScheduleKind },
    /// Remove the entry with this id.
    Remove { id: u64 },
    /// Give the timer with this id so many more milliseconds: behind what is left of it, or from now on if it rings.
    Extend { id: u64, more_ms: u64 },
}
