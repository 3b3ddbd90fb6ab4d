//! People at the console: one-time links, and the sessions of the browsers that used one. Nothing of it outlives the
//! process. Tokens are kept as hashes, so that the duration of a comparison reveals nothing about them.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::random;

/// How long a link is good for, in microseconds: it is opened at once.
pub(crate) const LINK_US: u64 = 300_000_000;
/// Links that may be open at once; a further one voids the oldest.
const LINKS_MAX: usize = 8;
/// A session ends after so long without a request, in microseconds. Live updates do not count.
const IDLE_US: u64 = 1_800_000_000;
/// A session ends after so long, whatever is done in it, in microseconds.
const SESSION_US: u64 = 43_200_000_000;
/// Sessions at once: a household and its helpers. A further one ends the one that was idle longest.
const SESSIONS_MAX: usize = 16;
/// Wrong links from one address within [`WRONG_US`]; further attempts from there are refused unread.
const WRONG_MAX: u32 = 5;
/// How long wrong links count, in microseconds.
const WRONG_US: u64 = 60_000_000;
/// Addresses whose wrong links are counted; a further one takes the place of the one that was counted first.
const SOURCES_MAX: usize = 256;
/// Bytes of a notice: an app's installation lists its tools.
const NOTICE_BYTES_MAX: usize = 4_096;

/// What a person may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look at the state of the gateway; nothing that wearers said, no changes.
    Viewer,
    /// Everything.
    Operator,
}

impl Role {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

/// The result of what was asked for, shown on the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Whether it was done.
    pub is_done: bool,
    /// What was done, or why not.
    pub text: String,
}

/// A session, as its requests see it.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Its number, for people and the log.
    pub number: u32,
    /// What it may do.
    pub role: Role,
    /// The token that its forms carry.
    pub form_token: String,
    key: [u8; 32],
}

/// A session, as the list of them shows it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Tells it from the others.
    pub number: u32,
    /// What it may do.
    pub role: Role,
    /// From where the link was opened.
    pub from: IpAddr,
    /// Seconds since then.
    pub for_s: u64,
    /// Seconds since its last request.
    pub idle_s: u64,
}

/// Why a link was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It never was one, is used up, or too old.
    #[error("this link was used already, or is too old; `lorgnette console` prints a new one")]
    Unknown,
    /// Too many wrong ones came from the same address.
    #[error("too many wrong links came from this address; wait a minute")]
    TooMany,
    /// No session can be made.
    #[error("the system gives no random numbers")]
    NoRandom,
}

struct Link {
    token: [u8; 32],
    role: Role,
    until_us: u64,
}

struct Session {
    number: u32,
    role: Role,
    form_token: String,
    from: IpAddr,
    began_us: u64,
    last_us: u64,
    notice: Option<Notice>,
}

impl Session {
    fn is_over(&self, now_us: u64) -> bool {
        now_us >= self.began_us.saturating_add(SESSION_US) || now_us >= self.last_us.saturating_add(IDLE_US)
    }
}

#[derive(Default)]
struct State {
    links: Vec<Link>,
    sessions: BTreeMap<[u8; 32], Session>,
    wrong: Vec<(IpAddr, u64, u32)>,
    number: u32,
}

/// Links and sessions. `now_us` is the gateway's clock.
#[derive(Default)]
pub struct Operators(Mutex<State>);

