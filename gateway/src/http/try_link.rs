//! The one-time link of the try page: the person who opens it may pair one browser without typing its code.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use sha2::{Digest as _, Sha256};

use crate::identity::{invitations::INVITED_US, random};

/// The token of a link: it pairs one key, and is then used up. It expires as an invitation of glasses does.
pub(crate) struct TryLink(Mutex<Option<Unused>>);

struct Unused {
    token: [u8; 32],
    until_us: u64,
}

impl TryLink {
    /// A new link, and its token: 32 hexadecimal digits, which only the operator is to see. It is good for [`INVITED_US`].
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn new(now_us: u64) -> Result<(Self, String)> {
        let token: String = random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let unused = Unused { token: hash(&token), until_us: now_us.saturating_add(INVITED_US) };
        Ok((Self(Mutex::new(Some(unused))), token))
    }

    /// Does `pair` with this token, which is used up if that succeeds; `None`: it is not, or no longer, the token.
    pub(super) fn redeem<E>(
        &self,
        now_us: u64,
        token: &str,
        pair: impl FnOnce() -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        let mut unused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Hashes are compared, so that the duration reveals nothing about the token.
        if !unused.as_ref().is_some_and(|unused| now_us < unused.until_us && unused.token == hash(token)) {
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
        let (link, token) = TryLink::new(0).unwrap();
        let redeem = |token: &str, result: Result<(), ()>| link.redeem(1, token, || result);
        assert_eq!(token.len(), 32);
        for wrong in ["", &token[1..], "00000000000000000000000000000000"] {
            assert_eq!(redeem(wrong, Ok(())), None, "{wrong}");
        }
        assert_eq!(redeem(&token, Err(())), Some(Err(())), "what came to nothing uses up nothing");
        assert_eq!(redeem(&token, Ok(())), Some(Ok(())));
        assert_eq!(redeem(&token, Ok(())), None);
        assert_ne!(TryLink::new(0).unwrap().1, token);
    }

    #[test]
    fn a_token_expires() {
        for (at_us, pairs) in [(5, true), (4 + INVITED_US, true), (5 + INVITED_US, false), (u64::MAX, false)] {
            let (link, token) = TryLink::new(5).unwrap();
            assert_eq!(link.redeem(at_us, &token, || Ok::<(), ()>(())).is_some(), pairs, "{at_us}");
        }
    }
}
