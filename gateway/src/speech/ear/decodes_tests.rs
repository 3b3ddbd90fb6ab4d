//! The order of decodes, which give way, and what is lost of them.

use std::sync::{Mutex, atomic::Ordering::Relaxed, mpsc};

use TranscriptKind::{Final, Partial, SecondPass, Speculative, ThirdPass};
use audio::asr::{self, Context, Error, Heard, SchedulerConfig, Transcribe, Transcription};
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
            last_word_log_probability: 0.0,
            breaks_off: 0.0,
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
        next_end(&mut self.messages)
    }
}

/// The next end of a decode; that one begins is passed over.
fn next_end(messages: &mut tokio_mpsc::Receiver<DeviceMessage>) -> Transcribed {
    loop {
        match messages.blocking_recv() {
            Some(DeviceMessage::Transcribed(transcribed)) => return *transcribed,
            Some(DeviceMessage::Input(input)) if matches!(*input, Input::TranscriptBegun { .. }) => {}
            _ => panic!("a transcript comes"),
        }
    }
}

#[test]
fn it_is_told_when_the_decode_of_an_end_begins_and_not_while_it_waits() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((7, 1), (Partial, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    assert!(bench.decodes.ask((7, 2), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    assert!(bench.decodes.ask((8, 1), (Final, Addressing::Unsure), Some(SOUND), 0));
    bench.finish();
    let is_begun = |message: Option<DeviceMessage>, (utterance, revision)| {
        let message = message.and_then(DeviceMessage::input);
        let Some(Input::TranscriptBegun { utterance: of, revision: number }) = message else {
            return false;
        };
        (of, number) == (utterance, revision)
    };
    assert_eq!(bench.message().kind, Partial, "nothing is told of it");
    for told in [(7, 2), (8, 1)] {
        assert!(is_begun(bench.messages.blocking_recv(), told), "{told:?}");
        bench.begun();
        assert!(bench.messages.try_recv().is_err(), "nothing is told of what waits");
        bench.finish();
        assert_eq!(bench.message().utterance, told.0);
    }
}

#[test]
fn one_of_the_older_decodes_may_be_kept() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((7, 1), (Partial, Addressing::Addressed), Some(SOUND), 0));
    let abort = bench.begun().1.abort.expect("a decode can be stopped");
    assert!(bench.decodes.ask((8, 2), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    assert!(bench.decodes.ask((8, 3), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    assert!(abort.load(Relaxed), "it gave way to the others");
    bench.decodes.cancel(8, 4, &[3]);
    let cancelled = bench.message();
    assert_eq!((cancelled.revision, cancelled.report.result.is_err()), (2, true));
    for (utterance, revision) in [(7, 1), (8, 3)] {
        bench.finish();
        let ended = bench.message();
        assert_eq!((ended.utterance, ended.revision, ended.report.result.is_ok()), (utterance, revision, true));
    }
}

#[test]
fn the_sound_of_a_closed_utterance_is_decoded_until_its_time_is_over() {
    let mut bench = Bench::new();
    assert!(!bench.decodes.ask((7, 1), (Final, Addressing::Addressed), None, 0), "nothing was heard yet");
    assert_eq!(bench.decodes.next_wake_us(), None);
    bench.decodes.keep(7, SOUND, 5_000_000);
    assert_eq!(bench.decodes.next_wake_us(), Some(37_000_000));

    bench.decodes.tick(36_999_999);
    assert!(bench.decodes.ask((7, 2), (Final, Addressing::Addressed), None, 0));
    assert_eq!(bench.begun().0, SOUND);
    bench.finish();
    let message = bench.message();
    assert_eq!((message.utterance, message.revision, message.kind), (7, 2, Final));
    assert_eq!(message.report.result.expect("a text").text, "3 samples");

    bench.decodes.tick(37_000_000);
    assert!(!bench.decodes.ask((7, 3), (Final, Addressing::Addressed), None, 0));
    assert_eq!(bench.decodes.next_wake_us(), None);
}

#[test]
fn an_earlier_utterance_is_decoded_once_more_too_and_none_once_the_microphone_is_off() {
    let mut bench = Bench::new();
    for utterance in 3..=7 {
        bench.decodes.keep(utterance, SOUND, 0);
    }
    bench.decodes.keep(8, &[4], 1);
    let ask = bench.decodes.ask((3, 1), (Final, Addressing::Addressed), None, 0);
    assert!(!ask, "the core waits for no more than four, and gives one up behind the next");
    for (utterance, sound) in [(5, SOUND), (8, &[4][..])] {
        assert!(bench.decodes.ask((utterance, 1), (Final, Addressing::Addressed), None, 0), "{utterance}");
        assert_eq!(bench.begun().0, sound);
        bench.finish();
        assert_eq!(bench.message().utterance, utterance);
    }
    assert_eq!(bench.decodes.next_wake_us(), Some(32_000_000));
    bench.decodes.tick(32_000_000);
    assert!(!bench.decodes.ask((7, 1), (Final, Addressing::Addressed), None, 0), "its time is over");
    assert_eq!(bench.decodes.next_wake_us(), Some(32_000_001));
    bench.decodes.forget();
    assert!(!bench.decodes.ask((8, 2), (Final, Addressing::Addressed), None, 0));
    assert_eq!(bench.decodes.next_wake_us(), None);
}

#[test]
fn the_sound_of_what_is_being_decoded_is_kept() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((3, 1), (Speculative, Addressing::Unsure), Some(SOUND), 0));
    bench.begun();
    (3..=8).for_each(|utterance| bench.decodes.keep(utterance, SOUND, 0));
    bench.finish();
    assert_eq!(bench.message().utterance, 3);
    // Its decode may have failed.
    let mut asks = |utterance| bench.decodes.ask((utterance, 2), (Final, Addressing::Unsure), None, 0);
    assert!(asks(3) && !asks(4));
}

#[test]
fn the_end_of_an_utterance_is_a_second_at_least() {
    assert_eq!(before_end(80_000, 2_500_000), 40_000);
    assert_eq!(before_end(80_000, 0), 64_000, "the core's time may be ahead of the sound");
    assert_eq!(before_end(80_000, 9_000_000), 0);
    assert_eq!(before_end(8_000, 0), 0);
    assert_eq!(before_end(8_000, u64::MAX), 0);
}

#[test]
fn what_is_open_goes_before_what_is_kept() {
    let mut bench = Bench::new();
    bench.decodes.keep(7, SOUND, 0);
    assert!(bench.decodes.ask((7, 1), (Speculative, Addressing::Addressed), Some(&[5, 6]), 0));
    assert_eq!(bench.begun().0, [5, 6]);
}

#[test]
fn each_kind_is_decoded_in_its_own_way() {
    let mut bench = Bench::new();
    bench.decodes.set_vocabulary(["read my notes".to_owned()].into());
    for (revision, kind) in [(1, Partial), (2, Speculative), (3, Final), (4, SecondPass), (5, ThirdPass)] {
        assert!(bench.decodes.ask((7, revision), (kind, Addressing::Addressed), Some(SOUND), 0), "{kind:?}");
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
    assert!(!bench.decodes.translate(7, None, &[]), "there is no sound of it");
    assert_eq!(bench.decodes.scheduler.load(), (0, 0));
    bench.decodes.keep(7, SOUND, 0);
    assert!(bench.decodes.translate(7, None, &[]));
    let (_, options) = bench.begun();
    assert!(options.translate && options.spoken == Some(Spoken::Detected) && options.wake_phrases.is_empty());
    bench.finish();
    let Some(DeviceMessage::Translated(translated)) = bench.messages.blocking_recv() else { panic!("a report") };
    assert!(translated.utterance == 7 && translated.report.result.is_ok());
}

#[test]
fn a_translation_is_from_one_of_the_languages_that_it_may_be_from() {
    let [spanish, french] = ["es", "fr"].map(|tag| Language::of(tag).expect("a language"));
    let mut bench = Bench::new();
    bench.decodes.keep(7, SOUND, 0);
    for (from, expected) in [
        (&[] as &[Language], Spoken::Detected),
        (&[spanish][..], Spoken::Is(spanish)),
        (&[Language::ENGLISH, spanish, french][..], Spoken::Detected),
    ] {
        assert!(bench.decodes.translate(7, None, from));
        let (_, options) = bench.begun();
        assert!(options.translate && options.spoken == Some(expected), "{from:?}");
        assert_eq!(*options.among, *from);
        bench.finish();
        assert!(matches!(bench.messages.blocking_recv(), Some(DeviceMessage::Translated(_))));
    }
}

#[test]
fn a_final_goes_before_a_second_pass() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((7, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    assert!(bench.decodes.ask((7, 2), (SecondPass, Addressing::Addressed), Some(SOUND), 0));
    assert!(bench.decodes.ask((7, 3), (Final, Addressing::Addressed), Some(SOUND), 0));
    assert!(!bench.decodes.ask((7, 4), (ThirdPass, Addressing::Addressed), Some(SOUND), 0), "too many wait");
    assert!(!bench.decodes.ask((7, 4), (Partial, Addressing::Addressed), Some(SOUND), 0), "no thread is free");
    for expected in [Final, Final, SecondPass] {
        bench.finish();
        assert_eq!(bench.message().kind, expected);
    }
}

#[test]
fn what_is_overheard_goes_before_what_is_addressed() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((7, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    let mut ask = |revision, meant| bench.decodes.ask((7, revision), (Final, meant), Some(SOUND), 0);
    assert!(ask(2, Addressing::Overheard) && ask(3, Addressing::Unsure) && ask(4, Addressing::Addressed));
    assert!(ask(5, Addressing::Overheard), "those that wait anyway take no place");
    assert!(!ask(6, Addressing::Overheard), "the queue is full");
    assert!(ask(7, Addressing::Unsure), "it waits all the same");
    assert!(bench.decodes.ask((7, 8), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    let message = bench.message();
    assert_eq!(message.revision, 5);
    assert!(matches!(message.report.result, Err(Error::Displaced)));
    for expected in [1, 4, 8, 3, 7, 2] {
        bench.finish();
        assert_eq!(bench.message().revision, expected);
    }
}

#[test]
fn the_finals_of_a_device_wait_among_those_of_others() {
    const FINALS: u32 = 8;
    let mut bench = Bench::new();
    let mut other = Decodes::new(bench.decodes.scheduler.clone(), (ENGLISH, [].into()), bench.decodes.mailbox.clone());
    assert!(bench.decodes.ask((1, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    for utterance in 2..=5 {
        assert!(bench.decodes.ask((utterance, 1), (Final, Addressing::Addressed), Some(SOUND), 0), "{utterance}");
    }
    assert!(other.ask((9, 1), (Final, Addressing::Addressed), Some(SOUND), 0), "it finds a place");
    // What is given up while it waits is not decoded.
    bench.decodes.cancel(4, 2, &[]);
    let cancelled = bench.message();
    assert!(cancelled.utterance == 4 && matches!(cancelled.report.result, Err(Error::Cancelled)));
    for expected in [1, 2, 9, 3, 5] {
        bench.finish();
        let message = bench.message();
        assert_eq!((message.utterance, message.report.result.is_ok()), (expected, true));
        bench.decodes.ended(expected, 1);
        if expected != 5 {
            bench.begun();
        }
    }
    for utterance in 10..=11 + FINALS {
        let taken = bench.decodes.ask((utterance, 1), (Final, Addressing::Addressed), Some(SOUND), 0);
        if utterance == 10 {
            bench.begun();
        }
        assert_eq!(taken, utterance <= 10 + FINALS, "{utterance}");
    }
    drop(bench.decodes);
    for _ in 0..FINALS {
        let message = next_end(&mut bench.messages);
        assert!(matches!(message.report.result, Err(Error::Cancelled)));
    }
    bench.go_on.send(()).expect("a decode waits");
    drop(other);
}

#[test]
fn of_many_who_speak_at_once_each_is_decoded_whoever_comes_later() {
    const DEVICES: u32 = 20;
    const NEWCOMERS: u32 = 30;
    let (begun, begun_out) = mpsc::sync_channel(64);
    let (go_on, told) = mpsc::sync_channel(64);
    let told = Arc::new(Mutex::new(told));
    let make = move || Ok(Fake { begun: begun.clone(), go_on: told.clone() });
    let scheduler = Scheduler::start_with(SchedulerConfig { workers: 1, queue_max: 12 }, make).expect("a thread");
    let scheduler = Arc::new(scheduler);
    let (mailbox, mut messages) = tokio_mpsc::channel(256);
    let device = |_| Decodes::new(scheduler.clone(), (ENGLISH, [].into()), mailbox.clone());
    let mut devices: Vec<Decodes> = (0..DEVICES + NEWCOMERS).map(device).collect();
    // One decode keeps the thread busy. At the first pause of a sentence that nobody knows to be addressed, a dozen find
    // a place; the others ask again at its end.
    assert!(devices[0].ask((100, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    begun_out.recv().expect("a decode begins");
    let mut speak = |number: u32| {
        let device = &mut devices[number as usize];
        let at_once = device.ask((number, 1), (Speculative, Addressing::Unsure), Some(SOUND), 0);
        assert!(at_once || device.ask((number, 2), (Final, Addressing::Unsure), Some(SOUND), 0), "{number}");
        at_once
    };
    let at_once = (0..DEVICES).filter(|number| speak(*number)).count();
    assert_eq!((at_once, scheduler.load()), (12, (20, 1)));
    // With each decode that ends another device begins to speak: none is passed.
    let mut decoded = Vec::new();
    for number in DEVICES..2 * DEVICES + NEWCOMERS + 1 {
        go_on.send(()).expect("a decode waits");
        let message = next_end(&mut messages);
        assert!(message.report.result.is_ok(), "{}", message.utterance);
        decoded.push(message.utterance);
        if number < DEVICES + NEWCOMERS {
            speak(number);
        }
        assert!(scheduler.load().0 <= DEVICES as usize + 1);
    }
    assert_eq!(decoded, [100].into_iter().chain(0..DEVICES + NEWCOMERS).collect::<Vec<_>>());
}

#[test]
fn a_final_gives_way_to_a_more_important_one_and_is_decoded_later() {
    let mut bench = Bench::new();
    let mut other = Decodes::new(bench.decodes.scheduler.clone(), (ENGLISH, [].into()), bench.decodes.mailbox.clone());
    assert!(bench.decodes.ask((1, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    assert!(bench.decodes.ask((2, 1), (Final, Addressing::Unsure), Some(SOUND), 0));
    assert!(bench.decodes.ask((3, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    assert!(other.ask((9, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    for expected in [1, 3, 9, 2] {
        bench.finish();
        let message = bench.message();
        assert_eq!((message.utterance, message.report.result.is_ok()), (expected, true));
    }
}

#[test]
fn what_was_begun_at_a_pause_is_not_passed_once_the_pause_is_the_end() {
    let mut bench = Bench::new();
    let mut other = Decodes::new(bench.decodes.scheduler.clone(), (ENGLISH, [].into()), bench.decodes.mailbox.clone());
    assert!(bench.decodes.ask((1, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    for (utterance, meant) in [(2, Addressing::Unsure), (3, Addressing::Addressed)] {
        assert!(bench.decodes.ask((utterance, 1), (Speculative, meant), Some(SOUND), 0));
        bench.decodes.keep(utterance, SOUND, 0);
    }
    // Others speak, of whom it is known that they mean the assistant, and the wearer has said more.
    for utterance in 10..=11 {
        assert!(other.ask((utterance, 1), (Speculative, Addressing::Addressed), Some(SOUND), 0), "it finds a place");
    }
    assert!(other.ask((12, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.decodes.keep(4, SOUND, 0);
    for expected in [1, 3, 12, 10, 11, 2] {
        bench.finish();
        let message = bench.message();
        assert_eq!((message.utterance, message.report.result.is_ok()), (expected, true));
    }
}

#[test]
fn what_is_overheard_and_what_goes_on_gives_way_after_a_pause() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((1, 1), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.begun();
    assert!(bench.decodes.ask((2, 1), (Speculative, Addressing::Overheard), Some(SOUND), 0));
    bench.decodes.keep(2, SOUND, 0);
    assert!(bench.decodes.ask((3, 1), (Speculative, Addressing::Unsure), Some(SOUND), 0));
    for (utterance, out) in [(4, 2), (5, 3)] {
        assert!(bench.decodes.ask((utterance, 1), (Speculative, Addressing::Addressed), Some(SOUND), 0));
        let message = bench.message();
        assert!(message.utterance == out && matches!(message.report.result, Err(Error::Displaced)));
    }
    for expected in [1, 4, 5] {
        bench.finish();
        assert_eq!(bench.message().utterance, expected);
    }
}

#[test]
fn of_more_than_can_be_decoded_the_end_is() {
    let mut bench = Bench::new();
    let long: Vec<i16> = (0..SAMPLES_MAX + 5).map(|at| i16::from(at >= 5)).collect();
    let decoded = |bench: &mut Bench| {
        let (pcm, _) = bench.begun();
        bench.finish();
        drop(bench.messages.blocking_recv());
        (pcm.len(), pcm.iter().all(|sample| *sample == 1))
    };
    for first in [0, 3] {
        assert!(bench.decodes.ask((7, 1), (Partial, Addressing::Addressed), Some(&long), first));
        assert_eq!(decoded(&mut bench), (SAMPLES_MAX, true));
    }
    assert!(bench.decodes.ask((7, 1), (Speculative, Addressing::Addressed), Some(&long), 6));
    assert_eq!(decoded(&mut bench), (SAMPLES_MAX - 1, true));
    assert!(bench.decodes.translate(7, Some(&long), &[]));
    assert_eq!(decoded(&mut bench), (SAMPLES_MAX, true));
    bench.decodes.keep(7, &long, 0);
    assert!(bench.decodes.ask((7, 2), (Final, Addressing::Addressed), None, 0));
    assert_eq!(decoded(&mut bench), (SAMPLES_MAX, true));
    assert!(bench.decodes.translate(7, None, &[]));
    assert_eq!(decoded(&mut bench), (SAMPLES_MAX, true));
}

#[test]
fn a_translation_ends_with_the_microphone_and_with_the_device_and_not_with_its_words() {
    let mut bench = Bench::new();
    bench.decodes.keep(7, SOUND, 0);
    assert!(bench.decodes.translate(7, None, &[]));
    let abort = bench.begun().1.abort.expect("a decode can be stopped");
    bench.decodes.cancel(7, u16::MAX, &[]);
    assert!(!abort.load(Relaxed));
    bench.decodes.forget();
    assert!(abort.load(Relaxed));
    bench.finish();
    assert!(matches!(bench.messages.blocking_recv(), Some(DeviceMessage::Translated(_))));

    bench.decodes.keep(8, SOUND, 0);
    assert!(bench.decodes.translate(8, None, &[]));
    let abort = bench.begun().1.abort.expect("a decode can be stopped");
    let scheduler = bench.decodes.scheduler.clone();
    drop(bench.decodes);
    assert!(abort.load(Relaxed));
    // The scheduler, which waits for its thread, ends after the senders.
    drop((bench.go_on, bench.begun, scheduler));
}

#[test]
fn who_goes_away_waits_for_nothing() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((7, 1), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    let abort = bench.begun().1.abort.expect("a decode can be stopped");
    assert!(bench.decodes.ask((7, 2), (Final, Addressing::Addressed), Some(SOUND), 0));
    let Bench { go_on, decodes, begun, mut messages } = bench;
    // The scheduler is shared by all devices and remains.
    let scheduler = decodes.scheduler.clone();
    drop(decodes);
    assert!(abort.load(Relaxed));
    assert_eq!(next_end(&mut messages).revision, 2);
    drop((go_on, begun, scheduler));
}

#[test]
fn older_decodes_of_the_same_utterance_are_cancelled() {
    let mut bench = Bench::new();
    assert!(bench.decodes.ask((7, 1), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    let abort = bench.begun().1.abort.expect("a decode can be stopped");
    assert!(bench.decodes.ask((7, 2), (Speculative, Addressing::Addressed), Some(SOUND), 0));
    assert!(bench.decodes.ask((7, 3), (Final, Addressing::Addressed), Some(SOUND), 0));
    bench.decodes.cancel(6, 9, &[]);
    assert!(!abort.load(Relaxed));
    bench.decodes.cancel(7, 3, &[]);
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
