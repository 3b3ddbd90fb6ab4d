//! The tokens by which a device takes its session up again (PROTOCOL.md, section 9).

use device_protocol::limits;
use sha2::{Digest as _, Sha256};

use crate::{identity, transport::LinkError};

/// Length of a token, in bytes: the session's number, and random ones.
const TOKEN_BYTES: usize = 8 + 32;
const _: () = assert!(TOKEN_BYTES <= limits::TOKEN_BYTES_MAX);

/// The tokens by which the device may take its session up again. A welcome, and the token in it, may be lost on its way, so
/// the one before stays good until the device has shown that it has the welcome.
#[derive(Default)]
pub(super) struct Tokens {
    /// Of the last welcome; `None`: the session cannot be resumed.
    newest: Option<[u8; TOKEN_BYTES]>,
    /// The one with which the device came, until something arrives that it sent after the welcome.
    presented: Option<[u8; TOKEN_BYTES]>,
}

impl Tokens {
    /// The device comes with this token, which was good.
    pub(super) fn come_with(&mut self, token: &[u8]) {
        self.presented = token.try_into().ok();
    }

    /// A new token of the session with this number, for a welcome.
    pub(super) fn renew(&mut self, number: u64) -> Result<[u8; TOKEN_BYTES], LinkError> {
        let random = identity::random().map_err(|error| LinkError::Transport(error.to_string()))?;
        Ok(*self.newest.insert(token(number, random)))
    }

    /// A frame has come over the present connection. Nothing is sent before the welcome, so the device has it: the token
    /// before it is void. Whether there is one in it.
    pub(super) fn welcome_arrived(&mut self) -> bool {
        self.presented = None;
        self.newest.is_some()
    }

    /// Compares digests, whose timing says nothing about the token.
    pub(super) fn have(&self, token: &[u8]) -> bool {
        let own = [self.newest, self.presented];
        own.into_iter().flatten().any(|own| Sha256::digest(own) == Sha256::digest(token))
    }
}

/// A token of the session with this number.
pub(super) fn token(number: u64, random: [u8; 32]) -> [u8; TOKEN_BYTES] {
    let mut token = [0; TOKEN_BYTES];
    let (head, tail) = token.split_at_mut(8);
    head.copy_from_slice(&number.to_be_bytes());
    tail.copy_from_slice(&random);
    token
}

/// The number of the session that the token is of; `None`: it is of a version whose tokens had none.
pub(super) fn number_of(token: &[u8]) -> Option<u64> {
    let (head, _) = token.split_first_chunk().filter(|_| token.len() == TOKEN_BYTES)?;
    Some(u64::from_be_bytes(*head)).filter(|number| *number > 0)
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
        assert!(!tokens.welcome_arrived(), "the session cannot be resumed");
        let first = tokens.renew(7).unwrap();
        assert!(tokens.welcome_arrived() && tokens.have(&first));
        tokens.come_with(&first);
        let second = tokens.renew(7).unwrap();
        assert!(tokens.welcome_arrived());
        assert!(!tokens.have(&first) && tokens.have(&second));
    }
}
