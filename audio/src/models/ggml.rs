//! Validation of whisper.cpp's model files.
//!
//! whisper.cpp trusts its input: a header with a wrong number makes it allocate without bound, throw a C++ exception or
//! abort, all of which end the process. So each file is validated first, without reading its weights: every number must
//! be within bounds, and every tensor must be known, have the shape that the header implies, and lie inside the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::{Error, Result};

/// "ggml" as a little-endian number.
pub const MAGIC: u32 = 0x6767_6d6c;
/// Width of an attention head, the same in every Whisper model.
pub const HEAD_WIDTH: i32 = 64;

/// Encoder positions, the same in every Whisper model (30 s of sound in steps of 20 ms).
const AUDIO_CONTEXT: i32 = 1_500;
/// Decoder positions, the same in every Whisper model.
const TEXT_CONTEXT: i32 = 448;
/// Vocabulary sizes: English, multilingual, and multilingual with Cantonese (large-v3).
const VOCABULARIES: [i32; 3] = [51_864, 51_865, 51_866];
/// tiny, base, small, medium, large: whisper.cpp throws on any other number of encoder layers.
const AUDIO_LAYERS: [i32; 5] = [4, 6, 12, 24, 32];
/// large has as many decoder layers; distilled models have fewer.
const TEXT_LAYERS_MAX: i32 = 32;
/// Width of the large models.
const STATE_MAX: i32 = 1_280;
/// 80 mels, or 128 in large-v3.
const MELS: [i32; 2] = [80, 128];
/// Bins of the 400-point transform.
const BINS: i32 = 201;
/// The longest token of the vocabularies has 128 bytes (spaces).
const WORD_BYTES_MAX: u32 = 512;
/// Dimensions of a matrix; the weights of a convolution have three.
const MATRIX_RANK: usize = 2;
/// Names are at most 44 bytes.
const NAME_BYTES_MAX: i32 = 64;

/// bfloat16 in a header (`ggml_ftype`), and of a tensor (`ggml_type`).
pub(super) const BF16_FILE_TYPE: i32 = 24;
pub(super) const BF16_TENSOR_TYPE: i32 = 30;

/// The header's numbers, in the file's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hyperparameters {
    /// Tokens, with the special ones.
    pub vocabulary: i32,
    /// Encoder positions.
    pub audio_context: i32,
    /// Encoder width.
    pub audio_state: i32,
    /// Encoder attention heads.
    pub audio_heads: i32,
    /// Encoder layers.
    pub audio_layers: i32,
    /// Decoder positions.
    pub text_context: i32,
    /// Decoder width.
    pub text_state: i32,
    /// Decoder attention heads.
    pub text_heads: i32,
    /// Decoder layers.
    pub text_layers: i32,
    /// Mel bands.
    pub mels: i32,
    /// Storage of the matrices: 0 f32, 1 f16, 24 bf16, else a quantisation, plus 1000 times its version.
    pub file_type: i32,
}

impl Hyperparameters {
    /// In the file's order.
    pub fn to_array(self) -> [i32; 11] {
        [
            self.vocabulary,
            self.audio_context,
            self.audio_state,
            self.audio_heads,
            self.audio_layers,
            self.text_context,
            self.text_state,
            self.text_heads,
            self.text_layers,
            self.mels,
            self.file_type,
        ]
    }

    fn from_array(values: [i32; 11]) -> Self {
        let [
            vocabulary,
            audio_context,
            audio_state,
            audio_heads,
            audio_layers,
            text_context,
            text_state,
            text_heads,
            text_layers,
            mels,
            file_type,
        ] = values;
        Self {
            vocabulary,
            audio_context,
            audio_state,
            audio_heads,
            audio_layers,
            text_context,
            text_state,
            text_heads,
            text_layers,
            mels,
            file_type,
        }
    }

    /// Whether the model knows languages other than English.
    pub fn is_multilingual(&self) -> bool {
        self.vocabulary > VOCABULARIES[0]
    }

    /// Checks every number against what Whisper models have.
    pub(super) fn check(&self, what: &str) -> Result<()> {
        let rules = [
            ("vocabulary", self.vocabulary, VOCABULARIES.contains(&self.vocabulary)),
            ("audio context", self.audio_context, self.audio_context == AUDIO_CONTEXT),
            ("audio width", self.audio_state, (HEAD_WIDTH..=STATE_MAX).contains(&self.audio_state)),
            ("audio heads", self.audio_heads, self.audio_heads.checked_mul(HEAD_WIDTH) == Some(self.audio_state)),
            ("audio layers", self.audio_layers, AUDIO_LAYERS.contains(&self.audio_layers)),
            ("text context", self.text_context, self.text_context == TEXT_CONTEXT),
            ("text width", self.text_state, self.text_state == self.audio_state),
            ("text heads", self.text_heads, self.text_heads == self.audio_heads),
            ("text layers", self.text_layers, (1..=TEXT_LAYERS_MAX).contains(&self.text_layers)),
            ("mel bands", self.mels, MELS.contains(&self.mels)),
            ("file type", self.file_type, Storage::of_file_type(self.file_type).is_some()),
        ];
        match rules.into_iter().find(|(_, _, holds)| !holds) {
            None => Ok(()),
            Some((name, value, _)) => {
                Err(Error::format(what, format!("header: {name} is {value}, which no supported Whisper model has")))
            }
        }
    }
}

