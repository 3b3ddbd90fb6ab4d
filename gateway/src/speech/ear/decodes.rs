//! The recognition jobs of one device, and the audio that is kept for a second pass.

use std::{collections::VecDeque, sync::Arc};

use audio::{
    asr::{Error, Job, Options, Priority, Report, Scheduler, Ticket},
    fair::Owner,
};
use gateway_core::vocab::{Meant, TranscriptKind};

use crate::mailbox::{DeviceMessage, Mailbox, Transcribed};

/// How long the audio of a closed utterance is kept: slightly longer than its text is waited for.
const KEPT_US: u64 = 12_000_000;
/// Finals of a device that wait here until its one in the queue has begun: more utterances than the core waits for.
const HELD_MAX: usize = 8;

/// The decodes of one device.
pub(super) struct Decodes {
    scheduler: Arc<Scheduler>,
    owner: Owner,
    wake_phrases: Arc<[String]>,
    mailbox: Mailbox,
    vocabulary: Arc<[String]>,
    tickets: Vec<(u32, u16, Ticket)>,
    /// One final of a device waits in the queue of all; the next ones wait here, oldest first.
    held: VecDeque<Held>,
    kept: Option<Kept>,
}

/// A final that waits.
struct Held {
    utterance: u32,
    revision: u16,
    job: Job,
}

impl Held {
    fn cancel(self) {
        (self.job.reply)(Report { result: Err(Error::Cancelled), queue_us: 0 });
    }
}

/// The audio of the last closed utterance: it may have to be decoded once more.
struct Kept {
    utterance: u32,
    pcm: Arc<[i16]>,
    until_us: u64,
}

impl Decodes {
    /// Texts are sent to `mailbox`.
    pub(super) fn new(scheduler: Arc<Scheduler>, wake_phrases: Arc<[String]>, mailbox: Mailbox) -> Self {
        let vocabulary = Arc::new([]);
        let (owner, tickets, held) = (Owner::unique(), Vec::new(), VecDeque::new());
        Self { scheduler, owner, wake_phrases, mailbox, vocabulary, tickets, held, kept: None }
    }

    /// Whose jobs these are.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    /// Sets the vocabulary towards which a second pass is biased.
    pub(super) fn set_vocabulary(&mut self, vocabulary: Arc<[String]>) {
        self.vocabulary = vocabulary;
    }

    /// Keeps the audio of an utterance that is being closed.
    pub(super) fn keep(&mut self, utterance: u32, pcm: &[i16], now_us: u64) {
        self.kept = Some(Kept { utterance, pcm: Arc::from(pcm), until_us: now_us.saturating_add(KEPT_US) });
    }

    /// Drops the kept audio: it is not decoded again.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }

    /// Advances the time.
    pub(super) fn tick(&mut self, now_us: u64) {
        self.kept.take_if(|kept| kept.until_us <= now_us);
    }

