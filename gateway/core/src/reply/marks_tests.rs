//! Tests of marks that look like others: each row is what one rule would break if it was left out.

use alloc::string::String;

use crate::reply::markup::clean;

/// What is written, and what is read and said of it.
const ROWS: &[(&str, &str)] = &[
    // Two signs between spaces may be meant; three are a rule.
    ("2 ** 3 is 8", "2 ** 3 is 8"),
    ("one *** two", "one two"),
    // Within a word two stars are a mark; one is not, and underscores never are.
    ("un**believ**able", "unbelievable"),
    ("2*3*4 is 24", "2*3*4 is 24"),
    ("the name a__b__c", "the name a__b__c"),
    ("the name a_b_c", "the name a_b_c"),
    // Three backticks within a line are code of that line.
    ("```let x = 1``` is how.", "let x = 1 is how."),
    // A line below a title makes no table.
    ("Title\n---\na | b", "Title\na | b"),
    // A box to tick stands in a list; elsewhere it is text, and in a list a link is a link.
    ("- [x] Milk\n- [ ] Eggs", "Milk\nEggs"),
    ("> - [x] Milk", "Milk"),
    ("[x] is the unknown", "[x] is the unknown"),
    ("- [a site](http://x.de/y) here", "a site here"),
    ("#1 is first", "#1 is first"),
    // At the very end nothing comes that could decide.
    ("it costs 5 *", "it costs 5 *"),
    ("that is 5 $", "that is 5 $"),
    // Nothing in code or in an address is a mark.
    ("write `*x*` or `[a](b)`", "write *x* or [a](b)"),
    ("see http://x.de/_a_/b", "see http://x.de/_a_/b"),
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
