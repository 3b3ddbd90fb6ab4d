//! Reads models. What a head does not need is refused (branches, files beside the file) or left out (comments, shapes that
//! are stated for what is computed).

use super::wire::{Fields, Value};
use super::{Attribute, Kind, Model, Node, PARTS_MAX, RANK_MAX, Tensor, numbers};
use crate::wake::{EMBEDDING, EMBEDDINGS};

/// Most inputs, outputs and attributes of one operator.
const PORTS_MAX: usize = 16;

/// Most fields of metadata.
const METADATA_MAX: usize = 64;

impl Model {
    /// Reads a file.
    ///
    /// # Errors
    /// In words: it is truncated or no ONNX file, it has more parts than heads have, or something that heads do not
    /// have, or its input is not that of a head.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let (mut model, mut graph) = (Self::default(), None);
        for field in Fields(bytes) {
            match field? {
                (7, value) => once(&mut graph, value.bytes()?, "graph")?,
                (8, value) => {
                    let (domain, version) = operator_set(value.bytes()?)?;
                    if is_default(domain) {
                        model.operator_set = version;
                    }
                }
                (14, value) => {
                    let (mut key, mut text) = (String::new(), String::new());
                    for field in Fields(value.bytes()?) {
                        match field? {
                            (1, value) => value.text()?.clone_into(&mut key),
                            (2, value) => value.text()?.clone_into(&mut text),
                            _ => {}
                        }
                    }
                    push(&mut model.metadata, (key, text), METADATA_MAX, "fields of metadata")?;
                }
                (20, _) | (25, _) => return Err("it has functions of its own or training; heads have none".to_owned()),
                _ => {}
            }
        }
        model.graph(graph.ok_or("it has no graph: it is no ONNX file")?)?;
        if model.operator_set == 0 {
            return Err("it states no operator set".to_owned());
        }
        Ok(model)
    }

    fn graph(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for field in Fields(bytes) {
            match field? {
                (1, value) => match operator(value.bytes()?)? {
                    Operator::Node(node) => push(&mut self.nodes, node, PARTS_MAX, "operators")?,
                    Operator::Constant(tensor) => push(&mut self.tensors, tensor, PARTS_MAX, "constants")?,
                },
                (5, value) => push(&mut self.tensors, tensor(value.bytes()?)?, PARTS_MAX, "constants")?,
                (11, value) => push(&mut inputs, port(value.bytes()?)?, PARTS_MAX, "inputs")?,
                (12, value) => push(&mut outputs, port(value.bytes()?)?, PARTS_MAX, "outputs")?,
                (15, _) => return Err("it has sparse constants; save it with plain ones".to_owned()),
                _ => {}
            }
        }
        // Old files list their constants as inputs, too.
        inputs.retain(|(name, _)| !self.tensors.iter().any(|tensor| tensor.name == *name));
        let ([(input, dims)], [(output, _)]) = (&inputs[..], &outputs[..]) else {
            let (inputs, outputs) = (inputs.len(), outputs.len());
            return Err(format!("it has {inputs} inputs and {outputs} outputs instead of one and one"));
        };
        let wanted = [1, EMBEDDINGS as i64, EMBEDDING as i64];
        let fits =
            dims.len() == wanted.len() && dims.iter().zip(wanted).all(|(got, wanted)| *got == wanted || *got == 0);
        if !dims.is_empty() && !fits {
            return Err(format!("its input is {dims:?}; it must be {wanted:?}"));
        }
        (self.input, self.output) = (input.clone(), output.clone());
        Ok(())
    }
}

