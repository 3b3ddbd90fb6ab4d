//! Where a session is entered: taken out when it ends, however it ends.

use std::{sync::Arc, time::Duration};

use device_protocol::RejectCode;
use gateway_core::input::UserInput;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tools::registry::Registry;

use super::{Resumable, STOPPING};
use crate::{
    apps::{
        feed::{Event, Feed},
        glasses::Glasses,
        host::Host,
    },
    identity::{
        Refusal,
        pairing::{self, Pairings},
    },
    roster::{Present, Refused, Roster},
    runtime::spawn,
    users::UserMessage,
};

/// How long a reconnected device waits for its older session to end, which takes one round of that session's loop.
const REPLACED_MAX: Duration = Duration::from_secs(2);

/// Milliseconds until a device retries that seems to have connected again since it asked. Where it vanished and came back at once, the
/// gateway may have read its last frames behind the `hello`; it has read all of them by then.
const OVERTAKEN_MS: u32 = 1_000;

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
    /// Takes the place of the device's older session in the roster, and tells the apps of the glasses.
    ///
    /// # Errors
    /// As [`Roster::enter`], the older session does not end, or since the device was admitted it was revoked or the gateway
    /// is being stopped. Nothing is entered then.
    pub(super) async fn enter(
        mut self,
        present: Present,
        glasses: Glasses,
        sessions_max: usize,
        (pairings, stop): (&Pairings, &CancellationToken),
    ) -> Result<Self, Refusal> {
        let replaced = self.roster.enter(&self.id, present, sessions_max).map_err(not_entered)?;
        self.has_left = false;
        // Two sessions of one device would each offer its tools.
        if let Some(old) = replaced
            && timeout(REPLACED_MAX, old.mailbox.closed()).await.is_err()
        {
            self.leave().await;
            return Err(Refusal::new(RejectCode::Busy, "the older session of this device has not ended yet"));
        }
        // It was revoked after it was admitted, and before its session could be ended.
        if pairings.is_revoked(&self.id) {
            self.leave().await;
            return Err(Refusal::new(RejectCode::Revoked, pairing::REVOKED));
        }
        // Who stops the gateway sets this, and then ends the sessions that are entered: each is ended there, or refused here.
        if stop.is_cancelled() {
            self.leave().await;
            return Err(Refusal::new(RejectCode::ShuttingDown, STOPPING));
        }
        // Before the welcome: once the glasses are known, apps may be started on them.
        if self.is_glasses {
            self.apps.glasses_came(&self.user_name, &self.id, glasses).await;
        }
        Ok(self)
    }

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
        drop(self.user.try_send(UserInput::DeviceLeft { device: self.id.clone() }.into()));
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

fn not_entered(refused: Refused) -> Refusal {
    let refusal = Refusal::new(RejectCode::Busy, refused.to_string());
    match refused {
        Refused::Overtaken => Refusal { retry_after_ms: OVERTAKEN_MS, ..refusal },
        Refused::Full => refusal,
    }
}

#[cfg(test)]
mod tests {
    use device_protocol::GoodbyeReason;
    use tools::{apps::client::Client, device, in_flight::InFlight};

    use super::*;
    use crate::{
        apps::{installed::Installed, sound::Sounds},
        mailbox::{Ending, Mailbox},
        roster::Via,
        runtime::compute::Compute,
        speech::language::Languages,
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
        pairings: Pairings,
        stop: CancellationToken,
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
            let languages = Languages { usual: None, users: Arc::default(), multilingual: false, translates: false };
            let in_flight = InFlight::default();
            let apps = Host::new(store, in_flight, roster.clone(), installed, sounds, (languages, None), stop.clone());
            Self {
                _folder: folder,
                roster,
                resumable: Arc::default(),
                registry,
                feeds: apps.feeds.of(USER),
                apps,
                pairings: Pairings::default(),
                stop,
            }
        }

