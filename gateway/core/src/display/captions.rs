//! Captions of several turns: each begins on a line of its own, with a dash, the latest at the bottom. They roll up and never
//! down, so that nobody has to look for a line again.
//!
//! A turn is an utterance. Who speaks is not known: two people who leave no pause between them share a turn, and one who
//! pauses for long begins another.

use alloc::{collections::VecDeque, format, string::String, vec::Vec};

use super::lines::wrap;
use crate::{
    limits::{CAPTION_BYTES_MAX, CAPTION_TURNS_MAX},
    vocab::DisplaySize,
};

const DASH: &str = "– ";
/// Characters of the earlier turn's line on a display that does not tell how many it has.
const LINE_CHARS: u16 = 40;

/// The turns that the captions show, in the order in which they were said.
#[derive(Debug, Default)]
pub(super) struct Captions {
    turns: VecDeque<Turn>,
}

#[derive(Debug)]
struct Turn {
    utterance: u32,
    text: String,
    /// How many of its lines have left the display.
    gone: usize,
}

impl Captions {
    pub(super) fn clear(&mut self) {
        self.turns.clear();
    }

    /// Takes all words of an utterance so far. None: it had none after all; `false`: and none of it were shown.
    pub(super) fn take(&mut self, utterance: u32, text: &str) -> bool {
        let at = self.turns.partition_point(|turn| turn.utterance < utterance);
        let is_known = self.turns.get(at).is_some_and(|turn| turn.utterance == utterance);
        if text.trim().is_empty() {
            if is_known {
                self.turns.remove(at);
            }
            return is_known;
        }
        if let Some(turn) = self.turns.get_mut(at).filter(|_| is_known) {
            turn.text = String::from(text);
        } else {
            self.turns.insert(at, Turn { utterance, text: String::from(text), gone: 0 });
            if self.turns.len() > CAPTION_TURNS_MAX {
                self.turns.pop_front();
            }
        }
        true
    }

    /// What is shown now: the latest lines. Without a known size that is the latest turn, and one line of the turn before.
    pub(super) fn layout(&mut self, size: DisplaySize) -> String {
        let is_known = size.grid().is_some();
        let line = if size.columns.is_some() { size } else { DisplaySize::new(LINE_CHARS, 0) };
        let (mut room, mut width) = (size.lines_max(), size);
        let (mut shown, mut kept) = (Vec::new(), 0);
        for turn in self.turns.iter_mut().rev() {
            if room == 0 {
                break;
            }
            let lines = wrap(&format!("{DASH}{}", turn.text), width);
            let over = lines.len().saturating_sub(room);
            // A last text may be shorter than what has left the display already.
            turn.gone = if turn.gone < lines.len() { turn.gone.max(over) } else { over };
            room -= lines.len() - turn.gone;
            shown.extend(lines.into_iter().skip(turn.gone).rev());
            kept += 1;
            if !is_known {
                (room, width) = (room.min(1), line);
            }
        }
        self.turns.drain(..self.turns.len() - kept);
        // The latest line is the last one, and what is too long for a frame is cut at its end.
        let mut left = CAPTION_BYTES_MAX;
        let fitting = shown.iter().take_while(|line| {
            let fits = line.len() < left;
            left = left.saturating_sub(line.len() + 1);
            fits
        });
        let fitting = fitting.count().max(1).min(shown.len());
        shown.truncate(fitting);
        shown.reverse();
        shown.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown after each of these captions.
    fn shown(columns: u16, rows: u16, said: &[(u32, &str)]) -> Vec<String> {
        let mut captions = Captions::default();
        let show = |(utterance, text): &(u32, &str)| {
            captions.take(*utterance, text);
            captions.layout(DisplaySize::new(columns, rows))
        };
        said.iter().map(show).collect()
    }

    #[test]
    fn turns_stand_below_one_another() {
        let said = [(1, "Do you want"), (1, "Do you want tea?"), (2, "No,"), (2, "No, thank you."), (3, "Coffee?")];
        let expected = [
            "– Do you want",
            "– Do you want tea?",
            "– Do you want tea?\n– No,",
            "– Do you want tea?\n– No, thank you.",
            "– Do you want tea?\n– No, thank you.\n– Coffee?",
        ];
        assert_eq!(shown(30, 4, &said), expected);
    }

    #[test]
    fn the_latest_turn_goes_before_the_earlier_ones() {
        let said = [(1, "Do you want tea?"), (2, "No"), (2, "No thanks mate")];
        assert_eq!(shown(10, 2, &said), ["– Do you\nwant tea?", "want tea?\n– No", "thanks\nmate"]);
        assert_eq!(shown(10, 1, &said), ["want tea?", "– No", "mate"]);
        assert_eq!(shown(10, 4, &said).last().unwrap(), "want tea?\n– No\nthanks\nmate");
    }

    #[test]
    fn what_has_left_the_display_does_not_come_back() {
        let said = [(1, "Why?"), (2, "No thanks mate"), (2, "No thanks"), (2, "No thanks, Matthew"), (2, "No")];
        let expected = ["– Why?", "thanks\nmate", "thanks", "thanks,\nMatthew", "– No"];
        assert_eq!(shown(10, 2, &said), expected);
    }

    #[test]
    fn what_had_no_words_is_no_turn() {
        let said = [(1, ""), (1, "Why?"), (2, "Mm"), (2, " "), (1, "")];
        assert_eq!(shown(10, 3, &said), ["", "– Why?", "– Why?\n– Mm", "– Why?", ""]);
    }

    #[test]
    fn a_text_that_comes_late_stands_in_its_turn() {
        let said = [(1, "Why"), (3, "No"), (1, "Why not?"), (2, "Well")];
        assert_eq!(shown(10, 4, &said).last().unwrap(), "– Why not?\n– Well\n– No");
    }

    #[test]
    fn without_a_known_size_one_line_of_the_turn_before_is_shown() {
        let long = "I told him that he should have come to the party last night with his brother.";
        for (columns, rows) in [(0, 0), (0, 4), (40, 0)] {
            let shown = shown(columns, rows, &[(1, long), (2, "Why?"), (3, "No.")]);
            assert_eq!(shown[0].replace('\n', " "), format!("– {long}"), "{columns} {rows}");
            assert_eq!(shown[1], "the party last night with his brother.\n– Why?", "{columns} {rows}");
            assert_eq!(shown[2], "– Why?\n– No.", "{columns} {rows}");
        }
    }

    #[test]
    fn of_more_than_a_frame_holds_the_latest_lines_are_shown() {
        let said: Vec<(u32, String)> =
            (0..4).map(|utterance| (utterance, format!("{utterance} {}", "ж".repeat(400)))).collect();
        let said: Vec<(u32, &str)> = said.iter().map(|(utterance, text)| (*utterance, text.as_str())).collect();
        let shown = shown(1_000, 1_000, &said);
        let turns = |shown: &String| shown.lines().filter_map(|line| line.chars().nth(2)).collect::<String>();
        assert_eq!(shown.iter().map(turns).collect::<Vec<_>>(), ["0", "01", "12", "23"]);
        assert!(shown.iter().all(|shown| shown.len() <= CAPTION_BYTES_MAX));
    }

    #[test]
    fn of_many_turns_the_latest_stay() {
        let said: Vec<(u32, &str)> = (0..20).map(|utterance| (utterance, "Why?")).collect();
        let lines = shown(10, 100, &said).last().map(|shown| shown.lines().count());
        assert_eq!(lines, Some(CAPTION_TURNS_MAX));
    }
}
