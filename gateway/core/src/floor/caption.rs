//! Captions that do not flicker: of what is shown while somebody speaks, only the last words change.
//!
//! A recogniser hears the utterance, or its end, again for each caption, and may write earlier words in another way. A reader
//! cannot follow that. So a word is shown at once, but stays once two decodes in a row agree on it (local agreement: Liu et al.
//! 2020, "Low-latency sequence-to-sequence speech recognition and translation by partial hypothesis selection"), or once
//! two more words stand behind it. The last caption is the text as it was recognised in the end.
//!
//! A decode of the end begins somewhere within the words that are shown, perhaps in the middle of one. Its place is where
//! most of its words are the same: by their texts alone, since their times are not known.

use alloc::{string::String, vec::Vec};
use core::cmp::Reverse;

use super::commands;
use crate::{context::Context, output::Output};

/// Words at the end of a caption that the next one may change.
const LOOSE_WORDS: usize = 2;
/// How many words the beginning of a decode may have more or fewer than what is shown: some, and some of a long text.
const SHIFT_MAX: usize = 3;
const SHIFT_PART: usize = 8;
/// Words before the place where a decode continues the caption; they locate that place.
const ANCHOR_WORDS: usize = 3;
/// Words that are shown before a decode of the end is looked for among them.
const LONG_WORDS: usize = 6;
/// Words at the end of what is shown among which a decode of the end begins: more than are said in its time.
const REACH_WORDS: usize = 32;
/// Words at the beginning of a decode of the end that may have been cut, and are others.
const CUT_WORDS: usize = 2;
/// Words that are at least the same where it begins, and half of those that stand beside one another.
const JOINED_WORDS_MIN: usize = 3;

/// The caption of an utterance.
#[derive(Clone, Debug, Default)]
pub(super) struct Caption {
    shown: Vec<String>,
    /// The words of the latest decode, and which word of what is shown the first of them is.
    latest: Vec<String>,
    latest_from: usize,
    /// What was told last, and whether it was addressed.
    told: (bool, String),
}

impl Caption {
    /// Takes the text of a decode of the whole utterance. None in it changes nothing.
    pub(super) fn follow(&mut self, text: &str) {
        let words = words_of(text);
        if !words.is_empty() {
            self.take(0, words);
        }
    }

    /// Takes the text of a decode of its end; `false`: its place was not found, and nothing changes.
    pub(super) fn follow_end(&mut self, text: &str) -> bool {
        let mut words = words_of(text);
        if words.is_empty() {
            return true;
        }
        let Some((from, cut)) = place(&self.shown, &words) else {
            return false;
        };
        words.drain(..cut);
        self.take(from, words);
        true
    }

    /// All words so far.
    pub(super) fn text(&self) -> String {
        self.shown.join(" ")
    }

    /// Whether it has enough words for a decode of the end to be found among them.
    pub(super) fn is_long(&self) -> bool {
        self.shown.len() >= LONG_WORDS
    }

    /// All words so far, if that is anything new.
    pub(super) fn take_change(&mut self, addressed: bool) -> Option<String> {
        let told = (addressed, self.text());
        if told == self.told || told.1.is_empty() {
            return None;
        }
        self.told.clone_from(&told);
        Some(told.1)
    }

    /// Takes the words of a decode, the first of which is the word `from` of what is shown, or stands for it. All words but the
    /// last ones stay.
    fn take(&mut self, from: usize, words: Vec<String>) {
        let both = from.max(self.latest_from);
        let known = rest(&self.shown, both).iter().zip(rest(&self.latest, both - self.latest_from));
        let agreed = known.zip(rest(&words, both - from));
        let agreed = agreed.take_while(|((shown, old), new)| is_same(new, old) && is_same(shown, new)).count();
        let agreed = if agreed > 0 { both + agreed } else { 0 };
        let kept = agreed.max(self.shown.len().saturating_sub(LOOSE_WORDS)).max(from);
        let is_loose = kept + LOOSE_WORDS > self.shown.len();
        self.shown.truncate(kept);
        let next = continued(rest(&self.shown, from), &words);
        let more = rest(&words, next);
        if let (true, Some(last), Some(first)) = (is_loose, self.shown.last_mut(), more.first()) {
            join(last, first);
        }
        self.shown.extend(more.iter().cloned());
        (self.latest, self.latest_from) = (words, from);
    }
}

/// A recogniser ends what it hears so far with a full stop. Where a small letter follows, the sentence goes on.
fn join(last: &mut String, first: &str) {
    let is_abbreviated = last.trim_end_matches('.').contains('.') || last.ends_with("..");
    if last.ends_with(['.', '!', '?']) && !is_abbreviated && first.starts_with(char::is_lowercase) {
        last.pop();
    }
}

