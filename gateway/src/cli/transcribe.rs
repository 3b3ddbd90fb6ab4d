//! `lorgnette transcribe`.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use audio::{
    asr::{self, Context, Engine, Language, Options, Spoken},
    frame::RATE_HZ,
    wav,
};

use crate::config::Config;

/// Samples that Whisper decodes at once: 30 s.
const PIECE_SAMPLES: usize = 30 * RATE_HZ as usize;

/// Transcribe a WAV file.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// 16-bit WAV of any rate and number of channels.
    file: PathBuf,
    /// Compute the full context of 30 s instead of the shortest sufficient one.
    #[arg(long)]
    full: bool,
    /// Do not prepare recognition for the wake phrases.
    #[arg(long)]
    plain: bool,
    /// Use the second model, which decodes unclear commands once more.
    #[arg(long)]
    larger: bool,
    /// What is spoken: a two-letter code, or "auto". Default: as configured, else English.
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// Write it in English.
    #[arg(long)]
    translate: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let pcm = wav::read(&arguments.file, RATE_HZ)?;
    let model = match &config.hearing.second_model {
        Some(larger) if arguments.larger => larger,
        None if arguments.larger => {
            bail!(
                "there is no second model: `lorgnette models fetch whisper-base` brings one, unless `second_model` is \"\""
            )
        }
        _ => &config.hearing.model,
    };
    let engine = Engine::load(model, asr::Config::default())
        .with_context(|| format!("loading {}; run `lorgnette models fetch`", model.display()))?;
    let mut decoder = engine.decoder()?;
    let spoken = match &arguments.language {
        Some(given) => Some(Spoken::of(given).with_context(|| format!("`{given}` is no language that Whisper knows"))?),
        None => config.hearing.language,
    };
    let mut options = Options { spoken, translate: arguments.translate, ..Options::default() };
    if arguments.full {
        options.context = Context::Full;
    }
    if !arguments.plain {
        options.wake_phrases = config.conversation.wake_phrases.clone().into();
    }
    for piece in pcm.chunks(PIECE_SAMPLES) {
        let heard = decoder.transcribe(piece, &options)?;
        println!("{}", heard.text);
        eprintln!(
            "{:.2} s of sound in {:.0} ms, {:?}, {}, confidence {:.2}",
            heard.audio_us as f64 / 1e6,
            heard.decode_us as f64 / 1e3,
            heard.heard,
            heard.language.map_or("-", Language::code),
            heard.confidence()
        );
    }
    Ok(())
}
