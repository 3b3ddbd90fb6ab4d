//! Three synthetic speakers; two of them are programs that tests use as tools, and no part of the product.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use audio::tts::Voice;
use audio::wav;

use super::clips::CLIP_HZ;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The product's own voice.
    Hibari,
    /// `flite`, voice `slt` (a woman).
    Flite,
    /// `espeak-ng`, voice `en-us`.
    Espeak,
}

impl Speaker {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hibari, Self::Flite, Self::Espeak];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hibari => "hibari",
            Self::Flite => "flite",
            Self::Espeak => "espeak-ng",
        }
    }

    /// Says a text: samples at 16 kHz.
    pub fn say(self, text: &str, folder: &Path) -> Result<Vec<i16>> {
        let file = folder.join(format!("{}.wav", self.name()));
        let mut command = match self {
            Self::Hibari => {
                let voice = Voice::load(&audio::models::default_dir().join("hibari"))?;
                let pcm = voice.synthesize(text, 1.0)?;
                return Ok(wav::convert(&pcm, Voice::RATE_HZ, CLIP_HZ)?);
            }
            Self::Flite => {
                let mut command = Command::new("flite");
                command.args(["-voice", "slt", "-t", text, "-o"]).arg(&file);
                command
            }
            Self::Espeak => {
                let mut command = Command::new("espeak-ng");
                command.args(["-v", "en-us", "-s", "150", "-w"]).arg(&file).arg(text);
                command
            }
        };
        let done = command.status().with_context(|| format!("{}: `apt-get install {0}`", self.name()))?;
        ensure!(done.success(), "{} failed", self.name());
        Ok(wav::read(&file, CLIP_HZ)?)
    }
}
