//! Devices that wait for pairing, and windows that the operator opened.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use tokio::sync::{oneshot, watch};

/// How long a pairing stays open, in microseconds.
pub const OPEN_US: u64 = 120_000_000;
/// Wrong codes until all waiting devices are rejected: a chance of one in 200,000 to guess a code.
pub const TRIES_MAX: u8 = 5;
/// Devices that may wait at once: a household pairs one at a time.
const WAITING_MAX: usize = 16;

/// What a revoked device is told.
pub(crate) const REVOKED: &str = "this device was revoked by the operator";

/// What the operator decided for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The device's user.
    pub user: String,
    /// Its name; empty: its model.
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

/// A grant for the device's handshake, with a channel for the result.
#[derive(Debug)]
pub struct Granted {
    grant: Grant,
    outcome: oneshot::Sender<Outcome>,
}

/// The device's name once it is stored, or why it is not.
pub type Outcome = Result<String, String>;

impl Granted {
    fn new(grant: Grant) -> (Self, oneshot::Receiver<Outcome>) {
        let (outcome, told) = oneshot::channel();
        (Self { grant, outcome }, told)
    }

    /// What was decided.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Reports the result to the operator's request.
    pub fn settle(self, outcome: Outcome) {
        // A window was opened long before: no request waits.
        drop(self.outcome.send(outcome));
    }
}

struct Candidate {
    model: String,
    code: Option<String>,
    until_us: u64,
    answer: oneshot::Sender<Granted>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<String, Candidate>,
    windows: BTreeMap<String, (Grant, u64)>,
    locked_until_us: u64,
    /// Keys that were revoked since the start and not granted again: they stay out also where the store could not take
    /// that down. An operator has revoked each of them.
    revoked: BTreeSet<String>,
}

impl State {
    fn check_open(&self, now_us: u64) -> Result<(), PairError> {
        match self.locked_until_us.saturating_sub(now_us) {
            0 => Ok(()),
            left_us => Err(PairError::Locked { wait_s: left_us.div_ceil(1_000_000) }),
        }
    }
}

/// All pending pairings.
pub struct Pairings {
    state: Mutex<State>,
    /// Remaining tries, for the waiting devices.
    tries: watch::Sender<u8>,
}

impl Default for Pairings {
    fn default() -> Self {
        Self { state: Mutex::default(), tries: watch::Sender::new(TRIES_MAX) }
    }
}

/// A device's wait for the operator.
pub struct Wait {
    /// The operator's decision; closed when pairing is closed.
    pub granted: oneshot::Receiver<Granted>,
    /// Remaining tries.
    pub tries: watch::Receiver<u8>,
}

/// Why a pairing failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// No waiting device shows this code.
    #[error("no waiting device shows this code; {tries_left} tries are left before all are turned away")]
    WrongCode {
        /// Remaining tries.
        tries_left: u8,
    },
    /// Too many wrong codes.
    #[error("too many wrong codes: pairing is closed for {wait_s} seconds; then reconnect the glasses")]
    Locked {
        /// For how long, in seconds.
        wait_s: u64,
    },
    /// Too many devices wait.
    #[error("too many devices wait for pairing")]
    Crowded,
}

impl Pairings {
    fn with<R>(&self, now_us: u64, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.retain(|_, candidate| candidate.until_us > now_us && !candidate.answer.is_closed());
        state.windows.retain(|_, (_, until_us)| *until_us > now_us);
        act(&mut state)
    }

    /// A device with a proven key starts to wait; `code`: the code that it shows, if any. Answered at once if the
    /// operator has already opened a window for it.
    ///
    /// # Errors
    /// Pairing is locked, or too many devices wait.
    pub fn wait(&self, now_us: u64, fingerprint: &str, model: &str, code: Option<String>) -> Result<Wait, PairError> {
        self.with(now_us, |state| {
            state.check_open(now_us)?;
            if state.waiting.len() >= WAITING_MAX {
                return Err(PairError::Crowded);
            }
            let (answer, granted) = oneshot::channel();
            if let Some((grant, _)) = state.windows.remove(fingerprint) {
                state.revoked.remove(fingerprint);
                drop(answer.send(Granted::new(grant).0));
            } else {
                let candidate = Candidate { model: model.to_owned(), code, until_us: now_us + OPEN_US, answer };
                state.waiting.insert(fingerprint.to_owned(), candidate);
            }
            Ok(Wait { granted, tries: self.tries.subscribe() })
        })
    }

