//! How fast this box is: the time of a known decode, and how many devices that is enough for.

use std::{fmt, fs, thread::available_parallelism};

use anyhow::{Context as _, Result, ensure};
use audio::{
    asr::{self, Engine},
    frame::RATE_HZ,
    tts::Voice,
};
use serde::Serialize;

use crate::config::Config;

/// What is decoded: as long as the clip of docs/measurements.md, 1.4 s, in the product's own voice.
const SENTENCE: &str = "Front center.";
/// Decodes of which the median counts; before them one that warms up.
const DECODES: usize = 5;
/// The run of docs/measurements.md ("Many devices") that this is compared with: on so many cores, with a decode of so many
/// milliseconds, so many pairs of glasses that speak a fifth of the time lost no sentence; twice as many did.
const REFERENCE_CORES: f64 = 2.0;
const REFERENCE_DECODE_MS: f64 = 215.0;
const REFERENCE_DEVICES: f64 = 50.0;
/// Factors of the estimate's uncertainty: the decode took up to 300 ms between those runs, and the limit is between 50 and
/// 100 devices.
const LOW: f64 = 0.7;
const HIGH: f64 = 1.6;
/// Time of the known decode from which on a box is slow, however few speak: a first decode that takes longer has no second one behind it
/// either.
const SLOW_MS: f64 = 1_500.0;

/// The speed of a box.
#[derive(Debug, Serialize)]
pub(super) struct Speed {
    /// Time of the known decode: median of five.
    decode_ms: f64,
    /// Processor cores.
    cores: usize,
    /// Load of the last minute, of all programs: it slows the decode down.
    load: f64,
    /// How many devices it carries of which each speaks a fifth of the time: estimate, and its bounds.
    devices: u32,
    devices_low: u32,
    devices_high: u32,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decode_ms, cores, load, devices, devices_low, devices_high } = self;
        write!(
            f,
            "speed    {cores} cores, {decode_ms:.0} ms for the known decode (load {load:.1}): enough for some {devices} pairs of \
             glasses that speak a fifth of the time ({devices_low} to {devices_high})"
        )?;
        if *decode_ms > SLOW_MS {
            let seconds = decode_ms / 1e3;
            write!(f, ". It is slow: even a single pair waits {seconds:.1} s and more until a sentence is recognised")?;
        }
        Ok(())
    }
}

/// Decodes the known sentence with the configured recogniser.
pub(super) fn measure(config: &Config) -> Result<Speed> {
    let pcm = Voice::load(&config.models_dir.join("hibari")).and_then(|voice| voice.synthesize(SENTENCE, 1.0))?;
    let pcm = at_16_khz(&pcm);
    let engine = Engine::load(&config.hearing.model, asr::Config::default())
        .with_context(|| format!("loading {}", config.hearing.model.display()))?;
    let mut decoder = engine.decoder()?;
    let mut times = Vec::with_capacity(DECODES);
    for round in 0..=DECODES {
        let heard = decoder.transcribe(pcm.as_slice(), &asr::Options::default())?;
        if round > 0 {
            times.push(heard.decode_us as f64 / 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let decode_ms = times.get(DECODES / 2).copied().unwrap_or_default();
    ensure!(decode_ms > 0.0, "the decode of a known sentence took no time");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let cores = available_parallelism().map_or(1, usize::from);
    Ok(estimate(decode_ms, cores, load))
}

fn estimate(decode_ms: f64, cores: usize, load: f64) -> Speed {
    let devices = REFERENCE_DEVICES * (cores as f64 / REFERENCE_CORES) * (REFERENCE_DECODE_MS / decode_ms);
    let whole = |count: f64| count.clamp(1.0, 10_000.0).round() as u32;
    Speed {
        decode_ms,
        cores,
        load,
        devices: whole(devices),
        devices_low: whole(devices * LOW),
        devices_high: whole(devices * HIGH),
    }
}

/// From the voice's 24 kHz: each two samples of three, by linear interpolation. Enough to be decoded; nobody hears it.
fn at_16_khz(pcm: &[i16]) -> Vec<i16> {
    const { assert!(Voice::RATE_HZ * 2 == RATE_HZ * 3, "two of three") };
    let (thirds, _) = pcm.as_chunks();
    thirds.iter().flat_map(|[one, two, three]| [*one, i16::midpoint(*two, *three)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_box_carries_what_was_measured_and_others_in_proportion() {
        let of = |decode_ms, cores| estimate(decode_ms, cores, 0.0).devices;
        assert_eq!((of(215.0, 2), of(107.5, 2), of(215.0, 4), of(430.0, 1)), (50, 100, 100, 13));
        assert_eq!((of(1e9, 1), of(1e-9, 64)), (1, 10_000));
        let speed = estimate(215.0, 2, 1.25);
        assert!((speed.devices_low, speed.devices_high) == (35, 80), "{speed}");
        assert!(speed.to_string().contains("some 50 pairs of glasses") && !speed.to_string().contains("slow"));
        let slow = estimate(5_100.0, 2, 0.0).to_string();
        assert!(slow.contains("slow: even a single pair waits 5.1 s"), "{slow}");
    }

    #[test]
    fn three_samples_become_two() {
        assert_eq!(at_16_khz(&[0, 10, 20, 30, 40, 50, 60]), [0, 15, 30, 45]);
    }
}
