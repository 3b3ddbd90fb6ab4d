//! ONNX files of heads: [written](Graph) with just enough of the format for a small graph, and [read](Model::read)
//! strictly.
//!
//! A head may come from anywhere, and the runtime's own reader believes the lengths that a file states. So a file is read
//! here, what it would compute is [bounded](Model::bounded), and the runtime gets it written anew: nothing reaches it
//! but what was understood.
//!
//! Source: onnx.proto of ONNX 1.x, in the encoding of Protocol Buffers.

mod bound;
mod read;
mod shapes;
mod wire;
mod write;

pub use write::Graph;

/// Most operators, and most constants.
pub const PARTS_MAX: usize = 1_024;

/// Most dimensions of a tensor.
pub const RANK_MAX: usize = 8;

/// Most numbers in all tensors together, constants and what is computed: 8 MiB. Heads of openWakeWord have some 213,000.
pub const NUMBERS_MAX: usize = 2 * 1_024 * 1_024;

/// Most multiplications in one run, and numbers that it reads and writes. Heads of openWakeWord make some 213,000.
pub const WORK_MAX: usize = 32 * 1_024 * 1_024;

/// A head's graph, from one input to one output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The operator set that the nodes are of.
    operator_set: u64,
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
    input: String,
    output: String,
    /// Names and values.
    metadata: Vec<(String, String)>,
}

impl Model {
    /// The value of a metadata field.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The numbers of a constant of 32-bit floats with this name and shape.
    pub fn floats(&self, name: &str, dims: &[usize]) -> Option<Vec<f32>> {
        let tensor = self.tensors.iter().find(|tensor| tensor.name == name)?;
        let fits = tensor.kind == Kind::F32 && tensor.dims == dims;
        fits.then(|| tensor.raw.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

/// An operator. A name that is empty is an input that is not given, or an output that is not wanted.
#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    operator: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    attributes: Vec<(String, Attribute)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Text(String),
}

/// A constant of the graph, `TensorProto` in the file: weights, or a shape.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tensor {
    name: String,
    dims: Vec<usize>,
    kind: Kind,
    /// Its numbers, little-endian, in rows.
    raw: Vec<u8>,
}

/// Kinds of numbers: those of `TensorProto.DataType` that heads use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    F32 = 1,
    U8 = 2,
    I8 = 3,
    I32 = 6,
    I64 = 7,
    Bool = 9,
    F16 = 10,
    F64 = 11,
}

impl Kind {
    fn of(number: u64) -> Option<Self> {
        let all = [Self::F32, Self::U8, Self::I8, Self::I32, Self::I64, Self::Bool, Self::F16, Self::F64];
        all.into_iter().find(|kind| *kind as u64 == number)
    }

    /// How many bytes of `raw` a number takes.
    fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::F16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

impl Tensor {
    /// Its numbers, if they are whole.
    fn whole(&self) -> Option<Vec<i64>> {
        let wide = |bytes: &[u8; 8]| i64::from_le_bytes(*bytes);
        let narrow = |bytes: &[u8; 4]| i64::from(i32::from_le_bytes(*bytes));
        match self.kind {
            Kind::I64 => Some(self.raw.as_chunks().0.iter().map(wide).collect()),
            Kind::I32 => Some(self.raw.as_chunks().0.iter().map(narrow).collect()),
            _ => None,
        }
    }
}

/// The product of these dimensions; `None`: it is above [`NUMBERS_MAX`].
fn numbers(dims: &[usize]) -> Option<usize> {
    // A dimension of zero does not hide a large one.
    let product = dims.iter().try_fold(1_usize, |product, dim| {
        let product = product.checked_mul((*dim).max(1))?;
        (product <= NUMBERS_MAX).then_some(product)
    })?;
    Some(if dims.contains(&0) { 0 } else { product })
}
