//! Short commands that the core itself understands. They count only as a whole utterance: "stop" ends the answer, "stop
//! the kitchen timer" is a request.

mod translate;
mod words;

use alloc::string::String;

use crate::vocab::{accents::push_folded, formulas};
pub(crate) use translate::Translate;
use words::Words;

/// Commands of a whole utterance to the core itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// End the current activity.
    Cancel,
    /// Repeat the last answer.
    Repeat,
    /// Switch the microphone off.
    Mute,
    /// Switch it on again, which no word does.
    Unmute,
    /// Translate what people say, or no longer.
    Translate(Translate),
}

/// Most words of such an utterance.
const BACKCHANNEL_WORDS_MAX: usize = 4;
/// Sounds of agreement or thought that are not meant as words.
const FILLERS: &[&str] = &["uh", "um", "er", "ah", "oh", "hm", "hmm", "mm", "mhm", "mmhmm", "huh", "you", "aha"];

/// The command that `text` as a whole is, ignoring politeness.
pub(crate) fn command(text: &str) -> Option<Command> {
    let said = folded(text);
    let is = |list: fn(&Words) -> &'static [&'static str]| is_any(&said, list);
    if words::ALL.iter().any(|words| cancels(&said, words)) {
        Some(Command::Cancel)
    } else if is(|words| words.repeat) {
        Some(Command::Repeat)
    } else if is(|words| words.mute) {
        Some(Command::Mute)
    } else if is(|words| words.unmute) {
        Some(Command::Unmute)
    } else {
        let wanted = |words: &Words| translate::translate(polite(&said, words));
        words::ALL.iter().find_map(wanted).map(Command::Translate)
    }
}

/// Whether all that is said are cancel phrases, with words without meaning around them: "OK, please stop", "stop, stop, please".
fn cancels(said: &str, words: &Words) -> bool {
    words.cancel.contains(&said) || words.cancel.contains(&polite(said, words)) || are_stops(said, words)
}

/// Whether `said` are cancel phrases one after the other, polite or not. Behind a lead-in only those of `stop` count.
fn are_stops(said: &str, words: &Words) -> bool {
    let (mut rest, mut is_led_in, mut is_over) = (said, false, false);
    while !rest.is_empty() {
        let phrases = if is_led_in { words.stop } else { words.cancel };
        if let Some(left) = behind_one_of(rest, phrases) {
            (rest, is_over) = (left, true);
        } else if let Some(left) = behind_one_of(rest, words.behind).filter(|_| is_over) {
            rest = left;
        } else if let Some(left) = behind_one_of(rest, words.before) {
            (rest, is_over) = (left, false);
        } else if let Some(left) = behind_one_of(rest, words.lead_ins) {
            (rest, is_led_in, is_over) = (left, true, false);
        } else {
            return false;
        }
    }
    is_over
}

/// What is left of `said` behind the longest of these phrases that it begins with.
fn behind_one_of<'a>(said: &'a str, phrases: &[&str]) -> Option<&'a str> {
    let behind = |phrase: &&str| {
        let rest = said.strip_prefix(phrase)?;
        rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))
    };
    phrases.iter().filter_map(behind).min_by_key(|rest| rest.len())
}

/// Whether the words, or what politeness leaves of them, are in this list of any language.
fn is_any(said: &str, list: fn(&Words) -> &'static [&'static str]) -> bool {
    words::ALL.iter().any(|words| list(words).contains(&said) || list(words).contains(&polite(said, words)))
}

/// Whether the assistant itself understands `text` as a whole, so that no tool is called by it: a command, a yes or a no.
pub fn is_command(text: &str) -> bool {
    command(text).is_some() || yes_or_no(text).is_some()
}

/// Whether `text` as a whole ends the current activity.
pub fn is_cancel(text: &str) -> bool {
    command(text) == Some(Command::Cancel)
}

/// The cancel phrase at the end of `text`, which may begin with the assistant's own words.
pub(crate) fn cancel_at_end(text: &str) -> Option<&'static str> {
    let said = folded(text);
    let phrases = words::ALL.iter().flat_map(|words| words.cancel).copied();
    phrases
        .filter(|phrase| said.strip_suffix(phrase).is_some_and(|before| before.is_empty() || before.ends_with(' ')))
        .max_by_key(|phrase| phrase.len())
}

/// Whether `text` is a clear yes (`true`) or no (`false`).
pub(crate) fn yes_or_no(text: &str) -> Option<bool> {
    let said = folded(text);
    if is_any(&said, |words| words.yes) {
        Some(true)
    } else if is_any(&said, |words| words.no) || words::ALL.iter().any(|words| cancels(&said, words)) {
        Some(false)
    } else {
        None
    }
}

