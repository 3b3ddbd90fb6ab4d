//! Tables of sentences and the expected calls.

use serde_json::Value;

use super::fixture::is_held_out;

pub struct Row {
    pub sentence: &'static str,
    /// Tool and arguments; `None`: no tool may be called.
    pub expected: Option<(&'static str, Value)>,
}

/// Reads a table: sentence, tool or "-", arguments.
pub fn rows(table: &'static str) -> Vec<Row> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut cells = line.split('\t');
            let (Some(sentence), Some(name), Some(arguments), None) =
                (cells.next(), cells.next(), cells.next(), cells.next())
            else {
                panic!("three cells: {line}")
            };
            let arguments: Value = serde_json::from_str(arguments).expect(line);
            Row { sentence, expected: (name != "-").then_some((name, arguments)) }
        })
        .collect()
}

/// For the development and the held-out half: the number of rows and of misses. Misses are printed of the development
/// half only, so that nobody tunes to the other one.
pub fn misses(rows: &[Row], decide: impl Fn(&str) -> Option<(String, Value)>) -> [(usize, usize); 2] {
    let mut halves = [(0, 0); 2];
    for row in rows {
        let half = &mut halves[usize::from(is_held_out(row.sentence))];
        half.0 += 1;
        let got = decide(row.sentence);
        if got.as_ref().map(|(name, arguments)| (name.as_str(), arguments.clone())) != row.expected {
            half.1 += 1;
            if !is_held_out(row.sentence) {
                println!("{}\n   want {:?}\n   got  {got:?}", row.sentence, row.expected);
            }
        }
    }
    println!("development, held-out (sentences, missed): {halves:?}");
    halves
}
