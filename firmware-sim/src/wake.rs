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
    /// Samples that the detector has got.
    listened: u64,
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
            listened: 0,
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
        let phrase = self.listen(pcm, at_us + packet.duration_us)?;
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

    /// The microphone is muted: what was said before is over, and not sent any more.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
        self.resampler.reset();
        self.detector.reset();
        self.listened = 0;
    }

    /// Listens to a packet that ends at this capture time. Between packets there may be a pause that is not sent, so that times
    /// are counted back from its end.
    fn listen(&mut self, pcm: &[i16], end_us: u64) -> Result<Option<Phrase>, String> {
        let mut sound = Vec::new();
        self.resampler.push(pcm, &mut sound);
        self.listened += sound.len() as u64;
        let mut found = Vec::new();
        self.detector.push(&sound, &mut found).map_err(|error| error.to_string())?;
        Ok(found.pop().map(|heard| Phrase {
            words: self.words.clone(),
            at_us: end_us.saturating_sub(samples_to_us(self.listened.saturating_sub(heard.end), RATE_HZ)),
            score_permille: (heard.score * 1_000.0).clamp(1.0, 1_000.0) as u16,
        }))
    }
}

#[cfg(test)]
mod tests {
    use audio::wake::onnx::Graph;
    use audio::wake::{EMBEDDING, EMBEDDINGS, WINDOW};

    use super::*;

    /// A chip that hears its phrase in each sound, as often as it may.
    fn always() -> Wake {
        let graph = Graph::new()
            .tensor("weights", &[WINDOW, 1], &[0.0; WINDOW])
            .tensor("bias", &[1], &[5.0])
            .node("Flatten", &["window"], "flat", &[("axis", 1)])
            .node("Gemm", &["flat", "weights", "bias"], "logit", &[])
            .node("Sigmoid", &["logit"], "score", &[]);
        let bytes = graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("score", &[1, 1]), &[]);
        let models = Models::load(&audio::models::default_dir()).unwrap();
        Wake::new(&Chip { models, head: Head::of(&bytes, "always").unwrap(), sleeps: false }, RATE_HZ).unwrap()
    }

    /// The first phrase that is heard in packets from then on: the capture times of its end and of the packet's.
    fn next_phrase(wake: &mut Wake, from_us: u64) -> (u64, u64) {
        let mut starts = (from_us..from_us + 3_000_000).step_by(20_000);
        let phrase = starts.find_map(|at_us| {
            let verdict = wake.take(&[0; 320], packet(at_us), false).unwrap();
            verdict.phrase.map(|phrase| (phrase.at_us, at_us + 20_000))
        });
        phrase.unwrap()
    }

    #[test]
    fn the_time_of_a_phrase_counts_pauses_in_which_nothing_is_captured() {
        let mut wake = always();
        let (at_us, now_us) = next_phrase(&mut wake, 1_000_000);
        assert_eq!(at_us, now_us);
        // Whether the microphone sends nothing for ten seconds or is muted.
        let (at_us, now_us) = next_phrase(&mut wake, now_us + 10_000_000);
        assert_eq!(at_us, now_us);
        wake.forget();
        let from_us = now_us + 10_000_000;
        let (at_us, now_us) = next_phrase(&mut wake, from_us);
        assert_eq!(at_us, now_us);
        assert!(now_us < from_us + 500_000, "what was heard before is forgotten: {} us", now_us - from_us);
    }

    #[test]
    fn what_was_said_before_the_microphone_was_muted_is_not_sent_after_it() {
        let mut wake = wake(true);
        assert_eq!(run(&mut wake, 0, 2_000_000, false), (Vec::new(), false));
        wake.forget();
        wake.wake(3_000_000);
        let (sent, _) = run(&mut wake, 3_000_000, 3_100_000, false);
        assert_eq!(sent, [3_000_000, 3_020_000, 3_040_000, 3_060_000, 3_080_000]);
    }

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
