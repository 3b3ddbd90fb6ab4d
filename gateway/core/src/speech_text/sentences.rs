//! Splits a stream of text into clauses that can be spoken one by one.
//!
//! The first clause is short, so that speech begins early; later ones are whole sentences, for a natural intonation.

use alloc::{string::String, vec::Vec};

use crate::{limits::CLAUSE_LETTERS_MAX, script, spoken_length};

/// Words from which on the first clause may end at a comma.
const FIRST_WORDS_MIN: usize = 3;
/// Spoken letters from which on it may where no spaces set words apart: some two words.
const FIRST_LETTERS_MIN: u32 = 12;
/// Characters, or spoken letters where no spaces set words apart, from which on a later clause may end at a comma.
const COMMA_CHARS_MIN: u32 = 60;

/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "e.g", "i.e", "etc", "approx", "no", "nos", "jr", "sr", "a.m", "p.m",
    "u.s", "inc", "corp", "ltd", "co", "fig", "figs", "p", "pp", "vol", "vols", "ch", "eq", "ext", "est", "ca", "cf",
    "min", "max", "avg", "incl", "excl", "ave", "blvd", "rd", "apt", "dept", "govt", "misc", "tel", "mt", "ft", "gen",
    "maj", "col", "capt", "cmdr", "adm", "lt", "sgt", "cpl", "gov", "sen", "rep", "pres", "rev", "hon", "fr", "jan",
    "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue", "tues", "wed", "thu",
    "thur", "thurs", "fri",
];

/// The clauses of a text that is still being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Splitter {
    buffer: String,
    begun: bool,
}

impl Splitter {
    /// Adds text; returns the clauses that are complete now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<String> {
        self.buffer.push_str(text);
        let mut clauses = Vec::new();
        while let Some(end) = self.boundary() {
            let rest = self.buffer.split_off(end);
            let clause = core::mem::replace(&mut self.buffer, rest);
            self.keep(&clause, &mut clauses);
        }
        clauses
    }

    /// The text has ended: returns the rest as the last clause.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let mut clauses = Vec::new();
        let rest = core::mem::take(&mut self.buffer);
        self.keep(&rest, &mut clauses);
        clauses
    }

    fn keep(&mut self, clause: &str, clauses: &mut Vec<String>) {
        let clause = on_one_line(clause);
        if clause.chars().any(char::is_alphanumeric) {
            self.begun = true;
            clauses.push(clause);
        }
    }

    /// Byte index at which the first clause of the buffer ends. Punctuation counts only once the next character is
    /// known: "3.5" and "10:30" are one word.
    fn boundary(&self) -> Option<usize> {
        let mut last_space = None;
        let mut last_in_number = None;
        let mut chars = 0_u32;
        let mut letters = 0_u32;
        let mut words = 0;
        let mut in_word = false;
        for (at, letter, length) in spoken_length::lengths(&self.buffer) {
            chars = chars.saturating_add(1);
            letters = letters.saturating_add(length);
            let after = at + letter.len_utf8();
            let next = self.buffer.get(after..)?.chars().next();
            if letter.is_whitespace() {
                // "1 200 000 km" is cut inside the number only if there is no other space.
                let figure = self.buffer.get(..at)?.ends_with(|before: char| before.is_ascii_digit());
                let last = if figure { &mut last_in_number } else { &mut last_space };
                *last = Some(after);
                in_word = false;
            } else if !in_word {
                in_word = true;
                words += 1;
            }
            if letter == '\n' {
                return Some(after);
            }
            let next_is_space = next.is_some_and(char::is_whitespace);
            let so_far = self.buffer.get(..at)?;
            let ends = match letter {
                '!' | '?' | '…' => next_is_space,
                _ if script::ENDS.contains(&letter) => next.is_some_and(begins_anew),
                _ if script::CLOSING.contains(&letter) && so_far.ends_with(script::ENDS) => {
                    next.is_some_and(begins_anew)
                }
                // "10：30" is one word.
                _ if script::PAUSES.contains(&letter) => {
                    let letters_min = if self.begun { COMMA_CHARS_MIN } else { FIRST_LETTERS_MIN };
                    letters >= letters_min && next.is_some_and(|next| !next.is_numeric())
                }
                '.' => next_is_space && !is_abbreviation(so_far),
                '"' | '”' | ')' => next_is_space && so_far.ends_with(['.', '!', '?']),
                ',' | ';' | ':' | '–' | '—' => {
                    next_is_space && if self.begun { chars >= COMMA_CHARS_MIN } else { words >= FIRST_WORDS_MIN }
                }
                _ => false,
            };
            if ends {
                return Some(after);
            }
            if letters >= CLAUSE_LETTERS_MAX {
                return Some(last_space.or(last_in_number).unwrap_or(after));
            }
        }
        None
    }
}

