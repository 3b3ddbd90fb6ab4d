//! What interrupts the assistant while it speaks. By default, on devices that cancel their own echo: a sustained voice,
//! or words; a voice that has no words, or is leftover echo, does not. On others: a wake or cancel phrase.

use alloc::{string::String, vec::Vec};

use super::{
    Activity, Floor, commands,
    utterance::{Interruption, Open},
    wake::Phrases,
};
use crate::{config::BargeIn, context::Context, timers::Timer, vocab::CommandMatch};

/// The longest voice of an "okay", in microseconds.
const BACKCHANNEL_US_MAX: u64 = 700_000;
/// Words of a doubtful text that may have been an "okay".
const DOUBTFUL_WORDS_MAX: usize = 3;
/// Words of somebody else in what begins with the assistant's own: one may be misheard.
const OTHERS_WORDS_MIN: usize = 2;
/// Words of the assistant's own behind a cancel phrase, with which it is no longer a request ("stop the timer").
const OWN_WORDS_MIN: usize = 3;
/// A voice over the assistant does not interrupt it if it has lasted this long, and so many partials of it had no words.
const WORDLESS_US_MIN: u64 = 600_000;
const WORDLESS_PARTIALS: u8 = 2;

impl Floor {
    /// The open utterance is known to be the assistant's own voice, or not to be it any more: then somebody speaks over it.
    pub(super) fn note_echo(&mut self, cx: &mut Context, activity: &Activity, present: bool) {
        let Some(open) = &mut self.open else { return };
        if present {
            open.origin.echo = true;
            cx.disarm(Timer::VoiceConfirmed);
            if open.interrupted == Interruption::Voice {
                open.interrupted = Interruption::None;
            }
            return;
        }
        open.has_others = true;
        if open.voiced && !open.origin.background {
            watch_voice(cx, activity, 0);
        }
    }

    /// Since when the assistant's own voice is heard in the open utterance, or in one whose text is awaited.
    pub(crate) fn echo_since_us(&self) -> Option<u64> {
        let open = self.open.iter().filter(|open| open.origin.echo).map(|open| open.started_us);
        let closed = self.closed.iter().filter(|closed| closed.origin.echo).map(|closed| closed.started_us);
        open.chain(closed).min()
    }

    /// A voice that has paused the assistant, or for which the turn waits, and that still has no words is none that
    /// interrupts or goes on with the request: a machine, or singing.
    pub(super) fn note_wordless(&mut self, cx: &Context, activity: &Activity, partial: &str) {
        let Some(open) = &mut self.open else { return };
        if commands::has_words(partial) {
            open.partials_wordless = 0;
            return;
        }
        open.partials_wordless = open.partials_wordless.saturating_add(1);
        let lasts = cx.now_us().saturating_sub(open.started_us) >= WORDLESS_US_MIN;
        let is_waited_for = match open.interrupted {
            Interruption::Voice => true,
            Interruption::None => activity.held,
            Interruption::Wordless | Interruption::Words => false,
        };
        if is_waited_for && open.partials_wordless >= WORDLESS_PARTIALS && lasts {
            open.interrupted = Interruption::Wordless;
            self.wordless = Some(open.id);
        }
    }
}

/// Voice over the assistant, of `voiced_us` so far, counts once it has lasted long enough.
pub(super) fn watch_voice(cx: &mut Context, activity: &Activity, voiced_us: u64) {
    if activity.speaking && by_voice(cx) {
        let voiced_ms = u32::try_from(voiced_us / 1_000).unwrap_or(u32::MAX);
        cx.arm(Timer::VoiceConfirmed, cx.config.barge_in_ms.saturating_sub(voiced_ms));
    }
}

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

/// Whether a transcript over the assistant's speech interrupts it. `doubtful_below`: the confidence below which a text is doubtful.
pub(super) fn by_words(
    cx: &Context,
    phrases: &Phrases,
    activity: &Activity,
    open: &Open,
    text: &str,
    doubtful_below: f32,
) -> bool {
    if cx.echo_cancelled && open.origin.echo {
        let may_be_anothers = by_voice(cx) && !open.origin.background && !open.echo.is_present();
        let is_anothers = may_be_anothers && goes_beyond_echo(activity, text);
        return phrases.find(text).is_some() || cancels_through_echo(activity, text) || is_anothers;
    }
    if by_voice(cx) && !open.origin.background {
        let pause = open.speculative.as_ref().filter(|pause| !open.voiced && pause.text.is_some());
        let doubtful = pause.is_some_and(|pause| pause.is_doubtful(doubtful_below));
        let matched = pause.and_then(|pause| pause.matched);
        // Half of a word is often taken for others: a partial counts only of a longer voice.
        let is_enough = pause.is_some() || open.voice_us(cx.now_us()) >= BACKCHANNEL_US_MAX;
        let interrupts = is_enough && commands::has_words(text) && !only_listens(text, matched, doubtful);
        return interrupts || commands::command(text).is_some() || phrases.strip(text).is_some();
    }
    if cx.echo_cancelled {
        return phrases.strip(text).is_some() || commands::cancel_at_end(text).is_some();
    }
    phrases.find(text).is_some() || cancels_through_echo(activity, text)
}

