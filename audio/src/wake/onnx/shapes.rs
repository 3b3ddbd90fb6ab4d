//! The shapes of what operators compute, and how much work that is: those of the operators that classifiers are made of.
//!
//! Source: the operators' specification, ONNX operator sets 9 to 21.

use super::{Attribute, Kind, NUMBERS_MAX, Node, RANK_MAX, numbers};

/// What is known of a value before it is computed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) dims: Vec<usize>,
    /// The numbers themselves, where they are whole, few, and follow from shapes.
    pub(super) whole: Option<Vec<i64>>,
}

impl Known {
    pub(super) fn of(dims: Vec<usize>) -> Self {
        Self { dims, whole: None }
    }
}

/// What an operator computes.
pub(super) struct Step {
    pub(super) outputs: Vec<Known>,
    /// Multiplications, and what each product of matrices costs besides.
    pub(super) work: usize,
}

/// Multiplications that would take as long as beginning a product of matrices, however small.
const PRODUCT_WORK: usize = 1_000;

/// An operator with its inputs.
struct Call<'a> {
    node: &'a Node,
    inputs: &'a [Option<&'a Known>],
}

type Dims = Result<Vec<usize>, String>;

/// # Errors
/// In words: the operator is not known, or cannot be applied to these inputs.
pub(super) fn of(node: &Node, inputs: &[Option<&Known>]) -> Result<Step, String> {
    let call = Call { node, inputs };
    let mut work = 0;
    let mut whole = None;
    let dims = match node.operator.as_str() {
        "Cast" | "Identity" => {
            whole.clone_from(&call.input(0)?.whole);
            if node.operator == "Cast" && call.int("to", 0)? == Kind::F32 as i64 {
                whole = None;
            } else if node.operator == "Cast" {
                // Whole numbers of what is heard could be any, also those that cannot be divided.
                let is_whole = [Kind::I32, Kind::I64].map(|kind| kind as i64).contains(&call.int("to", 0)?);
                if !is_whole || whole.is_none() {
                    return Err("it makes another kind of numbers of what is heard".to_owned());
                }
            }
            call.dims(0)?.to_vec()
        }
        "BatchNormalization" | "Clip" | "LeakyRelu" | "Relu" | "Sigmoid" | "Softmax" | "Sqrt" | "Tanh" => {
            call.dims(0)?.to_vec()
        }
        "LayerNormalization" => {
            let dims = call.dims(0)?;
            for known in (1..inputs.len()).filter_map(|at| call.optional(at)) {
                if broadcast(dims, &known.dims)? != dims {
                    return Err(format!("{:?} does not fit {dims:?}", known.dims));
                }
            }
            dims.to_vec()
        }
        "Add" | "Div" | "Mul" | "Pow" | "Sub" => broadcast(call.dims(0)?, call.dims(1)?)?,
        "MatMul" => call.product(&mut work)?,
        "Gemm" => call.gemm(&mut work)?,
        "Conv" => call.convolution(&mut work)?,
        "LSTM" => return call.recurrent(4),
        "GRU" => return call.recurrent(3),
        "Shape" => {
            let dims = call.dims(0)?;
            if call.int("start", 0)? != 0 || call.attribute("end").is_some() {
                return Err("it takes a part of a shape".to_owned());
            }
            whole = Some(dims.iter().map(|dim| *dim as i64).collect());
            vec![dims.len()]
        }
        "Concat" => {
            whole = call.all_whole();
            call.joined()?
        }
        "Gather" => {
            whole = call.picked();
            let (data, indices) = (call.dims(0)?, call.dims(1)?);
            let axis = axis(call.int("axis", 0)?, data.len())?;
            [&data[..axis], indices, &data[axis + 1..]].concat()
        }
        "Slice" => call.cut(&mut whole)?,
        "Squeeze" | "Unsqueeze" => {
            whole.clone_from(&call.input(0)?.whole);
            call.squeezed()?
        }
        "Reshape" => call.reshaped()?,
        "Flatten" => {
            let dims = call.dims(0)?;
            // Behind the last dimension is allowed here.
            let at = call.int("axis", 1)?;
            let at = if at == dims.len() as i64 { dims.len() } else { axis(at, dims.len())? };
            vec![count(&dims[..at])?, count(&dims[at..])?]
        }
        "Transpose" => call.turned()?,
        "ReduceMean" => call.mean()?,
        "GlobalAveragePool" => match call.dims(0)? {
            [batch, channels, rest @ ..] => [&[*batch, *channels][..], &vec![1; rest.len()]].concat(),
            _ => return Err("it has too few dimensions".to_owned()),
        },
        _ => return Err("it is not one that heads are made of".to_owned()),
    };
    if dims.len() > RANK_MAX {
        return Err(format!("its result has {} dimensions", dims.len()));
    }
    // Numbers are kept in rows only.
    let whole = whole.filter(|all| dims.len() < 2 && all.len() == dims.iter().product::<usize>());
    Ok(Step { outputs: vec![Known { dims, whole }], work })
}

