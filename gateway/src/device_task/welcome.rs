//! The welcome of a session.

use device_protocol::{Down, down as message};

use super::{down::listening, formats::format, session::Session};
use crate::{clock, transport::LinkError};

impl Session {
    /// Sends the message that opens the session on the device, or that goes on with it: with a session that outlived its
    /// link (`resumed`), or with what is left of one after a restart.
    ///
    /// # Errors
    /// The link is gone.
    pub(super) fn welcome(&mut self, resumed: bool, continued: Option<message::Continued>) -> Result<(), LinkError> {
        let now = clock::now();
        let is_resumable = self.link.outgoing.is_resumable();
        let token = if is_resumable { Some(self.claims.tokens.renew(self.stored.number())?) } else { None };
        let settings = self.services.settings.now();
        let resume_ms = settings.conversation.resume_ms_max;
        let resumed = resumed.then(|| message::Resumed {
            control_received: self.link.incoming.control_received(),
            audio_received: self.audio_received(),
        });
        let welcome = message::Welcome {
            session: self.number,
            resume_token: token.as_ref().map_or(&[], |token| token.as_slice()),
            resume_ms: if is_resumable { resume_ms } else { 0 },
            resumed,
            gateway_name: &settings.gateway_name,
            user_name: &self.user.name,
            heartbeat_ms: self.link.heartbeat_ms(),
            audio_up: format(self.terms.formats.up),
            audio_down: format(self.terms.formats.down),
            wall_ms: u64::try_from(now.wall_ms).unwrap_or(0),
            zone_offset_s: now.offset_s,
            listening: listening(self.driver.machine().listening()),
            continued,
        };
        self.link.outgoing.send(0, now.mono_us, Down::Welcome(welcome)).map(drop)
    }
}
