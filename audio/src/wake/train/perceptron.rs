//! The classifier that is trained, and how: a small perceptron with hand-written derivatives.
//!
//! Each of the 16 embeddings goes through the same small layer, then all of them together through a hidden one to one
//! number: 15,000 weights. Training is Adam (Kingma and Ba 2015) on the cross entropy, with dropout (Srivastava et al.
//! 2014) behind the first layer and noise on the inputs, since synthetic speech is all alike.

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::clips::Clip;
use crate::wake::head::{PATIENCE_KEY, PHRASE_KEY, Settings, THRESHOLD_KEY};
use crate::wake::onnx::{Graph, Model};
use crate::wake::{EMBEDDING, EMBEDDINGS, Head, WINDOW};

/// Outputs of the first layer, per embedding.
const MIXED: usize = 24;
const FLAT: usize = EMBEDDINGS * MIXED;
const HIDDEN: usize = 32;

/// Share of the first layer's outputs that a training step ignores.
const DROPOUT: f32 = 0.2;
/// Amplitude of the noise on standardised inputs.
const NOISE: f32 = 0.15;

const FIRST_MOMENT: f32 = 0.9;
const SECOND_MOMENT: f32 = 0.999;
const DECAY: f32 = 1e-4;

/// One window with its label.
#[derive(Clone, Copy)]
pub struct Example<'a> {
    /// 16 embeddings, oldest first.
    pub window: &'a [f32],
    /// Whether the phrase just ended.
    pub positive: bool,
    /// How much it counts.
    pub weight: f32,
}

/// All weights, in one vector: that of the first layer, its bias, that of the hidden layer, its bias, that of the output,
/// its bias.
const MIX: usize = 0;
const MIX_BIAS: usize = MIX + EMBEDDING * MIXED;
const DEEP: usize = MIX_BIAS + MIXED;
const DEEP_BIAS: usize = DEEP + FLAT * HIDDEN;
const OUT: usize = DEEP_BIAS + HIDDEN;
const OUT_BIAS: usize = OUT + HIDDEN;
const WEIGHTS: usize = OUT_BIAS + 1;

/// The network while it learns: how its inputs are standardised, and all weights in one vector.
#[derive(Clone)]
pub struct Perceptron {
    mean: Vec<f32>,
    scale: Vec<f32>,
    weights: Vec<f32>,
}

/// What one example's way through the network leaves behind.
struct Trace {
    inputs: Vec<f32>,
    mixed: Vec<f32>,
    kept: Vec<f32>,
    hidden: Vec<f32>,
}

impl Trace {
    fn new() -> Self {
        Self { inputs: vec![0.0; WINDOW], mixed: vec![0.0; FLAT], kept: vec![1.0; FLAT], hidden: vec![0.0; HIDDEN] }
    }
}

