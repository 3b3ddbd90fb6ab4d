//! The silence that ends an utterance, by what is known of it: the words so far, whether they are a command, what the
//! assistant has asked, how the voice sounds, and how long this wearer pauses between words.
//!
//! A command without an open slot ("what time is it") has the shortest silence, words that lack their end ("remind me to")
//! and words that look like a beginning ("tomorrow at eight") the longest. An end that was too early is put right: see `agent::reopening`.

use super::{
    Activity, Event, Floor, commands,
    confidence::Confidence,
    origin::Grounds,
    pace::Pace,
    request_form,
    talk::Talk,
    unfinished::{breaks_off, is_beginning, is_dictating, is_left_open, may_be_unfinished_word, trails_off},
    utterance::{Open, Silence},
};
use crate::{config::Config, context::Context, limits::SILENCE_MS_MAX, timers::Timer, vocab::CommandMatch};

/// Longest time between two reports of a pause, while the sound comes in time.
const WINDOW_US_MAX: u64 = 40_000;

/// Minimum probability at which the end-of-turn model's verdict is accepted.
const SCORE_DONE: f32 = 0.5;
/// Below this the model is sure that more will come, whatever the text looks like: recognisers put a full stop after
/// everything.
const SCORE_GOING_ON: f32 = 0.2;

/// Confidence below which a short last word may be another one.
const LAST_WORD_SURE_MIN: f32 = 0.8;
/// Least probability that the words break off at which they are waited for.
const BREAKS_OFF_MIN: f32 = 0.25;

/// How much of a sentence the words so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Completeness {
    /// The end is missing, or the words look like a beginning, though they may be all: "tomorrow at eight".
    TrailsOff,
    /// Something is missing, though nothing sounds like it: a command without an argument, the rest of a number, what
    /// follows "because", the answer to a question behind a wake phrase. Or the words are probably others, or may break off.
    Incomplete,
    /// Nothing is known.
    Unknown,
    /// A whole sentence, or a wake phrase alone: the sooner it is over, the sooner the wearer learns that the ear is open.
    Sentence,
    /// Nothing can be added: a command without an open slot, the answer to a yes/no question, an "okay" or a cough over
    /// the assistant's speech.
    Closed,
}

/// Facts about the utterance by which its pause is judged.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence<'a> {
    /// The text up to the pause, without its wake phrase, if available.
    text: Option<&'a str>,
    /// Whether it is said among other people: what breaks off there is not waited for.
    overheard: bool,
    /// Whether the text is no more than a wake phrase.
    only_wake: bool,
    /// How well it matches a command, if known.
    matched: Option<CommandMatch>,
    /// Whether it may answer what the assistant has asked.
    asked: bool,
    /// Whether it is only more of the request before, which was answered: "and tomorrow".
    follows: bool,
    /// Whether the text is in another language than English.
    foreign: bool,
    /// Confidence of the recogniser in the text, and below which it is doubtful.
    confidence: Confidence,
    doubtful_below: f32,
    /// Whether the assistant speaks.
    over_speech: bool,
    /// Probability that the speaker is done.
    score: Option<f32>,
}