    /// When `tick` is due.
    pub(super) fn next_wake_us(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.until_us)
    }

    /// Sends an utterance to recognition: the audio of the open one so far, or the kept audio of the last one; `false`:
    /// neither can be sent.
    pub(super) fn ask(
        &mut self,
        (utterance, revision): (u32, u16),
        kind: TranscriptKind,
        meant: Meant,
        open: Option<&[i16]>,
    ) -> bool {
        let kept = || self.kept.as_ref().filter(|kept| kept.utterance == utterance).map(|kept| kept.pcm.clone());
        let Some(pcm) = open.map(Arc::from).or_else(kept) else {
            return false;
        };
        let mailbox = self.mailbox.clone();
        let job = Job {
            pcm,
            options: self.options(kind),
            priority: priority(kind, meant),
            owner: self.owner,
            reply: Box::new(move |report| {
                let transcribed = Transcribed { utterance, revision, kind, report };
                if mailbox.try_send(DeviceMessage::Transcribed(transcribed)).is_err() {
                    tracing::debug!(utterance, "nobody waits for this transcript any more");
                }
            }),
        };
        if job.priority == Priority::Final && (!self.held.is_empty() || self.scheduler.has_waiting_final(self.owner)) {
            let has_room = self.held.len() < HELD_MAX;
            if has_room {
                self.held.push_back(Held { utterance, revision, job });
            }
            return has_room;
        }
        self.submit(utterance, revision, job)
    }

    fn submit(&mut self, utterance: u32, revision: u16, job: Job) -> bool {
        match self.scheduler.submit(job) {
            Ok(ticket) => {
                let kept = self.kept.as_ref().map(|kept| kept.utterance);
                self.tickets.retain(|(known, _, _)| *known == utterance || Some(*known) == kept);
                self.tickets.push((utterance, revision, ticket));
                true
            }
            Err(busy) => {
                tracing::debug!(utterance, %busy, "recognition did not take the job");
                false
            }
        }
    }

    /// A decode of this device has ended: the next one that is held may wait in the queue. Returns those for which there
    /// was no room: utterance and revision.
    pub(super) fn ended(&mut self) -> Vec<(u32, u16)> {
        let mut refused = Vec::new();
        while !self.scheduler.has_waiting_final(self.owner)
            && let Some(Held { utterance, revision, job }) = self.held.pop_front()
        {
            if !self.submit(utterance, revision, job) {
                refused.push((utterance, revision));
            }
        }
        refused
    }

    fn options(&self, kind: TranscriptKind) -> Options {
        let mut options = Options { wake_phrases: self.wake_phrases.clone(), ..Options::default() };
        match kind {
            TranscriptKind::SecondPass | TranscriptKind::ThirdPass => {
                options.vocabulary = self.vocabulary.clone();
                options.second_model = kind == TranscriptKind::SecondPass;
            }
            TranscriptKind::Partial | TranscriptKind::Speculative | TranscriptKind::Final => {}
        }
        options
    }

    /// Cancels decodes of the utterance older than `revision`.
    pub(super) fn cancel(&mut self, utterance: u32, revision: u16) {
        let scheduler = &self.scheduler;
        self.tickets.retain(|(of, number, ticket)| {
            let stale = *of == utterance && *number < revision;
            if stale {
                scheduler.cancel(ticket);
            }
            !stale
        });
        let (stale, held) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.utterance == utterance && held.revision < revision);
        self.held = held;
        let stale: VecDeque<Held> = stale;
        stale.into_iter().for_each(Held::cancel);
    }
}

fn priority(kind: TranscriptKind, meant: Meant) -> Priority {
    match (kind, meant) {
        (TranscriptKind::Partial, _) => Priority::Partial,
        (TranscriptKind::SecondPass | TranscriptKind::ThirdPass, _) => Priority::SecondPass,
        (TranscriptKind::Speculative | TranscriptKind::Final, Meant::Overheard) => Priority::Overheard,
        (TranscriptKind::Speculative | TranscriptKind::Final, Meant::Unsure) => Priority::Unsure,
        (TranscriptKind::Speculative, Meant::Addressed) => Priority::Speculative,
        (TranscriptKind::Final, Meant::Addressed) => Priority::Final,
    }
}

