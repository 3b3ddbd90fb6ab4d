//! Running timers, for a display that nothing else uses: the one that is due next, with its remaining time.

use alloc::{format, string::String, vec::Vec};

use super::Standing;
use crate::{
    input::RunningTimer,
    vocab::{Content, Priority},
};

#[derive(Debug, Default)]
pub(super) struct Timers {
    running: Vec<RunningTimer>,
    /// The last title and due time, and their number.
    stood: Option<(String, u64, u64)>,
}

impl Timers {
    pub(super) fn set(&mut self, running: Vec<RunningTimer>) {
        self.running = running;
    }

    fn first(&self, now_us: u64) -> Option<&RunningTimer> {
        self.running.iter().filter(|timer| timer.due_us > now_us).min_by_key(|timer| timer.due_us)
    }

    /// The countdown of the timer that is due next; `serial` is incremented if it differs from the last one.
    pub(super) fn standing(&mut self, now_us: u64, serial: &mut u64) -> Option<Standing> {
        let RunningTimer { name, due_us } = self.first(now_us)?;
        let more = self.running.iter().filter(|timer| timer.due_us > now_us).count() - 1;
        let (title, due_us) = (title(name.as_deref(), more), *due_us);
        let known = self.stood.as_ref().filter(|(stood, due, _)| *stood == title && *due == due_us);
        let number = match known {
            Some((.., number)) => *number,
            None => {
                *serial += 1;
                self.stood = Some((title.clone(), due_us, *serial));
                *serial
            }
        };
        let left_ms = u32::try_from((due_us - now_us).div_ceil(1_000)).unwrap_or(u32::MAX);
        Some(Standing {
            serial: number,
            priority: Priority::Timer,
            content: Content::Countdown { title, left_ms },
            since_us: now_us,
            ends_us: Some(due_us),
        })
    }

    /// When the next one is due, monotonic.
    pub(super) fn poll_timeout(&self, now_us: u64) -> Option<u64> {
        self.first(now_us).map(|timer| timer.due_us)
    }
}

/// "Timer", "Pasta timer", "Pasta timer +2".
fn title(name: Option<&str>, more: usize) -> String {
    let mut letters = name.unwrap_or_default().trim().chars();
    let mut title = match letters.next() {
        None => String::from("Timer"),
        Some(first) => format!("{}{} timer", first.to_uppercase(), letters.as_str()),
    };
    if more > 0 {
        title.push_str(&format!(" +{more}"));
    }
    title
}