/// Storage format of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Bf16,
}

impl Storage {
    /// From the header's `ggml_ftype`.
    fn of_file_type(value: i32) -> Option<Self> {
        // The thousands hold the version of the quantisation.
        Some(match value % 1_000 {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            7 => Self::Q8_0,
            8 => Self::Q5_0,
            9 => Self::Q5_1,
            BF16_FILE_TYPE => Self::Bf16,
            _ => return None,
        })
    }

    /// The `ggml_type` of a tensor.
    fn tensor_type(self) -> i32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q5_1 => 7,
            Self::Q8_0 => 8,
            Self::Bf16 => BF16_TENSOR_TYPE,
        }
    }

    /// Numbers per block and bytes per block.
    fn block(self) -> (u64, u64) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
        }
    }
}

/// Shape (innermost first) and storage that a tensor must have.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    dims: Vec<i32>,
    storage: Storage,
}

impl Expected {
    /// Bytes of data. Cannot overflow: each dimension is at most 51,866.
    fn bytes(&self) -> u64 {
        let (numbers, bytes) = self.storage.block();
        self.dims.iter().map(|dim| *dim as u64).product::<u64>() / numbers * bytes
    }
}

/// Where a matrix in f16 is in a file, in bytes from its beginning.
pub(super) struct HalfMatrix {
    /// Of its `ggml_type`.
    pub type_at: u64,
    pub data: Range<u64>,
}

/// Every tensor of a model with this header, by name.
fn expected(shape: &Hyperparameters) -> BTreeMap<String, Expected> {
    let matrix = Storage::of_file_type(shape.file_type).unwrap_or(Storage::F16);
    let convolution = if matrix == Storage::F32 { Storage::F32 } else { Storage::F16 };
    let width = shape.audio_state;
    let mut all = BTreeMap::new();
    let mut add = |name: String, dims: &[i32], storage| {
        all.insert(name, Expected { dims: dims.to_vec(), storage });
    };
    add("encoder.positional_embedding".into(), &[width, shape.audio_context], Storage::F32);
    add("encoder.conv1.weight".into(), &[3, shape.mels, width], convolution);
    add("encoder.conv1.bias".into(), &[1, width], Storage::F32);
    add("encoder.conv2.weight".into(), &[3, width, width], convolution);
    add("encoder.conv2.bias".into(), &[1, width], Storage::F32);
    add("decoder.positional_embedding".into(), &[width, shape.text_context], Storage::F32);
    add("decoder.token_embedding.weight".into(), &[width, shape.vocabulary], matrix);
    for norm in ["encoder.ln_post", "decoder.ln"] {
        add(format!("{norm}.weight"), &[width], Storage::F32);
        add(format!("{norm}.bias"), &[width], Storage::F32);
    }
    for (side, layers) in [("encoder", shape.audio_layers), ("decoder", shape.text_layers)] {
        let attentions: &[&str] = if side == "encoder" { &["attn"] } else { &["attn", "cross_attn"] };
        for layer in 0..layers {
            let block = format!("{side}.blocks.{layer}");
            for attention in attentions {
                add(format!("{block}.{attention}_ln.weight"), &[width], Storage::F32);
                add(format!("{block}.{attention}_ln.bias"), &[width], Storage::F32);
                for part in ["query", "key", "value", "out"] {
                    add(format!("{block}.{attention}.{part}.weight"), &[width, width], matrix);
                    if part != "key" {
                        add(format!("{block}.{attention}.{part}.bias"), &[width], Storage::F32);
                    }
                }
            }
            add(format!("{block}.mlp_ln.weight"), &[width], Storage::F32);
            add(format!("{block}.mlp_ln.bias"), &[width], Storage::F32);
            add(format!("{block}.mlp.0.weight"), &[width, 4 * width], matrix);
            add(format!("{block}.mlp.0.bias"), &[4 * width], Storage::F32);
            add(format!("{block}.mlp.2.weight"), &[4 * width, width], matrix);
            add(format!("{block}.mlp.2.bias"), &[width], Storage::F32);
        }
    }
    all
}

/// Checks that whisper.cpp can load a file; returns its header.
///
/// Reads the header, the vocabulary's lengths and the tensor table, not the weights. Takes a few milliseconds.
///
/// # Errors
/// [`Error::Format`] with the problem and its position; [`Error::Io`] if the file cannot be read.
pub fn validate(path: &Path) -> Result<Hyperparameters> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let length = file.metadata().map_err(Error::io("read", path))?.len();
    validate_stream(BufReader::new(file), length, &path.display().to_string())
}

/// As [`validate`], of anything that has `length` bytes; `what` names it in errors.
///
/// # Errors
/// As [`validate`].
pub fn validate_stream(stream: impl Read + Seek, length: u64, what: &str) -> Result<Hyperparameters> {
    walk(stream, length, what).map(|(shape, _)| shape)
}