/// Whether `text` as a whole is a greeting, a farewell or thanks.
pub(crate) fn is_formula(text: &str) -> bool {
    let said = folded(text);
    let mut lists = formulas::ALL.iter().flat_map(|of| [of.greetings, of.farewells, of.thanks]);
    lists.any(|list| list.contains(&said.as_str()))
}

/// Whether `text` contains words other than fillers. Recognisers produce "you" from silence.
pub(crate) fn has_words(text: &str) -> bool {
    !is_hummed(text) && plain(text).split(' ').any(|word| !word.is_empty() && !FILLERS.contains(&word))
}

/// Whether `text`, said over the assistant, only tells that the wearer listens.
pub fn is_backchannel(text: &str) -> bool {
    let said = folded(text);
    let meant = |word: &&str| !word.is_empty() && !FILLERS.contains(word);
    let words = said.split(' ').filter(meant);
    let of = |language: &Words| words.clone().all(|word| language.backchannel.contains(&word));
    let all = words::ALL.iter().any(of);
    let again = words::ALL.iter().any(|language| language.repeat.contains(&said.as_str()));
    let agrees = is_hummed(text) || (all && words.count() <= BACKCHANNEL_WORDS_MAX);
    agrees && !text.trim_end().ends_with('?') && !again
}

/// Whether recognisers write so what somebody hums: "MMHMM", or "M-H-M".
fn is_hummed(text: &str) -> bool {
    let letters = || text.chars().filter(|letter| letter.is_alphanumeric()).map(|letter| letter.to_ascii_lowercase());
    letters().nth(1).is_some()
        && letters().any(|letter| letter == 'm')
        && letters().all(|letter| matches!(letter, 'h' | 'm' | 'n'))
        && !text.contains('&')
}

/// `text` without what recognisers produce for noises: `[BLANK_AUDIO]`, "(music)", "*cough*". What is not closed, or a star with a
/// space behind it ("5 * 3"), is text.
pub(crate) fn without_noises(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut left = text;
    while let Some((before, opening, behind)) = at_noise(left) {
        kept.push_str(before);
        let closing = match opening {
            '[' => ']',
            '(' => ')',
            other => other,
        };
        let is_noise = opening != '*' || !behind.starts_with(char::is_whitespace);
        match behind.split_once(closing).filter(|_| is_noise) {
            Some((_, rest)) => left = rest,
            None => {
                kept.push(opening);
                left = behind;
            }
        }
    }
    kept.push_str(left);
    String::from(kept.trim())
}

/// The text before what may begin a noise, that character, and the text behind it.
fn at_noise(text: &str) -> Option<(&str, char, &str)> {
    let (before, at) = text.split_at(text.find(['[', '(', '*'])?);
    let mut letters = at.chars();
    let opening = letters.next()?;
    Some((before, opening, letters.as_str()))
}

/// Lower case, words only, one space between them.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\'' | '’' => plain.push('\''),
            _ if letter.is_alphanumeric() => plain.extend(letter.to_lowercase()),
            _ if !plain.is_empty() && !plain.ends_with(' ') => plain.push(' '),
            _ => {}
        }
    }
    String::from(plain.trim_end())
}

/// The same without accents.
fn folded(text: &str) -> String {
    let plain = plain(text);
    let mut folded = String::with_capacity(plain.len());
    plain.chars().for_each(|letter| push_folded(&mut folded, letter));
    folded
}

