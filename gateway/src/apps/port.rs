//! The tools' port to the apps.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{AppKind, AppPresence, AppState, AppStopReason, SceneApp};
use tools::{
    apps::manifest::App,
    ports::{AppEntry, AppHost, PortError},
};

use super::{host::Host, tasks::name_of};

impl Host {
    /// The apps that a user may refer to or address.
    pub fn scene(&self, user: &str) -> Vec<SceneApp> {
        let states = self.states(user);
        let presence = |app: &App| match app.kind {
            _ if !is_running(&states, app) => AppPresence::Idle,
            // Only one app of this kind runs at a time.
            AppKind::Foreground => AppPresence::InFront,
            AppKind::Background | AppKind::Dashboard => AppPresence::Running,
        };
        let apps = self.installed.list_for(user);
        apps.iter()
            .map(|app| SceneApp { package: app.package.clone(), name: name_of(app), presence: presence(app) })
            .collect()
    }
}

fn is_running(states: &BTreeMap<String, AppState>, app: &App) -> bool {
    states.get(&app.package).is_some_and(|state| state.is_running())
}

#[async_trait]
impl AppHost for Host {
    async fn activate(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, PortError> {
        self.start(user, package, deadline).await.map_err(PortError::Unavailable)
    }

    async fn stop(&self, user: &str, package: &str) -> Result<bool, PortError> {
        Ok(Self::stop(self, user, package, AppStopReason::User).await)
    }

    async fn list(&self, user: &str) -> Result<Vec<AppEntry>, PortError> {
        let states = self.states(user);
        let entry = |app: Arc<App>| AppEntry {
            running: is_running(&states, &app),
            name: name_of(&app),
            package: app.package.clone(),
            description: app.description.clone(),
        };
        Ok(self.installed.list_for(user).into_iter().map(entry).collect())
    }
}
