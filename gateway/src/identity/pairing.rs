//! Devices that wait for pairing, and windows that the operator opened.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use tokio::sync::{oneshot, watch};

use super::{
    grant::{Grant, Granted, Outcome},
    invitations::Invitations,
};
use crate::transport::slots::source;

/// How long a pairing stays open, in microseconds.
pub(crate) const OPEN_US: u64 = 120_000_000;
/// Wrong codes until all waiting devices are rejected: a chance of one in 200,000 to guess a code.
pub(crate) const TRIES_MAX: u8 = 5;
/// Devices that may wait at once: a household pairs one at a time.
const WAITING_MAX: usize = 16;
/// Windows that may be open at once, for the same reason.
const WINDOWS_MAX: usize = 16;

/// What a revoked device is told.
pub(crate) const REVOKED: &str = "this device was revoked by the operator";

/// A device that waits, as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Fingerprint of its key.
    pub fingerprint: String,
    /// Maker and model, as it says.
    pub model: String,
    /// Seconds left.
    pub expires_s: u64,
    /// Whether it shows a code.
    pub has_code: bool,
}

struct Candidate {
    model: String,
    code: Option<String>,
    address: IpAddr,
    until_us: u64,
    answer: oneshot::Sender<Result<Granted, PairError>>,
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

    /// Where as many wait as may, the oldest one of the busiest address of the busiest source gives way: who has many
    /// devices pushes out its own, also where glasses are in the same network.
    fn make_room(&mut self) {
        if self.waiting.len() < WAITING_MAX {
            return;
        }
        let count = |is_same: &dyn Fn(IpAddr) -> bool| {
            self.waiting.values().filter(|candidate| is_same(candidate.address)).count()
        };
        let rank = |candidate: &Candidate| {
            let (address, network) = (candidate.address, source(candidate.address));
            let of_source = count(&|other| source(other) == network);
            (Reverse((of_source, count(&|other| other == address))), candidate.until_us)
        };
        let first = self.waiting.iter().min_by_key(|(_, candidate)| rank(candidate));
        if let Some(fingerprint) = first.map(|(fingerprint, _)| fingerprint.clone()) {
            self.turn_away(&fingerprint, PairError::Crowded);
        }
    }

    fn turn_away(&mut self, fingerprint: &str, why: PairError) {
        if let Some(candidate) = self.waiting.remove(fingerprint) {
            drop(candidate.answer.send(Err(why)));
        }
    }

    fn open_window(&mut self, fingerprint: &str, grant: Grant, until_us: u64) -> Result<(), PairError> {
        if self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(fingerprint) {
            return Err(PairError::TooManyWindows);
        }
        self.windows.insert(fingerprint.to_owned(), (grant, until_us));
        Ok(())
    }
}

/// So many tries, with their verb.
fn tries(count: u8) -> String {
    if count == 1 { "1 try is".to_owned() } else { format!("{count} tries are") }
}

/// All pending pairings.
pub struct Pairings {
    /// Open invitations.
    pub invitations: Invitations,
    state: Mutex<State>,
    /// Remaining tries, for the waiting devices.
    tries: watch::Sender<u8>,
}

impl Default for Pairings {
    fn default() -> Self {
        Self { invitations: Invitations::default(), state: Mutex::default(), tries: watch::Sender::new(TRIES_MAX) }
    }
}

/// A device's wait for the operator.
pub struct Wait {
    /// The operator's decision, or why the device waits no longer.
    pub granted: oneshot::Receiver<Result<Granted, PairError>>,
    /// Remaining tries.
    pub tries: watch::Receiver<u8>,
}

