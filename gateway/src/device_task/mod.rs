//! One task per device: passes frames to the core as facts, and carries out its outputs.
//!
//! `session` holds the parts of a session, each of which has its types in a file that does not know the session; the other files
//! are what a session does with them. Here a connection gets its session: a new one, or the one that its device takes up again.

mod app_feed;
mod approval;
mod calls;
mod chunks;
mod down;
mod drawing;
mod firmware;
pub(crate) mod formats;
mod frame_limits;
mod incoming;
mod known;
mod link;
mod messages;
mod open;
mod outgoing;
mod own_tools;
mod photos;
pub(crate) mod prepare;
mod presence;
mod progress;
mod quality;
pub(crate) mod quiet;
pub(crate) mod requests;
pub(crate) mod restart;
mod restored_approvals;
mod resume;
mod running;
pub(crate) mod services;
mod session;
pub(crate) mod settings;
mod sound;
mod speech_output;
mod streamed_answer;
mod tokens;
mod translations;
mod turn_language;
mod turn_records;
mod turns;
mod typed;
pub(crate) mod untold;
mod up;
mod update;
mod user;
mod welcome;
mod window;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use device_protocol::{Down, GoodbyeReason, RejectCode, down as message, limits, up::ResumeOwned};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    clock,
    identity::{self, Admitted, Asked, Refusal},
    text::crop,
    transport::{Link, slots::ConnectionSlot},
};

use formats::Terms;
use services::{Admission, Services};
use session::Session;
use tokens::Tokens;

/// What glasses are told while all data of their user are erased.
pub(crate) const ERASING: &str = "everything of this user is being erased; connect again in a moment";

/// What glasses are told that come while the gateway stops.
const STOPPING: &str = "the gateway is stopping";

/// Admits a connection and runs its session to the end.
pub(crate) async fn serve(services: &Arc<Services>, mut link: Link, slot: &ConnectionSlot) {
    // Stopping the gateway waits for this token.
    let _open = services.admission.open.token();
    let Admission { key, pairings, waits, .. } = &services.admission;
    let users_max = services.settings.limits.users_max;
    let door = identity::AdmissionContext { key, pairings, users_max, waits, slot: Some(slot) };
    let admitted = tokio::select! {
        admitted = Box::pin(identity::admit(&mut link, &door, &services.store)) => admitted,
        () = services.admission.stop.cancelled() => {
            let refusal = Refusal::new(RejectCode::ShuttingDown, STOPPING);
            refusal.tell(&mut link);
            Err(refusal)
        }
    };
    match admitted {
        Ok(admitted) => {
            slot.admit();
            link.up.allow(services.settings.limits.traffic);
            return run(services.clone(), link, Some(slot), admitted).await;
        }
        Err(refusal) if refusal.code == RejectCode::Unspecified => {
            tracing::debug!(peer = %link.peer, %refusal, "a connection ended before its session");
        }
        Err(refusal) => {
            if let Some(left_out) = services.admission.turned_away.line() {
                let (device, code) = (refusal.device.as_deref(), refusal.code);
                tracing::info!(peer = %link.peer, device, ?code, %refusal, left_out, "turned away");
            }
        }
    }
    // In a place of its own, which a session does not keep.
    Box::pin(link.close()).await;
}

/// Runs an admitted device's session: the one that it takes up again, or a new one.
/// `slot`: the connection's, if it counts.
pub(crate) async fn run(services: Arc<Services>, mut link: Link, slot: Option<&ConnectionSlot>, admitted: Admitted) {
    let (device, peer, transport) = (admitted.id.clone(), link.peer, link.transport.label);
    if let (Some(mut session), Some(resume)) =
        (services.resumption.resumable.claim(&admitted).await, &admitted.asked.hello.resume)
    {
        tracing::info!(device, session = session.number, transport, %peer, "session resumed");
        if let Err(error) = session.resume(&link, resume, admitted.asked.received_us) {
            session.failed(&error);
        }
        return session.run(link, slot).await;
    }
    let number = services.admission.next_session();
    // In a place of its own, which a session does not keep.
    match Box::pin(Session::open(services, &mut link, admitted, number)).await {
        Ok(session) => {
            tracing::info!(device, session = number, transport, %peer, "session opened");
            session.run(link, slot).await;
        }
        Err(refusal) => {
            refusal.tell(&mut link);
            tracing::info!(device, %peer, code = ?refusal.code, %refusal, "turned away");
            Box::pin(link.close()).await;
        }
    }
}

/// How long a session may take to answer a claim: a round of its loop, and another one for each claim before it.
const CLAIM_MAX: Duration = Duration::from_secs(2);

