//! The one notion of "now" that the core is given.

/// A moment, as three readings taken together.
///
/// Countdowns use `mono_us`, appointments use `wall_ms` and `offset_s`: a box whose wall clock
/// jumps must neither fire a countdown early nor an appointment twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// Microseconds since the process started; never goes back.
    pub mono_us: u64,
    /// Milliseconds since the Unix epoch, UTC; may jump either way.
    pub wall_ms: i64,
    /// Seconds that local time is east of UTC at this moment.
    pub offset_s: i32,
}
