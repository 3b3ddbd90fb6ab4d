//! Glasses that hear their wake phrase by themselves: a detector on the microphone, and sound that is sent only once it is
//! needed (PROTOCOL.md, section 11).

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use audio::frame::{RATE_HZ, samples_to_us};
use audio::resample::Resampler;
use audio::wake::{Detector, Head, Models};
use bytes::Bytes;

/// Sound that sleeping glasses keep, in microseconds: the phrase, and what is before it.
const KEPT_US: u64 = 2_000_000;
/// How long glasses stay awake after a phrase or a press, whatever the gateway says, in microseconds.
const AWAKE_US: u64 = 3_000_000;
/// How long they stay awake when the gateway needs them no more, in microseconds.
const LINGER_US: u64 = 1_000_000;

/// The detector of one phrase, shared by all glasses that have it.
#[derive(Clone)]
pub struct Chip {
    models: Arc<Models>,
    head: Arc<Head>,
    sleeps: bool,
}

impl fmt::Debug for Chip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phrase = &self.head.settings().phrase;
        formatter.debug_struct("Chip").field("phrase", phrase).field("sleeps", &self.sleeps).finish_non_exhaustive()
    }
}

impl Chip {
    /// A chip with the head of this file; the shared models are in `models_dir`. `sleeps`: no sound is sent before the
    /// phrase was heard.
    ///
    /// # Errors
    /// In words: a model that is missing or damaged.
    pub fn load(head: &Path, models_dir: &Path, sleeps: bool) -> Result<Self, String> {
        let models = Models::load(models_dir).map_err(|error| error.to_string())?;
        let head = Head::load(head).map_err(|error| error.to_string())?;
        Ok(Self { models, head, sleeps })
    }
}

/// A phrase that was heard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phrase {
    pub(crate) words: String,
    /// Capture time of its end.
    pub(crate) at_us: u64,
    pub(crate) score_permille: u16,
}

/// A packet of sound that would be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Captured {
    pub(crate) payload: Bytes,
    pub(crate) duration_us: u64,
    /// Capture time of its first sample.
    pub(crate) at_us: u64,
}

/// What follows from a packet.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    /// A phrase was heard in it.
    pub(crate) phrase: Option<Phrase>,
    /// What is sent now, the oldest first.
    pub(crate) sent: Vec<Captured>,
    /// The glasses fall asleep behind it.
    pub(crate) asleep: bool,
}

/// The chip at the microphone of one session.
pub(crate) struct Wake {
    detector: Detector,
    words: String,
    resampler: Resampler,
    /// Capture time of the first sample.
    began_us: Option<u64>,
    sleeps: bool,
    awake_until_us: Option<u64>,
    kept: VecDeque<Captured>,
}

impl Wake {
    /// For a microphone of this rate.
    ///
    /// # Errors
    /// The rate is not supported.
    pub(crate) fn new(chip: &Chip, rate_hz: u32) -> Result<Self, String> {
        let detector = Detector::new(chip.models.clone(), [chip.head.clone()].into());
        Ok(Self {
            detector,
            words: chip.head.settings().phrase.clone(),
            resampler: Resampler::new(rate_hz, RATE_HZ).map_err(|error| error.to_string())?,
            began_us: None,
            sleeps: chip.sleeps,
            awake_until_us: None,
            kept: VecDeque::new(),
        })
    }

    /// Takes the next packet with its samples. `needed`: the gateway takes what is said for meant for it, or is at work.
    ///
    /// # Errors
    /// The model failed.
    pub(crate) fn take(&mut self, pcm: &[i16], packet: Captured, needed: bool) -> Result<Verdict, String> {
        let at_us = packet.at_us;
        let phrase = self.listen(pcm, at_us)?;
        if !self.sleeps {
            return Ok(Verdict { phrase, sent: vec![packet], asleep: false });
        }
        if phrase.is_some() {
            self.awake_until_us = Some(at_us + AWAKE_US);
        } else if needed {
            self.awake_until_us = self.awake_until_us.max(Some(at_us + LINGER_US));
        }
        self.kept.push_back(packet);
        let asleep = self.awake_until_us.take_if(|until_us| *until_us < at_us).is_some();
        if self.awake_until_us.is_some() {
            return Ok(Verdict { phrase, sent: self.kept.drain(..).collect(), asleep });
        }
        while self.kept.front().is_some_and(|oldest| oldest.at_us + KEPT_US < at_us) {
            self.kept.pop_front();
        }
        Ok(Verdict { phrase, sent: Vec::new(), asleep })
    }

    /// Wakes by another way: a button was pressed.
    pub(crate) fn wake(&mut self, now_us: u64) {
        self.awake_until_us = self.awake_until_us.max(Some(now_us + AWAKE_US));
    }

    fn listen(&mut self, pcm: &[i16], at_us: u64) -> Result<Option<Phrase>, String> {
        let began_us = *self.began_us.get_or_insert(at_us);
        let mut sound = Vec::new();
        self.resampler.push(pcm, &mut sound);
        let mut found = Vec::new();
        self.detector.push(&sound, &mut found).map_err(|error| error.to_string())?;
        Ok(found.pop().map(|heard| Phrase {
            words: self.words.clone(),
            at_us: began_us + samples_to_us(heard.end, RATE_HZ),
            score_permille: (heard.score * 1_000.0).clamp(1.0, 1_000.0) as u16,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head that never hears anything would do; the tests of the sound are in tests/it/speech/wake.rs.
    fn wake(sleeps: bool) -> Wake {
        let head = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/wake/hey_mentra.onnx");
        let chip = Chip::load(&head, &audio::models::default_dir(), sleeps).unwrap();
        Wake::new(&chip, RATE_HZ).unwrap()
    }

    fn packet(at_us: u64) -> Captured {
        Captured { payload: Bytes::from_static(b"x"), duration_us: 20_000, at_us }
    }

    /// Packets until then: when sent ones were captured, and whether the glasses fell asleep.
    fn run(wake: &mut Wake, from_us: u64, until_us: u64, needed: bool) -> (Vec<u64>, bool) {
        let (mut sent, mut asleep) = (Vec::new(), false);
        for at_us in (from_us..until_us).step_by(20_000) {
            let verdict = wake.take(&[0; 320], packet(at_us), needed).unwrap();
            assert_eq!(verdict.phrase, None);
            sent.extend(verdict.sent.iter().map(|packet| packet.at_us));
            asleep |= verdict.asleep;
        }
        (sent, asleep)
    }

    #[test]
    fn glasses_that_sleep_send_what_they_have_kept_once_they_are_needed() {
        let mut wake = wake(true);
        assert_eq!(run(&mut wake, 0, 5_000_000, false), (Vec::new(), false));
        let (sent, asleep) = run(&mut wake, 5_000_000, 6_000_000, true);
        assert_eq!(
            (sent.len(), sent[0], asleep),
            (151, 2_980_000, false),
            "two seconds, and the one in which they are"
        );
        let (sent, asleep) = run(&mut wake, 6_000_000, 9_000_000, false);
        assert_eq!((sent.len(), asleep), (50, true), "they linger for a second");
        wake.wake(9_000_000);
        let (sent, asleep) = run(&mut wake, 9_000_000, 14_000_000, false);
        assert_eq!((sent.len(), sent[0], asleep), (251, 7_000_000, true), "from two seconds before the press on");
    }

    #[test]
    fn other_glasses_send_all() {
        let mut wake = wake(false);
        assert_eq!(run(&mut wake, 0, 1_000_000, false).0.len(), 50);
    }
}
