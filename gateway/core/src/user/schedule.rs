//! Timers and reminders: stored before they are confirmed, announced until they are heard, never twice.
//!
//! A timer runs on the monotonic clock, a reminder on the wall clock. Both may be overdue after a restart; then they
//! are announced at once, with their lateness.

use alloc::{string::String, vec::Vec};
use core::mem;

use crate::{
    input::RunningTimer,
    limits::{SCHEDULE_ENTRIES_MAX, SCHEDULE_TEXT_CHARS_MAX},
    vocab::{Due, OpenEntry, ScheduleEntry, ScheduleKind, Timestamp},
};

/// Longest wait while a reminder is pending: a jump of the wall clock is noticed within this time.
const WALL_CHECK_MS: i64 = 30_000;
/// A shift between the clocks of at least this much is a jump of the wall clock; less is a slow correction.
const JUMP_MS: i64 = 5_000;
/// Time between two attempts to remove a heard entry from the store.
const REMOVE_RETRY_US: u64 = 30_000_000;
/// Age at which an answer that nobody heard is no longer told.
const ANSWER_STALE_MS: u64 = 3_600_000;
/// Attempts to remove a heard entry from the store. If all fail, it is announced once more after a restart.
const REMOVE_TRIES_MAX: u8 = 10;

/// An entry and its state.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: ScheduleEntry,
    /// When it is due, monotonic, if it was set for a time from then on; `None`: the wall clock decides.
    deadline_us: Option<u64>,
    /// When it is due at the latest, monotonic, where the wall clock decides and may have gone back.
    latest_us: Option<u64>,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// Not stored yet.
    Adding {
        /// Who waits for that, if anybody does.
        request: Option<u64>,
        ticket: u64,
    },
    /// Stored and not due yet.
    Armed,
    /// Due and not heard yet.
    Ringing(Ringing),
    /// To be removed for the wearer; the store has not removed it yet. If that fails, it returns to its former state.
    Removing { request: u64, ticket: u64, ringing: Option<Ringing> },
    /// Heard; the store has not removed it yet.
    Heard { ticket: Option<u64>, retry_us: u64, tries: u8 },
}

/// State of an entry that is due.
#[derive(Clone, Debug)]
pub(super) struct Ringing {
    since_us: u64,
    late_ms: u64,
    /// The device that is announcing it, and until when that may take.
    pub(super) offered: Option<(String, u64)>,
    /// Devices that could not announce it.
    pub(super) tried: Vec<String>,
    /// When all devices are tried again.
    pub(super) again_us: Option<u64>,
}

impl Ringing {
    /// The device that is announcing it.
    pub(super) fn offered_to(&self) -> Option<&str> {
        self.offered.as_ref().map(|(device, _)| device.as_str())
    }

    /// How late it is now, in milliseconds.
    pub(super) fn late_ms(&self, now: Timestamp) -> u64 {
        self.late_ms.saturating_add(now.mono_us.saturating_sub(self.since_us) / 1_000)
    }
}

/// An extension of a timer, which counts already and is not stored yet.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) request: u64,
    pub(super) ticket: u64,
    pub(super) id: u64,
    more_ms: u64,
    /// Its state before, if it rang.
    rang: Option<Ringing>,
}

impl Extension {
    /// The device that was telling that the timer is over.
    pub(super) fn offered(&self) -> Option<&str> {
        self.rang.as_ref()?.offered_to()
    }
}

#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) items: Vec<Item>,
    extensions: Vec<Extension>,
    /// Wall minus monotonic time, in milliseconds, at the last check.
    shift_ms: Option<i64>,
}

impl Schedule {
    /// Takes over the stored entries. The expected end counts, but what is left of an entry with a duration never exceeds
    /// that: the wall clock may have gone back meanwhile. A reminder still rings earlier if the clock is set right later.
    pub(super) fn restore(&mut self, now: Timestamp, entries: Vec<ScheduleEntry>) {
        for entry in entries.into_iter().take(SCHEDULE_ENTRIES_MAX) {
            let deadline_us = entry.kind.is_timer().then(|| {
                let left_ms = entry.due_wall_ms.saturating_sub(now.wall_ms).max(0);
                let left_ms = u64::try_from(left_ms).unwrap_or(0).min(entry.duration_ms.unwrap_or(u64::MAX));
                after(now, left_ms)
            });
            let latest_us = entry.duration_ms.filter(|_| deadline_us.is_none()).map(|length_ms| after(now, length_ms));
            self.items.push(Item { entry, deadline_us, latest_us, state: State::Armed });
        }
    }

