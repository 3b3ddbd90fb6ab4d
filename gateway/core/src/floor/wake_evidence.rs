//! Wake evidence: whether an utterance has a wake phrase, in its text or in its sound.

use crate::{
    context::Context,
    output::{Output, WakeOutcome},
};

/// Whether an utterance has a wake phrase, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WakeEvidence {
    /// Whether a text of it had one.
    pub(super) in_text: bool,
    pub(super) in_sound: InSound,
}

/// Whether a wake phrase was heard in the sound of an utterance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InSound {
    /// None was.
    #[default]
    No,
    /// One was, in an utterance whose words are needed for another reason.
    AsWell,
    /// Its words are needed because one was, from this capture time on.
    From(u64),
}

impl WakeEvidence {
    /// Whether one was heard, or read.
    pub(super) fn is_likely(&self) -> bool {
        self.in_text || self.in_sound != InSound::No
    }

    /// Capture time from which on it is decoded.
    pub(super) fn decoded_from_us(&self) -> Option<u64> {
        match self.in_sound {
            InSound::From(us) => Some(us),
            InSound::No | InSound::AsWell => None,
        }
    }

    /// Tells whether the text has the phrase that was heard.
    pub(super) fn verify(&self, cx: &mut Context, is_there: bool) {
        if self.in_sound != InSound::No {
            cx.push(Output::Wake(if is_there { WakeOutcome::Verified } else { WakeOutcome::Vetoed }));
        }
    }
}
