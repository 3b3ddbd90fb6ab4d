//! Transcribes 16-bit mono WAV files at 16 kHz; prints the text with times and the filter's values.
//!
//! `transcribe [--full] [--wake PHRASE]... [--repeat N] [--list FILE.tsv] FILE.wav...`
//!
//! A list has one file and its reference text per line, separated by a tab. With it, the word error rate and the median
//! times by length are printed at the end.

use std::path::Path;

use audio::asr::wer::{Wer, wer};
use audio::asr::{Config, Context, Engine, Options};
use audio::models::{self, catalogue};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let mut phrases = Vec::new();
    let mut repeat = 1;
    let mut files: Vec<(String, Option<String>)> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--full" => options.context = Context::Full,
            "--wake" => phrases.push(value()?),
            "--repeat" => repeat = value()?.parse::<usize>()?.max(1),
            "--list" => files.extend(std::fs::read_to_string(value()?)?.lines().filter_map(|line| {
                let (file, text) = line.split_once('\t')?;
                Some((file.to_owned(), Some(text.to_owned())))
            })),
            _ => files.push((argument, None)),
        }
    }
    options.wake_phrases = phrases.into();
    let entry = catalogue::find(catalogue::WHISPER_TINY_EN)?;
    let engine = Engine::load(&models::path_of(entry, &models::default_dir()), Config::default())?;
    let mut decoder = engine.decoder()?;
    let mut total = Wer::default();
    let mut by_length: [Vec<u64>; 4] = Default::default();
    for (file, reference) in &files {
        let samples = read(Path::new(file))?;
        let mut heard = decoder.transcribe(samples.as_slice(), &options)?;
        let mut times = vec![heard.decode_us];
        for _ in 1..repeat {
            heard = decoder.transcribe(samples.as_slice(), &options)?;
            times.push(heard.decode_us);
        }
        let decode_us = median(&mut times);
        let class = [3_000_000, 5_000_000, 9_000_000].iter().filter(|limit| heard.audio_us > **limit).count();
        by_length[class].push(decode_us);
        let errors = reference.as_ref().map(|reference| wer(reference, &heard.text));
        total += errors.unwrap_or_default();
        println!(
            "{file}\t{:.2} s\t{:.1} ms\tcontext {}{}\t{:?}\tno speech {:.3}\tlog prob {:.3}\tedits {}\t{}",
            heard.audio_us as f64 / 1e6,
            decode_us as f64 / 1e3,
            heard.context,
            if heard.retried { " (retried)" } else { "" },
            heard.heard,
            heard.no_speech_probability,
            heard.mean_log_probability,
            errors.map_or(0, |errors| errors.edits),
            heard.text
        );
    }
    for (name, times) in ["up to 3 s", "3 to 5 s", "5 to 9 s", "over 9 s"].iter().zip(&mut by_length) {
        if !times.is_empty() {
            println!("{name}: {} clips, median {:.1} ms", times.len(), median(times) as f64 / 1e3);
        }
    }
    println!("words {}, edits {}, word error rate {:.2} %", total.words, total.edits, total.rate() * 100.0);
    Ok(())
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn read(path: &Path) -> Result<Vec<i16>, Box<dyn std::error::Error>> {
    let mut wav = hound::WavReader::open(path)?;
    let spec = wav.spec();
    if spec.channels != 1 || spec.bits_per_sample != 16 || spec.sample_rate != 16_000 {
        return Err(format!("{}: 16-bit mono at 16 kHz is needed, this is {spec:?}", path.display()).into());
    }
    Ok(wav.samples::<i16>().collect::<Result<_, _>>()?)
}
