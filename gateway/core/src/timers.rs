//! Wake-up reasons of a [`Conversation`](crate::conversation), of a [`User`](crate::user) and of a user's mini-apps, their
//! [`AppLifecycles`](crate::app_lifecycle); and a table of deadlines by reason.

use crate::vocab::AppState;

/// Wake-up reasons of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A heartbeat is due.
    Heartbeat,
    /// Nothing was received from the device for too long.
    DeviceSilent,
    /// A lost device did not come back.
    ResumeExpired,
    /// Time for the next partial transcript.
    PartialDue,
    /// The talk button was released during speech, and no pause was reported since.
    TalkReleased,
    /// The pause of an utterance has lasted long enough, though no fact says so.
    PauseOver,
    /// An utterance is open, but no facts about it arrive.
    UtteranceStalled,
    /// A requested transcript did not arrive.
    TranscriptMissing,
    /// The voice over the answer has lasted long enough to count as an interruption.
    VoiceConfirmed,
    /// The ear, or the follow-up window, closes.
    EarCloses,
    /// The turn was not granted.
    GrantMissing,
    /// The model sent nothing.
    ModelSilent,
    /// The turn takes too long.
    TurnBudget,
    /// A tool did not answer.
    ToolMissing,
    /// A tool has taken long enough for a preamble.
    PreambleDue,
    /// A tool's next line about its progress may be shown.
    ProgressDue,
    /// Results of cancelled calls did not arrive.
    SettleExpired,
    /// The device does not play the speech that it was sent.
    SpeechStalled,
    /// More of the answer may be drawn.
    DisplayDue,
    /// The next page of an answer.
    PageDue,
    /// A question expired.
    ApprovalExpired,
    /// The next page of a question.
    QuestionPageDue,
    /// Something on the display ends, or the next item is due.
    ScreenDue,
    /// An announcement has waited long enough for silence.
    NoticeDue,
    /// After a restart the wearer may be asked again for consent.
    AskAgain,
    /// A turn has been silent long enough for a short sound.
    WorkingDue,
    /// The page of a translation was read, or has stood long enough.
    TranslationPage,
    /// Nothing was translated for long.
    TranslationIdle,
}

impl Timer {
    pub(crate) const ALL: [Self; 28] = [
        Self::Heartbeat,
        Self::DeviceSilent,
        Self::ResumeExpired,
        Self::PartialDue,
        Self::TalkReleased,
        Self::PauseOver,
        Self::UtteranceStalled,
        Self::TranscriptMissing,
        Self::VoiceConfirmed,
        Self::EarCloses,
        Self::GrantMissing,
        Self::ModelSilent,
        Self::TurnBudget,
        Self::ToolMissing,
        Self::PreambleDue,
        Self::ProgressDue,
        Self::SettleExpired,
        Self::SpeechStalled,
        Self::DisplayDue,
        Self::PageDue,
        Self::ApprovalExpired,
        Self::QuestionPageDue,
        Self::ScreenDue,
        Self::NoticeDue,
        Self::AskAgain,
        Self::WorkingDue,
        Self::TranslationPage,
        Self::TranslationIdle,
    ];
}

/// Wake-up reasons of a user's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTimer {
    /// The device that has the turn may be gone.
    TurnHeld,
    /// A timer or reminder is due, or is to be offered or removed again.
    Schedule,
    /// No operator answered a question in time.
    ApprovalExpired,
}

/// Wake-up reasons of a user's mini-apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppTimer {
    /// An app has been in this state for as long as it may.
    App(AppState),
    /// No glasses have been connected for [`ABSENT_MS_MAX`](crate::app_lifecycle::ABSENT_MS_MAX).
    Absent,
}

/// A set of named deadlines in microseconds on the monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Timers<const N: usize> {
    deadlines: [Option<u64>; N],
}

impl<const N: usize> Timers<N> {
    pub(crate) const fn new() -> Self {
        Self { deadlines: [None; N] }
    }

    pub(crate) fn arm(&mut self, index: usize, at_us: u64) {
        if let Some(deadline) = self.deadlines.get_mut(index) {
            *deadline = Some(at_us);
        }
    }

    pub(crate) fn disarm(&mut self, index: usize) {
        if let Some(deadline) = self.deadlines.get_mut(index) {
            *deadline = None;
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        self.deadlines.get(index).copied().flatten()
    }

    /// The earliest deadline and its index; among equal ones the first in the table.
    pub(crate) fn next(&self) -> Option<(u64, usize)> {
        self.deadlines.iter().enumerate().filter_map(|(index, deadline)| deadline.map(|at_us| (at_us, index))).min()
    }

    pub(crate) fn clear(&mut self) {
        self.deadlines = [None; N];
    }
}
