//! Devices that wait for the operator, and windows that the operator opened.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use tokio::sync::oneshot;

/// How long a pairing stays open, in microseconds.
pub const OPEN_US: u64 = 120_000_000;
/// Wrong codes before all waiting devices are turned away: one in 200,000 to guess one.
pub const TRIES_MAX: u8 = 5;
/// Devices that may wait at once: a household pairs one at a time.
const WAITING_MAX: usize = 16;

/// What the operator decided for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose device it is.
    pub user: String,
    /// What to call it; empty: its model.
    pub name: String,
}

/// A device that waits, as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Fingerprint of its key.
    pub fingerprint: String,
    /// Its model.
    pub model: String,
    /// Seconds left.
    pub expires_s: u64,
    /// Whether it shows a code.
    pub has_code: bool,
}

struct Candidate {
    model: String,
    code: Option<String>,
    until_us: u64,
    answer: oneshot::Sender<Grant>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<String, Candidate>,
    windows: BTreeMap<String, (Grant, u64)>,
    wrong_codes: u8,
    locked_until_us: u64,
}

/// All pairings under way.
#[derive(Default)]
pub struct Pairings(Mutex<State>);

/// Why a pairing did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// No waiting device shows this code.
    #[error("no waiting device shows this code; {tries_left} tries are left before all are turned away")]
    WrongCode {
        /// What is left.
        tries_left: u8,
    },
    /// Too many wrong codes.
    #[error("too many wrong codes: pairing is closed for {wait_s} seconds; then reconnect the glasses")]
    Locked {
        /// How long.
        wait_s: u64,
    },
    /// Too many devices wait.
    #[error("too many devices wait for pairing")]
    Crowded,
}

impl Pairings {
    fn with<R>(&self, now_us: u64, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.retain(|_, candidate| candidate.until_us > now_us && !candidate.answer.is_closed());
        state.windows.retain(|_, (_, until_us)| *until_us > now_us);
        act(&mut state)
    }

    /// A device with a proven key starts to wait; `code` where it shows one. Answered at once when
    /// the operator already opened a window for it.
    ///
    /// # Errors
    /// Pairing is locked, or too many devices wait.
    pub fn wait(
        &self,
        now_us: u64,
        fingerprint: &str,
        model: &str,
        code: Option<String>,
    ) -> Result<(oneshot::Receiver<Grant>, u8), PairError> {
        self.with(now_us, |state| {
            if state.locked_until_us > now_us {
                return Err(PairError::Locked { wait_s: (state.locked_until_us - now_us).div_ceil(1_000_000) });
            }
            if state.waiting.len() >= WAITING_MAX {
                return Err(PairError::Crowded);
            }
            let (answer, granted) = oneshot::channel();
            if let Some((grant, _)) = state.windows.remove(fingerprint) {
                drop(answer.send(grant));
            } else {
                let candidate = Candidate { model: model.to_owned(), code, until_us: now_us + OPEN_US, answer };
                state.waiting.insert(fingerprint.to_owned(), candidate);
            }
            Ok((granted, TRIES_MAX - state.wrong_codes.min(TRIES_MAX)))
        })
    }

    /// The operator typed a code.
    ///
    /// # Errors
    /// No device shows it, or there were too many tries.
    pub fn by_code(&self, now_us: u64, code: &str, grant: Grant) -> Result<String, PairError> {
        self.with(now_us, |state| {
            if state.locked_until_us > now_us {
                return Err(PairError::Locked { wait_s: (state.locked_until_us - now_us).div_ceil(1_000_000) });
            }
            let found = state
                .waiting
                .iter()
                .find(|(_, candidate)| candidate.code.as_deref() == Some(code))
                .map(|(fingerprint, _)| fingerprint.clone());
            if let Some(fingerprint) = found
                && let Some(candidate) = state.waiting.remove(&fingerprint)
            {
                state.wrong_codes = 0;
                drop(candidate.answer.send(grant));
                return Ok(fingerprint);
            }
            state.wrong_codes += 1;
            if state.wrong_codes >= TRIES_MAX {
                state.wrong_codes = 0;
                state.locked_until_us = now_us + OPEN_US;
                state.waiting.clear();
                return Err(PairError::Locked { wait_s: OPEN_US / 1_000_000 });
            }
            Err(PairError::WrongCode { tries_left: TRIES_MAX - state.wrong_codes })
        })
    }

