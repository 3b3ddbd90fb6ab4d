//! What of a session outlives the process, so that a device that comes back soon after a restart goes on
//! (PROTOCOL.md, section 9). A row of the store for each device; writes take effect in the order in which they are
//! submitted, so a row is there before the first effect of the turn that it is about.
//!
//! Nothing waits for a row, not even the welcome. Sessions are numbered in the order in which they begin, and their tokens
//! hold the number. A token with a higher number than the device's row is of a session whose row was never written; so
//! none of its intents was either, and whether the glasses are muted, and what is still to be told of a turn, is as in the row
//! before it. Its device still has what it sent, because nothing is acknowledged while a row is on its way to the disk, and
//! sends all of it again. So a row is written only when the device has shown that it has the welcome: until then it asks
//! with the token of the session before it.
//!
//! A row that the store does not take holds nothing up, and one that takes long not for longer than half a second, such as behind the
//! erasure of a user: without acknowledgements the device would soon have to drop what it keeps, and a lost link, which is far
//! more frequent than a restart at such a moment, would end the session. No sound counts as dealt with then.
//!
//! Of a session that cannot be resumed (`limits.resume_s` is 0) the row has only whether the next one begins muted, and is written
//! when that changes.
//!
//! A session has one row on its way to the disk; what changes meanwhile goes with the next one. So a device that changes
//! its state at each frame takes one of the places in the store's queue, not all of them. Only a change that a turn's effects may
//! follow does not wait, because its row has to be before them. Where eight rows are on their way it waits, too: a flood of
//! turns may be without the row of its last one if the process dies.

mod before;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use gateway_core::vocab::{OpenEar, OpenQuestion, absent};
use serde::{Deserialize, Serialize};

pub(super) use self::before::RestoredTurn;
pub(crate) use self::before::{Restored, StoredSessions};
use crate::{
    clock,
    mailbox::{DeviceMessage, Mailbox},
    ports::journal::{self, UnknownCall},
    store::{Kind, Store, Write},
};

/// The stored form of a session: JSON, to which fields are added with a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Row {
    /// SHA-256 of the token; only in rows of a version whose sessions had no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<[u8; 32]>,
    /// Its number; `None` in rows of that version.
    #[serde(default, with = "absent")]
    number: Option<u64>,
    /// It ended for good. The row stays, so that its token is not taken for that of a session without a row.
    #[serde(default)]
    over: bool,
    muted: bool,
    /// A session that the device begins anew begins muted, too; also of one that is over.
    #[serde(default)]
    mute_stays: bool,
    /// A turn is under way.
    turn: bool,
    control_received: u32,
    sound_until_us: u64,
    /// The request of that turn.
    #[serde(default)]
    request: String,
    /// The request of a turn that an earlier restart has cut off, as long as the wearer is still to be told of it, or to be
    /// asked again.
    #[serde(default)]
    cut_off: Option<String>,
    /// The time in which no wake phrase is needed.
    #[serde(default)]
    ear: Option<OpenEar>,
    /// The question that waits for its answer.
    #[serde(default)]
    question: Option<OpenQuestion>,
    /// Capture time at which somebody was certainly speaking to the assistant, last.
    #[serde(default, rename = "called_us")]
    addressed_us: Option<u64>,
    /// Capture time at which the device's stream ended last: what was acknowledged it does not say again.
    #[serde(default)]
    stream_end_us: Option<u64>,
    /// The wake phrase that the device heard last, until the sound with it has been dealt with: once it is acknowledged, the
    /// device does not say it again, and without it nobody would look for a phrase in the sound that comes again.
    #[serde(default)]
    wake: Option<ReportedWake>,
}

/// A wake phrase that the device has heard by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportedWake {
    pub(super) phrase: String,
    /// Capture time of its end.
    pub(super) at_us: u64,
    pub(super) score_permille: u16,
}

impl Row {
    /// What is kept of a session that is over.
    fn of_one_over(&self) -> Self {
        Self { number: self.number, mute_stays: self.mute_stays, over: true, ..Self::default() }
    }
}

