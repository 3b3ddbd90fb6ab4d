//! `time`: the clock, and the offsets of time zones. What is computed with them is in the module's JavaScript.

use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::{Value, json};

use super::values::{error, read, unknown};
use crate::{code::HostError, ports::Clock};

/// 1 January 1970, before which a zone has the offset of that day.
const FIRST_S: i64 = 0;
/// 1 January 2100, after which a zone keeps its offset.
const LAST_S: i64 = 4_102_444_800;
/// Changes of a zone's offset: two or four in each of these years.
const CHANGES_MAX: usize = 600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: Option<String>,
}

/// Carries out a function of `time`.
pub(super) fn call(clock: &dyn Clock, name: &str, arguments: Value) -> Result<Value, HostError> {
    match name {
        "now" => {
            let Nothing {} = read("time.now", arguments)?;
            Ok(clock.now().wall_ms.into())
        }
        "zone" => {
            let named: Named = read("time.zone", arguments)?;
            let Some(name) = named.name else { return Ok(offsets(&clock.zone())) };
            let zone = TimeZone::get(&name).map_err(|_| {
                let name: String = name.chars().take(64).collect();
                let message = format!("there is no time zone '{name}': use a name such as 'Europe/Berlin' or 'UTC'");
                error("invalid_arguments", message)
            })?;
            Ok(offsets(&zone))
        }
        _ => Err(unknown(&format!("time.{name}"))),
    }
}

/// `{name, offsets: [[since, seconds], ...]}`: since when, in seconds since the Unix epoch, the zone has which offset
/// east of UTC in seconds. The first counts before its time, too.
fn offsets(zone: &TimeZone) -> Value {
    let mut offsets: Vec<(i64, i32)> = Vec::new();
    let mut add = |at: i64, seconds: i32| {
        if offsets.last().is_none_or(|(_, last)| *last != seconds) {
            offsets.push((at, seconds));
        }
    };
    let first = Timestamp::from_second(FIRST_S).unwrap_or_default();
    add(FIRST_S, zone.to_offset(first).seconds());
    for change in zone.following(first).take(CHANGES_MAX) {
        let at = change.timestamp().as_second();
        if at >= LAST_S {
            break;
        }
        add(at, change.offset().seconds());
    }
    json!({"name": zone.iana_name().unwrap_or("local"), "offsets": offsets})
}
