//! Resumption: a device that lost its link goes on with its session on a new connection (PROTOCOL.md, section 9).

use device_protocol::up::ResumeOwned;
use gateway_core::input::{Input, UserInput};

use super::{Claim, open, session::Session};
use crate::{
    clock,
    roster::Via,
    transport::{Link, LinkError},
};

impl Session {
    /// Whether a claim is good: the token is right, nothing is missing for the replay, and the device is as it was.
    pub(super) fn grants(&self, claim: &Claim) -> bool {
        let Claim { resume, user, formats, info, .. } = claim;
        self.claims.tokens.have(&resume.token)
            && self.outgoing.can_replay(resume.control_received)
            && (user, formats, info) == (&self.user_name, &self.formats, &self.info)
    }

    /// A frame has come over the present connection: the device has its welcome.
    pub(super) fn welcome_arrived(&mut self) {
        if self.claims.tokens.welcome_arrived() {
            self.services.resumption.stored.welcome_arrived(&self.id);
            self.stored.keep();
        }
    }

    /// Goes on over this connection: welcomes the device, and replays what it has not received.
    ///
    /// # Errors
    /// The new link is gone, or too slow.
    pub(super) fn resume(&mut self, link: &Link, resume: &ResumeOwned) -> Result<(), LinkError> {
        self.claims.tokens.come_with(&resume.token);
        self.transport = link.transport;
        self.services.roster.moved(&self.id, self.number, Via::now(link.transport, link.peer));
        if let Some(ear) = &mut self.ear {
            ear.resume(open::waits(link.transport, true), clock::mono_us());
        }
        self.incoming.resume(self.audio_received());
        self.quality.resume(clock::mono_us());
        self.outgoing.attach(link.down.clone());
        self.tell_user(UserInput::DeviceJoined { device: self.id.clone() });
        self.welcome(true, None)?;
        self.outgoing.replay(resume.control_received, resume.audio_received)?;
        self.input(Input::Connected { device: self.info.clone(), resumed: true });
        Ok(())
    }
}