fn count(dims: &[usize]) -> Result<usize, String> {
    numbers(dims).ok_or_else(|| format!("{dims:?} has more than {NUMBERS_MAX} numbers"))
}

/// A place among so many, from the end where it is negative.
fn axis(at: i64, rank: usize) -> Result<usize, String> {
    let from_start = if at < 0 { at.saturating_add(rank as i64) } else { at };
    let place = usize::try_from(from_start).ok().filter(|place| *place < rank);
    place.ok_or_else(|| format!("it has no dimension {at} of {rank}"))
}

fn broadcast(a: &[usize], b: &[usize]) -> Dims {
    let rank = a.len().max(b.len());
    let at = |dims: &[usize], place: usize| (place + dims.len()).checked_sub(rank).map_or(1, |place| dims[place]);
    let one = |place| match (at(a, place), at(b, place)) {
        (1, other) | (other, 1) => Ok(other),
        (x, y) if x == y => Ok(x),
        _ => Err(format!("{a:?} does not fit {b:?}")),
    };
    (0..rank).map(one).collect()
}

/// Product of the factors, at most `usize::MAX`.
fn times(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, factor| product.saturating_mul(*factor))
}

/// Work of so many products of matrices.
fn products(count: usize, multiplications: usize) -> usize {
    count.saturating_mul(multiplications.saturating_add(PRODUCT_WORK))
}

