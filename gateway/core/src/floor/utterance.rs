//! One utterance: from the first voiced frame to its text.

use alloc::string::String;

use super::{
    Event,
    addressing::{self, Grounds},
    caption::Caption,
    second_pass::SecondPass,
};
use crate::{
    context::Context,
    output::{Output, WakeOutcome},
    vocab::{CommandMatch, Meant},
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

/// An utterance that the wearer has not ended yet.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) id: u32,
    /// When the core was informed of it, monotonic.
    pub(super) started_us: u64,
    /// Capture time of its first voiced sample.
    pub(super) began_us: u64,
    pub(super) origin: Origin,
    /// Number of the last decode request.
    pub(super) revision: u16,
    /// Number of captions sent for it.
    pub(super) captions: u16,
    pub(super) caption: Caption,
    /// The newest partial that was accepted.
    pub(super) partial_revision: u16,
    /// The oldest partial that is awaited, and when it was requested.
    pub(super) partial_asked: Option<(u16, u64)>,
    /// How long the last one took, in microseconds.
    pub(super) partial_us: u64,
    /// Partials in a row without words.
    pub(super) partials_wordless: u8,
    /// Whether the wearer is speaking at this moment.
    pub(super) voiced: bool,
    /// Capture time of the last voiced sample.
    pub(super) last_voice_us: u64,
    pub(super) speculative: Option<Speculative>,
    /// The pause so far and when it was reported.
    pub(super) silence: Option<Silence>,
    /// Whether it made the assistant stop speaking.
    pub(super) interrupted: Interruption,
    pub(super) named: Named,
    /// Whether it was recognised to begin without one.
    pub(super) unaddressed: bool,
}

/// Whether an utterance has a wake phrase, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
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

impl Named {
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

/// The state when an utterance began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// Why it may be meant for the assistant, as far as was known then.
    pub(super) grounds: Grounds,
    /// The assistant was at work, or an earlier utterance had no transcript yet.
    pub(super) during_turn: bool,
    /// The assistant was speaking when it began.
    pub(super) over_speech: bool,
    /// It began before the assistant was at work: only a wake or cancel word in it counts.
    pub(super) background: bool,
    /// The assistant spoke during it, on a device whose microphone picks up its own speaker.
    pub(super) echo: bool,
    /// Its beginning was not received: it is no request without a wake word, also where everything is listened to.
    pub(super) rest: bool,
}

/// A speculative decode, begun in case the pause is the end.
#[derive(Clone, Debug)]
pub(super) struct Speculative {
    pub(super) revision: u16,
    pub(super) text: Option<String>,
    /// Whether it is in another language than English.
    pub(super) foreign: bool,
    /// How well the text matches a command, if requested.
    pub(super) matched: Option<CommandMatch>,
    /// Present while the text is not certain.
    pub(super) second_pass: Option<SecondPass>,
}

/// A pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) silence_us: u64,
    pub(super) known_us: u64,
    pub(super) score: Option<f32>,
}

/// An utterance that has ended and waits for its text.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub(super) id: u32,
    pub(super) started_us: u64,
    pub(super) began_us: u64,
    pub(super) origin: Origin,
    pub(super) interrupted: Interruption,
    pub(super) named: Named,
    /// Number of captions sent for it.
    pub(super) captions: u16,
    pub(super) awaited: u16,
    pub(super) deadline_us: u64,
    pub(super) last_voice_us: u64,
    pub(super) decided_us: u64,
    /// The first text, while a second pass may improve it.
    pub(super) text: String,
    pub(super) matched: Option<CommandMatch>,
    pub(super) second_pass: Option<SecondPass>,
    /// Whether a final decode was requested already.
    pub(super) final_asked: bool,
}

impl Origin {
    /// Whether the utterance is meant for the assistant; `named`: it contained a wake phrase or interrupted the
    /// assistant.
    pub(super) fn meant(&self, cx: &Context, named: bool) -> Meant {
        let certain = self.grounds != Grounds::None && !addressing::is_doubtful(cx, self.grounds, None);
        if named || certain { Meant::Addressed } else { Meant::Unsure }
    }

    /// Reports the utterance as lost: whether it was certainly addressed. Any other one may be talk among people.
    pub(super) fn lost(&self, named: bool) -> Event {
        Event::Lost { addressed: named || matches!(self.grounds, Grounds::Called | Grounds::Asked) }
    }
}

impl Open {
    pub(super) fn new(id: u32, started_us: u64, at_us: u64, origin: Origin) -> Self {
        Self {
            id,
            started_us,
            began_us: at_us,
            origin,
            revision: 0,
            captions: 0,
            caption: Caption::default(),
            partial_revision: 0,
            partial_asked: None,
            partial_us: 0,
            partials_wordless: 0,
            voiced: true,
            last_voice_us: at_us,
            speculative: None,
            silence: None,
            interrupted: Interruption::None,
            named: Named::default(),
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
        if let Some(silence) = &mut self.silence {
            silence.known_us = silence.known_us.saturating_add(by_us);
        }
    }

    /// Number for the next request.
    pub(super) fn next_revision(&mut self) -> u16 {
        self.revision = self.revision.saturating_add(1);
        self.revision
    }

    /// Number for a partial that is requested now.
    pub(super) fn next_partial(&mut self, now_us: u64) -> u16 {
        let revision = self.next_revision();
        self.partial_asked.get_or_insert((revision, now_us));
        revision
    }

    /// A partial has come. One that was cancelled may never do.
    pub(super) fn note_partial(&mut self, revision: u16, now_us: u64) {
        self.partial_revision = revision;
        if let Some((asked, asked_us)) = self.partial_asked.take_if(|(asked, _)| *asked <= revision)
            && asked == revision
        {
            self.partial_us = now_us.saturating_sub(asked_us);
        }
    }

    /// Whether it is meant for the assistant, as far as is known.
    pub(super) fn meant(&self, cx: &Context) -> Meant {
        match self.origin.meant(cx, self.named.is_likely() || self.is_interrupting()) {
            Meant::Unsure if self.unaddressed && self.origin.grounds == Grounds::None => Meant::Overheard,
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
