//! A session's loop: external events, and timers that are due.

use std::net::SocketAddr;

use bytes::Bytes;
use device_protocol::{Down, GoodbyeReason, down};
use gateway_core::{
    conversation::Conversation,
    driver::Driver,
    input::{Input, UserInput},
    output::Output,
    vocab::{ModelEvent, Timestamp, Turn},
};

use super::{
    Claim, ERASING, say_goodbye,
    session::{End, Session},
    untold,
};
use crate::{
    clock,
    mailbox::{DeviceMessage, DismissReason},
    runtime::drive::{Shell, drive, settle},
    speech::ear::Ear,
    transport::{Link, LinkError, Receiver, slots::ConnectionSlot},
};

impl Session {
    /// Runs until the session ends, or until another connection of its device takes it over. It outlives `link` where
    /// its device may resume, and gives the connection's slot back.
    pub(super) async fn run(mut self: Box<Self>, link: Link, slot: Option<&ConnectionSlot>) {
        let mut connection = Connection { link: Some(link), slot };
        let reason = loop {
            let up = connection.link.as_mut().map(|link| &mut link.up);
            match drive(&mut Running { session: &mut self, up }).await {
                End::Over(reason) => break reason,
                End::Lost if connection.link.is_some() && self.link.outgoing.is_resumable() => {
                    self.lost();
                    connection.let_go();
                }
                End::Lost => break None,
                End::Claimed(Claim { reply, .. }) => {
                    self.lost();
                    match reply.send(self) {
                        Ok(()) => return Box::pin(replaced(connection.link)).await,
                        // The claimant has gone.
                        Err(session) => {
                            self = session;
                            connection.let_go();
                        }
                    }
                }
            }
        };
        // In a place of its own, which a session does not keep.
        Box::pin(self.finish(reason, connection.link)).await;
    }

    /// The link is gone, if it was not yet; the session waits for its device.
    fn lost(&mut self) {
        if self.link.lose() {
            tracing::info!(device = self.id, session = self.number, "link lost");
            self.services.roster.lost(&self.id, self.number);
            self.photos.wait();
            self.input(Input::LinkLost);
            self.tell_user(UserInput::DeviceLeft { device: self.id.clone() });
        }
    }

    /// A frame has come from this address: a device that moves keeps its connection over QUIC.
    fn comes_from(&mut self, peer: SocketAddr) {
        if self.link.comes_from(peer) {
            tracing::debug!(device = self.id, session = self.number, %peer, "goes on from another address");
            self.services.roster.migrated(&self.id, self.number, peer);
        }
    }

    /// Ends what is in progress, with what was heard of it. The rest is told on the wearer's next device, however the session ends,
    /// unless the gateway stops: then the next process tells of it. What was asked for on the control socket is not told on glasses.
    async fn finish(mut self: Box<Self>, reason: Option<(GoodbyeReason, String)>, link: Option<Link>) {
        let is_stopping = matches!(reason, Some((GoodbyeReason::ShuttingDown, _)));
        // Another session of these glasses that takes its place before the welcome has arrived tells what the process before this one
        // has left.
        let (roster, stored) = (&self.services.roster, &self.services.resumption.stored);
        let was_left = stored.is_left_for(&self.id, &self.user.name);
        let is_replaced = roster.get(&self.id).is_some_and(|present| present.session != self.number);
        let is_told = self.link.is_glasses() && !is_stopping && !(was_left && is_replaced);
        self.input(Input::LinkLost);
        if is_told {
            self.photos.give_up();
            self.tell_of_lost_photos();
        }
        self.input(if is_told { Input::NotResumed } else { Input::Shutdown });
        settle(&mut Running { session: &mut self, up: None });
        // Glasses that only read have shown it, and their welcome has never arrived.
        let is_left = is_told && self.services.resumption.stored.is_left_for(&self.id, &self.user.name);
        if is_left && untold::tell_left_of(&self.services, &self.user.name, &self.id) {
            self.stored.keep();
        }
        self.stored.end();
        self.leave().await;
        let (device, session) = (&self.id, self.number);
        match &reason {
            Some((reason, text)) => tracing::info!(device, session, ?reason, text, "session closed"),
            None => tracing::info!(device, session, "session over: the device said goodbye, or did not come back"),
        }
        drop(self);
        if let Some(link) = link {
            if let Some((reason, text)) = reason {
                say_goodbye(&link, reason, &text);
            }
            link.close().await;
        }
    }

