//! A server that answers, fails, hangs or is gone, before and after weights on this machine.

use std::{
    sync::{atomic::Ordering, mpsc::Receiver},
    thread,
    time::Duration,
};

use audio::asr::Heard;

use super::{
    super::test_server::{Answer, serve},
    *,
};

const PATIENT: Duration = Duration::from_secs(60);
static SPEECH: [i16; 16_000] = [9_000; 16_000];

/// Weights on this machine.
struct Local(Result<&'static str, Error>);

impl Transcribe for Local {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        self.0.clone().map(|text| Transcription::written_elsewhere(text, None, pcm, options, 1))
    }
}

/// Weights on this machine that know English only.
struct English;

impl Transcribe for English {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        Local(Ok("local")).transcribe(pcm, options)
    }

    fn can(&self, options: &Options) -> bool {
        options.spoken.is_some_and(Spoken::is_english) && !options.translate
    }
}

fn remote(order: Order, answers: Vec<Answer>, deadline: Duration) -> (Arc<RemoteRecogniser>, Receiver<Vec<u8>>) {
    let (server, requests) = serve(answers, deadline);
    let remote = RemoteRecogniser::new(&RecognitionServer { server, order }, Arc::default()).unwrap();
    (Arc::new(remote), requests)
}

fn says(text: &str) -> Answer {
    Answer::Sends(200, "application/json", format!("{{\"text\": \"{text}\"}}").into_bytes())
}

fn text(heard: Result<Transcription, Error>) -> String {
    heard.map_or_else(|error| format!("{error}"), |heard| heard.text)
}

fn options() -> Options {
    let spoken = Some(Spoken::Is(Language::ENGLISH));
    Options { wake_phrases: ["hey mentra".to_owned()].into(), spoken, ..Options::default() }
}

#[test]
fn a_server_is_asked_first_but_not_for_passing_texts_and_not_about_silence() {
    let (remote, requests) = remote(Order::Instead, vec![says("What time is it?")], PATIENT);
    let mut recogniser = Recogniser::new(Some(Local(Ok("local"))), remote.clone());
    let on_box = Options { on_box: true, ..options() };
    assert_eq!(text(recogniser.transcribe(&SPEECH, &on_box)), "local");
    assert_eq!(recogniser.transcribe(&[0; 16_000], &options()).unwrap().heard, Heard::Silence);
    assert!(requests.try_recv().is_err());
    let heard = recogniser.transcribe(&SPEECH, &options()).unwrap();
    assert_eq!((heard.text.as_str(), heard.heard, heard.audio_us), ("What time is it?", Heard::Speech, 1_000_000));
    let request = String::from_utf8_lossy(&requests.recv().unwrap()).into_owned();
    for part in ["POST /v1/audio/transcriptions", "RIFF", "Hey Mentra", "name=\"language\"\r\n\r\nen\r\n"] {
        assert!(request.contains(part), "{part}");
    }
    assert_eq!((remote.asked.usage().answered, remote.asked.usage().failed), (1, 0));
}

#[test]
fn a_server_is_told_the_language_of_the_sound_and_is_not_asked_for_translations() {
    let told = br#"{"text": "Guten Tag", "language": "german"}"#.to_vec();
    let answers = vec![says("Guten Tag"), Answer::Sends(200, "application/json", told)];
    let (remote, requests) = remote(Order::Instead, answers, PATIENT);
    let mut recogniser = Recogniser::new(Some(Local(Ok("good day"))), remote.clone());
    let german = Options { spoken: Spoken::of("de"), ..options() };
    let heard = recogniser.transcribe(&SPEECH, &german).unwrap();
    assert_eq!((heard.text.as_str(), heard.language), ("Guten Tag", Language::of("de")));
    assert!(String::from_utf8_lossy(&requests.recv().unwrap()).contains("name=\"language\"\r\n\r\nde\r\n"));
    let detected = Options { spoken: Spoken::of("auto"), ..options() };
    let heard = recogniser.transcribe(&SPEECH, &detected).unwrap();
    assert_eq!((heard.text.as_str(), heard.language), ("Guten Tag", Language::of("de")));
    assert!(!String::from_utf8_lossy(&requests.recv().unwrap()).contains("name=\"language\""));
    let translated = Options { translate: true, ..german };
    assert_eq!(text(recogniser.transcribe(&SPEECH, &translated)), "good day");
    let alone = Recogniser::<Local>::new(None, remote).transcribe(&SPEECH, &translated);
    assert!(matches!(alone, Err(Error::Elsewhere(why)) if why.contains("translations")));
    assert!(requests.try_recv().is_err());
}

