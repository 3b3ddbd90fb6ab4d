//! Embeddings of real speech for training wake words: `wake_negatives varied|plain TARGET FOLDER...` reads all WAV and
//! G.722 files in the folders and writes one file. `varied`: for training, by other microphones in other places, as
//! training hears its own voices. `plain`: as it was recorded, for judging. `cargo xtask wake-speech` runs it on the
//! packages that it names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use audio::wake::Models;
use audio::wake::train::clips::{Clip, Scene};
use audio::wake::train::{noise, stored};
use audio::{models, wav};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

#[allow(dead_code, reason = "benches use all of it")]
#[path = "../../tests/benches/common/g722.rs"]
mod g722;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "wake_negatives varied|plain TARGET FOLDER...";
    let varied = match arguments.next().as_deref().and_then(Path::to_str) {
        Some("varied") => true,
        Some("plain") => false,
        _ => return Err(usage.into()),
    };
    let target = arguments.next().ok_or(usage)?;
    let mut files = Vec::new();
    for folder in arguments {
        find(&folder, &mut files)?;
    }
    files.sort();
    let models = Models::load(&models::default_dir())?;
    let (mut clips, mut seconds) = (Vec::new(), 0.0);
    for (index, file) in files.iter().enumerate() {
        let pcm = read(file)?;
        seconds += pcm.len() as f64 / 16_000.0;
        clips.push(embedded(&pcm, varied.then_some(index as u64), &models)?);
        if index % 50 == 0 {
            eprintln!("{index} of {} files", files.len());
        }
    }
    stored::write(&target, &clips)?;
    println!("{} files, {:.1} minutes -> {}", files.len(), seconds / 60.0, target.display());
    Ok(())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "wav" || extension == "g722") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<i16>, Box<dyn std::error::Error>> {
    if file.extension().is_some_and(|extension| extension == "g722") {
        return Ok(g722::decode(&std::fs::read(file)?));
    }
    Ok(wav::read(file, 16_000)?)
}

/// How often there is noise in speech for training.
const NOISY: f64 = 0.4;

/// Half a second of silence in front and behind, as a listener leaves it.
fn embedded(pcm: &[i16], seed: Option<u64>, models: &Arc<Models>) -> Result<Clip, audio::wake::Error> {
    let mut samples = vec![0.0; 8_000];
    samples.extend(pcm.iter().map(|x| f32::from(*x)));
    samples.resize(samples.len() + 8_000, 0.0);
    let scene = Scene { samples, phrase_end: None };
    let random = seed.map(SmallRng::seed_from_u64);
    let heard = random.map(|mut random| scene.clone().varied(&noise::FOR_TRAINING, NOISY, &mut random));
    Clip::of(&heard.unwrap_or(scene), models)
}