    /// Acknowledges what has arrived, where that is due.
    fn acknowledge(&mut self) -> Result<(), LinkError> {
        let now_us = clock::mono_us();
        if self.ack_due_us().is_none_or(|at_us| at_us > now_us) {
            return Ok(());
        }
        let audio = self.audio_received();
        let missing = self.ear.as_mut().and_then(|ear| ear.take_missing(now_us));
        // What is missing is asked for at any time; reports are of as much sound as ever.
        if self.link.incoming.ack_due_us().is_some_and(|at_us| at_us <= now_us) {
            self.link.incoming.acknowledged();
            self.report_sound();
        }
        let quiet_us = self.ear.as_ref().and_then(Ear::quiet_until_us);
        let sound_until_us = self.stored.dealt_with_us(self.link.incoming.sound_until_us(), quiet_us);
        let ack = self.link.incoming.ack(audio);
        let (audio_missing, audio_missing_bits) = missing.map_or((0, 0), |missing| (missing.count, missing.others));
        let ack = down::Ack { audio_missing, audio_missing_bits, sound_until_us, ..ack };
        self.link.send(None, Down::Ack(self.link.quality.advise(ack, self.terms.formats.up)))
    }

    fn ack_due_us(&self) -> Option<u64> {
        let missing_us = self.ear.as_ref().is_some_and(Ear::is_missing).then_some(0);
        let due_us = missing_us.or(self.link.incoming.ack_due_us()).filter(|_| self.link.acknowledges())?;
        Some(due_us.max(self.stored.withheld_until_us()))
    }

    /// The last sound that need not be sent again. Behind a gap that may still fill, it is the one before the gap.
    pub(super) fn audio_received(&self) -> u32 {
        let taken = self.ear.as_ref().and_then(Ear::last_sequence);
        taken.unwrap_or(self.link.incoming.audio_received())
    }
}

/// The connection of a session, while it stands.
struct Connection<'a> {
    link: Option<Link>,
    /// Its slot among all connections, if it counts.
    slot: Option<&'a ConnectionSlot>,
}

impl Connection<'_> {
    /// Drops the link, without a farewell: a peer that is gone answers none. The session may wait for long, and holds no slot
    /// meanwhile.
    fn let_go(&mut self) {
        self.link = None;
        self.slot.inspect(|slot| slot.give_back());
    }
}

/// Closes the connection whose session another one has taken over.
async fn replaced(link: Option<Link>) {
    if let Some(link) = link {
        say_goodbye(&link, GoodbyeReason::Replaced, "this device connected again");
        link.close().await;
    }
}

/// A session with its link.
struct Running<'a> {
    session: &'a mut Session,
    /// Frames from the device; `None` while the link is lost.
    up: Option<&'a mut Receiver>,
}

/// An external event of a session.
#[allow(clippy::large_enum_variant, reason = "one at a time, taken apart where it is made")]
enum Event {
    Message(Option<DeviceMessage>),
    Frame(Result<Option<Bytes>, LinkError>),
    Model(Turn, ModelEvent),
    /// The link has sent the sound that it had.
    Room,
    /// The device has come back on another connection.
    Claimed(Claim),
    /// The gateway or its operator ends it.
    Dismissed(DismissReason),
    /// All data of the user is being erased.
    Erasing,
    /// Other firmware may have to be offered.
    Firmware,
}

