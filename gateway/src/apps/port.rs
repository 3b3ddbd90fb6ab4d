//! The host, as the tools see it.

use std::time::Duration;

use async_trait::async_trait;
use tools::ports::{AppEntry, AppHost, PortError};

use super::{
    host::Host,
    life::{State, StopReason},
};

#[async_trait]
impl AppHost for Host {
    async fn activate(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, PortError> {
        self.start(user, package, deadline).await.map_err(PortError::Unavailable)
    }

    async fn stop(&self, user: &str, package: &str) -> Result<bool, PortError> {
        Ok(Self::stop(self, user, package, StopReason::User).await)
    }

    async fn list(&self, user: &str) -> Result<Vec<AppEntry>, PortError> {
        let states = self.states(user);
        let entry = |app: std::sync::Arc<tools::apps::manifest::App>| AppEntry {
            running: states.get(&app.package).is_some_and(|state| *state != State::Stopping),
            name: if app.name.is_empty() { app.package.clone() } else { app.name.clone() },
            package: app.package.clone(),
            description: app.description.clone(),
        };
        Ok(self.installed.list().into_iter().map(entry).collect())
    }
}
