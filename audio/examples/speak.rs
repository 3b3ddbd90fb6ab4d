//! Speaks a text into a WAV file, or measures the voice.
//!
//! `speak TEXT OUT.wav` writes the file; `speak --bench` prints the median time of a one-word reply, a short first
//! clause and a sentence of eleven words; `speak --list TEXTS.txt FOLDER` writes one file per line. `speak --ids
//! TEXTS.txt` prints the phoneme ids of each line, for comparison with other front ends. The voice is loaded from
//! `$LORGNETTE_MODELS/hibari`, else `~/.local/share/lorgnette/models/hibari`.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use audio::tts::Voice;

/// Runs of each sentence when measuring.
const RUNS: usize = 51;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let started = Instant::now();
    let voice = Voice::load(&voice_dir()?)?;
    println!("loaded in {} ms", started.elapsed().as_millis());
    match args[..] {
        ["--bench"] => bench(&voice),
        ["--list", texts, folder] => {
            let texts = std::fs::read_to_string(texts)?;
            let texts = texts.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            for (n, text) in texts.enumerate() {
                write(&Path::new(folder).join(format!("{n:03}.wav")), &voice.synthesize(text, 1.0)?)?;
            }
            Ok(())
        }
        ["--ids", texts] => {
            for text in std::fs::read_to_string(texts)?.lines() {
                println!("{text}\t{:?}", voice.phoneme_ids(text)?);
            }
            Ok(())
        }
        [text, out] => {
            let started = Instant::now();
            let pcm = voice.synthesize(text, 1.0)?;
            let spent = started.elapsed();
            write(Path::new(out), &pcm)?;
            let seconds = pcm.len() as f64 / f64::from(Voice::RATE_HZ);
            println!("{seconds:.2} s of speech in {:.1} ms: {out}", spent.as_secs_f64() * 1e3);
            Ok(())
        }
        _ => {
            Err("usage: speak TEXT OUT.wav | speak --bench | speak --list TEXTS.txt FOLDER | speak --ids TEXTS.txt"
                .into())
        }
    }
}

fn bench(voice: &Voice) -> Result<(), Box<dyn Error>> {
    for text in
        ["Done.", "Timer set.", "Okay, ten minutes.", "Your timer for the pasta will ring in exactly ten minutes."]
    {
        let mut front = Vec::new();
        let mut whole = Vec::new();
        let mut samples = 0;
        let cpu_before = cpu_us()?;
        for _ in 0..RUNS {
            let started = Instant::now();
            voice.phoneme_ids(text)?;
            front.push(started.elapsed().as_micros());
            let started = Instant::now();
            samples = voice.synthesize(text, 1.0)?.len();
            whole.push(started.elapsed().as_micros());
        }
        let cpu = (cpu_us()? - cpu_before) / RUNS as u64;
        front.sort_unstable();
        whole.sort_unstable();
        let seconds = samples as f64 / f64::from(Voice::RATE_HZ);
        println!(
            "{:>6} µs median, {:>6} µs best, {cpu:>6} µs of CPU (text {:>4} µs) for {seconds:.2} s: {text}",
            whole[RUNS / 2],
            whole[0],
            front[RUNS / 2]
        );
    }
    Ok(())
}

/// CPU time of all threads in µs, which is steadier than wall time on a busy machine. Linux only, 0 elsewhere.
fn cpu_us() -> Result<u64, Box<dyn Error>> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Ok(0);
    };
    let mut total = 0;
    for thread in threads {
        let stat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        total += stat.split_whitespace().next().unwrap_or("0").parse::<u64>()? / 1_000;
    }
    Ok(total)
}

fn voice_dir() -> Result<PathBuf, Box<dyn Error>> {
    let models = match (std::env::var_os("LORGNETTE_MODELS"), std::env::var_os("HOME")) {
        (Some(models), _) => PathBuf::from(models),
        (None, Some(home)) => PathBuf::from(home).join(".local/share/lorgnette/models"),
        (None, None) => return Err("set LORGNETTE_MODELS to the folder of the models".into()),
    };
    Ok(models.join("hibari"))
}

fn write(path: &Path, pcm: &[i16]) -> Result<(), hound::Error> {
    let format = hound::WavSpec {
        channels: 1,
        sample_rate: Voice::RATE_HZ,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = hound::WavWriter::create(path, format)?;
    pcm.iter().try_for_each(|sample| file.write_sample(*sample))?;
    file.finalize()
}
