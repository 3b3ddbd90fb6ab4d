//! The recognition jobs of one device, and the audio that is kept for a second pass.
//!
//! A final that the queue of all devices does not take waits here until it does, as long as the core waits for it: which of
//! many utterances at once are meant for the assistant is known only when they are decoded.

use std::{collections::VecDeque, sync::Arc};

use audio::{
    asr::{Busy, Error, Job, Options, Priority, Report, Scheduler, Spoken, Ticket},
    fair::Owner,
};
use gateway_core::vocab::{Meant, TranscriptKind};

use crate::mailbox::{DeviceMessage, Mailbox, Transcribed, Translated};

/// How long the audio of a closed utterance is kept: slightly longer than its text is waited for.
const KEPT_US: u64 = 12_000_000;
/// Finals of a device that wait here: more utterances than the core waits for.
const HELD_MAX: usize = 8;
/// Decodes in the queue that are remembered, to be cancelled or held again: more than the core waits for.
const SENT_MAX: usize = 32;
/// How often those that wait are tried: less than a decode takes.
const TRIED_EVERY_US: u64 = 100_000;

/// The decodes of one device.
pub(super) struct Decodes {
    scheduler: Arc<Scheduler>,
    owner: Owner,
    spoken: Spoken,
    wake_phrases: Arc<[String]>,
    mailbox: Mailbox,
    vocabulary: Arc<[String]>,
    sent: Vec<Sent>,
    /// Finals that wait, oldest first: until there is room in the queue of all, in which one addressed final of a device may
    /// wait.
    held: VecDeque<Asked>,
    /// When those are tried next.
    try_us: u64,
    kept: Option<Kept>,
}

/// A decode that is asked for.
#[derive(Clone)]
struct Asked {
    utterance: u32,
    revision: u16,
    kind: TranscriptKind,
    meant: Meant,
    pcm: Arc<[i16]>,
}

/// A decode that the queue has taken.
struct Sent {
    utterance: u32,
    revision: u16,
    ticket: Ticket,
    /// To be held again if it has to give way.
    again: Option<Asked>,
}

/// The audio of the last closed utterance: it may have to be decoded once more.
struct Kept {
    utterance: u32,
    pcm: Arc<[i16]>,
    until_us: u64,
}

impl Asked {
    /// A final that may be meant for the assistant is decoded later rather than not at all.
    fn may_wait(&self) -> bool {
        self.kind == TranscriptKind::Final && self.meant != Meant::Overheard
    }

    fn priority(&self) -> Priority {
        match (self.kind, self.meant) {
            (TranscriptKind::Partial, _) => Priority::Partial,
            (TranscriptKind::SecondPass | TranscriptKind::ThirdPass, _) => Priority::SecondPass,
            (TranscriptKind::Speculative | TranscriptKind::Final, Meant::Overheard) => Priority::Overheard,
            (TranscriptKind::Speculative | TranscriptKind::Final, Meant::Unsure) => Priority::Unsure,
            (TranscriptKind::Speculative, Meant::Addressed) => Priority::Speculative,
            (TranscriptKind::Final, Meant::Addressed) => Priority::Final,
        }
    }
}

impl Decodes {
    /// Texts are sent to `mailbox`.
    pub(super) fn new(
        scheduler: Arc<Scheduler>,
        (spoken, wake_phrases): (Spoken, Arc<[String]>),
        mailbox: Mailbox,
    ) -> Self {
        let vocabulary = Arc::new([]);
        let (owner, sent, held) = (Owner::unique(), Vec::new(), VecDeque::new());
        Self { scheduler, owner, spoken, wake_phrases, mailbox, vocabulary, sent, held, try_us: 0, kept: None }
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
        if self.try_us <= now_us && !self.held.is_empty() {
            self.try_us = now_us.saturating_add(TRIED_EVERY_US);
            self.submit_held();
        }
    }

    /// When `tick` is due.
    pub(super) fn next_wake_us(&self) -> Option<u64> {
        let try_us = (!self.held.is_empty()).then_some(self.try_us);
        self.kept.as_ref().map(|kept| kept.until_us).into_iter().chain(try_us).min()
    }

