//! Servers and programs that speak, and what is said when they do not.

use std::{
    path::Path,
    sync::{
        atomic::AtomicUsize,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use audio::wav;

use super::{
    super::test_server::{Answer, serve},
    *,
};

const PATIENT: Duration = Duration::from_secs(60);
const GERMAN: &str = "Der Timer ist auf zehn Minuten gestellt.";
/// MP3 files of tones, without and with a tag at the beginning.
const TONES: &[u8] = include_bytes!("../../../../audio/tests/data/tones-mono-22050-vbr.mp3");
const TAGGED_TONES: &[u8] = include_bytes!("../../../../audio/tests/data/tones-stereo-44100.mp3");
/// What the product's own voice says in these tests.
const OWN: [i16; 3] = [1, 2, 3];

/// One of the sentences that the assistant says by itself.
const FIXED: &str = "Let me check.";

/// The product's own voice, with the number of clauses that it was given.
#[derive(Default)]
struct Own(AtomicUsize);

impl Speak for Own {
    fn speak(&self, _: &Clause) -> Result<Vec<i16>, Unanswered> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(OWN.to_vec())
    }
}

/// The product's own voice, and this one beside it.
fn beside(own: Arc<Own>, other: Option<OtherVoice>) -> Voices {
    let compute = Compute::start("test", 1, 8).unwrap();
    Voices { own, compute, other: other.map(Arc::new), phrases: Arc::default() }
}

fn voices(speaker: Speaker, texts: Texts) -> Voices {
    beside(Arc::default(), Some(OtherVoice::new(&Other { speaker, texts }, Arc::default()).unwrap()))
}

fn program(script: &str) -> Speaker {
    let command = ["sh", "-c", script, "sh", "{language}"].map(str::to_owned).to_vec();
    Speaker::Program { command, deadline: PATIENT }
}

fn server(answers: Vec<Answer>, form: SoundForm) -> (Speaker, Receiver<Vec<u8>>) {
    let (server, requests) = serve(answers, PATIENT);
    (Speaker::Server { server, voice: Some("anna".to_owned()), form }, requests)
}

fn clause(text: &str, language: &str) -> Clause {
    Clause { text: text.to_owned(), language: language.to_owned(), speed: 1.0, hushed: Arc::default() }
}

/// What is heard of a clause.
fn say(voices: &Voices, clause: Clause) -> Option<Vec<i16>> {
    let (told, said) = sync_channel(1);
    voices.say((Owner::unique(), Urgency::Now), clause, move |said| told.send(said.pcm).unwrap()).unwrap();
    said.recv().unwrap()
}

fn tone(folder: &Path, rate_hz: u32) -> std::path::PathBuf {
    let path = folder.join("tone.wav");
    wav::write(&path, &vec![500; rate_hz as usize / 2], rate_hz).unwrap();
    path
}

#[test]
fn a_program_speaks_other_languages_and_the_products_voice_english() {
    let folder = tempfile::tempdir().unwrap();
    let (tone, heard) = (tone(folder.path(), 22_050), folder.path().join("heard"));
    let script = format!("(echo \"$1\"; cat) > {}; cat {}", heard.display(), tone.display());
    let voices = voices(program(&script), Texts::Languages);
    assert_eq!(say(&voices, clause("Timer set for ten minutes.", "en-GB")), Some(OWN.to_vec()));
    assert_eq!(say(&voices, clause("The timer is set for ten minutes, and it will ring.", "de")), Some(OWN.to_vec()));
    assert_eq!(say(&voices, clause("...", "de")), Some(OWN.to_vec()));
    assert!(!heard.exists());
    let said = say(&voices, clause(&GERMAN.replace(' ', "\n"), "de-AT")).unwrap();
    assert_eq!(said.len(), Voice::RATE_HZ as usize / 2, "22,050 Hz become 24,000");
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), format!("de\n{GERMAN}"));
    let other = voices.other.unwrap();
    assert_eq!((other.asked.usage().answered, other.asked.usage().failed), (1, 0));
}

