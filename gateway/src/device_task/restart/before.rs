//! The sessions of the process before this one, and what a new session goes on with.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use device_protocol::{down::Continued, up::ResumeOwned};
use gateway_core::vocab::{OpenEar, OpenQuestion};
use sha2::{Digest as _, Sha256};
use tools::journal::LeftQuestion;

use super::{ReportedWake, Row};
use crate::{
    clock,
    device_task::tokens::number_of,
    ports::journal::{Left, UnknownCall},
    store::{self, Kind, Store, Write},
};

/// Devices of one user that are read: more than a user has, forgotten browsers included.
const DEVICES_MAX: usize = 1_024;

/// What a new session goes on with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restored {
    pub(in crate::device_task) continued: Continued,
    pub(in crate::device_task) muted: bool,
    pub(in crate::device_task) ear: Option<OpenEar>,
    pub(in crate::device_task) question: Option<OpenQuestion>,
    /// Capture time at which somebody was speaking to the assistant whose words were not dealt with.
    pub(in crate::device_task) addressed_us: Option<u64>,
    /// Capture time at which the device's stream ended last.
    pub(in crate::device_task) stream_end_us: Option<u64>,
    /// The wake phrase that the device has heard in sound that was not dealt with.
    pub(in crate::device_task) wake: Option<ReportedWake>,
    /// The turn that was cut off, if the wearer is still to be told.
    pub(in crate::device_task) turn: Option<RestoredTurn>,
}

/// What is known of a turn that was cut off, or of one that had ended before its calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::device_task) struct RestoredTurn {
    /// Empty: it had ended.
    pub(in crate::device_task) request: String,
    /// Calls of its user that were begun and whose outcome is unknown.
    pub(in crate::device_task) unknown: Vec<UnknownCall>,
    /// Calls about which the wearer was being asked.
    pub(in crate::device_task) asked: Vec<LeftQuestion>,
}

/// The sessions of the process before this one.
#[derive(Default)]
pub(crate) struct StoredSessions {
    pub(super) until_us: u64,
    /// Number of the last session.
    last: AtomicU64,
    open: Mutex<Open>,
}

/// What is left of them.
#[derive(Default)]
struct Open {
    /// By device: the user and the row of its last session.
    sessions: BTreeMap<String, (String, Row)>,
    /// Calls that were open; each goes to one device.
    left: Left,
    /// Turns with which devices go on that have not shown yet that they have the welcome, with their users. It may be lost on its
    /// way, and they ask again.
    given: BTreeMap<String, (String, RestoredTurn)>,
    /// Devices, with their users, for which nothing is left: they have a welcome of this process and ask for sessions of its own, or
    /// their user was erased.
    back: BTreeSet<(String, String)>,
    /// Devices, with their users, whose next session begins muted: no more than were paired.
    muted: BTreeSet<(String, String)>,
    /// The time in which devices come back to their sessions is over, and what is left of them was handed out.
    is_over: bool,
}

impl Row {
    /// Whether this is the row of a session with this token that may go on.
    fn is_of(&self, number: Option<u64>, token: &[u8]) -> bool {
        let same = match self.token {
            Some(digest) => number.is_none() && digest == <[u8; 32]>::from(Sha256::digest(token)),
            // Whichever of its tokens it is: the last one may have been lost on its way.
            None => number.is_some() && number == self.number,
        };
        same && !self.over
    }

    /// The request of a turn of which the wearer is still to be told.
    fn untold_request(&self) -> Option<&String> {
        // What waited for consent is of the earlier one.
        self.cut_off.as_ref().or(self.turn.then_some(&self.request))
    }

    /// When somebody was speaking to the assistant, unless that was dealt with.
    fn unsettled_addressed_us(&self) -> Option<u64> {
        self.addressed_us.filter(|at_us| *at_us > self.sound_until_us)
    }

    /// The wake phrase that the device heard last, unless its sound was dealt with.
    pub(super) fn unsettled_wake(&self) -> Option<ReportedWake> {
        self.wake.clone().filter(|wake| wake.at_us > self.sound_until_us)
    }
}

