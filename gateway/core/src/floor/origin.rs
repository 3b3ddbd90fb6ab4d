//! How an utterance began: the state at that moment, and why it may be meant for the assistant.

use super::{Activity, Event, Floor};
use crate::{
    context::Context,
    vocab::{Addressing, Pending},
};

/// Why an utterance without a wake phrase may be meant for the assistant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grounds {
    /// It is not.
    #[default]
    None,
    /// Everything is listened to.
    Always,
    /// An answer is being given or was just heard.
    FollowUp,
    /// The assistant has asked a question.
    Asked,
    /// The wearer called or pressed, and has not made a request yet.
    Called,
}

impl Grounds {
    /// Whether they are insufficient by themselves.
    pub(super) fn is_doubtful(self, cx: &Context, pending: Option<&Pending>) -> bool {
        if !cx.config.always_listening && !cx.app_listens() {
            return false;
        }
        match self {
            Self::Always | Self::FollowUp => true,
            // Anything may answer a model's question.
            Self::Asked => pending.is_some_and(|pending| !pending.calls.is_empty()),
            Self::None | Self::Called => false,
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
    /// The assistant was speaking when it began, or it began while the assistant was at work, which spoke before its end.
    pub(super) over_speech: bool,
    /// It began before the assistant was at work: only a wake or cancel word in it counts.
    pub(super) background: bool,
    /// The assistant spoke during it, on a device whose microphone picks up its own speaker.
    pub(super) echo: bool,
    /// Its beginning was not received: it is no request without a wake word, also where everything is listened to.
    pub(super) rest: bool,
}

impl Origin {
    /// Whether the utterance is meant for the assistant; `named`: it contained a wake phrase or interrupted the
    /// assistant.
    pub(super) fn meant(&self, cx: &Context, named: bool) -> Addressing {
        let certain = self.grounds != Grounds::None && !self.grounds.is_doubtful(cx, None);
        if named || certain { Addressing::Addressed } else { Addressing::Unsure }
    }

    /// Reports the utterance as lost: whether it was certainly addressed. Any other one may be talk among people.
    pub(super) fn lost(&self, named: bool) -> Event {
        Event::Lost { addressed: named || matches!(self.grounds, Grounds::Called | Grounds::Asked) }
    }
}

impl Floor {
    /// The origin of an utterance that begins to be heard now and was spoken then; `follows`: the previous one has no text yet.
    pub(super) fn origin_now(&self, cx: &Context, activity: &Activity, spoken_us: u64, follows: bool) -> Origin {
        let grounds = match self.grounds_now(cx.now_us()) {
            // It was said before the question, and is no answer to it.
            Grounds::Asked if self.is_asked_since(spoken_us) => Grounds::None,
            grounds => grounds,
        };
        // While the link was lost the wearer did not hear what is being said now.
        let is_replay = activity.speaking && spoken_us < self.resumed_us;
        Origin {
            grounds,
            during_turn: !is_replay && (activity.busy || follows),
            over_speech: !is_replay && activity.speaking,
            background: is_replay,
            echo: activity.speaking && !cx.echo_cancelled,
            rest: false,
        }
    }
}
