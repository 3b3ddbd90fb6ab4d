//! How much a model asks for, before it runs: every shape is followed from the input on, exactly. What depends on the
//! values of the input is refused where it would be a shape.

use std::collections::BTreeMap;

use super::shapes::{self, Known};
use super::{Model, NUMBERS_MAX, WORK_MAX, numbers};
use crate::wake::{EMBEDDING, EMBEDDINGS};

/// Names with what is known of them, and how many numbers they have together.
#[derive(Default)]
struct Values<'a> {
    known: BTreeMap<&'a str, Known>,
    total: usize,
}

impl<'a> Values<'a> {
    fn add(&mut self, name: &'a str, value: Known) -> Result<(), String> {
        // An empty tensor would hide how often something is done with it.
        if value.dims.len() > 1 && value.dims.contains(&0) {
            return Err(format!("{name:?} is empty: its dimensions are {:?}", value.dims));
        }
        let count = numbers(&value.dims).ok_or_else(|| too_many(name))?;
        self.total = self.total.saturating_add(count);
        if self.total > NUMBERS_MAX {
            return Err(too_many(name));
        }
        if !name.is_empty() && self.known.insert(name, value).is_some() {
            return Err(format!("it has two values for one {name:?}"));
        }
        Ok(())
    }
}

fn too_many(name: &str) -> String {
    format!("with {name:?} its tensors have more than {NUMBERS_MAX} numbers, which no head of a phrase needs")
}

impl Model {
    /// Checks what a run takes, and returns the shape of the output. The runtime's own buffers come on top: packed weights,
    /// parts of a convolution, and a list of the matrices of a product.
    ///
    /// # Errors
    /// In words: the tensors have more than [`NUMBERS_MAX`] numbers, a run has more work than [`WORK_MAX`], an
    /// operator is not known, or a shape does not follow from the shape of the input.
    pub fn bounded(&self) -> Result<Vec<usize>, String> {
        let mut values = Values::default();
        for tensor in &self.tensors {
            let small = tensor.dims.len() < 2 && tensor.raw.len() <= 16 * size_of::<i64>();
            let whole = if small { tensor.whole() } else { None };
            values.add(&tensor.name, Known { dims: tensor.dims.clone(), whole })?;
        }
        values.add(&self.input, Known::of(vec![1, EMBEDDINGS, EMBEDDING]))?;
        let mut work = 0_usize;
        for node in &self.nodes {
            let find = |name: &String| match values.known.get(name.as_str()) {
                Some(known) => Ok(Some(known)),
                None if name.is_empty() => Ok(None),
                None => Err(format!("nothing before its operator {:?} makes {name:?}", node.operator)),
            };
            let inputs = node.inputs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            let failed = |reason| format!("its operator {:?} cannot be computed: {reason}", node.operator);
            let step = shapes::of(node, &inputs).map_err(failed)?;
            // Every number is read or written once at least.
            let known = inputs.iter().flatten().copied().chain(&step.outputs);
            let touched = known.filter_map(|known| numbers(&known.dims)).fold(0, usize::saturating_add);
            work = work.saturating_add(step.work).saturating_add(touched);
            if work > WORK_MAX {
                return Err(failed(format!("with it a run has more than {WORK_MAX} multiplications and numbers")));
            }
            if node.outputs.len() > step.outputs.len() {
                return Err(failed(format!("it has {} outputs", node.outputs.len())));
            }
            // One that is not wanted is computed all the same.
            let names = node.outputs.iter().map(String::as_str).chain(std::iter::repeat(""));
            for (name, value) in names.zip(step.outputs) {
                values.add(name, value)?;
            }
        }
        let output = values.known.remove(self.output.as_str());
        output.map(|known| known.dims).ok_or_else(|| format!("nothing makes its output {:?}", self.output))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Attribute, Graph};
    use super::*;

