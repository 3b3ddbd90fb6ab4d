//! Speech recognition: Whisper, one shared model, a pool of states.
//!
//! [`Engine`] holds the weights, once per process. A [`Decoder`] is one state and runs on one thread; [`Scheduler`]
//! owns a few of them and a bounded queue. All calls block while they compute; the clock is read only to report how
//! long that took.

mod context;
mod cpu;
mod decoder;
mod elsewhere;
mod engine;
mod filter;
mod language;
pub mod normalise;
mod pair;
mod prompt;
mod scheduler;
mod transcription;
mod watch;
pub mod wer;

pub use context::{Context, SAMPLES_MAX};
pub use cpu::missing_instructions;
pub use decoder::Decoder;
pub use engine::{Config, Engine, check, is_multilingual};
pub use language::{Language, Spoken};
pub use pair::Pair;
pub use prompt::prompt_for;
pub use scheduler::{Busy, DecodeJob, Priority, Report, Scheduler, SchedulerConfig, Shed, Ticket, Transcribe};
pub use transcription::{Heard, Options, Pcm, Transcription};

/// Whisper's sample rate.
pub const SAMPLE_RATE_HZ: u32 = 16_000;

/// Why a transcription failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model file is damaged or unsupported.
    #[error("the speech recognition model cannot be used: {0}")]
    Model(String),
    /// whisper.cpp rejected a file that passed validation.
    #[error("whisper.cpp could not load {path}: {said}")]
    Load {
        /// The model file.
        path: String,
        /// Its error message.
        said: String,
    },
    /// The model does not support the configured language.
    #[error("the model {path} does not know the language {language:?}; {remedy}")]
    Language {
        /// As configured.
        language: String,
        /// The model file.
        path: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A decoding needs weights of many languages, and these are English.
    #[error(
        "the speech recognition model knows English only; `lorgnette models fetch whisper-base` brings one of many languages"
    )]
    EnglishOnly,
    /// The input is longer than Whisper's window.
    #[error("{seconds} s of sound in one utterance, at most {} s are recognised", context::SECONDS_MAX)]
    TooLong {
        /// How much came.
        seconds: u64,
    },
    /// Cancelled by its owner.
    #[error("the transcription was cancelled")]
    Cancelled,
    /// The queue was full, and another job came before it.
    #[error("the transcription gave way to another one")]
    Displaced,
    /// The scheduler is shutting down.
    #[error("speech recognition is shutting down")]
    ShuttingDown,
    /// whisper.cpp failed in a computation.
    #[error("whisper.cpp failed: {0}")]
    Inference(String),
    /// A recogniser on another machine failed.
    #[error("the recogniser elsewhere failed: {0}")]
    Elsewhere(String),
    /// A job panicked; the worker continues.
    #[error("speech recognition failed in an unforeseen way")]
    Panicked,
}
