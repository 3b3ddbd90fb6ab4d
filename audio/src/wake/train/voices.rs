//! Who speaks in training: the product's own voice at many pitches, and the voices of flite and espeak-ng where these
//! programs are installed. They are tools: nothing of them is shipped but what a head has learned.

use std::path::Path;
use std::process::{Command, Stdio};

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::Error;
use super::noise::warped;
use crate::frame::RATE_HZ;
use crate::tts::Voice;
use crate::wav;

/// Voices of flite that training may use.
const FLITE: [&str; 3] = ["slt", "rms", "kal16"];

/// Languages and variants of espeak-ng that training may use.
const ESPEAK: [&str; 14] = [
    "en-us",
    "en-us+m1",
    "en-us+m4",
    "en-us+m7",
    "en-us+f1",
    "en-us+f2",
    "en-us+f5",
    "en-gb",
    "en-gb+m2",
    "en-gb+f1",
    "en-gb-x-gbclan",
    "en-us-nyc",
    "en-us-nyc+f2",
    "en-gb-x-gbcwmd+m5",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Hibari,
    Flite,
    Espeak,
}

/// One voice of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    program: Program,
    voice: String,
}

/// How something is said: each value is a factor, 1 as the voice is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manner {
    /// How fast.
    pub speed: f32,
    /// How high.
    pub pitch: f32,
    /// How small the speaker is.
    pub formants: f32,
}

impl Manner {
    /// As the voice is.
    pub const PLAIN: Self = Self { speed: 1.0, pitch: 1.0, formants: 1.0 };

    /// One of many.
    pub fn random(random: &mut SmallRng) -> Self {
        let mut factor = |by: f32| ((random.random::<f32>() * 2.0 - 1.0) * by).exp();
        Self { speed: factor(0.25), pitch: factor(0.3), formants: factor(0.14) }
    }
}

impl Speaker {
    /// Its name: `hibari`, `flite-VOICE` or `espeak-VOICE`.
    pub fn name(&self) -> String {
        match self.program {
            Program::Hibari => "hibari".to_owned(),
            Program::Flite => format!("flite-{}", self.voice),
            Program::Espeak => format!("espeak-{}", self.voice),
        }
    }

    /// The speaker of this name; `None`: there is no such program.
    pub fn named(name: &str) -> Option<Self> {
        let of = |program, voice: &str| Some(Self { program, voice: voice.to_owned() });
        match name.split_once('-') {
            None if name == "hibari" => of(Program::Hibari, ""),
            Some(("flite", voice)) => of(Program::Flite, voice),
            Some(("espeak", voice)) => of(Program::Espeak, voice),
            _ => None,
        }
    }

    /// Every speaker for training whose program is installed.
    pub fn for_training() -> Vec<Self> {
        let of = |program: Program, voices: &[&str]| -> Vec<Self> {
            voices.iter().map(|voice| Self { program, voice: (*voice).to_owned() }).filter(Self::is_installed).collect()
        };
        let mut speakers = of(Program::Hibari, &[""]);
        speakers.extend(of(Program::Flite, &FLITE));
        speakers.extend(of(Program::Espeak, &ESPEAK));
        speakers
    }

    /// Whether its program is there.
    pub fn is_installed(&self) -> bool {
        let (program, argument) = match self.program {
            Program::Hibari => return true,
            Program::Flite => ("flite", "--version"),
            Program::Espeak => ("espeak-ng", "--version"),
        };
        Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    }

    /// Whether it is the product's own, which alone can be varied in all ways.
    pub fn is_own(&self) -> bool {
        self.program == Program::Hibari
    }

    /// Says `text`: mono at 16 kHz, without silence at its ends. `scratch`: a folder for a file.
    ///
    /// # Errors
    /// The program is missing, fails, or says nothing.
    pub fn say(&self, own: &Voice, text: &str, manner: Manner, scratch: &Path) -> Result<Vec<i16>, Error> {
        let failed = |reason: String| Error::Voice { name: self.name(), reason };
        // The rest of the way to its formants is made by playing it faster.
        let (speed, pitch) = (manner.speed / manner.formants, manner.pitch / manner.formants);
        let pcm = match self.program {
            Program::Hibari => {
                let pcm = own.synthesize_at(text, speed, pitch).map_err(|error| failed(error.to_string()))?;
                wav::convert(&pcm, Voice::RATE_HZ, RATE_HZ).map_err(|error| failed(error.to_string()))?
            }
            Program::Flite => {
                let mut command = Command::new("flite");
                let stretch = format!("duration_stretch={}", 1.0 / speed);
                command.args(["-voice", &self.voice, "--setf", &stretch, "-t", text, "-o"]);
                run(command, scratch).map_err(failed)?
            }
            Program::Espeak => {
                let mut command = Command::new("espeak-ng");
                let (words, height) = ((160.0 * speed).clamp(80.0, 400.0), (50.0 * pitch).clamp(0.0, 99.0));
                command.args(["-v", &self.voice, "-s", &format!("{words:.0}"), "-p", &format!("{height:.0}")]);
                command.args([text, "-w"]);
                run(command, scratch).map_err(failed)?
            }
        };
        let pcm = trimmed(&warped(&pcm, manner.formants)).to_vec();
        if pcm.is_empty() { Err(failed(format!("it says nothing for {text:?}"))) } else { Ok(pcm) }
    }
}

/// Runs a program that takes the file it writes as its last argument.
fn run(mut command: Command, scratch: &Path) -> Result<Vec<i16>, String> {
    let file = scratch.join("said.wav");
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(status.to_string());
    }
    wav::read(&file, RATE_HZ).map_err(|error| error.to_string())
}

/// Without the silence at both ends: what is 40 dB below the loudest 10 ms.
pub fn trimmed(pcm: &[i16]) -> &[i16] {
    const FRAME: usize = RATE_HZ as usize / 100;
    let powers: Vec<f32> =
        pcm.chunks(FRAME).map(|frame| frame.iter().map(|x| f32::from(*x).powi(2)).sum::<f32>()).collect();
    let least = powers.iter().copied().fold(0.0, f32::max) * 1e-4;
    let loud = |power: &f32| *power > least;
    let (Some(first), Some(last)) = (powers.iter().position(loud), powers.iter().rposition(loud)) else {
        return &[];
    };
    &pcm[first * FRAME..((last + 1) * FRAME).min(pcm.len())]
}

#[cfg(test)]
mod tests {
    use super::super::held_out;
    use super::*;

    #[test]
    fn no_held_out_voice_is_used_for_training() {
        let training: Vec<String> = Speaker::for_training().iter().map(Speaker::name).collect();
        for name in held_out::VOICES {
            assert_eq!(Speaker::named(name).map(|speaker| speaker.name()).as_deref(), Some(name));
            assert!(!training.iter().any(|known| known == name), "{name}");
        }
        assert_eq!(Speaker::named("somebody"), None);
    }

    #[test]
    fn silence_at_both_ends_is_cut() {
        let mut pcm = vec![1; 1_600];
        pcm.extend([8_000, -8_000].repeat(800));
        pcm.extend([0; 3_200]);
        assert_eq!(trimmed(&pcm), [8_000, -8_000].repeat(800));
        assert_eq!(trimmed(&[0; 500]), [0_i16; 0]);
        assert_eq!(trimmed(&[]), [0_i16; 0]);
    }
}
