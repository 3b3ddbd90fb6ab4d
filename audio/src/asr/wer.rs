//! Word error rate, for measurements.

use super::normalise;

/// Counts over one or more compared texts; sum them, then take the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wer {
    /// Words substituted, inserted or left out.
    pub edits: usize,
    /// Words of the reference.
    pub words: usize,
}

impl Wer {
    /// Edits per word of the reference; 0 if it has no words.
    pub fn rate(self) -> f64 {
        if self.words == 0 { 0.0 } else { self.edits as f64 / self.words as f64 }
    }
}

impl std::ops::AddAssign for Wer {
    fn add_assign(&mut self, other: Self) {
        self.edits += other.edits;
        self.words += other.words;
    }
}

/// Compares two texts after normalising both: lower case, no punctuation, numbers as single
/// digits, so that "fifty five", "55" and "5 5" are the same.
pub fn wer(reference: &str, hypothesis: &str) -> Wer {
    let reference = words(reference);
    let hypothesis = words(hypothesis);
    Wer { edits: distance(&reference, &hypothesis), words: reference.len() }
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in normalise::for_commands(text).split_whitespace() {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            words.extend(word.chars().map(String::from));
        } else {
            words.push(word.to_owned());
        }
    }
    words
}

/// Levenshtein's distance over words, one row at a time.
fn distance(reference: &[String], hypothesis: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=hypothesis.len()).collect();
    for (above, expected) in reference.iter().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, word) in hypothesis.iter().enumerate() {
            let substituted = diagonal + usize::from(word != expected);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        let cases = [
            ("a b c", "a b c", 0, 3),
            ("a b c", "a x c", 1, 3),
            ("a b c", "a c", 1, 3),
            ("a b c", "a b b c", 1, 3),
            ("a b c", "", 3, 3),
            ("", "a", 1, 0),
            ("Go forward, ten meters.", "go forward 10 meters", 0, 5),
            ("fifty five", "5 5.", 0, 2),
            ("It's Don't", "its don't", 0, 2),
        ];
        for (reference, hypothesis, edits, words) in cases {
            assert_eq!(wer(reference, hypothesis), Wer { edits, words }, "{reference:?} {hypothesis:?}");
        }
    }

    #[test]
    fn rates_add_up() {
        let mut total = Wer::default();
        assert_eq!(total.rate(), 0.0);
        total += wer("a b c", "a b");
        total += wer("d", "d");
        assert_eq!(total.rate(), 0.25);
    }
}
