//! Facts about sound: all that the core ever learns of it.

use alloc::string::String;

/// What the listener noticed. Times are capture times in microseconds on the clock of the glasses, whose zero is the
/// beginning of their session.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum VoiceFact {
    /// A voice began; opens the utterance.
    SpeechStarted {
        utterance: u32,
        /// Capture time in microseconds.
        at_us: u64,
    },
    /// First sign of a pause; `at_us` is the last voiced sample.
    Paused {
        utterance: u32,
        /// Capture time in microseconds.
        at_us: u64,
        /// Microseconds of silence so far.
        silence_us: u64,
    },
    /// Voice again before the utterance was closed.
    Resumed {
        utterance: u32,
        /// Capture time in microseconds.
        at_us: u64,
    },
    /// Still silent: repeated while the pause lasts. `score` is the probability, 0 to 1, that the
    /// speaker is done, where an end-of-turn model is at hand.
    Silence {
        utterance: u32,
        /// Capture time in microseconds.
        at_us: u64,
        /// Microseconds of silence so far.
        silence_us: u64,
        /// Probability, 0 to 1, that the speaker is done.
        score: Option<f32>,
    },
    /// It ends here, pause or not: the wearer let the talk button go, or the longest utterance allowed is reached.
    Ended {
        utterance: u32,
        /// Capture time in microseconds up to which there was voice.
        at_us: u64,
    },
}

/// Whether what is being said is meant for the assistant, as far as is known before it is understood. In ascending order:
/// whoever cannot decode everything leaves the first out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meant {
    /// It begins without the wake phrase that it would need.
    Overheard,
    /// Nobody knows yet.
    Unsure,
    /// It is.
    Addressed,
}

/// Why a transcript was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptKind {
    /// While the wearer still speaks; may be dropped when no worker is free.
    Partial,
    /// At the first sign of a pause, in the hope that it is the end.
    Speculative,
    /// The turn has ended.
    Final,
    /// Once more, by the second model where there is one, because the first text is no clear command or holds free text.
    SecondPass,
    /// The same by the first model, because the second did not make it clear.
    ThirdPass,
}

/// How well a text matches a command, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandMatch {
    /// It is no command.
    None,
    /// It is one if some of its words were misheard.
    Misheard,
    /// It is the beginning of one: an argument is missing.
    Incomplete,
    /// It is one, and part of it is free text, which could be anything.
    FreeText,
    /// It is one as it stands.
    Exact,
}

/// What was understood of one utterance.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The utterance that was decoded.
    pub utterance: u32,
    /// The core's own number of the request, to tell stale answers.
    pub revision: u16,
    /// Why it was asked for.
    pub kind: TranscriptKind,
    /// The text; empty when nothing was said.
    pub text: String,
    /// Mean probability of the tokens, 0 to 1.
    pub confidence: f32,
}
