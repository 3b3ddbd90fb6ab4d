//! Tests of the markup: the table, and that the chunking of the stream does not matter.

use proptest::prelude::*;

use super::*;
use crate::speech_text::clean;

const TABLE: &str = include_str!("../../../../tests/data/speakable.tsv");

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn is_held_out(text: &str) -> bool {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) & 1 == 1
}

fn unescape(text: &str) -> String {
    text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace('\u{1}', "\\")
}

/// Rows of the table: held out or not, written, shown, spoken.
fn rows() -> impl Iterator<Item = (bool, String, String, String)> {
    TABLE.lines().filter(|line| line.starts_with("markup\t")).map(|line| {
        let mut columns = line.split('\t').skip(1);
        let mut column = || columns.next().unwrap();
        let written = column();
        (is_held_out(written), unescape(written), unescape(column()), unescape(column()))
    })
}

fn in_pieces(text: &str, size: usize) -> (String, String) {
    let mut markup = Markup::default();
    let letters: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    for part in letters.chunks(size) {
        pieces.extend(markup.push(&part.iter().collect::<String>()));
    }
    pieces.extend(markup.finish());
    let join = |spoken: bool| -> String {
        pieces.iter().filter(|piece| piece.spoken || !spoken).map(|piece| piece.text.as_str()).collect()
    };
    (join(false).trim_end().to_string(), join(true).trim_end().to_string())
}

#[test]
fn marks_go_and_words_stay() {
    let mut wrong = [Vec::new(), Vec::new()];
    let mut count = [0, 0];
    for (held_out, written, shown, said) in rows() {
        count[usize::from(held_out)] += 1;
        let clean = clean(&written);
        if clean != (shown.clone(), said.clone()) {
            wrong[usize::from(held_out)].push((written, shown, clean));
        }
    }
    assert!(count[0] > 30 && count[1] > 30, "{count:?}");
    assert!(wrong[0].is_empty(), "development: {:#?}\nheld out: {} wrong", wrong[0], wrong[1].len());
    assert!(wrong[1].is_empty(), "held out: {:#?}", wrong[1]);
}

/// Rows of the held-out table whose markup is removed wrongly; only their number is looked at.
const HELD_OUT_MISSED: usize = 0;

#[test]
fn marks_of_the_held_out_table() {
    let table = include_str!("../../../../tests/data/speakable_held_out.tsv");
    let (mut rows, mut missed) = (0, 0);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, written, plain, _] = columns.as_slice() else { panic!("four columns: {line}") };
        let (_, said) = clean(&unescape(written));
        rows += 1;
        missed += usize::from(!plain.split(" || ").any(|plain| unescape(plain) == said));
    }
    assert_eq!((rows, missed), (147, HELD_OUT_MISSED));
}

#[test]
fn the_pieces_of_a_stream_do_not_matter() {
    for (_, written, shown, said) in rows() {
        for size in 1..8 {
            assert_eq!(in_pieces(&written, size), (shown.clone(), said.clone()), "{written:?} in pieces of {size}");
        }
    }
}

#[test]
fn words_do_not_wait_for_the_end_of_their_emphasis() {
    let mut markup = Markup::default();
    let text = |pieces: Vec<TextRun>| pieces.into_iter().map(|piece| piece.text).collect::<String>();
    assert_eq!(text(markup.push("So **very")), "So very");
    assert_eq!(text(markup.push(" much")), " much");
    assert_eq!(text(markup.push("** ")), "");
    assert_eq!(text(markup.push("[see")), "");
    assert_eq!(text(markup.push(" here](http://x.de) now")), " see here now");
}

#[test]
fn what_is_never_closed_does_not_wait_for_ever() {
    let mut markup = Markup::default();
    let long = alloc::format!("[{}", "word ".repeat(200));
    let given: String = markup.push(&long).into_iter().map(|piece| piece.text).collect();
    assert!(given.starts_with("[word word"), "{given}");
}

proptest! {
    #[test]
    fn however_a_text_is_cut_the_same_comes_out(
        text in "[a-c1 \\n*_`~#>|\\-\\[\\]()<>&;!\\\\.😀]{0,60}",
        size in 1..9_usize,
    ) {
        prop_assert_eq!(in_pieces(&text, size), clean(&text));
    }
}
