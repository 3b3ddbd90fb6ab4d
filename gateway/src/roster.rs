//! Who is connected.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use device_protocol::GoodbyeReason;
use tools::ports::DeviceStatus;

use crate::mail::{Address, Mail};

/// A connected device.
#[derive(Clone)]
pub struct Present {
    /// Number of its session.
    pub session: u32,
    /// Whom it belongs to.
    pub user: String,
    /// BCP 47 tag of the wearer's language.
    pub language: String,
    /// Its task.
    pub mail: Address,
    /// What it last said of itself.
    pub status: Arc<Mutex<DeviceStatus>>,
}

/// All connected devices, by fingerprint.
#[derive(Default)]
pub struct Roster(Mutex<BTreeMap<String, Present>>);

impl Roster {
    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<String, Present>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a device; one that was there under the same name is told to leave. `false` when
    /// `sessions_max` others are connected.
    pub fn enter(&self, id: &str, present: Present, sessions_max: usize) -> bool {
        self.with(|devices| {
            if !devices.contains_key(id) && devices.len() >= sessions_max {
                return false;
            }
            if let Some(old) = devices.insert(id.to_owned(), present) {
                tell(&old, GoodbyeReason::Replaced, "this device connected again");
            }
            true
        })
    }

    /// Takes a device out; `false` when a newer session has its place.
    pub fn leave(&self, id: &str, session: u32) -> bool {
        self.with(|devices| {
            let ours = devices.get(id).is_some_and(|present| present.session == session);
            if ours {
                devices.remove(id);
            }
            ours
        })
    }

    /// A connected device.
    pub fn get(&self, id: &str) -> Option<Present> {
        self.with(|devices| devices.get(id).cloned())
    }

    /// All of them.
    pub fn all(&self) -> Vec<(String, Present)> {
        self.with(|devices| devices.iter().map(|(id, present)| (id.clone(), present.clone())).collect())
    }

    /// Ends a device's session; answers whether there was one.
    pub fn dismiss(&self, id: &str, reason: GoodbyeReason, message: &'static str) -> bool {
        self.get(id).is_some_and(|present| {
            tell(&present, reason, message);
            true
        })
    }
}

fn tell(present: &Present, reason: GoodbyeReason, message: &'static str) {
    if present.mail.try_send(Mail::Close(reason, message)).is_err() {
        // A task whose box is full is stuck or gone: its link watches over it.
        tracing::warn!(session = present.session, "could not tell a session to close");
    }
}