/// Whether `text`, said over the assistant, only tells that the wearer listens, or may be such an "okay" misheard: it is short,
/// `doubtful`, and neither a command nor a no nor a question.
pub(super) fn only_listens(text: &str, matched: Option<CommandMatch>, doubtful: bool) -> bool {
    let is_short = text.split_whitespace().nth(DOUBTFUL_WORDS_MAX).is_none();
    let is_understood = match matched {
        None | Some(CommandMatch::None | CommandMatch::Beginning | CommandMatch::Misheard) => false,
        Some(CommandMatch::Incomplete | CommandMatch::FreeText | CommandMatch::Exact | CommandMatch::Closed) => true,
    };
    let is_clear =
        || commands::command(text).is_some() || commands::yes_or_no(text) == Some(false) || text.ends_with('?');
    commands::is_backchannel(text) || (doubtful && is_short && !is_understood && !is_clear())
}

/// Whether `text`, which may contain the assistant's own words, ends in words of somebody else that are more than a
/// backchannel.
fn goes_beyond_echo(activity: &Activity, text: &str) -> bool {
    let plain = commands::plain(text);
    let is_others = |word: &&str| !word.is_empty() && !is_own(activity, word);
    let mut others: Vec<&str> = plain.rsplit(' ').take_while(is_others).collect();
    others.reverse();
    is_known(activity) && others.len() >= OTHERS_WORDS_MIN && !commands::is_backchannel(&others.join(" "))
}

/// What somebody else says in `text`, which may begin with the assistant's own words: what follows behind these, if half of it or
/// more is not among them, and it is a command or has some words. `None`: it is all the assistant's, as far as it was understood.
pub(super) fn others_words(activity: &Activity, text: &str) -> Option<String> {
    let is_own = |word: &&str| is_own(activity, word);
    let rest: Vec<&str> = text.split_whitespace().skip_while(is_own).collect();
    let own = rest.iter().filter(|word| is_own(word)).count();
    let others = rest.len() - own;
    let said = rest.join(" ");
    let is_enough = others >= OTHERS_WORDS_MIN || commands::command(&said).is_some();
    (is_known(activity) && own <= others && is_enough).then_some(said)
}

/// Whether nothing but the assistant's own words is in `text`.
pub(super) fn repeats(activity: &Activity, text: &str) -> bool {
    is_known(activity) && text.split_whitespace().all(|word| is_own(activity, word))
}

/// Whether the words of what is played are known: those of a recorded sound are not.
fn is_known(activity: &Activity) -> bool {
    !activity.spoken.is_empty()
}

/// Whether the assistant says this word of a transcript, which may be several ("7:45"), or none (a dash).
fn is_own(activity: &Activity, word: &str) -> bool {
    let plain = commands::plain(word);
    plain.split(' ').all(|part| part.is_empty() || activity.spoken.split(' ').any(|own| own == part))
}

/// Whether `text`, which may contain the assistant's own words, has a cancel phrase that the assistant does not speak itself: at
/// its end, or with nothing but some of the assistant's own words behind it.
pub(crate) fn cancels_through_echo(activity: &Activity, text: &str) -> bool {
    let (before, own) = split_own_end(activity, text);
    let goes_on = is_known(activity) && own >= OWN_WORDS_MIN;
    cancels_at_end(activity, text) || (goes_on && cancels_at_end(activity, before))
}

/// Whether `text`, which may contain the assistant's own words, ends in a cancel phrase that the assistant does not speak itself.
pub(super) fn cancels_at_end(activity: &Activity, text: &str) -> bool {
    let is_own_last = |phrase: &str| phrase.split(' ').next_back().is_some_and(|last| is_own(activity, last));
    commands::cancel_at_end(text).is_some_and(|phrase| !is_own_last(phrase))
}

/// `text` without the assistant's own words at its end, and how many these are.
fn split_own_end<'a>(activity: &Activity, text: &'a str) -> (&'a str, usize) {
    let (mut before, mut own) = (text.trim_end(), 0);
    while let Some(word) = before.split_whitespace().next_back().filter(|word| is_own(activity, word)) {
        before = before.strip_suffix(word).unwrap_or_default().trim_end();
        own += 1;
    }
    (before, own)
}
