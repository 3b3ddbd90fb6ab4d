//! What of a session outlives the process, so that a device that comes back soon after a restart goes on
//! (PROTOCOL.md, section 9). A row of the store for each device; writes take effect in the order in which they are
//! submitted, so a row is there before the first effect of the turn that it is about.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use device_protocol::{down::Continued, up::ResumeOwned};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    clock,
    store::{self, Kind, Store, Write},
};

/// The stored form of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    /// SHA-256 of the token: who reads the store cannot use it.
    token: [u8; 32],
    muted: bool,
    /// A turn is under way.
    turn: bool,
    control_received: u32,
    sound_until_us: u64,
}

/// A session's row, which follows the session.
pub(super) struct Survivor {
    store: Store,
    user: String,
    device: String,
    row: Row,
    /// Whether anything is stored: not for sessions that cannot be resumed.
    stored: bool,
}

impl Survivor {
    pub(super) fn new(store: Store, user: &str, device: &str) -> Self {
        Self { store, user: user.to_owned(), device: device.to_owned(), row: Row::default(), stored: false }
    }

    /// The session has this token from now on.
    pub(super) fn token(&mut self, token: &[u8]) {
        self.stored = true;
        self.change(|row| row.token = Sha256::digest(token).into());
    }

    pub(super) fn muted(&mut self, muted: bool) {
        self.change(|row| row.muted = muted);
    }

    /// A turn begins (`under_way`) or is over. The frames up to here have been dealt with.
    pub(super) fn turn(&mut self, under_way: bool, control_received: u32) {
        self.change(|row| (row.turn, row.control_received) = (under_way, control_received));
    }

    /// An utterance has ended: it has been dealt with, up to here.
    pub(super) fn utterance_ended(&mut self, sound_until_us: Option<u64>) {
        self.change(|row| row.sound_until_us = sound_until_us.unwrap_or(row.sound_until_us));
    }

    fn change(&mut self, change: impl FnOnce(&mut Row)) {
        let before = self.row.clone();
        change(&mut self.row);
        if !self.stored || self.row == before {
            return;
        }
        let (kind, owner, key) = (Kind::DeviceSessions, self.user.clone(), self.device.clone().into_bytes());
        let value = serde_json::to_vec(&self.row).unwrap_or_default();
        self.submit(Write::PutRow { kind, owner, key, value });
    }

    /// The process stops: what the session was doing stays as it is.
    pub(super) fn freeze(&mut self) {
        self.stored = false;
    }

    /// The session is over for good.
    pub(super) fn remove(&mut self) {
        if std::mem::take(&mut self.stored) {
            let (kind, owner, key) = (Kind::DeviceSessions, self.user.clone(), self.device.clone().into_bytes());
            self.submit(Write::RemoveRow { kind, owner, key });
        }
    }

    fn submit(&self, write: Write) {
        let failed =
            |error| tracing::debug!(%error, "a session's state was not stored: it would not survive a restart");
        let submitted = self.store.submit(write, move |written| {
            if let Err(error) = written {
                failed(error);
            }
        });
        if let Err(error) = submitted {
            failed(error);
        }
    }
}

/// What a new session goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(super) continued: Continued,
    pub(super) muted: bool,
    /// A turn was under way.
    pub(super) turn: bool,
    /// Tools of its user that were begun and whose outcome is unknown.
    pub(super) unknown: Vec<String>,
}

/// The sessions of the process before this one.
#[derive(Default)]
pub(crate) struct Survivors {
    until_us: u64,
    /// By device: its user and its session.
    sessions: Mutex<BTreeMap<String, (String, Row)>>,
    /// Names of tools whose outcome is unknown, by user; told once.
    unknown: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Survivors {
    /// Reads what the process before this one has left, which is good for `resume_ms` from now on. `unknown`: tools
    /// whose outcome is unknown, by user.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn read(
        store: &Store,
        resume_ms: u32,
        unknown: BTreeMap<String, Vec<String>>,
    ) -> Result<Self, store::Error> {
        let mut sessions = BTreeMap::new();
        for user in store.disk().owners(Kind::DeviceSessions)? {
            for (key, value) in store.disk().rows(Kind::DeviceSessions, &user, b"", DEVICES_MAX)? {
                // A row that cannot be read is a session that begins anew.
                if let (Ok(device), Ok(row)) = (String::from_utf8(key), serde_json::from_slice::<Row>(&value)) {
                    sessions.insert(device, (user.clone(), row));
                }
            }
        }
        let until_us = clock::mono_us() + u64::from(resume_ms) * 1_000;
        Ok(Self { until_us, sessions: Mutex::new(sessions), unknown: Mutex::new(unknown) })
    }

    /// What is left of the session that this device asks for, once.
    pub(super) fn take(&self, device: &str, user: &str, resume: &ResumeOwned) -> Option<Restored> {
        if clock::mono_us() > self.until_us {
            return None;
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let digest: [u8; 32] = Sha256::digest(&resume.token).into();
        sessions.get(device).filter(|(owner, row)| owner == user && row.token == digest)?;
        let (_, row) = sessions.remove(device)?;
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Restored {
            continued: Continued { control_received: row.control_received, sound_until_us: row.sound_until_us },
            muted: row.muted,
            turn: row.turn,
            unknown: if row.turn { unknown.remove(user).unwrap_or_default() } else { Vec::new() },
        })
    }
}

/// Devices of one user that are read.
const DEVICES_MAX: usize = 64;
