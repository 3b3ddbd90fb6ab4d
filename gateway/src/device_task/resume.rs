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
    /// Whether a claim is good: the device asked later than for the present connection, the token is right, nothing is missing for
    /// the replay, and the device is as it was.
    pub(super) fn grants(&self, claim: &Claim) -> bool {
        let Claim { resume, terms, asked_us, .. } = claim;
        *asked_us >= self.link.asked_us()
            && self.claims.tokens.have(&resume.token)
            && self.link.outgoing.can_replay(resume.control_received)
            && *terms == self.terms
    }

    /// A frame has come over the present connection, at this time: the device has its welcome.
    pub(super) fn welcome_arrived(&mut self, now_us: u64) {
        if !self.link.confirm() {
            return;
        }
        self.services.roster.confirmed(&self.id, self.number, now_us);
        if self.claims.tokens.welcome_arrived() {
            self.services.resumption.stored.welcome_arrived(&self.id, &self.user.name);
            self.stored.keep();
            self.give_up_asking();
        }
    }

    /// Goes on over this connection, for which the device asked at `asked_us` of the gateway's clock: welcomes it, and replays what
    /// it has not received.
    ///
    /// # Errors
    /// The new link is gone, or too slow.
    pub(super) fn resume(&mut self, link: &Link, resume: &ResumeOwned, asked_us: u64) -> Result<(), LinkError> {
        self.claims.tokens.come_with(&resume.token);
        self.services.roster.moved(&self.id, self.number, Via::new(link.transport, link.peer, asked_us));
        if let Some(ear) = &mut self.ear {
            ear.resume(open::waits(link.transport, true), clock::mono_us());
        }
        let audio_received = self.audio_received();
        self.link.resume((link, asked_us), audio_received);
        self.photos.resume(clock::mono_us());
        self.turns.moved(link.transport);
        self.tell_user(UserInput::DeviceJoined { device: self.id.clone() });
        self.welcome(true, None)?;
        self.link.outgoing.replay(resume.control_received, resume.audio_received)?;
        self.input(Input::Connected { device: self.terms.info.clone(), resumed: true });
        Ok(())
    }
}
