//! The head of a phrase: from the last 16 embeddings to the probability that the phrase just ended.
//!
//! Any ONNX model with one input [1, 16, 96] and one output of one number from 0 to 1 is a head. A file may come from
//! anywhere: it is read strictly, only operators that classifiers are made of are known, nothing that loops or branches,
//! and what they compute is bounded before anything runs ([`onnx`](super::onnx)).
//!
//! Settings travel in the file's own metadata (`lorgnette.phrase`, `lorgnette.threshold`, `lorgnette.patience`); a head
//! without them is one for the words of its file name, with the defaults.

use std::fs::File;
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use rten::{ModelOptions, OpRegistry, op_types as op};

use super::features::Network;
use super::onnx::Model;
use super::{EMBEDDING, EMBEDDINGS, Error, WINDOW};

/// Largest file. Known heads have 50 KB to 1.3 MB.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Longest phrase in a file, in characters.
pub const PHRASE_CHARS_MAX: usize = 64;

/// Names of the settings in a file's metadata.
pub(super) const PHRASE_KEY: &str = "lorgnette.phrase";
pub(super) const THRESHOLD_KEY: &str = "lorgnette.threshold";
pub(super) const PATIENCE_KEY: &str = "lorgnette.patience";

/// Most steps in a row that a head may want: a phrase does not last longer in its window.
const PATIENCE_MAX: u32 = 8;

/// When a head's scores count as its phrase.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The words, lower case.
    pub phrase: String,
    /// Least score, 0 to 1.
    pub threshold: f32,
    /// Steps in a row with such a score.
    pub patience: u32,
}

impl Settings {
    /// Those of a phrase, with the defaults.
    pub fn of(phrase: impl Into<String>) -> Self {
        Self { phrase: phrase.into(), threshold: 0.5, patience: 2 }
    }

    fn check(self) -> Result<Self, String> {
        let chars = self.phrase.chars().count();
        if chars == 0 || chars > PHRASE_CHARS_MAX || self.phrase.chars().any(char::is_control) {
            return Err(format!(
                "its phrase has {chars} characters; 1 to {PHRASE_CHARS_MAX} printable ones are allowed"
            ));
        }
        if !(self.threshold > 0.0 && self.threshold < 1.0) {
            return Err(format!("its threshold is {}; it must be between 0 and 1", self.threshold));
        }
        if !(1..=PATIENCE_MAX).contains(&self.patience) {
            return Err(format!("its patience is {}; it must be 1 to {PATIENCE_MAX} steps", self.patience));
        }
        Ok(self)
    }
}

/// The head of one phrase, shared by all streams.
pub struct Head {
    network: Network,
    settings: Settings,
}

impl Head {
    /// Loads a head from `path` and runs it once as a check.
    ///
    /// # Errors
    /// [`Error::Head`] in words: a file that is missing, too large, truncated, of other shapes, with operators that are
    /// not known, or with settings out of their range.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |reason: String| Error::Head { path: path.display().to_string(), reason };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let words = stem.replace(['_', '-'], " ");
        Self::of(&bytes, &words).map_err(failed)
    }

    /// A head from the bytes of its file; `words` is its phrase if the file names none.
    ///
    /// # Errors
    /// In words, as [`load`](Self::load).
    pub fn of(bytes: &[u8], words: &str) -> Result<Arc<Self>, String> {
        if bytes.len() as u64 > BYTES_MAX {
            return Err(format!("it has more than {BYTES_MAX} bytes"));
        }
        let model = Model::read(bytes)?;
        let output = model.bounded()?;
        if output.iter().product::<usize>() != 1 {
            return Err(format!("its output has {} values instead of one", output.iter().product::<usize>()));
        }
        let settings = settings(&model, words)?.check()?;
        let file = model.file(&[1, EMBEDDINGS, EMBEDDING], &output);
        // The runtime is not written for files of strangers.
        let load = || {
            let model = ModelOptions::with_ops(operators()).load(file).map_err(|error| error.to_string())?;
            let head = Self { settings, network: Network::new(model)? };
            for window in [vec![0.0; WINDOW], (0..WINDOW).map(|n| (n as f32).sin() * 30.0).collect()] {
                head.score_of(&window)?;
            }
            Ok(Arc::new(head))
        };
        catch_unwind(AssertUnwindSafe(load)).unwrap_or_else(|_| Err("it is damaged".to_owned()))
    }

    /// Its phrase, and when its scores count.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Probability that the phrase just ended, for the last embeddings of a stream.
    ///
    /// # Errors
    /// [`Error::Run`].
    pub fn score(&self, window: &[f32]) -> Result<f32, Error> {
        self.score_of(window).map_err(|reason| Error::run(&reason))
    }

    fn score_of(&self, window: &[f32]) -> Result<f32, String> {
        if window.len() != WINDOW {
            return Err(format!("{} values instead of {WINDOW}", window.len()));
        }
        let values = self.network.run([1, EMBEDDINGS, EMBEDDING], window)?;
        match values.as_slice() {
            [score] if (0.0..=1.0).contains(score) => Ok(*score),
            [score] => Err(format!("its output is {score}; it must be a probability")),
            other => Err(format!("its output has {} values instead of one", other.len())),
        }
    }
}

fn settings(model: &Model, words: &str) -> Result<Settings, String> {
    let field = |key| model.metadata(key);
    let mut settings = Settings::of(field(PHRASE_KEY).unwrap_or(words).trim().to_lowercase());
    if let Some(text) = field(THRESHOLD_KEY) {
        settings.threshold = text.parse().map_err(|_| format!("{THRESHOLD_KEY} is no number"))?;
    }
    if let Some(text) = field(PATIENCE_KEY) {
        settings.patience = text.parse().map_err(|_| format!("{PATIENCE_KEY} is no whole number"))?;
    }
    Ok(settings)
}

/// What classifiers are made of.
fn operators() -> OpRegistry {
    OpRegistry::with_ops(&[
        &op::Add,
        &op::BatchNormalization,
        &op::Cast,
        &op::Clip,
        &op::Concat,
        &op::Conv,
        &op::Div,
        &op::Flatten,
        &op::Gather,
        &op::Gemm,
        &op::GlobalAveragePool,
        &op::GRU,
        &op::Identity,
        &op::LayerNormalization,
        &op::LeakyRelu,
        &op::LSTM,
        &op::MatMul,
        &op::Mul,
        &op::Pow,
        &op::ReduceMean,
        &op::Relu,
        &op::Reshape,
        &op::Shape,
        &op::Sigmoid,
        &op::Slice,
        &op::Softmax,
        &op::Sqrt,
        &op::Squeeze,
        &op::Sub,
        &op::Tanh,
        &op::Transpose,
        &op::Unsqueeze,
    ])
}