impl Perceptron {
    /// A network with small random weights, which standardises its inputs by these windows.
    pub fn new<'a>(windows: impl Iterator<Item = &'a [f32]> + Clone, random: &mut SmallRng) -> Self {
        let (mut mean, mut scale, mut count) = (vec![0.0_f64; EMBEDDING], vec![0.0_f64; EMBEDDING], 0.0_f64);
        for embedding in windows.flat_map(|window| window.chunks_exact(EMBEDDING)) {
            count += 1.0;
            for ((mean, square), x) in mean.iter_mut().zip(&mut scale).zip(embedding) {
                *mean += f64::from(*x);
                *square += f64::from(*x).powi(2);
            }
        }
        for (mean, square) in mean.iter_mut().zip(&mut scale) {
            *mean /= count.max(1.0);
            let variance = *square / count.max(1.0) - mean.powi(2);
            *square = 1.0 / variance.max(1e-3).sqrt();
        }
        let floats = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect();
        let (mean, scale) = (floats(mean), floats(scale));
        let mut weights = vec![0.0; WEIGHTS];
        // He et al. 2015: layers of rectified units keep their variance.
        let mut fill = |range: std::ops::Range<usize>, inputs: usize| {
            let most = (6.0 / inputs as f32).sqrt();
            weights[range].iter_mut().for_each(|weight| *weight = (random.random::<f32>() * 2.0 - 1.0) * most);
        };
        fill(MIX..MIX_BIAS, EMBEDDING);
        fill(DEEP..DEEP_BIAS, FLAT);
        fill(OUT..OUT_BIAS, HIDDEN);
        Self { mean, scale, weights }
    }

    /// The network of a head that [`file`](Self::file) has written.
    ///
    /// # Errors
    /// The head is another network, in words.
    pub fn read(model: &Model) -> Result<Self, String> {
        let parts: [(&str, &[usize]); 6] = [
            ("mix", &[EMBEDDING, MIXED]),
            ("mix_bias", &[MIXED]),
            ("deep", &[FLAT, HIDDEN]),
            ("deep_bias", &[HIDDEN]),
            ("out", &[HIDDEN, 1]),
            ("out_bias", &[1]),
        ];
        let mut weights = Vec::with_capacity(WEIGHTS);
        for (name, dims) in parts {
            let values = model.floats(name, dims);
            weights.extend(values.ok_or("it is none that `lorgnette wake train` has made; others cannot learn more")?);
        }
        let network = Self { mean: vec![0.0; EMBEDDING], scale: vec![1.0; EMBEDDING], weights };
        // Names and shapes may be the same where the graph is another.
        let window: Vec<f32> = (0..WINDOW).map(|n| (n as f32).sin() * 30.0).collect();
        let head = Head::of(&network.file(&Settings::of("head"), &[]), "")?;
        let same = head.score(&window).map_err(|error| error.to_string())?;
        if (same - network.score(&window)).abs() > 1e-3 {
            Err("its weights are too large".to_owned())
        } else {
            Ok(network)
        }
    }

    /// The same network, which standardises its inputs as `other` does.
    #[must_use]
    pub fn standardised_as(&self, other: &Self) -> Self {
        let mut weights = self.weights.clone();
        let (mix, rest) = weights.split_at_mut(MIX_BIAS);
        for (n, row) in mix.chunks_exact_mut(MIXED).enumerate() {
            // As it is folded into the file, and out again.
            row.iter_mut().for_each(|weight| *weight *= self.scale[n]);
            add(&mut rest[..MIXED], row, other.mean[n] - self.mean[n]);
            row.iter_mut().for_each(|weight| *weight /= other.scale[n]);
        }
        Self { mean: other.mean.clone(), scale: other.scale.clone(), weights }
    }

    /// The score of each step of a clip.
    pub fn scores(&self, clip: &Clip) -> Vec<f32> {
        clip.windows().map(|(window, _)| self.score(window)).collect()
    }

    /// Probability that the phrase just ended.
    pub fn score(&self, window: &[f32]) -> f32 {
        let mut trace = Trace::new();
        self.standardise(window, &mut trace.inputs);
        sigmoid(self.forward(&mut trace))
    }

    fn standardise(&self, window: &[f32], inputs: &mut [f32]) {
        for (to, from) in inputs.chunks_exact_mut(EMBEDDING).zip(window.chunks_exact(EMBEDDING)) {
            for (((to, x), mean), scale) in to.iter_mut().zip(from).zip(&self.mean).zip(&self.scale) {
                *to = (x - mean) * scale;
            }
        }
    }

    fn forward(&self, trace: &mut Trace) -> f32 {
        let weights = &self.weights;
        for (embedding, mixed) in trace.inputs.chunks_exact(EMBEDDING).zip(trace.mixed.chunks_exact_mut(MIXED)) {
            mixed.copy_from_slice(&weights[MIX_BIAS..DEEP]);
            for (x, row) in embedding.iter().zip(weights[MIX..MIX_BIAS].chunks_exact(MIXED)) {
                add(mixed, row, *x);
            }
        }
        for (mixed, kept) in trace.mixed.iter_mut().zip(&trace.kept) {
            *mixed = mixed.max(0.0) * kept;
        }
        trace.hidden.copy_from_slice(&weights[DEEP_BIAS..OUT]);
        for (x, row) in trace.mixed.iter().zip(weights[DEEP..DEEP_BIAS].chunks_exact(HIDDEN)) {
            add(&mut trace.hidden, row, *x);
        }
        trace.hidden.iter_mut().for_each(|x| *x = x.max(0.0));
        let out = trace.hidden.iter().zip(&weights[OUT..OUT_BIAS]).map(|(x, weight)| x * weight);
        out.sum::<f32>() + weights[OUT_BIAS]
    }

    /// Adds the derivatives of one example, whose output should change by `error` to `slopes`.
    fn backward(&self, trace: &Trace, error: f32, slopes: &mut [f32]) {
        let weights = &self.weights;
        slopes[OUT_BIAS] += error;
        let mut hidden = [0.0; HIDDEN];
        for (n, (x, slope)) in trace.hidden.iter().zip(&mut hidden).enumerate() {
            slopes[OUT + n] += error * x;
            *slope = if *x > 0.0 { error * weights[OUT + n] } else { 0.0 };
        }
        add(&mut slopes[DEEP_BIAS..OUT], &hidden, 1.0);
        let mut mixed = [0.0; FLAT];
        for (n, (x, slope)) in trace.mixed.iter().zip(&mut mixed).enumerate() {
            if *x > 0.0 {
                let row = DEEP + n * HIDDEN;
                add(&mut slopes[row..row + HIDDEN], &hidden, *x);
                let back = weights[row..row + HIDDEN].iter().zip(&hidden).map(|(weight, slope)| weight * slope);
                *slope = back.sum::<f32>() * trace.kept[n];
            }
        }
        for (embedding, slope) in trace.inputs.chunks_exact(EMBEDDING).zip(mixed.chunks_exact(MIXED)) {
            add(&mut slopes[MIX_BIAS..DEEP], slope, 1.0);
            for (x, row) in embedding.iter().zip(slopes[MIX..MIX_BIAS].chunks_exact_mut(MIXED)) {
                add(row, slope, *x);
            }
        }
    }

    /// One pass over the examples, in random order and in batches; returns the mean loss. `rate`: of learning.
    pub fn learn(&mut self, examples: &[Example<'_>], adam: &mut Adam, rate: f32, random: &mut SmallRng) -> f32 {
        const BATCH: usize = 64;
        let mut order: Vec<usize> = (0..examples.len()).collect();
        for n in (1..order.len()).rev() {
            order.swap(n, random.random_range(0..=n));
        }
        let (mut trace, mut slopes) = (Trace::new(), vec![0.0; WEIGHTS]);
        let (mut loss, mut weighed) = (0.0_f64, 0.0_f64);
        for batch in order.chunks(BATCH) {
            slopes.fill(0.0);
            let mut total = 0.0;
            for example in batch.iter().filter_map(|index| examples.get(*index)) {
                self.standardise(example.window, &mut trace.inputs);
                // Uniform noise with this standard deviation.
                let noise = NOISE * 3.0_f32.sqrt() * 2.0;
                trace.inputs.iter_mut().for_each(|x| *x += (random.random::<f32>() - 0.5) * noise);
                let keep = 1.0 / (1.0 - DROPOUT);
                trace.kept.iter_mut().for_each(|x| *x = if random.random::<f32>() < DROPOUT { 0.0 } else { keep });
                let logit = self.forward(&mut trace);
                let target = if example.positive { 1.0 } else { 0.0 };
                self.backward(&trace, (sigmoid(logit) - target) * example.weight, &mut slopes);
                let likely = if example.positive { sigmoid(logit) } else { sigmoid(-logit) };
                loss -= f64::from(likely.max(1e-7).ln() * example.weight);
                total += example.weight;
            }
            weighed += f64::from(total);
            slopes.iter_mut().for_each(|slope| *slope /= total.max(1e-6));
            adam.step(&mut self.weights, &slopes, rate);
        }
        (loss / weighed.max(1e-9)) as f32
    }

    /// The head as an ONNX file, with its settings and notes on how it was made.
    pub fn file(&self, settings: &Settings, notes: &[(&str, &str)]) -> Vec<u8> {
        let weights = &self.weights;
        // The standardisation is part of the first layer.
        let mut mix = weights[MIX..MIX_BIAS].to_vec();
        let mut bias = weights[MIX_BIAS..DEEP].to_vec();
        for ((row, mean), scale) in mix.chunks_exact_mut(MIXED).zip(&self.mean).zip(&self.scale) {
            row.iter_mut().for_each(|weight| *weight *= scale);
            add(&mut bias, row, -mean);
        }
        let graph = Graph::new()
            .tensor("mix", &[EMBEDDING, MIXED], &mix)
            .tensor("mix_bias", &[MIXED], &bias)
            .tensor("deep", &[FLAT, HIDDEN], &weights[DEEP..DEEP_BIAS])
            .tensor("deep_bias", &[HIDDEN], &weights[DEEP_BIAS..OUT])
            .tensor("out", &[HIDDEN, 1], &weights[OUT..OUT_BIAS])
            .tensor("out_bias", &[1], &weights[OUT_BIAS..])
            .node("MatMul", &["window", "mix"], "products", &[])
            .node("Add", &["products", "mix_bias"], "sums", &[])
            .node("Relu", &["sums"], "mixed", &[])
            .node("Flatten", &["mixed"], "flat", &[("axis", 1)])
            .node("Gemm", &["flat", "deep", "deep_bias"], "deep_sums", &[])
            .node("Relu", &["deep_sums"], "hidden", &[])
            .node("Gemm", &["hidden", "out", "out_bias"], "logit", &[])
            .node("Sigmoid", &["logit"], "score", &[]);
        let (threshold, patience) = (settings.threshold.to_string(), settings.patience.to_string());
        let mut metadata =
            vec![(PHRASE_KEY, settings.phrase.as_str()), (THRESHOLD_KEY, &threshold), (PATIENCE_KEY, &patience)];
        metadata.extend_from_slice(notes);
        graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("score", &[1, 1]), &metadata)
    }
}

