//! The decision: Silero VAD v6 through rten. One shared model, a small state per stream.
//!
//! Shapes: input `input` [1, 576] (64 samples of context and 512 new ones, ±1.0) and `state` [2, 1, 128]; output a
//! probability of speech [1, 1] and the next state.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::{NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use crate::meter::Meter;
use crate::scheduling::Scheduling;

/// New samples in one window: 32 ms at 16 kHz.
pub const WINDOW_SAMPLES: usize = 512;

/// Samples of the previous window that precede the new ones.
const CONTEXT_SAMPLES: usize = 64;

const STATE_SHAPE: [usize; 3] = [2, 1, 128];
const STATE_LEN: usize = 256;

/// File name of the model in the models folder.
pub const FILE_NAME: &str = "silero-v6-16k.onnx";

/// Most inference threads; each stream always uses the same one.
const THREADS_MAX: usize = 4;

/// Why the model could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is missing, unreadable or not a model.
    #[error("cannot load the voice detector {path}: {reason}; `lorgnette models fetch` brings it")]
    Load {
        /// File of the model.
        path: String,
        /// The loader's error message.
        reason: String,
    },
    /// The file is a model of another shape.
    #[error("{what} is not the Silero v6 voice detector for 16 kHz; `lorgnette models fetch` brings it")]
    Shape {
        /// The file, and what it lacks.
        what: String,
    },
    /// The model failed on a window.
    #[error("the voice detector failed: {reason}")]
    Run {
        /// The runtime's error message.
        reason: String,
    },
}

/// The model, shared by all streams.
pub struct Model {
    model: rten::Model,
    input: NodeId,
    state: NodeId,
    probability: NodeId,
    next_state: NodeId,
    /// Single-threaded pools: the model is far too small to split, and a run on a pool of several threads would wake
    /// them all.
    pools: Vec<Arc<ThreadPool>>,
    streams: AtomicUsize,
    meter: Arc<Meter>,
    gate_meter: Arc<Meter>,
}

impl Model {
    /// Loads the model from `path` and runs it once as a check.
    ///
    /// # Errors
    /// [`Error::Load`] or [`Error::Shape`].
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |reason: String| Error::Load { path: path.display().to_string(), reason };
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let model = rten::Model::load(bytes).map_err(|error| failed(error.to_string()))?;
        let (inputs, outputs) = (model.input_ids().to_vec(), model.output_ids().to_vec());
        let named = |ids: &[NodeId], part: &str| {
            ids.iter().copied().find(|id| {
                let info = model.node_info(*id);
                info.and_then(|info| info.name().map(|name| name.to_lowercase()))
                    .is_some_and(|name| name.contains(part))
            })
        };
        let missing = |what: &str| Error::Shape { what: format!("{}: no {what}", path.display()) };
        let state = named(&inputs, "state").ok_or_else(|| missing("state input"))?;
        let next_state = named(&outputs, "state").ok_or_else(|| missing("state output"))?;
        let other = |ids: &[NodeId], known| match ids {
            [a, b] if *a == known => Some(*b),
            [a, b] if *b == known => Some(*a),
            _ => None,
        };
        let input = other(&inputs, state).ok_or_else(|| missing("single sound input"))?;
        let probability = other(&outputs, next_state).ok_or_else(|| missing("single probability output"))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        let pools = (0..threads)
            .map(|_| {
                let pool = ThreadPool::with_num_threads(1);
                // Packet processing waits for this thread.
                pool.run(|| Scheduling::Responsive.apply());
                Arc::new(pool)
            })
            .collect();
        let model = Arc::new(Self {
            model,
            input,
            state,
            probability,
            next_state,
            pools,
            streams: AtomicUsize::new(0),
            meter: Arc::default(),
            gate_meter: Arc::default(),
        });
        // Detects a model that loads but computes something else now, not within a sentence.
        Stream::new(model.clone())
            .run(&[0; WINDOW_SAMPLES])
            .map_err(|error| Error::Shape { what: format!("{}: {error}", path.display()) })?;
        Ok(model)
    }

    /// Counts the windows of all streams.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// Counts the frames that the gate before the model looks at, of all streams.
    pub fn gate_meter(&self) -> Arc<Meter> {
        self.gate_meter.clone()
    }
}

