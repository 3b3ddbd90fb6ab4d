//! One utterance: from the first voiced frame to its text.

use alloc::string::String;

use super::{
    caption::Caption,
    confidence::Confidence,
    echo::Echo,
    origin::{Grounds, Origin},
    pace::Pace,
    partials::Partials,
    second_pass::SecondPass,
    sound_clock::is_late,
    wake_evidence::WakeEvidence,
};
use crate::{
    context::Context,
    vocab::{Addressing, CommandMatch},
};

/// Whether an utterance stops what the assistant says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Interruption {
    /// No.
    #[default]
    None,
    /// Its voice does not count, for lack of words; words still do.
    Wordless,
    /// Its voice has paused it; whether its words stop it is not known yet.
    Voice,
    /// Its words have stopped it.
    Words,
}

/// How long a pause is taken to go on behind what was last heard of it. Beyond that the network may be gone: what the wearer
/// says meanwhile comes when it is back, and a device that sends no more is reported as silent by the listener.
const UNHEARD_US_MAX: u64 = 100_000;

/// An utterance that the wearer has not ended yet.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) id: u32,
    /// When the core was informed of it, monotonic.
    pub(super) started_us: u64,
    /// When it began to be spoken, monotonic; 0: not known.
    pub(super) spoken_us: u64,
    /// Whether it was heard much later than it was spoken.
    pub(super) late: bool,
    /// Capture time of its first voiced sample.
    pub(super) began_us: u64,
    pub(super) origin: Origin,
    /// Number of the last decode request.
    pub(super) revision: u16,
    /// Number of captions sent for it.
    pub(super) captions: u16,
    pub(super) caption: Caption,
    pub(super) partials: Partials,
    /// Partials in a row without words.
    pub(super) partials_wordless: u8,
    /// Whether the wearer is speaking at this moment.
    pub(super) voiced: bool,
    /// Capture time of the last voiced sample.
    pub(super) last_voice_us: u64,
    pub(super) speculative: Option<Speculative>,
    /// The pause so far and when it was reported.
    pub(super) silence: Option<Silence>,
    /// The pauses before it, after which the voice went on.
    pub(super) pauses: Pace,
    /// Whether it made the assistant stop speaking.
    pub(super) interrupted: Interruption,
    pub(super) wake: WakeEvidence,
    /// Whether its voice is that of the assistant, though the device claims to cancel its echo.
    pub(super) echo: Echo,
    /// Whether somebody else was heard in it since.
    pub(super) has_others: bool,
    /// Whether its words so far have shown that it does not begin with a wake phrase.
    pub(super) unaddressed: bool,
}

/// A speculative decode, begun in case the pause is the end.
#[derive(Clone, Debug)]
pub(super) struct Speculative {
    pub(super) revision: u16,
    /// Since when it is being made, monotonic; `None`: it waits for its turn.
    pub(super) begun_us: Option<u64>,
    pub(super) text: Option<String>,
    /// Confidence of the recogniser in it.
    pub(super) confidence: Confidence,
    /// Whether it is in another language than English.
    pub(super) foreign: bool,
    /// How well the text matches a command, if requested.
    pub(super) matched: Option<CommandMatch>,
    /// Present while the text is not certain.
    pub(super) second_pass: Option<SecondPass>,
}

/// The last pause that was reported within the utterance: its length, when that was known, and the end-of-turn score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) silence_us: u64,
    pub(super) known_us: u64,
    pub(super) score: Option<f32>,
}

impl Silence {
    /// When the voice before it ended, monotonic.
    pub(super) fn began_us(self) -> u64 {
        self.known_us.saturating_sub(self.silence_us)
    }

    /// Length of the pause now, in microseconds, as far as is known.
    pub(super) fn lasts_us(self, now_us: u64) -> u64 {
        self.silence_us.saturating_add(now_us.saturating_sub(self.known_us).min(UNHEARD_US_MAX))
    }
}

