//! The acoustic network: phoneme ids to spectra, through rten, on one thread per caller.

use std::path::Path;
use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use super::{Error, assets};

/// Bins of a spectrum: half a transform of 1,200 samples, plus one.
pub(super) const BINS: usize = 601;

/// Most frames of one run, one minute of 12.5 ms frames: twice the slowest reading of the longest chunk. It bounds the
/// memory that a damaged network can make the later steps allocate.
const FRAMES_MAX: usize = 4_800;

/// What the network predicts for each frame of 12.5 ms. Matrices are [`BINS`] rows of `frames` values.
pub(super) struct Spectrum {
    /// Columns of each matrix.
    pub(super) frames: usize,
    /// Log magnitude of the voiced part.
    pub(super) voiced_log: Vec<f32>,
    /// Phase of the voiced part, before tanh, in half turns.
    pub(super) voiced_phase: Vec<f32>,
    /// Log magnitude of the noise.
    pub(super) noise_log: Vec<f32>,
    /// Log magnitude of the rest.
    pub(super) rest_log: Vec<f32>,
    /// Phase of the rest in radians.
    pub(super) rest_phase: Vec<f32>,
    /// Pitch in Hz for each frame; below 40 Hz means unvoiced.
    pub(super) pitch_hz: Vec<f32>,
}

pub(super) struct Acoustic {
    model: Model,
    inputs: [NodeId; 2],
    outputs: [NodeId; 6],
}

/// Options with one compute thread for all networks that the calling thread runs: a clause is too small to benefit from
/// a second core, and two callers must not wait for each other.
pub(super) fn on_one_thread() -> RunOptions {
    thread_local! {
        static POOL: Arc<ThreadPool> = Arc::new(ThreadPool::with_num_threads(1));
    }
    RunOptions::default().with_thread_pool(Some(POOL.with(Arc::clone)))
}

/// Loads a network of the voice, with its weights packed for fast products.
pub(super) fn load_model(dir: &Path, name: &str) -> Result<Model, Error> {
    let bytes = assets::read(dir, name)?;
    ModelOptions::with_all_ops().prepack_weights(true).load(bytes).map_err(|error| assets::damaged(dir, name, error))
}

impl Acoustic {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        let model = load_model(dir, assets::ACOUSTIC)?;
        let node = |name| model.node_id(name).map_err(|error| assets::damaged(dir, assets::ACOUSTIC, error));
        let inputs = [node("ids")?, node("speed")?];
        let outputs = [node("lh")?, node("theta")?, node("ln")?, node("lr")?, node("phi")?, node("f0")?];
        Ok(Self { model, inputs, outputs })
    }

    /// Runs the network on `ids` (without pads).
    pub(super) fn run(&self, ids: &[i32], speed: f32) -> Result<Spectrum, Error> {
        let mut padded = Vec::with_capacity(ids.len() + 2);
        padded.push(0);
        padded.extend_from_slice(ids);
        padded.push(0);
        let ids = NdTensor::from_data([1, padded.len()], padded);
        let speed = NdTensor::from_data([1], vec![speed]);
        let values = self
            .model
            .run_n(
                vec![(self.inputs[0], ids.view().into()), (self.inputs[1], speed.view().into())],
                self.outputs,
                Some(on_one_thread()),
            )
            .map_err(|error| failed(error.to_string()))?;
        let [voiced_log, voiced_phase, noise_log, rest_log, rest_phase, pitch_hz] = values;
        let pitch: Tensor<f32> = pitch_hz.try_into().map_err(|_| failed("f0 is not f32"))?;
        let frames = pitch.len();
        if frames > FRAMES_MAX {
            return Err(failed(format!("{frames} frames, more than {FRAMES_MAX}")));
        }
        let matrix = |value: Value| {
            let tensor: Tensor<f32> = value.try_into().map_err(|_| failed("a spectrum is not f32"))?;
            if tensor.shape() != [1, BINS, frames] {
                return Err(failed(format!("a spectrum has shape {:?}, not [1, {BINS}, {frames}]", tensor.shape())));
            }
            Ok(tensor.into_data())
        };
        Ok(Spectrum {
            frames,
            voiced_log: matrix(voiced_log)?,
            voiced_phase: matrix(voiced_phase)?,
            noise_log: matrix(noise_log)?,
            rest_log: matrix(rest_log)?,
            rest_phase: matrix(rest_phase)?,
            pitch_hz: pitch.into_data(),
        })
    }
}

fn failed(reason: impl Into<String>) -> Error {
    Error::Model { model: "acoustic", reason: reason.into() }
}