/// A session's row, which follows the session: [`store`](Self::store) after each round of its loop.
pub(super) struct StoredSession {
    store: Store,
    user: String,
    device: String,
    number: u64,
    row: Row,
    /// The turn that began last.
    turn: u32,
    /// Calls of which the wearer is still to be told that nobody knows what became of them.
    unknown: Vec<UnknownCall>,
    /// The wearer was told of it, if the device has its welcome.
    is_shown: bool,
    /// The row as it was last submitted; `None`: nothing is to be stored, since the device has no welcome yet, or the session is
    /// over.
    stored: Option<Row>,
    /// The session cannot be resumed: its row is that of one that is over, with whether the next one begins muted.
    is_mute_only: bool,
    /// Effects may follow what has changed.
    is_urgent: bool,
    /// Utterances whose words are awaited, and where each has ended: as many as the core awaits.
    ended: VecDeque<(u32, Option<u64>)>,
    /// Rows on their way to the disk.
    unwritten: Arc<AtomicUsize>,
    /// Since when the disk does not have the row as it is; `None`: it has it.
    unwritten_since_us: Option<u64>,
    /// The last one of them did not get there.
    has_failed: Arc<AtomicBool>,
    /// When it is tried again.
    again_us: u64,
    mailbox: Mailbox,
}

impl StoredSession {
    /// `number`: the session's, above that of each session before it.
    pub(super) fn new(store: Store, user: &str, device: &str, number: u64, mailbox: Mailbox) -> Self {
        let (user, device, row) = (user.to_owned(), device.to_owned(), Row { number: Some(number), ..Row::default() });
        Self {
            store,
            user,
            device,
            number,
            row,
            turn: 0,
            unknown: Vec::new(),
            is_shown: false,
            stored: None,
            is_mute_only: false,
            is_urgent: false,
            ended: VecDeque::new(),
            unwritten: Arc::default(),
            unwritten_since_us: None,
            has_failed: Arc::default(),
            again_us: 0,
            mailbox,
        }
    }

    /// Its number, for its token.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The device has a welcome with a token: from now on the session is stored. Before that the device would ask the next
    /// process for the session before this one, whose row is needed for the answer.
    pub(super) fn keep(&mut self) {
        self.stored.get_or_insert_default();
        if std::mem::take(&mut self.is_shown) {
            self.told();
        }
    }

    /// The session cannot be resumed, but a wearer who has the gateway mute the glasses relies on it also behind a restart.
    /// `stays`: whether it begins muted, as the store has it.
    pub(super) fn keep_mute(&mut self, stays: bool) {
        self.is_mute_only = true;
        self.row.mute_stays = stays;
        self.stored = Some(self.row.of_one_over());
    }

    /// Whether the store has been given this row, as far as it keeps of it.
    fn is_submitted(&self, stored: &Row) -> bool {
        if self.is_mute_only { stored.mute_stays == self.row.mute_stays } else { *stored == self.row }
    }

    /// Whether no row is on its way, and none waits for that: the disk has it, or does not take it.
    fn is_written(&self) -> bool {
        let is_submitted = self.stored.as_ref().is_none_or(|stored| self.is_submitted(stored));
        is_submitted && self.unwritten.load(Ordering::Relaxed) == 0
    }

    /// As of the last [`store`](Self::store), until when nothing is acknowledged that the disk does not have yet; 0: not at all.
    pub(super) fn withheld_until_us(&self) -> u64 {
        let since_us = self.unwritten_since_us.filter(|_| !self.is_written());
        since_us.map_or(0, |since_us| since_us.saturating_add(WITHHELD_US_MAX))
    }