    /// Adds an entry, which is not stored yet. The error is a reason for the caller.
    pub(super) fn add(
        &mut self,
        now: Timestamp,
        id: u64,
        due: Due,
        kind: ScheduleKind,
        (request, ticket): (Option<u64>, u64),
    ) -> Result<ScheduleEntry, &'static str> {
        if self.items.len() >= SCHEDULE_ENTRIES_MAX {
            return Err("there are too many timers and reminders; remove some first");
        }
        let (due_wall_ms, duration_ms, deadline_us) = match due {
            Due::In { duration_ms } => (
                now.wall_ms.saturating_add(i64::try_from(duration_ms).unwrap_or(i64::MAX)),
                Some(duration_ms),
                Some(after(now, duration_ms)),
            ),
            Due::At { wall_ms } => (wall_ms, None, None),
        };
        let cut = |text: String| text.chars().take(SCHEDULE_TEXT_CHARS_MAX).collect::<String>();
        let kind = match kind {
            ScheduleKind::Timer { name } => ScheduleKind::Timer { name: name.map(cut) },
            ScheduleKind::Reminder { text } => ScheduleKind::Reminder { text: cut(text) },
            ScheduleKind::Answer { text } => ScheduleKind::Answer { text: cut(text) },
        };
        let entry = ScheduleEntry { id, kind, due_wall_ms, duration_ms };
        let state = State::Adding { request, ticket };
        self.items.push(Item { entry: entry.clone(), deadline_us, latest_us: None, state });
        Ok(entry)
    }

    /// Entries that are pending or ringing.
    pub(super) fn open(&self, now: Timestamp) -> Vec<OpenEntry> {
        let open = |item: &&Item| matches!(item.state, State::Armed | State::Ringing(_));
        let left_ms = |at_us: u64| at_us.saturating_sub(now.mono_us) / 1_000;
        let as_it_is = |item: &Item| OpenEntry { entry: item.entry.clone(), left_ms: item.deadline_us.map(left_ms) };
        self.items.iter().filter(open).map(as_it_is).collect()
    }

    /// Whether all entries are as the store has them, and no device is telling one.
    pub(super) fn is_stored(&self) -> bool {
        let is_stored = |item: &Item| match &item.state {
            State::Armed => true,
            State::Ringing(ringing) => ringing.offered.is_none(),
            State::Adding { .. } | State::Removing { .. } | State::Heard { .. } => false,
        };
        self.extensions.is_empty() && self.items.iter().all(is_stored)
    }

    /// Timers that count down, without those that are being stored, announced or removed.
    pub(super) fn running(&self) -> Vec<RunningTimer> {
        let armed = self.items.iter().filter(|item| matches!(item.state, State::Armed));
        let running = |item: &Item| match &item.entry.kind {
            ScheduleKind::Timer { name } => Some(RunningTimer { name: name.clone(), due_us: item.deadline_us? }),
            ScheduleKind::Reminder { .. } | ScheduleKind::Answer { .. } => None,
        };
        armed.filter_map(running).collect()
    }

    /// Extends a timer that counts down or rings. It stays what it is for everybody else meanwhile, so that it can be
    /// removed. `None`: there is no such timer.
    pub(super) fn extend(
        &mut self,
        now: Timestamp,
        id: u64,
        more_ms: u64,
        (request, ticket): (u64, u64),
    ) -> Option<ScheduleEntry> {
        let item = self.get(id).filter(|item| matches!(item.state, State::Armed | State::Ringing(_)))?;
        let left_us = item.deadline_us?.saturating_sub(now.mono_us);
        item.lasts(now, (left_us / 1_000).saturating_add(more_ms));
        item.entry.duration_ms = item.entry.duration_ms.map(|length| length.saturating_add(more_ms));
        let rang = match mem::replace(&mut item.state, State::Armed) {
            State::Ringing(ringing) => Some(ringing),
            _ => None,
        };
        let entry = item.entry.clone();
        self.extensions.push(Extension { request, ticket, id, more_ms, rang });
        Some(entry)
    }

    /// The extension that has this ticket, which is decided now.
    pub(super) fn take_extension(&mut self, ticket: u64) -> Option<Extension> {
        let index = self.extensions.iter().position(|extension| extension.ticket == ticket)?;
        Some(self.extensions.remove(index))
    }

    /// Takes an extension back that was not stored: the timer ends sooner again, or rings as before.
    pub(super) fn take_back(&mut self, now: Timestamp, extension: Extension) {
        let Some(item) = self.get(extension.id) else { return };
        let left_us = item.deadline_us.unwrap_or(0).saturating_sub(now.mono_us);
        item.lasts(now, (left_us / 1_000).saturating_sub(extension.more_ms));
        item.entry.duration_ms = item.entry.duration_ms.map(|length| length.saturating_sub(extension.more_ms));
        if let (State::Armed, Some(ringing)) = (&item.state, extension.rang) {
            item.state = State::Ringing(ringing);
        }
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.entry.id == id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<ScheduleEntry> {
        let index = self.items.iter().position(|item| item.entry.id == id)?;
        Some(self.items.remove(index).entry)
    }

    /// Makes due entries ring.
    pub(super) fn ring(&mut self, now: Timestamp) {
        for item in &mut self.items {
            if matches!(item.state, State::Armed)
                && let Some(late_ms) = item.late_ms(now)
            {
                item.state = State::Ringing(Ringing {
                    since_us: now.mono_us,
                    late_ms,
                    offered: None,
                    tried: Vec::new(),
                    again_us: None,
                });
            }
        }
    }

    /// The next deadline, monotonic.
    pub(super) fn deadline(&self, now: Timestamp) -> Option<u64> {
        self.items
            .iter()
            .filter_map(|item| match &item.state {
                State::Armed => Some(item.deadline_us.unwrap_or_else(|| {
                    let left_ms = item.entry.due_wall_ms.saturating_sub(now.wall_ms);
                    let by_wall_us = after(now, u64::try_from(left_ms.clamp(0, WALL_CHECK_MS)).unwrap_or(0));
                    by_wall_us.min(item.latest_us.unwrap_or(u64::MAX))
                })),
                State::Ringing(ringing) => match &ringing.offered {
                    Some((_, until_us)) => Some(*until_us),
                    None => ringing.again_us,
                },
                State::Heard { ticket: None, retry_us, tries } if *tries < REMOVE_TRIES_MAX => Some(*retry_us),
                _ => None,
            })
            .min()
    }

    /// Corrects the wall-clock ends of timers after a jump of the clock and returns these timers: after a restart the
    /// wall clock decides.
    pub(super) fn corrected(&mut self, now: Timestamp) -> Vec<ScheduleEntry> {
        let mono_ms = i64::try_from(now.mono_us / 1_000).unwrap_or(i64::MAX);
        let shift_ms = now.wall_ms.saturating_sub(mono_ms);
        let before_ms = *self.shift_ms.get_or_insert(shift_ms);
        if shift_ms.saturating_sub(before_ms).saturating_abs() < JUMP_MS {
            return Vec::new();
        }
        self.shift_ms = Some(shift_ms);
        let mut corrected = Vec::new();
        for item in &mut self.items {
            if let (State::Armed, Some(deadline_us)) = (&item.state, item.deadline_us) {
                let left_us = deadline_us.saturating_sub(now.mono_us);
                let left_ms = i64::try_from(left_us / 1_000).unwrap_or(i64::MAX);
                item.entry.due_wall_ms = now.wall_ms.saturating_add(left_ms);
                corrected.push(item.entry.clone());
            }
        }
        corrected
    }
}

