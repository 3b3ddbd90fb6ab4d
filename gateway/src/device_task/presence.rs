//! Where a session is entered: taken out when it ends, however it ends.

use std::sync::Arc;

use gateway_core::input::UserInput;
use tokio::{runtime::Handle, sync::mpsc};
use tools::registry::Registry;

use super::resume::Resumable;
use crate::{
    apps::{
        feed::{Event, Feed},
        host::Host,
    },
    roster::Roster,
    runtime::spawn,
    users::UserMessage,
};

/// A session's entries: in the roster, in the catalogue of tools, with its user and with the apps.
///
/// [`leave`](Self::leave) takes them out in order. Dropped before that, by a panic of the session's task, it takes them
/// out at once, and tells the apps from a task of its own.
pub(super) struct Presence {
    pub(super) roster: Arc<Roster>,
    pub(super) resumable: Arc<Resumable>,
    pub(super) registry: Arc<Registry>,
    pub(super) apps: Arc<Host>,
    pub(super) feed: Arc<Feed>,
    pub(super) user: mpsc::Sender<UserMessage>,
    /// Fingerprint of the device.
    pub(super) id: String,
    /// Number of the session.
    pub(super) number: u32,
    pub(super) user_name: String,
    pub(super) model: Arc<str>,
    pub(super) is_glasses: bool,
    /// Whether there is nothing to take out.
    pub(super) has_left: bool,
}

impl Presence {
    /// Tells the apps that the glasses are there, or are gone.
    pub(super) fn connected(&self, connected: bool) {
        if self.is_glasses {
            self.feed.tell(|| Event::Connection { model: self.model.clone(), connected });
        }
    }

    /// Takes the session out. Where a newer session of the device has its place, that one stays.
    pub(super) async fn leave(&mut self) {
        self.has_left = true;
        if self.take_out() {
            if self.is_glasses {
                self.apps.glasses_went(&self.user_name, &self.id).await;
            }
            self.tell();
        }
    }

    fn take_out(&self) -> bool {
        self.resumable.leave(&self.id, self.number);
        tools::device::unregister(&self.registry, &self.id);
        self.roster.leave(&self.id, self.number)
    }

    fn tell(&self) {
        self.connected(false);
        // A user whose task is gone has no devices.
        drop(self.user.try_send(UserMessage::Input(UserInput::DeviceLeft { device: self.id.clone() })));
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.has_left || !self.take_out() {
            return;
        }
        tracing::error!(
            device = self.id,
            session = self.number,
            "a session's task has failed; the device may connect again"
        );
        self.tell();
        // Without a runtime the gateway has stopped.
        if self.is_glasses && Handle::try_current().is_ok() {
            let (apps, user, id) = (self.apps.clone(), self.user_name.clone(), self.id.clone());
            spawn("glasses-gone", async move { apps.glasses_went(&user, &id).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;
    use tools::{apps::client::Client, device, in_flight::InFlight};

    use super::*;
    use crate::{
        apps::{glasses::Glasses, installed::Installed, sound::Sounds},
        mailbox::Ending,
        roster::{Present, Via},
        runtime::compute::Compute,
        speech::language::Understood,
        store::Store,
        transport::Transport,
    };

    const ID: &str = "glasses";
    const USER: &str = "ann";

    struct Place {
        _folder: tempfile::TempDir,
        roster: Arc<Roster>,
        resumable: Arc<Resumable>,
        registry: Arc<Registry>,
        apps: Arc<Host>,
        feeds: Arc<Feed>,
    }

    impl Place {
        fn new() -> Self {
            drop(rustls::crypto::ring::default_provider().install_default());
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), 16).unwrap();
            let (roster, registry) = (Arc::<Roster>::default(), Arc::<Registry>::default());
            let client = Arc::new(Client::new().unwrap());
            let installed =
                Arc::new(Installed::load(store.clone(), registry.clone(), client, Default::default()).unwrap());
            let sounds = Sounds::new(Compute::start("test", 1, 1).unwrap()).unwrap();
            let stop = CancellationToken::new();
            let understood = Understood { configured: None, multilingual: false };
            let apps =
                Host::new(store, InFlight::default(), roster.clone(), installed, sounds, (understood, None), stop);
            Self { _folder: folder, roster, resumable: Arc::default(), registry, feeds: apps.feeds.of(USER), apps }
        }

        /// A session with everything that one enters.
        async fn session(&self, number: u32) -> (Presence, mpsc::Receiver<UserMessage>) {
            let (mailbox, _) = mpsc::channel(1);
            let via = Via::now(Transport::WSS, ([127, 0, 0, 1], 1).into());
            let (user_name, language) = (USER.to_owned(), "en".to_owned());
            let present = Present {
                session: number,
                user: user_name.clone(),
                language,
                mailbox,
                ending: Ending::default(),
                status: Arc::default(),
                via,
            };
            assert!(self.roster.enter(ID, present, 8).is_ok());
            drop(self.resumable.enter(ID, number));
            let offer = device::Offer {
                name: "lamp.on".into(),
                description: "Switches the lamp on".into(),
                ..Default::default()
            };
            device::register(&self.registry, ID, vec![offer]).unwrap();
            self.apps.glasses_came(USER, ID, Glasses::default()).await;
            let (user, told) = mpsc::channel(4);
            let presence = Presence {
                roster: self.roster.clone(),
                resumable: self.resumable.clone(),
                registry: self.registry.clone(),
                apps: self.apps.clone(),
                feed: self.feeds.clone(),
                user,
                id: ID.to_owned(),
                number,
                user_name,
                model: "Sim".into(),
                is_glasses: true,
                has_left: false,
            };
            (presence, told)
        }
    }

    #[tokio::test]
    async fn a_session_that_panics_leaves_no_ghost() {
        let place = Place::new();
        let (presence, mut told) = place.session(1).await;
        let task = spawn("device", async move {
            let _presence = presence;
            panic!("on purpose");
        });
        assert!(task.await.is_err());
        assert!(place.roster.get(ID).is_none() && place.roster.left_wall_ms(ID).is_some());
        assert!(place.resumable.is_empty());
        assert_eq!(device::unregister(&place.registry, ID), None, "its tools are gone");
        assert!(
            matches!(told.recv().await, Some(UserMessage::Input(UserInput::DeviceLeft { device })) if device == ID)
        );
        while place.apps.has_glasses(USER) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_newer_session_keeps_its_place() {
        let place = Place::new();
        let ((old, mut told), (_new, _)) = (place.session(1).await, place.session(2).await);
        drop(old);
        assert_eq!(place.roster.get(ID).map(|present| present.session), Some(2));
        assert!(!place.resumable.is_empty() && place.apps.has_glasses(USER));
        assert!(told.recv().await.is_none());
    }

    #[tokio::test]
    async fn who_has_left_in_order_is_not_taken_out_again() {
        let place = Place::new();
        let (mut presence, mut told) = place.session(1).await;
        presence.leave().await;
        assert!(!place.apps.has_glasses(USER) && told.recv().await.is_some());
        let (_again, _) = place.session(1).await;
        drop(presence);
        assert!(place.roster.get(ID).is_some());
    }
}
