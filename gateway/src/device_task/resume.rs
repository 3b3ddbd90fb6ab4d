//! Resumption: a device that lost its link takes up its session on a new connection (PROTOCOL.md, section 9).
//!
//! The session moves, whole, from the task of the old connection to that of the new one: never do two tasks decide for
//! one device.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use device_protocol::up::ResumeOwned;
use gateway_core::{
    input::{Input, UserInput},
    vocab::DeviceInfo,
};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    formats, open,
    restart::{self, TOKEN_BYTES},
    session::Session,
};
use crate::{
    clock,
    identity::{self, Admitted},
    roster::Via,
    transport::{Link, LinkError},
};

/// How long a session may take to answer a claim: one round of its loop.
const CLAIM_MAX: Duration = Duration::from_secs(2);

/// Claims that may wait for one session: each is answered in one round of its loop.
const CLAIMS_WAITING_MAX: usize = 1;

/// A device's claim on its session.
pub(super) struct Claim {
    resume: ResumeOwned,
    user: String,
    formats: formats::Agreed,
    info: DeviceInfo,
    /// Gets the session; dropped if the claim is refused.
    pub(super) reply: oneshot::Sender<Box<Session>>,
}

/// Claims on one session, and the secrets by which its device is known.
pub(super) struct Claims {
    waiting: mpsc::Receiver<Claim>,
    pub(super) tokens: Tokens,
}

/// The tokens by which the device may take its session up again. A welcome, and the token in it, may be lost on its way, so
/// the one before stays good until the device has shown that it has the welcome.
#[derive(Default)]
pub(super) struct Tokens {
    /// Of the last welcome; `None`: the session cannot be resumed.
    newest: Option<[u8; TOKEN_BYTES]>,
    /// The one with which the device came, until something arrives that it sent after the welcome.
    presented: Option<[u8; TOKEN_BYTES]>,
    /// Nothing has arrived yet that the device sent after the welcome.
    is_on_its_way: bool,
}

impl Tokens {
    /// The device comes with this token, which was good.
    fn come_with(&mut self, token: &[u8]) {
        self.presented = token.try_into().ok();
    }

    /// A new token of the session with this number, for a welcome.
    pub(super) fn renew(&mut self, number: u64) -> Result<[u8; TOKEN_BYTES], LinkError> {
        let random = identity::random().map_err(|error| LinkError::Transport(error.to_string()))?;
        self.is_on_its_way = true;
        Ok(*self.newest.insert(restart::token(number, random)))
    }

    /// A frame has come over the present connection. Nothing is sent before the welcome, so the device has it: the token
    /// before it is void. Whether it is the first one.
    fn welcome_arrived(&mut self) -> bool {
        self.presented = None;
        std::mem::take(&mut self.is_on_its_way)
    }

    /// Compares digests, whose timing says nothing about the token.
    fn have(&self, token: &[u8]) -> bool {
        let own = [self.newest, self.presented];
        own.into_iter().flatten().any(|own| Sha256::digest(own) == Sha256::digest(token))
    }
}

impl Claims {
    /// The next claim. Pending for ever if none can come.
    pub(super) async fn next(&mut self) -> Claim {
        match self.waiting.recv().await {
            Some(claim) => claim,
            None => std::future::pending().await,
        }
    }
}

/// The sessions that their devices may take up again, by device.
#[derive(Default)]
pub(crate) struct Resumable(Mutex<BTreeMap<String, (u32, mpsc::Sender<Claim>)>>);

impl Resumable {
    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<String, (u32, mpsc::Sender<Claim>)>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a device's session in place of its older one.
    pub(super) fn enter(&self, device: &str, session: u32) -> Claims {
        let (sender, waiting) = mpsc::channel(CLAIMS_WAITING_MAX);
        self.with(|sessions| sessions.insert(device.to_owned(), (session, sender)));
        Claims { waiting, tokens: Tokens::default() }
    }

    /// Whether no session may be taken up again.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.with(|sessions| sessions.is_empty())
    }

    /// Takes a session out.
    pub(super) fn leave(&self, device: &str, session: u32) {
        self.with(|sessions| {
            if sessions.get(device).is_some_and(|(number, _)| *number == session) {
                sessions.remove(device);
            }
        });
    }

    /// The session that this device asks for; `None`: it asks for none, or for one that cannot go on.
    pub(super) async fn claim(&self, admitted: &Admitted) -> Option<Box<Session>> {
        let Admitted { id, record, hello } = admitted;
        let resume = hello.resume.clone()?;
        let formats = formats::agree(&hello.capabilities).ok()?;
        let info = formats::info(id, &record.user, &hello.capabilities, &formats);
        let (_, session) = self.with(|sessions| sessions.get(id).cloned())?;
        let (reply, mut given) = oneshot::channel();
        session.try_send(Claim { resume, user: record.user.clone(), formats, info, reply }).ok()?;
        match timeout(CLAIM_MAX, &mut given).await {
            Ok(session) => session.ok(),
            Err(_) => {
                // It may have been handed over at this very moment.
                given.close();
                given.try_recv().ok()
            }
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_welcome_that_is_lost_on_its_way_takes_no_token_away() {
        let mut tokens = Tokens::default();
        let first = tokens.renew(7).unwrap();
        assert!(tokens.have(&first) && !tokens.have(&[]) && !tokens.have(&first[..TOKEN_BYTES - 1]));
        // The device resumes, twice, and does not get either of the welcomes.
        tokens.come_with(&first);
        let second = tokens.renew(7).unwrap();
        assert!(tokens.have(&first) && tokens.have(&second));
        tokens.come_with(&first);
        let third = tokens.renew(7).unwrap();
        assert!(tokens.have(&first) && !tokens.have(&second) && tokens.have(&third));
        // It gets this one, and loses the link before it has sent anything.
        tokens.come_with(&third);
        let fourth = tokens.renew(7).unwrap();
        assert!(!tokens.have(&first) && tokens.have(&third) && tokens.have(&fourth));
    }

    #[test]
    fn a_frame_over_the_new_connection_makes_the_token_before_void() {
        let mut tokens = Tokens::default();
        let first = tokens.renew(7).unwrap();
        assert!(tokens.welcome_arrived() && !tokens.welcome_arrived());
        assert!(tokens.have(&first));
        tokens.come_with(&first);
        let second = tokens.renew(7).unwrap();
        assert!(tokens.welcome_arrived());
        assert!(!tokens.have(&first) && tokens.have(&second));
    }
}
