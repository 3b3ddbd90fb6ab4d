//! Who is connected.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use device_protocol::GoodbyeReason;
use tokio::sync::Notify;
use tools::ports::DeviceStatus;

use crate::{
    clock,
    mailbox::{DeviceMessage, Ending, Mailbox},
    transport::Transport,
};

/// What other tasks know of a connected device, and how they reach it.
#[derive(Clone)]
pub struct Present {
    /// Number in the gateway's records.
    pub session: u32,
    /// Whom it belongs to.
    pub user: String,
    /// BCP 47 tag of the wearer's language.
    pub language: String,
    /// Its task. Closed once the session has ended.
    pub mailbox: Mailbox,
    /// Ends its session.
    pub(crate) ending: Ending,
    /// What it last said of itself.
    pub status: Arc<Mutex<DeviceStatus>>,
    /// How it is connected.
    pub via: Via,
}

/// A connection, for people.
#[derive(Clone, Copy, Debug)]
pub struct Via {
    /// WebSocket with or without TLS, QUIC, or none for a request over the control socket.
    pub transport: Transport,
    /// From where.
    pub peer: SocketAddr,
    /// Since when, in microseconds of the gateway's clock.
    pub since_us: u64,
    /// When its `hello` came, likewise: a device that is being paired is connected long after that.
    pub asked_us: u64,
    /// When the first frame behind its welcome came, likewise; `None`: none has.
    pub confirmed_us: Option<u64>,
    /// When it was lost, if it was; the session waits for the device to resume it.
    pub lost_us: Option<u64>,
    /// Number of the turn that is under way.
    pub turn: Option<u32>,
}

impl Via {
    /// A connection that stands from now on.
    pub fn new(transport: Transport, peer: SocketAddr, asked_us: u64) -> Self {
        let since_us = clock::mono_us();
        Self { transport, peer, since_us, asked_us, confirmed_us: None, lost_us: None, turn: None }
    }

    /// Whether a handshake whose `hello` came at this time is late: the device has asked for this connection since then, or has
    /// begun to use it.
    fn overtakes(&self, asked_us: u64) -> bool {
        self.confirmed_us.unwrap_or(self.asked_us) > asked_us
    }
}

/// Devices whose last session is remembered: more than a box has.
const LEFT_MAX: usize = 1_024;

/// Why a session is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("as many devices are connected as the gateway allows")]
    Full,
    /// Of two handshakes at once, the one that was begun first has ended last.
    #[error("this device has connected again since it asked")]
    Overtaken,
}

/// All connected devices, by fingerprint, and when others were last here.
#[derive(Default)]
pub struct Roster {
    present: Mutex<BTreeMap<String, Present>>,
    /// When their last session ended, in milliseconds since the Unix epoch.
    left: Mutex<BTreeMap<String, i64>>,
    emptied: Notify,
}

