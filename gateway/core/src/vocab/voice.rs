//! Voice facts: all that the core receives about sound.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A fact from the voice detector. Times are capture times in microseconds on the clock of the glasses, which starts at
/// zero with their session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum VoiceFact {
    /// A voice began; opens the utterance.
    SpeechStarted {
        utterance: u32,
        /// Capture time in microseconds.
        at_us: u64,
        /// Microseconds of voice so far.
        #[serde(default)]
        voiced_us: u64,
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
    /// Still silent: repeated while the pause lasts. `score` is the probability, 0 to 1, that the speaker is done, if
    /// an end-of-turn model is available.
    Silence {
        utterance: u32,
        /// Capture time in microseconds.
        at_us: u64,
        /// Microseconds of silence so far.
        silence_us: u64,
        /// Probability, 0 to 1, that the speaker is done.
        score: Option<f32>,
    },
    /// The utterance ends here, pause or not: the wearer released the talk button, or the length limit was reached.
    Ended {
        utterance: u32,
        /// Capture time in microseconds up to which there was voice.
        at_us: u64,
    },
    /// The voice was compared with what the device's own speaker plays. Reported only for devices that say that they
    /// cancel their echo.
    Echo {
        utterance: u32,
        /// From -1 to 1; 1: it is a perfect copy.
        likeness: f32,
    },
    /// A wake phrase was heard in its sound. May come late: the utterance may be over.
    WakeHeard {
        utterance: u32,
        /// Capture time in microseconds of the phrase's end, to some tenths of a second.
        at_us: u64,
        /// Probability, 0 to 1, that it was said.
        score: f32,
    },
}

impl VoiceFact {
    /// Up to which capture time sound was heard with it, as far as it says.
    pub fn heard_us(self) -> Option<u64> {
        match self {
            Self::SpeechStarted { at_us, voiced_us, .. } => Some(at_us.saturating_add(voiced_us)),
            Self::Paused { at_us, silence_us, .. } | Self::Silence { at_us, silence_us, .. } => {
                Some(at_us.saturating_add(silence_us))
            }
            Self::Resumed { at_us, .. } | Self::Ended { at_us, .. } => Some(at_us),
            Self::Echo { .. } | Self::WakeHeard { .. } => None,
        }
    }
}

/// Whether the utterance is meant for the assistant, as far as is known before its transcript. In ascending order: if
/// not everything can be decoded, the lowest is left out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Addressing {
    /// It begins without the wake phrase that it would need.
    Overheard,
    /// Not known yet.
    Unsure,
    /// It is meant for the assistant.
    Addressed,
}

/// Why a transcript was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TranscriptKind {
    /// While the wearer still speaks; may be dropped when no worker is free.
    Partial,
    /// At the first sign of a pause, which may be the end.
    Speculative,
    /// The turn has ended.
    Final,
    /// Once more, by the second model if there is one, because the first text is no clear command or contains free
    /// text.
    SecondPass,
    /// Once more by the first model, because the second did not resolve it.
    ThirdPass,
}

/// How well a text matches a command, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommandMatch {
    /// No command.
    None,
    /// The beginning of a command that has to go on: "search my notes for".
    Beginning,
    /// A command if some of its words were misheard.
    Misheard,
    /// A command without an argument, which can be asked for.
    Incomplete,
    /// A command, partly free text, which could be anything.
    FreeText,
    /// A complete command, to which more may be added: "set a timer for ten minutes" may go on with its name.
    Exact,
    /// A complete command without an open slot: no sentence of the tools goes on from here.
    Closed,
}

/// Transcript of one utterance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The decoded utterance.
    pub utterance: u32,
    /// The core's own number of the request, to recognise stale answers.
    pub revision: u16,
    /// Why it was requested.
    pub kind: TranscriptKind,
    /// The text; empty when nothing was said.
    pub text: String,
    /// Mean probability of the tokens, 0 to 1.
    pub confidence: f32,
    /// Probability of the last word, 0 to 1.
    #[serde(default = "certain")]
    pub last_word: f32,
    /// Probability that the speech breaks off behind the last word, as the recogniser writes it; 0 to 1.
    #[serde(default)]
    pub breaks_off: f32,
    /// Whether it is in another language than English, as far as is known: nothing is known of the form of its sentences.
    #[serde(default)]
    pub foreign: bool,
}

/// What older recordings do not say.
fn certain() -> f32 {
    1.0
}

/// An utterance in English.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Translation {
    /// Its words; empty if there were none.
    pub text: String,
    /// The English name of the language that was heard; `None`: it was English.
    pub from: Option<String>,
}