    /// The operator opens a window for a key; answers whether the device was already waiting.
    pub fn by_fingerprint(&self, now_us: u64, fingerprint: &str, grant: Grant) -> bool {
        self.with(now_us, |state| match state.waiting.remove(fingerprint) {
            Some(candidate) => candidate.answer.send(grant).is_ok(),
            None => {
                if state.windows.len() < WAITING_MAX {
                    state.windows.insert(fingerprint.to_owned(), (grant, now_us + OPEN_US));
                }
                false
            }
        })
    }

    /// Whether the operator has opened a window for this key.
    pub fn is_open_for(&self, now_us: u64, fingerprint: &str) -> bool {
        self.with(now_us, |state| state.windows.contains_key(fingerprint))
    }

    /// Devices that wait.
    pub fn waiting(&self, now_us: u64) -> Vec<Waiting> {
        self.with(now_us, |state| {
            state
                .waiting
                .iter()
                .map(|(fingerprint, candidate)| Waiting {
                    fingerprint: fingerprint.clone(),
                    model: candidate.model.clone(),
                    expires_s: (candidate.until_us - now_us) / 1_000_000,
                    has_code: candidate.code.is_some(),
                })
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(user: &str) -> Grant {
        Grant { user: user.to_owned(), name: String::new() }
    }

    #[test]
    fn right_code_admits_exactly_that_device() {
        let pairings = Pairings::default();
        let (mut first, _) = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap();
        let (mut second, _) = pairings.wait(0, "bb", "m", Some("222222".to_owned())).unwrap();
        assert_eq!(pairings.by_code(1, "222222", grant("ann")), Ok("bb".to_owned()));
        assert_eq!(second.try_recv(), Ok(grant("ann")));
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn five_wrong_codes_turn_everybody_away() {
        let pairings = Pairings::default();
        let (mut device, _) = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap();
        for left in (1..TRIES_MAX).rev() {
            assert_eq!(pairings.by_code(1, "000000", grant("x")), Err(PairError::WrongCode { tries_left: left }));
        }
        assert!(matches!(pairings.by_code(1, "000000", grant("x")), Err(PairError::Locked { .. })));
        assert_eq!(device.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(matches!(pairings.by_code(2, "111111", grant("x")), Err(PairError::Locked { .. })));
        assert!(pairings.wait(3, "aa", "m", None).is_err());
        assert!(pairings.wait(OPEN_US + 2, "aa", "m", None).is_ok());
    }

    #[test]
    fn a_window_admits_once_and_closes_after_two_minutes() {
        let pairings = Pairings::default();
        assert!(!pairings.by_fingerprint(0, "aa", grant("ann")));
        assert!(pairings.is_open_for(OPEN_US - 1, "aa") && !pairings.is_open_for(OPEN_US - 1, "bb"));
        let (mut granted, _) = pairings.wait(OPEN_US - 1, "aa", "m", None).unwrap();
        assert!(!pairings.is_open_for(OPEN_US - 1, "aa"));
        assert_eq!(granted.try_recv(), Ok(grant("ann")));
        let (mut again, _) = pairings.wait(OPEN_US - 1, "aa", "m", None).unwrap();
        assert!(again.try_recv().is_err());
        assert!(!pairings.by_fingerprint(0, "bb", grant("ann")));
        let (mut late, _) = pairings.wait(OPEN_US + 1, "bb", "m", None).unwrap();
        assert!(late.try_recv().is_err());
    }

    #[test]
    fn a_code_expires() {
        let pairings = Pairings::default();
        let _device = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap();
        assert!(matches!(pairings.by_code(OPEN_US + 1, "111111", grant("x")), Err(PairError::WrongCode { .. })));
    }
}