fn is_default(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

fn once<T>(to: &mut Option<T>, value: T, what: &str) -> Result<(), String> {
    if to.replace(value).is_some() { Err(format!("it has two values for one {what}")) } else { Ok(()) }
}

fn push<T>(to: &mut Vec<T>, value: T, most: usize, what: &str) -> Result<(), String> {
    if to.len() >= most {
        return Err(format!("it has more than {most} {what}"));
    }
    to.push(value);
    Ok(())
}

fn operator_set(bytes: &[u8]) -> Result<(&str, u64), String> {
    let (mut domain, mut version) = ("", 0);
    for field in Fields(bytes) {
        match field? {
            (1, value) => domain = value.text()?,
            (2, value) => version = value.int()?,
            _ => {}
        }
    }
    Ok((domain, version))
}

/// An input or output: its name, and its dimensions as far as they are stated; 0 is one that is not.
fn port(bytes: &[u8]) -> Result<(String, Vec<i64>), String> {
    let (mut name, mut dims) = (String::new(), Vec::new());
    for field in Fields(bytes) {
        match field? {
            (1, value) => value.text()?.clone_into(&mut name),
            (2, value) => {
                // Its type, of a tensor, with a shape, of dimensions.
                for tensor in inner(value, 1)? {
                    for shape in inner(tensor, 2)? {
                        for dim in inner(shape, 1)? {
                            let size = inner(dim, 1)?.first().map_or(Ok(0), |size| size.int())?;
                            push(&mut dims, size as i64, RANK_MAX, "dimensions")?;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, dims))
}

/// All fields of this number in a message.
fn inner(message: Value<'_>, number: u64) -> Result<Vec<Value<'_>>, String> {
    let mut values = Vec::new();
    for field in Fields(message.bytes()?) {
        let (field, value) = field?;
        if field == number {
            push(&mut values, value, RANK_MAX, "dimensions")?;
        }
    }
    Ok(values)
}

enum Operator {
    Node(Node),
    Constant(Tensor),
}

fn operator(bytes: &[u8]) -> Result<Operator, String> {
    let (mut node, mut constant) = (Node::default(), None);
    for field in Fields(bytes) {
        match field? {
            (1, value) => push(&mut node.inputs, value.text()?.to_owned(), PORTS_MAX, "inputs of an operator")?,
            (2, value) => push(&mut node.outputs, value.text()?.to_owned(), PORTS_MAX, "outputs of an operator")?,
            (4, value) => value.text()?.clone_into(&mut node.operator),
            (5, value) => {
                let (name, attribute) = attribute(value.bytes()?)?;
                match attribute {
                    AttributeOrTensor::Tensor(tensor) => once(&mut constant, tensor, "constant")?,
                    AttributeOrTensor::Attribute(value) => {
                        if node.attributes.iter().any(|(known, _)| *known == name) {
                            return Err(format!("it has two values for one {name}"));
                        }
                        push(&mut node.attributes, (name, value), PORTS_MAX, "attributes of an operator")?;
                    }
                }
            }
            (7, value) if !is_default(value.text()?) => {
                return Err(format!("its operators of {:?} are not known", value.text()?));
            }
            _ => {}
        }
    }
    if node.operator != "Constant" {
        let plain = constant.is_none();
        return if plain { Ok(Operator::Node(node)) } else { Err("an operator has a tensor as attribute".to_owned()) };
    }
    let of = |kind, dims, raw: Vec<u8>| Tensor { name: String::new(), dims, kind, raw };
    let mut tensor = match (constant, node.attributes.first()) {
        (Some(tensor), _) => tensor,
        (None, Some((_, Attribute::Int(x)))) => of(Kind::I64, Vec::new(), x.to_le_bytes().to_vec()),
        (None, Some((_, Attribute::Float(x)))) => of(Kind::F32, Vec::new(), x.to_le_bytes().to_vec()),
        (None, Some((_, Attribute::Ints(all)))) => {
            of(Kind::I64, vec![all.len()], all.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        _ => return Err("it has a constant without a value".to_owned()),
    };
    tensor.name = node.outputs.into_iter().next().unwrap_or_default();
    Ok(Operator::Constant(tensor))
}

enum AttributeOrTensor {
    Attribute(Attribute),
    Tensor(Tensor),
}

fn attribute(bytes: &[u8]) -> Result<(String, AttributeOrTensor), String> {
    let (mut name, mut kind) = (String::new(), None);
    let (mut int, mut float, mut text, mut ints, mut constant) = (None, None, None, Vec::new(), None);
    for field in Fields(bytes) {
        match field? {
            (1, value) => value.text()?.clone_into(&mut name),
            (2, value) => float = Some(value.float()?),
            (3, value) => int = Some(value.int()? as i64),
            (4, value) => text = Some(value.text()?.to_owned()),
            (5, value) => constant = Some(tensor(value.bytes()?)?),
            (8, Value::Bytes(packed)) => {
                for value in Fields::packed(packed) {
                    push(&mut ints, value? as i64, PORTS_MAX, "numbers in an attribute")?;
                }
            }
            (8, value) => push(&mut ints, value.int()? as i64, PORTS_MAX, "numbers in an attribute")?,
            (20, value) => kind = Some(value.int()?),
            _ => {}
        }
    }
    // Zero may be left out where the kind is stated.
    let attribute = match kind {
        Some(1) => Attribute::Float(float.unwrap_or_default()),
        Some(2) => Attribute::Int(int.unwrap_or_default()),
        Some(3) => Attribute::Text(text.unwrap_or_default()),
        Some(7) => Attribute::Ints(ints),
        Some(4) => {
            let tensor = constant.ok_or_else(|| format!("its attribute {name} has no value"))?;
            return Ok((name, AttributeOrTensor::Tensor(tensor)));
        }
        _ => return Err(format!("its attribute {name:?} is of no kind that heads have")),
    };
    Ok((name, AttributeOrTensor::Attribute(attribute)))
}

fn tensor(bytes: &[u8]) -> Result<Tensor, String> {
    let (mut tensor, mut kind, mut raw) = (Tensor::default(), None, None);
    let (mut narrow, mut wide, mut floats) = (Vec::new(), Vec::new(), Vec::new());
    for field in Fields(bytes) {
        match field? {
            (1, value) => {
                let size = usize::try_from(value.int()?).unwrap_or(usize::MAX);
                push(&mut tensor.dims, size, RANK_MAX, "dimensions of a constant")?;
            }
            (2, value) => once(&mut kind, value.int()?, "kind of a constant")?,
            (4, value) => floats.extend_from_slice(value.bytes()?),
            (5, value) => {
                for value in Fields::packed(value.bytes()?) {
                    narrow.extend_from_slice(&(value? as i32).to_le_bytes());
                }
            }
            (7, value) => {
                for value in Fields::packed(value.bytes()?) {
                    wide.extend_from_slice(&value?.to_le_bytes());
                }
            }
            (8, value) => value.text()?.clone_into(&mut tensor.name),
            (9, value) => once(&mut raw, value.bytes()?.to_vec(), "value of a constant")?,
            (13, _) | (14, Value::Int(1)) => return Err("its constants are in another file; save it as one".to_owned()),
            _ => {}
        }
    }
    let kind = kind.unwrap_or_default();
    tensor.kind = Kind::of(kind).ok_or_else(|| format!("it has constants of the kind {kind}, which heads have not"))?;
    tensor.raw = raw.unwrap_or(match tensor.kind {
        Kind::F32 => floats,
        Kind::I32 => narrow,
        Kind::I64 => wide,
        _ => Vec::new(),
    });
    let wanted = numbers(&tensor.dims).map(|count| count * tensor.kind.bytes());
    if wanted != Some(tensor.raw.len()) {
        return Err(format!("its constant {:?} has {} bytes for {:?}", tensor.name, tensor.raw.len(), tensor.dims));
    }
    Ok(tensor)
}
