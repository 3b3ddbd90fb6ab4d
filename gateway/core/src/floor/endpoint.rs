//! The silence that ends an utterance, by what is known of it: the words so far, whether they are a command, what the
//! assistant has asked, how the voice sounds, and how long this wearer pauses between words.
//!
//! A command without an open slot ("what time is it") has the shortest silence, words that plainly lack their end
//! ("remind me to") the longest. An end that was too early is put right: see `agent::reopening`.

use super::{Activity, Event, Floor, addressing::Grounds, commands, pace::Pace, talk::Talk};
use crate::{
    config::Config,
    context::{Context, Timer},
    vocab::CommandMatch,
};

/// How late facts about a pause may be before its end is decided without them.
const FACTS_LATE_MS: u32 = 400;

/// Minimum probability at which the end-of-turn model's verdict is accepted.
const SCORE_DONE: f32 = 0.5;
/// Below this the model is sure that more will come, whatever the text looks like: recognisers put a full stop after
/// everything.
const SCORE_GOING_ON: f32 = 0.2;

/// Words that end neither a sentence nor a question.
const NEVER_LAST: &[&str] = &["a", "an", "the", "my", "your", "our", "their", "every", "each", "and", "or", "i", "we"];
/// Words that do not end a finished sentence. A question may: "what is it for?"
const TRAILING: &[&str] = &[
    "his", "its", "but", "because", "if", "when", "while", "until", "unless", "whether", "than", "as", "to", "for",
    "of", "at", "in", "with", "from", "by", "into", "about", "between", "during", "without", "very", "uh", "um",
    "called", "named", "saying", "they", "plus", "minus", "times",
];
/// Words that end a sentence only after a word of [`ASKING`]: "tell me what time it is".
const LINKING: &[&str] =
    &["is", "are", "was", "were", "will", "would", "can", "could", "should", "does", "i'm", "it's"];
const ASKING: &[&str] = &["what", "where", "when", "who", "how", "which", "why", "whose", "if", "whether"];
/// Auxiliary verbs that a question does not end in: "when was", "what time does".
const AUXILIARY: &[&str] = &["was", "were", "does", "did", "should", "would", "could", "shall", "has"];
/// What lacks its object, as the last words.
const UNFINISHED: &[&str] = &[
    "remind me",
    "tell me",
    "show me",
    "give me",
    "send me",
    "ask me",
    "wake me",
    "what is",
    "what's",
    "who is",
    "who's",
    "how about",
    "what about",
    "let me",
    "i want",
    "i need",
    "i would like",
    "i'd like",
    "i wonder",
    "i think",
    "i mean",
    "i meant",
    "true that",
    "think that",
    "sure that",
    "know that",
    "hope that",
];
/// What lacks everything else, as all words.
const OPENINGS: &[&str] = &[
    "can you",
    "could you",
    "would you",
    "will you",
    "please",
    "do you",
    "did you",
    "are you",
    "have you",
    "is there",
    "are there",
    "are there any",
    "is it",
    "would it be",
    "was it",
    "what if",
];
/// Words that begin a clause before the main one.
const BEFORE_MAIN: &[&str] =
    &["if", "when", "while", "once", "because", "although", "whenever", "as", "since", "before", "after"];
/// Words after one of those that make a clause of it: "when is the next train" is a question.
const SUBJECTS: &[&str] = &[
    "i", "i'm", "you", "we", "they", "he", "she", "it", "it's", "my", "the", "our", "your", "there", "someone", "soon",
];
/// Words that begin a time or a place before what happens there: "tomorrow at eight".
const SETTINGS: &[&str] = &["at", "on", "in", "tomorrow", "tonight", "next", "every", "from", "until", "between"];
/// Words of a clause or a setting before the main one; a longer text has its main clause, too.
const CLAUSE_WORDS_MAX: usize = 7;
const SETTING_WORDS_MAX: usize = 4;
/// Nouns that announce what they name: "translate the word".
const ANNOUNCING: &[&str] = &["word", "words", "term", "name", "sentence", "phrase", "address", "title", "following"];
/// Words that tell of a number to be dictated.
const DICTATED: &[&str] = &["number", "code", "call", "dial", "pin", "phone", "password", "digits", "reference"];

/// How much of a sentence the words so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Completeness {
    /// The end is plainly missing.
    TrailsOff,
    /// Something is missing, though nothing sounds like it: a bare wake phrase, a command without an argument.
    Incomplete,
    /// Nothing is known.
    Unknown,
    /// A whole sentence.
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
    /// Whether the text is no more than a wake phrase.
    only_wake: bool,
    /// How well it matches a command, if known.
    matched: Option<CommandMatch>,
    /// Whether the assistant waits for a yes or a no.
    asked: bool,
    /// Whether the assistant speaks.
    over_speech: bool,
    /// Probability that the speaker is done.
    score: Option<f32>,
}

impl Floor {
    /// Decides whether the pause is the end.
    pub(super) fn decide(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        // Without the sound that follows nothing is known of the pause.
        let open = self.open.as_ref().filter(|open| !open.voiced && !self.deaf)?;
        match self.talk {
            Talk::Held => return None,
            Talk::Released => return self.close(cx, activity),
            Talk::Free => {}
        }
        let silence = open.silence?;
        let text = open.speculative_text();
        let rest = text.map(|text| self.after_wake(open.named, text).unwrap_or(text));
        let evidence = Evidence {
            text: rest,
            only_wake: rest.is_some_and(str::is_empty) && text.is_some_and(|it| !it.is_empty()),
            matched: open.speculative.as_ref().and_then(|speculative| speculative.matched),
            over_speech: activity.speaking,
            asked: activity.asked || open.origin.grounds == Grounds::Asked,
            score: silence.score,
        };
        let enough_ms = silence_ms(&cx.config, &self.pace, evidence);
        let since_us = cx.now_us().saturating_sub(silence.known_us);
        let silent_us = silence.silence_us.saturating_add(since_us);
        let enough_us = u64::from(enough_ms) * 1_000;
        if silent_us >= enough_us {
            return self.close(cx, activity);
        }
        let left_us = enough_us - silent_us + u64::from(FACTS_LATE_MS) * 1_000;
        cx.arm_at(Timer::EndOfTurn, cx.now_us().saturating_add(left_us));
        None
    }
}