    /// Capture time before which all sound has been dealt with, also for the process behind this one; 0: nothing can be said,
    /// since the disk does not have the row. `come_us`: the end of the sound so far, heard or not; `quiet_us`: the same of what
    /// was heard, if nobody is speaking in it.
    pub(super) fn dealt_with_us(&self, come_us: u64, quiet_us: Option<u64>) -> u64 {
        if self.stored.is_none() || self.has_failed.load(Ordering::Relaxed) || !self.is_written() {
            return 0;
        }
        // Nobody is to hear what glasses send into a muted microphone, nor the process behind this one.
        if self.row.muted {
            return come_us.max(self.row.sound_until_us);
        }
        // Behind the last voice there is nothing to deal with, once its words are.
        let quiet_us = quiet_us.filter(|_| self.ended.is_empty()).unwrap_or(0);
        quiet_us.saturating_sub(ONSET_US_MAX).max(self.row.sound_until_us)
    }

    /// The microphone is muted from now on, or open. The frames up to here have been dealt with: a button may have done it,
    /// and does the opposite if it comes again. So has the sound so far, which ends at `come_us`: to mute is to drop what
    /// was said, and what was said since then was said into a muted microphone.
    pub(super) fn muted(&mut self, muted: bool, control_received: u32, come_us: u64) {
        self.row.muted = muted;
        self.row.control_received = control_received;
        self.dealt_with_until(come_us);
    }

    /// Whether a session that the device begins anew begins muted.
    pub(super) fn mute_stays(&mut self, stays: bool) {
        self.row.mute_stays = stays;
    }

    /// This turn begins, or has another request. The frames up to here have been dealt with.
    pub(super) fn turn(&mut self, turn: u32, request: String, control_received: u32) {
        self.turn = turn;
        self.row.turn = true;
        self.row.request = request;
        self.row.control_received = control_received;
        self.is_urgent = true;
    }

    /// This turn is over. One that was interrupted may wait for its calls, and end after the next one has begun.
    pub(super) fn turn_done(&mut self, turn: u32, control_received: u32) {
        if self.turn == turn {
            self.row.turn = false;
            self.row.request.clear();
        }
        self.row.control_received = control_received;
    }

    /// The restart has cut off a turn with this request, of which the wearer is still to be told, and of these calls.
    pub(super) fn cut_off(&mut self, request: String, unknown: Vec<UnknownCall>) {
        self.row.cut_off = Some(request);
        self.unknown = unknown;
        self.is_urgent = true;
    }

    /// The wearer was told of it, and what is to be asked again is being asked: known once the device has its welcome.
    pub(super) fn told(&mut self) {
        if self.stored.is_none() {
            self.is_shown = true;
        } else {
            self.told_elsewhere();
        }
    }

    /// All of it is told on another device.
    pub(super) fn told_elsewhere(&mut self) {
        self.row.cut_off = None;
        self.is_urgent = true;
        journal::wearer_told(&self.store, &self.user, &std::mem::take(&mut self.unknown));
    }

    /// Whether no turn is under way, and none that was cut off is still to be told.
    pub(super) fn is_settled(&self) -> bool {
        !self.row.turn && self.row.cut_off.is_none()
    }

    /// An utterance has ended here; its words are not known yet.
    pub(super) fn utterance_ended(&mut self, utterance: u32, sound_until_us: Option<u64>) {
        self.ended.push_back((utterance, sound_until_us));
    }

    /// The utterances up to this one have been dealt with.
    pub(super) fn utterances_settled(&mut self, until: u32) {
        while let Some((_, sound_until_us)) = self.ended.pop_front_if(|(utterance, _)| *utterance <= until) {
            self.dealt_with_until(sound_until_us.unwrap_or(0));
        }
    }

    fn dealt_with_until(&mut self, at_us: u64) {
        self.row.sound_until_us = self.row.sound_until_us.max(at_us);
        self.row.wake = self.row.unsettled_wake();
    }

    /// The device has heard this wake phrase; `false`: it repeats the one with which the session began after a restart.
    pub(super) fn wake_told(&mut self, reported: &ReportedWake) -> bool {
        let is_new = self.row.wake.as_ref() != Some(reported);
        if is_new {
            self.row.wake = Some(reported.clone());
        }
        is_new
    }