#[test]
fn all_texts_are_spoken_elsewhere_where_that_is_wanted() {
    let pcm = [4_i16, 5, 6].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let (speaker, requests) = server(vec![Answer::Sends(200, "audio/pcm", pcm)], SoundForm::Pcm);
    let voices = voices(speaker, Texts::All);
    assert_eq!(say(&voices, clause("Good morning.", "en")), Some(vec![4, 5, 6]));
    let request = String::from_utf8(requests.recv().unwrap()).unwrap();
    assert!(request.starts_with("POST /v1/audio/speech") && request.contains("\"Good morning.\""), "{request}");
    assert!(request.contains("\"voice\":\"anna\""), "{request}");
}

#[test]
fn what_nobody_else_can_say_the_products_voice_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read(tone(folder.path(), 16_000)).unwrap();
    let mut odd_rate = file.clone();
    odd_rate[24..28].copy_from_slice(&7_u32.to_le_bytes());
    let mut half_header = file.clone();
    half_header.truncate(30);
    for (kind, body, form) in [
        ("audio/wav", odd_rate, SoundForm::Wav),
        ("audio/wav", half_header, SoundForm::Wav),
        ("audio/wav", b"<!doctype html>".to_vec(), SoundForm::Wav),
        ("audio/pcm", vec![1, 2, 3], SoundForm::Pcm),
        ("audio/pcm", vec![0; 2 * 24_000 * 61], SoundForm::Pcm),
        ("audio/pcm", vec![0; 7 << 20], SoundForm::Pcm),
        // Formats that are not understood, in place of samples.
        ("audio/ogg", b"OggS".repeat(1_000), SoundForm::Pcm),
        ("audio/pcm", b"fLaC".repeat(1_000), SoundForm::Pcm),
        ("audio/mpeg", vec![1; 4_000], SoundForm::Pcm),
    ] {
        // A second request would be seen.
        let again = Answer::Sends(200, "audio/wav", file.clone());
        let (speaker, requests) = server(vec![Answer::Sends(200, kind, body), again], form);
        let voices = voices(speaker, Texts::Languages);
        assert_eq!(say(&voices, clause(GERMAN, "de")), Some(OWN.to_vec()));
        assert_eq!(say(&voices, clause(GERMAN, "de")), Some(OWN.to_vec()), "it rests");
        assert_eq!(requests.try_iter().count(), 1);
        let usage = voices.other.unwrap().asked.usage();
        assert!((usage.answered, usage.failed) == (0, 1) && usage.rests_s.is_some(), "{usage:?}");
    }
    let gone = voices(program("exit 1"), Texts::All);
    assert_eq!(say(&gone, clause("Good morning.", "en")), Some(OWN.to_vec()));
}

#[test]
fn sound_that_breaks_off_is_said_as_far_as_it_goes_and_a_file_in_place_of_samples_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read(tone(folder.path(), 24_000)).unwrap();
    let (speaker, _requests) =
        server(vec![Answer::Sends(200, "audio/pcm", file[..44 + 2_000].to_vec())], SoundForm::Pcm);
    assert_eq!(say(&voices(speaker, Texts::All), clause("Good morning.", "en")), Some(vec![500; 1_000]));
    for (kind, file) in [("audio/mpeg", TONES), ("application/octet-stream", TAGGED_TONES)] {
        let (speaker, _requests) = server(vec![Answer::Sends(200, kind, file.to_vec())], SoundForm::Pcm);
        let said = say(&voices(speaker, Texts::All), clause("Good morning.", "en"));
        assert_eq!(said, Some(sound_file::decode(file, Voice::RATE_HZ, 10).unwrap()), "{kind}");
    }
}

#[test]
fn a_hushed_clause_is_neither_waited_for_nor_heard() {
    let (speaker, requests) = server(vec![Answer::Hangs, Answer::Hangs], SoundForm::Pcm);
    let voices = voices(speaker, Texts::All);
    let hushed = Arc::new(AtomicBool::new(false));
    let (told, said) = sync_channel::<Synthesis>(1);
    let clause = Clause { hushed: hushed.clone(), ..clause("Good morning.", "en") };
    let reply = move |said| told.send(said).unwrap();
    voices.say((Owner::unique(), Urgency::Now), clause, reply).unwrap();
    requests.recv().unwrap();
    hushed.store(true, Ordering::Relaxed);
    assert!(said.recv().is_err(), "nobody replies any more");
    let usage = voices.other.unwrap().asked.usage();
    assert_eq!((usage.answered, usage.failed, usage.rests_s), (0, 0, None));
}