/// Why a pairing failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// No waiting device shows this code.
    #[error("no waiting device shows this code; {left} left before all are turned away", left = tries(*.tries_left))]
    WrongCode {
        /// Remaining tries.
        tries_left: u8,
    },
    /// There is no device whose code it could be.
    #[error(
        "no device waits for pairing: connect the glasses, and type the code that they show then, within two minutes"
    )]
    NoneWaits,
    /// Too many wrong codes.
    #[error("too many wrong codes: pairing is closed for {wait_s} seconds; then reconnect the glasses")]
    Locked {
        /// For how long, in seconds.
        wait_s: u64,
    },
    /// Too many devices wait.
    #[error("too many devices wait for pairing")]
    Crowded,
    /// Several waiting devices show this code.
    #[error(
        "several waiting devices show this code, and nobody can tell which one is meant: connect the glasses again"
    )]
    Ambiguous,
    /// As many windows are open as may be.
    #[error("{WINDOWS_MAX} keys may be paired at this moment, and more may not: wait for two minutes")]
    TooManyWindows,
    /// A device with this key waits already: only the operator decides about it.
    #[error("a device with this key waits for pairing already")]
    Waiting,
}

impl Pairings {
    fn with<R>(&self, now_us: u64, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.retain(|_, candidate| candidate.until_us > now_us && !candidate.answer.is_closed());
        state.windows.retain(|_, (_, until_us)| *until_us > now_us);
        act(&mut state)
    }

    /// A device at this address with a proven key starts to wait; `code`: the code that it shows, if any. Answered at
    /// once if the operator has already opened a window for it.
    ///
    /// # Errors
    /// Pairing is locked.
    pub fn wait(
        &self,
        now_us: u64,
        fingerprint: &str,
        model: &str,
        code: Option<String>,
        address: IpAddr,
    ) -> Result<Wait, PairError> {
        self.with(now_us, |state| {
            state.check_open(now_us)?;
            let (answer, granted) = oneshot::channel();
            if let Some((grant, _)) = state.windows.remove(fingerprint) {
                state.revoked.remove(fingerprint);
                drop(answer.send(Ok(Granted::new(grant).0)));
            } else {
                // The same device may have connected anew.
                state.turn_away(fingerprint, PairError::Crowded);
                state.make_room();
                let (model, until_us) = (model.to_owned(), now_us + OPEN_US);
                let candidate = Candidate { model, code, address, until_us, answer };
                state.waiting.insert(fingerprint.to_owned(), candidate);
            }
            Ok(Wait { granted, tries: self.tries.subscribe() })
        })
    }

    /// The operator typed a code: returns the device that shows it, and a channel for the result.
    ///
    /// # Errors
    /// No device shows it, or none waits; several do (they have to connect again, which gives each another code); or there were
    /// too many tries.
    pub(crate) fn by_code(
        &self,
        now_us: u64,
        code: &str,
        grant: Grant,
    ) -> Result<(String, oneshot::Receiver<Outcome>), PairError> {
        self.with(now_us, |state| {
            state.check_open(now_us)?;
            let showing = state.waiting.iter().filter(|(_, candidate)| candidate.code.as_deref() == Some(code));
            let mut found: Vec<String> = showing.map(|(fingerprint, _)| fingerprint.clone()).collect();
            if found.len() > 1 {
                found.iter().for_each(|fingerprint| state.turn_away(fingerprint, PairError::Ambiguous));
                return Err(PairError::Ambiguous);
            }
            if let Some(fingerprint) = found.pop()
                && let Some(candidate) = state.waiting.remove(&fingerprint)
            {
                self.tries.send_replace(TRIES_MAX);
                state.revoked.remove(&fingerprint);
                let (granted, outcome) = Granted::new(grant);
                // If the device has just disconnected, it drops this, and with it the outcome.
                drop(candidate.answer.send(Ok(granted)));
                return Ok((fingerprint, outcome));
            }
            // Where no device waits no code can be guessed.
            if state.waiting.is_empty() {
                return Err(PairError::NoneWaits);
            }
            let tries_left = self.tries.borrow().saturating_sub(1);
            if tries_left == 0 {
                self.tries.send_replace(TRIES_MAX);
                state.locked_until_us = now_us + OPEN_US;
                let locked = PairError::Locked { wait_s: OPEN_US / 1_000_000 };
                for candidate in std::mem::take(&mut state.waiting).into_values() {
                    drop(candidate.answer.send(Err(locked.clone())));
                }
                return Err(locked);
            }
            self.tries.send_replace(tries_left);
            Err(PairError::WrongCode { tries_left })
        })
    }

