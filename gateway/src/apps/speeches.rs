//! The speeches and sounds of apps that glasses were sent and have not ended.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use gateway_core::input::{AnnouncementId, Input};
use tokio::sync::oneshot;

use super::sound::Sound;
use crate::{mailbox::DeviceMessage, roster::Roster};

/// Queued speeches of one app: each may wait for a minute.
const WAITING_PER_APP_MAX: usize = 4;

/// A speech or sound of an app that the glasses were sent.
pub(super) struct Speech {
    pub(super) user: String,
    pub(super) package: String,
    pub(super) device: String,
    pub(super) sound: Option<Sound>,
    /// Gets whether it was heard; dropped if it is withdrawn.
    pub(super) done: oneshot::Sender<bool>,
}

/// Current speeches of apps.
#[derive(Default)]
pub(super) struct Speeches {
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Speech>>,
}

impl Speeches {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Speech>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a speech. Its id; `None`: as many of this app wait as may.
    pub(super) fn begin(&self, speech: Speech) -> Option<u64> {
        let mut open = self.open();
        let same = |other: &&Speech| other.user == speech.user && other.package == speech.package;
        if open.values().filter(same).count() >= WAITING_PER_APP_MAX {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        open.insert(id, speech);
        Some(id)
    }

    /// Withdraws all speeches of an app, playing or queued.
    pub(super) fn withdraw(&self, roster: &Roster, user: &str, package: &str) {
        self.withdraw_where(roster, |speech| speech.user == user && speech.package == package);
    }

    /// Withdraws those of all apps of a user.
    pub(super) fn withdraw_all(&self, roster: &Roster, user: &str) {
        self.withdraw_where(roster, |speech| speech.user == user);
    }

    /// Withdraws one for which nothing waits any more, unless it has ended.
    pub(super) fn give_up(&self, roster: &Roster, device: &str, id: u64) {
        if self.open().remove(&id).is_some() {
            tell_withdrawn(roster, device, id);
        }
    }

    /// The sound with this id.
    pub(super) fn sound(&self, id: u64) -> Option<Sound> {
        self.open().get(&id).and_then(|speech| speech.sound.clone())
    }

    /// The one with this id has ended.
    pub(super) fn ended(&self, id: u64, heard: bool) {
        if let Some(speech) = self.open().remove(&id) {
            let _ = speech.done.send(heard);
        }
    }

    /// Withdraws the matching ones; their waiters are informed that they were interrupted.
    fn withdraw_where(&self, roster: &Roster, theirs: impl Fn(&Speech) -> bool) {
        let mut withdrawn = Vec::new();
        self.open().retain(|id, speech| {
            let kept = !theirs(speech);
            if !kept {
                withdrawn.push((*id, speech.device.clone()));
            }
            kept
        });
        for (id, device) in withdrawn {
            tell_withdrawn(roster, &device, id);
        }
    }
}

/// Notifies the glasses that an app's speech or sound is withdrawn.
fn tell_withdrawn(roster: &Roster, device: &str, id: u64) {
    if let Some(present) = roster.get(device) {
        let withdrawn = Input::Withdraw { id: AnnouncementId::App(id) };
        drop(present.mailbox.try_send(DeviceMessage::from(withdrawn)));
    }
}
