//! Real speech, generated noise, and a run through the listener, shared by tests and benches.
#![allow(dead_code, reason = "each test and bench uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use audio::codec::{Codec, Encoder};
use audio::listener::{Config, Fact, Listener};
use audio::resample::Resampler;
use audio::vad::silero;

pub const RATE_HZ: u32 = 16_000;
pub const PACKET_US: u64 = 20_000;

/// Clips of read and commanded speech: two speakers reading, several giving commands.
pub const SPEECH: [(&str, &str); 12] = [
    ("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data/cards/001.wav"),
    ("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data/cards/002.wav"),
    ("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data/cards/003.wav"),
    ("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data/cards/005.wav"),
    ("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data/goforward.raw"),
    ("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data/something.raw"),
    (
        "pocketsphinx-testdata",
        "usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav",
    ),
    (
        "pocketsphinx-testdata",
        "usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav",
    ),
    (
        "pocketsphinx-testdata",
        "usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0890.wav",
    ),
    (
        "pocketsphinx-testdata",
        "usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0930.wav",
    ),
    ("alsa-utils", "usr/share/sounds/alsa/Front_Center.wav"),
    ("alsa-utils", "usr/share/sounds/alsa/Rear_Left.wav"),
];

pub const NOISE: (&str, &str) = ("alsa-utils", "usr/share/sounds/alsa/Noise.wav");

fn folder(variable: &str, name: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || {
            let home = std::env::var_os("HOME").unwrap_or_default();
            Path::new(&home).join(".local/share/lorgnette").join(name)
        },
        PathBuf::from,
    )
}

/// A file in the models folder.
pub fn model_path(file: &str) -> PathBuf {
    folder("LORGNETTE_MODELS", "models").join(file)
}

/// The shared voice detector.
pub fn model() -> Arc<silero::Model> {
    silero::Model::load(&model_path(silero::FILE_NAME)).unwrap_or_else(|error| panic!("{error}"))
}

/// A clip at 16 kHz.
pub fn clip((package, path): (&str, &str)) -> Vec<i16> {
    let file = folder("LORGNETTE_SPEECH", "speech").join(package).join(path);
    assert!(
        file.exists(),
        "{} is missing: `cargo xtask fetch` brings the speech of Debian package {package}",
        file.display()
    );
    if path.ends_with(".raw") {
        let bytes = std::fs::read(&file).unwrap();
        return bytes.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    }
    let mut reader = hound::WavReader::open(&file).unwrap();
    let pcm: Vec<i16> = reader.samples::<i16>().map(Result::unwrap).collect();
    convert(&pcm, reader.spec().sample_rate, RATE_HZ)
}

pub fn convert(pcm: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
    let mut out = Vec::new();
    Resampler::new(from_hz, to_hz).unwrap().push(pcm, &mut out);
    out
}

/// Seconds as samples at 16 kHz.
pub fn seconds(s: f64) -> usize {
    (s * f64::from(RATE_HZ)) as usize
}

/// A small generator (Steele and Vigna's SplitMix64), so that every run is the same.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Uniform in -1..1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// White noise of the given root mean square.
pub fn white(samples: usize, rms: f64, seed: u64) -> Vec<i16> {
    let mut random = Random(seed);
    // A uniform variable has a root mean square of 1/sqrt(3).
    (0..samples).map(|_| (random.uniform() * rms * 3f64.sqrt()) as i16).collect()
}

pub fn rms(pcm: &[i16]) -> f64 {
    let energy: f64 = pcm.iter().map(|s| f64::from(*s).powi(2)).sum();
    (energy / pcm.len().max(1) as f64).sqrt()
}

pub fn add(a: &[i16], b: &[i16]) -> Vec<i16> {
    a.iter().zip(b).map(|(a, b)| a.saturating_add(*b)).collect()
}

/// First and last voiced sample by energy alone, which shares nothing with the detectors: frames of
/// 10 ms within 30 dB of the loudest, at least three in a row.
pub fn voiced_span(pcm: &[i16]) -> (usize, usize) {
    const FRAME: usize = 160;
    let levels: Vec<f64> = pcm.chunks(FRAME).map(rms).collect();
    let threshold = levels.iter().fold(0.0, |a: f64, b| a.max(*b)) * 0.0316;
    let runs: Vec<usize> =
        (0..levels.len().saturating_sub(2)).filter(|i| levels[*i..i + 3].iter().all(|l| *l > threshold)).collect();
    (runs.first().unwrap() * FRAME, (runs.last().unwrap() + 3) * FRAME)
}

/// `pcm` (at 16 kHz) as packets of 20 ms.
pub fn packets(pcm: &[i16], codec: Codec, rate_hz: u32) -> Vec<Vec<u8>> {
    let pcm = convert(pcm, RATE_HZ, rate_hz);
    let mut encoder = Encoder::new(codec, rate_hz, 24_000).unwrap();
    pcm.chunks_exact(rate_hz as usize / 50).map(|frame| encoder.encode(frame).unwrap()).collect()
}

/// Result of an utterance that was closed after a given silence.
#[derive(Debug, Clone)]
pub struct Heard {
    pub utterance: u32,
    pub started_us: u64,
    /// Last voiced sample.
    pub ended_us: u64,
    /// Capture time of the newest sound when it was closed.
    pub closed_us: u64,
    pub pcm: Vec<i16>,
}

/// Feeds packets in real time (arriving 30 ms after their capture began) and closes each utterance
/// after `silence_us` of silence.
pub fn listen(listener: &mut Listener, packets: &[Vec<u8>], silence_us: u64) -> Vec<Heard> {
    let (mut heard, mut facts, mut started_us) = (Vec::new(), Vec::new(), 0);
    for (index, packet) in packets.iter().enumerate() {
        let capture_us = index as u64 * PACKET_US;
        listener.push_packet(index as u32, capture_us, packet, capture_us + 30_000, &mut facts).unwrap();
        for fact in facts.drain(..) {
            match fact {
                Fact::SpeechStarted { at_us, .. } => started_us = at_us,
                Fact::Silence { utterance, at_us, silence_us: so_far_us, .. }
                    if so_far_us >= silence_us && listener.utterance_pcm(utterance).is_some() =>
                {
                    let pcm = listener.utterance_pcm(utterance).unwrap().to_vec();
                    listener.close_utterance(utterance);
                    let closed_us = capture_us + PACKET_US;
                    heard.push(Heard { utterance, started_us, ended_us: at_us, closed_us, pcm });
                }
                _ => {}
            }
        }
    }
    heard
}

pub fn listener(codec: Codec, rate_hz: u32) -> Listener {
    Listener::new(Config { codec, rate_hz, ..Config::default() }, model()).unwrap()
}
