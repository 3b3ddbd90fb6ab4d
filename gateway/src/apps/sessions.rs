//! Sessions of apps across restarts: restored at start, and forgotten with an app or a user.

use gateway_core::vocab::AppStopReason;
use tokio::sync::oneshot;

use super::{host::Host, installed, message::AppsMessage};
use crate::store::{self, Kind, Write};

impl Host {
    /// Waits until the persistent state of a user's apps is on disk. Writes take effect in order, so the end of an
    /// empty write shows it. An app that is reported as running is therefore restored after a power failure.
    pub(super) async fn settled(&self, user: &str) {
        let barrier = Write::RemoveRow { kind: Kind::AppSessions, owner: user.to_owned(), key: vec![0] };
        if let Err(error) = self.store.write(barrier).await {
            tracing::warn!(%error, "whether an app runs is not remembered");
        }
    }

    /// Restores the apps that ran when the gateway last stopped: before it listens, so that no reconnecting app is
    /// rejected. Nothing is restored of a user who is being erased.
    pub async fn restore(&self) {
        let users = self.store.disk().owners(Kind::AppSessions).unwrap_or_default();
        for user in users {
            if self.in_flight.session(&user).is_some() {
                self.tasks.restore(&user).await;
            }
        }
    }

    /// Stops an app for all users, removes it, and forgets its session names and its sounds; returns whether it was installed.
    ///
    /// # Errors
    /// It could not be removed, or not all of its session names could be forgotten.
    pub async fn remove(&self, package: &str) -> Result<bool, installed::Error> {
        let users = self.running(package);
        // Concurrently: each may take its time.
        let stops = users.iter().map(|(user, _)| self.stop(user, package, AppStopReason::System));
        futures_util::future::join_all(stops).await;
        let removed = self.installed.remove(package).await?;
        let forgotten = self.forget_names(package).await;
        // Whatever stays stored: an app of that package that is installed again must not run under the name of this one.
        for (user, _) in self.tasks.snapshots() {
            self.tasks.tell(&user, AppsMessage::Removed { package: package.to_owned() }).await;
        }
        forgotten.map(|()| removed)
    }

    /// Forgets the session names of an app and its sounds, of each user.
    ///
    /// # Errors
    /// Some names stay stored; all others are forgotten.
    async fn forget_names(&self, package: &str) -> Result<(), installed::Error> {
        let (mut users, mut failed) = (Vec::new(), None);
        for user in self.store.disk().owners(Kind::AppSessionNames)? {
            self.pending_outcomes.forget(&user, package).await;
            let (owner, key) = (user.clone(), package.as_bytes().to_vec());
            match self.store.write(Write::RemoveRow { kind: Kind::AppSessionNames, owner, key }).await {
                // The name goes with everything else of that user.
                Ok(_) | Err(store::Error::Erasing) => {}
                Err(error) => {
                    users.push(user);
                    failed = Some(error);
                }
            }
        }
        let Some(error) = failed else { return Ok(()) };
        Err(installed::Error::NamesLeft { users: users.join(", "), error })
    }

    /// Forgets the in-memory state of a user whose other data is erased; the apps have stopped.
    pub async fn erase(&self, user: &str) {
        let (reply, erased) = oneshot::channel();
        self.tasks.tell(user, AppsMessage::Erased { reply }).await;
        drop(erased.await);
        self.pending_outcomes.erase(user);
        self.installed.client().log().erase(user);
    }
}