    /// The operator opens a window for a key. Returns a channel for the result if the device was already waiting.
    ///
    /// # Errors
    /// Too many windows are open.
    pub fn by_fingerprint(
        &self,
        now_us: u64,
        fingerprint: &str,
        grant: Grant,
    ) -> Result<Option<oneshot::Receiver<Outcome>>, PairError> {
        self.with(now_us, |state| match state.waiting.remove(fingerprint) {
            Some(candidate) => {
                state.revoked.remove(fingerprint);
                let (granted, outcome) = Granted::new(grant);
                drop(candidate.answer.send(Ok(granted)));
                Ok(Some(outcome))
            }
            None => state.open_window(fingerprint, grant, now_us + OPEN_US).map(|()| None),
        })
    }

    /// Opens a window for a key of which no device waits.
    ///
    /// # Errors
    /// A device waits with this key, or too many windows are open.
    pub fn open_window(&self, now_us: u64, fingerprint: &str, grant: Grant) -> Result<(), PairError> {
        self.with(now_us, |state| {
            if state.waiting.contains_key(fingerprint) {
                return Err(PairError::Waiting);
            }
            state.open_window(fingerprint, grant, now_us + OPEN_US)
        })
    }

    /// Whether the operator has opened a window for this key.
    pub(crate) fn is_open_for(&self, now_us: u64, fingerprint: &str) -> bool {
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

    /// Where the devices of these tests are, unless it matters.
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    type Granting = oneshot::Receiver<Result<Granted, PairError>>;

    /// The grant that a device got.
    fn granted(device: &mut Granting) -> Grant {
        device.try_recv().unwrap().unwrap().grant().clone()
    }

    /// A device that waits.
    fn waits(pairings: &Pairings, now_us: u64, fingerprint: &str, code: &str, address: &str) -> Granting {
        let code = Some(code.to_owned());
        pairings.wait(now_us, fingerprint, "m", code, address.parse().unwrap()).unwrap().granted
    }

    #[test]
    fn right_code_admits_exactly_that_device() {
        let pairings = Pairings::default();
        let mut first = pairings.wait(0, "aa", "m", Some("111111".to_owned()), HERE).unwrap().granted;
        let mut second = pairings.wait(0, "bb", "m", Some("222222".to_owned()), HERE).unwrap().granted;
        let (device, mut outcome) = pairings.by_code(1, "222222", grant("ann")).unwrap();
        assert_eq!(device, "bb");
        assert!(outcome.try_recv().is_err(), "nothing is stored yet");
        let to_second = second.try_recv().unwrap().unwrap();
        assert_eq!(to_second.grant(), &grant("ann"));
        to_second.settle(Err("the store is full".to_owned()));
        assert_eq!(outcome.try_recv(), Ok(Err("the store is full".to_owned())));
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn five_wrong_codes_turn_everybody_away() {
        let pairings = Pairings::default();
        let Wait { granted: mut device, mut tries } =
            pairings.wait(0, "aa", "m", Some("111111".to_owned()), HERE).unwrap();
        for left in (1..TRIES_MAX).rev() {
            let error = pairings.by_code(1, "000000", grant("x")).unwrap_err();
            assert_eq!(error, PairError::WrongCode { tries_left: left });
            assert!(tries.has_changed().unwrap(), "the device that waits is told");
            assert_eq!(*tries.borrow_and_update(), left);
        }
        assert!(matches!(pairings.by_code(1, "000000", grant("x")), Err(PairError::Locked { .. })));
        assert_eq!(device.try_recv().unwrap().err(), Some(PairError::Locked { wait_s: 120 }));
        assert_eq!(pairings.by_code(1_000_001, "111111", grant("x")).err(), Some(PairError::Locked { wait_s: 119 }));
        assert!(pairings.wait(3, "aa", "m", None, HERE).is_err());
        assert!(pairings.wait(OPEN_US + 2, "aa", "m", None, HERE).is_ok());
    }

    #[test]
    fn a_window_admits_once_and_closes_after_two_minutes() {
        let pairings = Pairings::default();
        assert!(matches!(pairings.by_fingerprint(0, "aa", grant("ann")), Ok(None)));
        assert!(pairings.is_open_for(OPEN_US - 1, "aa") && !pairings.is_open_for(OPEN_US - 1, "bb"));
        let mut device = pairings.wait(OPEN_US - 1, "aa", "m", None, HERE).unwrap().granted;
        assert!(!pairings.is_open_for(OPEN_US - 1, "aa"));
        assert_eq!(granted(&mut device), grant("ann"));
        let mut again = pairings.wait(OPEN_US - 1, "aa", "m", None, HERE).unwrap().granted;
        assert!(again.try_recv().is_err());
        assert!(matches!(pairings.by_fingerprint(0, "bb", grant("ann")), Ok(None)));
        let mut late = pairings.wait(OPEN_US + 1, "bb", "m", None, HERE).unwrap().granted;
        assert!(late.try_recv().is_err());
    }

    #[test]
    fn a_revoked_device_stays_out_until_it_is_granted_again() {
        let pairings = Pairings::default();
        let mut device = pairings.wait(0, "aa", "m", Some("111111".to_owned()), HERE).unwrap().granted;
        assert!(matches!(pairings.by_fingerprint(0, "bb", grant("ann")), Ok(None)));
        for fingerprint in ["aa", "bb"] {
            pairings.revoke(1, fingerprint);
            assert!(pairings.is_revoked(fingerprint) && !pairings.is_open_for(1, fingerprint));
        }
        assert!(device.try_recv().is_err(), "it waits no more");
        // By a window, and by one while it waits.
        assert!(matches!(pairings.by_fingerprint(2, "aa", grant("ann")), Ok(None)));
        assert!(pairings.is_revoked("aa"), "not before it comes");
        let mut device = pairings.wait(3, "aa", "m", None, HERE).unwrap().granted;
        assert_eq!((granted(&mut device), pairings.is_revoked("aa")), (grant("ann"), false));
        let _waits = pairings.wait(3, "bb", "m", None, HERE).unwrap();
        assert!(matches!(pairings.by_fingerprint(4, "bb", grant("ann")), Ok(Some(_))) && !pairings.is_revoked("bb"));
    }

    #[test]
    fn a_code_expires() {
        let pairings = Pairings::default();
        let _device = pairings.wait(0, "aa", "m", Some("111111".to_owned()), HERE).unwrap();
        assert_eq!(pairings.by_code(OPEN_US + 1, "111111", grant("x")).err(), Some(PairError::NoneWaits));
    }

    #[test]
    fn a_code_costs_no_try_while_no_device_waits() {
        let pairings = Pairings::default();
        for _ in 0..2 * TRIES_MAX {
            assert_eq!(pairings.by_code(0, "111111", grant("x")).err(), Some(PairError::NoneWaits));
        }
        let device = waits(&pairings, 1, "aa", "111111", "192.0.2.1");
        let wrong = |now_us| pairings.by_code(now_us, "000000", grant("x")).err();
        assert_eq!(wrong(2), Some(PairError::WrongCode { tries_left: TRIES_MAX - 1 }));
        // What was tried before it left counts for the next one.
        drop(device);
        assert_eq!(wrong(3), Some(PairError::NoneWaits));
        let _next = waits(&pairings, 4, "bb", "222222", "192.0.2.1");
        assert_eq!(wrong(5), Some(PairError::WrongCode { tries_left: TRIES_MAX - 2 }));
    }

    #[test]
    fn the_oldest_device_of_the_busiest_address_gives_way() {
        let pairings = Pairings::default();
        let mut early = waits(&pairings, 0, "early", "000000", "198.51.100.7");
        let mut strangers: Vec<Granting> = (1..WAITING_MAX as u64)
            .map(|at| waits(&pairings, at, &format!("{at:02}"), &format!("{at:06}"), "192.0.2.66"))
            .collect();
        let mut own = waits(&pairings, 100, "own", "777777", "198.51.100.8");
        assert_eq!(strangers[0].try_recv().unwrap().err(), Some(PairError::Crowded));
        // More of the stranger's own push out the stranger's own.
        let mut more: Vec<Granting> =
            (200..260).map(|at| waits(&pairings, at, &format!("{at}"), &format!("{at:06}"), "192.0.2.66")).collect();
        assert_eq!(strangers[1].try_recv().unwrap().err(), Some(PairError::Crowded));
        assert!(more.last_mut().unwrap().try_recv().is_err(), "the latest one waits");
        assert!(early.try_recv().is_err() && own.try_recv().is_err(), "who came alone still waits");
        assert_eq!(pairings.waiting(300).len(), WAITING_MAX);
        pairings.by_code(300, "777777", grant("ann")).unwrap();
        assert_eq!(granted(&mut own), grant("ann"));
    }

    #[test]
    fn a_stranger_in_the_same_network_pushes_out_its_own_devices() {
        for (stranger, glasses) in [("2001:db8::66", "2001:db8::7"), ("fe80::66", "fe80::7")] {
            let pairings = Pairings::default();
            let mut own = waits(&pairings, 0, "own", "777777", glasses);
            let _strangers: Vec<Granting> =
                (1..60).map(|at| waits(&pairings, at, &format!("{at:02}"), &format!("{at:06}"), stranger)).collect();
            assert!(own.try_recv().is_err(), "it still waits");
            assert_eq!(pairings.waiting(300).len(), WAITING_MAX);
            pairings.by_code(300, "777777", grant("ann")).unwrap();
            assert_eq!(granted(&mut own), grant("ann"));
        }
    }

    #[test]
    fn a_code_that_two_devices_show_pairs_neither() {
        let pairings = Pairings::default();
        let mut devices = ["aa", "bb"].map(|device| waits(&pairings, 0, device, "123456", "192.0.2.1"));
        let mut other = waits(&pairings, 0, "cc", "654321", "192.0.2.1");
        assert_eq!(pairings.by_code(1, "123456", grant("x")).err(), Some(PairError::Ambiguous));
        for device in &mut devices {
            assert_eq!(device.try_recv().unwrap().err(), Some(PairError::Ambiguous));
        }
        // It was no wrong code, and they show others when they come again.
        assert!(matches!(pairings.by_code(2, "000000", grant("x")), Err(PairError::WrongCode { tries_left: 4 })));
        assert!(pairings.by_code(3, "654321", grant("ann")).is_ok());
        assert_eq!(granted(&mut other), grant("ann"));
    }

    #[test]
    fn a_window_that_cannot_be_opened_is_told() {
        let pairings = Pairings::default();
        for at in 0..WINDOWS_MAX {
            assert!(matches!(pairings.by_fingerprint(0, &format!("{at:02}"), grant("ann")), Ok(None)));
        }
        assert_eq!(pairings.by_fingerprint(1, "one more", grant("ann")).err(), Some(PairError::TooManyWindows));
        assert!(pairings.by_fingerprint(1, "00", grant("bob")).is_ok(), "one that is open is opened anew");
        assert!(pairings.by_fingerprint(OPEN_US + 2, "one more", grant("ann")).is_ok());
    }

    #[test]
    fn no_window_is_opened_for_a_device_that_waits() {
        let pairings = Pairings::default();
        let mut device = waits(&pairings, 0, "aa", "123456", "192.0.2.1");
        assert_eq!(pairings.open_window(1, "aa", grant("x")), Err(PairError::Waiting));
        assert!(device.try_recv().is_err(), "it still waits");
        assert_eq!(pairings.open_window(1, "bb", grant("x")), Ok(()));
        assert_eq!(granted(&mut waits(&pairings, 2, "bb", "111111", "192.0.2.1")), grant("x"));
    }
}
