//! Times, sizes and numbers in units for people.

use std::fmt::Display;

/// A span of time in its largest unit and the next one: `5 s`, `12 min`, `3 h 20 min`, `2 d 4 h`.
pub(crate) fn ago(seconds: u64) -> String {
    const MIN: u64 = 60;
    const HOUR: u64 = 60 * MIN;
    const DAY: u64 = 24 * HOUR;
    match seconds {
        0..MIN => format!("{seconds} s"),
        MIN..HOUR => format!("{} min", seconds / MIN),
        HOUR..DAY => format!("{} h {} min", seconds / HOUR, seconds % HOUR / MIN),
        _ => format!("{} d {} h", seconds / DAY, seconds % DAY / HOUR),
    }
}

/// A size in its largest unit: `512 B`, `104 KiB`, `1.5 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    let mut size = count as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{size:.*} {unit}", usize::from(size < 10.0 && unit != "B"))
}

/// So many of something, in words: `1 problem`, `2 problems`.
pub(crate) fn number_of<N: Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_short() {
        for (seconds, text) in [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "59 min"), (12_000, "3 h 20 min")] {
            assert_eq!(ago(seconds), text);
        }
        assert_eq!(ago(187_200), "2 d 4 h");
        for (number, text) in [(0, "0 problems"), (1, "1 problem"), (2, "2 problems")] {
            assert_eq!(number_of(number, "problem"), text);
        }
        for (count, text) in [(5, "5 B"), (106_496, "104 KiB"), (1_610_612_736, "1.5 GiB"), (1 << 50, "1024 TiB")] {
            assert_eq!(bytes(count), text);
        }
    }
}
