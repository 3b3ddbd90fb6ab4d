//! How good the link is, and how sound is coded for it.
//!
//! Packets that queue in front of a narrow place arrive later and later: then less is sent, in larger packets, because on
//! a thin link the headers of small packets are more than half of the bytes. Lost packets are another matter: then each
//! packet tells more of the one before it. Both at once are a queue that is full.
//!
//! A session begins with the thinnest coding, and each report without a queue makes it a better one, like the slow start of
//! TCP: what a queue drops before the first measurement would be the beginning of the first sentence.

use crate::{
    limits,
    vocab::{SoundCoding, SoundReport},
};

/// Codings from the best link to the thinnest: bits per second and milliseconds of a packet. With its headers (83 bytes on
/// QUIC) the first one takes 57 kbit/s, the last one 23.
const CODINGS: [(u32, u16); 3] = [(24_000, 20), (16_000, 40), (12_000, 60)];

/// Index of the coding that a session begins with ([`SoundCoding::default`]).
const BEGIN: usize = CODINGS.len() - 1;
/// Packets of a report from which on it proves that the link carries what a session begins with.
const PROVING_PACKETS_MIN: u32 = 5;

/// Waiting time of packets above which the link counts as thin: more than jitter, and less than a listener notices.
const THIN_US: u32 = 200_000;
/// Waiting time above which no intermediate coding is tried.
const VERY_THIN_US: u32 = 600_000;
/// Waiting time under which more may be sent.
const FREE_US: u32 = 80_000;
/// Reports in a row that must agree that the link is thin: a single one may be a hiccup.
const THIN_REPORTS: u8 = 2;
/// Share of lost packets, in percent, from which on packets that also waited were dropped by a full queue.
const FULL_PERCENT: u32 = 10;
/// Packets of a report from which on a share counts.
const FULL_PACKETS_MIN: u32 = 5;
/// How much sound a link must have carried without a queue before more is sent, at least. Silence proves nothing.
const FREE_MS_MIN: u32 = 8_000;
/// And at most, where more was too much again and again.
const FREE_MS_MAX: u32 = 120_000;
/// If the link is thin again so soon after more was sent, that was why.
const PROBE_MS: u32 = 10_000;

/// Packets over which loss is averaged.
const LOSS_PACKETS: u32 = 100;
/// Expected loss, in percent, of which a coding is told at least and at most. Under the first, packets carry no copies at
/// all; beyond the last they carry nothing else.
const LOSS_PERCENT: core::ops::RangeInclusive<u32> = 10..=30;
/// Difference from which on it is told.
const LOSS_STEP: u32 = 5;

/// What is known of the link.
#[derive(Debug)]
pub(crate) struct Quality {
    /// Index of the coding.
    level: usize,
    /// Reports in a row of a thin link.
    thin: u8,
    /// Sound that came without a queue, in a row, in milliseconds.
    carried_ms: u32,
    free_ms: u32,
    /// When more was sent.
    raised_us: Option<u64>,
    /// Nothing is known of the link as yet.
    is_new: bool,
    /// In which directions this connection was measured: the first packets are what later ones are compared with.
    is_measured: [bool; 2],
    /// Lost packets, in ten-thousandths, in each direction.
    lost: [u32; 2],
    /// `None`: the one with which sound begins.
    told: Option<SoundCoding>,
}

impl Default for Quality {
    fn default() -> Self {
        Self {
            level: BEGIN,
            thin: 0,
            carried_ms: 0,
            free_ms: FREE_MS_MIN,
            raised_us: None,
            is_new: true,
            is_measured: [false; 2],
            lost: [0; 2],
            told: None,
        }
    }
}

impl Quality {
    /// Takes a report; returns the coding if it changes.
    pub(crate) fn handle_report(&mut self, now_us: u64, report: SoundReport) -> Option<SoundCoding> {
        self.note_loss(report);
        self.note_wait(now_us, report);
        let (bitrate, packet_ms) = self.coding();
        if self.is_new && self.level == BEGIN {
            return None;
        }
        let coding = Some(SoundCoding { bitrate, packet_ms, loss_percent: self.loss_percent() });
        (coding != self.told).then(|| {
            self.told = coding;
            coding
        })?
    }

    /// The link is back, perhaps another one: its waiting time is measured anew.
    pub(crate) fn handle_connected(&mut self) {
        self.thin = 0;
        self.carried_ms = 0;
        self.is_measured = [false; 2];
    }

