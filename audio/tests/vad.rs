//! The voice detectors alone: what they distinguish, and how they reject a bad model file.
#![cfg(all(feature = "vad", feature = "opus"))]

mod listener_clips;

use audio::frame::FRAME_SAMPLES;
use audio::preroll::Preroll;
use audio::vad::detector::{Detector, Window};
use audio::vad::silero::{Error, Model, Stream, WINDOW_SAMPLES};
use audio::vad::webrtc::Gate;
use listener_clips::*;

fn probabilities(pcm: &[i16]) -> Vec<f32> {
    let mut stream = Stream::new(model());
    let (windows, _) = pcm.as_chunks::<WINDOW_SAMPLES>();
    windows.iter().map(|window| stream.push(window).unwrap()).collect()
}

fn share_above(threshold: f32, values: &[f32]) -> f64 {
    values.iter().filter(|value| **value > threshold).count() as f64 / values.len() as f64
}

#[test]
fn silero_tells_speech_from_silence_and_noise() {
    for at in SPEECH {
        let clip = clip(at);
        let (first, last) = voiced_span(&clip);
        // Two of three windows, because the pauses between words count as misses.
        let share = share_above(0.5, &probabilities(&clip[first..last]));
        assert!(share > 0.6, "{at:?}: {share}");
    }
    let quiet = [vec![0; seconds(10.0)], white(seconds(10.0), 1_000.0, 1), clip(NOISE)];
    for (index, pcm) in quiet.iter().enumerate() {
        let share = share_above(0.5, &probabilities(pcm));
        assert!(share < 0.02, "quiet {index}: {share}");
    }
}

#[test]
fn a_reset_stream_answers_as_a_new_one() {
    let clip = clip(SPEECH[0]);
    let fresh = probabilities(&clip);
    let mut stream = Stream::new(model());
    for window in white(seconds(1.0), 3_000.0, 4).as_chunks::<WINDOW_SAMPLES>().0 {
        stream.push(window).unwrap();
    }
    stream.reset();
    let again: Vec<f32> =
        clip.as_chunks::<WINDOW_SAMPLES>().0.iter().map(|window| stream.push(window).unwrap()).collect();
    assert_eq!(fresh, again);
}

#[test]
fn streams_on_one_model_do_not_disturb_each_other() {
    let (speech, noise) = (clip(SPEECH[1]), white(seconds(4.0), 2_000.0, 6));
    let alone = probabilities(&speech);
    let model = model();
    let (mut one, mut other) = (Stream::new(model.clone()), Stream::new(model));
    let pairs = speech.as_chunks::<WINDOW_SAMPLES>().0.iter().zip(noise.as_chunks::<WINDOW_SAMPLES>().0);
    let beside: Vec<f32> = pairs
        .map(|(window, noise)| {
            other.push(noise).unwrap();
            one.push(window).unwrap()
        })
        .collect();
    assert_eq!(alone[..beside.len()], beside);
}

#[test]
fn a_bad_model_file_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let missing = Model::load(&path).err().expect("no file, no model");
    assert!(matches!(missing, Error::Load { .. }));
    assert!(missing.to_string().contains("lorgnette models fetch"), "{missing}");
    let mut random = Random(3);
    for length in [0usize, 1, 100, 100_000] {
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        assert!(Model::load(&path).is_err(), "{length} random bytes");
    }
}

#[test]
fn the_gate_opens_for_speech_and_hangs_over() {
    let mut gate = Gate::new(300_000);
    let frames = |pcm: &[i16]| pcm.as_chunks::<FRAME_SAMPLES>().0.to_vec();
    assert!(!frames(&[0; 16_000]).iter().any(|frame| gate.push(frame)), "silence");
    let clip = clip(SPEECH[3]);
    let (first, last) = voiced_span(&clip);
    let open: Vec<bool> = frames(&clip[first..last]).iter().map(|frame| gate.push(frame)).collect();
    assert!(open.iter().filter(|open| **open).count() * 10 > open.len() * 9, "{open:?}");
    let after: Vec<bool> = frames(&[0; 16_000]).iter().map(|frame| gate.push(frame)).collect();
    let closes = after.iter().position(|open| !open).expect("it closes");
    assert!((14..=25).contains(&closes), "closed {closes} frames of 20 ms after the voice");
}

/// Drives the detector alone; returns its windows.
fn detect(pcm: &[i16], keep_open: bool) -> (Vec<Window>, audio::vad::detector::Stats) {
    let mut detector = Detector::new(model(), 300_000);
    let mut recent = Preroll::new(seconds(2.0));
    let mut windows = Vec::new();
    for frame in pcm.as_chunks::<FRAME_SAMPLES>().0 {
        recent.push(frame);
        detector.push(frame, &recent, keep_open, &mut windows);
    }
    (windows, detector.stats())
}

#[test]
fn a_closed_gate_saves_the_model_and_an_open_utterance_overrides_it() {
    let quiet = vec![0; seconds(10.0)];
    assert_eq!(detect(&quiet, false).1.windows, 0);
    let (windows, stats) = detect(&quiet, true);
    assert_eq!(stats.open_frames, 0);
    assert!((311..=313).contains(&stats.windows), "{stats:?}");
    assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start), "without a gap");
}

#[test]
fn the_warm_up_never_answers_silence() {
    let mut pcm = white(seconds(2.0), 3.0, 8);
    pcm.extend(clip(SPEECH[3]));
    let (windows, _) = detect(&pcm, false);
    let first = windows.first().expect("the gate opens");
    assert!(windows[..2].iter().all(|window| window.probability.is_none_or(|p| p >= 0.5)));
    assert!(windows[3..].iter().all(|window| window.probability.is_some()));
    assert_eq!(first.end - first.start, WINDOW_SAMPLES as u64);
    // It looks back, so the first frame processed is older than the one that opened the gate.
    let (opening, _) = voiced_span(&clip(SPEECH[3]));
    assert!(first.start < (seconds(2.0) + opening) as u64 + 3_200);
}
