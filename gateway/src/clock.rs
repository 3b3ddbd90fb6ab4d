//! The one place that reads a clock.

use std::{
    sync::OnceLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use gateway_core::vocab::Timestamp;
use jiff::tz::TimeZone;

static START: OnceLock<Instant> = OnceLock::new();

/// Microseconds since the process first asked.
#[allow(clippy::disallowed_methods)] // the one place
pub fn mono_us() -> u64 {
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Milliseconds since the Unix epoch, UTC.
#[allow(clippy::disallowed_methods)] // the one place
pub fn wall_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// The box's time zone.
pub fn zone() -> TimeZone {
    TimeZone::system()
}

/// All readings together.
pub fn now() -> Timestamp {
    let wall_ms = wall_ms();
    let offset_s = jiff::Timestamp::from_millisecond(wall_ms).map_or(0, |moment| zone().to_offset(moment).seconds());
    Timestamp { mono_us: mono_us(), wall_ms, offset_s }
}

/// The instant that a reading of [`mono_us`] stands for, to sleep until it.
#[allow(clippy::disallowed_methods)] // the one place
pub(crate) fn instant_at(mono_us: u64) -> tokio::time::Instant {
    tokio::time::Instant::from_std(*START.get_or_init(Instant::now) + std::time::Duration::from_micros(mono_us))
}
