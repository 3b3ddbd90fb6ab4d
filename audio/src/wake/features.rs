//! From sound to speech embeddings, step by step.
//!
//! Shapes: the first model takes the last 1,760 samples (480 old ones, 1,280 new ones; 16-bit values as floats, not
//! ±1.0) and gives eight rows of 32 mel bands in decibels, which are scaled by x / 10 + 2; the second takes the last 76
//! rows, 0.78 s, and gives an embedding. The first model limits its range by the loudest band of its input, so its
//! results depend on where the steps begin: heads are trained on steps, never on whole recordings.
//!
//! Rows have a floor ([`FLOOR`]). Digital silence, which is in front of made speech and behind a muted microphone, is
//! far below anything that a microphone gives; without the floor a head learns that silence instead of a phrase.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rten::{NodeId, RunOptions, ThreadPool};
use rten_tensor::{NdTensorView, Tensor};

use super::{EMBEDDING, EMBEDDINGS, Error, STEP_SAMPLES, WINDOW};
use crate::meter::Meter;

/// File of the first model in the models folder.
pub const MEL_FILE: &str = "wake-embedding/melspectrogram.onnx";

/// File of the second model in the models folder.
pub const EMBEDDING_FILE: &str = "wake-embedding/embedding_model.onnx";

/// Samples of the step before that the first model needs again.
const OLD_SAMPLES: usize = 480;

const MELS: usize = 32;
/// Rows of a step.
const NEW_ROWS: usize = 8;
/// Rows that the second model looks at.
const ROWS: usize = 76;
/// Least value in a row: the mean of white noise with a standard deviation of two 16-bit steps. Digital silence has -8,
/// a quiet microphone 3 to 5, speech 7 to 12.
pub const FLOOR: f32 = 3.0;

/// Options with one compute thread for all models that the calling thread runs.
fn on_one_thread() -> RunOptions {
    thread_local! {
        static POOL: Arc<ThreadPool> = Arc::new(ThreadPool::with_num_threads(1));
    }
    RunOptions::default().with_thread_pool(Some(POOL.with(Arc::clone)))
}

/// A model with one input and one output.
pub(super) struct Network {
    pub(super) model: rten::Model,
    input: NodeId,
    output: NodeId,
}

impl Network {
    /// # Errors
    /// It does not have one input and one output, in words.
    pub(super) fn new(model: rten::Model) -> Result<Self, String> {
        let (&[input], &[output]) = (model.input_ids(), model.output_ids()) else {
            let (inputs, outputs) = (model.input_ids().len(), model.output_ids().len());
            return Err(format!("it has {inputs} inputs and {outputs} outputs instead of one and one"));
        };
        Ok(Self { model, input, output })
    }

    /// # Errors
    /// The runtime's message.
    pub(super) fn run<const N: usize>(&self, shape: [usize; N], data: &[f32]) -> Result<Vec<f32>, String> {
        let view = NdTensorView::from_data(shape, data);
        let outputs = self.model.run(vec![(self.input, view.into())], &[self.output], Some(on_one_thread()));
        let output = outputs.map_err(|error| error.to_string())?.pop().ok_or("no output")?;
        let output: Tensor<f32> = output.try_into().map_err(|_| "the output is not f32")?;
        Ok(output.into_data())
    }
}

/// The two models, shared by all streams.
pub struct Models {
    mel: Network,
    embedding: Network,
    /// The embedding of silence: what a stream begins with.
    quiet: [f32; EMBEDDING],
    meter: Arc<Meter>,
}

impl Models {
    /// Loads both models from the models folder `dir`, and runs them once as a check.
    ///
    /// # Errors
    /// [`Error::Model`].
    pub fn load(dir: &Path) -> Result<Arc<Self>, Error> {
        let (mel, embedding) = (dir.join(MEL_FILE), dir.join(EMBEDDING_FILE));
        let mut models = Self {
            mel: network(&mel)?,
            embedding: network(&embedding)?,
            quiet: [0.0; EMBEDDING],
            meter: Arc::default(),
        };
        let wrong = |path: &PathBuf, error: &Error| Error::Model {
            path: path.display().to_string(),
            reason: format!("it does not compute what it should ({error})"),
        };
        models.rows(&[0; OLD_SAMPLES + STEP_SAMPLES]).map_err(|error| wrong(&mel, &error))?;
        models.quiet = models.embed(&[FLOOR; ROWS * MELS]).map_err(|error| wrong(&embedding, &error))?;
        Ok(Arc::new(models))
    }

