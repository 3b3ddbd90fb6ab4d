//! Wake words by sound: the shared models against reference values, heads of every kind, and what a detector holds.
#![cfg(all(feature = "vad", feature = "opus"))]

mod listener_clips;

use std::sync::Arc;

use audio::models;
use audio::wake::detector::{REFRACTORY_STEPS, STATE_BYTES_MAX};
use audio::wake::head::BYTES_MAX;
use audio::wake::onnx::Graph;
use audio::wake::{Detection, Detector, EMBEDDING, EMBEDDINGS, Head, Models, STEP_SAMPLES, Stream, WINDOW};
use listener_clips::*;

/// The first eight values of the embedding after this many steps of goforward.raw, which begin in silence, and its norm:
/// the two models in onnxruntime, with the floor under the rows.
const REFERENCE: [(usize, [f32; 8], f32); 4] = [
    (1, [-5.543, 12.79, 12.192, -11.337, 11.326, 27.006, -1.897, -3.526], 163.794),
    (10, [-12.794, 28.856, 9.71, -6.704, 6.317, 20.016, 10.282, -11.579], 180.517),
    (18, [-28.443, 12.599, 0.232, -7.008, -12.771, 26.323, 5.287, 3.508], 169.524),
    (26, [-13.504, 2.2, 3.465, 10.677, -9.58, 9.713, 33.073, -6.007], 186.171),
];

/// Scores of [`waves`] at the same steps, computed with them.
const SCORES: [(usize, f32); 6] = [(1, 0.9876), (4, 0.8518), (10, 0.1329), (18, 0.9942), (26, 0.3413), (34, 0.8347)];

fn load() -> Arc<Models> {
    Models::load(&models::default_dir()).unwrap_or_else(|error| panic!("{error}"))
}

fn go_forward() -> Vec<i16> {
    clip(SPEECH[4])
}

/// A head whose weights are those of a wave: it weighs every value of the window, each by its place.
fn waves() -> Vec<u8> {
    let weights: Vec<f32> = (0..WINDOW).map(|n| (n as f64 * 0.37).sin() as f32 / 40.0).collect();
    linear(&weights, 0.0, &[])
}

fn linear(weights: &[f32], bias: f32, metadata: &[(&str, &str)]) -> Vec<u8> {
    let graph = Graph::new()
        .tensor("weights", &[weights.len(), 1], weights)
        .tensor("bias", &[1], &[bias])
        .node("Flatten", &["window"], "flat", &[("axis", 1)])
        .node("Gemm", &["flat", "weights", "bias"], "logit", &[])
        .node("Sigmoid", &["logit"], "score", &[]);
    graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("score", &[1, 1]), metadata)
}

/// A head that scores the same whatever it hears.
fn constant(bias: f32, metadata: &[(&str, &str)]) -> Arc<Head> {
    Head::of(&linear(&[0.0; WINDOW], bias, metadata), "always").unwrap()
}

fn problem(bytes: Vec<u8>) -> String {
    match Head::of(&bytes, "some words") {
        Ok(_) => panic!("it was taken"),
        Err(problem) => problem,
    }
}

#[test]
fn embeddings_and_scores_are_those_of_the_reference() {
    let mut stream = Stream::new(load());
    let head = Head::of(&waves(), "waves").unwrap();
    let (mut embeddings, mut scores) = (0, 0);
    for round in 0..2 {
        for (index, step) in go_forward().as_chunks::<STEP_SAMPLES>().0.iter().enumerate() {
            let window = stream.push(step).unwrap();
            let newest = &window[WINDOW - EMBEDDING..];
            for (_, values, norm) in REFERENCE.iter().filter(|(steps, ..)| *steps == index + 1) {
                for (got, wanted) in newest.iter().zip(values) {
                    assert!((got - wanted).abs() < 0.01, "round {round}, step {index}: {newest:?}");
                }
                let got = newest.iter().map(|x| x * x).sum::<f32>().sqrt();
                assert!((got - norm).abs() < 0.05, "round {round}, step {index}: norm {got}");
                embeddings += 1;
            }
            for (_, wanted) in SCORES.iter().filter(|(steps, _)| *steps == index + 1) {
                let got = head.score(window).unwrap();
                assert!((got - wanted).abs() < 0.002, "round {round}, step {index}: {got} instead of {wanted}");
                scores += 1;
            }
        }
        // As a stream that is new.
        stream.reset();
    }
    assert_eq!((embeddings, scores), (2 * REFERENCE.len(), 2 * SCORES.len()));
}

#[test]
fn digital_silence_is_as_what_a_stream_begins_with() {
    let mut stream = Stream::new(load());
    let begin = stream.window().to_vec();
    for _ in 0..3 {
        assert_eq!(stream.push(&[0; STEP_SAMPLES]).unwrap(), begin);
    }
    // A step of sound changes what follows.
    let sound: [i16; STEP_SAMPLES] = std::array::from_fn(|n| ((n % 37) as i16 - 18) * 200);
    assert_ne!(stream.push(&sound).unwrap(), begin);
}