    /// Sends an utterance to recognition: the audio of the open one so far, or the kept audio of the last one; `false`:
    /// neither can be sent. The samples before `first` are left out.
    pub(super) fn ask(
        &mut self,
        (utterance, revision): (u32, u16),
        (kind, meant): (TranscriptKind, Meant),
        open: Option<&[i16]>,
        first: usize,
    ) -> bool {
        let kept = self.kept.as_ref().filter(|kept| kept.utterance == utterance);
        let pcm = match (open, kept) {
            (Some(pcm), _) => pcm.get(first..).map(Arc::from),
            (None, Some(kept)) if first == 0 => Some(kept.pcm.clone()),
            (None, Some(kept)) => kept.pcm.get(first..).map(Arc::from),
            (None, None) => None,
        };
        let Some(pcm) = pcm else {
            return false;
        };
        let asked = Asked { utterance, revision, kind, meant, pcm };
        let priority = asked.priority();
        let follows = self.held.iter().any(|held| held.priority() >= priority)
            || (priority == Priority::Final && self.scheduler.has_waiting_final(self.owner));
        if asked.may_wait() && follows {
            return self.hold(asked);
        }
        match self.submit(&asked) {
            Ok(()) => true,
            Err(Busy::QueueFull) if asked.may_wait() => self.hold(asked),
            Err(busy) => {
                tracing::debug!(utterance, %busy, "recognition did not take the job");
                false
            }
        }
    }

    /// Sends an utterance to translation into English: from whatever language, by the model that knows it. What does not
    /// find a place in the queue is not translated: `false`.
    pub(super) fn translate(&mut self, utterance: u32, open: Option<&[i16]>) -> bool {
        let kept = || self.kept.as_ref().filter(|kept| kept.utterance == utterance).map(|kept| kept.pcm.clone());
        let Some(pcm) = open.map(Arc::from).or_else(kept) else {
            return false;
        };
        let mailbox = self.mailbox.clone();
        let job = Job {
            pcm,
            options: Options { spoken: Some(Spoken::Detected), translate: true, ..Options::default() },
            priority: Priority::SecondPass,
            owner: self.owner,
            reply: Box::new(move |report| {
                if mailbox.try_send(DeviceMessage::Translated(Translated { utterance, report })).is_err() {
                    tracing::debug!(utterance, "nobody waits for this translation any more");
                }
            }),
        };
        let taken = self.scheduler.submit(job);
        if let Err(busy) = &taken {
            tracing::debug!(utterance, %busy, "an utterance is not translated");
        }
        taken.is_ok()
    }

    fn hold(&mut self, asked: Asked) -> bool {
        let has_room = self.held.len() < HELD_MAX;
        if has_room {
            self.held.push_back(asked);
        }
        has_room
    }

    fn submit(&mut self, asked: &Asked) -> Result<(), Busy> {
        let &Asked { utterance, revision, .. } = asked;
        let ticket = self.scheduler.submit(self.job(asked))?;
        let kept = self.kept.as_ref().map(|kept| kept.utterance);
        self.sent.retain(|it| it.utterance == utterance || Some(it.utterance) == kept || it.again.is_some());
        if self.sent.len() >= SENT_MAX {
            self.sent.remove(0);
        }
        self.sent.push(Sent { utterance, revision, ticket, again: asked.may_wait().then(|| asked.clone()) });
        Ok(())
    }

    fn job(&self, asked: &Asked) -> Job {
        let &Asked { utterance, revision, kind, .. } = asked;
        let mailbox = self.mailbox.clone();
        Job {
            pcm: asked.pcm.clone(),
            options: self.options(kind),
            priority: asked.priority(),
            owner: self.owner,
            reply: Box::new(move |report| {
                let transcribed = Transcribed { utterance, revision, kind, report };
                if mailbox.try_send(DeviceMessage::Transcribed(transcribed)).is_err() {
                    tracing::debug!(utterance, "nobody waits for this transcript any more");
                }
            }),
        }
    }

    /// A decode of this device has ended: the next one that is held may wait in the queue.
    pub(super) fn ended(&mut self, utterance: u32, revision: u16) {
        self.sent.retain(|sent| (sent.utterance, sent.revision) != (utterance, revision));
        self.submit_held();
    }

    /// A decode had to give way to another one. `true`: it is held, and will be decoded.
    pub(super) fn displaced(&mut self, utterance: u32, revision: u16) -> bool {
        let is_it = |sent: &Sent| (sent.utterance, sent.revision) == (utterance, revision);
        let sent = self.sent.iter().position(is_it).map(|index| self.sent.remove(index));
        sent.and_then(|sent| sent.again).is_some_and(|asked| self.hold(asked))
    }

    fn submit_held(&mut self) {
        let mut index = 0;
        while let Some(held) = self.held.get(index).cloned() {
            let priority = held.priority();
            let follows = priority == Priority::Final && self.scheduler.has_waiting_final(self.owner);
            if !follows && self.scheduler.has_room(priority) && self.submit(&held).is_ok() {
                self.held.remove(index);
            } else {
                index += 1;
            }
        }
    }

