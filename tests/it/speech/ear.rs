//! Transcribes the output of the glasses' speaker with the project's own recogniser.

use std::sync::OnceLock;

use audio::{
    asr::{Config, Engine, Options},
    frame::RATE_HZ,
    models, wav,
};
use firmware_sim::speaker::Heard;

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// Maximum samples that Whisper takes at once.
const PIECE: usize = 28 * RATE_HZ as usize;

/// The words of an audio recording, in lower case.
pub fn words(pcm: &[i16], rate_hz: u32) -> String {
    let engine = ENGINE.get_or_init(|| {
        let path = models::default_dir().join("whisper-tiny.en.bin");
        Engine::load(&path, Config::default()).expect("the model; `cargo xtask fetch` gets it")
    });
    let pcm = wav::convert(pcm, rate_hz, RATE_HZ).expect("a usual rate");
    let mut decoder = engine.decoder().expect("a state");
    let mut text = String::new();
    for piece in pcm.chunks(PIECE) {
        let heard = decoder.transcribe(piece, &Options::default()).expect("a transcription");
        text += &heard.text.to_lowercase();
        text.push(' ');
    }
    text
}

/// The words of all speeches of the list.
pub fn heard(speeches: &[Heard]) -> String {
    speeches.iter().filter(|speech| !speech.pcm.is_empty()).map(|speech| words(&speech.pcm, speech.rate_hz)).collect()
}
