//! Wake phrases that the device hears by itself: to which utterance they belong.
//!
//! What the device says of a phrase and the sound of the phrase come by different ways: either may be first. A phrase
//! that was told waits for its sound, and the utterance that closed last is still known.

use std::sync::Arc;

use audio::frame::{RATE_HZ, samples_to_us, us_to_samples};

use crate::{mailbox::WakeHeard, speech::wake::is_same};

/// How far the end of a phrase may lie before the beginning of its utterance, or behind its end, in microseconds: a
/// detector names it to some steps, and may say so after the utterance.
const BESIDE_US: u64 = 2_000_000;
/// Sound behind a phrase after which its utterance is not waited for any more, in microseconds.
const WAIT_US: u64 = 4_000_000;

/// The wake phrases of a device that hears them.
pub(super) struct DeviceWake {
    /// Those of the gateway: only they can be verified.
    phrases: Arc<[String]>,
    /// The device was told of another one.
    warned: bool,
    /// The last one whose utterance is not known yet.
    waiting: Option<Phrase>,
    /// The utterance that closed last.
    closed: Option<Span>,
}

#[derive(Clone, Copy)]
struct Phrase {
    at_us: u64,
    score: f32,
}

/// An utterance: its samples, and the capture time of their end.
#[derive(Clone, Copy)]
struct Span {
    utterance: u32,
    samples: usize,
    end_us: u64,
}

impl Span {
    fn begin_us(self) -> u64 {
        self.end_us.saturating_sub(samples_to_us(self.samples as u64, RATE_HZ))
    }

    fn has(self, phrase: Phrase) -> bool {
        let may_be = self.begin_us().saturating_sub(BESIDE_US)..=self.end_us.saturating_add(BESIDE_US);
        may_be.contains(&phrase.at_us)
    }

    fn heard(self, Phrase { at_us, score }: Phrase) -> WakeHeard {
        let at_us = at_us.clamp(self.begin_us(), self.end_us);
        let behind = usize::try_from(us_to_samples(self.end_us - at_us, RATE_HZ)).unwrap_or(usize::MAX);
        WakeHeard { utterance: self.utterance, at_us, score, end: self.samples.saturating_sub(behind) }
    }
}

impl DeviceWake {
    pub(super) fn new(phrases: Arc<[String]>) -> Self {
        Self { phrases, warned: false, waiting: None, closed: None }
    }

    /// The device has heard a phrase that ended at this capture time. What comes of it is told by
    /// [`found`](Self::found). Returns what the device should be told, once, of a phrase that is none of the gateway's.
    pub(super) fn note(&mut self, phrase: &str, at_us: u64, score: f32) -> Option<String> {
        if self.phrases.iter().any(|known| is_same(known, phrase)) {
            self.waiting = Some(Phrase { at_us, score });
            return None;
        }
        let known = self.phrases.join("\", \"");
        let is_first = !std::mem::replace(&mut self.warned, true);
        is_first
            .then(|| format!("the gateway knows \"{known}\"; change the device's phrase, or `hearing.wake_phrases`"))
    }

    /// The utterance of the phrase that waits, now that there is sound up to `until_us`: `open` is the open one with its
    /// sound and the capture time of its end.
    pub(super) fn found(&mut self, open: Option<(u32, &[i16], u64)>, until_us: Option<u64>) -> Option<WakeHeard> {
        let phrase = self.waiting?;
        let open = open.map(|(utterance, sound, end_us)| Span { utterance, samples: sound.len(), end_us });
        // An utterance that may grow is taken once it has the phrase's end.
        let whole = open.filter(|open| open.has(phrase) && open.end_us >= phrase.at_us);
        let found =
            whole.or(self.closed.filter(|closed| closed.has(phrase) && open.is_none_or(|open| !open.has(phrase))));
        if let Some(span) = found {
            self.waiting = None;
            return Some(span.heard(phrase));
        }
        self.waiting.take_if(|phrase| until_us.is_some_and(|until_us| until_us > phrase.at_us.saturating_add(WAIT_US)));
        None
    }

    /// The open utterance is about to be closed: a phrase that waits for it is in it.
    pub(super) fn closing(&mut self, (utterance, sound, end_us): (u32, &[i16], u64)) -> Option<WakeHeard> {
        let span = Span { utterance, samples: sound.len(), end_us };
        self.closed = Some(span);
        self.waiting.take_if(|phrase| span.has(*phrase)).map(|phrase| span.heard(phrase))
    }

