//! Pairing: what strangers' glasses show, and what is typed about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use device_protocol::auth::pairing_code;
use sha2::{Digest as _, Sha256};
use tokio::sync::{
    oneshot,
    oneshot::error::TryRecvError::{Closed, Empty},
};

use crate::{
    control, http,
    identity::{
        Pairings, fingerprint,
        grant::{Grant, Granted},
        pairing::{OPEN_US, PairError, TRIES_MAX, Wait},
        typed,
    },
    text,
};

/// Devices of one input.
const DEVICES: u32 = 32;
/// Steps of one input.
const STEPS_MAX: usize = 256;

/// What happens, a line for each step: `wDS...` a device waits at a place and shows the code of the rest, `wDS` shows
/// none, `t...` a code is typed, `sD...` the code that a device shows with the rest between its digits, `f...` a
/// fingerprint, `FD...` that of a device with the rest between its pairs, `oD` a window of the page, `rD` is revoked,
/// `gD` goes away, `n...` and `u...` are the name and the user that are typed, `k...` a key in the page's request, `+` a
/// second, `*` a minute.
pub fn steps(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut fixture = Fixture::default();
    for line in text.lines().take(STEPS_MAX) {
        fixture.step(line);
        fixture.judge();
    }
}

/// The key of the device with this number, as its fingerprint.
fn device(number: char) -> String {
    fingerprint(&[(u32::from(number) % DEVICES) as u8; 32])
}

/// What a device shows, and where it is told.
type Waiting = (Option<String>, oneshot::Receiver<Result<Granted, PairError>>);

#[derive(Default)]
struct Fixture {
    pairings: Pairings,
    now_us: u64,
    user: String,
    name: String,
    waiting: BTreeMap<String, Waiting>,
    /// Keys about which the operator has decided, not used up yet, with what was granted; until when.
    windows: BTreeMap<String, (Grant, u64)>,
    revoked: BTreeSet<String>,
    /// The one that was just granted.
    granted: Option<(String, Grant)>,
    wrong: u8,
    locked_until_us: u64,
}

impl Fixture {
    fn step(&mut self, line: &str) {
        let mut letters = line.chars();
        let kind = letters.next();
        let rest = letters.as_str();
        let (of, more) = (rest.chars().next().unwrap_or('0'), rest.get(1..).unwrap_or_default());
        match kind {
            Some('w') => self.wait(of, more),
            Some('t') => self.code(rest),
            Some('s') => {
                let shown = self.waiting.get(&device(of)).and_then(|(code, _)| code.clone()).unwrap_or_default();
                self.code(&between(&shown, 1, more));
            }
            Some('f') => self.fingerprint(rest),
            Some('F') => self.fingerprint(&between(&device(of), 2, more)),
            Some('o') => self.window(&device(of)),
            Some('r') => {
                self.pairings.revoke(self.now_us, &device(of));
                self.windows.remove(&device(of));
                self.revoked.insert(device(of));
            }
            Some('g') => drop(self.waiting.remove(&device(of))),
            Some('n') => rest.clone_into(&mut self.name),
            Some('u') => rest.clone_into(&mut self.user),
            Some('k') => key(rest.as_bytes()),
            Some('+') => self.now_us += 1_000_000,
            Some('*') => self.now_us += 60_000_000,
            _ => {}
        }
    }

    fn wait(&mut self, number: char, more: &str) {
        let (id, place) = (device(number), more.bytes().next().unwrap_or_default());
        let transcript = more.get(1..).filter(|rest| !rest.is_empty());
        let code =
            transcript.map(|rest| String::from_utf8_lossy(&pairing_code(&Sha256::digest(rest).into())).into_owned());
        if let Some(code) = &code {
            assert_eq!(typed::code(code).as_ref(), Ok(code), "what is shown can be typed");
        }
        let address = IpAddr::from([192, 0, 2, place]);
        let waits = self.pairings.wait(self.now_us, &id, "model", code.clone(), address);
        assert_eq!(waits.is_err(), self.now_us < self.locked_until_us);
        let Ok(Wait { granted, tries }) = waits else { return };
        assert_eq!(*tries.borrow(), TRIES_MAX - self.wrong);
        if let Some((grant, until_us)) = self.windows.remove(&id)
            && until_us > self.now_us
        {
            self.granted = Some((id.clone(), grant));
        }
        self.waiting.insert(id, (code, granted));
    }

    fn grant(&self) -> Option<Grant> {
        let grant = control::granted(&self.user, &self.name)?;
        for text in [&grant.user, &grant.name] {
            assert!(text::is_plain(text), "{text:?}");
        }
        Some(grant)
    }

