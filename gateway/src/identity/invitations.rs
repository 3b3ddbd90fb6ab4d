//! Invitations: codes with which an operator has one pair of glasses paired in advance, whichever it is.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use device_protocol::auth::{Handshake, INVITATION_CODE_BYTES};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::grant::{Grant, Granted, Outcome};

/// How long an invitation is good for, in microseconds: time to find the glasses, and to scan its picture.
pub(crate) const INVITED_US: u64 = 600_000_000;
/// Invitations that may be open at once: a household pairs one device at a time.
const OPEN_MAX: usize = 16;

/// The code of an invitation. It is a secret: with it, any key is paired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub [u8; INVITATION_CODE_BYTES]);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(..)")
    }
}

/// What a device shows of the code that it knows, in its own handshake.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The handshake, whose signatures are checked.
    pub handshake: &'a Handshake,
    /// As its proof reveals it.
    pub device_nonce: &'a [u8; 32],
    /// `invitation` of its proof.
    pub digest: [u8; 32],
}

impl Shown<'_> {
    /// Whether it is this code.
    fn is_of(&self, code: &Code) -> bool {
        let digest = Sha256::digest(self.handshake.invitation_transcript(self.device_nonce, &code.0));
        // No shortcut at the first difference, which its time would tell.
        digest.iter().zip(self.digest).fold(0, |differs, (own, theirs)| differs | (own ^ theirs)) == 0
    }
}

struct Invitation {
    code: Code,
    grant: Grant,
    until_us: u64,
    outcome: oneshot::Sender<Outcome>,
    withdrawn: CancellationToken,
}

impl Invitation {
    fn is_open(&self, now_us: u64) -> bool {
        self.until_us > now_us && !self.outcome.is_closed() && !self.withdrawn.is_cancelled()
    }
}

/// Invitations that a device can still use, in memory only: none outlives the process.
#[derive(Default)]
pub struct Invitations(Mutex<Vec<Invitation>>);

/// Why an invitation was not made or not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// As many are open as may be.
    #[error("{OPEN_MAX} invitations are open, and more may not be: withdraw one, or wait until one expires")]
    TooMany,
    /// No open invitation has this code.
    #[error("this invitation was used, has expired or was withdrawn: ask for a new one")]
    Unknown,
}

impl Invitations {
    fn with<R>(&self, now_us: u64, act: impl FnOnce(&mut Vec<Invitation>) -> R) -> R {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|invitation| invitation.is_open(now_us));
        act(&mut open)
    }

    /// Opens an invitation. The result comes on the channel. Cancelling `withdrawn`, or dropping the channel, withdraws
    /// the invitation at once.
    ///
    /// # Errors
    /// Too many are open.
    pub fn open(
        &self,
        now_us: u64,
        code: Code,
        grant: Grant,
        withdrawn: CancellationToken,
    ) -> Result<oneshot::Receiver<Outcome>, Error> {
        self.with(now_us, |open| {
            if open.len() >= OPEN_MAX {
                return Err(Error::TooMany);
            }
            let (outcome, told) = oneshot::channel();
            open.push(Invitation { code, grant, until_us: now_us + INVITED_US, outcome, withdrawn });
            Ok(told)
        })
    }

    /// Takes the invitation whose code a device knows: it is used up.
    ///
    /// # Errors
    /// None has it.
    pub fn take(&self, now_us: u64, shown: Shown<'_>) -> Result<Granted, Error> {
        self.with(now_us, |open| {
            let at = open.iter().position(|invitation| shown.is_of(&invitation.code)).ok_or(Error::Unknown)?;
            let Invitation { grant, outcome, .. } = open.swap_remove(at);
            Ok(Granted::by_invitation(grant, outcome))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Code = Code([7; INVITATION_CODE_BYTES]);

    fn handshake() -> Handshake {
        Handshake {
            device_key: [1; 32],
            gateway_key: [2; 32],
            nonce_commitment: [3; 32],
            gateway_nonce: [4; 32],
            binding: [5; 32],
        }
    }

    fn grant(user: &str) -> Grant {
        Grant { user: user.to_owned(), name: String::new() }
    }

    /// What a device with this code shows in the handshake.
    fn digest(handshake: &Handshake, code: Code) -> [u8; 32] {
        Sha256::digest(handshake.invitation_transcript(&[6; 32], &code.0)).into()
    }

    fn take(open: &Invitations, now_us: u64, digest: [u8; 32]) -> Result<Granted, Error> {
        open.take(now_us, Shown { handshake: &handshake(), device_nonce: &[6; 32], digest })
    }

    #[test]
    fn an_invitation_is_taken_once() {
        let open = Invitations::default();
        let mut told = open.open(0, CODE, grant("ann"), CancellationToken::new()).unwrap();
        assert_eq!(take(&open, 1, [0; 32]).err(), Some(Error::Unknown));
        let granted = take(&open, 1, digest(&handshake(), CODE)).unwrap();
        assert_eq!(granted.grant(), &grant("ann"));
        assert_eq!(take(&open, 1, digest(&handshake(), CODE)).err(), Some(Error::Unknown));
        granted.settle(Ok("glasses".to_owned()));
        assert_eq!(told.try_recv().unwrap(), Ok("glasses".to_owned()));
    }

    #[test]
    fn what_was_shown_in_another_handshake_is_worth_nothing() {
        let open = Invitations::default();
        let _told = open.open(0, CODE, grant("ann"), CancellationToken::new()).unwrap();
        for other in [
            Handshake { device_key: [9; 32], ..handshake() },
            Handshake { gateway_key: [9; 32], ..handshake() },
            Handshake { gateway_nonce: [9; 32], ..handshake() },
            Handshake { binding: [9; 32], ..handshake() },
        ] {
            assert_eq!(take(&open, 1, digest(&other, CODE)).err(), Some(Error::Unknown));
        }
        assert!(take(&open, 1, digest(&handshake(), CODE)).is_ok(), "nothing was used up");
    }

    #[test]
    fn an_invitation_expires_and_is_withdrawn() {
        let open = Invitations::default();
        let _told = open.open(0, CODE, grant("ann"), CancellationToken::new()).unwrap();
        assert_eq!(take(&open, INVITED_US, digest(&handshake(), CODE)).err(), Some(Error::Unknown));
        drop(open.open(0, CODE, grant("ann"), CancellationToken::new()).unwrap());
        assert_eq!(take(&open, 1, digest(&handshake(), CODE)).err(), Some(Error::Unknown));
        // Its owner has not heard of it yet.
        let withdrawn = CancellationToken::new();
        let _told = open.open(0, CODE, grant("ann"), withdrawn.clone()).unwrap();
        withdrawn.cancel();
        assert_eq!(take(&open, 1, digest(&handshake(), CODE)).err(), Some(Error::Unknown));
    }

    #[test]
    fn the_number_of_open_invitations_is_bounded() {
        let open = Invitations::default();
        let told: Vec<_> =
            (0..OPEN_MAX).map(|_| open.open(0, CODE, grant("ann"), CancellationToken::new()).unwrap()).collect();
        assert_eq!(open.open(1, CODE, grant("ann"), CancellationToken::new()).err(), Some(Error::TooMany));
        drop(told);
        assert!(open.open(1, CODE, grant("ann"), CancellationToken::new()).is_ok());
    }

    #[test]
    fn no_log_has_a_code() {
        assert_eq!(format!("{CODE:?}"), "Code(..)");
    }
}
