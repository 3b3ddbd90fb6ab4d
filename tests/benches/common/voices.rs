//! Synthetic speakers; but for the product's own they are programs that tests use as tools, and no part of the product.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use audio::codec::{Codec, Decoder, Encoder};
use audio::tts::Voice;
use audio::wav;
use firmware_sim::random::Random;

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
    /// A woman's voice, American English.
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

    /// As options and printed results name it.
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

/// Bits a second of the glasses' microphone.
const BITRATE: u32 = 24_000;
/// 20 ms at 16 kHz.
const PACKET_SAMPLES: usize = CLIP_HZ as usize / 50;

/// As it comes out of a device's microphone path, coded as Opus, with silence around it: samples in front, as the listener's pre-roll
/// leaves them, and at least so many behind, as a pause does.
pub fn coded(clean: &[i16], front: usize, behind: usize) -> Result<Vec<i16>> {
    let mut pcm = vec![0; front];
    pcm.extend_from_slice(clean);
    pcm.resize((pcm.len() + behind).next_multiple_of(PACKET_SAMPLES), 0);
    let mut encoder = Encoder::new(Codec::Opus, CLIP_HZ, BITRATE)?;
    let mut decoder = Decoder::new(Codec::Opus, CLIP_HZ)?;
    let mut out = Vec::new();
    for packet in pcm.chunks_exact(PACKET_SAMPLES) {
        decoder.decode(&encoder.encode(packet)?, &mut out)?;
    }
    Ok(out)
}

/// With white noise, so many decibels below the mean level of what is said; the same each time.
pub fn noisy(clean: &[i16], below_db: f32) -> Vec<i16> {
    let power = clean.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / clean.len().max(1) as f64;
    // Uniform noise has a third of the power of its largest sample.
    let largest = (3.0 * power).sqrt() * 10f64.powf(-f64::from(below_db) / 20.0);
    let mut random = Random::new(7);
    let mut sample = |clean: &i16| {
        let noise = (random.below(2_000_001) as f64 / 1e6 - 1.0) * largest;
        (f64::from(*clean) + noise).clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16
    };
    clean.iter().map(&mut sample).collect()
}
