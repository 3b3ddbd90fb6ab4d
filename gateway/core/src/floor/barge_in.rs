//! What interrupts the assistant while it speaks: sustained voice or real words where the device
//! cancels its own echo, a wake or cancel word elsewhere.

use super::{Activity, commands, wake::Phrases};
use crate::{config::BargeIn, context::Context};

/// Whether voice alone interrupts. It does not if the speech after it would be ignored, or if others are expected to
/// speak.
pub(super) fn by_voice(cx: &Context) -> bool {
    let config = &cx.config;
    match config.barge_in {
        _ if cx.translating => false,
        BargeIn::Voice => true,
        BargeIn::Words => false,
        BargeIn::Auto => cx.echo_cancelled && (config.follow_up || config.always_listening),
    }
}

/// Whether a partial transcript over the assistant's speech interrupts it.
pub(super) fn by_words(cx: &Context, phrases: &Phrases, activity: &Activity, background: bool, text: &str) -> bool {
    if by_voice(cx) && !background {
        return commands::has_words(text) && !commands::is_backchannel(text);
    }
    if cx.echo_cancelled {
        return phrases.strip(text).is_some() || commands::cancel_at_end(text).is_some();
    }
    phrases.find(text).is_some() || cancels_through_echo(activity, text)
}

/// Whether `text`, which may contain the assistant's own words, ends in a cancel phrase that the assistant does not
/// speak itself.
pub(crate) fn cancels_through_echo(activity: &Activity, text: &str) -> bool {
    commands::cancel_at_end(text).is_some_and(|phrase| {
        !activity.spoken.split(' ').any(|word| phrase.split(' ').next_back().is_some_and(|last| last == word))
    })
}
