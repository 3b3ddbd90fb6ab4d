//! Moments as they are written in arguments: a date and time, or how long ago.

use jiff::{SignedDuration, Timestamp};

/// The moment, in milliseconds since the Unix epoch: RFC 3339 (`2026-11-24T08:00:00Z`), or a number and `m`, `h` or `d`
/// before `now_wall_ms` (`90m`, `12h`, `30d`).
///
/// # Errors
/// The text is neither; in words.
pub fn parse(text: &str, now_wall_ms: i64) -> Result<i64, String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.as_millisecond());
    }
    let wrong = || format!("`{text}` is no moment: write 90m, 12h, 30d or a time such as 2026-11-24T08:00:00Z");
    let unit_ms: i64 = match text.chars().last() {
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        _ => return Err(wrong()),
    };
    let count: u32 = text.get(..text.len() - 1).unwrap_or_default().parse().map_err(|_| wrong())?;
    Ok(now_wall_ms.saturating_sub(i64::from(count).saturating_mul(unit_ms)))
}

/// The moment in RFC 3339, in UTC with milliseconds.
pub fn written(wall_ms: i64) -> String {
    let moment = Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_millis(wall_ms));
    moment.map_or_else(|_| wall_ms.to_string(), |moment| format!("{moment:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        let now = 1_700_000_000_000;
        assert_eq!(parse("90m", now), Ok(now - 5_400_000));
        assert_eq!(parse("12h", now), Ok(now - 43_200_000));
        assert_eq!(parse("30d", now), Ok(now - 2_592_000_000));
        assert_eq!(parse("2023-11-14T22:13:20Z", now), Ok(now));
        assert_eq!(parse("2023-11-14T23:13:20.5+01:00", now), Ok(now + 500));
        for text in ["", "d", "-1d", "3", "3w", "1.5h", "99999999999d", "é", "2023-11-14"] {
            assert!(parse(text, now).is_err(), "{text}");
        }
        assert_eq!(written(now + 7), "2023-11-14T22:13:20.007Z");
        assert_eq!(parse(&written(now + 7), 0), Ok(now + 7));
        assert_eq!(written(i64::MAX), i64::MAX.to_string());
    }
}