impl Roster {
    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<String, Present>) -> R) -> R {
        act(&mut self.present.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When the last session of a device ended, where it had one since the gateway was started.
    pub(crate) fn left_wall_ms(&self, id: &str) -> Option<i64> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// Tells a user's glasses, or everybody's, that changed tools are to count at once; how many were told.
    pub(crate) fn apply_tools(&self, user: Option<&str>) -> usize {
        let told = |(_, present): &(String, Present)| {
            user.is_none_or(|user| present.user == user) && present.mailbox.try_send(DeviceMessage::ApplyTools).is_ok()
        };
        self.all().iter().filter(|device| told(device)).count()
    }

    /// Enters a device, and returns its older session, which is told to leave. Sessions that wait for their link are
    /// counted apart: where they are more, the one that has waited longest gives way.
    ///
    /// # Errors
    /// `sessions_max` others are connected, or the device has a session that it asked for, or began to use, later.
    pub fn enter(&self, id: &str, present: Present, sessions_max: usize) -> Result<Option<Present>, Refused> {
        self.with(|devices| {
            if devices.get(id).is_some_and(|newer| newer.via.overtakes(present.via.asked_us)) {
                return Err(Refused::Overtaken);
            }
            let others = || devices.iter().filter(|(other, _)| *other != id).map(|(_, present)| present);
            let waiting = others().filter(|present| present.via.lost_us.is_some());
            let (waits, oldest) = (waiting.clone().count(), waiting.min_by_key(|present| present.via.lost_us));
            if others().count() - waits >= sessions_max {
                return Err(Refused::Full);
            }
            if let Some(oldest) = oldest.filter(|_| waits > sessions_max) {
                oldest.ending.ask(GoodbyeReason::Replaced, "too many sessions wait for their devices");
            }
            let old = devices.insert(id.to_owned(), present);
            if let Some(old) = &old {
                old.ending.ask(GoodbyeReason::Replaced, "this device connected again");
            }
            Ok(old)
        })
    }

    /// Changes what is known of the connection of a session; of one that has left its device's place, nothing.
    fn update_via(&self, id: &str, session: u32, change: impl FnOnce(&mut Via)) {
        self.with(|devices| {
            if let Some(present) = devices.get_mut(id).filter(|present| present.session == session) {
                change(&mut present.via);
            }
        });
    }

    /// The connection of a session is lost.
    pub fn lost(&self, id: &str, session: u32) {
        self.update_via(id, session, |via| via.lost_us = Some(clock::mono_us()));
    }

    /// The first frame of a session has come over its connection, at this time.
    pub fn confirmed(&self, id: &str, session: u32, at_us: u64) {
        self.update_via(id, session, |via| via.confirmed_us = Some(at_us));
    }

    /// A session goes on over another connection.
    pub fn moved(&self, id: &str, session: u32, via: Via) {
        self.update_via(id, session, |old| *old = Via { turn: old.turn, ..via });
    }

    /// The connection of a session goes on from another address of its device.
    pub fn migrated(&self, id: &str, session: u32, peer: SocketAddr) {
        self.update_via(id, session, |via| via.peer = peer);
    }

    /// A turn of a session begins, or none is under way any more.
    pub fn turn(&self, id: &str, session: u32, turn: Option<u32>) {
        self.update_via(id, session, |via| via.turn = turn);
    }

    /// Takes a session out of its device's place; `false` when another one has it.
    pub fn leave(&self, id: &str, session: u32) -> bool {
        let taken_out = self.with(|devices| match devices.get(id) {
            Some(present) if present.session != session => None,
            _ => {
                let taken_out = devices.remove(id);
                if taken_out.is_some() && devices.is_empty() {
                    self.emptied.notify_one();
                }
                Some(taken_out)
            }
        });
        if let Some(Some(present)) = &taken_out
            && present.via.transport.is_glasses
        {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            if left.len() < LEFT_MAX || left.contains_key(id) {
                left.insert(id.to_owned(), clock::wall_ms());
            }
        }
        taken_out.is_some()
    }

    /// Whether no device has a session.
    pub(crate) fn is_empty(&self) -> bool {
        self.with(|devices| devices.is_empty())
    }

    /// Waits until the last session has ended; also of one that ended since the last call.
    pub(crate) async fn emptied(&self) {
        self.emptied.notified().await;
    }

    /// The device of this id; `None`: it is not connected.
    pub fn get(&self, id: &str) -> Option<Present> {
        self.with(|devices| devices.get(id).cloned())
    }

    /// Every connected device, with its id.
    pub fn all(&self) -> Vec<(String, Present)> {
        self.with(|devices| devices.iter().map(|(id, present)| (id.clone(), present.clone())).collect())
    }

    /// A user's glasses, first those that are meant where one pair is asked for: those whose link stands, and of these the
    /// ones that have connected last.
    pub(crate) fn glasses_of(&self, user: &str) -> Vec<(String, Present)> {
        let mut glasses = self.all();
        glasses.retain(|(_, present)| present.user == user && present.via.transport.is_glasses);
        glasses.sort_by_key(|(_, Present { via, .. })| Reverse((via.lost_us.is_none(), via.since_us)));
        glasses
    }

    /// Asks a device's session to end; the session, if there is one. Its mailbox is closed once it has ended.
    pub(crate) fn dismiss(&self, id: &str, reason: GoodbyeReason, message: &'static str) -> Option<Present> {
        let present = self.get(id)?;
        present.ending.ask(reason, message);
        Some(present)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::mailbox::DismissReason;

    fn asked(ending: &Ending) -> Option<DismissReason> {
        futures_util::FutureExt::now_or_never(ending.asked())
    }

    fn session(session: u32) -> (Present, mpsc::Receiver<DeviceMessage>) {
        let (mailbox, received) = mpsc::channel(1);
        let via = Via::new(Transport::WSS, ([127, 0, 0, 1], 1).into(), clock::mono_us());
        let (user, language) = ("ann".to_owned(), "en".to_owned());
        (Present { session, user, language, mailbox, ending: Ending::default(), status: Arc::default(), via }, received)
    }

    #[test]
    fn the_older_session_is_told_to_leave_and_handed_back_until_it_has_ended() {
        let roster = Roster::default();
        let ((old, received), (new, _kept)) = (session(1), session(2));
        // However full its mailbox is.
        old.mailbox.try_send(DeviceMessage::CancelCalls).unwrap();
        assert!(old.mailbox.try_send(DeviceMessage::CancelCalls).is_err());
        let ending = old.ending.clone();
        assert!(asked(&ending).is_none());
        assert!(matches!(roster.enter("glasses", old, 1), Ok(None)));
        assert!(matches!(roster.enter("others", session(3).0, 1), Err(Refused::Full)));
        let replaced = roster.enter("glasses", new, 1).unwrap().expect("the older session");
        assert_eq!(asked(&ending).map(|(reason, _)| reason), Some(GoodbyeReason::Replaced));
        replaced.ending.ask(GoodbyeReason::Revoked, "too late");
        assert_eq!(asked(&ending).map(|(reason, _)| reason), Some(GoodbyeReason::Replaced), "the first reason");
        assert!(!replaced.mailbox.is_closed());
        drop(received);
        assert!(replaced.mailbox.is_closed());
    }

    #[test]
    fn a_handshake_that_ends_late_does_not_take_the_place_of_a_session_that_was_asked_for_since() {
        let roster = Roster::default();
        let asked_at = |number: u32, asked_us: u64| {
            let (present, received) = session(number);
            (Present { via: Via { asked_us, ..present.via }, ..present }, received)
        };
        let ((stands, _received), (early, _)) = (asked_at(1, 20), asked_at(2, 19));
        let ending = stands.ending.clone();
        assert!(roster.enter("glasses", stands, 1).is_ok());
        assert!(matches!(roster.enter("glasses", early, 1), Err(Refused::Overtaken)));
        // One that the session was resumed over counts, as does the moment in which nobody was first.
        roster.moved("glasses", 1, Via { asked_us: 30, ..asked_at(3, 0).0.via });
        assert!(matches!(roster.enter("glasses", asked_at(3, 29).0, 1), Err(Refused::Overtaken)));
        assert!(asked(&ending).is_none(), "the session goes on");
        // So does the first frame over its connection.
        roster.confirmed("glasses", 1, 40);
        assert!(matches!(roster.enter("glasses", asked_at(4, 39).0, 1), Err(Refused::Overtaken)));
        // Another connection has shown nothing yet.
        roster.moved("glasses", 1, Via { asked_us: 35, ..asked_at(5, 0).0.via });
        assert!(asked(&ending).is_none(), "the session goes on");
        assert!(matches!(roster.enter("glasses", asked_at(6, 36).0, 1), Ok(Some(_))));
    }

    #[test]
    fn sessions_that_wait_for_their_links_lock_nobody_out_and_are_bounded() {
        let roster = Roster::default();
        let (waiting, endings): (Vec<_>, Vec<_>) = (1..=4)
            .map(|number| {
                let (present, received) = session(number);
                let ending = present.ending.clone();
                assert!(roster.enter(&format!("lost {number}"), present, 2).is_ok(), "{number}");
                roster.lost(&format!("lost {number}"), number);
                (received, ending)
            })
            .unzip();
        let gone = |at: usize| asked(&endings[at]).is_some();
        assert_eq!([gone(0), gone(1), gone(2)], [true, false, false], "of three that wait the oldest gives way");
        roster.leave("lost 1", 1);
        assert!(roster.enter("one", session(4).0, 2).is_ok() && roster.enter("two", session(5).0, 2).is_ok());
        assert!(roster.enter("three", session(6).0, 2).is_err(), "two are connected");
        drop(waiting);
    }

    #[test]
    fn of_a_users_glasses_those_that_connected_last_and_still_are_come_first() {
        let roster = Roster::default();
        let via = |since_us, transport| Via { since_us, transport, ..session(0).0.via };
        for (number, id, user, via) in [
            (1, "c", "ann", via(10, Transport::WSS)),
            (2, "a", "ann", via(20, Transport::WSS)),
            (3, "b", "ann", via(30, Transport::QUIC)),
            (4, "text.1", "ann", via(40, Transport::TEXT)),
            (5, "d", "bob", via(50, Transport::WSS)),
        ] {
            let present = Present { user: user.to_owned(), via, ..session(number).0 };
            assert!(roster.enter(id, present, 9).is_ok());
        }
        let order = || roster.glasses_of("ann").into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(order(), ["b", "a", "c"]);
        roster.lost("b", 3);
        assert_eq!(order(), ["a", "c", "b"]);
        roster.moved("c", 1, via(60, Transport::WSS));
        assert_eq!(order(), ["c", "a", "b"]);
    }

    #[test]
    fn only_the_session_that_has_the_place_or_the_last_one_leaves_it() {
        let roster = Roster::default();
        assert!(roster.enter("glasses", session(1).0, 1).is_ok());
        assert!(roster.enter("glasses", session(2).0, 1).is_ok());
        assert!(!roster.leave("glasses", 1) && roster.get("glasses").is_some());
        assert!(roster.left_wall_ms("glasses").is_none());
        assert!(roster.leave("glasses", 2) && roster.get("glasses").is_none());
        assert!(roster.left_wall_ms("glasses").is_some());
        // The newer one gave up before this one ended.
        assert!(roster.leave("glasses", 1));
    }

    #[test]
    fn a_device_is_seen_at_the_address_at_which_its_present_session_goes_on() {
        let roster = Roster::default();
        let peer = || roster.get("glasses").unwrap().via.peer;
        assert!(roster.enter("glasses", session(1).0, 1).is_ok() && roster.enter("glasses", session(2).0, 1).is_ok());
        let (first, moved) = (peer(), SocketAddr::from(([127, 0, 0, 2], 7)));
        roster.migrated("glasses", 1, moved);
        assert_eq!(peer(), first, "of the session before");
        roster.migrated("glasses", 2, moved);
        assert_eq!(peer(), moved);
    }

    #[test]
    fn the_end_of_the_last_session_is_told_once() {
        let roster = Roster::default();
        let is_told = || futures_util::FutureExt::now_or_never(roster.emptied()).is_some();
        assert!(roster.leave("glasses", 1) && roster.is_empty() && !is_told(), "nobody was there");
        assert!(roster.enter("one", session(1).0, 2).is_ok() && roster.enter("two", session(2).0, 2).is_ok());
        assert!(roster.leave("one", 1) && !roster.is_empty() && !is_told());
        assert!(roster.leave("two", 2) && roster.is_empty() && is_told() && !is_told());
    }
}
