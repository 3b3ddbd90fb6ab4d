//! The core's only source of the current time.

use serde::{Deserialize, Serialize};

/// A moment: three clock readings taken together.
///
/// Countdowns use `mono_us`, appointments use `wall_ms` and `offset_s`: if the wall clock jumps, neither may a
/// countdown fire early nor an appointment twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// Microseconds since the process started; monotonic.
    pub mono_us: u64,
    /// Milliseconds since the Unix epoch, UTC; may jump in either direction.
    pub wall_ms: i64,
    /// Current offset of local time from UTC in seconds, positive to the east.
    pub offset_s: i32,
}