/// Claims in a session's queue. Others, of connections whose handshakes end at the same moment, wait for their place.
const CLAIMS_WAITING_MAX: usize = 1;

/// A device's claim on its session. The session moves, whole, from the task of the old connection to that of the new one:
/// never do two tasks decide for one device.
struct Claim {
    resume: ResumeOwned,
    terms: Terms,
    /// When the device asked, on the gateway's clock.
    asked_us: u64,
    /// Gets the session; dropped if the claim is refused.
    reply: oneshot::Sender<Box<Session>>,
}

/// Claims on one session, and the secrets by which its device is known.
struct Claims {
    /// Boxed: a channel has room for 32 at once.
    waiting: mpsc::Receiver<Box<Claim>>,
    tokens: Tokens,
}

impl Claims {
    /// The next claim. Pending for ever if none can come.
    async fn next(&mut self) -> Claim {
        match self.waiting.recv().await {
            Some(claim) => *claim,
            None => std::future::pending().await,
        }
    }
}

/// Numbers of sessions and where claims on them go, by device.
type Claimable = BTreeMap<String, (u32, mpsc::Sender<Box<Claim>>)>;

/// The sessions that their devices may take up again.
#[derive(Default)]
pub(crate) struct Resumable(Mutex<Claimable>);

impl Resumable {
    fn with<R>(&self, act: impl FnOnce(&mut Claimable) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a device's session in place of its older one.
    fn enter(&self, device: &str, session: u32) -> Claims {
        let (sender, waiting) = mpsc::channel(CLAIMS_WAITING_MAX);
        self.with(|sessions| sessions.insert(device.to_owned(), (session, sender)));
        Claims { waiting, tokens: Tokens::default() }
    }

    /// Whether no session may be taken up again.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.with(|sessions| sessions.is_empty())
    }

    /// Takes a session out.
    fn leave(&self, device: &str, session: u32) {
        self.with(|sessions| {
            if sessions.get(device).is_some_and(|(number, _)| *number == session) {
                sessions.remove(device);
            }
        });
    }

    /// The session that this device asks for; `None`: it asks for none, or for one that cannot go on.
    async fn claim(&self, admitted: &Admitted) -> Option<Box<Session>> {
        let Admitted { id, record, asked: Asked { hello, received_us: asked_us, .. } } = admitted;
        let resume = hello.resume.clone()?;
        let terms = Terms::of(id, &record.user, &hello.capabilities).ok()?;
        let (_, session) = self.with(|sessions| sessions.get(id).cloned())?;
        let (reply, mut given) = oneshot::channel();
        let claim = Box::new(Claim { resume, terms, asked_us: *asked_us, reply });
        let handed_over = async {
            session.send(claim).await.ok()?;
            (&mut given).await.ok()
        };
        match timeout(CLAIM_MAX, handed_over).await {
            Ok(session) => session,
            Err(_) => {
                // It may have been handed over at this very moment.
                given.close();
                given.try_recv().ok()
            }
        }
    }
}

fn say_goodbye(link: &Link, reason: GoodbyeReason, text: &str) {
    let retry_after_ms = if reason == GoodbyeReason::ShuttingDown { 2_000 } else { 0 };
    let goodbye = message::Goodbye { reason, message: crop(text, limits::LABEL_BYTES_MAX), retry_after_ms };
    drop(link.down.send_last(clock::mono_us(), Down::Goodbye(goodbye)));
}

#[cfg(test)]
mod tests {
    use device_protocol::{
        Buttons, ChannelBinding, Codecs, DisplayKind, Sensors,
        up::{Capabilities, HelloOwned, Screen},
    };
    use futures_util::FutureExt as _;

    use super::*;
    use crate::store::DeviceRecord;

    /// A device that asks for a session.
    fn admitted(id: &str) -> Admitted {
        let (name, user, model) = ("G1".to_owned(), "ann".to_owned(), "G1".to_owned());
        let record = DeviceRecord { key: [7; 32], name, user, model, paired_wall_ms: 0, revoked: false };
        let display = Screen {
            kind: DisplayKind::Text,
            width_px: 0,
            height_px: 0,
            columns: 20,
            rows: 4,
            colour_bits: 0,
            captions: false,
        };
        let capabilities = Capabilities {
            codecs_up: Codecs::EMPTY,
            codecs_down: Codecs::EMPTY,
            audio_up_hz: 0,
            audio_down_hz: 0,
            display,
            speakers: 0,
            buttons: Buttons::EMPTY,
            sensors: Sensors::EMPTY,
            echo_cancelled: false,
            tools: 0,
            frame_bytes_max: 0,
            heartbeat_ms: 0,
            image_bytes_max: 0,
            hardware: 0,
            lc3_frame_us: 0,
            lc3_frame_bytes: 0,
        };
        let hello = HelloOwned {
            device_key: [7; 32],
            nonce_commitment: [0; 32],
            device_id: String::new(),
            model: record.model.clone(),
            firmware: String::new(),
            language: String::new(),
            capabilities,
            resume: Some(ResumeOwned { token: vec![1; 40], control_received: 0, audio_received: 0 }),
            binding: ChannelBinding::Exporter,
        };
        Admitted { id: id.to_owned(), record, asked: Asked { hello, sent_us: 0, received_us: 0 } }
    }