#[test]
fn a_detector_hears_the_same_whatever_the_size_of_its_pieces() {
    let models = load();
    let window_at = |steps: usize| {
        let mut stream = Stream::new(models.clone());
        let pcm = go_forward();
        let steps = pcm.as_chunks::<STEP_SAMPLES>().0.iter().take(steps);
        steps.fold(Vec::new(), |_, step| stream.push(step).unwrap().to_vec())
    };
    // A head that knows one moment of the recording: it weighs a window by its likeness to that one.
    let wanted = window_at(18);
    let norm = wanted.iter().map(|x| x * x).sum::<f32>();
    let weights: Vec<f32> = wanted.iter().map(|x| x / norm * 200.0).collect();
    let head = Head::of(&linear(&weights, -190.0, &[("lorgnette.patience", "1")]), "the moment").unwrap();
    let heads: Arc<[Arc<Head>]> = [head].into();
    let mut all: Vec<Vec<Detection>> = Vec::new();
    for piece in [20, 320, 1_280, 5_000, 100_000] {
        let mut detector = Detector::new(models.clone(), heads.clone());
        let mut found = Vec::new();
        for pcm in go_forward().chunks(piece) {
            detector.push(pcm, &mut found).unwrap();
        }
        all.push(found);
    }
    assert_eq!(all[0].len(), 1, "{all:?}");
    assert!(all[0][0].end.abs_diff(18 * STEP_SAMPLES as u64) <= 2 * STEP_SAMPLES as u64, "{all:?}");
    assert!(all.iter().all(|found| *found == all[0]), "{all:?}");
}

#[test]
fn patience_and_rest_count_in_steps() {
    let models = load();
    for (patience, first) in [("1", 1), ("3", 3)] {
        let heads: Arc<[Arc<Head>]> = [constant(-8.0, &[]), constant(8.0, &[("lorgnette.patience", patience)])].into();
        let mut detector = Detector::new(models.clone(), heads);
        let mut found = Vec::new();
        let steps = first + REFRACTORY_STEPS as usize + first;
        detector.push(&vec![0; steps * STEP_SAMPLES], &mut found).unwrap();
        let ends: Vec<u64> = found.iter().map(|detection| detection.end / STEP_SAMPLES as u64).collect();
        assert_eq!(ends, [first as u64, steps as u64], "patience {patience}");
        assert!(found.iter().all(|detection| detection.head == 1 && detection.score > 0.99), "{found:?}");
    }
}

#[test]
fn one_step_alone_is_no_phrase() {
    let head = constant(8.0, &[]);
    let mut detector = Detector::new(load(), [head].into());
    let mut found = Vec::new();
    detector.push(&[0; STEP_SAMPLES], &mut found).unwrap();
    assert_eq!(found, []);
    detector.reset();
    detector.push(&[0; STEP_SAMPLES], &mut found).unwrap();
    assert_eq!(found, [], "a reset begins anew");
    detector.push(&[0; STEP_SAMPLES], &mut found).unwrap();
    assert_eq!(found.len(), 1);
}

#[test]
fn the_state_of_a_device_is_small() {
    let heads: Arc<[Arc<Head>]> = (0..16).map(|_| constant(0.0, &[])).collect();
    let mut detector = Detector::new(load(), heads);
    detector.push(&white(seconds(1.0), 3_000.0, 5), &mut Vec::new()).unwrap();
    assert!((16 * 1_024..=STATE_BYTES_MAX).contains(&detector.bytes()), "{} bytes", detector.bytes());
}

#[test]
fn a_head_brings_its_settings() {
    let metadata = [("lorgnette.phrase", "Hey Mentra"), ("lorgnette.threshold", "0.7"), ("lorgnette.patience", "3")];
    let head = constant(0.0, &metadata);
    let settings = head.settings();
    assert_eq!((settings.phrase.as_str(), settings.threshold, settings.patience), ("hey mentra", 0.7, 3));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("OK_Computer.onnx");
    std::fs::write(&path, waves()).unwrap();
    let head = Head::load(&path).unwrap();
    assert_eq!((head.settings().phrase.as_str(), head.settings().patience), ("ok computer", 2));
    for (key, value, expected) in [
        ("lorgnette.threshold", "1.5", "threshold is 1.5"),
        ("lorgnette.threshold", "NaN", "threshold is NaN"),
        ("lorgnette.threshold", "high", "no number"),
        ("lorgnette.patience", "0", "1 to 8"),
        ("lorgnette.patience", "-1", "no whole number"),
        ("lorgnette.phrase", " ", "0 characters"),
        ("lorgnette.phrase", "a\nb", "printable"),
    ] {
        let problem = problem(linear(&[0.0; WINDOW], 0.0, &[(key, value)]));
        assert!(problem.contains(expected), "{key} = {value}: {problem}");
    }
    let long = "a".repeat(65);
    assert!(problem(linear(&[0.0; WINDOW], 0.0, &[("lorgnette.phrase", &long)])).contains("65 characters"));
}