/// As [`validate_stream`]; returns the places of the matrices as well, if they are in f16. Those of convolutions are none.
pub(super) fn walk(stream: impl Read + Seek, length: u64, what: &str) -> Result<(Hyperparameters, Vec<HalfMatrix>)> {
    let mut walk = Walk { stream, at: 0, length, what };
    if walk.number("the magic number")? as u32 != MAGIC {
        return Err(walk.error("this is no GGML Whisper model (wrong magic number)"));
    }
    let mut values = [0; 11];
    for value in &mut values {
        *value = walk.number("the header")?;
    }
    let shape = Hyperparameters::from_array(values);
    shape.check(what)?;
    let (mels, bins) = (walk.number("the filters")?, walk.number("the filters")?);
    if (mels, bins) != (shape.mels, BINS) {
        return Err(walk.error(format!("{mels} x {bins} mel filters, expected {} x {BINS}", shape.mels)));
    }
    walk.skip(4 * mels as u64 * bins as u64, "the mel filters")?;
    walk.words(&shape)?;
    let halves = walk.tensors(&shape)?;
    Ok((shape, halves))
}

struct Walk<'a, S> {
    stream: S,
    at: u64,
    length: u64,
    what: &'a str,
}

impl<S: Read + Seek> Walk<'_, S> {
    fn error(&self, problem: impl std::fmt::Display) -> Error {
        Error::format(self.what, format!("at byte {}: {problem}", self.at))
    }

    fn room_for(&self, count: u64, name: &str) -> Result<()> {
        let left = self.length.saturating_sub(self.at);
        if count > left {
            return Err(self.error(format!("{name} needs {count} bytes, {left} are left; the file is truncated")));
        }
        Ok(())
    }

    fn take(&mut self, buffer: &mut [u8], name: &str) -> Result<()> {
        self.room_for(buffer.len() as u64, name)?;
        self.stream.read_exact(buffer).map_err(|error| self.error(format!("{name}: {error}")))?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn number(&mut self, name: &str) -> Result<i32> {
        let mut bytes = [0; 4];
        self.take(&mut bytes, name)?;
        Ok(i32::from_le_bytes(bytes))
    }

    fn skip(&mut self, count: u64, name: &str) -> Result<()> {
        self.room_for(count, name)?;
        let distance = i64::try_from(count).map_err(|_| self.error(format!("{name} is too large")))?;
        // Seeking discards the reader's buffer, so only weights are skipped; vocabulary entries are read.
        self.stream.seek(SeekFrom::Current(distance)).map_err(|error| self.error(format!("{name}: {error}")))?;
        self.at += count;
        Ok(())
    }

    fn words(&mut self, shape: &Hyperparameters) -> Result<()> {
        let count = self.number("the vocabulary's size")?;
        if !(1..=shape.vocabulary).contains(&count) {
            return Err(self.error(format!("{count} words, the header allows 1 to {}", shape.vocabulary)));
        }
        let mut word = [0; WORD_BYTES_MAX as usize];
        for index in 0..count {
            let length = self.number("a word's length")? as u32;
            if length > WORD_BYTES_MAX {
                return Err(self.error(format!("word {index} has {length} bytes, at most {WORD_BYTES_MAX}")));
            }
            self.take(&mut word[..length as usize], "a word")?;
        }
        Ok(())
    }

    fn tensors(&mut self, shape: &Hyperparameters) -> Result<Vec<HalfMatrix>> {
        let (mut missing, mut halves) = (expected(shape), Vec::new());
        while self.at < self.length {
            let dimensions = self.number("a tensor's rank")?;
            let name_length = self.number("a tensor's name")?;
            let type_at = self.at;
            let storage = self.number("a tensor's type")?;
            if !(1..=3).contains(&dimensions) || !(1..=NAME_BYTES_MAX).contains(&name_length) {
                return Err(self.error(format!("a tensor of rank {dimensions} with a name of {name_length} bytes")));
            }
            let mut dims = Vec::with_capacity(3);
            for _ in 0..dimensions {
                dims.push(self.number("a tensor's shape")?);
            }
            let mut name = vec![0; name_length as usize];
            self.take(&mut name, "a tensor's name")?;
            let name = String::from_utf8_lossy(&name).into_owned();
            let Some(wanted) = missing.remove(&name) else {
                return Err(self.error(format!("tensor {name:?} is unknown or there twice")));
            };
            if dims != wanted.dims || storage != wanted.storage.tensor_type() {
                return Err(self.error(format!(
                    "tensor {name} has shape {dims:?} and type {storage}, the header implies {:?} and type {}",
                    wanted.dims,
                    wanted.storage.tensor_type()
                )));
            }
            let begins = self.at;
            self.skip(wanted.bytes(), &name)?;
            if wanted.storage == Storage::F16 && dims.len() == MATRIX_RANK {
                halves.push(HalfMatrix { type_at, data: begins..self.at });
            }
        }
        match missing.keys().next() {
            None => Ok(halves),
            Some(name) => Err(self.error(format!(
                "the file ends and {} tensors are missing, the first is {name}; it is truncated",
                missing.len()
            ))),
        }
    }
}