/// The words of a decode. An ellipsis behind the last one says no more than that the sound was cut there.
fn words_of(text: &str) -> Vec<String> {
    let said = text.trim_end();
    let said = said.strip_suffix("...").or_else(|| said.strip_suffix('…')).unwrap_or(said);
    said.split_whitespace().map(String::from).collect()
}

fn rest(words: &[String], from: usize) -> &[String] {
    words.get(from..).unwrap_or_default()
}

/// Index of the first word that continues `shown`.
fn continued(shown: &[String], words: &[String]) -> usize {
    let matches = |at: usize| {
        let before = shown.iter().rev().zip(words.get(..at).unwrap_or_default().iter().rev());
        before.take(ANCHOR_WORDS).filter(|(shown, word)| is_same(shown, word)).count()
    };
    let shift = SHIFT_MAX + shown.len() / SHIFT_PART;
    let near = shown.len().saturating_sub(shift)..=shown.len().saturating_add(shift).min(words.len());
    // The nearest of equals.
    near.max_by_key(|at| (matches(*at), usize::MAX - at.abs_diff(shown.len()))).unwrap_or(words.len())
}

/// Where the words of a decode of the end begin within `shown`: the index there, and how many of them are left out.
fn place(shown: &[String], words: &[String]) -> Option<(usize, usize)> {
    let plain = |words: &[String]| words.iter().map(|word| commands::plain(word)).collect::<Vec<_>>();
    let first = shown.len().saturating_sub(REACH_WORDS);
    let (known, words) = (plain(rest(shown, first)), plain(words));
    let places = (0..=CUT_WORDS).flat_map(|cut| (0..known.len()).map(move |from| (from, cut)));
    let judged = places.filter_map(|(from, cut)| {
        let beside = rest(&known, from).iter().zip(rest(&words, cut));
        let count = beside.len();
        let same = beside.filter(|(known, word)| known == word).count();
        let is_place = same >= JOINED_WORDS_MIN && same * 2 >= count;
        // Of equals the one with the fewest others, and the most of its own words.
        is_place.then_some(((same, Reverse(count), Reverse(cut)), (first + from, cut)))
    });
    judged.max_by_key(|(rank, _)| *rank).map(|(_, place)| place)
}

fn is_same(one: &str, other: &str) -> bool {
    one == other || commands::plain(one) == commands::plain(other)
}

