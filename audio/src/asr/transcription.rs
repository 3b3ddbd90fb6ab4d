//! What a decoding is given and what comes of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Context, Language, Spoken};

/// Sound at 16 kHz, one channel.
#[derive(Clone, Copy, Debug)]
pub enum Pcm<'a> {
    /// 16-bit samples.
    I16(&'a [i16]),
    /// Samples from -1 to 1.
    F32(&'a [f32]),
}

impl<'a> From<&'a [i16]> for Pcm<'a> {
    fn from(samples: &'a [i16]) -> Self {
        Self::I16(samples)
    }
}

impl<'a> From<&'a [f32]> for Pcm<'a> {
    fn from(samples: &'a [f32]) -> Self {
        Self::F32(samples)
    }
}

impl<'a> Pcm<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::I16(samples) => samples.len(),
            Self::F32(samples) => samples.len(),
        }
    }

    pub(super) fn to_f32(self) -> Cow<'a, [f32]> {
        match self {
            Self::I16(samples) => samples.iter().map(|sample| f32::from(*sample) / 32_768.0).collect(),
            Self::F32(samples) => Cow::Borrowed(samples),
        }
    }
}

/// How to decode one utterance.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Wake phrases to expect ("hey mentra"). They are put into the prompt so that Whisper can write them.
    pub wake_phrases: Arc<[String]>,
    /// Sentences whose words are likely, put into the prompt before the wake phrases. They bias recognition, so the
    /// result must be checked.
    pub vocabulary: Arc<[String]>,
    /// Decode without the prompt although there are phrases. Used for a second decoding that shows whether a wake word
    /// was said or only echoed.
    pub without_prompt: bool,
    /// How much of the encoder to compute.
    pub context: Context,
    /// What is spoken; `None`: what is configured.
    pub spoken: Option<Spoken>,
    /// Where that is to be detected: of which languages it is one; empty: of all.
    pub among: Arc<[Language]>,
    /// Write what is said in English, whatever is spoken (Whisper's task "translate").
    pub translate: bool,
    /// Use the second model of a [`Pair`](super::Pair), if it has one.
    pub second_model: bool,
    /// Decode on this machine if its weights know how to, where another one is asked for all else: the text is a passing one, or
    /// is compared with that of this machine's own models.
    pub on_box: bool,
    /// Set to true by another thread to stop the decoding.
    pub abort: Option<Arc<AtomicBool>>,
}

/// Classification of the sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There is text.
    Speech,
    /// Under 100 ms; nothing was computed.
    TooShort,
    /// Too quiet to be speech; nothing was computed.
    Silence,
    /// Whisper found no speech, or wrote what it typically writes for noise.
    NoSpeech,
}

/// What one decode gave: the text, and the figures by which it was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcription {
    /// What was said; empty unless `heard` is [`Heard::Speech`].
    pub text: String,
    /// Classification of the sound.
    pub heard: Heard,
    /// Whisper's own probability, 0 to 1, that nobody spoke; 1 when nothing was decoded.
    pub no_speech_probability: f32,
    /// Mean natural logarithm of the tokens' probabilities, at most 0.
    pub mean_log_probability: f32,
    /// Natural logarithm of the probability of the last word, without what is written behind it; at most 0.
    pub last_word_log_probability: f32,
    /// Probability of an ellipsis behind the last word, 0 to 1: that of speech which breaks off there, if the prompt has
    /// sentences that do.
    pub breaks_off: f32,
    /// Length of the sound.
    pub audio_us: u64,
    /// Wall-clock time of the decoding.
    pub decode_us: u64,
    /// Encoder positions of the decoding that gave the text; 0 when nothing was computed.
    pub context: u32,
    /// Whether a first decoding looped and the full context was used.
    pub retried: bool,
    /// What was spoken: as it was told, or as it was detected. `None` when nothing was computed, or by a recogniser on another
    /// machine that does not tell what it detects.
    pub language: Option<Language>,
}

impl Transcription {
    /// Geometric mean of the tokens' probabilities, 0 to 1.
    pub fn confidence(&self) -> f32 {
        self.mean_log_probability.exp()
    }

    /// Probability of the last word, 0 to 1.
    pub fn last_word_confidence(&self) -> f32 {
        self.last_word_log_probability.exp()
    }

    pub(super) fn without_text(heard: Heard, audio_us: u64) -> Self {
        Self {
            text: String::new(),
            heard,
            no_speech_probability: 1.0,
            mean_log_probability: 0.0,
            last_word_log_probability: 0.0,
            breaks_off: 0.0,
            audio_us,
            decode_us: 0,
            context: 0,
            retried: false,
            language: None,
        }
    }
}
