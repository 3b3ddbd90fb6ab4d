//! Who speaks in training: the product's own voice at many pitches, and the voices of flite and espeak-ng where these
//! programs are installed; festival only judges. They are tools: nothing of them is shipped but what a head has learned.

use std::path::Path;
use std::process::{Command, Stdio};

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::noise::warped;
use super::{Error, accents};
use crate::frame::RATE_HZ;
use crate::tts::Voice;
use crate::wav;

/// Voices of flite that training may use.
const FLITE: [&str; 2] = ["slt", "kal16"];

/// Accents of espeak-ng that training may use.
const ACCENTS: [&str; 4] = ["en-us", "en-gb", "en-us-nyc", "en-gb-x-gbcwmd"];

/// Variants of them: other throats, and with `klatt` another way of synthesis. One that is not installed is the accent's
/// own voice.
const VARIANTS: [&str; 36] = [
    "m1", "m2", "m4", "m5", "m6", "m8", "f1", "f2", "klatt", "klatt2", "klatt3", "max", "michael", "edward2", "Gene",
    "Jacky", "linda", "norbert", "quincy", "shelby", "victor", "anika", "Alex", "Alicia", "Annie", "adam", "belinda",
    "grandma", "grandpa", "Denis", "Hugo", "Mike", "Lee", "travis", "zac", "iven",
];

/// How often each program speaks: the product's own voice most, since it can be varied most and is the most natural one.
const SHARES: [(Program, f32); 3] = [(Program::Hibari, 0.4), (Program::Flite, 0.15), (Program::Espeak, 0.45)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Hibari,
    Flite,
    Espeak,
    Festival,
}

/// One voice of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    program: Program,
    voice: String,
}

/// How something is said: each number is a factor, 1 as the voice is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manner {
    /// More than 1: faster.
    pub speed: f32,
    /// More than 1: higher.
    pub pitch: f32,
    /// How small the speaker is.
    pub formants: f32,
    /// Which other accent the speaker has ([`accents`]); `None`: the voice's own.
    pub accent: Option<u64>,
}

impl Manner {
    /// As the voice is.
    pub const PLAIN: Self = Self { speed: 1.0, pitch: 1.0, formants: 1.0, accent: None };

    /// Drawn at random: speed, pitch and formants around the voice's own, with an accent in half of the cases.
    pub fn random(random: &mut SmallRng) -> Self {
        let mut factor = |by: f32| ((random.random::<f32>() * 2.0 - 1.0) * by).exp();
        let (speed, pitch, formants) = (factor(0.25), factor(0.3), factor(0.14));
        let accent = random.random_bool(0.5).then(|| random.random());
        Self { speed, pitch, formants, accent }
    }
}

impl Speaker {
    /// Its name: `hibari`, `flite-VOICE`, `espeak-VOICE` or `festival-VOICE`.
    pub fn name(&self) -> String {
        match self.program {
            Program::Hibari => "hibari".to_owned(),
            Program::Flite => format!("flite-{}", self.voice),
            Program::Espeak => format!("espeak-{}", self.voice),
            Program::Festival => format!("festival-{}", self.voice),
        }
    }

    /// The product's own voice.
    pub fn own() -> Self {
        Self { program: Program::Hibari, voice: String::new() }
    }

    /// The speaker of this name; `None`: there is no such program.
    pub fn named(name: &str) -> Option<Self> {
        let of = |program, voice: &str| Some(Self { program, voice: voice.to_owned() });
        match name.split_once('-') {
            None if name == "hibari" => of(Program::Hibari, ""),
            Some(("flite", voice)) => of(Program::Flite, voice),
            Some(("espeak", voice)) => of(Program::Espeak, voice),
            Some(("festival", voice)) => of(Program::Festival, voice),
            _ => None,
        }
    }

    /// Every speaker for training whose program is installed.
    pub fn for_training() -> Vec<Self> {
        let of = |program: Program, voices: Vec<String>| -> Vec<Self> {
            let speakers = voices.into_iter().map(|voice| Self { program, voice });
            if is_installed(program, "") { speakers.collect() } else { Vec::new() }
        };
        let accents = ACCENTS.iter().map(|accent| (*accent).to_owned());
        let variants =
            ACCENTS.iter().flat_map(|accent| VARIANTS.iter().map(move |variant| format!("{accent}+{variant}")));
        let mut speakers = of(Program::Hibari, vec![String::new()]);
        speakers.extend(of(Program::Flite, FLITE.map(str::to_owned).to_vec()));
        speakers.extend(of(Program::Espeak, accents.chain(variants).collect()));
        speakers
    }

