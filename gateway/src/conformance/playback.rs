//! A speech that the judge sends, and what the device tells of it: PROTOCOL.md, section 8.

use device_protocol::{PlayState, Stamp, limits, up};

use super::{Rule, rules::Report};

/// How far a report may be ahead of real time, in microseconds: clocks run a little faster or slower, and a device plays its
/// first packet while the judge still counts.
const AHEAD_US_MAX: u64 = 150_000;
/// The same between two reports, by the device's own clock.
const AHEAD_BETWEEN_US_MAX: u64 = 60_000;
/// How far from the border of two clauses either may be named, in microseconds: two packets.
const BORDER_US: u64 = 40_000;
/// Most of the middle one of all pauses between two reports, in microseconds: a single one may be longer on a busy machine.
const EVERY_US_MAX: u64 = 300_000;
/// Reports from which a middle one is taken.
const REPORTS_MIN: usize = 5;

struct Told {
    played_us: u64,
    time_us: u64,
    state: PlayState,
}

/// How much of a speech was sent, and what the device has reported of playing it.
pub(super) struct Playback {
    pub(super) speech: u32,
    pub(super) turn: u32,
    /// Where each clause begins, in microseconds.
    clauses: Vec<u64>,
    /// Whole length; it is told at the end.
    duration_us: u64,
    /// Sent up to here.
    pub(super) sent_us: u64,
    /// When the first packet was sent.
    first_us: Option<u64>,
    last: Option<Told>,
    /// When the last report came.
    heard_us: u64,
    told_clauses: u16,
    between_us: Vec<u64>,
    has_starved: bool,
    /// When it was hushed.
    hushed_us: Option<u64>,
    /// How it ended.
    pub(super) end: Option<PlayState>,
}

impl Playback {
    /// A speech with clauses of these lengths, in microseconds.
    pub(super) fn new(speech: u32, turn: u32, lengths: &[u64]) -> Self {
        let mut duration_us = 0;
        let clauses = lengths.iter().map(|length| {
            let start = duration_us;
            duration_us += length;
            start
        });
        Self {
            speech,
            turn,
            clauses: clauses.collect(),
            duration_us,
            sent_us: 0,
            first_us: None,
            last: None,
            heard_us: 0,
            told_clauses: 0,
            between_us: Vec::new(),
            has_starved: false,
            hushed_us: None,
            end: None,
        }
    }

    /// The clause of this place.
    pub(super) fn clause_at(&self, position_us: u64) -> u16 {
        let begun = self.clauses.iter().filter(|start| **start <= position_us).count();
        u16::try_from(begun.saturating_sub(1)).unwrap_or(u16::MAX)
    }

    /// A packet was sent, whose end is here.
    pub(super) fn sent(&mut self, now_us: u64, end_us: u64) {
        self.first_us.get_or_insert(now_us);
        self.sent_us = end_us;
    }

    /// It was hushed.
    pub(super) fn hushed(&mut self, now_us: u64) {
        self.hushed_us = Some(now_us);
    }

    /// What has been told as played; `None`: nothing.
    pub(super) fn told_us(&self) -> Option<u64> {
        self.last.as_ref().map(|last| last.played_us)
    }

    /// How much may be sent now, by the rules for gateways: the end of it, in microseconds.
    pub(super) fn room_us(&self, now_us: u64) -> u64 {
        let hold_us = u64::from(limits::SPEECH_HOLD_MS_MAX) * 1_000;
        let Some(last) = &self.last else { return hold_us };
        let since_us = if last.state == PlayState::Playing { now_us.saturating_sub(self.heard_us) } else { 0 };
        let ahead_us = last.played_us + since_us + u64::from(limits::SPEECH_AHEAD_MS_MAX) * 1_000;
        ahead_us.min(last.played_us + hold_us)
    }

    /// `played` of this speech.
    pub(super) fn played(&mut self, report: &mut Report, now_us: u64, stamp: Stamp, played: &up::Played) {
        if let Some(end) = self.end {
            let rule = if self.hushed_us.is_some() { Rule::Hushed } else { Rule::Finished };
            let (then, now) = (name(end), name(played.state));
            return report.fail(rule, format!("`{now}` at {} us comes after `{then}`", played.played_us));
        }
        self.check_place(report, now_us, stamp, played);
        self.check_clause(report, played);
        if let Some(last) = &self.last {
            if last.state == PlayState::Playing && played.state != PlayState::Stopped {
                self.between_us.push(stamp.time_us.saturating_sub(last.time_us));
            }
            if last.state == PlayState::Starved && played.state == PlayState::Playing {
                report.pass(Rule::Starved);
            }
        }
        match played.state {
            PlayState::Starved => {
                self.has_starved = true;
                report.check(Rule::Starved, played.played_us <= self.sent_us, || {
                    "it is told of what was not sent".to_owned()
                });
            }
            PlayState::Finished | PlayState::Stopped => self.ended(report, played),
            _ => {}
        }
        self.heard_us = now_us;
        self.last = Some(Told { played_us: played.played_us, time_us: stamp.time_us, state: played.state });
    }

