//! Names of apps' sessions, and the apps to restart with the gateway.
//!
//! A session has one name per user and package, created once: published apps store data under it. It cannot be guessed,
//! since one of the SDK's REST calls authenticates by it alone. It is removed with the user or the app.

use gateway_core::vocab::AppCard;

use super::task::Task;
use crate::store::{self, Kind, Write};

impl Task {
    /// The session name of this app; created and stored on first use.
    ///
    /// # Errors
    /// The store or the system's random numbers fail; as text.
    pub(super) fn session_name(&mut self, package: &str) -> Result<String, String> {
        if let Some(name) = self.names.get(package) {
            return Ok(name.clone());
        }
        let kept = match self.common().store.disk().row(Kind::AppSessionNames, &self.user, package.as_bytes()) {
            // The store has logged it. A new name costs the app what it has stored under the old one, but not its start.
            Err(store::Error::Damaged { .. }) => None,
            kept => kept.map_err(|error| error.to_string())?,
        };
        let name = match kept.and_then(|name| String::from_utf8(name).ok()) {
            Some(name) => name,
            None => {
                let name = new_name(&self.user, package).map_err(|error| error.to_string())?;
                let (owner, key) = (self.user.clone(), package.as_bytes().to_vec());
                let value = name.clone().into_bytes();
                self.keep(Write::PutRow { kind: Kind::AppSessionNames, owner, key, value });
                name
            }
        };
        self.names.insert(package.to_owned(), name.clone());
        Ok(name)
    }

    /// Stores that an app runs, to restore it after a restart.
    pub(super) fn remember(&self, card: AppCard) {
        match serde_json::to_vec(&card) {
            Ok(value) => self.keep(Write::PutRow {
                kind: Kind::AppSessions,
                owner: self.user.clone(),
                key: card.package.into_bytes(),
                value,
            }),
            Err(error) => tracing::error!(%error, "a session cannot be written"),
        }
    }

    /// Removes that record.
    pub(super) fn forget(&self, package: String) {
        let owner = self.user.clone();
        self.keep(Write::RemoveRow { kind: Kind::AppSessions, owner, key: package.into_bytes() });
    }

    fn keep(&self, write: Write) {
        let told = |result: Result<u64, _>| {
            if let Err(error) = result {
                tracing::warn!(%error, "what is known of an app's session is not remembered");
            }
        };
        if let Err(error) = self.common().store.submit(write, told) {
            tracing::warn!(%error, "what is known of an app's session is not remembered");
        }
    }
}

fn new_name(user: &str, package: &str) -> Result<String, getrandom::Error> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{user}-{package}-{random}"))
}