#[test]
fn what_a_server_fails_the_weights_here_recognise_and_it_is_left_alone_for_a_while() {
    for (answer, deadline) in [
        (Answer::Sends(500, "text/plain", b"you said hello".to_vec()), PATIENT),
        (Answer::Sends(200, "text/plain", b"not JSON".to_vec()), PATIENT),
        (Answer::Sends(200, "application/json", vec![b' '; 1 << 20]), PATIENT),
        (Answer::Hangs, Duration::from_secs(1)),
    ] {
        // A second request would be seen.
        let (remote, requests) = remote(Order::Instead, vec![answer, says("remote")], deadline);
        let mut recogniser = Recogniser::new(Some(Local(Ok("local"))), remote.clone());
        for _ in 0..3 {
            assert_eq!(text(recogniser.transcribe(&SPEECH, &options())), "local");
        }
        assert_eq!(requests.try_iter().count(), 1);
        let usage = remote.asked.usage();
        assert!((usage.answered, usage.failed) == (0, 1) && usage.rests_s.is_some(), "{usage:?}");
    }
}

#[test]
fn without_weights_here_everything_goes_there_every_time() {
    let refuses = || Answer::Sends(503, "", Vec::new());
    let (remote, requests) =
        remote(Order::Fallback, vec![refuses(), refuses(), says("remote"), says("again")], PATIENT);
    let mut recogniser = Recogniser::new(None::<Local>, remote);
    for _ in 0..2 {
        let failed = text(recogniser.transcribe(&SPEECH, &options()));
        assert!(failed.contains("503") && !failed.contains("hello"), "{failed}");
    }
    assert_eq!(text(recogniser.transcribe(&SPEECH, &options())), "remote");
    assert_eq!(text(recogniser.transcribe(&SPEECH, &Options { on_box: true, ..options() })), "again");
    assert_eq!(requests.try_iter().count(), 4);
}

#[test]
fn a_language_that_the_weights_here_do_not_know_goes_there_and_holds_up_no_thread_for_long() {
    for order in [Order::Instead, Order::Fallback] {
        let refuses = Answer::Sends(503, "", Vec::new());
        let (remote, requests) = remote(order, vec![says("Guten"), refuses, says("Guten Tag")], PATIENT);
        let mut recogniser = Recogniser::new(Some(English), remote);
        let mut passing = |language: &str| {
            let on_box = Options { on_box: true, spoken: Spoken::of(language), ..options() };
            text(recogniser.transcribe(&SPEECH, &on_box))
        };
        assert_eq!(passing("de"), "Guten");
        assert!(passing("auto").contains("503"));
        assert!(passing("auto").contains("a short while ago"), "others are heard by this thread");
        assert_eq!(passing("en"), "local");
        let whole = Options { spoken: Spoken::of("de"), ..options() };
        assert_eq!(text(recogniser.transcribe(&SPEECH, &whole)), "Guten Tag", "a whole utterance is sent all the same");
        let translated = recogniser.transcribe(&SPEECH, &Options { translate: true, ..options() });
        assert!(matches!(translated, Err(Error::Elsewhere(why)) if why.contains("translations")));
        assert_eq!(requests.try_iter().count(), 3);
    }
}

#[test]
fn a_server_that_is_a_fallback_hears_only_what_failed_here() {
    let asked = |local: Result<&'static str, Error>| {
        let (remote, requests) = remote(Order::Fallback, vec![says("remote")], PATIENT);
        let heard = text(Recogniser::new(Some(Local(local)), remote).transcribe(&SPEECH, &options()));
        (heard, requests.try_iter().count())
    };
    assert_eq!(asked(Ok("local")), ("local".to_owned(), 0));
    assert_eq!(asked(Err(Error::Inference("broken".to_owned()))), ("remote".to_owned(), 1));
    assert_eq!(asked(Err(Error::Cancelled)), (Error::Cancelled.to_string(), 0));
    // Where both fail, the error is that of this machine.
    let (remote, _requests) = remote(Order::Fallback, vec![Answer::Sends(500, "", Vec::new())], PATIENT);
    let mut recogniser = Recogniser::new(Some(Local(Err(Error::Inference("broken".to_owned())))), remote);
    assert!(text(recogniser.transcribe(&SPEECH, &options())).contains("broken"));
}

#[test]
fn a_cancelled_request_ends_at_once_and_says_nothing_about_the_server() {
    let (remote, requests) = remote(Order::Instead, vec![Answer::Hangs, says("remote")], PATIENT);
    let abort = Arc::new(AtomicBool::new(false));
    let mut recogniser = Recogniser::new(Some(Local(Ok("local"))), remote.clone());
    let _requests = thread::scope(|scope| {
        let aborting = abort.clone();
        let seen = scope.spawn(move || {
            requests.recv().unwrap();
            aborting.store(true, Ordering::Relaxed);
            requests
        });
        let cancelled = Options { abort: Some(abort.clone()), ..options() };
        assert!(matches!(recogniser.transcribe(&SPEECH, &cancelled), Err(Error::Cancelled)));
        seen.join().unwrap()
    });
    assert_eq!(text(recogniser.transcribe(&SPEECH, &options())), "remote");
    assert_eq!((remote.asked.usage().answered, remote.asked.usage().failed), (1, 0));
}
