//! Wake phrases in the sound of one device: steps of 80 ms on a compute thread, while an utterance is open.
//!
//! The sound goes there in pieces of whole steps. One job of a device runs at a time, so that its pieces stay in order; it
//! takes what waits and comes again for more, behind the jobs of others.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use audio::{
    fair::Owner,
    frame::{RATE_HZ, samples_to_us},
    samples::Samples,
    wake::{Detector, Head, STEP_SAMPLES},
};

use crate::{
    mailbox::{DeviceMessage, Mailbox, WakeHeard},
    runtime::compute::{Compute, Urgency},
    speech::wake::{WakeCounts, WakeWords},
};

/// Samples of a device that may wait: five seconds, since more comes late by more than anybody waits for an answer, and the twelve
/// that a gap may hold up, which come at once.
const WAITING_MAX: usize = (5 + 12) * RATE_HZ as usize;
/// Pieces that a job takes before it lets others run.
const PIECES_AT_ONCE: usize = 4;
/// Silence behind an utterance: a phrase at its very end is heard some steps later.
const SILENCE_SAMPLES: usize = 4 * STEP_SAMPLES;

/// The wake words of one device.
pub(super) struct Steps {
    shared: Arc<Shared>,
    /// The utterance whose sound is passed on, and how many samples of it were.
    utterance: Option<u32>,
    passed: usize,
    /// Whether some of its sound was left out.
    skipped: bool,
}

struct Shared {
    compute: Compute,
    counts: Arc<WakeCounts>,
    owner: Owner,
    mailbox: Mailbox,
    /// Used by one job at a time.
    detector: Mutex<Detector>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<SoundChunk>,
    /// Whether a job is queued or runs.
    working: bool,
}

/// Sound of an utterance: whole steps, but for its last piece.
struct SoundChunk {
    utterance: u32,
    /// Whether it begins the utterance, so that everything before it is forgotten.
    first: bool,
    pcm: Samples,
    /// Samples of the utterance up to its end, and the capture time of that.
    end: usize,
    end_us: u64,
}

impl Steps {
    /// For a device whose jobs have this owner. Phrases that are heard are reported to `mailbox`.
    pub(super) fn new(
        (words, heads, counts): (WakeWords, Arc<[Arc<Head>]>, Arc<WakeCounts>),
        owner: Owner,
        mailbox: Mailbox,
    ) -> Self {
        let detector = Mutex::new(Detector::new(words.models.clone(), heads));
        let shared = Shared { compute: words.compute, counts, owner, mailbox, detector, state: Mutex::default() };
        Self { shared: Arc::new(shared), utterance: None, passed: 0, skipped: false }
    }

    /// Passes on what is new of an utterance: its sound so far, and the capture time of its end. `last`: it is over.
    pub(super) fn listen(&mut self, (utterance, sound, end_us): (u32, &[i16], u64), last: bool) {
        let first = self.utterance != Some(utterance);
        if first {
            (self.utterance, self.passed, self.skipped) = (Some(utterance), 0, false);
        }
        let new = sound.get(self.passed..).unwrap_or_default();
        let steps = new.len() - new.len() % STEP_SAMPLES;
        let now = if last { new } else { &new[..steps] };
        if self.skipped || (now.is_empty() && !last) {
            return;
        }
        let mut state = self.shared.state();
        let waiting: usize = state.waiting.iter().map(|chunk| chunk.pcm.len()).sum();
        if waiting + now.len() > WAITING_MAX {
            // The steps that follow would mean something else.
            self.skipped = true;
            return self.shared.counts.skipped();
        }
        let mut pcm = Samples::from(now);
        if last {
            pcm.append(&[0; SILENCE_SAMPLES]);
        }
        let left_us = samples_to_us((new.len() - now.len()) as u64, RATE_HZ);
        self.passed += now.len();
        let (end, end_us) = (self.passed, end_us.saturating_sub(left_us));
        state.waiting.push_back(SoundChunk { utterance, first, pcm, end, end_us });
        drop(state);
        self.shared.clone().work();
    }

    /// Forgets all sound: the microphone is switched off, or the device is gone.
    pub(super) fn forget(&mut self) {
        self.utterance = None;
        let mut state = self.shared.state();
        state.waiting.clear();
        // Its job wipes what the detector holds.
        state.waiting.push_back(SoundChunk { utterance: 0, first: true, pcm: Samples::default(), end: 0, end_us: 0 });
        drop(state);
        self.shared.clone().work();
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.forget();
    }
}

impl Shared {
    /// No code that can panic runs under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job for what waits, unless there is one.
    fn work(self: Arc<Self>) {
        let mut state = self.state();
        if state.working || state.waiting.is_empty() {
            return;
        }
        state.working = true;
        drop(state);
        let (compute, shared) = (self.compute.clone(), self.clone());
        let job = move || {
            shared.take_chunks();
            shared.work();
        };
        if compute.submit_for(self.owner, Urgency::Now, job).is_err() {
            // Tried again with the next sound.
            self.state().working = false;
        }
    }

    fn take_chunks(&self) {
        let _working = Working(self);
        let mut detector = self.detector.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..PIECES_AT_ONCE {
            let Some(chunk) = self.state().waiting.pop_front() else { return };
            self.hear(&mut detector, &chunk);
        }
    }