    /// A graph of nodes over a few constants, read again from its file.
    fn read(graph: &Graph) -> Result<Vec<usize>, String> {
        let file = graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("out", &[1]), &[]);
        Model::read(&file)?.bounded()
    }

    fn reason(graph: &Graph) -> String {
        read(graph).unwrap_err()
    }

    #[test]
    fn shapes_follow_from_the_input() {
        let flat = || Graph::new().node("Flatten", &["window"], "out", &[("axis", 1)]);
        assert_eq!(read(&flat()).unwrap(), [1, 1_536]);
        let shape = Graph::new().whole("to", &[0, -1, 8]).node("Reshape", &["window", "to"], "out", &[]);
        assert_eq!(read(&shape).unwrap(), [1, 192, 8]);
        // The chain that exporters write for "keep the batch".
        let chain = Graph::new()
            .node("Shape", &["window"], "shape", &[])
            .whole("first", &[0])
            .whole("rest", &[-1])
            .node("Gather", &["shape", "first"], "batch", &[("axis", 0)])
            .node("Concat", &["batch", "rest"], "to", &[("axis", 0)])
            .node("Reshape", &["window", "to"], "out", &[]);
        assert_eq!(read(&chain).unwrap(), [1, 1_536]);
        let cut = Graph::new()
            .whole("from", &[-1])
            .whole("to", &[i64::MAX])
            .whole("axis", &[1])
            .node("Slice", &["window", "from", "to", "axis"], "last", &[])
            .node("Squeeze", &["last", "axis"], "out", &[]);
        assert_eq!(read(&cut).unwrap(), [1, 96]);
        let turned = Graph::new().node("Transpose", &["window"], "turned", &[]).node(
            "MatMul",
            &["window", "turned"],
            "out",
            &[],
        );
        assert!(reason(&turned).contains("[96, 16, 1]"), "{}", reason(&turned));
    }

    #[test]
    fn networks_of_every_kind_have_their_shapes() {
        let weights = |dims: &[usize]| vec![0.0; dims.iter().product()];
        let with = |graph: Graph, name: &str, dims: &[usize]| graph.tensor(name, dims, &weights(dims));
        let mut recurrent = with(with(Graph::new(), "w", &[1, 128, 96]), "r", &[1, 128, 32]);
        recurrent = recurrent.node("LSTM", &["window", "w", "r"], "out", &[("hidden_size", 32)]);
        assert_eq!(read(&recurrent).unwrap(), [1, 1, 16, 32]);
        let mut gated = with(with(Graph::new(), "w", &[1, 96, 96]), "r", &[1, 96, 32]);
        gated = gated.node("GRU", &["window", "w", "r"], "out", &[("hidden_size", 32)]);
        assert_eq!(read(&gated).unwrap(), [1, 1, 16, 32]);
        // Over the steps as over the values of a channel.
        let filtered = with(Graph::new(), "w", &[8, 16, 3]).node("Conv", &["window", "w"], "out", &[]);
        assert_eq!(read(&filtered).unwrap(), [1, 8, 94]);
        let pooled = Graph::new().node("GlobalAveragePool", &["window"], "out", &[]);
        assert_eq!(read(&pooled).unwrap(), [1, 16, 1]);
        let mean = Graph::new().node("ReduceMean", &["window"], "out", &[("keepdims", 0)]);
        assert_eq!(read(&mean).unwrap(), [0_usize; 0]);
        let product = with(Graph::new(), "w", &[96, 5]).node("MatMul", &["window", "w"], "out", &[]);
        assert_eq!(read(&product).unwrap(), [1, 16, 5]);
    }

    #[test]
    fn a_column_times_a_row_is_refused() {
        let row = |count: usize| vec![1.0; count];
        let square = Graph::new()
            .tensor("column", &[4_000, 1], &row(4_000))
            .tensor("row", &[1, 4_000], &row(4_000))
            .node("MatMul", &["column", "row"], "out", &[]);
        assert!(reason(&square).contains("numbers"), "{}", reason(&square));
        let mut sums = Graph::new().tensor("column", &[1_000, 1], &row(1_000)).tensor("row", &[1_000], &row(1_000));
        sums = sums.node("Add", &["column", "row"], "sum1", &[]);
        for n in 1..4 {
            sums = sums.node("Relu", &[&format!("sum{n}")], &format!("sum{}", n + 1), &[]);
        }
        // Each is small enough; together they are not.
        assert!(reason(&sums.node("Identity", &["sum4"], "out", &[])).contains("numbers"));
        let mut doubled = Graph::new().node("Identity", &["window"], "x0", &[]);
        for n in 0..40 {
            let (from, to) = (format!("x{n}"), format!("x{}", n + 1));
            doubled = doubled.node("Concat", &[&from, &from], &to, &[("axis", 1)]);
        }
        assert!(reason(&doubled.node("Identity", &["x40"], "out", &[])).contains("numbers"));
    }

    #[test]
    fn a_run_without_an_end_is_refused() {
        let side = 700;
        let weights = vec![0.0; side * side];
        let square = Graph::new().tensor("a", &[side, side], &weights).tensor("b", &[side, side], &weights).node(
            "MatMul",
            &["a", "b"],
            "out",
            &[],
        );
        assert!(reason(&square).contains("multiplications"), "{}", reason(&square));
        // Small results of much reading.
        let numbers = vec![0.0; 1_000_000];
        let mut read_often = Graph::new().tensor("much", &[1_000, 1_000], &numbers).whole("rows", &[0]);
        for n in 0..40 {
            read_often = read_often.node("ReduceMean", &["much", "rows"], &format!("mean{n}"), &[]);
        }
        assert!(reason(&read_often).contains("multiplications"), "{}", reason(&read_often));
        // Many products that are next to nothing each.
        let many = Graph::new().tensor("a", &[100_000, 1, 1], &numbers[..100_000]).tensor("b", &[1, 1, 1], &[0.0]);
        let many = many.node("MatMul", &["a", "b"], "out", &[]);
        assert!(reason(&many).contains("multiplications"), "{}", reason(&many));
    }

    #[test]
    fn empty_tensors_are_refused() {
        let empty = Graph::new()
            .whole("none", &[0])
            .whole("rows", &[1])
            .node("Slice", &["window", "none", "none", "rows"], "empty", &[])
            .whole("to", &[2_000_000, 0, 1])
            .node("Reshape", &["empty", "to"], "out", &[("allowzero", 1)]);
        assert!(reason(&empty).contains("\"empty\" is empty"), "{}", reason(&empty));
    }

    #[test]
    fn shapes_that_depend_on_sound_are_refused() {
        let cast = Graph::new()
            .node("ReduceMean", &["window"], "mean", &[("keepdims", 0)])
            .node("Cast", &["mean"], "whole", &[("to", 7)])
            .node("Reshape", &["window", "whole"], "out", &[]);
        assert!(reason(&cast).contains("of what is heard"), "{}", reason(&cast));
        let loose = Graph::new().node("Relu", &["later"], "out", &[]).node("Relu", &["window"], "later", &[]);
        assert!(reason(&loose).contains("nothing before"), "{}", reason(&loose));
        let twice = Graph::new().node("Relu", &["window"], "out", &[]).node("Tanh", &["window"], "out", &[]);
        assert!(reason(&twice).contains("two values"), "{}", reason(&twice));
    }

    #[test]
    fn what_is_read_and_written_is_the_same() {
        let graph = Graph::new()
            .tensor("weights", &[1_536, 1], &[0.5; 1_536])
            .whole("shape", &[1, -1])
            .node("Reshape", &["window", "shape"], "flat", &[("allowzero", 0)])
            .node("MatMul", &["flat", "weights"], "out", &[]);
        let file = graph.file(("window", &[1, 16, 96]), ("out", &[1, 1]), &[("made", "here")]);
        let mut model = Model::read(&file).unwrap();
        assert_eq!(model.file(&[1, 16, 96], &[1, 1]), file);
        assert_eq!((model.metadata("made"), model.metadata("else")), (Some("here"), None));
        let all = [Attribute::Ints(vec![-1, 7]), Attribute::Float(0.25), Attribute::Text("reverse".to_owned())];
        model.nodes[0].attributes =
            all.into_iter().zip(["a", "b", "c"]).map(|(x, name)| (name.to_owned(), x)).collect();
        assert_eq!(Model::read(&model.file(&[1, 16, 96], &[1, 1])).unwrap(), model);
    }
}
