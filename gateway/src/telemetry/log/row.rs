//! A line of the log as it is stored: what it is, its key, and which lines belong to a user.

use std::ops::RangeInclusive;

use rkyv::{Archive, Deserialize, Serialize, rancor};
use serde_json::Value;
use tools::inspection::logs::{LogCursor, LogEntry, LogFilter, LogLevel, LogScope};

/// The source of lines that are about nothing in particular.
pub(super) const GATEWAY: &str = "gateway";
/// Bytes of a key: number, time, level.
const KEY_BYTES: usize = 17;

/// A line of the log: its row, and of its key the time and the level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// When it was written, in milliseconds since the Unix epoch.
    pub(super) wall_ms: i64,
    pub(super) level: LogLevel,
    pub(super) row: Row,
}

/// The stored value of a line. Its time and its level are in its key.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// The part of the program.
    pub(super) context: String,
    /// What it is about.
    pub(super) source: String,
    /// The user that it is about.
    pub(super) user: Option<String>,
    /// The device that it is about.
    pub(super) device: Option<String>,
    /// The text, with the values that belong to it.
    pub(super) message: String,
}

/// A finished turn: its record as JSON, and the device.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(super) struct Turn {
    /// Fingerprint of the device.
    pub(super) device: String,
    /// The record of the turn, as `lorgnette turns` prints it.
    pub(super) json: String,
}

/// A stored turn; `None`: it is damaged.
pub(super) fn read_turn(value: &[u8]) -> Option<&ArchivedTurn> {
    rkyv::access::<ArchivedTurn, rancor::Error>(value).ok()
}

/// `[number, big endian][milliseconds, big endian]`, as the keys of lines begin.
pub(super) fn key_of_turn(wall_ms: i64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8..].copy_from_slice(&time(wall_ms));
    key
}

/// The place of a turn by its key; `None`: it is none.
pub(super) fn place_of_turn(key: &[u8]) -> Option<LogCursor> {
    place(key).filter(|_| key.len() == 16)
}

/// The place of a line or of a turn by its key; `None`: it is none.
pub(super) fn place(key: &[u8]) -> Option<LogCursor> {
    key.first_chunk::<16>().map(|place| LogCursor(u128::from_be_bytes(*place)))
}

/// A stored line; `None`: it is damaged.
pub(super) fn read(value: &[u8]) -> Option<&ArchivedRow> {
    rkyv::access::<ArchivedRow, rancor::Error>(value).ok()
}

/// `[number, big endian][milliseconds, big endian][level]`: lines in the order in which they were written, since a clock
/// may be set back. Time and level are part of it so that lines that are not wanted are passed over without a look at
/// their values.
pub(super) fn key(wall_ms: i64, number: u64, level: LogLevel) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8..16].copy_from_slice(&time(wall_ms));
    key[16] = LogLevel::ALL.iter().position(|other| *other == level).unwrap_or_default() as u8;
    key
}

/// The time in a key. What was written before 1970, by a clock that was not set, counts as of then.
fn time(wall_ms: i64) -> [u8; 8] {
    u64::try_from(wall_ms).unwrap_or_default().to_be_bytes()
}

/// The parts of a key; `None`: it is none.
pub(super) fn parts(key: &[u8]) -> Option<(LogCursor, LogLevel)> {
    let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
    Some((place(key)?, *LogLevel::ALL.get(usize::from(key[16]))?))
}

/// The time of a place, in milliseconds since the Unix epoch.
pub(super) fn wall_ms(place: LogCursor) -> i64 {
    // The lower half.
    i64::try_from(place.0 & u128::from(u64::MAX)).unwrap_or(i64::MAX)
}

/// The number of a place.
pub(super) fn number(place: LogCursor) -> u64 {
    u64::try_from(place.0 >> 64).unwrap_or(u64::MAX)
}

/// A filter as it is compared with rows.
pub(super) struct Wanted<'f> {
    filter: &'f LogFilter,
    scope: &'f LogScope,
    text: Option<String>,
}

impl<'f> Wanted<'f> {
    pub(super) fn new(filter: &'f LogFilter, scope: &'f LogScope) -> Self {
        Self { filter, scope, text: filter.text.as_ref().map(|text| text.to_lowercase()) }
    }

    /// Whether lines of this key can be wanted.
    pub(super) fn fits_key(&self, place: LogCursor, level: LogLevel) -> bool {
        let at = wall_ms(place);
        self.fits_some(&(at..=at), level)
    }

    /// Whether lines of some of these times can be wanted, of which the most severe one has this level.
    pub(super) fn fits_some(&self, times: &RangeInclusive<i64>, most_severe: LogLevel) -> bool {
        let LogFilter { level: least, since_wall_ms, before_wall_ms, .. } = self.filter;
        least.is_none_or(|least| most_severe <= least)
            && since_wall_ms.is_none_or(|since| *times.end() >= since)
            && before_wall_ms.is_none_or(|before| *times.start() < before)
    }