    fn hear(&self, detector: &mut Detector, chunk: &SoundChunk) {
        if chunk.first {
            detector.reset();
        }
        let mut found = Vec::new();
        if let Err(error) = detector.push(&chunk.pcm, &mut found) {
            tracing::warn!(%error, "wake phrases were not listened for");
            self.counts.skipped();
        }
        for detection in found {
            // In the silence behind the end, if there was none of it.
            let end = usize::try_from(detection.end).unwrap_or(usize::MAX).min(chunk.end);
            let back_us = samples_to_us((chunk.end - end) as u64, RATE_HZ);
            let (utterance, at_us) = (chunk.utterance, chunk.end_us.saturating_sub(back_us));
            self.counts.heard();
            let heard = WakeHeard { utterance, at_us, score: detection.score, end };
            if self.mailbox.try_send(DeviceMessage::WakeHeard(heard)).is_err() {
                tracing::debug!(utterance, "nobody waits for this wake phrase any more");
            }
        }
    }
}

/// A job that runs, until it ends, also by a panic that its thread catches.
struct Working<'a>(&'a Shared);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.state().working = false;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use audio::models;
    use tokio::sync::mpsc as tokio_mpsc;

    use super::*;
    use crate::speech::wake::{WakeHeads, tests::always};

    /// A device with one thread, and a head that hears its phrase always: in the second step, and again after its rest.
    struct Bench {
        steps: Steps,
        words: WakeWords,
        counts: Arc<WakeCounts>,
        messages: tokio_mpsc::Receiver<DeviceMessage>,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("head.onnx");
            std::fs::write(&file, always("mentra")).unwrap();
            let phrases = ["mentra".to_owned()];
            let heads = WakeHeads::Files(vec![file]);
            let words = WakeWords::load(&heads, &models::default_dir(), &phrases, (1, 4)).unwrap();
            let (mailbox, messages) = tokio_mpsc::channel(16);
            let heads = words.heads_of(&phrases).unwrap();
            let counts = Arc::<WakeCounts>::default();
            let steps = Steps::new((words.clone(), heads, counts.clone()), Owner::unique(), mailbox);
            Self { steps, words, counts, messages }
        }

        /// The next phrase that is heard: its utterance, capture time and samples.
        fn heard(&mut self) -> (u32, u64, usize) {
            match self.messages.blocking_recv() {
                Some(DeviceMessage::WakeHeard(heard)) => (heard.utterance, heard.at_us, heard.end),
                _ => panic!("a phrase is heard"),
            }
        }

        /// Keeps the thread busy until the sender is dropped.
        fn occupy(&self) -> mpsc::SyncSender<()> {
            let (release, released) = mpsc::sync_channel::<()>(1);
            let (started, has_started) = mpsc::sync_channel(1);
            let job = move || {
                started.send(()).unwrap();
                released.recv().ok();
            };
            self.words.compute.submit(Urgency::Now, job).unwrap();
            has_started.recv().unwrap();
            release
        }
    }

    #[test]
    fn a_phrase_is_heard_at_its_place_whatever_the_packets() {
        for packet in [320, 700, STEP_SAMPLES * 2] {
            let mut bench = Bench::new();
            let sound: Vec<i16> = (0..STEP_SAMPLES * 3).map(|n| (n % 100) as i16).collect();
            let mut until = packet;
            while until <= sound.len() {
                let end_us = 1_000_000 + samples_to_us(until as u64, RATE_HZ);
                bench.steps.listen((7, &sound[..until], end_us), false);
                until += packet;
            }
            assert_eq!(bench.heard(), (7, 1_160_000, STEP_SAMPLES * 2), "packets of {packet} samples");
        }
    }

    #[test]
    fn a_phrase_at_the_very_end_is_heard_in_the_silence_behind_it() {
        let mut bench = Bench::new();
        let sound = vec![1; STEP_SAMPLES + 100];
        bench.steps.listen((1, &sound, 500_000), false);
        bench.steps.listen((1, &sound, 500_000), true);
        assert_eq!(bench.heard(), (1, 500_000, sound.len()));
        // The next utterance begins anew.
        bench.steps.listen((2, &sound[..STEP_SAMPLES], 900_000), false);
        bench.steps.listen((2, &sound[..STEP_SAMPLES], 900_000), true);
        assert_eq!(bench.heard(), (2, 900_000, STEP_SAMPLES));
        assert_eq!(bench.counts.get().heard, 2);
    }

    #[test]
    fn where_time_is_short_an_utterance_is_left_out_and_counted() {
        let mut bench = Bench::new();
        let busy = bench.occupy();
        let sound = vec![1; WAITING_MAX + STEP_SAMPLES];
        bench.steps.listen((1, &sound[..WAITING_MAX], 5_000_000), false);
        for _ in 0..2 {
            bench.steps.listen((1, &sound, 5_080_000), false);
        }
        assert_eq!(bench.counts.get().skipped, 1);
        assert_eq!(bench.steps.shared.state().waiting.len(), 1);
        drop(busy);
        assert_eq!(bench.heard().0, 1);
    }

    #[test]
    fn what_a_gap_has_held_up_is_listened_to_though_it_comes_at_once() {
        let mut bench = Bench::new();
        // Packets of 60 ms.
        let sound = vec![1; audio::jitter::HELD_MAX * 960];
        bench.steps.listen((1, &sound, 12_000_000), true);
        assert_eq!(bench.counts.get().skipped, 0);
        assert_eq!(bench.heard().0, 1);
    }

    #[test]
    fn what_is_forgotten_is_heard_no_more() {
        let mut bench = Bench::new();
        let busy = bench.occupy();
        let sound = vec![1; STEP_SAMPLES * 2];
        bench.steps.listen((1, &sound, 160_000), false);
        bench.steps.forget();
        bench.steps.listen((2, &sound, 320_000), false);
        drop(busy);
        assert_eq!(bench.heard().0, 2);
        assert_eq!(bench.counts.get().heard, 1);
    }
}