    fn code(&mut self, typed: &str) {
        let Ok(code) = typed::code(typed) else { return };
        assert!(code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code:?}");
        assert_eq!(typed::code(&code).as_ref(), Ok(&code));
        let Some(grant) = self.grant() else { return };
        let showing = self.showing(&code);
        let is_locked = self.now_us < self.locked_until_us;
        match self.pairings.by_code(self.now_us, &code, grant.clone()) {
            Ok((id, _)) => {
                assert!(!is_locked && showing == [id.as_str()], "{showing:?}");
                self.revoked.remove(&id);
                self.granted = Some((id, grant));
                self.wrong = 0;
            }
            Err(PairError::WrongCode { tries_left }) => {
                self.wrong += 1;
                assert!(!is_locked && showing.is_empty() && tries_left == TRIES_MAX - self.wrong && tries_left > 0);
            }
            Err(PairError::Locked { .. }) if is_locked => {}
            Err(PairError::Locked { .. }) => {
                assert!(showing.is_empty() && self.wrong == TRIES_MAX - 1, "{showing:?}");
                self.wrong = 0;
                self.locked_until_us = self.now_us + OPEN_US;
                assert!(self.pairings.waiting(self.now_us).is_empty(), "all are turned away");
            }
            Err(PairError::NoneWaits) => assert!(!is_locked && self.pairings.waiting(self.now_us).is_empty()),
            Err(PairError::Ambiguous) => assert!(!is_locked && showing.len() > 1),
            Err(other) => panic!("{other}"),
        }
    }

    /// Devices that wait and show this code, by what they were told so far.
    fn showing(&self, code: &str) -> Vec<String> {
        let waiting = self.pairings.waiting(self.now_us);
        let shows = |id: &&String| self.waiting.get(*id).is_some_and(|(shown, _)| shown.as_deref() == Some(code));
        let ids: Vec<String> = waiting.into_iter().map(|device| device.fingerprint).collect();
        ids.iter().filter(shows).cloned().collect()
    }

    fn fingerprint(&mut self, typed: &str) {
        let Ok(id) = typed::fingerprint(typed) else { return };
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()));
        assert_eq!(typed::fingerprint(&id).as_ref(), Ok(&id));
        let Some(grant) = self.grant() else { return };
        match self.pairings.by_fingerprint(self.now_us, &id, grant.clone()) {
            Ok(Some(_)) => {
                self.revoked.remove(&id);
                self.granted = Some((id, grant));
            }
            Ok(None) => drop(self.windows.insert(id, (grant, self.now_us + OPEN_US))),
            Err(error) => assert_eq!(error, PairError::TooManyWindows),
        }
    }

    fn window(&mut self, id: &str) {
        let Some(grant) = self.grant() else { return };
        let waits = self.pairings.waiting(self.now_us).iter().any(|device| device.fingerprint == id);
        match self.pairings.open_window(self.now_us, id, grant.clone()) {
            Ok(()) => drop(self.windows.insert(id.to_owned(), (grant, self.now_us + OPEN_US))),
            Err(error) => assert_eq!(error == PairError::Waiting, waits),
        }
    }

    /// Nobody is granted anything but the one about whom the operator has just decided, and that one what was decided.
    fn judge(&mut self) {
        let granted = self.granted.take();
        let mut over = Vec::new();
        for (id, (_, told)) in &mut self.waiting {
            match (told.try_recv(), &granted) {
                (Ok(Ok(grant)), Some((of, decided))) => {
                    assert_eq!((id, grant.grant()), (of, decided));
                    self.revoked.remove(id);
                    over.push(id.clone());
                }
                (Ok(Ok(grant)), None) => panic!("{id} is granted {:?} by nobody", grant.grant()),
                (Ok(Err(_)) | Err(Closed), _) => over.push(id.clone()),
                (Err(Empty), _) => {}
            }
        }
        self.waiting.retain(|id, _| !over.contains(id));
        let waiting = self.pairings.waiting(self.now_us);
        assert!(waiting.len() <= 16, "{} wait", waiting.len());
        for device in waiting {
            assert!(device.expires_s <= OPEN_US / 1_000_000);
            let (shown, _) = self.waiting.get(&device.fingerprint).expect("one that came and was told nothing");
            assert_eq!(device.has_code, shown.is_some());
        }
        for id in &self.revoked {
            assert!(self.pairings.is_revoked(id), "{id}");
        }
    }
}

/// The digits with something between each `count` of them.
fn between(digits: &str, count: usize, what: &str) -> String {
    let pieces: Vec<&[u8]> = digits.as_bytes().chunks(count).collect();
    String::from_utf8_lossy(&pieces.join(what.as_bytes())).into_owned()
}

/// A key in a request of the page: exactly its digits.
fn key(digits: &[u8]) {
    let Some(key) = http::fuzzing::key(digits) else { return };
    let written: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(written.as_bytes().eq_ignore_ascii_case(digits));
    assert!(typed::fingerprint(&fingerprint(&key)).is_ok());
}