    /// Counts the steps of all streams.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    fn rows(&self, samples: &[i16; OLD_SAMPLES + STEP_SAMPLES]) -> Result<[f32; NEW_ROWS * MELS], Error> {
        let samples = samples.map(f32::from);
        let decibels = self.mel.run([1, samples.len()], &samples).map_err(|reason| Error::run(&reason))?;
        let rows = <[f32; NEW_ROWS * MELS]>::try_from(decibels)
            .map_err(|got| Error::run(&format!("{} mel values instead of {}", got.len(), NEW_ROWS * MELS)))?;
        Ok(rows.map(|x| (x / 10.0 + 2.0).max(FLOOR)))
    }

    fn embed(&self, rows: &[f32]) -> Result<[f32; EMBEDDING], Error> {
        let embedding = self.embedding.run([1, ROWS, MELS, 1], rows).map_err(|reason| Error::run(&reason))?;
        <[f32; EMBEDDING]>::try_from(embedding)
            .map_err(|got| Error::run(&format!("an embedding of {} values instead of {EMBEDDING}", got.len())))
    }
}

fn network(path: &Path) -> Result<Network, Error> {
    let failed = |reason: String| Error::Model { path: path.display().to_string(), reason };
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let model = rten::ModelOptions::with_all_ops().prepack_weights(true).load(bytes);
    Network::new(model.map_err(|error| failed(error.to_string()))?).map_err(failed)
}

/// One stream's state: what the models need of the past.
pub struct Stream {
    models: Arc<Models>,
    samples: [i16; OLD_SAMPLES + STEP_SAMPLES],
    rows: Vec<f32>,
    window: Vec<f32>,
}

impl Stream {
    /// A stream at its start, with silence before it.
    pub fn new(models: Arc<Models>) -> Self {
        let mut stream = Self {
            samples: [0; OLD_SAMPLES + STEP_SAMPLES],
            rows: vec![0.0; ROWS * MELS],
            window: vec![0.0; WINDOW],
            models,
        };
        stream.reset();
        stream
    }

    /// Resets to the start of a stream.
    pub fn reset(&mut self) {
        self.samples.fill(0);
        self.rows.fill(FLOOR);
        for embedding in self.window.chunks_exact_mut(EMBEDDING) {
            embedding.copy_from_slice(&self.models.quiet);
        }
    }

    /// Takes the next 80 ms; returns the last 16 embeddings, oldest first.
    ///
    /// # Errors
    /// [`Error::Run`]; call [`reset`](Self::reset) then.
    pub fn push(&mut self, pcm: &[i16; STEP_SAMPLES]) -> Result<&[f32], Error> {
        let meter = self.models.meter();
        meter.measure(|| self.run(pcm))?;
        Ok(&self.window)
    }

    fn run(&mut self, pcm: &[i16; STEP_SAMPLES]) -> Result<(), Error> {
        self.samples.copy_within(STEP_SAMPLES.., 0);
        self.samples[OLD_SAMPLES..].copy_from_slice(pcm);
        let new = self.models.rows(&self.samples)?;
        self.rows.copy_within(new.len().., 0);
        self.rows[(ROWS - NEW_ROWS) * MELS..].copy_from_slice(&new);
        let embedding = self.models.embed(&self.rows)?;
        self.window.copy_within(EMBEDDING.., 0);
        self.window[(EMBEDDINGS - 1) * EMBEDDING..].copy_from_slice(&embedding);
        Ok(())
    }

    /// The last 16 embeddings, oldest first.
    pub fn window(&self) -> &[f32] {
        &self.window
    }

    /// Bytes of this state.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + (self.rows.capacity() + self.window.capacity()) * size_of::<f32>()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // No sound remains in memory.
        self.reset();
    }
}