    fn note_wait(&mut self, now_us: u64, report: SoundReport) {
        let (waited_us, is_full) = (report.waited_us, is_full(report));
        if waited_us > THIN_US || is_full {
            self.carried_ms = 0;
            self.thin = self.thin.saturating_add(1);
            if self.thin < THIN_REPORTS && !is_full {
                return;
            }
            self.is_new = false;
            if self.level + 1 >= CODINGS.len() {
                return;
            }
            self.thin = 0;
            let soon = |at_us: u64| now_us.saturating_sub(at_us) < u64::from(PROBE_MS) * 1_000;
            if self.raised_us.take().is_some_and(soon) {
                self.free_ms = (self.free_ms * 2).min(FREE_MS_MAX);
            }
            let least = waited_us > VERY_THIN_US || is_full;
            self.level = if least { CODINGS.len() - 1 } else { self.level + 1 };
            return;
        }
        self.thin = 0;
        if waited_us > FREE_US || self.level == 0 {
            self.carried_ms = 0;
            return;
        }
        let (_, packet_ms) = self.coding();
        self.carried_ms = self.carried_ms.saturating_add(report.received.saturating_mul(u32::from(packet_ms)));
        let is_measured = core::mem::replace(&mut self.is_measured[usize::from(report.up)], true);
        let is_proven = self.is_new && is_measured && report.received >= PROVING_PACKETS_MIN;
        if is_proven || self.carried_ms >= self.free_ms {
            self.level -= 1;
            self.raised_us = Some(now_us);
            self.carried_ms = 0;
            self.is_new &= self.level > 0;
        }
    }

    fn coding(&self) -> (u32, u16) {
        CODINGS.get(self.level).copied().unwrap_or(CODINGS[0])
    }

    fn note_loss(&mut self, report: SoundReport) {
        let packets = report.received.saturating_add(report.lost).min(limits::SOUND_REPORT_PACKETS_MAX);
        let Some(share) = (report.lost.min(packets) * 10_000).checked_div(packets) else { return };
        let lost = &mut self.lost[usize::from(report.up)];
        *lost = (*lost * LOSS_PACKETS + share * packets) / (LOSS_PACKETS + packets);
    }

    /// Expected loss of the worse direction, in steps, so that it does not change with every packet.
    fn loss_percent(&self) -> u8 {
        let worse = self.lost.iter().max().map_or(0, |lost| lost / 100);
        let told = u32::from(self.told.unwrap_or_default().loss_percent);
        let percent = worse.clamp(*LOSS_PERCENT.start(), *LOSS_PERCENT.end());
        let told = if percent.abs_diff(told) >= LOSS_STEP || percent == *LOSS_PERCENT.start() { percent } else { told };
        u8::try_from(told).unwrap_or(u8::MAX)
    }
}