/// An utterance that has ended and waits for its text.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub(super) id: u32,
    pub(super) started_us: u64,
    pub(super) spoken_us: u64,
    pub(super) late: bool,
    pub(super) began_us: u64,
    pub(super) origin: Origin,
    pub(super) interrupted: Interruption,
    pub(super) wake: WakeEvidence,
    /// Number of captions sent for it.
    pub(super) captions: u16,
    pub(super) awaited: u16,
    /// Since when the awaited text is being made, monotonic; `None`: it waits for its turn.
    pub(super) begun_us: Option<u64>,
    pub(super) deadline_us: u64,
    pub(super) last_voice_us: u64,
    /// The silence behind that voice when the end was decided.
    pub(super) waited_us: u64,
    pub(super) decided_us: u64,
    /// The pauses within it.
    pub(super) pauses: Pace,
    /// The first text, while a second pass may improve it.
    pub(super) text: String,
    /// Whether its words may be others than what was said.
    pub(super) doubtful: bool,
    pub(super) matched: Option<CommandMatch>,
    pub(super) second_pass: Option<SecondPass>,
    /// Whether a final decode was requested already.
    pub(super) final_asked: bool,
}

impl Speculative {
    pub(super) fn new(revision: u16) -> Self {
        Self {
            revision,
            begun_us: None,
            text: None,
            confidence: Confidence::default(),
            foreign: false,
            matched: None,
            second_pass: None,
        }
    }

    /// Whether its text is doubtful: the recogniser's confidence is under this threshold. For languages other than
    /// English it is not known, and counts as no.
    pub(super) fn is_doubtful(&self, below: f32) -> bool {
        !self.foreign && self.confidence.text < below
    }
}

impl Open {
    /// `spoken_us`: when it began to be spoken, as far as is known; `at_us`: its capture time.
    pub(super) fn new(id: u32, (started_us, spoken_us): (u64, u64), at_us: u64, origin: Origin) -> Self {
        Self {
            id,
            started_us,
            spoken_us,
            late: is_late(spoken_us, started_us),
            began_us: at_us,
            origin,
            revision: 0,
            captions: 0,
            caption: Caption::default(),
            partials: Partials::new(started_us),
            partials_wordless: 0,
            voiced: true,
            last_voice_us: at_us,
            speculative: None,
            silence: None,
            pauses: Pace::default(),
            interrupted: Interruption::None,
            wake: WakeEvidence::default(),
            echo: Echo::default(),
            has_others: false,
            unaddressed: false,
        }
    }

    /// Whether it is meant to interrupt the assistant, as far as is known.
    pub(super) fn is_interrupting(&self) -> bool {
        self.interrupted >= Interruption::Voice
    }

    /// Moves its times on the gateway's clock on by this time.
    pub(super) fn delay(&mut self, by_us: u64) {
        self.started_us = self.started_us.saturating_add(by_us);
        self.partials.delay(by_us);
        if let Some(silence) = &mut self.silence {
            silence.known_us = silence.known_us.saturating_add(by_us);
        }
    }

    /// Capture time of the end of the sound so far, as far as is known: sound that came faster than it was spoken reaches
    /// further.
    pub(super) fn heard_us(&self, now_us: u64) -> u64 {
        self.began_us.saturating_add(now_us.saturating_sub(self.started_us))
    }

    /// Length of the voice so far, in microseconds.
    pub(super) fn voice_us(&self, now_us: u64) -> u64 {
        if self.voiced {
            now_us.saturating_sub(self.started_us)
        } else {
            self.last_voice_us.saturating_sub(self.began_us)
        }
    }

    /// Number for the next request.
    pub(super) fn next_revision(&mut self) -> u16 {
        self.revision = self.revision.saturating_add(1);
        self.revision
    }

    /// Whether it is meant for the assistant, as far as is known.
    pub(super) fn meant(&self, cx: &Context) -> Addressing {
        match self.origin.meant(cx, self.wake.is_likely() || self.is_interrupting()) {
            Addressing::Unsure if self.unaddressed && self.origin.grounds == Grounds::None => Addressing::Overheard,
            meant => meant,
        }
    }

    pub(super) fn speculative_text(&self) -> Option<&str> {
        self.speculative.as_ref()?.text.as_deref()
    }
}

impl Closed {
    /// Whether it was meant to interrupt the assistant, as far as is known.
    pub(super) fn is_interrupting(&self) -> bool {
        self.interrupted >= Interruption::Voice
    }
}