/// The silence, in milliseconds, that ends an utterance with this evidence.
fn silence_ms(config: &Config, pace: &Pace, evidence: Evidence<'_>) -> u32 {
    let Some(text) = evidence.text else {
        return pace.at_least(config.silence_ms);
    };
    match completeness(text, evidence) {
        Completeness::TrailsOff => config.silence_trailing_ms,
        Completeness::Incomplete => config.silence_incomplete_ms,
        Completeness::Unknown => pace.at_least(config.silence_ms),
        Completeness::Sentence => pace.at_least(config.silence_complete_ms),
        Completeness::Closed => config.silence_command_ms,
    }
}

fn completeness(text: &str, evidence: Evidence<'_>) -> Completeness {
    if evidence.only_wake {
        return Completeness::Incomplete;
    }
    let sure_of_more = evidence.score.is_some_and(|score| score < SCORE_GOING_ON);
    let answers = evidence.asked && commands::yes_or_no(text).is_some();
    let listens = evidence.over_speech && commands::is_backchannel(text);
    if answers || listens || commands::command(text).is_some() || evidence.matched == Some(CommandMatch::Closed) {
        return if sure_of_more { Completeness::Sentence } else { Completeness::Closed };
    }
    if trails_off(text) {
        return Completeness::TrailsOff;
    }
    let understood = matches!(evidence.matched, Some(CommandMatch::Exact | CommandMatch::FreeText));
    let more = !understood && (is_dictating(text) || (!evidence.asked && may_go_on(text)));
    if evidence.matched == Some(CommandMatch::Incomplete) || more {
        return Completeness::Incomplete;
    }
    match evidence.score {
        Some(score) if score >= SCORE_DONE => Completeness::Sentence,
        _ if sure_of_more => Completeness::Unknown,
        _ if text.trim_end().ends_with(['.', '!', '?']) => Completeness::Sentence,
        _ => Completeness::Unknown,
    }
}

/// Whether the text clearly lacks its end.
fn trails_off(text: &str) -> bool {
    let text = text.trim_end();
    if text.ends_with([',', '-', '…', ':', ';']) || text.ends_with("...") {
        return true;
    }
    let is_question = text.ends_with('?');
    let said = commands::plain(text);
    let (first, last) = (said.split(' ').next().unwrap_or_default(), said.rsplit(' ').next().unwrap_or_default());
    let never = NEVER_LAST.contains(&last) || (ASKING.contains(&first) && AUXILIARY.contains(&last));
    if never || OPENINGS.contains(&said.as_str()) {
        return true;
    }
    let ends_in = |words: &&str| said.strip_suffix(words).is_some_and(|left| left.is_empty() || left.ends_with(' '));
    if is_question {
        return false;
    }
    let asks = || said.split(' ').any(|word| ASKING.contains(&word));
    UNFINISHED.iter().any(ends_in) || TRAILING.contains(&last) || (LINKING.contains(&last) && !asks())
}

/// Whether the words so far are often followed by more, though they may be all: a clause or a time before the main
/// clause, a noun that announces its text.
fn may_go_on(text: &str) -> bool {
    let said = commands::plain(text);
    if text.trim_end().ends_with('?') {
        return false;
    }
    let count = said.split(' ').count();
    let (first, last) = (said.split(' ').next().unwrap_or_default(), said.rsplit(' ').next().unwrap_or_default());
    let second = said.split(' ').nth(1).unwrap_or_default();
    let clause = BEFORE_MAIN.contains(&first) && SUBJECTS.contains(&second) && count <= CLAUSE_WORDS_MAX;
    let setting = SETTINGS.contains(&first) && count <= SETTING_WORDS_MAX;
    clause || setting || ANNOUNCING.contains(&last)
}

/// Whether the words end in digits, or single letters behind them, of a longer number.
fn is_dictating(text: &str) -> bool {
    let said = commands::plain(text);
    let is_digits = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit());
    let is_part = |word: &&str| is_digits(word) || word.chars().count() == 1;
    let parts = said.rsplit(' ').take_while(is_part);
    let (count, digits) = parts.fold((0, 0), |(all, digits), word| (all + 1, digits + usize::from(is_digits(word))));
    digits > 0 && (count > 1 || said.split(' ').any(|word| DICTATED.contains(&word)))
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
            ("When I get home.", None, 1_000),
            ("When is the next train?", None, 450),
            ("My number is 5 5 5.", None, 1_000),
            ("Dial 0171.", None, 1_000),
            ("I was born in 1971.", None, 450),
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
    fn a_wake_phrase_alone_is_waited_for() {
        assert_eq!(judged(Evidence { only_wake: true, score: Some(0.9), ..of("") }), 1_000);
    }

    #[test]
    fn a_command_that_lacks_something_is_waited_for() {
        let matched = Some(CommandMatch::Incomplete);
        assert_eq!(judged(Evidence { matched, score: Some(0.9), ..of("Set a timer.") }), 1_000);
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
