//! The published state of a user's apps.

use std::collections::BTreeMap;

use gateway_core::{
    app_lifecycle::AppLifecycles,
    vocab::{AppCard, AppState},
};

use crate::apps::glasses::Glasses;

/// A user's apps and glasses at one moment. After an answer by the task, the snapshot is at least as new as the answer.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// By device.
    pub(in crate::apps) glasses: BTreeMap<String, Glasses>,
    apps: Vec<(AppCard, AppState)>,
}

impl Snapshot {
    pub(super) fn new(lives: &AppLifecycles, glasses: &BTreeMap<String, Glasses>) -> Self {
        let apps = lives.all().map(|(card, state)| (card.clone(), state)).collect();
        Self { glasses: glasses.clone(), apps }
    }

    /// The state of an app; `None`: stopped.
    pub(in crate::apps) fn state(&self, package: &str) -> Option<AppState> {
        self.apps.iter().find(|(card, _)| card.package == package).map(|(_, state)| *state)
    }

    /// The apps that are not stopped, by package.
    pub(in crate::apps) fn states(&self) -> BTreeMap<String, AppState> {
        self.apps.iter().map(|(card, state)| (card.package.clone(), *state)).collect()
    }

    /// The app of a session, unless it is stopped or stopping.
    pub(in crate::apps) fn by_session(&self, session: &str) -> Option<&AppCard> {
        let mut alive = self.apps.iter().filter(|(_, state)| *state != AppState::Stopping);
        alive.find(|(card, _)| card.session == session).map(|(card, _)| card)
    }
}
