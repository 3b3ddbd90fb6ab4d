//! Short commands that the core itself understands. They count only as a whole utterance: "stop" ends the answer, "stop
//! the kitchen timer" is a request.

use alloc::string::String;

/// Commands of a whole utterance to the core itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// End the current activity.
    Cancel,
    /// Repeat the last answer.
    Repeat,
    /// Switch the microphone off.
    Mute,
}

const CANCEL: &[&str] = &[
    "stop",
    "cancel",
    "never mind",
    "nevermind",
    "be quiet",
    "quiet",
    "shut up",
    "enough",
    "that's enough",
    "stop it",
    "stop that",
    "stop talking",
    "cancel that",
    "forget it",
    "hush",
    "silence",
    "that's all",
];
const REPEAT: &[&str] = &[
    "repeat",
    "repeat that",
    "repeat it",
    "repeat please",
    "say that again",
    "say it again",
    "can you repeat that",
    "could you repeat that",
    "what did you say",
    "come again",
    "pardon",
    "pardon me",
    "i didn't hear that",
    "one more time",
    "again please",
];
const MUTE: &[&str] = &[
    "mute",
    "mute yourself",
    "mute the microphone",
    "mute the mic",
    "stop listening",
    "turn off the microphone",
    "turn the microphone off",
    "don't listen",
    "go to sleep",
];
const YES: &[&str] = &[
    "yes",
    "yeah",
    "yep",
    "yup",
    "sure",
    "ok",
    "okay",
    "yes please",
    "yes do it",
    "do it",
    "go ahead",
    "yes go ahead",
    "please do",
    "of course",
    "confirm",
    "approve",
    "approved",
    "allow",
    "allow it",
    "that's fine",
    "sure go ahead",
    "okay go ahead",
    "ok go ahead",
];
const NO: &[&str] = &[
    "no",
    "nope",
    "nah",
    "no thanks",
    "no thank you",
    "don't",
    "do not",
    "don't do it",
    "no don't",
    "deny",
    "refuse",
    "not now",
    "rather not",
    "better not",
    "absolutely not",
    "no way",
];
/// Words of a listener that ask for nothing: the speaker goes on.
const BACKCHANNEL: &[&str] = &[
    "yes",
    "yeah",
    "yep",
    "okay",
    "ok",
    "right",
    "sure",
    "alright",
    "really",
    "wow",
    "cool",
    "nice",
    "great",
    "good",
    "fine",
    "indeed",
    "exactly",
    "thanks",
    "uh-huh",
    "i",
    "see",
    "got",
    "it",
    "all",
    "oh",
    "thank",
    "interesting",
    "true",
];
/// Most words of such an utterance.
const BACKCHANNEL_WORDS_MAX: usize = 4;
/// Sounds of agreement or thought that are not meant as words.
const FILLERS: &[&str] = &["uh", "um", "er", "ah", "oh", "hm", "hmm", "mm", "mhm", "mmhmm", "huh", "you", "aha"];

/// The command that `text` as a whole is, ignoring politeness.
pub(crate) fn command(text: &str) -> Option<Command> {
    let said = plain(text);
    let said = polite(&said);
    if CANCEL.contains(&said) {
        Some(Command::Cancel)
    } else if REPEAT.contains(&said) {
        Some(Command::Repeat)
    } else if MUTE.contains(&said) {
        Some(Command::Mute)
    } else {
        None
    }
}

/// Whether the assistant itself understands `text` as a whole, so that no tool is called by it: a command, a yes or a no.
pub fn is_command(text: &str) -> bool {
    command(text).is_some() || yes_or_no(text).is_some()
}

/// The cancel phrase at the end of `text`, which may begin with the assistant's own words.
pub(crate) fn cancel_at_end(text: &str) -> Option<&'static str> {
    let said = plain(text);
    CANCEL
        .iter()
        .copied()
        .filter(|phrase| said.strip_suffix(phrase).is_some_and(|before| before.is_empty() || before.ends_with(' ')))
        .max_by_key(|phrase| phrase.len())
}

/// Whether `text` is a clear yes (`true`) or no (`false`).
pub(crate) fn yes_or_no(text: &str) -> Option<bool> {
    let said = plain(text);
    let (whole, said) = (said.as_str(), polite(&said));
    if YES.contains(&whole) || YES.contains(&said) {
        Some(true)
    } else if NO.contains(&said) || CANCEL.contains(&said) {
        Some(false)
    } else {
        None
    }
}

/// Whether `text` contains words other than fillers. Recognisers produce "you" from silence.
pub(crate) fn has_words(text: &str) -> bool {
    plain(text).split(' ').any(|word| !word.is_empty() && !FILLERS.contains(&word))
}

/// Whether `text`, said over the assistant, only tells that the wearer listens.
pub(crate) fn is_backchannel(text: &str) -> bool {
    let said = plain(text);
    let meant = |word: &&str| !word.is_empty() && !FILLERS.contains(word);
    let words = said.split(' ').filter(meant);
    let all = words.clone().all(|word| BACKCHANNEL.contains(&word));
    all && words.count() <= BACKCHANNEL_WORDS_MAX && !text.trim_end().ends_with('?') && !REPEAT.contains(&said.as_str())
}

/// `text` without what recognisers produce for noises: `[BLANK_AUDIO]`, "(music)", "*cough*".
pub(crate) fn without_noises(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut closing: Option<char> = None;
    for letter in text.chars() {
        match (closing, letter) {
            (Some(end), _) if letter == end => closing = None,
            (Some(_), _) => {}
            (None, '[') => closing = Some(']'),
            (None, '(') => closing = Some(')'),
            (None, '*') => closing = Some('*'),
            (None, _) => kept.push(letter),
        }
    }
    String::from(kept.trim())
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

fn polite(said: &str) -> &str {
    let said = said.strip_prefix("please ").unwrap_or(said);
    let said = said.strip_prefix("oh ").unwrap_or(said);
    said.strip_suffix(" please").or_else(|| said.strip_suffix(" now")).filter(|left| !left.is_empty()).unwrap_or(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_utterances_are_commands() {
        for (text, expected) in [
            ("Stop.", Some(Command::Cancel)),
            ("Stop, please!", Some(Command::Cancel)),
            ("Never mind", Some(Command::Cancel)),
            ("please be quiet", Some(Command::Cancel)),
            ("That’s enough.", Some(Command::Cancel)),
            ("Repeat that, please.", Some(Command::Repeat)),
            ("Say that again", Some(Command::Repeat)),
            ("Stop listening.", Some(Command::Mute)),
            ("Mute yourself", Some(Command::Mute)),
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
        for text in ["", "...", "Uh, um.", "you", "Hmm"] {
            assert!(!has_words(text), "{text}");
        }
        assert!(has_words("Uh, ten"));
    }
}