    pub(super) fn ear(&mut self, ear: Option<OpenEar>) {
        self.row.ear = ear;
    }

    /// Somebody was speaking to the assistant at this capture time, or it does not matter any more (`None`).
    pub(super) fn addressed(&mut self, at_us: Option<u64>) {
        self.row.addressed_us = at_us;
    }

    /// A stream of the device has ended at this capture time.
    pub(super) fn stream_ended(&mut self, at_us: Option<u64>) {
        self.row.stream_end_us = at_us;
    }

    pub(super) fn question(&mut self, question: Option<OpenQuestion>) {
        self.row.question = question;
        self.is_urgent = true;
    }

    /// Stores what has changed, and from time to time what could not be stored; while a row is on its way, only what is urgent.
    /// [`DeviceMessage::Stored`] tells the session that the rest can go.
    pub(super) fn store(&mut self) {
        let places = if self.is_urgent { UNWRITTEN_MAX } else { 1 };
        if self.unwritten.load(Ordering::Relaxed) < places {
            self.submit_row();
        }
        let since_us = self.unwritten_since_us;
        self.unwritten_since_us = (!self.is_written()).then(|| since_us.unwrap_or_else(clock::mono_us));
    }

    fn submit_row(&mut self) {
        self.is_urgent = false;
        let now_us = clock::mono_us();
        let is_late = self.has_failed.load(Ordering::Relaxed) && now_us >= self.again_us;
        if self.stored.as_ref().is_none_or(|stored| !is_late && self.is_submitted(stored)) {
            return;
        }
        let row = if self.is_mute_only { self.row.of_one_over() } else { self.row.clone() };
        self.again_us = now_us.saturating_add(AGAIN_US);
        let (kind, owner, key) = (Kind::DeviceSessions, self.user.clone(), self.device.clone().into_bytes());
        let value = serde_json::to_vec(&row).unwrap_or_default();
        self.stored = Some(row);
        self.submit(Write::PutRow { kind, owner, key, value });
    }

    /// The process stops: what the session was doing stays as it is.
    pub(super) fn freeze(&mut self) {
        self.submit_row();
        self.stored = None;
    }

    /// The session is over for good.
    pub(super) fn end(&mut self) {
        self.row = self.row.of_one_over();
        self.submit_row();
        self.stored = None;
    }

    fn submit(&self, write: Write) {
        let failed =
            |error| tracing::debug!(%error, "a session's state was not stored: it would not survive a restart");
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        let (unwritten, has_failed) = (self.unwritten.clone(), self.has_failed.clone());
        let mailbox = self.mailbox.clone();
        let submitted = self.store.submit(write, move |written| {
            has_failed.store(written.is_err(), Ordering::Relaxed);
            unwritten.fetch_sub(1, Ordering::Relaxed);
            if let Err(error) = written {
                failed(error);
            }
            // Only wakes the session: one with so much to read is awake.
            drop(mailbox.try_send(DeviceMessage::Stored));
        });
        if let Err(error) = submitted {
            self.has_failed.store(true, Ordering::Relaxed);
            self.unwritten.fetch_sub(1, Ordering::Relaxed);
            failed(error);
        }
    }
}

/// How long a voice may have lasted before an utterance is open: a detector takes a few tenths of a second, and a phrase that is said
/// softly at first is noticed late.
const ONSET_US_MAX: u64 = 2_000_000;
/// How long acknowledgements wait for a row. A disk commits in a few hundredths of a second; and with the 400 ms between two of
/// them this is less than the second after which a device looks for another way.
const WITHHELD_US_MAX: u64 = 500_000;
/// Rows of one session on their way to the disk, with those that are urgent: more than a wearer begins turns in while a disk commits.
const UNWRITTEN_MAX: usize = 8;
/// After this time a row that could not be stored is tried again: the disk may be full or read-only for long.
const AGAIN_US: u64 = 1_000_000;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod row_tests;

#[cfg(test)]
mod untold_tests;
