//! Tests of the estimate against the counts of two encoders.

use alloc::{string::String, vec::Vec};

use super::*;

const TABLE: &str = include_str!("../../../../tests/data/tokens.tsv");

/// Half, name, tokens of both encoders, the estimate.
fn rows() -> Vec<(bool, &'static str, [f64; 2], f64)> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [half, name, o200k, cl100k, text] = columns.as_slice() else { panic!("five columns: {line}") };
        let counts = [o200k, cl100k].map(|count| count.parse::<f64>().expect("a number"));
        let text: String = text.replace("\\n", "\n");
        (*half == "held_out", *name, counts, f64::from(of_text(&text)))
    });
    rows.collect()
}

#[test]
fn the_estimate_is_near_what_encoders_take() {
    let mut within = [0, 0];
    let mut count = [0, 0];
    for (held_out, name, [o200k, cl100k], estimate) in rows() {
        let (mean, half) = ((o200k + cl100k) / 2.0, usize::from(held_out));
        let error = estimate / mean - 1.0;
        count[half] += 1;
        within[half] += usize::from(error.abs() <= 0.25);
        // An estimate that is too low exceeds the budget.
        assert!(error >= -0.25, "{name}: {estimate} for {mean}");
        assert!(estimate >= 0.5 * o200k.max(cl100k), "{name}: {estimate} for the larger of {o200k} and {cl100k}");
    }
    assert!(count[0] >= 60 && count[1] >= 15, "{count:?}");
    assert!(within[0] * 100 >= count[0] * 95 && within[1] * 100 >= count[1] * 90, "{within:?} of {count:?}");
}

#[test]
fn nothing_takes_nothing() {
    assert_eq!(of_text(""), 0);
    for letter in ["a", " ", "\n", "é", "ж", "漢", "한", "ก", "ሀ", "😀", "\u{0}", "\u{10ffff}"] {
        assert!(of_text(letter) >= 1, "{letter:?}");
    }
}
