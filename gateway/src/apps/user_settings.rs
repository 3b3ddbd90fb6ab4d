//! The values that users give to settings of apps: stored, and told to the app.

use serde_json::{Map, Value};
use tools::apps::manifest::App;

use super::{
    app_settings::{filled, set, system_settings, zone},
    host::Host,
    message::AppsMessage,
};
use crate::store::{self, Kind, Write};

impl Host {
    /// An app's settings with the user's values.
    pub(crate) fn settings_of(&self, user: &str, app: &App) -> Vec<Value> {
        filled(&app.settings, &self.set_by(user, &app.package))
    }

    /// The settings in the session of this name; `None`: there is no such session of this app.
    pub(crate) fn settings_in(&self, session: &str, package: &str) -> Option<Vec<Value>> {
        let (user, _) = self.tasks.by_session(session).filter(|(_, card)| card.package == package)?;
        Some(self.settings_of(&user, &*self.installed.get(package)?))
    }

    /// The user's values.
    fn set_by(&self, user: &str, package: &str) -> Map<String, Value> {
        let row = self.store.disk().row(Kind::AppSettings, user, package.as_bytes()).ok().flatten();
        row.and_then(|row| serde_json::from_slice(&row).ok()).unwrap_or_default()
    }

    /// Sets a value of an app's setting, durably, and notifies the app if it runs.
    ///
    /// # Errors
    /// The app or the setting does not exist, the value does not fit, or it cannot be stored.
    pub async fn set(&self, user: &str, package: &str, key: &str, value: Value) -> Result<(), String> {
        // All values are in one row: values from before an erasure must not be written back with it.
        let erasing = || store::Error::Erasing.to_string();
        let lease = self.in_flight.enter(user).ok_or_else(erasing)?;
        lease.within(self.set_and_tell(user, package, key, value)).await.unwrap_or_else(|| Err(erasing()))
    }

    async fn set_and_tell(&self, user: &str, package: &str, key: &str, value: Value) -> Result<(), String> {
        let app = self.installed.get(package).ok_or_else(|| format!("no mini-app {package} is installed"))?;
        let _alone = self.settings_locks.lock(user, package).await;
        let mut own = self.set_by(user, package);
        set(&app.settings, &mut own, key, value)?;
        let row = Write::PutRow {
            kind: Kind::AppSettings,
            owner: user.to_owned(),
            key: package.as_bytes().to_vec(),
            value: Value::Object(own.clone()).to_string().into_bytes(),
        };
        self.store.write(row).await.map_err(|error| error.to_string())?;
        let (settings, system) = (filled(&app.settings, &own), system_settings(&zone(), &app.permissions));
        self.tasks.tell(user, AppsMessage::SettingsSet { package: package.to_owned(), settings, system }).await;
        Ok(())
    }
}
