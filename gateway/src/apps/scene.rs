//! The situation around a user's words.

use std::sync::Arc;

use gateway_core::vocab::Scene;
use tools::sides;

use super::host::Host;
use crate::{ports::preferences::Preferences, store::Store};

/// Reads what currently runs for a user.
#[derive(Clone)]
pub struct Scenes {
    store: Store,
    apps: Arc<Host>,
    preferences: Arc<Preferences>,
}

impl Scenes {
    /// For these apps and timers.
    pub fn new(store: Store, apps: Arc<Host>, preferences: Arc<Preferences>) -> Self {
        Self { store, apps, preferences }
    }

    /// The running apps and timers, and the user's choices between them.
    pub fn of(&self, user: &str) -> Scene {
        let timer_runs = self.store.disk().entries(user).is_ok_and(|all| all.iter().any(|one| one.kind.is_timer()));
        let busy = if timer_runs { vec![sides::timers()] } else { Vec::new() };
        Scene { apps: self.apps.scene(user), busy, preferences: self.preferences.of(user) }
    }
}
