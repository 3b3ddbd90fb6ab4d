//! Where a network stands in its schedule. Time is an argument.

use super::profile::{Conditions, Profile};
use crate::random::Random;

/// One network in progress: a profile and a seed.
#[derive(Clone, Debug)]
pub struct Schedule {
    profile: Profile,
    random: Random,
    phase: usize,
    /// When the phase ends; `None`: it stays.
    ends_us: Option<u64>,
    addresses: u64,
}

impl Schedule {
    /// Begins at 0.
    pub fn new(profile: Profile, seed: u64) -> Self {
        let random = Random::new(seed ^ 0x006e_6574_776f_726b);
        let mut schedule = Self { profile, random, phase: 0, ends_us: None, addresses: 0 };
        schedule.enter(0, 0);
        schedule
    }

    /// Another profile begins at `now_us`.
    pub fn play(&mut self, profile: Profile, now_us: u64) {
        self.profile = profile;
        self.enter(0, now_us);
    }

    /// What holds at `now_us`, which never goes back.
    pub fn at(&mut self, now_us: u64) -> Conditions {
        while let Some(ends_us) = self.ends_us.filter(|ends_us| *ends_us <= now_us) {
            let next = (self.phase + 1) % self.profile.phases.len().max(1);
            self.enter(next, ends_us);
        }
        self.profile.phases.get(self.phase).map(|phase| phase.conditions).unwrap_or_default()
    }

    /// When something else holds; `None`: never.
    pub fn ends_us(&self) -> Option<u64> {
        self.ends_us
    }

    /// How many addresses the glasses have had besides their first one.
    pub fn addresses(&self) -> u64 {
        self.addresses
    }

    /// The glasses have another address.
    pub fn change_address(&mut self) {
        self.addresses += 1;
    }

    /// What is played at present, by [`new`](Self::new) or the last [`play`](Self::play).
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn enter(&mut self, phase: usize, began_us: u64) {
        self.phase = phase;
        let stays = phase + 1 == self.profile.phases.len() && !self.profile.repeats;
        let Some(entered) = self.profile.phases.get(phase) else {
            self.ends_us = None;
            return;
        };
        let (least_ms, most_ms) = entered.lasts_ms;
        let lasts_ms = least_ms + self.random.below(most_ms.saturating_sub(least_ms) + 1);
        self.ends_us = (!stays).then_some(began_us + lasts_ms * 1_000);
        self.addresses += u64::from(entered.conditions.new_address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a network has outages and addresses within two minutes, in steps of 50 ms.
    fn states(name: &str, seed: u64) -> Vec<(bool, u64)> {
        let mut schedule = Schedule::new(Profile::named(name).unwrap(), seed);
        (0..2_400).map(|step| (schedule.at(step * 50_000).outage, schedule.addresses())).collect()
    }

    #[test]
    fn a_seed_is_a_schedule() {
        let train = states("train", 1);
        assert_eq!(train, states("train", 1));
        assert_ne!(train, states("train", 2));
        let out = train.iter().filter(|(outage, _)| *outage).count();
        assert!((100..400).contains(&out), "{out} of 2400 in tunnels");
        assert!((2..8).contains(&train.last().unwrap().1), "{:?}", train.last());
        let lift = states("elevator", 1);
        let out = lift.iter().filter(|(outage, _)| *outage).count();
        assert!((300..800).contains(&out), "{out} of 2400 between floors");
    }

    #[test]
    fn another_profile_begins_at_once() {
        let mut schedule = Schedule::new(Profile::named("home").unwrap(), 1);
        assert!(!schedule.at(5_000_000).outage);
        assert_eq!(schedule.ends_us(), None);
        schedule.play(Profile::steady(Conditions { outage: true, ..Conditions::default() }), 5_000_000);
        assert!(schedule.at(5_000_000).outage);
    }
}
