//! Synthetic speakers; but for the product's own they are programs that tests use as tools, and no part of the product.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use audio::tts::Voice;
use audio::wav;

use super::argument;
use super::clips::CLIP_HZ;

/// Who speaks: a program, and one of its voices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaker {
    program: Program,
    name: &'static str,
    /// The program's own name of the voice.
    voice: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Hibari,
    Flite,
    Espeak,
}

const fn flite(name: &'static str, voice: &'static str) -> Speaker {
    Speaker { program: Program::Flite, name, voice }
}

const fn espeak(name: &'static str, voice: &'static str) -> Speaker {
    Speaker { program: Program::Espeak, name, voice }
}

impl Speaker {
    /// The product's own voice.
    pub const HIBARI: Self = Self { program: Program::Hibari, name: "hibari", voice: "" };
    /// A woman.
    pub const FLITE: Self = flite("flite", "slt");
    /// American English.
    pub const ESPEAK: Self = espeak("espeak-ng", "en-us");
    /// One of each program.
    pub const ALL: [Self; 3] = [Self::HIBARI, Self::FLITE, Self::ESPEAK];
    /// Further voices of the same programs: the other ones of flite that say any text, and the accents and a
    /// woman's voice of espeak-ng.
    pub const OTHERS: [Self; 8] = [
        flite("flite-rms", "rms"),
        flite("flite-awb", "awb"),
        flite("flite-kal16", "kal16"),
        espeak("espeak-ng-gb", "en-gb"),
        espeak("espeak-ng-rp", "en-gb-x-rp"),
        espeak("espeak-ng-scotland", "en-gb-scotland"),
        espeak("espeak-ng-nyc", "en-us-nyc"),
        espeak("espeak-ng-f3", "en-us+f3"),
    ];

    /// The speakers that `--voices` asks for: names with commas between them, or `others`; otherwise one of each program.
    pub fn asked_for() -> Result<Vec<Self>> {
        match argument("--voices").as_deref() {
            None => Ok(Self::ALL.to_vec()),
            Some("others") => Ok(Self::OTHERS.to_vec()),
            Some(names) => names.split(',').map(Self::named).collect(),
        }
    }

    /// The speaker of this name.
    pub fn named(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().chain(Self::OTHERS);
        let names = || known.clone().map(Self::name).collect::<Vec<_>>().join(", ");
        known
            .clone()
            .find(|speaker| speaker.name == name)
            .with_context(|| format!("no voice {name:?}; there are {}", names()))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Says a text: samples at 16 kHz.
    pub fn say(self, text: &str, folder: &Path) -> Result<Vec<i16>> {
        let file = folder.join(format!("{}.wav", self.name));
        let (program, mut command) = match self.program {
            Program::Hibari => {
                let voice = Voice::load(&audio::models::default_dir().join("hibari"))?;
                let pcm = voice.synthesize(text, 1.0)?;
                return Ok(wav::convert(&pcm, Voice::RATE_HZ, CLIP_HZ)?);
            }
            Program::Flite => {
                let mut command = Command::new("flite");
                command.args(["-voice", self.voice, "-t", text, "-o"]).arg(&file);
                ("flite", command)
            }
            Program::Espeak => {
                let mut command = Command::new("espeak-ng");
                command.args(["-v", self.voice, "-s", "150", "-w"]).arg(&file).arg(text);
                ("espeak-ng", command)
            }
        };
        let done = command.status().with_context(|| format!("{program}: `apt-get install {program}`"))?;
        ensure!(done.success(), "{program} failed");
        Ok(wav::read(&file, CLIP_HZ)?)
    }
}
