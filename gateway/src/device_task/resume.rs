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

/// Claims on one session, and the secret by which its device is known.
pub(super) struct Claims {
    waiting: mpsc::Receiver<Claim>,
    /// `None`: the session cannot be resumed.
    token: Option<[u8; TOKEN_BYTES]>,
}

impl Claims {
    /// The next claim. Pending for ever if none can come.
    pub(super) async fn next(&mut self) -> Claim {
        match self.waiting.recv().await {
            Some(claim) => claim,
            None => std::future::pending().await,
        }
    }

    /// A new token of the session with this number, which makes the last one void.
    pub(super) fn renew(&mut self, number: u64) -> Result<[u8; TOKEN_BYTES], LinkError> {
        let random = identity::random().map_err(|error| LinkError::Transport(error.to_string()))?;
        Ok(*self.token.insert(restart::token(number, random)))
    }

    /// Compares digests, whose timing says nothing about the token.
    fn are_of(&self, token: &[u8]) -> bool {
        self.token.is_some_and(|own| Sha256::digest(own) == Sha256::digest(token))
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
        Claims { waiting, token: None }
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
        self.claims.are_of(&resume.token)
            && self.outgoing.can_replay(resume.control_received)
            && (user, formats, info) == (&self.user_name, &self.formats, &self.info)
    }

    /// Goes on over this connection: welcomes the device, and replays what it has not received.
    ///
    /// # Errors
    /// The new link is gone, or too slow.
    pub(super) fn resume(&mut self, link: &Link, resume: &ResumeOwned) -> Result<(), LinkError> {
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
