//! `lorgnette wake`: heads that the binary makes from nothing, with the smallest training that it takes.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use audio::{
    frame::RATE_HZ,
    models,
    tts::Voice,
    wake::{
        Head, Models,
        train::{
            clips::{Clip, Scene},
            stored,
            voices::{Manner, Speaker},
        },
    },
    wav,
};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    process::{binary, configure, fails},
    world::floor,
};

const PHRASE: &str = "hey mentra";
/// In place of `cargo xtask wake-speech`, by the product's own voice. The threshold is chosen by the fifth and the tenth.
const TALK: [&str; 10] = [
    "the train to the coast leaves at noon",
    "hey Peter, did you see the game last night",
    "we should paint the kitchen in the spring",
    "my sister sends her regards to all of you",
    "hey Peter, come over here and look at this",
    "nobody knows where the keys are",
    "there was a letter in the box this morning",
    "hey Martha, this is what I meant",
    "it has been raining since the day before yesterday",
    "hey Martha, what are we going to have for dinner",
];
/// The same, for the judgement.
const OTHER_TALK: [&str; 3] = [
    "the museum is closed on Mondays",
    "please put the book back on the shelf",
    "they told us that the road was blocked",
];

/// A folder for heads and sound, and what makes the sound.
struct Workshop {
    folder: TempDir,
    config: String,
    voice: Voice,
    models: Arc<Models>,
}

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = shown(&configure(&folder.path().join("data"), ""));
        let models_dir = models::default_dir();
        let voice = Voice::load(&models_dir.join("hibari")).unwrap_or_else(|error| panic!("{error}"));
        let models = Models::load(&models_dir).unwrap_or_else(|error| panic!("{error}"));
        Self { folder, config, voice, models }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// With half a second of silence in front and behind.
    fn say(&self, text: &str, speed: f32) -> Vec<i16> {
        let manner = Manner { speed, ..Manner::PLAIN };
        let said = Speaker::own().say(&self.voice, text, manner, self.folder.path()).unwrap();
        let quiet = vec![0; RATE_HZ as usize / 2];
        [&quiet[..], &said, &quiet].concat()
    }

    /// A WAV file.
    fn recording(&self, name: &str, pcm: &[i16]) -> String {
        let path = self.path(name);
        wav::write(&path, pcm, RATE_HZ).unwrap();
        shown(&path)
    }

    /// A file of embeddings.
    fn embeddings(&self, name: &str, texts: &[&str]) -> String {
        let clip = |text: &&str| {
            let samples = self.say(text, 1.0).iter().map(|x| f32::from(*x)).collect();
            Clip::of(&Scene { samples, phrase_end: None }, &self.models).unwrap()
        };
        let path = self.path(name);
        stored::write(&path, &texts.iter().map(clip).collect::<Vec<_>>()).unwrap();
        shown(&path)
    }

    /// What `lorgnette wake` prints where no other programs are installed than those of a folder.
    async fn wake(&self, programs: &TempDir, arguments: &[&str]) -> String {
        let command = Command::new(binary())
            .arg("wake")
            .args(arguments)
            .args(["--config", &self.config])
            .env_remove("LORGNETTE_CONFIG")
            .env("PATH", programs.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        // It takes half a minute, and longer on a busy machine: only the test runner's own deadline ends it.
        let output = command.await.expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {words}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The error of `lorgnette wake`.
    async fn refuses(&self, arguments: &[&str]) -> String {
        fails(&[&["wake"][..], arguments, &["--config", &self.config]].concat()).await
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A folder with these of the installed programs.
fn programs(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    for name in names {
        let installed = env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.exists());
        let program = installed.unwrap_or_else(|| panic!("`{name}` is missing: install the package of this name"));
        symlink(program, folder.path().join(name)).unwrap();
    }
    folder
}

/// The line that begins with these words.
#[track_caller]
fn line<'a>(told: &'a str, words: &str) -> &'a str {
    told.lines().find(|line| line.starts_with(words)).unwrap_or_else(|| panic!("no line begins with {words}: {told}"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_made_from_nothing_hears_its_phrase_and_no_near_words() {
    let _floor = floor().await;
    let shop = Workshop::new();
    // One of its voices chooses the threshold, and one judges. Training hears the product's own alone.
    let programs = programs(&["flite"]);
    let (real, held_out) = (shop.embeddings("real.f16", &TALK), shop.embeddings("held-out.f16", &OTHER_TALK));
    let heads = shop.path("heads");
    let head = heads.join("hey_mentra.onnx");
    let file = shown(&head);
    let real = ["--real", &real, "--real-held-out", &held_out];
    let least = ["train", "Hey Mentra", "--voices", "hibari", "--sayings", "50", "--out", &file];
    let told = shop.wake(&programs, &[&least[..], &real].concat()).await;
    for words in [
        "\"hey mentra\" in 1 voices",
        "of 24 clips in tuning voices, and ",
        "minutes of real speech that was held out, before the text verifies: below ",
        &format!("{}: recall against false accepts", shown(&heads.join("hey_mentra.svg"))),
        &format!("{file}: kept"),
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(told.lines().any(|line| line.starts_with("learning ") && line.ends_with(" 100 %")), "{told}");
    // At three paces, alone and in front of four requests; the voice under all seven conditions.
    assert!(line(&told, "clean ").contains(" of   15 "), "{told}");
    assert!(line(&told, "pink noise, 10 dB ").contains(" of   15 "), "{told}");
    assert!(line(&told, "flite-awb ").contains(" of  105 "), "{told}");
    assert!(!told.contains("espeak") && !told.contains("No real speech"), "{told}");
    let plot = fs::read_to_string(heads.join("hey_mentra.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("clean") && plot.contains("10 dB of noise"), "{plot}");
    assert_eq!(names(&heads), ["hey_mentra.onnx", "hey_mentra.svg"], "nothing else is left");
    assert_eq!(Head::load(&head).unwrap().settings().phrase, PHRASE);

    // Another request than those of training, at other paces.
    let said = shop.recording("said.wav", &shop.say("hey mentra, how far is the station", 1.07));
    let near = shop.recording("near.wav", &shop.say("hey Peter, how far is the station", 0.95));
    let told = shop.wake(&programs, &["test", &file, &said, &near, "--scores"]).await;
    assert!(line(&told, &said).contains(": heard at "), "{told}");
    assert!(line(&told, &near).contains(": not heard; highest score "), "{told}");
    assert!(told.contains("false accepts an hour with 95 % confidence"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_which_nothing_shows_that_it_is_good_is_not_kept() {
    let _floor = floor().await;
    let shop = Workshop::new();
    let heads = shop.path("heads");
    let file = shown(&heads.join("hey_mentra.onnx"));
    // Without other voices and real speech nobody judges, even if the models folder has such speech.
    let none = shop.embeddings("none.f16", &[]);
    let real = ["--real", &none, "--real-held-out", &none];
    let least = ["train", PHRASE, "--voices", "hibari", "--sayings", "50", "--only-good", "--out", &file];
    let told = shop.wake(&programs(&[]), &[&least[..], &real].concat()).await;
    for words in [
        "No real speech is given (--real)",
        "The threshold was chosen by 0 of 0 clips",
        "False accepts are not known",
        "Recall is not known",
        "aim missed: clean: 0 of 0 heard, the aim is 98 %",
        "aim missed: street noise, 10 dB: 0 of 0 heard, the aim is 92 %",
        &format!("{file}: not kept"),
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(names(&heads), Vec::<String>::new(), "no head, no plot, nothing unfinished");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_head_can_be_made_of_is_refused_in_words() {
    let shop = Workshop::new();
    let new = shown(&shop.path("new.onnx"));
    for (phrase, voice, sayings, words) in [
        (PHRASE, "nobody", "50", "no voice \"nobody\""),
        (PHRASE, "hibari", "49", "50..=20000"),
        ("hi", "hibari", "50", "it needs four letters or more"),
    ] {
        let train = ["train", phrase, "--voices", voice, "--sayings", sayings, "--out", &new];
        let error = shop.refuses(&train).await;
        assert!(error.contains(words), "{words}: {error}");
    }
    let quiet = shop.recording("quiet.wav", &[0; RATE_HZ as usize]);
    let short = shop.recording("short.wav", &[0; RATE_HZ as usize / 10]);
    let base = shown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/wake/hey_mentra.onnx"));
    let error = shop.refuses(&["test", &quiet, &short]).await;
    assert!(error.contains("quiet.wav"), "it is no head: {error}");
    let error = shop.refuses(&["enrol", PHRASE, &quiet, "--from", &base, "--out", &short]).await;
    assert!(error.contains("short.wav exists; name another one with --out"), "{error}");
    let error = shop.refuses(&["enrol", PHRASE, &quiet, "--from", &new, "--out", &new]).await;
    assert!(error.contains("`lorgnette wake train` makes a head to begin with"), "{error}");
    let error = shop.refuses(&["enrol", PHRASE, &quiet, &short, "--from", &base, "--out", &new]).await;
    assert!(error.contains("quiet.wav: no voice is heard in it"), "{error}");
    assert!(error.contains("short.wav: it has 0.1 s"), "all that are wrong are named: {error}");
    assert!(!shop.path("new.onnx").exists());
}
