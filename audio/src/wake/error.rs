//! Errors of wake words, each with its remedy.

/// Why wake words cannot be recognised.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    /// A shared model is missing, unreadable or another one.
    #[error("cannot load the wake-word model {path}: {reason}; `lorgnette models fetch wake-embedding` brings it")]
    Model {
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The head of a phrase is missing, unreadable or no head.
    #[error("{path} is no usable head of a wake phrase: {reason}")]
    Head {
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A model or a head failed on a step.
    #[error("a wake-word model failed: {reason}")]
    Run {
        /// The runtime's error message.
        reason: String,
    },
}

impl Error {
    pub(super) fn run(reason: &dyn std::fmt::Display) -> Self {
        Self::Run { reason: reason.to_string() }
    }
}