/// The last caption of an utterance, after this many earlier ones.
pub(super) fn last(cx: &mut Context, (utterance, captions): (u32, u16), addressed: bool, text: &str) {
    cx.push(Output::Caption {
        turn: None,
        utterance,
        revision: captions.saturating_add(1),
        last: true,
        addressed,
        text: String::from(text),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captions(decodes: &[&str]) -> Vec<String> {
        let mut caption = Caption::default();
        let mut shown = Vec::new();
        for text in decodes {
            caption.follow(text);
            shown.push(caption.text());
        }
        shown
    }

    /// What is shown after a whole decode and after each of these of the end; `None`: its place was not found.
    fn ends(whole: &str, decodes: &[&str]) -> Vec<Option<String>> {
        let mut caption = Caption::default();
        caption.follow(whole);
        decodes.iter().map(|text| caption.follow_end(text).then(|| caption.text())).collect()
    }

    #[test]
    fn words_that_stand_do_not_change_again() {
        let decodes = ["Hey man", "Hey Mentra, set", "Hey Mentra set the time", "Hey, mantra, set a timer for ten"];
        let shown = ["Hey man", "Hey Mentra, set", "Hey Mentra, set the time", "Hey Mentra, set a timer for ten"];
        assert_eq!(captions(&decodes), shown);
    }

    #[test]
    fn a_full_stop_behind_which_the_sentence_goes_on_is_taken_back() {
        for (decodes, shown) in [
            (["Remind me.", "remind me in half"], "Remind me in half"),
            (["What time?", "What time is it?"], "What time is it?"),
            (["It is late.", "It is late. Good night."], "It is late. Good night."),
            (["At 5 p.m.", "At 5 p.m. today"], "At 5 p.m. today"),
            (["I thought...", "I thought... so"], "I thought so"),
        ] {
            assert_eq!(captions(&decodes)[1], shown);
        }
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
        assert_eq!(captions(&["one two three four", ""])[1], "one two three four", "nothing is no other text");
        assert_eq!(captions(&["", "one"]), ["", "one"]);
    }

    #[test]
    fn the_end_goes_on_from_what_is_shown() {
        let whole = "The train to the coast leaves early in the morning, so we packed";
        let shown = ends(
            whole,
            &[
                "In the morning, so we packed our suitcase",
                "in the morning so we packed our suitcase and asked",
                "the morning, so we packed our suitcase and asked my older brother",
            ],
        );
        let mut text = String::from(whole);
        for (shown, more) in shown.into_iter().zip([" our suitcase", " and asked", " my older brother"]) {
            text.push_str(more);
            assert_eq!(shown, Some(text.clone()));
        }
    }

    #[test]
    fn words_that_were_cut_at_its_beginning_are_left_out() {
        let whole = "leaves early in the morning, so we packed";
        for cut in ["Lee, in the morning, so we packed our", "Ur Lee in the morning so we packed our"] {
            assert_eq!(
                ends(whole, &[cut]),
                [Some(String::from("leaves early in the morning, so we packed our"))],
                "{cut}"
            );
        }
    }

    #[test]
    fn the_end_may_have_other_words_among_the_same_ones() {
        let whole = "leaves early in the morning, so we packed";
        let other = "early in a morning so we pack our suitcase";
        assert_eq!(ends(whole, &[other]), [Some(String::from("leaves early in the morning, so we pack our suitcase"))]);
        // With one more, or one fewer.
        let more = "in the early morning so we packed our suitcase";
        assert_eq!(ends(whole, &[more]), [Some(alloc::format!("{whole} our suitcase"))]);
        let fewer = "in morning so we packed our suitcase";
        assert_eq!(ends(whole, &[fewer]), [Some(alloc::format!("{whole} our suitcase"))]);
    }

    #[test]
    fn an_end_without_a_place_changes_nothing() {
        let whole = "leaves early in the morning, so we packed";
        assert_eq!(ends(whole, &["Thank you for watching this video"]), [None]);
        assert_eq!(ends(whole, &["so we"]), [None], "too few words to be sure");
        assert_eq!(ends(whole, &[""]), [Some(String::from(whole))], "no words at all need no place");
    }

    #[test]
    fn after_an_end_the_whole_is_followed_again() {
        let mut caption = Caption::default();
        caption.follow("The train to the coast leaves early in the morning, so we packed");
        assert!(caption.follow_end("in the morning, so we packed our suitcase and"));
        caption.follow("A train to the coast leaves early in the morning, so we packed our suitcase and asked");
        assert_eq!(
            caption.text(),
            "The train to the coast leaves early in the morning, so we packed our suitcase and asked"
        );
    }

    #[test]
    fn only_what_is_new_is_told() {
        let mut caption = Caption::default();
        assert_eq!(caption.take_change(true), None, "no words");
        caption.follow("one two");
        assert_eq!(caption.take_change(false).as_deref(), Some("one two"));
        caption.follow("one two");
        assert_eq!(caption.take_change(false), None);
        assert_eq!(caption.take_change(true).as_deref(), Some("one two"), "it is addressed now");
        caption.follow("one two three");
        assert_eq!(caption.take_change(true).as_deref(), Some("one two three"));
    }

    #[test]
    fn no_caption_changes_more_than_the_last_two_words_of_the_one_before() {
        // Any decodes at all, of the whole and of the end.
        let pool = ["a", "b", "c", "d.", "A", "b,", "e"];
        let mut state = 7_u64;
        let mut next = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from((state >> 33) % most).expect("small")
        };
        let mut placed = 0;
        for _ in 0..4_000 {
            let mut caption = Caption::default();
            let mut before: Vec<String> = Vec::new();
            for _ in 0..8 {
                let words: Vec<&str> = (0..next(12)).map(|_| pool[next(7)]).collect();
                if next(2) == 0 {
                    caption.follow(&words.join(" "));
                } else if caption.follow_end(&words.join(" ")) {
                    placed += usize::from(!words.is_empty());
                }
                let shown = words_of(&caption.text());
                let kept = before.len().saturating_sub(LOOSE_WORDS);
                assert_eq!(shown.get(..kept), before.get(..kept), "{before:?} {words:?}");
                before = shown;
            }
        }
        assert!(placed > 100, "{placed} ends had a place");
    }

    #[test]
    fn of_speech_that_is_heard_piece_by_piece_nothing_is_lost_or_repeated() {
        // Every word once, decoded again and again from where the last ends began.
        let spoken: Vec<String> = (0..200).map(|word| alloc::format!("word{word}")).collect();
        let mut caption = Caption::default();
        let mut from = 0;
        for until in 1..=spoken.len() {
            if until - from > 16 {
                from = until - 8;
            }
            let text = spoken[from..until].join(" ");
            if from == 0 {
                caption.follow(&text);
            } else {
                assert!(caption.follow_end(&text), "{text}");
            }
            assert_eq!(caption.text(), spoken[..until].join(" "));
        }
    }
}
