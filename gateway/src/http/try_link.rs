//! The one-time link of the try page: the person who opens it may pair one browser without typing its code.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use sha2::{Digest as _, Sha256};

use crate::identity::random;

/// The token of a link: it pairs one key, and is then used up.
pub(crate) struct TryLink(Mutex<Option<[u8; 32]>>);

impl TryLink {
    /// A new link, and its token: 32 hexadecimal digits, which only the operator is to see.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn new() -> Result<(Self, String)> {
        let token: String = random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Self(Mutex::new(Some(hash(&token)))), token))
    }

    /// Does `pair` with this token, which is used up if that succeeds; `None`: it is not, or no longer, the token.
    pub(super) fn redeem<E>(&self, token: &str, pair: impl FnOnce() -> Result<(), E>) -> Option<Result<(), E>> {
        let mut unused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Hashes are compared, so that the duration reveals nothing about the token.
        if *unused != Some(hash(token)) {
            return None;
        }
        let paired = pair();
        if paired.is_ok() {
            *unused = None;
        }
        Some(paired)
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_pairs_once() {
        let (link, token) = TryLink::new().unwrap();
        let redeem = |token: &str, result: Result<(), ()>| link.redeem(token, || result);
        assert_eq!(token.len(), 32);
        for wrong in ["", &token[1..], "00000000000000000000000000000000"] {
            assert_eq!(redeem(wrong, Ok(())), None, "{wrong}");
        }
        assert_eq!(redeem(&token, Err(())), Some(Err(())), "what came to nothing uses up nothing");
        assert_eq!(redeem(&token, Ok(())), Some(Ok(())));
        assert_eq!(redeem(&token, Ok(())), None);
        assert_ne!(TryLink::new().unwrap().1, token);
    }
}