/// One stream. Between its start and its first window it is small: most glasses are quiet most of the time.
pub struct Stream {
    model: Arc<Model>,
    options: RunOptions,
    state: Option<Box<State>>,
}

/// What a stream keeps from one window to the next.
struct State {
    window: [f32; CONTEXT_SAMPLES + WINDOW_SAMPLES],
    network: [f32; STATE_LEN],
}

impl Default for State {
    fn default() -> Self {
        Self { window: [0.0; CONTEXT_SAMPLES + WINDOW_SAMPLES], network: [0.0; STATE_LEN] }
    }
}

impl Stream {
    /// A stream at its start.
    pub fn new(model: Arc<Model>) -> Self {
        let turn = model.streams.fetch_add(1, Ordering::Relaxed);
        let pool = model.pools.get(turn % model.pools.len().max(1)).cloned();
        Self { model, options: RunOptions::default().with_thread_pool(pool), state: None }
    }

    /// Resets to the start of a stream. The sound that it kept is overwritten.
    pub fn reset(&mut self) {
        if let Some(mut state) = self.state.take() {
            *state = State::default();
            // It is dropped next: the compiler would leave the writing out.
            std::hint::black_box(state.as_mut());
        }
    }

    /// Takes the next 32 ms and returns the probability (0 to 1) that they hold speech.
    ///
    /// # Errors
    /// [`Error::Run`]; call [`reset`](Self::reset) then.
    pub fn push(&mut self, pcm: &[i16; WINDOW_SAMPLES]) -> Result<f32, Error> {
        let meter = self.model.meter();
        meter.measure(|| self.run(pcm))
    }

    fn run(&mut self, pcm: &[i16; WINDOW_SAMPLES]) -> Result<f32, Error> {
        let kept = self.state.get_or_insert_default();
        kept.window.copy_within(WINDOW_SAMPLES.., 0);
        for (slot, sample) in kept.window[CONTEXT_SAMPLES..].iter_mut().zip(pcm) {
            *slot = f32::from(*sample) / 32_768.0;
        }
        let failed = |reason: &dyn std::fmt::Display| Error::Run { reason: reason.to_string() };
        let window = NdTensorView::from_data([1, CONTEXT_SAMPLES + WINDOW_SAMPLES], &kept.window[..]);
        let state = NdTensorView::from_data(STATE_SHAPE, &kept.network[..]);
        let inputs: Vec<(NodeId, ValueOrView)> =
            vec![(self.model.input, window.into()), (self.model.state, state.into())];
        let outputs = self
            .model
            .model
            .run(inputs, &[self.model.probability, self.model.next_state], Some(self.options.clone()))
            .map_err(|error| failed(&error))?;
        let [probability, next_state] = <[_; 2]>::try_from(outputs).map_err(|_| failed(&"not two outputs"))?;
        let probability: NdTensor<f32, 2> =
            probability.try_into().map_err(|_| failed(&"the probability is not [1, 1]"))?;
        let next_state: NdTensor<f32, 3> =
            next_state.try_into().map_err(|_| failed(&"the state is not [2, 1, 128]"))?;
        if next_state.shape() != STATE_SHAPE {
            return Err(failed(&"the state is not [2, 1, 128]"));
        }
        for (slot, value) in kept.network.iter_mut().zip(next_state.iter()) {
            *slot = *value;
        }
        match probability.iter().next() {
            Some(value) if value.is_finite() => Ok(*value),
            _ => Err(failed(&"the probability is not a number")),
        }
    }
}
