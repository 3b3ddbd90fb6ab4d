//! Writes models.

use super::wire::Message;
use super::{Attribute, Kind, Model, Node, Tensor};

/// The operator set of graphs that are made here.
const OPERATOR_SET: u64 = 13;
const IR_VERSION: u64 = 8;

/// A graph from one input to one output, both of floats, under construction.
#[derive(Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a constant.
    #[must_use]
    pub fn tensor(mut self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.push(Tensor { name: name.to_owned(), dims: shape.to_vec(), kind: Kind::F32, raw });
        self
    }

    /// Adds a constant row of whole numbers.
    #[must_use]
    pub fn whole(mut self, name: &str, values: &[i64]) -> Self {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.push(Tensor { name: name.to_owned(), dims: vec![values.len()], kind: Kind::I64, raw });
        self
    }

    /// Adds an operator with one output, and with whole numbers as attributes.
    #[must_use]
    pub fn node(mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) -> Self {
        self.nodes.push(Node {
            operator: operator.to_owned(),
            inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
            outputs: vec![output.to_owned()],
            attributes: attributes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Attribute::Int(*value as i64)))
                .collect(),
        });
        self
    }

    /// The whole file. `metadata`: names and values.
    pub fn file(
        &self,
        (input, input_shape): (&str, &[usize]),
        (output, output_shape): (&str, &[usize]),
        metadata: &[(&str, &str)],
    ) -> Vec<u8> {
        let model = Model {
            operator_set: OPERATOR_SET,
            nodes: self.nodes.clone(),
            tensors: self.tensors.clone(),
            input: input.to_owned(),
            output: output.to_owned(),
            metadata: metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        model.file(input_shape, output_shape)
    }
}

impl Model {
    /// Its file, with these shapes of input and output.
    pub fn file(&self, input: &[usize], output: &[usize]) -> Vec<u8> {
        let nodes = self.nodes.iter().fold(Message::default(), |graph, one| graph.message(1, &node(one)));
        let graph = self.tensors.iter().fold(nodes.text(2, "head"), |graph, one| graph.message(5, &tensor(one)));
        let graph = graph.message(11, &value(&self.input, input)).message(12, &value(&self.output, output));
        let set = Message::default().text(1, "").int(2, self.operator_set);
        let model = Message::default().int(1, IR_VERSION).text(2, "lorgnette").message(7, &graph).message(8, &set);
        let entry = |(key, value): &(String, String)| Message::default().text(1, key).text(2, value);
        self.metadata.iter().map(entry).fold(model, |model, entry| model.message(14, &entry)).0
    }
}

fn node(node: &Node) -> Message {
    let message = node.inputs.iter().fold(Message::default(), |message, name| message.text(1, name));
    let message = node.outputs.iter().fold(message, |message, name| message.text(2, name));
    let name = node.outputs.first().map_or("", String::as_str);
    let message = message.text(3, name).text(4, &node.operator);
    node.attributes.iter().fold(message, |message, (name, value)| {
        let attribute = Message::default().text(1, name);
        // The last field is `AttributeProto.AttributeType`.
        let attribute = match value {
            Attribute::Float(x) => attribute.float(2, *x).int(20, 1),
            Attribute::Int(x) => attribute.int(3, *x as u64).int(20, 2),
            Attribute::Text(text) => attribute.text(4, text).int(20, 3),
            Attribute::Ints(all) => all.iter().fold(attribute, |message, x| message.int(8, *x as u64)).int(20, 7),
        };
        message.message(5, &attribute)
    })
}

fn tensor(tensor: &Tensor) -> Message {
    let message = tensor.dims.iter().fold(Message::default(), |message, dim| message.int(1, *dim as u64));
    message.int(2, tensor.kind as u64).text(8, &tensor.name).bytes(9, &tensor.raw)
}

fn value(name: &str, shape: &[usize]) -> Message {
    let dimension = |size: &usize| Message::default().int(1, *size as u64);
    let shape = shape.iter().map(dimension).fold(Message::default(), |shape, size| shape.message(1, &size));
    let tensor = Message::default().int(1, Kind::F32 as u64).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}