fn polite<'a>(said: &'a str, words: &Words) -> &'a str {
    let cut_front = |said: &'a str, word: &str| said.strip_prefix(word).and_then(|rest| rest.strip_prefix(' '));
    let cut_back = |said: &'a str, word: &str| said.strip_suffix(word).and_then(|rest| rest.strip_suffix(' '));
    let said = words.before.iter().fold(said, |said, word| cut_front(said, word).unwrap_or(said));
    words.behind.iter().find_map(|word| cut_back(said, word)).filter(|left| !left.is_empty()).unwrap_or(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_utterances_are_commands() {
        for (text, expected) in [
            ("Stop.", Some(Command::Cancel)),
            ("Stop, please!", Some(Command::Cancel)),
            ("OK, stop.", Some(Command::Cancel)),
            ("No, no, stop it now!", Some(Command::Cancel)),
            ("OK, stop. OK, stop.", Some(Command::Cancel)),
            ("Stop, stop, stop!", Some(Command::Cancel)),
            ("All right, that's enough.", Some(Command::Cancel)),
            ("Hey, stop talking, please", Some(Command::Cancel)),
            ("Nein, stopp!", Some(Command::Cancel)),
            ("No, cancel.", Some(Command::Cancel)),
            ("Okay, please stop it now, please.", Some(Command::Cancel)),
            ("Halt, halt!", Some(Command::Cancel)),
            ("Nein, bitte hör auf.", Some(Command::Cancel)),
            ("Non, arrête !", Some(Command::Cancel)),
            ("OK, cancel that", None),
            ("Please", None),
            ("Vale, para ya.", Some(Command::Cancel)),
            ("OK, arrête !", Some(Command::Cancel)),
            ("That's all right.", None),
            ("That's all, okay", None),
            ("Stop? No, wait.", None),
            ("Gut genug.", None),
            ("Assez bon.", None),
            ("OK, c'est bon.", None),
            ("Bueno, para", None),
            ("Non-stop", None),
            ("OK, cancel", None),
            ("OK, please", None),
            ("No", None),
            ("Stop stop listening", None),
            ("OK, stop the timer", None),
            ("Stopping", None),
            ("Never mind", Some(Command::Cancel)),
            ("please be quiet", Some(Command::Cancel)),
            ("That’s enough.", Some(Command::Cancel)),
            ("Repeat that, please.", Some(Command::Repeat)),
            ("Say that again", Some(Command::Repeat)),
            ("Stop listening.", Some(Command::Mute)),
            ("Mute yourself", Some(Command::Mute)),
            ("Unmute.", Some(Command::Unmute)),
            ("Turn the microphone on again, please.", Some(Command::Unmute)),
            ("Turn the microphone of the hall on", None),
            ("Stop the kitchen timer", None),
            ("Cancel my appointment", None),
            ("", None),
            ("please", None),
        ] {
            assert_eq!(command(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cancel_word_is_found_at_the_end_only() {
        assert_eq!(cancel_at_end("it is sunny today stop"), Some("stop"));
        assert_eq!(cancel_at_end("Never mind."), Some("never mind"));
        assert_eq!(cancel_at_end("the nonstop"), None);
        assert_eq!(cancel_at_end("stop the music"), None);
    }

    #[test]
    fn yes_and_no_must_be_clear() {
        for (text, expected) in [
            ("Yes.", Some(true)),
            ("Yeah, go ahead", None),
            ("Yes, please.", Some(true)),
            ("Go ahead.", Some(true)),
            ("Please do.", Some(true)),
            ("No.", Some(false)),
            ("No, don't!", Some(false)),
            ("Cancel", Some(false)),
            ("Yes I know Peter", None),
            ("", None),
        ] {
            assert_eq!(yes_or_no(text), expected, "{text}");
        }
    }

    #[test]
    fn a_listener_who_agrees_asks_for_nothing() {
        for (text, expected) in [
            ("Mhm.", true),
            ("M-H-M-H-M.", true),
            ("H&M", false),
            ("N", false),
            ("MMHMM...", true),
            ("Hm, the other one", false),
            ("Right.", true),
            ("Okay, I see.", true),
            ("Uh, yeah, great.", true),
            ("Oh, thank you.", true),
            ("", true),
            ("Really?", false),
            ("Right now.", false),
            ("Okay, and of Italy", false),
            ("I see it all good right fine", false),
            ("Stop.", false),
            ("No.", false),
        ] {
            assert_eq!(is_backchannel(text), expected, "{text}");
        }
    }

    #[test]
    fn noises_and_fillers_are_not_words() {
        assert_eq!(without_noises("[BLANK_AUDIO]"), "");
        assert_eq!(without_noises("(music) Hello *cough* there"), "Hello  there");
        assert_eq!(without_noises("What is 5 * 3 * 2?"), "What is 5 * 3 * 2?");
        assert_eq!(without_noises("Call mum (the old number"), "Call mum (the old number");
        assert_eq!(without_noises("Ten * and [laughs] more *"), "Ten * and  more *");
        for text in ["", "...", "Uh, um.", "you", "Hmm"] {
            assert!(!has_words(text), "{text}");
        }
        assert!(!has_words("M-H-M."));
        assert!(has_words("Uh, ten"));
    }

    /// Both halves of the table were written before the words.
    #[test]
    fn every_language_has_its_words() {
        let table = include_str!("../../../../../tests/data/intents/languages/words.tsv");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let mut missed = alloc::vec::Vec::new();
        let mut count = 0;
        for row in rows {
            let cells: alloc::vec::Vec<&str> = row.split('\t').collect();
            let &[language, said, expected] = &cells[..] else { panic!("three cells: {row}") };
            let got = match (command(said), yes_or_no(said)) {
                (Some(Command::Cancel), _) => "cancel",
                (Some(Command::Repeat), _) => "repeat",
                (Some(Command::Mute), _) => "mute",
                (Some(Command::Unmute), _) => "unmute",
                (Some(Command::Translate(_)), _) => "translate",
                (None, Some(true)) => "yes",
                (None, Some(false)) => "no",
                (None, None) => "-",
            };
            count += 1;
            if got != expected {
                missed.push((language, said, got));
            }
        }
        assert!(count > 80, "{count}");
        assert!(missed.is_empty(), "{missed:?}");
    }
}