impl Operators {
    /// A new link: its token.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn link(&self, now_us: u64, role: Role) -> Result<String> {
        let token = token()?;
        let mut state = self.state();
        state.links.retain(|link| link.until_us > now_us);
        if state.links.len() >= LINKS_MAX {
            state.links.remove(0);
        }
        state.links.push(Link { token: hash(&token), role, until_us: now_us.saturating_add(LINK_US) });
        Ok(token)
    }

    /// Uses up a link: the secret of a new session, for its cookie, and its number.
    ///
    /// # Errors
    /// There is no such link, or too many wrong ones came from this address.
    pub(crate) fn redeem(&self, now_us: u64, from: IpAddr, link: &str) -> Result<(String, u32, Role), Refusal> {
        let mut state = self.state();
        state.wrong.retain(|(_, since_us, _)| since_us.saturating_add(WRONG_US) > now_us);
        if state.wrong.iter().any(|(source, _, count)| *source == from && *count >= WRONG_MAX) {
            return Err(Refusal::TooMany);
        }
        let wanted = hash(link);
        state.links.retain(|link| link.until_us > now_us);
        let Some(at) = state.links.iter().position(|link| link.token == wanted) else {
            state.count_wrong(now_us, from);
            return Err(Refusal::Unknown);
        };
        let (secret, form_token) = (token(), token());
        let (Ok(secret), Ok(form_token)) = (secret, form_token) else { return Err(Refusal::NoRandom) };
        let role = state.links.remove(at).role;
        state.sessions.retain(|_, session| !session.is_over(now_us));
        if state.sessions.len() >= SESSIONS_MAX {
            let idle = state.sessions.iter().min_by_key(|(_, session)| session.last_us).map(|(key, _)| *key);
            idle.and_then(|key| state.sessions.remove(&key));
        }
        state.number = state.number.wrapping_add(1);
        let number = state.number;
        let session = Session { number, role, form_token, from, began_us: now_us, last_us: now_us, notice: None };
        state.sessions.insert(hash(&secret), session);
        Ok((secret, number, role))
    }

    /// The session of a request with this secret; the request keeps it from being idle if `is_active`.
    pub fn visit(&self, now_us: u64, secret: &str, is_active: bool) -> Option<Visitor> {
        let key = hash(secret);
        let mut state = self.state();
        if state.sessions.get(&key)?.is_over(now_us) {
            state.sessions.remove(&key);
            return None;
        }
        let session = state.sessions.get_mut(&key)?;
        if is_active {
            session.last_us = now_us;
        }
        let Session { number, role, form_token, .. } = session;
        Some(Visitor { number: *number, role: *role, form_token: form_token.clone(), key })
    }

    /// Whether a session goes on, for its live updates.
    pub fn goes_on(&self, now_us: u64, visitor: &Visitor) -> bool {
        self.state().sessions.get(&visitor.key).is_some_and(|session| !session.is_over(now_us))
    }

    /// Ends the session with this number, or all; how many ended.
    pub fn end(&self, number: Option<u32>) -> usize {
        let mut state = self.state();
        let before = state.sessions.len();
        state.sessions.retain(|_, session| number.is_some_and(|number| session.number != number));
        before - state.sessions.len()
    }

    /// All sessions, by number.
    pub fn list(&self, now_us: u64) -> Vec<Listed> {
        let state = self.state();
        let seconds = |since_us: u64| now_us.saturating_sub(since_us) / 1_000_000;
        let mut all: Vec<Listed> = state
            .sessions
            .values()
            .filter(|session| !session.is_over(now_us))
            .map(|session| Listed {
                number: session.number,
                role: session.role,
                from: session.from,
                for_s: seconds(session.began_us),
                idle_s: seconds(session.last_us),
            })
            .collect();
        all.sort_by_key(|session| session.number);
        all
    }

    /// Keeps a notice for the session's next page.
    pub fn tell(&self, visitor: &Visitor, is_done: bool, text: &str) {
        if let Some(session) = self.state().sessions.get_mut(&visitor.key) {
            session.notice = Some(Notice { is_done, text: crate::text::crop(text, NOTICE_BYTES_MAX).to_owned() });
        }
    }

    /// The notice that is kept for the session, once: it is shown on one page only.
    pub(crate) fn take_notice(&self, visitor: &Visitor) -> Option<Notice> {
        self.state().sessions.get_mut(&visitor.key)?.notice.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count_wrong(&mut self, now_us: u64, from: IpAddr) {
        if let Some((_, _, count)) = self.wrong.iter_mut().find(|(source, ..)| *source == from) {
            *count += 1;
            return;
        }
        if self.wrong.len() >= SOURCES_MAX {
            self.wrong.remove(0);
        }
        self.wrong.push((from, now_us, 1));
    }
}

/// Whether two tokens are the same one; the duration tells nothing about either.
pub fn is_same(one: &str, other: &str) -> bool {
    hash(one) == hash(other)
}