    /// Forgets all: the microphone is switched off.
    pub(super) fn forget(&mut self) {
        (self.waiting, self.closed) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An utterance of a second that ends then.
    fn open(utterance: u32, sound: &[i16], end_us: u64) -> Option<(u32, &[i16], u64)> {
        Some((utterance, sound, end_us))
    }

    fn place(heard: Option<WakeHeard>) -> Option<(u32, u64, usize)> {
        heard.map(|heard| (heard.utterance, heard.at_us, heard.end))
    }

    fn device_wake() -> DeviceWake {
        DeviceWake::new(["hey mentra".to_owned(), "mentra".to_owned()].into())
    }

    static SECOND: [i16; RATE_HZ as usize] = [0; RATE_HZ as usize];

    #[test]
    fn a_phrase_is_found_in_the_sound_that_has_its_end() {
        let mut wake = device_wake();
        assert_eq!(place(wake.found(open(3, &SECOND, 5_000_000), Some(5_000_000))), None, "nothing was told");
        wake.note("Hey, Mentra", 4_750_000, 0.9);
        assert_eq!(place(wake.found(open(3, &SECOND, 5_000_000), Some(5_000_000))), Some((3, 4_750_000, 12_000)));
        assert_eq!(place(wake.found(open(3, &SECOND, 5_000_000), Some(5_000_000))), None, "it is told once");
    }

    #[test]
    fn a_phrase_before_its_sound_waits_for_it() {
        let mut wake = device_wake();
        wake.note("Hey, Mentra", 5_200_000, 0.9);
        assert_eq!(place(wake.found(None, Some(3_900_000))), None, "no utterance yet");
        assert_eq!(place(wake.found(open(3, &SECOND, 5_000_000), Some(5_000_000))), None, "200 ms are missing");
        let more = [0; 20_000];
        assert_eq!(place(wake.found(open(3, &more, 5_250_000), Some(5_250_000))), Some((3, 5_200_000, 19_200)));
        wake.note("Hey, Mentra", 9_000_000, 0.9);
        assert_eq!(place(wake.found(None, Some(13_000_001))), None);
        assert_eq!(place(wake.found(open(4, &SECOND, 9_500_000), Some(13_000_001))), None, "it was given up");
    }

    #[test]
    fn a_phrase_behind_the_end_of_its_utterance_counts_for_it() {
        let mut wake = device_wake();
        assert_eq!(place(wake.closing((3, &SECOND, 5_000_000))), None);
        wake.note("Hey, Mentra", 5_100_000, 0.9);
        assert_eq!(place(wake.found(None, Some(5_400_000))), Some((3, 5_000_000, 16_000)));
        wake.note("Hey, Mentra", 7_900_000, 0.9);
        assert_eq!(place(wake.found(None, Some(7_900_000))), None, "too far behind it");
        wake.forget();
        wake.note("Hey, Mentra", 6_000_000, 0.9);
        assert_eq!(place(wake.closing((4, &SECOND, 5_900_000))), Some((4, 5_900_000, 16_000)), "told before the end");
    }

    #[test]
    fn the_open_utterance_comes_before_the_closed_one() {
        let mut wake = device_wake();
        assert_eq!(place(wake.closing((3, &SECOND, 5_000_000))), None);
        wake.note("Hey, Mentra", 6_500_000, 0.9);
        assert_eq!(place(wake.found(open(4, &SECOND, 6_400_000), Some(6_400_000))), None, "its sound is still to come");
        assert_eq!(place(wake.found(open(4, &SECOND, 6_600_000), Some(6_600_000))), Some((4, 6_500_000, 14_400)));
    }

    #[test]
    fn a_phrase_that_the_gateway_does_not_know_is_told_once() {
        let mut wake = device_wake();
        let problem = wake.note("hi glasses", 4_500_000, 0.9).unwrap();
        assert!(problem.contains("\"hey mentra\", \"mentra\""), "{problem}");
        assert_eq!(wake.note("hi glasses", 4_600_000, 0.9), None);
        assert_eq!(place(wake.found(open(3, &SECOND, 5_000_000), Some(5_000_000))), None, "it would never be verified");
        assert_eq!(wake.note("MENTRA", 4_500_000, 0.9), None);
        assert_eq!(place(wake.found(open(3, &SECOND, 5_000_000), Some(5_000_000))), Some((3, 4_500_000, 8_000)));
    }

    #[test]
    fn hostile_times_do_no_harm() {
        for at_us in [0, 1, u64::MAX - 1, u64::MAX] {
            for end_us in [0, 1_000_000, u64::MAX] {
                let mut wake = device_wake();
                wake.note("Hey, Mentra", at_us, f32::NAN);
                wake.found(open(1, &SECOND, end_us), Some(end_us));
                wake.note("Hey, Mentra", at_us, f32::INFINITY);
                wake.closing((2, &[], end_us));
                wake.found(None, Some(end_us));
            }
        }
    }
}