#[test]
fn heads_of_another_shape_are_refused_in_words() {
    let wide = |shape: &[usize], outputs: usize| {
        let inputs: usize = shape.iter().skip(1).product();
        Graph::new()
            .tensor("weights", &[inputs, outputs], &vec![0.0; inputs * outputs])
            .node("Flatten", &["window"], "flat", &[("axis", 1)])
            .node("MatMul", &["flat", "weights"], "logit", &[])
            .node("Sigmoid", &["logit"], "score", &[])
            .file(("window", shape), ("score", &[1, outputs]), &[])
    };
    for shape in [[1, 16, 95], [1, 28, 96], [1, 96, 16], [2, 16, 96]] {
        let problem = problem(wide(&shape, 1));
        assert!(!problem.is_empty() && problem != "it is damaged", "{shape:?}: {problem}");
    }
    assert!(problem(wide(&[1, 16, 96], 3)).contains("3 values instead of one"));
    let plain = |operator: &str| {
        Graph::new()
            .tensor("weights", &[WINDOW, 1], &[3.0; WINDOW])
            .node("Flatten", &["window"], "flat", &[("axis", 1)])
            .node("MatMul", &["flat", "weights"], "logit", &[])
            .node(operator, &["logit"], "score", &[])
            .file(("window", &[1, 16, 96]), ("score", &[1, 1]), &[])
    };
    assert!(problem(plain("Identity")).contains("must be a probability"));
    for unknown in ["Loop", "Expand", "Tile", "ConstantOfShape", "Nonsense"] {
        let problem = problem(plain(unknown));
        assert!(problem.contains(unknown), "{unknown}: {problem}");
    }
    let loose = Graph::new().node("Sigmoid", &["elsewhere"], "score", &[]);
    problem(loose.file(("window", &[1, 16, 96]), ("score", &[1, 1]), &[]));
}

#[test]
fn damaged_heads_are_refused_in_words() {
    let whole = waves();
    for kept in (0..whole.len()).step_by(97).chain(0..64) {
        // Behind the last tensor, the names of input and output may be missing.
        assert!(!problem(whole[..kept].to_vec()).is_empty(), "{kept}");
    }
    problem(b"RTEN and more".to_vec());
    // A length that is stated and not there is no reason to take so much memory: here 16 GB for a name.
    let huge = [0x12, 0x80, 0x80, 0x80, 0x80, 0x40, b'x'];
    assert!(problem(huge.to_vec()).contains("truncated"));
    assert!(problem([&whole[..], &huge].concat()).contains("truncated"));
    problem(vec![b'x'; 10_000]);
    assert!(problem(vec![0; BYTES_MAX as usize + 1]).contains("more than 4194304 bytes"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("huge.onnx");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = Head::load(&path).err().unwrap().to_string();
    assert!(error.contains("huge.onnx") && error.contains("more than"), "{error}");
    let error = Head::load(&dir.path().join("none.onnx")).err().unwrap().to_string();
    assert!(error.contains("none.onnx") && error.contains("No such file"), "{error}");
}

#[test]
fn heads_that_ask_for_much_are_refused_in_words() {
    let file = |graph: &Graph| graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("score", &[1, 1]), &[]);
    let row = |count: usize| vec![0.0; count];
    // Thirty kilobytes that ask for 60 MB, and would double that with each further operator.
    let square = Graph::new()
        .tensor("column", &[4_000, 1], &row(4_000))
        .tensor("row", &[1, 4_000], &row(4_000))
        .node("MatMul", &["column", "row"], "square", &[])
        .node("ReduceMean", &["square"], "score", &[]);
    assert!(problem(file(&square)).contains("more than 2097152 numbers"));
    // Many operators in few bytes.
    let many = (0..2_000).fold(Graph::new(), |graph, n| graph.node("Relu", &["window"], &format!("x{n}"), &[]));
    assert!(problem(file(&many)).contains("more than 1024 operators"));
}

#[test]
fn heads_with_altered_bytes_never_panic() {
    let whole = waves();
    // The weights are most of the file; what describes them is at both ends.
    let places = (0..160).chain(whole.len() - 160..whole.len());
    for (at, bit) in places.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut altered = whole.clone();
        altered[at] ^= 1 << bit;
        let _ = Head::of(&altered, "some words");
    }
}

#[test]
fn missing_models_say_what_brings_them() {
    let dir = tempfile::tempdir().unwrap();
    let error = Models::load(dir.path()).err().unwrap().to_string();
    assert!(error.contains("melspectrogram.onnx") && error.contains("models fetch wake-embedding"), "{error}");
}
