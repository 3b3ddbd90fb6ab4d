//! Captions that do not flicker: of what is shown while somebody speaks, only the last words change.
//!
//! A recogniser hears the whole utterance again for each caption, and may write earlier words in another way. A reader
//! cannot follow that. So a word stays once two decodes in a row agree on it (local agreement: Liu et al. 2020,
//! "Low-latency sequence-to-sequence speech recognition and translation by partial hypothesis selection"), or once
//! two more words stand behind it. The last caption is the text as it was recognised in the end.

use alloc::{string::String, vec::Vec};

use super::commands;

/// Words at the end of a caption that the next one may change.
const LOOSE_WORDS: usize = 2;
/// How many words the beginning of a decode may have more or fewer than what is shown.
const SHIFT_MAX: usize = 3;
/// Words before the place at which a decode continues what is shown, by which that place is found.
const ANCHOR_WORDS: usize = 3;

/// The caption of an utterance.
#[derive(Clone, Debug, Default)]
pub(super) struct Caption {
    shown: Vec<String>,
    /// The words of the latest decode.
    latest: Vec<String>,
}

impl Caption {
    /// Takes the text of a decode; returns the caption, whose words are those of the one before but for the last ones.
    pub(super) fn follow(&mut self, text: &str) -> String {
        let words: Vec<String> = text.split_whitespace().map(String::from).collect();
        let agreed = words.iter().zip(&self.latest).take_while(|(new, old)| is_same(new, old)).count();
        let agreed = self.shown.iter().zip(&words).take(agreed).take_while(|(shown, new)| is_same(shown, new)).count();
        let kept = agreed.max(self.shown.len().saturating_sub(LOOSE_WORDS));
        self.shown.truncate(kept);
        let from = continued(&self.shown, &words);
        self.shown.extend(words.iter().skip(from).cloned());
        self.latest = words;
        self.shown.join(" ")
    }
}

/// Index of the first word that continues `shown`.
fn continued(shown: &[String], words: &[String]) -> usize {
    let matches = |at: usize| {
        let before = shown.iter().rev().zip(words.get(..at).unwrap_or_default().iter().rev());
        before.take(ANCHOR_WORDS).filter(|(shown, word)| is_same(shown, word)).count()
    };
    let near = shown.len().saturating_sub(SHIFT_MAX)..=shown.len().saturating_add(SHIFT_MAX).min(words.len());
    // The nearest of equals.
    near.max_by_key(|at| (matches(*at), usize::MAX - at.abs_diff(shown.len()))).unwrap_or(words.len())
}

fn is_same(one: &str, other: &str) -> bool {
    one == other || commands::plain(one) == commands::plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captions(decodes: &[&str]) -> Vec<String> {
        let mut caption = Caption::default();
        decodes.iter().map(|text| caption.follow(text)).collect()
    }

    #[test]
    fn words_that_stand_do_not_change_again() {
        let decodes = ["Hey man", "Hey Mentra, set", "Hey Mentra set the time", "Hey, mantra, set a timer for ten"];
        let shown = ["Hey man", "Hey Mentra, set", "Hey Mentra, set the time", "Hey Mentra, set a timer for ten"];
        assert_eq!(captions(&decodes), shown);
    }

    #[test]
    fn what_comes_new_is_shown_at_once() {
        assert_eq!(captions(&["one", "one two three four five six"]), ["one", "one two three four five six"]);
    }

    #[test]
    fn a_word_more_or_less_at_the_beginning_repeats_nothing() {
        let shown =
            captions(&["set a timer for ten", "Hey set a timer for ten minutes", "a timer for ten minutes please"]);
        assert_eq!(shown[1], "set a timer for ten minutes");
        assert_eq!(shown[2], "set a timer for ten minutes please");
    }

    #[test]
    fn a_decode_that_hears_less_takes_back_two_words_at_most() {
        assert_eq!(captions(&["one two three four", "one"])[1], "one two");
        assert_eq!(captions(&["one two three four", ""])[1], "one two");
        assert_eq!(captions(&["", "one"]), ["", "one"]);
    }

    #[test]
    fn no_caption_changes_more_than_the_last_two_words_of_the_one_before() {
        // Any decodes at all.
        let pool = ["a", "b", "c", "d.", "A", "b,", "e"];
        let mut state = 7_u64;
        let mut next = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from((state >> 33) % most).expect("small")
        };
        for _ in 0..2_000 {
            let mut caption = Caption::default();
            let mut before: Vec<String> = Vec::new();
            for _ in 0..6 {
                let words: Vec<&str> = (0..next(9)).map(|_| pool[next(7)]).collect();
                let shown: Vec<String> = caption.follow(&words.join(" ")).split(' ').map(String::from).collect();
                let kept = before.len().saturating_sub(LOOSE_WORDS);
                assert_eq!(shown.get(..kept), before.get(..kept), "{before:?} {words:?}");
                before = if shown == [""] { Vec::new() } else { shown };
            }
        }
    }
}