    #[test]
    fn a_device_whose_capabilities_have_changed_does_not_come_back_on_the_same_terms() {
        let before = admitted("glasses").asked.hello.capabilities;
        let terms = |capabilities: &Capabilities| Terms::of("glasses", "ann", capabilities).unwrap();
        assert!(terms(&before) == terms(&before));
        for changed in [
            Capabilities { tools: 1, ..before },
            Capabilities { frame_bytes_max: 2_048, ..before },
            Capabilities { heartbeat_ms: 20_000, ..before },
            Capabilities { image_bytes_max: 60_000, ..before },
            Capabilities { sensors: Sensors::WAKE, ..before },
            Capabilities { display: Screen { width_px: 640, ..before.display }, ..before },
        ] {
            assert!(terms(&before) != terms(&changed), "{changed:?}");
        }
    }

    #[tokio::test]
    async fn a_token_that_another_device_shows_reaches_no_session() {
        let resumable = Resumable::default();
        let mut claims = resumable.enter("glasses", 1);
        // It has proven a key of its own.
        assert!(resumable.claim(&admitted("thief")).await.is_none());
        assert!(claims.waiting.try_recv().is_err(), "the session is not asked");
        let glasses = admitted("glasses");
        let mut own = Box::pin(resumable.claim(&glasses));
        assert!((&mut own).now_or_never().is_none());
        assert_eq!(claims.next().await.resume.token, glasses.asked.hello.resume.clone().unwrap().token);
    }

    #[test]
    fn a_speaker_with_lc3_of_a_rate_that_is_only_decoded_stays_silent_and_the_microphone_is_heard() {
        let before = admitted("glasses").asked.hello.capabilities;
        let lc3 = |codecs_down, rate_hz| Capabilities {
            codecs_up: Codecs::LC3,
            codecs_down,
            audio_up_hz: 8_000,
            audio_down_hz: rate_hz,
            speakers: 1,
            lc3_frame_us: 10_000,
            lc3_frame_bytes: 40,
            ..before
        };
        let both = Codecs::LC3.with(Codecs::PCM16);
        for (capabilities, down_hz, is_silent) in [
            (lc3(Codecs::LC3, 8_000), None, true),
            (lc3(Codecs::LC3, 16_000), Some(16_000), false),
            (lc3(both, 8_000), Some(8_000), false),
            (lc3(Codecs::LC3, 0), None, false),
            (Capabilities { speakers: 0, ..lc3(Codecs::LC3, 8_000) }, None, false),
        ] {
            let terms = Terms::of("glasses", "ann", &capabilities).unwrap();
            assert_eq!(terms.formats.up.map(|(_, rate_hz)| rate_hz), Some(8_000));
            assert_eq!(terms.formats.down.map(|(_, rate_hz)| rate_hz), down_hz, "{capabilities:?}");
            assert_eq!((terms.info.speaker, terms.leaves_speaker_silent()), (down_hz.is_some(), is_silent));
        }
        assert!(Terms::of("glasses", "ann", &lc3(Codecs::LC3, 12_000)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn two_handshakes_that_end_at_the_same_moment_both_reach_the_session() {
        let resumable = Resumable::default();
        let mut claims = resumable.enter("glasses", 1);
        let admitted = admitted("glasses");
        let (mut first, mut second) = (Box::pin(resumable.claim(&admitted)), Box::pin(resumable.claim(&admitted)));
        assert!((&mut first).now_or_never().is_none(), "it waits for the session");
        assert!((&mut second).now_or_never().is_none(), "it waits for its place");
        // The session refuses both.
        drop(claims.next().await);
        assert!(first.await.is_none());
        assert!((&mut second).now_or_never().is_none(), "its turn comes");
        drop(claims.next().await);
        assert!(second.await.is_none());
        // One that has no time for them keeps nobody waiting for ever.
        assert!(resumable.claim(&admitted).await.is_none());
        assert!(resumable.claim(&admitted).await.is_none());
    }
}