    /// The operator typed a code: returns the device that shows it, and a channel for the result.
    ///
    /// # Errors
    /// No device shows it, or there were too many tries.
    pub fn by_code(
        &self,
        now_us: u64,
        code: &str,
        grant: Grant,
    ) -> Result<(String, oneshot::Receiver<Outcome>), PairError> {
        self.with(now_us, |state| {
            state.check_open(now_us)?;
            let found = state
                .waiting
                .iter()
                .find(|(_, candidate)| candidate.code.as_deref() == Some(code))
                .map(|(fingerprint, _)| fingerprint.clone());
            if let Some(fingerprint) = found
                && let Some(candidate) = state.waiting.remove(&fingerprint)
            {
                self.tries.send_replace(TRIES_MAX);
                state.revoked.remove(&fingerprint);
                let (granted, outcome) = Granted::new(grant);
                // If the device has just disconnected, it drops this, and with it the outcome.
                drop(candidate.answer.send(granted));
                return Ok((fingerprint, outcome));
            }
            let tries_left = self.tries.borrow().saturating_sub(1);
            if tries_left == 0 {
                self.tries.send_replace(TRIES_MAX);
                state.locked_until_us = now_us + OPEN_US;
                state.waiting.clear();
                return Err(PairError::Locked { wait_s: OPEN_US / 1_000_000 });
            }
            self.tries.send_replace(tries_left);
            Err(PairError::WrongCode { tries_left })
        })
    }

    /// The operator opens a window for a key. Returns a channel for the result if the device was already waiting.
    pub fn by_fingerprint(&self, now_us: u64, fingerprint: &str, grant: Grant) -> Option<oneshot::Receiver<Outcome>> {
        self.with(now_us, |state| match state.waiting.remove(fingerprint) {
            Some(candidate) => {
                state.revoked.remove(fingerprint);
                let (granted, outcome) = Granted::new(grant);
                drop(candidate.answer.send(granted));
                Some(outcome)
            }
            None => {
                if state.windows.len() < WAITING_MAX {
                    state.windows.insert(fingerprint.to_owned(), (grant, now_us + OPEN_US));
                }
                None
            }
        })
    }

    /// Milliseconds until pairing is open again; 0: it is open.
    pub fn locked_ms(&self, now_us: u64) -> u32 {
        self.with(now_us, |state| {
            u32::try_from(state.locked_until_us.saturating_sub(now_us).div_ceil(1_000)).unwrap_or(u32::MAX)
        })
    }

    /// Whether the operator has opened a window for this key.
    pub fn is_open_for(&self, now_us: u64, fingerprint: &str) -> bool {
        self.with(now_us, |state| state.windows.contains_key(fingerprint))
    }

    /// Keeps a device out from now on, also one that waits or has a window, until the operator grants it again.
    pub fn revoke(&self, now_us: u64, fingerprint: &str) {
        self.with(now_us, |state| {
            state.waiting.remove(fingerprint);
            state.windows.remove(fingerprint);
            state.revoked.insert(fingerprint.to_owned());
        });
    }

