//! Writes heads as ONNX files: just enough of the format for a small graph of named tensors.
//!
//! Source: onnx.proto of ONNX 1.x (IR version 8, operator set 13), in the encoding of Protocol Buffers.

/// The operator set that the nodes are of.
const OPERATOR_SET: u64 = 13;
const IR_VERSION: u64 = 8;
/// `TensorProto.DataType.FLOAT`.
const FLOAT: u64 = 1;
/// `AttributeProto.AttributeType.INT`.
const ATTRIBUTE_INT: u64 = 2;

/// A message under construction.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A graph from one input to one output, both of floats.
#[derive(Clone, Default)]
pub struct Graph {
    nodes: Message,
    tensors: Message,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a constant.
    #[must_use]
    pub fn tensor(mut self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        let mut tensor = Message::default();
        for size in shape {
            tensor = tensor.int(1, *size as u64);
        }
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = tensor.int(2, FLOAT).text(8, name).bytes(9, &raw);
        self.tensors = self.tensors.message(5, &tensor);
        self
    }

    /// Adds an operator with one output, and with whole numbers as attributes.
    #[must_use]
    pub fn node(mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) -> Self {
        let mut node = Message::default();
        for input in inputs {
            node = node.text(1, input);
        }
        node = node.text(2, output).text(3, output).text(4, operator);
        for (name, value) in attributes {
            node = node.message(5, &Message::default().text(1, name).int(3, *value).int(20, ATTRIBUTE_INT));
        }
        self.nodes = self.nodes.message(1, &node);
        self
    }

    /// The whole file. `metadata`: names and values.
    pub fn file(
        &self,
        (input, input_shape): (&str, &[usize]),
        (output, output_shape): (&str, &[usize]),
        metadata: &[(&str, &str)],
    ) -> Vec<u8> {
        let mut graph = Message(self.nodes.0.clone()).text(2, "head");
        graph.0.extend_from_slice(&self.tensors.0);
        let graph = graph.message(11, &value(input, input_shape)).message(12, &value(output, output_shape));
        let set = Message::default().text(1, "").int(2, OPERATOR_SET);
        let model = Message::default().int(1, IR_VERSION).text(2, "lorgnette").message(7, &graph).message(8, &set);
        let entry = |(key, value): &(&str, &str)| Message::default().text(1, key).text(2, value);
        metadata.iter().map(entry).fold(model, |model, entry| model.message(14, &entry)).0
    }
}

fn value(name: &str, shape: &[usize]) -> Message {
    let dimension = |size: &usize| Message::default().int(1, *size as u64);
    let shape = shape.iter().map(dimension).fold(Message::default(), |shape, size| shape.message(1, &size));
    let tensor = Message::default().int(1, FLOAT).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}