impl Item {
    /// Makes a timer end after this time.
    fn lasts(&mut self, now: Timestamp, left_ms: u64) {
        self.deadline_us = Some(after(now, left_ms));
        self.entry.due_wall_ms = now.wall_ms.saturating_add(i64::try_from(left_ms).unwrap_or(i64::MAX));
    }

    /// How late it is, in milliseconds; `None`: not due.
    fn late_ms(&self, now: Timestamp) -> Option<u64> {
        let by_wall_ms = now.wall_ms.saturating_sub(self.entry.due_wall_ms);
        match self.deadline_us {
            Some(deadline_us) if deadline_us > now.mono_us => None,
            // A timer that ended while the gateway was off: only the wall clock gives its lateness.
            Some(deadline_us) if now.mono_us == deadline_us => Some(u64::try_from(by_wall_ms).unwrap_or(0)),
            Some(deadline_us) => Some((now.mono_us - deadline_us) / 1_000),
            None if self.latest_us.is_some_and(|latest_us| latest_us <= now.mono_us) => {
                Some(u64::try_from(by_wall_ms).unwrap_or(0))
            }
            None => u64::try_from(by_wall_ms).ok(),
        }
    }

    /// Whether it is an answer that is too old to be told, and that no device is telling.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        matches!((&self.entry.kind, &self.state), (ScheduleKind::Answer { .. }, State::Ringing(ringing))
            if ringing.offered.is_none() && ringing.late_ms(now) >= ANSWER_STALE_MS)
    }

    /// It was heard; the store is asked, with this ticket, to remove it.
    pub(super) fn heard(&mut self, ticket: u64) {
        let tries = match self.state {
            State::Heard { tries, .. } => tries.saturating_add(1),
            _ => 1,
        };
        self.state = State::Heard { ticket: Some(ticket), retry_us: 0, tries };
    }

    /// The store could not remove it.
    pub(super) fn removal_failed(&mut self, now: Timestamp) {
        if let State::Heard { ticket, retry_us, .. } = &mut self.state {
            *ticket = None;
            *retry_us = now.mono_us.saturating_add(REMOVE_RETRY_US);
        }
    }

    /// Whether another attempt to remove it is due.
    pub(super) fn wants_removal(&self, now: Timestamp) -> bool {
        matches!(self.state, State::Heard { ticket: None, retry_us, tries }
            if retry_us <= now.mono_us && tries < REMOVE_TRIES_MAX)
    }
}

fn after(now: Timestamp, delay_ms: u64) -> u64 {
    now.mono_us.saturating_add(delay_ms.saturating_mul(1_000))
}