impl StoredSessions {
    /// The number of a new session.
    pub(in crate::device_task) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Reads what the process before this one has left, which is good for `resume_ms` from now on. `left`: its calls
    /// that were open. Of users whose erasure is still to be finished, no session goes on where it was.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn read(store: &Store, resume_ms: u32, left: Left) -> Result<Self, store::Error> {
        let (mut sessions, mut muted, mut last) = (BTreeMap::new(), BTreeSet::new(), 0);
        for user in store.disk().owners(Kind::DeviceSessions)? {
            let rows = store.disk().rows(Kind::DeviceSessions, &user, b"", DEVICES_MAX)?;
            let rows: BTreeMap<_, _> = rows.into_iter().collect();
            for key in store.disk().keys(Kind::DeviceSessions, &user, DEVICES_MAX)? {
                let row = rows.get(&key).and_then(|value| serde_json::from_slice::<Row>(value).ok());
                last = row.as_ref().and_then(|row| row.number).map_or(last, |number| number.max(last));
                let Some(device) = String::from_utf8(key).ok().filter(|_| !store.is_barred(&user)) else { continue };
                // One that cannot be read: nobody knows what has been dealt with.
                let row = row.unwrap_or(Row { number: Some(u64::MAX), over: true, ..Row::default() });
                if row.mute_stays {
                    muted.insert((device.clone(), user.clone()));
                }
                // Paired anew for another user, a device has a row of each of them.
                if sessions.get(&device).is_none_or(|(_, other): &(String, Row)| other.number < row.number) {
                    sessions.insert(device, (user.clone(), row));
                }
            }
        }
        let until_us = clock::mono_us() + u64::from(resume_ms) * 1_000;
        Ok(Self { until_us, last: last.into(), open: Mutex::new(Open { sessions, left, muted, ..Open::default() }) })
    }

    /// What is left of the session that this device asks for.
    pub(in crate::device_task) fn take(&self, device: &str, user: &str, resume: &ResumeOwned) -> Option<Restored> {
        let mut open = self.open();
        if self.left_us() == 0 || open.is_over || open.is_back(device, user) {
            return None;
        }
        let number = number_of(&resume.token);
        let row = match open.sessions.get(device) {
            Some((owner, _)) if owner != user => return None,
            // Its own row was never written: the one of the session before it still says how things stand, and nothing of
            // what it was sent has been dealt with. One with a number came after those without.
            Some((_, row)) if number > row.number => Row {
                addressed_us: row.unsettled_addressed_us(),
                wake: row.unsettled_wake(),
                control_received: 0,
                sound_until_us: 0,
                ..row.clone()
            },
            Some((_, row)) if row.is_of(number, &resume.token) => row.clone(),
            None if number.is_some() => Row::default(),
            _ => return None,
        };
        let request = row.untold_request().cloned();
        let addressed_us = row.unsettled_addressed_us().filter(|_| request.is_none());
        let wake = row.unsettled_wake();
        let Row { muted, control_received, sound_until_us, ear, question, stream_end_us, .. } = row;
        Some(Restored {
            continued: Continued { control_received, sound_until_us },
            muted,
            ear,
            question,
            addressed_us,
            stream_end_us,
            wake,
            turn: open.turn(device, user, request),
        })
    }

    /// What is left to be told to the user of this device, which begins a session that does not go on with its last one. It is left
    /// for nobody any more.
    pub(in crate::device_task) fn give_up(&self, device: &str, user: &str) -> Option<RestoredTurn> {
        let mut open = self.open();
        if open.is_back(device, user) || (open.is_over && !open.is_given(device, user)) {
            return None;
        }
        let row = open.sessions.get(device).filter(|(owner, _)| owner == user);
        let request = row.and_then(|(_, row)| row.untold_request().cloned());
        let left = open.turn(device, user, request);
        open.told(device, user);
        left
    }

    /// Whether a session of this device was given what is left, and its welcome has not arrived.
    pub(in crate::device_task) fn is_left_for(&self, device: &str, user: &str) -> bool {
        self.open().is_given(device, user)
    }

    /// What was left of a turn of this device was told, on it or elsewhere.
    pub(in crate::device_task) fn told(&self, device: &str, user: &str) {
        self.open().told(device, user);
    }

    /// For how long devices may still come back to their sessions, in microseconds.
    pub(in crate::device_task) fn left_us(&self) -> u64 {
        self.until_us.saturating_sub(clock::mono_us())
    }

    /// No device comes back any more: their sessions are over, also for the next process. What is left to be told, by user; a device
    /// that has a session tells what that was given.
    pub(in crate::device_task) fn expire(
        &self,
        store: &Store,
        has_session: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, RestoredTurn> {
        let mut open = self.open();
        let muted = std::mem::take(&mut open.muted);
        let Open { sessions, left, given, back, .. } =
            std::mem::replace(&mut *open, Open { muted, is_over: true, ..Open::default() });
        let Left { unknown, mut asked } = left;
        let mut untold: BTreeMap<String, RestoredTurn> = BTreeMap::new();
        // A session of this process has its row, and what it was given to tell. One that never came to be has told nothing.
        let (kept, given): (BTreeMap<_, _>, BTreeMap<_, _>) =
            given.into_iter().partition(|(device, _)| has_session(device));
        open.given = kept;
        for (user, turn) in given.into_values() {
            let told = untold.entry(user).or_default();
            told.unknown.extend(turn.unknown);
            told.asked.extend(turn.asked);
        }
        for (device, (user, row)) in sessions {
            let of_user = (device, user);
            if row.over || back.contains(&of_user) || open.is_given(&of_user.0, &of_user.1) {
                continue;
            }
            let (device, user) = of_user;
            if row.untold_request().is_some() {
                let questions = asked.remove(&(user.clone(), device.clone())).unwrap_or_default();
                untold.entry(user.clone()).or_default().asked.extend(questions);
            }
            let value = serde_json::to_vec(&row.of_one_over()).unwrap_or_default();
            let row = Write::PutRow { kind: Kind::DeviceSessions, owner: user, key: device.into_bytes(), value };
            drop(store.submit(row, |_| {}));
        }
        for (user, unknown) in unknown {
            untold.entry(user).or_default().unknown.extend(unknown);
        }
        untold
    }

    /// The device has the welcome of a session of this process, with which it goes on or begins anew.
    pub(in crate::device_task) fn welcome_arrived(&self, device: &str, user: &str) {
        let mut open = self.open();
        open.given.remove(device);
        if !open.is_over {
            open.back.insert((device.to_owned(), user.to_owned()));
        }
    }

    /// Whether the gateway is to mute this device of this user in a session that it begins anew, as in the last one.
    pub(in crate::device_task) fn stays_muted(&self, device: &str, user: &str) -> bool {
        self.open().muted.contains(&(device.to_owned(), user.to_owned()))
    }

    /// Sets that, for the sessions of this process; a row has it for those of the next one.
    pub(in crate::device_task) fn mute_stays(&self, device: &str, user: &str, stays: bool) {
        let (mut open, device) = (self.open(), (device.to_owned(), user.to_owned()));
        if stays {
            open.muted.insert(device);
        } else {
            open.muted.remove(&device);
        }
    }

    /// This user was erased: no session goes on where it was.
    pub(crate) fn erase(&self, user: &str) {
        let mut open = self.open();
        let Open { sessions, left, given, back, muted, .. } = &mut *open;
        muted.retain(|(_, owner)| owner.as_str() != user);
        given.retain(|_, (owner, _)| owner.as_str() != user);
        sessions.retain(|device, (owner, _)| {
            let stays = owner.as_str() != user;
            if !stays {
                back.insert((device.clone(), owner.clone()));
            }
            stays
        });
        left.unknown.remove(user);
        left.asked.retain(|(owner, _), _| owner.as_str() != user);
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// What this device is to tell its user: that a turn with this request was cut off, and calls of which nobody knows what became
    /// of them, also where no turn was. The records of its questions stay until they are answered, or given up.
    fn turn(&mut self, device: &str, user: &str, request: Option<String>) -> Option<RestoredTurn> {
        if let Some((_, given)) = self.given.get(device).filter(|(owner, _)| owner == user) {
            return Some(given.clone());
        }
        let is_cut_off = |other: &String, row: &Row| row.untold_request().is_some() && !self.is_back(other, user);
        let mut others = self.sessions.iter().filter(|(other, (owner, _))| *other != device && owner == user);
        // Who hears of a turn on another device hears of its calls there.
        let is_elsewhere = request.is_none() && others.any(|(other, (_, row))| is_cut_off(other, row));
        let unknown = if is_elsewhere { None } else { self.left.unknown.remove(user) };
        let unknown = unknown.unwrap_or_default();
        if request.is_none() && unknown.is_empty() {
            return None;
        }
        let questions = (user.to_owned(), device.to_owned());
        let asked = request.as_ref().and_then(|_| self.left.asked.remove(&questions)).unwrap_or_default();
        let turn = RestoredTurn { request: request.unwrap_or_default(), unknown, asked };
        self.given.insert(device.to_owned(), (user.to_owned(), turn.clone()));
        Some(turn)
    }

    fn told(&mut self, device: &str, user: &str) {
        if self.is_given(device, user) {
            self.given.remove(device);
        }
        if let Some((_, row)) = self.sessions.get_mut(device).filter(|(owner, _)| owner == user) {
            (row.turn, row.cut_off) = (false, None);
        }
    }

    fn is_given(&self, device: &str, user: &str) -> bool {
        self.given.get(device).is_some_and(|(owner, _)| owner == user)
    }

    fn is_back(&self, device: &str, user: &str) -> bool {
        self.back.contains(&(device.to_owned(), user.to_owned()))
    }
}
