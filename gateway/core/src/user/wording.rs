//! How a timer or a reminder is announced.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    input::{Announcement, AnnouncementId, AnnouncementVoice},
    vocab::{Content, ScheduleEntry, ScheduleKind},
};

/// Lateness from which on the announcement mentions it.
const LATE_MS: u64 = 60_000;

/// The announcement of an entry that was due `late_ms` ago.
pub(super) fn announcement(entry: &ScheduleEntry, late_ms: u64) -> Announcement {
    let text = entry.kind.text().trim();
    let (title, mut say, mut shown) = match entry.kind {
        ScheduleKind::Timer { name: None } => {
            let duration_ms = entry.duration_ms.unwrap_or(0);
            let say = format!("Your {} timer is done.", length(duration_ms, ""));
            ("Timer", say, length(duration_ms, "s"))
        }
        ScheduleKind::Timer { name: Some(_) } => ("Timer", format!("Your {text} timer is done."), text.to_string()),
        ScheduleKind::Reminder { .. } => ("Reminder", format!("Reminder: {text}."), text.to_string()),
        ScheduleKind::Answer { .. } => ("Missed", format!("This did not reach you: {text}"), text.to_string()),
    };
    if say.ends_with("..") || say.ends_with("!.") || say.ends_with("?.") {
        say.pop();
    }
    if late_ms >= LATE_MS {
        let ago = ago(late_ms);
        let was = if matches!(entry.kind, ScheduleKind::Answer { .. }) { "That was" } else { "It was due" };
        say.push_str(&format!(" {was} {ago} ago."));
        shown.push_str(&format!("\n{ago} ago"));
    }
    let show = Content::Card { title: title.to_string(), text: shown };
    Announcement { id: AnnouncementId::Schedule(entry.id), voice: AnnouncementVoice::Words(say), show: Some(show) }
}

/// "1 hour 30 minute", as used before "timer", or with `plural` "s": "1 hour 30 minutes".
fn length(duration_ms: u64, plural: &str) -> String {
    let seconds = duration_ms.div_ceil(1_000);
    let parts: Vec<String> = [(seconds / 3_600, "hour"), (seconds / 60 % 60, "minute"), (seconds % 60, "second")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}{}", if count == 1 { "" } else { plural }))
        .collect();
    parts.join(" ")
}

/// "1 minute", "3 hours", "2 days": the largest unit only.
fn ago(late_ms: u64) -> String {
    let minutes = late_ms / 60_000;
    let (count, unit) = match minutes {
        0..60 => (minutes, "minute"),
        60..1_440 => (minutes / 60, "hour"),
        _ => (minutes / 1_440, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_display_has_the_length_in_full() {
        for (duration_ms, expected) in [(600_000, "10 minutes"), (3_660_000, "1 hour 1 minute"), (2_000, "2 seconds")] {
            let kind = ScheduleKind::Timer { name: None };
            let entry = ScheduleEntry { id: 7, kind, due_wall_ms: 0, duration_ms: Some(duration_ms) };
            let show = Content::Card { title: "Timer".into(), text: expected.into() };
            assert_eq!(announcement(&entry, 0).show, Some(show));
        }
    }

    #[test]
    fn entries_are_announced_in_words() {
        let timer = |name: &str| ScheduleKind::timer(name.into());
        let reminder = |text: &str| ScheduleKind::Reminder { text: text.into() };
        for (kind, duration_ms, late_ms, expected) in [
            (timer(""), Some(600_000), 0, "Your 10 minute timer is done."),
            (timer(""), Some(5_400_000), 0, "Your 1 hour 30 minute timer is done."),
            (timer(""), Some(61_000), 59_999, "Your 1 minute 1 second timer is done."),
            (timer("pasta"), Some(60_000), 0, "Your pasta timer is done."),
            (timer("pasta"), Some(60_000), 60_000, "Your pasta timer is done. It was due 1 minute ago."),
            (reminder("check the oven"), None, 0, "Reminder: check the oven."),
            (reminder("Really?"), None, 0, "Reminder: Really?"),
            (reminder("call"), None, 7_200_000, "Reminder: call. It was due 2 hours ago."),
            (reminder("call"), None, 172_800_000, "Reminder: call. It was due 2 days ago."),
        ] {
            let entry = ScheduleEntry { id: 7, kind, due_wall_ms: 0, duration_ms };
            assert_eq!(announcement(&entry, late_ms).voice, AnnouncementVoice::Words(expected.into()));
        }
    }
}