impl<'a> Call<'a> {
    fn optional(&self, at: usize) -> Option<&'a Known> {
        self.inputs.get(at).copied().flatten()
    }

    fn input(&self, at: usize) -> Result<&'a Known, String> {
        self.optional(at).ok_or_else(|| format!("its input {at} is missing"))
    }

    fn dims(&self, at: usize) -> Result<&'a [usize], String> {
        Ok(&self.input(at)?.dims)
    }

    fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn int(&self, name: &str, default: i64) -> Result<i64, String> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Int(value)) => Ok(*value),
            Some(_) => Err(format!("its {name} is no whole number")),
        }
    }

    fn text(&self, name: &str, default: &'static str) -> Result<&'a str, String> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Text(value)) => Ok(value),
            Some(_) => Err(format!("its {name} is no word")),
        }
    }

    /// Whole numbers, by an attribute or, in newer operator sets, an input.
    fn ints(&self, name: &str, at: usize) -> Result<Option<&'a [i64]>, String> {
        match (self.attribute(name), self.optional(at)) {
            (None, None) => Ok(None),
            (Some(Attribute::Ints(all)), None) => Ok(Some(all)),
            (None, Some(known)) => {
                let whole = known.whole.as_deref();
                Ok(Some(whole.ok_or_else(|| format!("its {name} depends on what is heard"))?))
            }
            _ => Err(format!("its {name} is no list of whole numbers, or stated twice")),
        }
    }

    /// Sizes by an attribute; so many of `default` if there is none.
    fn sizes(&self, name: &str, many: usize, default: usize) -> Dims {
        let Some(all) = self.ints(name, usize::MAX)? else { return Ok(vec![default; many]) };
        let sizes: Option<Vec<usize>> =
            all.iter().map(|x| usize::try_from(*x).ok().filter(|x| *x <= NUMBERS_MAX)).collect();
        sizes.filter(|sizes| sizes.len() == many).ok_or_else(|| format!("its {name} are {all:?}"))
    }

    fn product(&self, work: &mut usize) -> Dims {
        let (a, b) = (self.dims(0)?, self.dims(1)?);
        let ([batch_a @ .., rows, inner], [batch_b @ .., other, columns]) = (a, b) else {
            return Err(format!("{a:?} times {b:?} are no matrices"));
        };
        if inner != other {
            return Err(format!("{a:?} does not fit {b:?}"));
        }
        let batch = broadcast(batch_a, batch_b)?;
        let dims = [&batch[..], &[*rows, *columns]].concat();
        *work = products(times(&batch), times(&[*rows, *columns, *inner]));
        Ok(dims)
    }

    fn gemm(&self, work: &mut usize) -> Dims {
        let (&[a, b], &[c, d]) = (self.dims(0)?, self.dims(1)?) else { return Err("it has no matrices".to_owned()) };
        let (rows, inner) = if self.int("transA", 0)? == 0 { (a, b) } else { (b, a) };
        let (other, columns) = if self.int("transB", 0)? == 0 { (c, d) } else { (d, c) };
        if inner != other {
            return Err(format!("{inner} columns do not fit {other} rows"));
        }
        let dims = vec![rows, columns];
        if self.optional(2).is_some() && broadcast(&dims, self.dims(2)?)? != dims {
            return Err("what it adds is larger than its product".to_owned());
        }
        *work = products(1, times(&[rows, columns, inner]));
        Ok(dims)
    }

    fn convolution(&self, work: &mut usize) -> Dims {
        let (&[batch, channels, ref sizes @ ..], &[filters, per_group, ref kernel @ ..]) =
            (self.dims(0)?, self.dims(1)?)
        else {
            return Err("it has too few dimensions".to_owned());
        };
        let many = sizes.len();
        let group = usize::try_from(self.int("group", 1)?).unwrap_or(0);
        if many == 0 || kernel.len() != many || group == 0 || per_group.saturating_mul(group) != channels {
            return Err(format!("{:?} does not fit {:?}", self.dims(0)?, self.dims(1)?));
        }
        if self.sizes("kernel_shape", many, 0)?.iter().zip(kernel).any(|(stated, size)| ![0, *size].contains(stated)) {
            return Err("its kernel_shape is not that of its weights".to_owned());
        }
        let (strides, dilations) = (self.sizes("strides", many, 1)?, self.sizes("dilations", many, 1)?);
        let pads = self.sizes("pads", 2 * many, 0)?;
        let same = match self.text("auto_pad", "NOTSET")? {
            "NOTSET" => false,
            "SAME_UPPER" | "SAME_LOWER" => true,
            other => return Err(format!("its auto_pad is {other:?}")),
        };
        let mut dims = vec![batch, filters];
        for (n, size) in sizes.iter().enumerate() {
            if strides[n] == 0 || dilations[n] == 0 || kernel[n] == 0 {
                return Err("it has a stride, dilation or kernel of zero".to_owned());
            }
            // None of these is above two million.
            let (whole, span) = (size + pads[n] + pads[n + many], (kernel[n] - 1) * dilations[n] + 1);
            let places = whole.checked_sub(span).ok_or_else(|| format!("a kernel of {span} is larger than {whole}"))?;
            dims.push(if same { size.div_ceil(strides[n]) } else { places / strides[n] + 1 });
        }
        let multiplications = times(&dims).saturating_mul(per_group).saturating_mul(times(kernel));
        *work = products(times(&[batch, group]), 0).saturating_add(multiplications);
        Ok(dims)
    }

    /// LSTM and GRU, which have so many gates.
    fn recurrent(&self, gates: usize) -> Result<Step, String> {
        let (&[steps, batch, values], &[turns, rows, columns], &[again, same_rows, hidden]) =
            (self.dims(0)?, self.dims(1)?, self.dims(2)?)
        else {
            return Err("its inputs have not three dimensions".to_owned());
        };
        let directions = if self.text("direction", "forward")? == "bidirectional" { 2 } else { 1 };
        let fits = [turns, again] == [directions; 2] && columns == values && [rows, same_rows] == [gates * hidden; 2];
        let stated = self.int("hidden_size", hidden as i64)? == hidden as i64 && self.int("layout", 0)? == 0;
        if !fits || !stated {
            return Err(format!("{:?}, {:?} and {:?} do not fit", self.dims(0)?, self.dims(1)?, self.dims(2)?));
        }
        let all = Known::of(vec![steps, directions, batch, hidden]);
        let last = Known::of(vec![directions, batch, hidden]);
        let work = products(times(&[steps, directions]), times(&[batch, rows, values.saturating_add(hidden)]));
        Ok(Step { outputs: [vec![all], vec![last; gates - 2]].concat(), work })
    }

    fn joined(&self) -> Dims {
        let first = self.dims(0)?;
        let axis = axis(self.int("axis", 0)?, first.len())?;
        let mut dims = first.to_vec();
        for at in 1..self.inputs.len() {
            let other = self.dims(at)?;
            let fits =
                other.len() == dims.len() && other.iter().zip(&dims).enumerate().all(|(n, (x, y))| n == axis || x == y);
            if !fits {
                return Err(format!("{other:?} does not fit {first:?}"));
            }
            dims[axis] += other[axis];
        }
        Ok(dims)
    }

    fn all_whole(&self) -> Option<Vec<i64>> {
        let all: Option<Vec<&Vec<i64>>> = self.inputs.iter().map(|input| (*input)?.whole.as_ref()).collect();
        Some(all?.into_iter().flatten().copied().collect())
    }

    /// The numbers that a `Gather` picks from a row.
    fn picked(&self) -> Option<Vec<i64>> {
        let (data, places) = (self.optional(0)?, self.optional(1)?);
        let (row, places) = (data.whole.as_ref()?, places.whole.as_ref()?);
        places.iter().map(|place| axis(*place, row.len()).ok().map(|at| row[at])).collect()
    }

    fn cut(&self, whole: &mut Option<Vec<i64>>) -> Dims {
        let data = self.input(0)?;
        let part = |name, at| self.ints(name, at)?.ok_or_else(|| format!("its {name} are missing"));
        let (starts, ends) = (part("starts", 1)?, part("ends", 2)?);
        let (axes, steps) = (self.ints("axes", 3)?, self.ints("steps", 4)?);
        if starts.len() != ends.len()
            || axes.is_some_and(|all| all.len() != starts.len())
            || steps.is_some_and(|all| all.iter().any(|step| *step != 1))
        {
            return Err("its starts, ends, axes and steps do not fit; steps must be 1".to_owned());
        }
        let mut dims = data.dims.clone();
        whole.clone_from(&data.whole);
        for (n, (start, end)) in starts.iter().zip(ends).enumerate() {
            let at = axis(axes.map_or(n as i64, |axes| axes[n]), dims.len())?;
            let size = data.dims[at] as i64;
            let place = |x: i64| if x < 0 { x.saturating_add(size) } else { x }.clamp(0, size);
            let (from, to) = (place(*start), place(*end).max(place(*start)));
            dims[at] = (to - from) as usize;
            *whole = whole.take().and_then(|row| row.get(from as usize..to as usize).map(<[i64]>::to_vec));
        }
        Ok(dims)
    }

    fn squeezed(&self) -> Dims {
        let dims = self.dims(0)?;
        let axes = self.ints("axes", 1)?.ok_or("it states no axes")?;
        let adds = self.node.operator == "Unsqueeze";
        let rank = if adds { dims.len() + axes.len() } else { dims.len() };
        let mut places = axes.iter().map(|at| axis(*at, rank)).collect::<Result<Vec<_>, _>>()?;
        places.sort_unstable();
        places.dedup();
        if places.len() != axes.len() {
            return Err(format!("its axes {axes:?} name one twice"));
        }
        if adds {
            let mut rest = dims.iter().copied();
            return Ok((0..rank).map(|n| if places.contains(&n) { 1 } else { rest.next().unwrap_or(1) }).collect());
        }
        if let Some(at) = places.iter().find(|at| dims[**at] != 1) {
            return Err(format!("dimension {at} of {dims:?} is not 1"));
        }
        Ok(dims.iter().enumerate().filter(|(n, _)| !places.contains(n)).map(|(_, dim)| *dim).collect())
    }

    fn reshaped(&self) -> Dims {
        let dims = self.dims(0)?;
        let wanted = self.ints("shape", 1)?.ok_or("it states no shape")?;
        let keep = self.int("allowzero", 0)? == 0;
        let (mut to, mut open) = (Vec::new(), None);
        for (n, size) in wanted.iter().enumerate() {
            let dim = match *size {
                0 if keep => *dims.get(n).ok_or("it keeps a dimension that is not there")?,
                -1 if open.replace(n).is_none() => 1,
                size => usize::try_from(size).map_err(|_| format!("its shape is {wanted:?}"))?,
            };
            to.push(dim);
        }
        let (all, stated) = (count(dims)?, count(&to)?);
        if let Some(at) = open {
            to[at] = all.checked_div(stated).unwrap_or(0);
        }
        if count(&to)? == all { Ok(to) } else { Err(format!("{dims:?} cannot be {wanted:?}")) }
    }

    fn turned(&self) -> Dims {
        let dims = self.dims(0)?;
        let Some(order) = self.ints("perm", usize::MAX)? else { return Ok(dims.iter().rev().copied().collect()) };
        let places = order.iter().map(|at| axis(*at, dims.len())).collect::<Result<Vec<_>, _>>()?;
        let mut sorted = places.clone();
        sorted.sort_unstable();
        if sorted.len() != dims.len() || sorted.iter().enumerate().any(|(n, at)| n != *at) {
            return Err(format!("its order {order:?} is none of {dims:?}"));
        }
        Ok(places.into_iter().map(|at| dims[at]).collect())
    }

    fn mean(&self) -> Dims {
        let dims = self.dims(0)?;
        let axes = self.ints("axes", 1)?.unwrap_or_default();
        if self.int("noop_with_empty_axes", 0)? != 0 {
            return Err("it may do nothing".to_owned());
        }
        let places = axes.iter().map(|at| axis(*at, dims.len())).collect::<Result<Vec<_>, _>>()?;
        let gone = |n: usize| axes.is_empty() || places.contains(&n);
        let keep = self.int("keepdims", 1)? != 0;
        let size = |(n, dim): (usize, &usize)| if gone(n) { keep.then_some(1) } else { Some(*dim) };
        Ok(dims.iter().enumerate().filter_map(size).collect())
    }
}