    fn check_place(&self, report: &mut Report, now_us: u64, stamp: Stamp, played: &up::Played) {
        let told_us = played.played_us;
        if told_us > self.sent_us {
            return report.fail(
                Rule::PlayedSent,
                format!("{told_us} us of speech {}; {} us were sent", self.speech, self.sent_us),
            );
        }
        report.pass(Rule::PlayedSent);
        let since_us = self.first_us.map_or(0, |first_us| now_us.saturating_sub(first_us));
        if told_us > since_us + AHEAD_US_MAX {
            return report
                .fail(Rule::PlayedTime, format!("{told_us} us, {since_us} us after the first packet was sent"));
        }
        if let Some(last) = &self.last {
            let passed_us = stamp.time_us.saturating_sub(last.time_us);
            if told_us < last.played_us {
                return report.fail(Rule::PlayedTime, format!("{told_us} us follows {} us", last.played_us));
            }
            let more_us = told_us - last.played_us;
            if more_us > passed_us + passed_us / 50 + AHEAD_BETWEEN_US_MAX {
                return report.fail(Rule::PlayedTime, format!("{more_us} us more in {passed_us} us by its own clock"));
            }
        }
        report.pass(Rule::PlayedTime);
    }

    fn check_clause(&mut self, report: &mut Report, played: &up::Played) {
        let place = played.played_us;
        let (least, most) = (self.clause_at(place.saturating_sub(BORDER_US)), self.clause_at(place + BORDER_US));
        if !(least..=most).contains(&played.clause) {
            report.fail(Rule::PlayedClause, format!("clause {} at {place} us, which is clause {least}", played.clause));
        } else if played.clause == self.told_clauses {
            self.told_clauses += 1;
        }
    }

    fn ended(&mut self, report: &mut Report, played: &up::Played) {
        self.end = Some(played.state);
        let (is_finished, place) = (played.state == PlayState::Finished, played.played_us);
        if self.hushed_us.is_some() {
            return report
                .check(Rule::Hush, !is_finished, || format!("`finished` at {place} us, though no end of it was sent"));
        }
        report.check(Rule::Finished, is_finished && place == self.duration_us, || {
            format!("`{}` at {place} us; the speech has {} us", name(played.state), self.duration_us)
        });
        if is_finished {
            let all = self.clauses.len();
            report.check(Rule::PlayedClause, usize::from(self.told_clauses) >= all, || {
                format!("{} of {all} clauses were told", self.told_clauses)
            });
        }
        self.check_pauses(report);
    }

    /// How often it was told.
    fn check_pauses(&mut self, report: &mut Report) {
        self.between_us.sort_unstable();
        let middle_us = self.between_us.get(self.between_us.len() / 2).copied().unwrap_or(u64::MAX);
        let is_often = self.between_us.len() >= REPORTS_MIN && middle_us <= EVERY_US_MAX;
        report.check(Rule::Played, is_often, || {
            format!("{} reports, {} ms apart", self.between_us.len() + 1, middle_us.min(self.duration_us) / 1_000)
        });
    }

    /// Whether the device has told of an empty buffer.
    pub(super) fn has_starved(&self) -> bool {
        self.has_starved
    }
}

fn name(state: PlayState) -> &'static str {
    state.name().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    /// Two clauses of 1 s, all of it sent at 0.
    fn speech() -> Playback {
        let mut playback = Playback::new(1, 1, &[1_000_000, 1_000_000]);
        playback.sent(0, 2_000_000);
        playback
    }

    /// What a device tells, in milliseconds: the place, and the time; and in which clause and state.
    fn told(reports: &[(u64, u64, u16, PlayState)]) -> Report {
        let (mut report, mut playback) = (Report::default(), speech());
        for &(played_ms, time_ms, clause, state) in reports {
            let stamp = Stamp { sequence: 1, turn: 1, time_us: time_ms * 1_000 };
            let played = up::Played { speech: 1, clause, played_us: played_ms * 1_000, state };
            playback.played(&mut report, time_ms * 1_000, stamp, &played);
        }
        report
    }

    fn regular() -> Vec<(u64, u64, u16, PlayState)> {
        let mut all: Vec<_> =
            (0..10).map(|at| (at * 200, at * 200 + 30, u16::from(at >= 5), PlayState::Playing)).collect();
        all.push((2_000, 2_030, 1, PlayState::Finished));
        all
    }

    fn failed(report: &Report) -> Vec<Rule> {
        Rule::ALL.iter().copied().filter(|rule| matches!(report.verdict(*rule), Some(Verdict::Failed(_)))).collect()
    }

    #[test]
    fn a_speech_that_is_told_as_it_plays_passes() {
        let report = told(&regular());
        assert_eq!(failed(&report), []);
        for rule in [Rule::Played, Rule::PlayedSent, Rule::PlayedTime, Rule::PlayedClause, Rule::Finished] {
            assert_eq!(report.verdict(rule), Some(&Verdict::Passed), "{rule:?}");
        }
    }

    #[test]
    fn each_fault_breaks_its_rule() {
        let with = |at: usize, wrong| {
            let mut all = regular();
            all[at] = wrong;
            failed(&told(&all))
        };
        assert_eq!(with(3, (2_100, 630, 1, PlayState::Playing)).first(), Some(&Rule::PlayedSent));
        assert_eq!(with(3, (990, 630, 0, PlayState::Playing)).first(), Some(&Rule::PlayedTime));
        assert_eq!(with(3, (600, 630, 1, PlayState::Playing)), [Rule::PlayedClause]);
        assert_eq!(with(10, (1_900, 2_030, 1, PlayState::Finished)), [Rule::Finished]);
        let mut all = regular();
        all.push((2_000, 2_040, 1, PlayState::Finished));
        assert_eq!(failed(&told(&all)), [Rule::Finished]);
        let seldom: Vec<_> = regular().into_iter().step_by(2).collect();
        assert_eq!(failed(&told(&seldom)), [Rule::Played]);
    }
}
