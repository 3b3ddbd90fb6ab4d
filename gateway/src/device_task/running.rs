//! A session's loop: external events, and timers that are due.

use bytes::Bytes;
use device_protocol::GoodbyeReason;
use gateway_core::{conversation::Conversation, driver::Driver, input::Input, output::Output, vocab::Timestamp};

use super::session::{End, Session, end_of};
use crate::{
    clock, erasing,
    mailbox::{DeviceMessage, Farewell},
    runtime::drive::{Shell, drive, settle},
    speech::{ear::Ear, mouth::Mouth},
    transport::{Link, LinkError},
};

impl Session {
    /// Runs until the session ends.
    pub(super) async fn run(mut self, link: &mut Link) -> End {
        let mut running = Running { session: &mut self, link };
        let end = drive(&mut running).await;
        // Sessions are not resumed yet: what is in progress ends now, with what was heard of it.
        running.session.input(Input::LinkLost);
        running.session.input(Input::Shutdown);
        settle(&mut running);
        self.leave().await;
        end
    }
}

/// A session with its link.
struct Running<'a> {
    session: &'a mut Session,
    link: &'a mut Link,
}

/// An external event of a session.
#[allow(clippy::large_enum_variant, reason = "one at a time, taken apart where it is made")]
enum Event {
    Message(Option<DeviceMessage>),
    Frame(Result<Option<Bytes>, LinkError>),
    /// The gateway or its operator ends it.
    Dismissed(Farewell),
    /// All data of the user is being erased.
    Erasing,
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
            farewell = self.session.ending.asked() => Event::Dismissed(farewell),
            message = self.session.messages.recv() => Event::Message(message),
            // A session that was too busy for the goodbye ends here.
            () = self.session.lease.ended() => Event::Erasing,
            frame = self.link.up.recv() => Event::Frame(frame),
        }
    }

    fn handle_event(&mut self, event: Event) {
        let (session, down) = (&mut *self.session, &mut self.link.down);
        match event {
            Event::Message(Some(message)) => session.handle_message(message, down),
            Event::Message(None) => {}
            Event::Dismissed(farewell) => session.dismissed(farewell),
            Event::Erasing => session.end = Some(Some((GoodbyeReason::ShuttingDown, erasing::GOODBYE.to_owned()))),
            Event::Frame(Ok(Some(bytes))) => session.frame(&bytes, down),
            Event::Frame(Ok(None)) => session.end = Some(None),
            Event::Frame(Err(error)) => session.end = Some(end_of(&error)),
        }
    }

    fn carry_out(&mut self, output: Output) {
        if let Err(error) = self.session.carry_out(output, &mut self.link.down) {
            self.session.end.get_or_insert_with(|| end_of(&error));
        }
    }

    /// Sends the speech that is due.
    fn settled(&mut self) {
        if let Err(error) = self.session.send_speech(&mut self.link.down) {
            self.session.end.get_or_insert_with(|| end_of(&error));
        }
    }

    fn next_tick_us(&self) -> Option<u64> {
        let ear = self.session.ear.as_ref().and_then(Ear::next_wake_us);
        let mouth = self.session.mouth.as_ref().and_then(Mouth::next_wake_us);
        ear.into_iter().chain(mouth).chain(self.session.photos.next_wake_us()).min()
    }

    fn tick(&mut self) {
        if let Some(ear) = &mut self.session.ear {
            ear.tick(clock::mono_us());
        }
        self.session.photos.tick(clock::mono_us());
        self.session.take_facts();
        if let Some(at_us) = self.session.heard_us.take() {
            self.session.input(Input::Alive { at_us });
        }
    }

    fn end(&mut self) -> Option<End> {
        self.session.end.take()
    }
}
