//! A shaped network between the glasses and the gateway, in user space: below the packets of QUIC, and below the bytes of a
//! TCP connection.
//!
//! A [`Profile`] is a schedule of conditions, and a seed makes one network of it. Datagrams are lost, in bursts, delayed,
//! overtaken and doubled, and wait in front of a narrow place or are dropped there. A stream loses nothing: what is lost
//! below it delays it, and a full queue stops its sender.

pub(crate) mod datagrams;
pub mod path;
pub mod profile;
pub mod schedule;
pub(crate) mod stream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use path::{Path, micros};
pub use profile::{Conditions, Loss, NAMES, Phase, Profile, Rate};
use schedule::Schedule;

/// A network in progress. Copies are the same network; the connections of one pair of glasses share it.
#[derive(Clone, Debug)]
pub struct Network {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    seed: u64,
    play: Mutex<Play>,
    /// Changes with the profile.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Play {
    schedule: Schedule,
    origin: Instant,
    connections: u64,
}

impl Play {
    /// Microseconds since the start, and what holds.
    fn now(&mut self) -> (u64, Conditions) {
        let now_us = micros(self.origin.elapsed());
        (now_us, self.schedule.at(now_us))
    }
}

impl Network {
    /// Begins now.
    pub fn start(profile: Profile, seed: u64) -> Self {
        let play = Play { schedule: Schedule::new(profile, seed), origin: Instant::now(), connections: 0 };
        Self { inner: Arc::new(Inner { seed, play: Mutex::new(play), changed: watch::Sender::new(()) }) }
    }

    /// Another profile begins now, for all connections.
    pub fn play(&self, profile: Profile) {
        let mut play = self.lock();
        let (now_us, _) = play.now();
        play.schedule.play(profile, now_us);
        drop(play);
        self.inner.changed.send_replace(());
    }

    /// The glasses have another address from now on.
    pub fn change_address(&self) {
        self.lock().schedule.change_address();
        self.inner.changed.send_replace(());
    }

    /// Microseconds since the start, and what holds.
    fn now(&self) -> (u64, Conditions) {
        self.lock().now()
    }

    /// How many addresses the glasses have had besides their first one.
    fn addresses(&self) -> u64 {
        let mut play = self.lock();
        play.now();
        play.schedule.addresses()
    }

    /// The two directions of a new connection, and when it breaks.
    fn connection(&self) -> (Path, Path, Option<Instant>) {
        let mut play = self.lock();
        play.connections += 1;
        let seed = self.inner.seed ^ play.connections.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let cut = play.schedule.profile().cut_after.map(|after| Instant::now() + after);
        (Path::new(seed), Path::new(!seed), cut)
    }

    /// The instant at which [`Network::now`] shows this.
    fn instant(&self, at_us: u64) -> Instant {
        self.lock().origin + Duration::from_micros(at_us)
    }

    /// Waits until something else may hold: the next phase, or another profile.
    async fn change(&self, changed: &mut watch::Receiver<()>) {
        let ends = {
            let mut play = self.lock();
            play.now();
            play.schedule.ends_us().map(|at_us| play.origin + Duration::from_micros(at_us))
        };
        tokio::select! {
            () = sleep_or_never(ends) => {}
            // The network holds the sender.
            _ = changed.changed() => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Play> {
        self.inner.play.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sleep_or_never(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
