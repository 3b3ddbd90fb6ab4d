//! Errors of loading a voice and of synthesis.

use std::path::PathBuf;

/// Errors of [`Voice`](super::Voice).
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    /// A file of the voice cannot be read.
    #[error("voice file {path} cannot be read: {source}; `lorgnette models fetch` gets the voice's files")]
    Read {
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of the voice is too large.
    #[error("voice file {path} holds more than {bytes_max} bytes; it is not the file of this voice, fetch it again")]
    TooLarge {
        path: PathBuf,
        /// The most that is accepted, in bytes.
        bytes_max: u64,
    },
    /// A file of the voice has invalid content.
    #[error("voice file {path} is damaged: {reason}; fetch it again")]
    Damaged {
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// A clause is longer than the limit of one call.
    #[error("a clause may hold at most {chars_max} characters; split the text at sentence ends")]
    TooLong {
        /// The limit in characters.
        chars_max: usize,
    },
    /// A network failed or returned unusable values.
    #[error("the {model} network of the voice failed: {reason}")]
    Model {
        /// `acoustic`, `text` or `unknown-word`.
        model: &'static str,
        /// What was wrong.
        reason: String,
    },
}