impl Floor {
    /// Decides whether the pause is the end.
    pub(crate) fn decide(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        // Without the sound that follows nothing is known of the pause.
        let open = self.open.as_ref().filter(|open| !open.voiced && !self.deaf)?;
        match self.talk {
            Talk::Held => return None,
            Talk::Released => return self.close(cx, activity),
            Talk::Free => {}
        }
        let silence = open.silence?;
        // Whoever speaks next begins an utterance of his own.
        if self.is_over_with_echo(cx, open, silence) {
            return self.close(cx, activity);
        }
        let text = open.speculative_text();
        let behind = text.and_then(|text| self.after_wake(open.wake, text));
        // People who talk to one another are not waited for: what is said to the assistant next needs an utterance of its own.
        let is_meant = behind.is_some() || open.origin.grounds != Grounds::None;
        let rest = behind.or(text);
        let evidence = Evidence {
            text: rest,
            overheard: !is_meant,
            only_wake: rest.is_some_and(str::is_empty) && text.is_some_and(|it| !it.is_empty()),
            matched: open.speculative.as_ref().and_then(|speculative| speculative.matched),
            doubtful_below: self.confidence.doubtful_below(),
            over_speech: activity.speaking,
            asked: activity.asked || open.origin.grounds == Grounds::Asked,
            follows: open.origin.grounds == Grounds::FollowUp && rest.is_some_and(request_form::is_more_of_it),
            foreign: open.speculative.as_ref().is_some_and(|speculative| speculative.foreign),
            confidence: open
                .speculative
                .as_ref()
                .filter(|_| is_meant)
                .map(|speculative| speculative.confidence)
                .unwrap_or_default(),
            score: silence.score,
        };
        let mut pace = self.pace.clone();
        if is_meant {
            pace.add(&open.pauses);
        }
        let enough_ms = silence_ms(&cx.config, &pace, evidence);
        let enough_us = u64::from(enough_ms) * 1_000;
        if silence.lasts_us(cx.now_us()) >= enough_us {
            if is_meant {
                self.confidence.heard(evidence.confidence.text);
            }
            return self.close(cx, activity);
        }
        let left_us = enough_us.saturating_sub(silence.silence_us);
        // It is long enough before the voice detector's next window.
        if left_us <= WINDOW_US_MAX {
            cx.arm_at(Timer::PauseOver, silence.known_us.saturating_add(left_us));
        } else {
            cx.disarm(Timer::PauseOver);
        }
        None
    }

    /// Whether glasses that hear themselves have heard no more in the open utterance, whose pause this is, than what the
    /// assistant said, which is over.
    fn is_over_with_echo(&self, cx: &Context, open: &Open, silence: Silence) -> bool {
        let is_echo = open.origin.echo && !cx.echo_cancelled;
        let is_others = open.origin.background || open.is_interrupting() || open.wake.is_likely();
        is_echo && !is_others && self.own_voice.covers(silence.began_us())
    }
}

/// The silence, in milliseconds, that ends an utterance with this evidence.
fn silence_ms(config: &Config, pace: &Pace, evidence: Evidence<'_>) -> u32 {
    let enough_ms = match evidence.text.map_or(Completeness::Unknown, |text| completeness(text, evidence)) {
        Completeness::TrailsOff => config.silence_trailing_ms,
        Completeness::Incomplete => config.silence_incomplete_ms,
        Completeness::Unknown => pace.at_least(config.silence_ms),
        Completeness::Sentence => pace.at_least(config.silence_complete_ms),
        Completeness::Closed => config.silence_command_ms,
    };
    enough_ms.min(SILENCE_MS_MAX)
}

fn completeness(text: &str, evidence: Evidence<'_>) -> Completeness {
    if evidence.only_wake {
        // While something is asked, the ear is open already; and a call by itself would put the question aside.
        return if evidence.asked { Completeness::Incomplete } else { Completeness::Sentence };
    }
    let sure_of_more = evidence.score.is_some_and(|score| score < SCORE_GOING_ON);
    let breaks_off = !evidence.overheard && breaks_off(text);
    let answers = evidence.asked && commands::yes_or_no(text).is_some();
    let listens = evidence.over_speech && commands::is_backchannel(text);
    let is_command = commands::command(text).is_some();
    if answers || listens || is_command || evidence.matched == Some(CommandMatch::Closed) {
        // "Yes... but not the last one."
        let more = sure_of_more || (breaks_off && !listens && !is_command);
        return if more { Completeness::Sentence } else { Completeness::Closed };
    }
    if is_left_open(text) {
        return Completeness::TrailsOff;
    }
    // "Good morning..." sounds as if more would come.
    if commands::is_formula(text) {
        return Completeness::Sentence;
    }
    let understood = matches!(evidence.matched, Some(CommandMatch::Exact | CommandMatch::FreeText));
    // What is understood is whole, whatever its form, and an answer, or more of a request, may be no more than a time or a fragment.
    let may_begin = !understood && !evidence.asked && !evidence.follows;
    let begins = evidence.matched == Some(CommandMatch::Beginning) || (!evidence.foreign && is_beginning(text));
    let lacks_end = (!evidence.foreign && trails_off(text)) || (may_begin && (begins || breaks_off));
    // A word alone is often misheard: "two" is written as "to".
    let is_single = text.split_whitespace().nth(1).is_none();
    if lacks_end && !is_single {
        return Completeness::TrailsOff;
    }
    let lacks = evidence.matched == Some(CommandMatch::Incomplete) || (lacks_end && may_begin);
    let more = is_doubtful(text, evidence) || evidence.confidence.breaks_off >= BREAKS_OFF_MIN;
    if lacks || (may_begin && !is_single && more) || (!understood && is_dictating(text)) {
        return Completeness::Incomplete;
    }
    match evidence.score {
        Some(score) if score >= SCORE_DONE => Completeness::Sentence,
        _ if sure_of_more || breaks_off => Completeness::Unknown,
        _ if text.trim_end().ends_with(['.', '!', '?']) => Completeness::Sentence,
        _ => Completeness::Unknown,
    }
}

