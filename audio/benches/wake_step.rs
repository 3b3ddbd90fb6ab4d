//! Cost of wake words by their sound: processor time of one step of 80 ms, by the number of phrases, and of a second of
//! voice.
//!
//! `cargo xtask bench wake_step`
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

#[path = "../tests/listener_clips/mod.rs"]
mod listener_clips;

use std::sync::Arc;

use audio::models;
use audio::wake::onnx::Graph;
use audio::wake::{Detector, EMBEDDING, EMBEDDINGS, Head, Models, STEP_SAMPLES, WINDOW};
use listener_clips::*;

/// Steps in one measurement: 16 s of sound.
const STEPS: usize = 200;

/// CPU time of this process's threads so far, in nanoseconds: not distorted by other load on the machine.
fn cpu_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a process has threads");
    let ran = |task: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    tasks.flatten().filter_map(ran).sum()
}

/// A head of the size of those that are trained here.
fn head() -> Arc<Head> {
    let graph = Graph::new()
        .tensor("mix", &[EMBEDDING, 24], &[0.01; EMBEDDING * 24])
        .tensor("deep", &[EMBEDDINGS * 24, 32], &[0.01; EMBEDDINGS * 24 * 32])
        .tensor("out", &[32, 1], &[-0.01; 32])
        .node("MatMul", &["window", "mix"], "sums", &[])
        .node("Relu", &["sums"], "mixed", &[])
        .node("Flatten", &["mixed"], "flat", &[("axis", 1)])
        .node("MatMul", &["flat", "deep"], "deep_sums", &[])
        .node("Relu", &["deep_sums"], "hidden", &[])
        .node("MatMul", &["hidden", "out"], "logit", &[])
        .node("Sigmoid", &["logit"], "score", &[]);
    let file = graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("score", &[1, 1]), &[]);
    Head::of(&file, "hey mentra").expect("it is a head")
}

fn main() {
    let models = Models::load(&models::default_dir()).expect("the models are fetched");
    let mut pcm: Vec<i16> = Vec::new();
    for at in SPEECH.iter().cycle() {
        pcm.extend(clip(*at));
        if pcm.len() >= STEPS * STEP_SAMPLES {
            break;
        }
    }
    pcm.truncate(STEPS * STEP_SAMPLES);
    println!("a window of a head has {WINDOW} values");
    for phrases in [0, 1, 3, 16] {
        let heads: Arc<[Arc<Head>]> = (0..phrases).map(|_| head()).collect();
        let mut detector = Detector::new(models.clone(), heads);
        let mut found = Vec::new();
        // The first steps load what is used.
        detector.push(&pcm[..10 * STEP_SAMPLES], &mut found).expect("it runs");
        let before = cpu_ns();
        detector.push(&pcm, &mut found).expect("it runs");
        let step_us = (cpu_ns() - before) as f64 / STEPS as f64 / 1_000.0;
        let (second_ms, bytes) = (step_us * 12.5 / 1_000.0, detector.bytes());
        println!(
            "{phrases:2} phrases: {step_us:6.0} us a step, {second_ms:5.1} ms a second of voice, {bytes} bytes a device"
        );
    }
}
