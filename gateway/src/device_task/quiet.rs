//! The section `[quiet_hours]`.

use gateway_core::{conversation, vocab::QuietHours};
use serde::Deserialize;
use toml::Spanned;

use crate::problems::{Problems, unwritten};

/// `[quiet_hours]` as configured: times of day such as 22:00.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawQuietHours {
    from: Spanned<String>,
    to: Spanned<String>,
}

impl Default for RawQuietHours {
    fn default() -> Self {
        Self { from: unwritten(String::new()), to: unwritten(String::new()) }
    }
}

impl RawQuietHours {
    /// Checks the section; the setting goes into `conversation`.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, conversation: &mut conversation::Config) {
        if self.from.get_ref().is_empty() && self.to.get_ref().is_empty() {
            return;
        }
        let mut minute = |time: &Spanned<String>, key: &str| {
            let minute = minute_of_day(time.get_ref());
            if minute.is_none() {
                let what =
                    format!("`quiet_hours.{key}` is `{}`; it must be a time of day such as 22:00", time.get_ref());
                problems.at(time.span(), what);
            }
            minute
        };
        if let (Some(from_minute), Some(to_minute)) = (minute(&self.from, "from"), minute(&self.to, "to")) {
            if from_minute == to_minute {
                problems.at(self.to.span(), "`quiet_hours` begin and end at the same time");
            }
            conversation.quiet_hours = Some(QuietHours { from_minute, to_minute });
        }
    }
}

fn minute_of_day(time: &str) -> Option<u16> {
    let (hour, minute) = time.split_once(':')?;
    let is_number = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| is_number(text).then(|| text.parse::<u16>().ok()).flatten();
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::QuietHours;

    use crate::config::check;

    #[test]
    fn hours_are_times_of_day_and_both_or_none() {
        let hours = |from: &str, to: &str| {
            check(&format!("[quiet_hours]\nfrom = \"{from}\"\nto = \"{to}\"\n"), "x.toml")
                .map(|config| config.conversation.quiet_hours)
        };
        assert_eq!(hours("22:00", "07:30").unwrap(), Some(QuietHours { from_minute: 1_320, to_minute: 450 }));
        assert_eq!(hours("", "").unwrap(), None);
        for (from, to, line) in [
            ("22:00", "", 3),
            ("24:00", "07:00", 2),
            ("22:60", "07:00", 2),
            ("7:00", "08:00", 2),
            ("+1:00", "08:00", 2),
        ] {
            let problems = hours(from, to).unwrap_err();
            assert!(
                problems[0].line == Some(line) && problems[0].what.contains("time of day"),
                "{from}, {to}: {problems:?}"
            );
        }
        assert!(hours("07:00", "07:00").unwrap_err()[0].what.contains("same time"));
    }
}
