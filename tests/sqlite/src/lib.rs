//! Nothing: the measurements are in `benches`.
