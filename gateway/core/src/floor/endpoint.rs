//! The silence that ends an utterance: less if the text reads complete, more if it trails off.

use super::commands;
use crate::config::Config;

/// Minimum probability at which the end-of-turn model's verdict is accepted.
const SCORE_DONE: f32 = 0.5;
/// Below this the model is sure that more will come, whatever the text looks like: recognisers put a full stop after
/// everything.
const SCORE_GOING_ON: f32 = 0.2;

/// Words that do not end a finished sentence.
const TRAILING: &[&str] = &[
    "and", "or", "but", "to", "for", "the", "a", "an", "of", "at", "with", "from", "by", "my", "your", "our", "their",
    "than", "because", "if", "when", "into", "as", "uh", "um", "called", "named",
];
/// Requests that lack their object.
const UNFINISHED: &[&str] = &["remind me", "what is", "what's", "who is", "who's", "how about", "tell me"];

/// Facts about the utterance by which its pause is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    /// The text up to the pause, if available.
    pub(super) text: Option<&'a str>,
    /// Whether the text is no more than a wake phrase.
    pub(super) only_wake: bool,
    /// Whether it is a command with a missing argument.
    pub(super) partial: bool,
    /// Probability that the speaker is done.
    pub(super) score: Option<f32>,
}

/// The silence, in milliseconds, that ends an utterance with this evidence.
pub(super) fn silence_ms(config: &Config, evidence: Evidence<'_>) -> u32 {
    let Some(text) = evidence.text else {
        return config.silence_ms;
    };
    if evidence.only_wake || evidence.partial || trails_off(text) {
        return config.silence_incomplete_ms;
    }
    let done = match evidence.score {
        Some(score) if score >= SCORE_DONE => true,
        Some(score) if score < SCORE_GOING_ON => false,
        _ => text.trim_end().ends_with(['.', '!', '?']),
    };
    if done { config.silence_complete_ms } else { config.silence_ms }
}

/// Whether the text clearly lacks its end.
fn trails_off(text: &str) -> bool {
    let text = text.trim_end();
    if text.ends_with([',', '-', '…', ':', ';']) || text.ends_with("...") {
        return true;
    }
    let said = commands::plain(text);
    if UNFINISHED.contains(&said.as_str()) {
        return true;
    }
    let last = said.rsplit(' ').next().unwrap_or_default();
    // "What is it for?" ends in a preposition and is complete.
    !text.ends_with('?') && TRAILING.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, score: Option<f32>) -> u32 {
        silence_ms(&Config::default(), Evidence { text: Some(text), only_wake: false, partial: false, score })
    }

    #[test]
    fn a_pause_is_judged_by_text_and_score() {
        for (text, score, expected) in [
            ("What time is it?", None, 450),
            ("Set a timer for ten minutes.", None, 450),
            ("set a timer for ten minutes", None, 600),
            ("set a timer for ten minutes", Some(0.5), 450),
            ("Set a timer for ten minutes.", Some(0.1), 600),
            ("Set a timer for ten minutes.", Some(0.2), 450),
            ("set a timer for ten minutes", Some(0.49), 600),
            ("Set a timer for", None, 1_000),
            ("Set a timer for.", Some(0.9), 1_000),
            ("Remind me.", None, 1_000),
            ("Milk, eggs,", Some(0.9), 1_000),
            ("I was thinking...", None, 1_000),
            ("bread and", None, 1_000),
            ("What is it for?", None, 450),
            ("Take a note.", None, 450),
        ] {
            assert_eq!(judged(text, score), expected, "{text} {score:?}");
        }
    }

    #[test]
    fn without_text_the_plain_silence_counts() {
        let evidence = Evidence { text: None, only_wake: false, partial: false, score: Some(0.9) };
        assert_eq!(silence_ms(&Config::default(), evidence), 600);
    }

    #[test]
    fn a_wake_phrase_alone_is_waited_for() {
        let evidence = Evidence { text: Some("Hey Mentra."), only_wake: true, partial: false, score: Some(0.9) };
        assert_eq!(silence_ms(&Config::default(), evidence), 1_000);
    }

    #[test]
    fn a_command_that_lacks_something_is_waited_for() {
        let evidence = Evidence { text: Some("Set a timer."), only_wake: false, partial: true, score: Some(0.9) };
        assert_eq!(silence_ms(&Config::default(), evidence), 1_000);
    }
}