/// Whether a sign behind the end of a sentence belongs to the next one, unlike in "？！" and "。」".
fn begins_anew(next: char) -> bool {
    !script::ENDS.contains(&next) && !script::CLOSING.contains(&next)
}

/// Whether the word before a full stop does not end a sentence: an abbreviation, an initial, or the number of a list.
fn is_abbreviation(so_far: &str) -> bool {
    let word = so_far.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let alone = so_far.trim_start().len() == word.len();
    let mut letters = word.chars();
    let initial = letters.next().is_some_and(char::is_uppercase) && letters.next().is_none() && word != "I";
    let list_number = alone && word.chars().all(|letter| letter.is_ascii_digit());
    initial || list_number || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// The words on one line. Markup was removed before.
fn on_one_line(clause: &str) -> String {
    clause.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn split(text: &str) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut clauses = splitter.push(text);
        clauses.extend(splitter.finish());
        clauses
    }

    #[test]
    fn text_is_cut_where_a_speaker_would_breathe() {
        let table: &[(&str, &[&str])] = &[
            ("It is noon.", &["It is noon."]),
            ("Yes. It is.", &["Yes.", "It is."]),
            ("Is it? Yes! Good", &["Is it?", "Yes!", "Good"]),
            ("Well, it is noon, and sunny.", &["Well, it is noon,", "and sunny."]),
            ("Pi is about 3.14 today. Fine.", &["Pi is about 3.14 today.", "Fine."]),
            ("Dr. Smith called at 10:30 a.m. today. Bye.", &["Dr. Smith called at 10:30 a.m. today.", "Bye."]),
            ("J. S. Bach wrote it.", &["J. S. Bach wrote it."]),
            ("So am I. Good.", &["So am I.", "Good."]),
            ("1. Milk\n2. Eggs\n", &["1. Milk", "2. Eggs"]),
            ("It was 5. Then 6.", &["It was 5.", "Then 6."]),
            ("It is due in Apr. or Jul. in all. Bye.", &["It is due in Apr. or Jul. in all.", "Bye."]),
            ("Gen. Lee met Sgt. York vs. Col. Ray. Bye.", &["Gen. Lee met Sgt. York vs. Col. Ray.", "Bye."]),
            ("See Fig. 3 on p. 5, vol. 2. Good.", &["See Fig. 3 on p. 5,", "vol. 2.", "Good."]),
            ("It is at https://a.b/c?d=1,2. Go.", &["It is at https://a.b/c?d=1,2.", "Go."]),
            ("It is 1,234,567.89 in all.", &["It is 1,234,567.89 in all."]),
            ("He said \"no.\" Then left.", &["He said \"no.\"", "Then left."]),
            (
                "He said \"no\" twice (or more) today. Then left.",
                &["He said \"no\" twice (or more) today.", "Then left."],
            ),
            ("...", &[]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(split(text), *expected, "{text}");
        }
    }

    #[test]
    fn text_without_spaces_is_cut_at_its_own_signs() {
        let table: &[(&str, &[&str])] = &[
            ("今天是晴天。气温二十度！好吗？好", &["今天是晴天。", "气温二十度！", "好吗？", "好"]),
            ("今天是晴天，气温二十度，没有风。", &["今天是晴天，", "气温二十度，没有风。"]),
            ("好，今天是晴天。", &["好，今天是晴天。"]),
            ("本当ですか？！はい。", &["本当ですか？！", "はい。"]),
            ("「はい。」と彼は言った。", &["「はい。」", "と彼は言った。"]),
            ("“好。”他说。", &["“好。”", "他说。"]),
            ("现在是10：30。再见。", &["现在是10：30。", "再见。"]),
            ("一共1，200元左右，不贵。", &["一共1，200元左右，", "不贵。"]),
        ];
        for (text, expected) in table {
            assert_eq!(split(text), *expected, "{text}");
        }
        let long = "很长的话".repeat(100);
        assert!(split(&long).len() > 4);
        assert_eq!(split(&long).concat(), long);
    }

    #[test]
    fn later_clauses_end_at_a_comma_only_when_long() {
        assert_eq!(split("Here it is. One, two, three, four, five."), ["Here it is.", "One, two, three, four, five."]);
        let long = "Here it is. The first of these many words is followed by so many others, and then more.";
        assert_eq!(split(long).len(), 3);
    }

    #[test]
    fn the_pieces_of_a_stream_do_not_matter() {
        let text = "Well, it is 3.5 degrees. Mr. Fox is out! Take a coat, please, and a hat.";
        let whole = split(text);
        for size in 1..12 {
            let mut splitter = Splitter::default();
            let mut clauses = Vec::new();
            let letters: Vec<char> = text.chars().collect();
            for piece in letters.chunks(size) {
                clauses.extend(splitter.push(&piece.iter().collect::<String>()));
            }
            clauses.extend(splitter.finish());
            assert_eq!(clauses, whole, "pieces of {size}");
        }
    }

    #[test]
    fn a_text_without_marks_is_cut_at_a_space() {
        let text = "word ".repeat(200);
        for clause in split(&text) {
            assert!(spoken_length::of(&clause) <= CLAUSE_LETTERS_MAX);
            assert!(clause.ends_with("word"));
        }
        let figure = format!("{}1 200 000 000 000 000 000 km", "word ".repeat(42));
        assert_eq!(split(&figure)[1], "1 200 000 000 000 000 000 km");
        let figures = "11 ".repeat(200);
        assert!(split(&figures).iter().all(|clause| clause.split(' ').all(|figure| figure == "11")));
        let solid = "x".repeat(1_000);
        assert_eq!(split(&solid).concat(), solid);
    }

    #[test]
    fn a_figure_counts_for_the_letters_in_which_it_is_spoken() {
        let words = format!("The digits of it are {}.", "3 ".repeat(150).trim_end());
        let solid = format!("It is 3.{} or so.", "14159".repeat(30));
        for text in [&words, &solid] {
            let clauses = split(text);
            assert!(clauses.len() > 3, "{clauses:?}");
            assert!(clauses.iter().all(|clause| spoken_length::of(clause) < CLAUSE_LETTERS_MAX + 10), "{clauses:?}");
            let figures = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
            assert_eq!(figures(&clauses.concat()), figures(text), "nothing is lost");
        }
        // As few clauses as possible, also of a number in groups.
        assert_eq!(split(&format!("It is {}.", "123 ".repeat(26).trim_end())).len(), 3);
    }

    #[test]
    fn a_clause_is_there_as_soon_as_it_can_be() {
        let mut splitter = Splitter::default();
        assert!(splitter.push("Your timer is set.").is_empty());
        assert_eq!(splitter.push(" "), ["Your timer is set."]);
        assert!(splitter.finish().is_empty());
    }
}
