//! What the sessions of apps are called, and which are to run again after a restart.
//!
//! A session has one name for each user and package, made once: published apps keep what they have by it. It cannot be
//! guessed, since one of the SDK's REST calls shows nothing else. It goes with the user, or with the app.

use gateway_core::{
    app_life::RUNNING_MAX,
    input::AppInput,
    vocab::{AppCard, AppStopReason},
};

use super::{
    host::{Host, User},
    installed,
};
use crate::store::{Kind, Write};

/// Restored apps per user are as many as may run.
const RESTORED_MAX: usize = RUNNING_MAX;

impl Host {
    /// What a session of this app is called; made, and kept, where it never had one.
    ///
    /// # Errors
    /// The store or the system's random numbers fail, in words.
    pub(super) fn session_name(&self, apps: &mut User, user: &str, package: &str) -> Result<String, String> {
        if let Some(name) = apps.names.get(package) {
            return Ok(name.clone());
        }
        let kept = self.store.disk().row(Kind::AppSessionNames, user, package.as_bytes());
        let kept = kept.map_err(|error| error.to_string())?.and_then(|name| String::from_utf8(name).ok());
        let name = match kept {
            Some(name) => name,
            None => {
                let name = new_name(user, package).map_err(|error| error.to_string())?;
                let (owner, key) = (user.to_owned(), package.as_bytes().to_vec());
                let value = name.clone().into_bytes();
                self.keep(Write::PutRow { kind: Kind::AppSessionNames, owner, key, value });
                name
            }
        };
        apps.names.insert(package.to_owned(), name.clone());
        Ok(name)
    }

    /// Remembers beyond a restart that an app runs.
    pub(super) fn remember(&self, user: &str, card: AppCard) {
        match serde_json::to_vec(&card) {
            Ok(value) => self.keep(Write::PutRow {
                kind: Kind::AppSessions,
                owner: user.to_owned(),
                key: card.package.into_bytes(),
                value,
            }),
            Err(error) => tracing::error!(%error, "a session cannot be written"),
        }
    }

    /// Does not.
    pub(super) fn forget(&self, user: &str, package: String) {
        let owner = user.to_owned();
        self.keep(Write::RemoveRow { kind: Kind::AppSessions, owner, key: package.into_bytes() });
    }

    fn keep(&self, write: Write) {
        let told = |result: Result<u64, _>| {
            if let Err(error) = result {
                tracing::warn!(%error, "what is known of an app's session is not remembered");
            }
        };
        if let Err(error) = self.store.submit(write, told) {
            tracing::warn!(%error, "what is known of an app's session is not remembered");
        }
    }

    /// Waits until what is to be remembered of a user's apps is on disk: writes take effect in their order, so that one
    /// that changes nothing tells. Who says that an app runs finds it running after a power cut.
    pub(super) async fn settled(&self, user: &str) {
        let barrier = Write::RemoveRow { kind: Kind::AppSessions, owner: user.to_owned(), key: vec![0] };
        if let Err(error) = self.store.write(barrier).await {
            tracing::warn!(%error, "whether an app runs is not remembered");
        }
    }

    /// Takes up again what ran when the gateway last stopped: before it listens, so that no app that dials again is
    /// turned away.
    pub fn restore(&self) {
        let users = self.store.disk().owners(Kind::AppSessions).unwrap_or_default();
        for user in users {
            let rows = self.store.disk().rows(Kind::AppSessions, &user, b"", RESTORED_MAX).unwrap_or_default();
            for (_, value) in rows {
                let card = serde_json::from_slice::<AppCard>(&value).ok();
                if let Some(card) = card.filter(|card| self.installed.get(&card.package).is_some()) {
                    self.input(&user, AppInput::Restore(card));
                }
            }
        }
    }

    /// Stops an app wherever it runs, removes it, and forgets what its sessions were called; whether there was one.
    ///
    /// # Errors
    /// It could not be removed.
    pub async fn remove(&self, package: &str) -> Result<bool, installed::Error> {
        let running = |apps: &User| apps.lives().state(package).is_some();
        let users: Vec<String> =
            self.users().iter().filter(|(_, apps)| running(apps)).map(|(user, _)| user.clone()).collect();
        // At once: each may take its time.
        let stops = users.iter().map(|user| self.stop(user, package, AppStopReason::System));
        futures_util::future::join_all(stops).await;
        let removed = self.installed.remove(package).await?;
        for user in self.store.disk().owners(Kind::AppSessionNames)? {
            let key = package.as_bytes().to_vec();
            self.store.write(Write::RemoveRow { kind: Kind::AppSessionNames, owner: user, key }).await?;
        }
        for apps in self.users().values_mut() {
            apps.names.remove(package);
        }
        Ok(removed)
    }

    /// Forgets what is in memory of a user of whom everything else is erased; the apps have stopped.
    pub fn erase(&self, user: &str) {
        if let Some(apps) = self.users().get_mut(user) {
            apps.names.clear();
        }
        self.installed.client().log().erase(user);
    }
}

fn new_name(user: &str, package: &str) -> Result<String, getrandom::Error> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{user}-{package}-{random}"))
}