    fn options(&self, kind: TranscriptKind) -> Options {
        let mut options =
            Options { spoken: Some(self.spoken), wake_phrases: self.wake_phrases.clone(), ..Options::default() };
        match kind {
            TranscriptKind::SecondPass | TranscriptKind::ThirdPass => {
                options.on_box = true;
                options.vocabulary = self.vocabulary.clone();
                options.second_model = kind == TranscriptKind::SecondPass;
            }
            TranscriptKind::Partial => options.on_box = true,
            TranscriptKind::Speculative | TranscriptKind::Final => {}
        }
        options
    }

    /// Cancels decodes of the utterance older than `revision`.
    pub(super) fn cancel(&mut self, utterance: u32, revision: u16) {
        let scheduler = &self.scheduler;
        self.sent.retain(|sent| {
            let stale = sent.utterance == utterance && sent.revision < revision;
            if stale {
                scheduler.cancel(&sent.ticket);
            }
            !stale
        });
        let (stale, held): (VecDeque<_>, _) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.utterance == utterance && held.revision < revision);
        self.held = held;
        stale.iter().for_each(|held| self.cancelled(held));
    }

    /// Reports that one that is held is not decoded.
    fn cancelled(&self, held: &Asked) {
        (self.job(held).reply)(Report { result: Err(Error::Cancelled), queue_us: 0 });
    }
}

impl Drop for Decodes {
    fn drop(&mut self) {
        for sent in &self.sent {
            self.scheduler.cancel(&sent.ticket);
        }
        self.held.iter().for_each(|held| self.cancelled(held));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, atomic::Ordering::Relaxed, mpsc};

    use TranscriptKind::{Final, Partial, SecondPass, Speculative, ThirdPass};
    use audio::asr::{self, Context, Error, Heard, Language, SchedulerConfig, Transcribe, Transcription};
    use tokio::sync::mpsc as tokio_mpsc;

    use super::*;

    const ENGLISH: Spoken = Spoken::Is(Language::ENGLISH);

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
                language: None,
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
            let decodes = Decodes::new(Arc::new(scheduler), (ENGLISH, phrases), mailbox);
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
        assert!(!bench.decodes.ask((7, 1), (Final, Meant::Addressed), None, 0), "nothing was heard yet");
        assert_eq!(bench.decodes.next_wake_us(), None);
        bench.decodes.keep(7, SOUND, 5_000_000);
        assert_eq!(bench.decodes.next_wake_us(), Some(17_000_000));

        bench.decodes.tick(16_999_999);
        assert!(bench.decodes.ask((7, 2), (Final, Meant::Addressed), None, 0));
        assert_eq!(bench.begun().0, SOUND);
        bench.finish();
        let message = bench.message();
        assert_eq!((message.utterance, message.revision, message.kind), (7, 2, Final));
        assert_eq!(message.report.result.expect("a text").text, "3 samples");