impl Shell for Running<'_> {
    type Machine = Conversation;
    type Event = Event;
    type End = End;

    fn driver(&mut self) -> &mut Driver<Conversation> {
        &mut self.session.driver
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn next_event(&mut self) -> Event {
        tokio::select! {
            biased;
            reason = self.session.ending.asked() => Event::Dismissed(reason),
            message = self.session.messages.recv() => Event::Message(message),
            // A session that was too busy for the goodbye ends here.
            () = self.session.user.lease.ended() => Event::Erasing,
            claim = self.session.claims.next() => Event::Claimed(claim),
            () = self.session.link.outgoing.room_for_sound() => Event::Room,
            () = self.session.update.changed() => Event::Firmware,
            frame = next_frame(&mut self.up) => Event::Frame(frame),
            // Last: a long answer that comes at once must not keep back what the wearer does.
            (turn, event) = self.session.requests.next_event() => Event::Model(turn, event),
        }
    }

    fn handle_event(&mut self, event: Event) {
        let session = &mut *self.session;
        match event {
            Event::Message(Some(message)) => session.handle_message(message),
            Event::Message(None) => {}
            Event::Dismissed(reason) => session.dismissed(reason),
            Event::Erasing => session.close(GoodbyeReason::ShuttingDown, ERASING.to_owned()),
            Event::Claimed(claim) if session.grants(&claim) => session.end(End::Claimed(claim)),
            // The claimant opens a new session, which replaces this one.
            Event::Claimed(_) => {}
            // More is sent when everything has settled.
            Event::Room | Event::Firmware => {}
            Event::Frame(Ok(Some(bytes))) => {
                if let Some(peer) = self.up.as_deref().and_then(Receiver::peer) {
                    session.comes_from(peer);
                }
                session.frame(&bytes);
            }
            Event::Model(turn, event) => session.input(Input::Model { turn, event }),
            Event::Frame(Ok(None)) => session.end(End::Lost),
            Event::Frame(Err(error)) => session.failed(&error),
        }
    }

    fn carry_out(&mut self, output: Output) {
        if let Err(error) = self.session.carry_out(output) {
            self.session.failed(&error);
        }
    }

    /// Hears what else has come. When nothing follows from it any more, stores what has changed, and sends the speech, the
    /// acknowledgement and the firmware that are due, in this order. Behind all of it, tells who waits for what was typed.
    fn settled(&mut self) {
        let session = &mut *self.session;
        // While the link is lost no sound is missing: it comes with the replay.
        if self.up.is_some() {
            session.hear_more();
        }
        if !session.driver.is_idle() {
            return;
        }
        session.stored.stream_ended(session.link.incoming.stream_end_us());
        session.stored.store();
        let sent = session.send_speech().and_then(|()| session.acknowledge()).and_then(|()| session.update_firmware());
        if let Err(error) = sent {
            session.failed(&error);
        }
        session.typed.settled();
    }

    fn next_tick_us(&self) -> Option<u64> {
        let session = &self.session;
        // Else the link wakes the session.
        let speech = session.speech.next_wake_us().filter(|_| session.link.outgoing.takes_sound());
        // While the link is lost no sound is missing: it comes with the replay.
        let ear = session.ear.as_ref().filter(|_| self.up.is_some()).and_then(Ear::next_wake_us);
        let own =
            session.ack_due_us().into_iter().chain(session.photos.next_wake_us()).chain(session.firmware_due_us());
        ear.into_iter().chain(speech).chain(own).min()
    }

    fn tick(&mut self) {
        if let Some(ear) = self.session.ear.as_mut().filter(|_| self.up.is_some()) {
            ear.tick(clock::mono_us());
            self.session.end_if_undecodable();
        }
        self.session.photos.tick(clock::mono_us());
        self.session.tell_of_lost_photos();
        self.session.take_facts();
        // Only timers of the core depend on it, and each of them fires behind it: the deadline for silence cannot pass
        // while frames come.
        let is_due = self.session.driver.poll_timeout().is_some_and(|(at_us, _)| at_us <= clock::mono_us());
        if is_due && let Some(at_us) = self.session.link.take_heard_us() {
            self.session.input(Input::Alive { at_us });
        }
    }

    fn end(&mut self) -> Option<End> {
        self.session.end.take()
    }
}

async fn next_frame(up: &mut Option<&mut Receiver>) -> Result<Option<Bytes>, LinkError> {
    match up {
        Some(up) => up.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{memory, slots::ConnectionSlots};

    #[test]
    fn a_connection_that_is_let_go_closes_and_holds_no_place() {
        let slots = ConnectionSlots::new(2);
        let peer = SocketAddr::from(([192, 0, 2, 1], 1));
        let [slot, _other] = [(); 2].map(|()| {
            let slot = slots.take(&peer).unwrap();
            slot.admit();
            slot
        });
        assert!(slots.take(&peer).is_none(), "both are admitted");
        let (link, ends) = memory::link();
        let mut connection = Connection { link: Some(link), slot: Some(&slot) };
        connection.let_go();
        assert!(ends.up.is_closed());
        assert!(slots.take(&peer).is_some());
    }
}