/// Whether a queue on the way dropped packets: others waited in it.
fn is_full(report: SoundReport) -> bool {
    let packets = report.received.saturating_add(report.lost);
    let many = report.lost.saturating_mul(100) >= packets.saturating_mul(FULL_PERCENT);
    packets >= FULL_PACKETS_MIN && many && report.waited_us > FREE_US
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn report(lost: u32, waited_ms: u32) -> SoundReport {
        SoundReport { up: true, received: 20 - lost, lost, waited_us: waited_ms * 1_000 }
    }

    /// Bit rates after reports of these waiting times, one each 400 ms, as long as sound is sent.
    fn bitrates(quality: &mut Quality, from_s: u64, waited_ms: &[u32]) -> Vec<u32> {
        let each = waited_ms.iter().zip(0u64..);
        each.map(|(ms, n)| {
            let received = 400 / u32::from(quality.coding().1);
            quality.handle_report(from_s * 1_000_000 + n * 400_000, SoundReport { received, ..report(0, *ms) });
            quality.told.unwrap_or_default().bitrate
        })
        .collect()
    }

    /// A link that carried the first sound.
    fn begun() -> Quality {
        let mut quality = Quality::default();
        assert_eq!(bitrates(&mut quality, 0, &[0, 0, 0]), [12_000, 16_000, 24_000]);
        quality
    }

    #[test]
    fn a_session_begins_with_little_until_the_link_has_carried_that() {
        let mut quality = Quality::default();
        // Nothing is behind the first packet yet.
        assert_eq!(quality.handle_report(0, report(0, 0)), None);
        let few = SoundReport { received: 4, ..report(0, 0) };
        assert_eq!(quality.handle_report(0, few), None);
        assert_eq!(quality.handle_report(0, report(0, 0)).map(|coding| coding.bitrate), Some(16_000));
        assert_eq!(quality.handle_report(0, report(0, 0)).map(|coding| coding.bitrate), Some(24_000));
        assert_eq!(quality.handle_report(0, report(0, 0)), None);
    }

    #[test]
    fn a_link_that_is_thin_from_the_beginning_is_told_so() {
        let mut quality = Quality::default();
        assert_eq!(quality.handle_report(0, report(0, 0)), None);
        assert_eq!(quality.handle_report(0, report(0, 300)), None, "a hiccup");
        let thin = SoundCoding { bitrate: 12_000, packet_ms: 60, loss_percent: 10 };
        assert_eq!(quality.handle_report(0, report(0, 300)), Some(thin));
        assert_eq!(bitrates(&mut quality, 2, &[0; 22]), [12_000; 22], "8 s");
        assert_eq!(bitrates(&mut quality, 11, &[0]), [16_000]);
        // It carries some more than that.
        let mut quality = Quality::default();
        assert_eq!(bitrates(&mut quality, 0, &[0, 0, 300, 400]), [12_000, 16_000, 16_000, 12_000]);
        assert_eq!(bitrates(&mut quality, 2, &[0; 44]), [12_000; 44], "more was too much: 16 s");
        assert_eq!(bitrates(&mut quality, 20, &[0]), [16_000]);
    }

    #[test]
    fn a_queue_that_grows_makes_the_sound_smaller_and_jitter_does_not() {
        let mut quality = begun();
        assert_eq!(bitrates(&mut quality, 0, &[0, 60, 120, 250, 30, 190, 250]), [24_000; 7]);
        assert_eq!(bitrates(&mut quality, 3, &[300, 400, 450]), [16_000, 16_000, 12_000]);
        assert_eq!(bitrates(&mut quality, 5, &[900; 4]), [12_000; 4], "there is nothing less");
        let mut quality = begun();
        assert_eq!(bitrates(&mut quality, 0, &[500, 900]), [24_000, 12_000]);
    }

    #[test]
    fn a_link_that_stays_free_gets_more_and_later_each_time_that_this_was_too_much() {
        let mut quality = begun();
        bitrates(&mut quality, 20, &[900, 900]);
        let free = bitrates(&mut quality, 30, &[0; 45]);
        let rises: Vec<usize> = (1..45).filter(|n| free[*n] > free[*n - 1]).collect();
        assert_eq!(rises, [22, 42], "after 8 s of sound each");
        // Too much: the next try comes after 16 s of sound.
        assert_eq!(bitrates(&mut quality, 48, &[300, 300]), [24_000, 16_000]);
        let free = bitrates(&mut quality, 50, &[0; 45]);
        assert_eq!((1..45).find(|n| free[*n] > free[*n - 1]), Some(39));
    }

    #[test]
    fn silence_does_not_prove_that_a_link_carries_more() {
        let mut quality = begun();
        bitrates(&mut quality, 20, &[900, 900]);
        for n in 0..200 {
            // A packet of comfort noise each 400 ms.
            quality.handle_report(21_000_000 + n * 400_000, SoundReport { received: 1, ..report(0, 0) });
        }
        assert_eq!(quality.coding().0, 16_000, "12 s of sound within 80 s");
    }

    #[test]
    fn a_full_queue_is_noticed_at_once_and_loss_without_one_is_no_queue() {
        let mut quality = begun();
        assert_eq!(quality.handle_report(0, report(5, 30)).map(|coding| coding.bitrate), None, "radio");
        assert_eq!(quality.handle_report(0, report(1, 150)).map(|coding| coding.bitrate), None, "a hiccup");
        assert_eq!(quality.handle_report(0, report(2, 150)).map(|coding| coding.bitrate), Some(12_000));
    }

    #[test]
    fn loss_is_told_in_steps_and_of_the_worse_direction() {
        let mut quality = begun();
        for _ in 0..5 {
            assert_eq!(quality.handle_report(0, report(1, 0)), None, "5 % is less than what is always expected");
        }
        for _ in 0..20 {
            quality.handle_report(0, report(5, 0));
            quality.handle_report(0, SoundReport { up: false, ..report(0, 0) });
        }
        assert!((20..=25).contains(&quality.loss_percent()), "{quality:?}");
        for _ in 0..40 {
            quality.handle_report(0, report(20, 0));
        }
        assert_eq!(quality.told.map(|coding| coding.loss_percent), Some(30));
        for _ in 0..80 {
            quality.handle_report(0, report(0, 0));
        }
        assert_eq!(quality.told.map(|coding| coding.loss_percent), Some(10));
        assert_eq!(quality.handle_report(0, SoundReport { received: 0, ..report(0, 0) }), None, "nothing came");
    }
}
