//! Real speech with its transcripts, as `cargo xtask fetch` unpacks it. Never committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use audio::wav;

use super::g722;

/// Longest clip: what recognition takes as a whole, less a second.
const CLIP_S_MAX: usize = 29;
/// Rate of all clips.
pub const CLIP_HZ: u32 = 16_000;

/// A recording and what is said in it.
#[derive(Clone)]
pub struct Clip {
    /// Name without folder.
    pub name: String,
    /// What is said.
    pub text: String,
    /// Samples at 16 kHz.
    pub pcm: Vec<i16>,
    /// Whether settings were chosen on it.
    pub development: bool,
}

impl Clip {
    /// Length.
    pub fn seconds(&self) -> f64 {
        self.pcm.len() as f64 / f64::from(CLIP_HZ)
    }
}

/// `$LORGNETTE_SPEECH`, else `~/.local/share/lorgnette/speech`.
pub fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("LORGNETTE_SPEECH") {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME").context("neither LORGNETTE_SPEECH nor HOME is set")?;
    Ok(PathBuf::from(home).join(".local/share/lorgnette/speech"))
}

/// A file of a package.
pub fn path(package: &str, file: &str) -> Result<PathBuf> {
    let path = folder()?.join(package).join(file);
    ensure!(path.exists(), "{} is missing: run `cargo xtask fetch`", path.display());
    Ok(path)
}

/// Read speech: five sentences of a novel (a man), commands to a card game, and telephone prompts (a
/// woman) of two words or more. Recognition settings were chosen on the first two and on a quarter
/// of the prompts, by a hash of the name: those are marked.
pub fn all() -> Result<Vec<Clip>> {
    let mut clips = pocketsphinx()?;
    clips.extend(prompts()?);
    clips.retain(|clip| clip.pcm.len() <= CLIP_S_MAX * CLIP_HZ as usize);
    Ok(clips)
}

/// Lines such as `<s> ten of clubs </s> (001)`.
fn pocketsphinx() -> Result<Vec<Clip>> {
    let data = "usr/share/pocketsphinx/test/data";
    let mut clips = Vec::new();
    for (folder, list) in [("librivox", "transcription"), ("cards", "cards.transcription")] {
        let list = path("pocketsphinx-testdata", &format!("{data}/{folder}/{list}"))?;
        for line in fs::read_to_string(&list)?.lines() {
            let Some((text, name)) = line.rsplit_once('(') else {
                continue;
            };
            let name = name.trim_end().trim_end_matches(')').to_owned();
            let text = text.replace("<s>", "").replace("</s>", "").trim().to_owned();
            let file = list.with_file_name(format!("{name}.wav"));
            let pcm = wav::read(&file, CLIP_HZ)?;
            clips.push(Clip { name, text, pcm, development: true });
        }
    }
    Ok(clips)
}

fn prompts() -> Result<Vec<Clip>> {
    prompts_of("en", "en_US_f_Allison")
}

/// The telephone prompts of a language, by this voice, of two words or more.
pub fn prompts_of(language: &str, voice: &str) -> Result<Vec<Clip>> {
    let package = format!("asterisk-core-sounds-{language}-g722");
    let sounds = path(&package, &format!("usr/share/asterisk/sounds/{voice}"))?;
    let mut clips = Vec::new();
    for (name, text) in texts(language)? {
        let file = sounds.join(format!("{name}.g722"));
        if !file.exists() {
            continue;
        }
        let (pcm, development) = (g722::decode(&fs::read(&file)?), sha256_first(&name)? % 4 == 0);
        clips.push(Clip { name, text, pcm, development });
    }
    clips.retain(|clip| clip.pcm.len() <= CLIP_S_MAX * CLIP_HZ as usize);
    Ok(clips)
}

/// Names and texts of the telephone prompts of a language, of two words or more.
pub fn texts(language: &str) -> Result<Vec<(String, String)>> {
    let package = format!("asterisk-core-sounds-{language}");
    let list = path(&package, &format!("usr/share/doc/{package}/core-sounds-{language}.txt.gz"))?;
    let mut texts = Vec::new();
    for line in unpacked(&list)?.lines() {
        let Some((name, text)) = line.split_once(':') else {
            continue;
        };
        let (name, text) = (name.trim(), text.trim());
        // Descriptions of sounds stand in brackets; folders hold single letters and digits.
        if line.starts_with(';')
            || name.contains('/')
            || text.contains(['[', '('])
            || text.split_whitespace().count() < 2
        {
            continue;
        }
        texts.push((name.to_owned(), text.to_owned()));
    }
    Ok(texts)
}

fn sha256_first(name: &str) -> Result<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(name.as_bytes()).first().copied().context("a digest has bytes")
}

fn unpacked(path: &Path) -> Result<String> {
    let output = Command::new("gzip").arg("-dc").arg(path).output()?;
    ensure!(output.status.success(), "gzip cannot read {}", path.display());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
