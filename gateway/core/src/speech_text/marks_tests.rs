//! Tests of characters that look like markup: each row fails without one of the rules.

use alloc::{string::String, vec::Vec};

use crate::speech_text::{clean, markup::Markup};

/// The written text, and the text as shown and spoken.
const ROWS: &[(&str, &str)] = &[
    // Two asterisks between spaces may be text; three are a thematic break.
    ("2 ** 3 is 8", "2 ** 3 is 8"),
    ("one *** two", "one two"),
    // Within a word two asterisks are emphasis; a single one and underscores are not.
    ("un**believ**able", "unbelievable"),
    ("2*3*4 is 24", "2*3*4 is 24"),
    ("the name a__b__c", "the name a__b__c"),
    ("the name a_b_c", "the name a_b_c"),
    // Three backticks within a line are code of that line.
    ("```let x = 1``` is how.", "let x = 1 is how."),
    // A line below a title makes no table.
    ("Title\n---\na | b", "Title\na | b"),
    ("a | b\n---\nc", "a | b\nc"),
    ("Name | Age\n---|---\nBo | 3", "Name, Age\nBo, 3"),
    // A line that begins with a border is a row, whatever follows.
    ("| a | b |", "a, b"),
    // A table ends with the first line that is no row.
    ("| a | b |\n|---|---|\n| 1 | 2 |\nDone.\nx | y", "a, b\n1, 2\nDone.\nx | y"),
    // A checkbox is only in a list item; elsewhere it is text, and in a list a link is a link.
    ("- [x] Milk\n- [ ] Eggs", "Milk\nEggs"),
    ("> - [x] Milk", "Milk"),
    ("[x] is the unknown", "[x] is the unknown"),
    ("- [a site](http://x.de/y) here", "a site here"),
    ("#1 is first", "#1 is first"),
    // At the very end no text follows that could decide.
    ("it costs 5 *", "it costs 5 *"),
    ("that is 5 $", "that is 5 $"),
    ("this is [x]", "this is [x]"),
    ("3 <", "3 <"),
    ("see <b", "see <b"),
    ("he works at AT&T", "he works at AT&T"),
    // A heading may end with its sign; other lines and words may, too.
    ("# About C#", "About C#"),
    ("# Title #\nText", "Title\nText"),
    ("press #\nthen wait", "press #\nthen wait"),
    // Nothing in code or in an address is markup.
    ("write `*x*` or `[a](b)`", "write *x* or [a](b)"),
    ("see http://x.de/_a_/b", "see http://x.de/_a_/b"),
    ("see http://x.de/a_b and *this*", "see http://x.de/a_b and this"),
    ("about ~5 km", "about ~5 km"),
    ("Stop! See [here](http://x.de/a) now", "Stop! See here now"),
];

#[test]
fn what_looks_like_a_mark_is_told_apart() {
    for (written, expected) in ROWS {
        let expected = String::from(*expected);
        assert_eq!(clean(written), (expected.clone(), expected), "{written:?}");
    }
}

#[test]
fn letter_by_letter_it_is_the_same() {
    for (written, expected) in ROWS {
        let mut markup = Markup::default();
        let mut pieces: Vec<_> = written.chars().flat_map(|letter| markup.push(&String::from(letter))).collect();
        pieces.extend(markup.finish());
        let text: String = pieces.into_iter().map(|piece| piece.text).collect();
        assert_eq!(text.trim_end(), *expected, "{written:?}");
    }
}

#[test]
fn what_can_be_no_tag_does_not_wait() {
    let pieces = Markup::default().push("it is 3 < 4 apples");
    let text: String = pieces.into_iter().map(|piece| piece.text).collect();
    assert_eq!(text, "it is 3 < 4 apples");
}

#[test]
fn code_that_is_never_closed_is_read_to_its_end() {
    assert_eq!(clean("```\na\n---"), ("a\n---".into(), String::new()));
}