        /// A session before it is entered.
        fn admitted(&self, number: u32, mailbox: Mailbox) -> (Presence, Present, mpsc::Receiver<UserMessage>) {
            let via = Via::new(Transport::WSS, ([127, 0, 0, 1], 1).into(), 0);
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
                has_left: true,
            };
            (presence, present, told)
        }

        async fn enter(&self, presence: Presence, present: Present) -> Result<Presence, RejectCode> {
            self.enter_among(8, presence, present).await
        }

        async fn enter_among(
            &self,
            sessions_max: usize,
            presence: Presence,
            present: Present,
        ) -> Result<Presence, RejectCode> {
            let door = (&self.pairings, &self.stop);
            presence.enter(present, Glasses::default(), sessions_max, door).await.map_err(|refusal| refusal.code)
        }

        /// A session with everything that one enters.
        async fn session(&self, number: u32) -> (Presence, mpsc::Receiver<UserMessage>) {
            let (mailbox, _) = mpsc::channel(1);
            let (presence, present, told) = self.admitted(number, mailbox);
            let presence = self.enter(presence, present).await.unwrap();
            drop(self.resumable.enter(ID, number));
            let offer = device::Offer {
                name: "lamp.on".into(),
                description: "Switches the lamp on".into(),
                ..Default::default()
            };
            device::register(&self.registry, ID, vec![offer]).unwrap();
            (presence, told)
        }
    }

    #[test]
    fn glasses_that_seem_to_have_come_back_since_retry_sooner_than_where_there_is_no_room() {
        assert_eq!(not_entered(Refused::Overtaken).retry_after_ms, OVERTAKEN_MS);
        assert!(not_entered(Refused::Full).retry_after_ms > OVERTAKEN_MS);
    }

    #[tokio::test]
    async fn who_is_revoked_after_its_admission_does_not_get_in() {
        let place = Place::new();
        let (mailbox, _messages) = mpsc::channel(1);
        let (presence, present, mut told) = place.admitted(1, mailbox);
        // The operator revokes: bars the key, and ends its session. There is none yet.
        place.pairings.revoke(1, ID);
        assert!(place.roster.dismiss(ID, GoodbyeReason::Revoked, pairing::REVOKED).is_none());
        assert_eq!(place.enter(presence, present).await.err(), Some(RejectCode::Revoked));
        assert!(place.roster.get(ID).is_none() && !place.apps.has_glasses(USER));
        assert!(has_left(told.recv().await, ID));
    }

    #[tokio::test]
    async fn who_comes_while_the_gateway_stops_does_not_get_in() {
        let place = Place::new();
        let (mailbox, _messages) = mpsc::channel(1);
        let (presence, present, mut told) = place.admitted(1, mailbox);
        // There is no session to end yet.
        place.stop.cancel();
        assert_eq!(place.enter(presence, present).await.err(), Some(RejectCode::ShuttingDown));
        assert!(place.roster.is_empty() && !place.apps.has_glasses(USER));
        assert!(has_left(told.recv().await, ID));
    }

    /// Whether the user's task was told that this device is gone.
    fn has_left(told: Option<UserMessage>, id: &str) -> bool {
        matches!(told, Some(UserMessage::Input(input)) if matches!(&*input, UserInput::DeviceLeft { device } if device == id))
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_revoked_while_its_older_session_ends_does_not_get_in_and_the_older_one_ends() {
        let place = Place::new();
        let (mailbox, messages) = mpsc::channel(1);
        let (old, present, _told) = place.admitted(1, mailbox);
        let ending = present.ending.clone();
        let old = place.enter(old, present).await.unwrap();
        let (mailbox, _messages) = mpsc::channel(1);
        let (new, present, _also_told) = place.admitted(2, mailbox);
        let new_ending = present.ending.clone();
        let (entered, ()) = tokio::join!(place.enter(new, present), async {
            assert_eq!(ending.asked().await.0, GoodbyeReason::Replaced);
            place.pairings.revoke(1, ID);
            assert!(place.roster.dismiss(ID, GoodbyeReason::Revoked, pairing::REVOKED).is_some());
            drop(messages);
        });
        assert_eq!(entered.err(), Some(RejectCode::Revoked));
        assert_eq!(new_ending.asked().await.0, GoodbyeReason::Revoked);
        drop(old);
        assert!(place.roster.get(ID).is_none() && !place.apps.has_glasses(USER));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_let_in_leaves_what_others_entered() {
        let place = Place::new();
        let (mailbox, _messages) = mpsc::channel(1);
        let (other, present, _told) = place.admitted(1, mailbox);
        let _other = place.enter(other, present).await.unwrap();
        let (mailbox, _more) = mpsc::channel(1);
        let (mut presence, present, _also_told) = place.admitted(2, mailbox);
        presence.id = "others".into();
        let refused = place.enter_among(1, presence, present).await;
        assert_eq!(refused.err(), Some(RejectCode::Busy));
        assert!(place.roster.get(ID).is_some() && place.apps.has_glasses(USER));
        assert!(place.roster.get("others").is_none() && place.roster.left_wall_ms("others").is_none());
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
        assert!(has_left(told.recv().await, ID));
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