/// 256 random bits in hexadecimal digits.
fn token() -> Result<String> {
    Ok(random::<32>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn signed_in(operators: &Operators, now_us: u64, role: Role) -> String {
        let link = operators.link(now_us, role).unwrap();
        operators.redeem(now_us, HERE, &link).unwrap().0
    }

    #[test]
    fn a_link_opens_one_session_and_only_in_time() {
        let operators = Operators::default();
        let link = operators.link(0, Role::Viewer).unwrap();
        let (secret, number, role) = operators.redeem(LINK_US - 1, HERE, &link).unwrap();
        assert_eq!((number, role, secret.len()), (1, Role::Viewer, 64));
        assert_eq!(operators.redeem(LINK_US - 1, HERE, &link), Err(Refusal::Unknown), "used up");
        let late = operators.link(0, Role::Operator).unwrap();
        assert_eq!(operators.redeem(LINK_US, HERE, &late), Err(Refusal::Unknown), "too old");
        let visitor = operators.visit(LINK_US, &secret, true).unwrap();
        assert_eq!((visitor.number, visitor.role), (1, Role::Viewer));
        assert!(!is_same(&visitor.form_token, &secret) && operators.visit(LINK_US, &link, true).is_none());
    }

    #[test]
    fn a_session_ends_when_nobody_uses_it_and_after_half_a_day_anyway() {
        let operators = Operators::default();
        let secret = signed_in(&operators, 0, Role::Operator);
        let visitor = operators.visit(IDLE_US - 1, &secret, true).unwrap();
        // What comes by itself keeps nothing alive.
        assert!(operators.visit(2 * IDLE_US - 2, &secret, false).is_some());
        assert!(operators.goes_on(2 * IDLE_US - 2, &visitor) && !operators.goes_on(2 * IDLE_US - 1, &visitor));
        assert!(operators.visit(2 * IDLE_US - 1, &secret, true).is_none());
        let secret = signed_in(&operators, 0, Role::Operator);
        for now_us in (0..SESSION_US).step_by(usize::try_from(IDLE_US / 2).unwrap()) {
            assert!(operators.visit(now_us, &secret, true).is_some(), "{now_us}");
        }
        assert!(operators.visit(SESSION_US, &secret, true).is_none());
    }

    #[test]
    fn wrong_links_are_refused_unread_after_some_and_only_from_there() {
        let operators = Operators::default();
        let link = operators.link(0, Role::Operator).unwrap();
        for _ in 0..WRONG_MAX {
            assert_eq!(operators.redeem(1, THERE, "guess"), Err(Refusal::Unknown));
        }
        assert_eq!(operators.redeem(2, THERE, &link), Err(Refusal::TooMany));
        assert!(operators.redeem(3, HERE, &link).is_ok(), "others are not kept out");
        let link = operators.link(WRONG_US, Role::Operator).unwrap();
        assert!(operators.redeem(WRONG_US + 1, THERE, &link).is_ok(), "a minute later");
    }

    #[test]
    fn links_sessions_and_counted_addresses_are_bounded() {
        let operators = Operators::default();
        let first = operators.link(0, Role::Operator).unwrap();
        let others: Vec<String> = (0..LINKS_MAX).map(|_| operators.link(0, Role::Operator).unwrap()).collect();
        assert_eq!(operators.redeem(0, HERE, &first), Err(Refusal::Unknown));
        assert!(operators.redeem(0, HERE, &others[0]).is_ok());
        let secrets: Vec<String> =
            (1..=SESSIONS_MAX as u64).map(|now_us| signed_in(&operators, now_us, Role::Viewer)).collect();
        assert_eq!(operators.list(20).len(), SESSIONS_MAX);
        assert!(secrets.iter().all(|secret| operators.visit(20, secret, false).is_some()), "the oldest gave way");
        for last in 0..=255 {
            for third in [0, 1] {
                let from = IpAddr::from([10, 0, third, last]);
                assert_eq!(operators.redeem(20, from, "guess"), Err(Refusal::Unknown));
            }
        }
        assert_eq!(operators.state().wrong.len(), SOURCES_MAX);
    }

    #[test]
    fn sessions_are_ended_one_by_one_and_together() {
        let operators = Operators::default();
        let secrets: Vec<String> = (0..3).map(|_| signed_in(&operators, 0, Role::Operator)).collect();
        assert_eq!((operators.end(Some(2)), operators.end(Some(2))), (1, 0));
        let visitor = operators.visit(1, &secrets[0], true).unwrap();
        operators.tell(&visitor, true, "done");
        assert_eq!(operators.take_notice(&visitor).map(|notice| notice.text).as_deref(), Some("done"));
        assert!(operators.take_notice(&visitor).is_none() && operators.visit(1, &secrets[1], true).is_none());
        assert_eq!((operators.end(None), operators.list(1).len()), (2, 0));
    }
}