fn add(to: &mut [f32], row: &[f32], times: f32) {
    for (to, x) in to.iter_mut().zip(row) {
        *to += x * times;
    }
}

/// The probability of these log-odds.
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The state of Adam: running means of the slopes and of their squares.
pub struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: i32,
}

impl Default for Adam {
    fn default() -> Self {
        Self { first: vec![0.0; WEIGHTS], second: vec![0.0; WEIGHTS], steps: 0 }
    }
}

impl Adam {
    fn step(&mut self, weights: &mut [f32], slopes: &[f32], rate: f32) {
        self.steps = self.steps.saturating_add(1);
        let (first_part, second_part) = (1.0 - FIRST_MOMENT.powi(self.steps), 1.0 - SECOND_MOMENT.powi(self.steps));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((weight, slope), (first, second)) in weights.iter_mut().zip(slopes).zip(moments) {
            *first = *first * FIRST_MOMENT + slope * (1.0 - FIRST_MOMENT);
            *second = *second * SECOND_MOMENT + slope * slope * (1.0 - SECOND_MOMENT);
            let step = (*first / first_part) / ((*second / second_part).sqrt() + 1e-8);
            *weight -= rate * (step + DECAY * *weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    fn windows(count: usize, random: &mut SmallRng) -> Vec<Vec<f32>> {
        (0..count).map(|_| (0..WINDOW).map(|_| random.random::<f32>() * 30.0 - 10.0).collect()).collect()
    }

    #[test]
    fn derivatives_are_those_of_finite_differences() {
        let random = &mut SmallRng::seed_from_u64(3);
        let windows = windows(4, random);
        let mut network = Perceptron::new(windows.iter().map(Vec::as_slice), random);
        let mut trace = Trace::new();
        network.standardise(&windows[0], &mut trace.inputs);
        let mut slopes = vec![0.0; WEIGHTS];
        network.forward(&mut trace);
        // With an error of one, the slopes are those of the output itself.
        network.backward(&trace, 1.0, &mut slopes);
        let places =
            [MIX, MIX + 7, MIX + 1_111, MIX_BIAS + 3, DEEP + 5, DEEP + 4_321, DEEP_BIAS + 9, OUT + 2, OUT_BIAS];
        let mut judged = 0;
        for at in places {
            // Small enough that no unit is switched on or off by it.
            let by = 1e-3;
            let mut output = |by: f32| {
                network.weights[at] += by;
                let output = network.forward(&mut trace);
                network.weights[at] -= by;
                output
            };
            let wanted = (output(by) - output(-by)) / (2.0 * by);
            assert!((slopes[at] - wanted).abs() < 0.02 * wanted.abs().max(0.1), "{at}: {} {wanted}", slopes[at]);
            judged += usize::from(wanted != 0.0);
        }
        assert!(judged >= 4, "{judged} of the slopes are not zero");
    }

    #[test]
    fn it_learns_what_can_be_told_apart_and_its_file_says_the_same() {
        let random = &mut SmallRng::seed_from_u64(4);
        let mut windows = windows(240, random);
        // The last three embeddings of every other one are alike.
        for window in windows.iter_mut().step_by(2) {
            window[WINDOW - 3 * EMBEDDING..]
                .iter_mut()
                .enumerate()
                .for_each(|(n, x)| *x = *x * 0.3 + (n % 7 * 2) as f32);
        }
        let is_positive = |index: usize| index.is_multiple_of(2);
        let examples: Vec<Example<'_>> = windows[..200]
            .iter()
            .enumerate()
            .map(|(index, window)| Example { window, positive: is_positive(index), weight: 1.0 })
            .collect();
        let mut network = Perceptron::new(windows.iter().map(Vec::as_slice), random);
        let mut adam = Adam::default();
        let losses: Vec<f32> = (0..30).map(|_| network.learn(&examples, &mut adam, 2e-3, random)).collect();
        assert!(losses[29] < 0.1 * losses[0], "{losses:?}");
        let unseen = windows.iter().enumerate().skip(200);
        let right = unseen.filter(|(index, window)| (network.score(window) > 0.5) == is_positive(*index)).count();
        assert!(right >= 36, "{right} of 40");
        let settings = Settings { phrase: "hey max".to_owned(), threshold: 0.625, patience: 3 };
        let head = Head::of(&network.file(&settings, &[("made", "here")]), "").unwrap();
        assert_eq!(*head.settings(), settings);
        for window in &windows[..20] {
            let (own, read) = (network.score(window), head.score(window).unwrap());
            assert!((own - read).abs() < 1e-3, "{own} {read}");
        }
        // What is read again is the same network, however it standardises.
        let read = Perceptron::read(&Model::read(&network.file(&settings, &[])).unwrap()).unwrap();
        let other = read.standardised_as(&Perceptron::new(windows[..40].iter().map(Vec::as_slice), random));
        assert_ne!(other.mean, network.mean);
        for window in &windows[..20] {
            let [a, b, c] = [&network, &read, &other].map(|network| network.score(window));
            assert!((a - b).abs() < 1e-3 && (a - c).abs() < 1e-3, "{a} {b} {c}");
        }
    }
}
