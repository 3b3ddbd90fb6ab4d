//! Acoustic wake words: whether a phrase was said, by its sound.
//!
//! Two shared models turn sound into speech embeddings, 96 numbers every 80 ms ([`features`]); a small head per phrase
//! looks at the last 16 of them, about two seconds, and says how likely it is that its phrase just ended ([`head`]); a
//! detector wants several such answers in a row, and rests after a detection ([`detector`]). A detection is a reason
//! to look at the text, no more: near-identical words score high as well.
//!
//! A step costs more than a millisecond. It runs on a compute thread, never in the task of a device, and only while
//! the voice detector hears a voice: a stream begins anew with each utterance, as if silence had been before.
//!
//! Source of the design: openWakeWord (Scripka 2023), after "Training Keyword Spotters with Limited and Synthesized
//! Speech Data" (Lin et al. 2020), whose embedding model this is.

pub mod detector;
mod error;
pub mod features;
pub mod head;
pub mod onnx;
#[cfg(all(feature = "tts", feature = "opus"))]
pub mod train;

pub use detector::{Detection, Detector};
pub use error::Error;
pub use features::{Models, Stream};
pub use head::Head;

/// New samples in one step: 80 ms at 16 kHz.
pub const STEP_SAMPLES: usize = 1_280;

/// Numbers that the shared models compute for each step.
pub const EMBEDDING: usize = 96;

/// Embeddings that a head looks at: 1.28 s of steps, and 0.78 s that the first of them covers.
pub const EMBEDDINGS: usize = 16;

/// Numbers that a head looks at, oldest embedding first.
pub const WINDOW: usize = EMBEDDINGS * EMBEDDING;