/// Whether the words, or the last of them, may be others than what was said. Of other languages it is not known.
fn is_doubtful(text: &str, Evidence { confidence, doubtful_below, foreign, .. }: Evidence<'_>) -> bool {
    let is_last_word = confidence.last_word < LAST_WORD_SURE_MIN && may_be_unfinished_word(text);
    !foreign && (confidence.text < doubtful_below || is_last_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(evidence: Evidence<'_>) -> u32 {
        silence_ms(&Config::default(), &Pace::default(), evidence)
    }

    fn of(text: &str) -> Evidence<'_> {
        Evidence { text: Some(text), ..Evidence::default() }
    }

    #[test]
    fn a_pause_is_judged_by_text_and_score() {
        for (text, score, expected) in [
            ("Is it far?", None, 450),
            ("Set a timer for ten minutes.", None, 450),
            ("set a timer for ten minutes", None, 600),
            ("set a timer for ten minutes", Some(0.5), 450),
            ("Set a timer for ten minutes.", Some(0.1), 600),
            ("Set a timer for ten minutes.", Some(0.2), 450),
            ("set a timer for ten minutes", Some(0.49), 600),
            ("Set a timer for", None, 2_000),
            ("Set a timer for.", Some(0.9), 2_000),
            ("Remind me.", None, 2_000),
            ("Milk, eggs,", Some(0.9), 2_000),
            ("I was thinking...", None, 2_000),
            ("bread and", None, 2_000),
            ("Could you.", None, 2_000),
            ("What is it for?", None, 450),
            ("Tell me what time it is.", None, 450),
            ("The meeting is.", None, 2_000),
            ("Take a note.", None, 450),
            ("When I get home.", None, 2_000),
            ("When is the next train?", None, 450),
            ("My number is 5 5 5.", None, 1_600),
            ("Dial 0171.", None, 1_600),
            ("I was born in 1971.", None, 450),
            ("How much is 15% of?", None, 2_000),
            ("What is 20 percent of?", None, 2_000),
            ("What is it made of?", None, 450),
            ("Is it true that?", None, 2_000),
        ] {
            assert_eq!(judged(Evidence { score, ..of(text) }), expected, "{text} {score:?}");
        }
    }

    #[test]
    fn nothing_is_waited_for_where_nothing_can_be_added() {
        let closed = Some(CommandMatch::Closed);
        for (text, matched, asked, score, expected) in [
            ("What time is it?", closed, false, None, 200),
            ("What time is it?", closed, false, Some(0.1), 450),
            ("What time is it?", Some(CommandMatch::Exact), false, None, 450),
            ("Stop.", None, false, None, 200),
            ("Repeat that, please.", None, false, None, 200),
            ("Yes.", None, true, None, 200),
            ("No, thanks.", None, true, None, 200),
            ("Yes.", None, false, None, 450),
            ("Yes, but", None, true, None, 2_000),
        ] {
            assert_eq!(
                judged(Evidence { matched, asked, score, ..of(text) }),
                expected,
                "{text} {matched:?} {score:?}"
            );
        }
    }

    #[test]
    fn what_only_tells_that_the_wearer_listens_is_soon_over() {
        for (text, over_speech, expected) in [
            ("Okay.", true, 200),
            ("Mhm", true, 200),
            ("", true, 200),
            ("Okay.", false, 450),
            ("Okay, and", true, 2_000),
        ] {
            assert_eq!(judged(Evidence { over_speech, ..of(text) }), expected, "{text} {over_speech}");
        }
    }

    #[test]
    fn without_text_the_plain_silence_counts() {
        assert_eq!(judged(Evidence { score: Some(0.9), ..Evidence::default() }), 600);
    }

    #[test]
    fn a_wake_phrase_alone_is_over_as_soon_as_a_sentence() {
        assert_eq!(judged(Evidence { only_wake: true, score: Some(0.1), ..of("") }), 450);
        assert_eq!(judged(Evidence { only_wake: true, asked: true, ..of("") }), 1_600, "an answer may follow");
    }

    #[test]
    fn a_command_that_lacks_something_is_waited_for() {
        let matched = Some(CommandMatch::Incomplete);
        assert_eq!(judged(Evidence { matched, score: Some(0.9), ..of("Set a timer.") }), 1_600);
    }

    #[test]
    fn words_that_may_be_others_are_waited_for_unless_they_are_understood() {
        let certain = Confidence::default();
        let (unsure, last_word) = (Confidence { text: 0.5, ..certain }, Confidence { last_word: 0.5, ..certain });
        let (breaks_off, is_whole) =
            (Confidence { breaks_off: 0.25, ..certain }, Confidence { breaks_off: 0.24, ..certain });
        for (text, matched, asked, confidence, expected) in [
            ("Center Tyler Ford.", None, false, certain, 450),
            ("Center Tyler Ford.", None, false, unsure, 1_600),
            ("Center Tyler Ford.", None, false, last_word, 450),
            ("Where is that?", None, false, certain, 450),
            ("Where is that?", None, false, last_word, 1_600),
            ("Where is that?", None, true, last_word, 450),
            ("Open the kitchen window.", None, false, breaks_off, 1_600),
            ("Open the kitchen window.", None, false, is_whole, 450),
            ("Tomorrow at eight.", None, true, breaks_off, 450),
            ("What time is it?", Some(CommandMatch::Closed), false, breaks_off, 200),
            ("Where is that?", Some(CommandMatch::Exact), false, unsure, 450),
            ("What time is it?", Some(CommandMatch::Closed), false, unsure, 200),
            ("Two.", None, false, unsure, 450),
            ("Thank you.", None, false, breaks_off, 450),
        ] {
            let evidence = Evidence { matched, asked, confidence, doubtful_below: 0.55, ..of(text) };
            assert_eq!(judged(evidence), expected, "{text} {matched:?} {asked} {confidence:?}");
        }
        for (text, matched, asked, overheard, expected) in [
            ("We saw them yesterday...", None, false, false, 2_000),
            ("What did they...?", None, false, false, 2_000),
            ("We saw them yesterday...", None, false, true, 450),
            ("In the blue one...", None, true, false, 600),
            ("Paris...", None, false, false, 1_600),
            ("Good morning...", None, false, false, 450),
            ("Guten Morgen...", None, false, false, 450),
            ("Good morning, and...", None, false, false, 2_000),
            ("Good morning,", None, false, false, 2_000),
            ("Hello...", None, false, false, 450),
            ("Muchas gracias...", None, false, false, 450),
            ("Set a timer for ten minutes...", Some(CommandMatch::Exact), false, false, 600),
            ("Brightness forty percent...", Some(CommandMatch::Closed), false, false, 450),
            ("Yes...", None, true, false, 450),
            ("Stop...", None, false, false, 200),
        ] {
            let evidence = Evidence { matched, asked, overheard, ..of(text) };
            assert_eq!(judged(evidence), expected, "{text} {matched:?} {asked} {overheard}");
        }
        for (confidence, expected) in [(unsure, 450), (breaks_off, 1_600)] {
            let evidence = Evidence { foreign: true, confidence, doubtful_below: 0.55, ..of("Wo ist das?") };
            assert_eq!(judged(evidence), expected, "{confidence:?}");
        }
    }

    #[test]
    fn a_command_that_has_to_go_on_is_waited_for_unless_it_is_an_answer() {
        let matched = Some(CommandMatch::Beginning);
        assert_eq!(judged(Evidence { matched, score: Some(0.9), ..of("Find my note.") }), 2_000);
        assert_eq!(judged(Evidence { matched, asked: true, ..of("Tomorrow at eight.") }), 450);
    }

    #[test]
    fn the_form_of_a_beginning_counts_only_where_nothing_else_is_known() {
        let free_text = Some(CommandMatch::FreeText);
        for (text, matched, asked, expected) in [
            ("Put the bins.", None, false, 2_000),
            ("Put the bins.", None, true, 450),
            ("Ask Tom whether he.", Some(CommandMatch::None), false, 2_000),
            ("Ask Tom whether he.", free_text, false, 450),
            ("Remember that the gate.", free_text, false, 2_000),
            ("How many people?", Some(CommandMatch::Misheard), false, 2_000),
            ("How many people?", Some(CommandMatch::Exact), false, 450),
            ("Remind me to call my.", free_text, true, 2_000),
        ] {
            assert_eq!(judged(Evidence { matched, asked, ..of(text) }), expected, "{text} {matched:?} {asked}");
        }
    }

    #[test]
    fn more_of_the_request_before_is_as_short_as_it_likes() {
        let breaks_off = Confidence { breaks_off: 0.9, ..Confidence::default() };
        for (text, follows, expected) in [
            ("And tomorrow...", true, 600),
            ("And tomorrow...", false, 2_000),
            ("And in Berlin.", true, 450),
            ("And in Berlin.", false, 1_600),
            ("And in the...", true, 2_000),
        ] {
            assert_eq!(judged(Evidence { follows, confidence: breaks_off, ..of(text) }), expected, "{text} {follows}");
        }
    }

    #[test]
    fn a_word_alone_is_no_long_wait_and_as_an_answer_none() {
        let (beginning, incomplete) = (Some(CommandMatch::Beginning), Some(CommandMatch::Incomplete));
        for (text, matched, asked, expected) in [
            ("To.", None, true, 450),
            ("For", None, true, 600),
            ("At.", incomplete, true, 1_600),
            ("Convert.", beginning, true, 450),
            ("To.", Some(CommandMatch::FreeText), false, 450),
            ("Two,", None, true, 2_000),
            ("Because.", None, false, 1_600),
            ("Please.", None, false, 1_600),
            ("Put.", None, false, 1_600),
            ("Convert", beginning, false, 1_600),
            ("Timer.", incomplete, false, 1_600),
            ("Berlin.", None, false, 450),
            ("Remind me to", None, false, 2_000),
            ("Remind me to", None, true, 2_000),
        ] {
            assert_eq!(judged(Evidence { matched, asked, ..of(text) }), expected, "{text} {matched:?} {asked}");
        }
    }

    #[test]
    fn of_other_languages_only_what_is_written_behind_the_words_counts() {
        for (text, expected) in [
            ("In Ordnung.", 450),
            ("On y va.", 450),
            ("Is nog ver", 600),
            ("Ich will", 600),
            ("Milch, Eier,", 2_000),
            ("Ich dachte...", 2_000),
            ("Die Nummer ist 5 5 5.", 1_600),
        ] {
            assert_eq!(judged(Evidence { foreign: true, ..of(text) }), expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_waited_for_beyond_the_longest_silence() {
        let config = Config {
            silence_ms: 3_000,
            silence_complete_ms: 3_000,
            silence_command_ms: 3_000,
            silence_incomplete_ms: 5_000,
            silence_trailing_ms: 5_000,
            ..Config::default()
        };
        for (text, matched) in [
            (None, None),
            (Some("What time is it?"), Some(CommandMatch::Closed)),
            (Some("Is it far?"), None),
            (Some("set a timer for ten minutes"), None),
            (Some("Set a timer."), Some(CommandMatch::Incomplete)),
            (Some("Remind me to"), None),
        ] {
            let evidence = Evidence { text, matched, ..Evidence::default() };
            assert_eq!(silence_ms(&config, &Pace::default(), evidence), SILENCE_MS_MAX, "{text:?}");
        }
    }

    #[test]
    fn a_wearer_who_pauses_long_is_waited_for_unless_nothing_can_be_added() {
        let mut pace = Pace::default();
        (0..8).for_each(|_| pace.went_on(800));
        let judged = |evidence| silence_ms(&Config::default(), &pace, evidence);
        assert_eq!(judged(of("Is it far?")), 900);
        assert_eq!(judged(Evidence::default()), 900);
        assert_eq!(judged(Evidence { matched: Some(CommandMatch::Closed), ..of("What time is it?") }), 200);
    }
}
