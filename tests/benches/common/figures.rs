//! What the judging of figures needs, and nothing of a gateway.

/// Nearest-rank quantile.
pub fn quantile(values: &mut [i64], share: f64) -> Option<i64> {
    values.sort_unstable();
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

/// Whether `--name` is there.
pub fn flag(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}