        bench.decodes.tick(17_000_000);
        assert!(!bench.decodes.ask((7, 3), (Final, Meant::Addressed), None, 0));
        assert_eq!(bench.decodes.next_wake_us(), None);
    }

    #[test]
    fn only_the_last_utterance_is_kept_and_none_of_it_once_the_microphone_is_off() {
        let mut bench = Bench::new();
        bench.decodes.keep(7, SOUND, 0);
        bench.decodes.keep(8, &[4], 0);
        assert!(!bench.decodes.ask((7, 1), (Final, Meant::Addressed), None, 0));
        assert!(bench.decodes.ask((8, 1), (Final, Meant::Addressed), None, 0));
        assert_eq!(bench.begun().0, [4]);
        bench.decodes.forget();
        assert!(!bench.decodes.ask((8, 2), (Final, Meant::Addressed), None, 0));
    }

    #[test]
    fn what_is_open_goes_before_what_is_kept() {
        let mut bench = Bench::new();
        bench.decodes.keep(7, SOUND, 0);
        assert!(bench.decodes.ask((7, 1), (Speculative, Meant::Addressed), Some(&[5, 6]), 0));
        assert_eq!(bench.begun().0, [5, 6]);
    }

    #[test]
    fn each_kind_is_decoded_in_its_own_way() {
        let mut bench = Bench::new();
        bench.decodes.set_vocabulary(["read my notes".to_owned()].into());
        for (revision, kind) in [(1, Partial), (2, Speculative), (3, Final), (4, SecondPass), (5, ThirdPass)] {
            assert!(bench.decodes.ask((7, revision), (kind, Meant::Addressed), Some(SOUND), 0), "{kind:?}");
            let (_, options) = bench.begun();
            assert_eq!(options.context, Context::Tiered, "{kind:?}");
            assert_eq!(options.vocabulary.len(), usize::from(matches!(kind, SecondPass | ThirdPass)), "{kind:?}");
            assert_eq!(options.second_model, kind == SecondPass, "{kind:?}");
            assert_eq!(options.on_box, !matches!(kind, Speculative | Final), "{kind:?}");
            assert_eq!(*options.wake_phrases, ["hey mentra"], "{kind:?}");
            bench.finish();
            assert_eq!(bench.message().kind, kind);
        }
    }

    #[test]
    fn a_translation_is_decoded_once_more_from_any_language() {
        let mut bench = Bench::new();
        assert!(!bench.decodes.translate(7, None), "there is no sound of it");
        assert_eq!(bench.decodes.scheduler.load(), (0, 0));
        bench.decodes.keep(7, SOUND, 0);
        assert!(bench.decodes.translate(7, None));
        let (_, options) = bench.begun();
        assert!(options.translate && options.spoken == Some(Spoken::Detected) && options.wake_phrases.is_empty());
        bench.finish();
        let Some(DeviceMessage::Translated(translated)) = bench.messages.blocking_recv() else { panic!("a report") };
        assert!(translated.utterance == 7 && translated.report.result.is_ok());
    }

    #[test]
    fn a_final_goes_before_a_second_pass() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        bench.begun();
        assert!(bench.decodes.ask((7, 2), (SecondPass, Meant::Addressed), Some(SOUND), 0));
        assert!(bench.decodes.ask((7, 3), (Final, Meant::Addressed), Some(SOUND), 0));
        assert!(!bench.decodes.ask((7, 4), (ThirdPass, Meant::Addressed), Some(SOUND), 0), "too many wait");
        assert!(!bench.decodes.ask((7, 4), (Partial, Meant::Addressed), Some(SOUND), 0), "no thread is free");
        for expected in [Final, Final, SecondPass] {
            bench.finish();
            assert_eq!(bench.message().kind, expected);
        }
    }

    #[test]
    fn what_is_overheard_goes_before_what_is_addressed() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        bench.begun();
        let mut ask = |revision, meant| bench.decodes.ask((7, revision), (Final, meant), Some(SOUND), 0);
        assert!(ask(2, Meant::Overheard) && ask(3, Meant::Unsure));
        assert!(ask(4, Meant::Addressed));
        assert!(!ask(5, Meant::Overheard), "the queue is full");
        assert!(ask(6, Meant::Unsure), "it waits here");
        let message = bench.message();
        assert_eq!(message.revision, 2);
        assert!(matches!(message.report.result, Err(Error::Displaced)));
        assert!(!bench.decodes.displaced(7, 2), "nobody misses it");
        for expected in [1, 4, 3] {
            bench.finish();
            assert_eq!(bench.message().revision, expected);
            bench.decodes.ended(7, expected);
        }
        bench.finish();
        assert_eq!(bench.message().revision, 6, "there is room for it now");
    }

    #[test]
    fn one_final_of_a_device_waits_among_those_of_others() {
        let mut bench = Bench::new();
        let mut other =
            Decodes::new(bench.decodes.scheduler.clone(), (ENGLISH, [].into()), bench.decodes.mailbox.clone());
        assert!(bench.decodes.ask((1, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        bench.begun();
        for utterance in 2..=5 {
            assert!(bench.decodes.ask((utterance, 1), (Final, Meant::Addressed), Some(SOUND), 0), "{utterance}");
        }
        assert_eq!(bench.decodes.scheduler.load(), (1, 1));
        assert!(other.ask((9, 1), (Final, Meant::Addressed), Some(SOUND), 0), "it finds a place");
        // What was given up while it was held does not come back.
        bench.decodes.cancel(4, 2);
        let cancelled = bench.message();
        assert!(cancelled.utterance == 4 && matches!(cancelled.report.result, Err(Error::Cancelled)));
        for expected in [1, 2, 9, 3, 5] {
            bench.finish();
            let message = bench.message();
            assert_eq!((message.utterance, message.report.result.is_ok()), (expected, true));
            bench.decodes.ended(expected, 1);
            assert!(bench.decodes.scheduler.load().0 <= 2);
            if expected != 5 {
                bench.begun();
            }
        }
        for utterance in 10..=12 + HELD_MAX as u32 {
            let taken = bench.decodes.ask((utterance, 1), (Final, Meant::Addressed), Some(SOUND), 0);
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
    fn of_many_who_speak_at_once_each_is_decoded() {
        const DEVICES: u32 = 20;
        let (begun, begun_out) = mpsc::sync_channel(64);
        let (go_on, told) = mpsc::sync_channel(64);
        let told = Arc::new(Mutex::new(told));
        let make = move || Ok(Fake { begun: begun.clone(), go_on: told.clone() });
        let scheduler = Scheduler::start_with(SchedulerConfig { workers: 1, queue_max: 12 }, make).expect("a thread");
        let scheduler = Arc::new(scheduler);
        let (mailbox, mut messages) = tokio_mpsc::channel(256);
        let device = |_| Decodes::new(scheduler.clone(), (ENGLISH, [].into()), mailbox.clone());
        let mut devices: Vec<Decodes> = (0..DEVICES).map(device).collect();
        // One decode keeps the thread busy. At the first pause of a sentence that nobody knows to be addressed, a dozen find
        // a place; the others ask again at its end.
        assert!(devices[0].ask((100, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        begun_out.recv().expect("a decode begins");
        let mut waits = 0;
        for (number, device) in (0..).zip(&mut devices) {
            let taken = device.ask((number, 1), (Speculative, Meant::Unsure), Some(SOUND), 0);
            assert_eq!(taken, number < 12, "{number}");
            if !taken {
                assert!(device.ask((number, 2), (Final, Meant::Unsure), Some(SOUND), 0), "{number}");
                assert_eq!(device.next_wake_us(), Some(0));
                waits += 1;
            }
        }
        assert_eq!((waits, scheduler.load()), (8, (12, 1)));
        let mut now_us = 0;
        let mut decoded = Vec::new();
        while decoded.len() < DEVICES as usize + 1 {
            go_on.send(()).expect("a decode waits");
            let Some(DeviceMessage::Transcribed(message)) = messages.blocking_recv() else { panic!("a report") };
            assert!(message.report.result.is_ok(), "{}", message.utterance);
            decoded.push(message.utterance);
            now_us += TRIED_EVERY_US;
            devices.iter_mut().for_each(|device| device.tick(now_us));
            assert!(scheduler.load().0 <= 12);
        }
        decoded.sort_unstable();
        assert_eq!(decoded, (0..DEVICES).chain([100]).collect::<Vec<_>>());
        assert!(devices.iter().all(|device| device.next_wake_us().is_none()));
    }

    #[test]
    fn a_final_that_gives_way_to_another_one_is_decoded_later() {
        let mut bench = Bench::new();
        let mut other =
            Decodes::new(bench.decodes.scheduler.clone(), (ENGLISH, [].into()), bench.decodes.mailbox.clone());
        assert!(bench.decodes.ask((1, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        bench.begun();
        assert!(bench.decodes.ask((2, 1), (Final, Meant::Unsure), Some(SOUND), 0));
        assert!(bench.decodes.ask((3, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        assert!(other.ask((9, 1), (Final, Meant::Addressed), Some(SOUND), 0));
        let message = bench.message();
        assert!(message.utterance == 2 && matches!(message.report.result, Err(Error::Displaced)));
        assert!(bench.decodes.displaced(2, 1));
        assert!(!bench.decodes.displaced(2, 1), "once");
        for expected in [1, 3, 9, 2] {
            bench.finish();
            let message = bench.message();
            assert_eq!((message.utterance, message.report.result.is_ok()), (expected, true));
            bench.decodes.ended(expected, 1);
        }
    }

    #[test]
    fn who_goes_away_waits_for_nothing() {
        let mut bench = Bench::new();
        assert!(bench.decodes.ask((7, 1), (Speculative, Meant::Addressed), Some(SOUND), 0));
        let abort = bench.begun().1.abort.expect("a decode can be stopped");
        assert!(bench.decodes.ask((7, 2), (Final, Meant::Addressed), Some(SOUND), 0));
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
        assert!(bench.decodes.ask((7, 1), (Speculative, Meant::Addressed), Some(SOUND), 0));
        let abort = bench.begun().1.abort.expect("a decode can be stopped");
        assert!(bench.decodes.ask((7, 2), (Speculative, Meant::Addressed), Some(SOUND), 0));
        assert!(bench.decodes.ask((7, 3), (Final, Meant::Addressed), Some(SOUND), 0));
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