    /// Those of these names that are installed.
    pub fn installed(names: &[&'static str]) -> Vec<(&'static str, Self)> {
        let named = |name: &&'static str| Some((*name, Self::named(name).filter(Self::is_installed)?));
        names.iter().filter_map(named).collect()
    }

    /// One of `speakers`, of which there is at least one: first a program, then one of its voices.
    pub fn one_of<'a>(speakers: &'a [Self], random: &mut SmallRng) -> &'a Self {
        let of = |program: Program| speakers.iter().filter(move |speaker| speaker.program == program);
        let shares = SHARES.map(|(program, share)| (program, if of(program).next().is_some() { share } else { 0.0 }));
        let mut place = random.random::<f32>() * shares.iter().map(|(_, share)| share).sum::<f32>();
        let chosen = shares.iter().find(|(_, share)| {
            place -= share;
            place < 0.0
        });
        let its: Vec<&Self> = chosen.map_or_else(|| speakers.iter().collect(), |(program, _)| of(*program).collect());
        its[random.random_range(0..its.len())]
    }

    /// Whether its program is there, and with festival also its voice.
    pub fn is_installed(&self) -> bool {
        is_installed(self.program, &self.voice)
    }

    /// Says `text`: mono at 16 kHz, without silence at its ends. `scratch`: a folder for a file.
    ///
    /// # Errors
    /// The program is missing, fails, or says nothing.
    pub fn say(&self, own: &Voice, text: &str, manner: Manner, scratch: &Path) -> Result<Vec<i16>, Error> {
        let failed = |reason: String| Error::Voice { name: self.name(), reason };
        // The rest of the way to its formants is made by playing it faster.
        let (speed, pitch) = (manner.speed / manner.formants, manner.pitch / manner.formants);
        let text = &match manner.accent {
            None => text.to_owned(),
            Some(accent) if self.program == Program::Espeak => {
                format!("[[{}]]", accents::phonemes(&phonemes(&self.voice, text).map_err(failed)?, accent))
            }
            Some(accent) => accents::spelling(text, accent),
        };
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
            Program::Festival => {
                let said = scratch.join("said.txt");
                std::fs::write(&said, text).map_err(|error| failed(error.to_string()))?;
                let mut command = Command::new("text2wave");
                let stretch = format!("(Parameter.set 'Duration_Stretch {:.3})", 1.0 / speed);
                command.args(["-eval", &format!("(voice_{})", self.voice), "-eval", &stretch]).arg(said).arg("-o");
                run(command, scratch).map_err(failed)?
            }
        };
        let pcm = trimmed(&warped(&pcm, manner.formants)).to_vec();
        if pcm.is_empty() { Err(failed(format!("it says nothing for {text:?}"))) } else { Ok(pcm) }
    }
}

/// What espeak-ng says for `text`, in its notation.
fn phonemes(voice: &str, text: &str) -> Result<String, String> {
    let mut command = Command::new("espeak-ng");
    command.args(["-v", voice, "-q", "-x", text]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_installed(program: Program, voice: &str) -> bool {
    let mut command = match program {
        Program::Hibari => return true,
        Program::Flite => Command::new("flite"),
        Program::Espeak => Command::new("espeak-ng"),
        Program::Festival => Command::new("festival"),
    };
    if program == Program::Festival {
        let plain = voice.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        command.args(["-b", &format!("(exit (if (member '{voice} (voice.list)) 0 1))")]);
        return plain
            && command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    }
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
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
    use rand::SeedableRng as _;

    use super::super::held_out;
    use super::super::operating::TUNING;
    use super::*;

    #[test]
    fn no_held_out_voice_is_used_for_training() {
        let training: Vec<String> = Speaker::for_training().iter().map(Speaker::name).collect();
        let variant = |name: &str| name.split_once('+').map(|(_, variant)| variant.to_owned());
        for name in held_out::VOICES.into_iter().chain(held_out::FAMILIES).chain(TUNING) {
            assert_eq!(Speaker::named(name).map(|speaker| speaker.name()).as_deref(), Some(name));
            assert!(!training.iter().any(|known| known == name), "{name}");
            let throat = variant(name);
            assert!(throat.is_none() || training.iter().all(|known| variant(known) != throat), "{name}");
        }
        assert!(held_out::VOICES.iter().all(|name| !TUNING.contains(name)));
        assert_eq!(Speaker::named("somebody"), None);
    }

    #[test]
    fn the_own_voice_speaks_most_and_all_speak() {
        let names = ["hibari", "flite-slt", "flite-kal16", "espeak-en-us", "espeak-en-gb", "espeak-en-us+m1"];
        let speakers = names.map(|name| Speaker::named(name).unwrap());
        let random = &mut SmallRng::seed_from_u64(1);
        let said: Vec<String> = (0..2_000).map(|_| Speaker::one_of(&speakers, random).name()).collect();
        let count = |name: &str| said.iter().filter(|said| *said == name).count();
        assert!((700..900).contains(&count("hibari")), "{}", count("hibari"));
        assert!(names.iter().all(|name| count(name) > 100));
        assert_eq!(Speaker::one_of(&speakers[1..2], random).name(), "flite-slt");
        assert_eq!(Speaker::one_of(&[Speaker::named("festival-a").unwrap()], random).name(), "festival-a");
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