    /// Whether a device was revoked since the start, and not granted again.
    pub fn is_revoked(&self, fingerprint: &str) -> bool {
        self.with(0, |state| state.revoked.contains(fingerprint))
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

    /// The grant that a device got.
    fn granted(device: &mut oneshot::Receiver<Granted>) -> Grant {
        device.try_recv().unwrap().grant().clone()
    }

    #[test]
    fn right_code_admits_exactly_that_device() {
        let pairings = Pairings::default();
        let mut first = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap().granted;
        let mut second = pairings.wait(0, "bb", "m", Some("222222".to_owned())).unwrap().granted;
        let (device, mut outcome) = pairings.by_code(1, "222222", grant("ann")).unwrap();
        assert_eq!(device, "bb");
        assert!(outcome.try_recv().is_err(), "nothing is stored yet");
        let to_second = second.try_recv().unwrap();
        assert_eq!(to_second.grant(), &grant("ann"));
        to_second.settle(Err("the store is full".to_owned()));
        assert_eq!(outcome.try_recv(), Ok(Err("the store is full".to_owned())));
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn five_wrong_codes_turn_everybody_away() {
        let pairings = Pairings::default();
        let Wait { granted: mut device, mut tries } = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap();
        for left in (1..TRIES_MAX).rev() {
            let error = pairings.by_code(1, "000000", grant("x")).unwrap_err();
            assert_eq!(error, PairError::WrongCode { tries_left: left });
            assert!(tries.has_changed().unwrap(), "whoever waits is told");
            assert_eq!(*tries.borrow_and_update(), left);
        }
        assert_eq!(pairings.locked_ms(1), 0);
        assert!(matches!(pairings.by_code(1, "000000", grant("x")), Err(PairError::Locked { .. })));
        assert_eq!(pairings.locked_ms(1_000_001), 119_000);
        assert_eq!(device.try_recv().unwrap_err(), oneshot::error::TryRecvError::Closed);
        assert!(matches!(pairings.by_code(2, "111111", grant("x")), Err(PairError::Locked { .. })));
        assert!(pairings.wait(3, "aa", "m", None).is_err());
        assert!(pairings.wait(OPEN_US + 2, "aa", "m", None).is_ok());
    }

    #[test]
    fn a_window_admits_once_and_closes_after_two_minutes() {
        let pairings = Pairings::default();
        assert!(pairings.by_fingerprint(0, "aa", grant("ann")).is_none());
        assert!(pairings.is_open_for(OPEN_US - 1, "aa") && !pairings.is_open_for(OPEN_US - 1, "bb"));
        let mut device = pairings.wait(OPEN_US - 1, "aa", "m", None).unwrap().granted;
        assert!(!pairings.is_open_for(OPEN_US - 1, "aa"));
        assert_eq!(granted(&mut device), grant("ann"));
        let mut again = pairings.wait(OPEN_US - 1, "aa", "m", None).unwrap().granted;
        assert!(again.try_recv().is_err());
        assert!(pairings.by_fingerprint(0, "bb", grant("ann")).is_none());
        let mut late = pairings.wait(OPEN_US + 1, "bb", "m", None).unwrap().granted;
        assert!(late.try_recv().is_err());
    }

    #[test]
    fn a_revoked_device_stays_out_until_it_is_granted_again() {
        let pairings = Pairings::default();
        let mut device = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap().granted;
        assert!(pairings.by_fingerprint(0, "bb", grant("ann")).is_none());
        for fingerprint in ["aa", "bb"] {
            pairings.revoke(1, fingerprint);
            assert!(pairings.is_revoked(fingerprint) && !pairings.is_open_for(1, fingerprint));
        }
        assert!(device.try_recv().is_err(), "it waits no more");
        // By a window, and by one while it waits.
        assert!(pairings.by_fingerprint(2, "aa", grant("ann")).is_none());
        assert!(pairings.is_revoked("aa"), "not before it comes");
        let mut device = pairings.wait(3, "aa", "m", None).unwrap().granted;
        assert_eq!((granted(&mut device), pairings.is_revoked("aa")), (grant("ann"), false));
        let _waits = pairings.wait(3, "bb", "m", None).unwrap();
        assert!(pairings.by_fingerprint(4, "bb", grant("ann")).is_some() && !pairings.is_revoked("bb"));
    }

    #[test]
    fn a_code_expires() {
        let pairings = Pairings::default();
        let _device = pairings.wait(0, "aa", "m", Some("111111".to_owned())).unwrap();
        assert!(matches!(pairings.by_code(OPEN_US + 1, "111111", grant("x")), Err(PairError::WrongCode { .. })));
    }
}
