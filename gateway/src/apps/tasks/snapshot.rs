//! What is known of a user's apps outside of their task.

use std::collections::BTreeMap;

use gateway_core::{
    app_life::AppLifecycles,
    vocab::{AppCard, AppState},
};

use crate::apps::glasses::Glasses;

/// A user's apps and glasses at one moment. Whoever was answered by the task sees at least what he was answered.
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

    /// Where an app is; `None`: stopped.
    pub(in crate::apps) fn state(&self, package: &str) -> Option<AppState> {
        self.apps.iter().find(|(card, _)| card.package == package).map(|(_, state)| *state)
    }

    /// What has not stopped, by package.
    pub(in crate::apps) fn states(&self) -> BTreeMap<String, AppState> {
        self.apps.iter().map(|(card, state)| (card.package.clone(), *state)).collect()
    }

    /// The app of a session, unless it is stopped or stopping.
    pub(in crate::apps) fn by_session(&self, session: &str) -> Option<&AppCard> {
        let mut alive = self.apps.iter().filter(|(_, state)| *state != AppState::Stopping);
        alive.find(|(card, _)| card.session == session).map(|(card, _)| card)
    }
}