    /// Whether the line is wanted whose key fits.
    pub(super) fn fits(&self, row: &ArchivedRow) -> bool {
        let LogFilter { context, source, .. } = self.filter;
        context.as_ref().is_none_or(|context| row.context.starts_with(context.as_str()))
            && source.as_ref().is_none_or(|source| row.source == *source)
            && self.is_shown(row)
            && self.text.as_ref().is_none_or(|text| row.message.to_lowercase().contains(text.as_str()))
    }
}

impl Wanted<'_> {
    /// Whether a line is shown at all: to a user those about the user, the user's devices, or nobody.
    fn is_shown(&self, row: &ArchivedRow) -> bool {
        let LogScope::User { user, devices } = self.scope else { return true };
        match (row.user.as_deref(), row.device.as_deref()) {
            (Some(about), _) => about == user,
            (None, Some(device)) => devices.iter().any(|own| own == device),
            (None, None) => row.source == GATEWAY,
        }
    }
}

/// The line of a key and a value.
pub(super) fn entry(place: LogCursor, level: LogLevel, row: &ArchivedRow) -> LogEntry {
    LogEntry {
        wall_ms: wall_ms(place),
        level,
        context: row.context.as_str().to_owned(),
        source: row.source.as_str().to_owned(),
        message: row.message.as_str().to_owned(),
    }
}

/// Whether a line belongs to a user: it carries the user or one of the devices, the user stands in its text as a value or in
/// quotes, or a device stands in it. A user may be called like a word of a sentence.
pub(super) fn belongs_to(row: &ArchivedRow, user: &str, devices: &[String]) -> bool {
    let is_own = |name: &str| name == user || devices.iter().any(|device| device == name);
    row.user.as_deref().is_some_and(is_own)
        || row.device.as_deref().is_some_and(is_own)
        || names(&row.message, user)
        || devices.iter().any(|device| mentions(&row.message, device) || mentions(&row.source, device))
}

/// Whether a turn belongs to a user, by its record. What an older version has written names nobody, and counts by its device.
pub(super) fn is_turn_of(turn: &ArchivedTurn, user: &str, devices: &[String]) -> bool {
    let record = serde_json::from_str::<Value>(turn.json.as_str()).ok();
    match record.as_ref().and_then(|record| record.get("user")?.as_str()) {
        Some(own) => own == user,
        None => devices.iter().any(|device| device == turn.device.as_str()),
    }
}

/// Whether a name stands in a text as a value, `about=ann`, or in quotes.
fn names(text: &str, name: &str) -> bool {
    let is_named = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        match before {
            Some('=') => after.is_none_or(|after| after == ' ' || after == ','),
            Some(quote @ ('"' | '\'' | '`')) => after == Some(quote),
            _ => false,
        }
    };
    !name.is_empty() && text.match_indices(name).any(is_named)
}

/// Whether a name stands in a text as words of its own.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !name.is_empty()
        && text
            .match_indices(name)
            .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + name.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        let keys = [
            key(i64::from(u32::MAX) + 1, 9, LogLevel::Error),
            key(1, 10, LogLevel::Info),
            key(-5, 11, LogLevel::Error),
            key(0, 1 << 32, LogLevel::Warn),
        ];
        assert!(keys.is_sorted());
        let (place, level) = parts(&keys[1]).unwrap();
        assert_eq!((wall_ms(place), number(place), level), (1, 10, LogLevel::Info));
        let turn = place_of_turn(&key_of_turn(1, 10)).unwrap();
        assert_eq!((wall_ms(turn), number(turn)), (1, 10));
        assert!(parts(b"short").is_none() && parts(&[9; KEY_BYTES]).is_none() && place_of_turn(b"short").is_none());
    }

    #[test]
    fn a_user_counts_as_a_value_or_in_quotes() {
        for text in
            ["about=wearer", "x about=wearer n=1", "user=Some(\"wearer\")", "no user `wearer`", "'wearer' is gone"]
        {
            assert!(names(text, "wearer"), "{text}");
        }
        for text in ["the wearer was told", "wearer", "about=wearers", "\"the wearer\"", "wearer=x", "\"wearer'", ""] {
            assert!(!names(text, "wearer"), "{text}");
        }
        assert!(names("about=ann lee n=1", "ann lee") && !names("about=", ""));
    }

    #[test]
    fn a_name_counts_where_it_stands_alone() {
        for text in ["ann", "about=\"ann\"", "ann was there", "device of ann."] {
            assert!(mentions(text, "ann"), "{text}");
        }
        for text in ["anne", "joann", "", "Ann"] {
            assert!(!mentions(text, "ann"), "{text}");
        }
        assert!(mentions("é ann", "ann") && !mentions("x", "") && !mentions("éann", "ann"));
    }
}