/// A pool whose only place is taken until the sender is used.
fn taken() -> (Compute, SyncSender<()>) {
    let compute = Compute::start("test", 1, 1).unwrap();
    let (begun, has_begun) = sync_channel(1);
    let (release, released) = sync_channel::<()>(1);
    let wait = move || {
        begun.send(()).unwrap();
        released.recv().unwrap();
    };
    compute.submit(Urgency::Now, wait).unwrap();
    has_begun.recv().unwrap();
    compute.submit(Urgency::Now, || {}).unwrap();
    (compute, release)
}

#[test]
fn where_nobody_has_room_the_clause_is_reported_as_unsaid() {
    let mut voices = voices(program("exit 1"), Texts::All);
    let (compute, release) = taken();
    voices.compute = compute;
    assert_eq!(say(&voices, clause("Good morning.", "en")), None);
    release.send(()).unwrap();
}

#[test]
fn where_the_other_voice_has_no_room_the_products_voice_says_it() {
    let other = Other { speaker: program("exit 1"), texts: Texts::All };
    let mut other = OtherVoice::new(&other, Arc::default()).unwrap();
    let (compute, release) = taken();
    other.compute = compute;
    let mut voices = beside(Arc::default(), Some(other));
    assert_eq!(say(&voices, clause("Good morning.", "en")), Some(OWN.to_vec()));
    let (compute, release_own) = taken();
    voices.compute = compute;
    let place = (Owner::unique(), Urgency::Now);
    let refused = voices.say(place, clause("Good morning.", "en"), |_| panic!("nobody has room"));
    assert!(refused.is_err());
    release.send(()).unwrap();
    release_own.send(()).unwrap();
}

#[test]
fn a_fixed_phrase_is_synthesised_once_for_each_pace_and_nothing_else_is_kept() {
    let own = Arc::new(Own::default());
    let voices = beside(own.clone(), None);
    let made = |text: &str, speed: f32| {
        assert_eq!(say(&voices, Clause { speed, ..clause(text, "en") }), Some(OWN.to_vec()));
        own.0.load(Ordering::Relaxed)
    };
    assert_eq!([made(FIXED, 1.0), made(FIXED, 1.0)], [1, 1]);
    assert_eq!([made(FIXED, 1.5), made(FIXED, 1.5), made(FIXED, 1.0)], [2, 2, 2]);
    assert_eq!([made("Your code is 4711.", 1.0), made("Your code is 4711.", 1.0)], [3, 4]);
}

#[test]
fn a_fixed_phrase_that_was_said_before_waits_for_no_thread() {
    let mut voices = beside(Arc::default(), None);
    assert_eq!(say(&voices, clause(FIXED, "en")), Some(OWN.to_vec()));
    let (compute, release) = taken();
    voices.compute = compute;
    assert_eq!(say(&voices, clause(FIXED, "en")), Some(OWN.to_vec()));
    release.send(()).unwrap();
}

#[test]
fn a_server_is_asked_for_a_fixed_phrase_once_and_again_for_another_language() {
    let answer = |sample: i16| Answer::Sends(200, "audio/pcm", sample.to_le_bytes().to_vec());
    let (speaker, requests) = server(vec![answer(4), answer(5), answer(6)], SoundForm::Pcm);
    let voices = voices(speaker, Texts::All);
    let heard = ["en", "en", "de", "en"].map(|language| say(&voices, clause(FIXED, language)));
    assert_eq!(heard, [4, 4, 5, 4].map(|sample| Some(vec![sample])));
    assert_eq!(requests.try_iter().count(), 2);
    assert_eq!(say(&voices, clause("Good morning.", "en")), Some(vec![6]));
}

#[test]
fn what_the_products_voice_says_instead_is_not_taken_for_the_other_ones() {
    let pcm = 4_i16.to_le_bytes().to_vec();
    let (speaker, _requests) = server(vec![Answer::Sends(200, "audio/pcm", pcm)], SoundForm::Pcm);
    let mut voices = voices(speaker, Texts::All);
    let other = voices.other.take();
    assert_eq!(say(&voices, clause(FIXED, "en")), Some(OWN.to_vec()));
    voices.other = other;
    assert_eq!(say(&voices, clause(FIXED, "en")), Some(vec![4]));
}
