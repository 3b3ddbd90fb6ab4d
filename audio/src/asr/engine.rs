//! The weights, loaded once and shared.

use std::path::Path;
use std::sync::{Arc, Once};

use whisper_rs::{WhisperContext, WhisperContextParameters};

use super::{Error, Options, Spoken, cpu};
use crate::meter::Meter;
use crate::models::{bf16, ggml};

/// How Whisper writes an ellipsis.
const ELLIPSES: [&str; 4] = ["...", " ...", "…", "...."];

/// Settings of recognition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// ISO 639-1 code of the spoken language, or "auto" to detect it. English models support only "en".
    pub language: String,
    /// Threads of one inference. More than one is slow on busy cores, because ggml's barrier spins.
    pub threads: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self { language: "en".into(), threads: 1 }
    }
}

/// A loaded model. Clones share it.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) context: WhisperContext,
    pub(super) config: Config,
    /// The configured language.
    pub(super) spoken: Spoken,
    pub(super) meter: Arc<Meter>,
    /// The tokens that are an ellipsis, and how many tokens there are.
    pub(super) ellipses: Vec<usize>,
    pub(super) vocabulary: usize,
}

impl Engine {
    /// Validates a GGML model file and loads it: about 0.1 s and 83 MB for tiny.
    ///
    /// # Errors
    /// [`Error::Model`], [`Error::Language`] or [`Error::Load`], each naming the file.
    pub fn load(path: &Path, config: Config) -> Result<Self, Error> {
        static HOOKS: Once = Once::new();
        // Discards whisper.cpp's messages, which can contain recognised text, instead of writing them to stderr.
        HOOKS.call_once(whisper_rs::install_logging_hooks);
        let spoken = checked(path, &config.language)?;
        let context = context_of(path)?;
        let ellipses =
            ELLIPSES.iter().filter_map(|written| match context.tokenize(written, written.len()).as_deref() {
                Ok([token]) => usize::try_from(*token).ok(),
                _ => None,
            });
        let ellipses = ellipses.collect();
        let vocabulary = usize::try_from(context.n_vocab()).unwrap_or_default();
        let shared = Shared { context, config, spoken, meter: Arc::default(), ellipses, vocabulary };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Counts the decodings of all its decoders.
    pub fn meter(&self) -> Arc<Meter> {
        self.shared.meter.clone()
    }

    /// Whether its weights are of many languages.
    pub fn is_multilingual(&self) -> bool {
        self.shared.context.is_multilingual()
    }

    /// Whether a decoding can be done with its weights.
    pub(super) fn can(&self, options: &Options) -> bool {
        let spoken = options.spoken.unwrap_or(self.shared.spoken);
        self.is_multilingual() || (spoken.is_english() && !options.translate)
    }
}

/// Checks that a GGML model file can recognise a language, without loading its weights. Takes a few milliseconds.
///
/// # Errors
/// [`Error::Model`] or [`Error::Language`], each naming the file.
pub fn check(path: &Path, language: &str) -> Result<(), Error> {
    checked(path, language).map(drop)
}

/// Whether the weights of a GGML model file are of many languages, without loading them.
///
/// # Errors
/// [`Error::Model`], naming the file.
pub fn is_multilingual(path: &Path) -> Result<bool, Error> {
    let header = ggml::validate(path).map_err(|error| Error::Model(error.to_string()))?;
    Ok(header.is_multilingual())
}

/// The weights of a model file, in the form that this processor multiplies fastest.
fn context_of(path: &Path) -> Result<WhisperContext, Error> {
    let converted = if cpu::multiplies_bf16() { bf16::of_file(path) } else { Ok(None) };
    let parameters = WhisperContextParameters::default();
    let loaded = match converted.map_err(|error| Error::Model(error.to_string()))? {
        Some(model) => WhisperContext::new_from_buffer_with_params(&model, parameters),
        None => WhisperContext::new_with_params(path, parameters),
    };
    loaded.map_err(|error| Error::Load { path: path.display().to_string(), said: error.to_string() })
}

fn checked(path: &Path, language: &str) -> Result<Spoken, Error> {
    let is_multilingual = is_multilingual(path)?;
    let remedy = match Spoken::of(language) {
        Some(spoken) if spoken.is_english() || is_multilingual => return Ok(spoken),
        Some(_) => {
            "it is English only: run `lorgnette models fetch whisper-base`, configure a multilingual model, or the \
             language \"en\""
        }
        None if is_multilingual => "use a two-letter code such as \"en\" or \"de\", or \"auto\"",
        None => {
            "it is English only, and this is no two-letter code such as \"en\": configure a multilingual model and one"
        }
    };
    Err(Error::Language { language: language.to_owned(), path: path.display().to_string(), remedy })
}
