//! Prints what is said in WAV files (16 kHz, or converted), with times and what the filter saw.
//!
//! `transcribe [--full] [--wake PHRASE]... [--repeat N] FILE.wav...`

use std::path::Path;

use audio::asr::{Config, Context, Engine, Options};
use audio::models::{self, catalogue};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let mut phrases = Vec::new();
    let mut repeat = 1;
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--full" => options.context = Context::Full,
            "--wake" => phrases.push(arguments.next().ok_or("--wake needs a phrase")?),
            "--repeat" => {
                repeat = arguments
                    .next()
                    .ok_or("--repeat needs a number")?
                    .parse::<usize>()?
                    .max(1)
            }
            _ => files.push(argument),
        }
    }
    options.wake_phrases = phrases.into();
    let entry = catalogue::find(catalogue::WHISPER_TINY_EN)?;
    let engine = Engine::load(
        &models::path_of(entry, &models::default_dir()),
        Config::default(),
    )?;
    let mut decoder = engine.decoder()?;
    for file in files {
        let samples = read(Path::new(&file))?;
        let mut times = Vec::new();
        let mut heard = decoder.transcribe(samples.as_slice(), &options)?;
        times.push(heard.decode_us);
        for _ in 1..repeat {
            heard = decoder.transcribe(samples.as_slice(), &options)?;
            times.push(heard.decode_us);
        }
        times.sort_unstable();
        println!(
            "{file}\t{:.2} s\t{:.1} ms\tcontext {}{}\t{:?}\tno speech {:.3}\tlog prob {:.3}\t{}",
            heard.audio_us as f64 / 1e6,
            times[times.len() / 2] as f64 / 1e3,
            heard.context,
            if heard.retried { " (retried)" } else { "" },
            heard.heard,
            heard.no_speech_probability,
            heard.mean_log_probability,
            heard.text
        );
    }
    Ok(())
}

/// A mono 16-bit file at 16 kHz, or at a whole multiple of it, of which every n-th sample is taken.
fn read(path: &Path) -> Result<Vec<i16>, Box<dyn std::error::Error>> {
    let mut wav = hound::WavReader::open(path)?;
    let spec = wav.spec();
    if spec.channels != 1 || spec.bits_per_sample != 16 || !spec.sample_rate.is_multiple_of(16_000)
    {
        return Err(format!(
            "{}: 16-bit mono at 16 kHz or a multiple is needed, this is {spec:?}",
            path.display()
        )
        .into());
    }
    let step = (spec.sample_rate / 16_000) as usize;
    Ok(wav
        .samples::<i16>()
        .step_by(step)
        .collect::<Result<_, _>>()?)
}