impl Drop for Decodes {
    fn drop(&mut self) {
        for (_, _, ticket) in &self.tickets {
            self.scheduler.cancel(ticket);
        }
        self.held.drain(..).for_each(Held::cancel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, atomic::Ordering::Relaxed, mpsc};

    use TranscriptKind::{Final, Partial, SecondPass, Speculative, ThirdPass};
    use audio::asr::{self, Context, Error, Heard, SchedulerConfig, Transcribe, Transcription};
    use tokio::sync::mpsc as tokio_mpsc;

    use super::*;

    const SOUND: &[i16] = &[1, 2, 3];

    /// Reports its input, and finishes when told to.
    struct Fake {
        begun: mpsc::SyncSender<(Vec<i16>, Options)>,
        go_on: Arc<Mutex<mpsc::Receiver<()>>>,
    }

    impl Transcribe for Fake {
        fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, asr::Error> {
            self.begun.send((pcm.to_vec(), options.clone())).expect("the test listens");
            // The sender is gone if the test has ended.
            let _ = self.go_on.lock().expect("one thread").recv();
            Ok(Transcription {
                text: format!("{} samples", pcm.len()),
                heard: Heard::Speech,
                no_speech_probability: 0.0,
                mean_log_probability: 0.0,
                audio_us: 0,
                decode_us: 0,
                context: 0,
                retried: false,
            })
        }
    }

    /// One device with one recognition thread and room for two jobs.
    struct Bench {
        go_on: mpsc::SyncSender<()>,
        decodes: Decodes,
        begun: mpsc::Receiver<(Vec<i16>, Options)>,
        messages: tokio_mpsc::Receiver<DeviceMessage>,
    }

    impl Bench {
        fn new() -> Self {
            let (begun, begun_out) = mpsc::sync_channel(8);
            let (go_on_in, go_on) = mpsc::sync_channel(8);
            let go_on = Arc::new(Mutex::new(go_on));
            let make = move || Ok(Fake { begun: begun.clone(), go_on: go_on.clone() });
            let config = SchedulerConfig { workers: 1, queue_max: 2 };
            let scheduler = Scheduler::start_with(config, make).expect("a thread");
            let (mailbox, messages) = tokio_mpsc::channel(16);
            let phrases = ["hey mentra".to_owned()].into();
            let decodes = Decodes::new(Arc::new(scheduler), phrases, mailbox);
            Self { go_on: go_on_in, decodes, begun: begun_out, messages }
        }

        /// Waits until a decode begins.
        fn begun(&self) -> (Vec<i16>, Options) {
            self.begun.recv().expect("a decode begins")
        }

        fn finish(&self) {
            self.go_on.send(()).expect("a decode waits");
        }

        fn message(&mut self) -> Transcribed {
            match self.messages.blocking_recv() {
                Some(DeviceMessage::Transcribed(transcribed)) => transcribed,
                _ => panic!("a transcript comes"),
            }
        }
    }

    #[test]
    fn the_sound_of_a_closed_utterance_is_decoded_until_its_time_is_over() {
        let mut bench = Bench::new();
        assert!(!bench.decodes.ask((7, 1), Final, Meant::Addressed, None), "nothing was heard yet");
        assert_eq!(bench.decodes.next_wake_us(), None);
        bench.decodes.keep(7, SOUND, 5_000_000);
        assert_eq!(bench.decodes.next_wake_us(), Some(17_000_000));

        bench.decodes.tick(16_999_999);
        assert!(bench.decodes.ask((7, 2), Final, Meant::Addressed, None));
        assert_eq!(bench.begun().0, SOUND);
        bench.finish();
        let message = bench.message();
        assert_eq!((message.utterance, message.revision, message.kind), (7, 2, Final));
        assert_eq!(message.report.result.expect("a text").text, "3 samples");

        bench.decodes.tick(17_000_000);
        assert!(!bench.decodes.ask((7, 3), Final, Meant::Addressed, None));
        assert_eq!(bench.decodes.next_wake_us(), None);
    }

    #[test]
    fn only_the_last_utterance_is_kept_and_none_of_it_once_the_microphone_is_off() {
        let mut bench = Bench::new();
        bench.decodes.keep(7, SOUND, 0);
        bench.decodes.keep(8, &[4], 0);
        assert!(!bench.decodes.ask((7, 1), Final, Meant::Addressed, None));
        assert!(bench.decodes.ask((8, 1), Final, Meant::Addressed, None));
        assert_eq!(bench.begun().0, [4]);
        bench.decodes.forget();
        assert!(!bench.decodes.ask((8, 2), Final, Meant::Addressed, None));
    }

    #[test]
    fn what_is_open_goes_before_what_is_kept() {
        let mut bench = Bench::new();
        bench.decodes.keep(7, SOUND, 0);
        assert!(bench.decodes.ask((7, 1), Speculative, Meant::Addressed, Some(&[5, 6])));
        assert_eq!(bench.begun().0, [5, 6]);
    }

    #[test]
    fn each_kind_is_decoded_in_its_own_way() {
        let mut bench = Bench::new();
        bench.decodes.set_vocabulary(["read my notes".to_owned()].into());
        for (revision, kind) in [(1, Partial), (2, Speculative), (3, Final), (4, SecondPass), (5, ThirdPass)] {
            assert!(bench.decodes.ask((7, revision), kind, Meant::Addressed, Some(SOUND)), "{kind:?}");
            let (_, options) = bench.begun();
            assert_eq!(options.context, Context::Tiered, "{kind:?}");
            assert_eq!(options.vocabulary.len(), usize::from(matches!(kind, SecondPass | ThirdPass)), "{kind:?}");
            assert_eq!(options.second_model, kind == SecondPass, "{kind:?}");
            assert_eq!(*options.wake_phrases, ["hey mentra"], "{kind:?}");
            bench.finish();
            assert_eq!(bench.message().kind, kind);
        }
    }

    #[test]
    fn a_final_goes_before_a_second_pass() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), Final, Meant::Addressed, Some(SOUND)));
        bench.begun();
        assert!(bench.decodes.ask((7, 2), SecondPass, Meant::Addressed, Some(SOUND)));
        assert!(bench.decodes.ask((7, 3), Final, Meant::Addressed, Some(SOUND)));
        assert!(!bench.decodes.ask((7, 4), ThirdPass, Meant::Addressed, Some(SOUND)), "too many wait");
        assert!(!bench.decodes.ask((7, 4), Partial, Meant::Addressed, Some(SOUND)), "no thread is free");
        for expected in [Final, Final, SecondPass] {
            bench.finish();
            assert_eq!(bench.message().kind, expected);
        }
    }

    #[test]
    fn what_is_overheard_goes_before_what_is_addressed() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), Final, Meant::Addressed, Some(SOUND)));
        bench.begun();
        let mut ask = |revision, meant| bench.decodes.ask((7, revision), Final, meant, Some(SOUND));
        assert!(ask(2, Meant::Overheard) && ask(3, Meant::Unsure));
        assert!(ask(4, Meant::Addressed));
        assert!(!ask(6, Meant::Unsure), "the queue is full");
        let message = bench.message();
        assert_eq!(message.revision, 2);
        assert!(matches!(message.report.result, Err(Error::Cancelled)));
        for expected in [1, 4, 3] {
            bench.finish();
            assert_eq!(bench.message().revision, expected);
        }
    }

    #[test]
    fn one_final_of_a_device_waits_among_those_of_others() {
        let mut bench = Bench::new();
        let mut other = Decodes::new(bench.decodes.scheduler.clone(), [].into(), bench.decodes.mailbox.clone());
        assert!(bench.decodes.ask((1, 1), Final, Meant::Addressed, Some(SOUND)));
        bench.begun();
        for utterance in 2..=5 {
            assert!(bench.decodes.ask((utterance, 1), Final, Meant::Addressed, Some(SOUND)), "{utterance}");
        }
        assert_eq!(bench.decodes.scheduler.load(), (1, 1));
        assert!(other.ask((9, 1), Final, Meant::Addressed, Some(SOUND)), "it finds a place");
        // What was given up while it was held does not come back.
        bench.decodes.cancel(4, 2);
        let cancelled = bench.message();
        assert!(cancelled.utterance == 4 && matches!(cancelled.report.result, Err(Error::Cancelled)));
        for expected in [1, 2, 9, 3, 5] {
            bench.finish();
            let message = bench.message();
            assert_eq!((message.utterance, message.report.result.is_ok()), (expected, true));
            assert_eq!(bench.decodes.ended(), []);
            assert!(bench.decodes.scheduler.load().0 <= 2);
            if expected != 5 {
                bench.begun();
            }
        }
        for utterance in 10..=12 + HELD_MAX as u32 {
            let taken = bench.decodes.ask((utterance, 1), Final, Meant::Addressed, Some(SOUND));
            if utterance == 10 {
                bench.begun();
            }
            assert_eq!(taken, utterance < 12 + HELD_MAX as u32, "{utterance}");
        }
        drop(bench.decodes);
        for _ in 0..=HELD_MAX {
            let Some(DeviceMessage::Transcribed(message)) = bench.messages.blocking_recv() else { panic!("a report") };
            assert!(matches!(message.report.result, Err(Error::Cancelled)));
        }
        bench.go_on.send(()).expect("a decode waits");
        drop(other);
    }

    #[test]
    fn who_goes_away_waits_for_nothing() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), Speculative, Meant::Addressed, Some(SOUND)));
        let abort = bench.begun().1.abort.expect("a decode can be stopped");
        assert!(bench.decodes.ask((7, 2), Final, Meant::Addressed, Some(SOUND)));
        let Bench { go_on, decodes, begun, mut messages } = bench;
        // The scheduler is shared by all devices and remains.
        let scheduler = decodes.scheduler.clone();
        drop(decodes);
        assert!(abort.load(Relaxed));
        assert!(matches!(messages.blocking_recv(), Some(DeviceMessage::Transcribed(Transcribed { revision: 2, .. }))));
        drop((go_on, begun, scheduler));
    }

    #[test]
    fn older_decodes_of_the_same_utterance_are_cancelled() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), Speculative, Meant::Addressed, Some(SOUND)));
        let abort = bench.begun().1.abort.expect("a decode can be stopped");
        assert!(bench.decodes.ask((7, 2), Speculative, Meant::Addressed, Some(SOUND)));
        assert!(bench.decodes.ask((7, 3), Final, Meant::Addressed, Some(SOUND)));
        bench.decodes.cancel(6, 9);
        assert!(!abort.load(Relaxed));
        bench.decodes.cancel(7, 3);
        assert!(abort.load(Relaxed), "the running one is told to stop");
        let cancelled = bench.message();
        assert_eq!(cancelled.revision, 2, "the waiting one ends at once");
        assert!(matches!(cancelled.report.result, Err(Error::Cancelled)));
        bench.finish();
        assert_eq!(bench.message().revision, 1);
        bench.finish();
        let third = bench.message();
        assert_eq!(third.revision, 3);
        assert!(third.report.result.is_ok());
    }
}
