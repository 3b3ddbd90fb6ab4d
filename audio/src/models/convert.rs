//! Converts CTranslate2 models to whisper.cpp's GGML files, without loss.
//!
//! Both formats store the same arrays. The conversion renames them, splits the fused projections (query, key and value
//! share one array in CTranslate2) and adds what CTranslate2 keeps elsewhere: the vocabulary and the mel filters. The
//! GGML layout is that of `models/convert-pt-to-ggml.py` in ggml-org/whisper.cpp; dimensions are written innermost
//! first.

use std::io::{self, Write};

use super::ctranslate2::{Kind, Model, Variable};
use super::ggml::{HEAD_WIDTH, Hyperparameters, MAGIC};
use super::{Error, Result, mel};

/// Tokens that have text. In English models the last one is the end-of-text token; in multilingual ones that token
/// follows them.
const WORDS: usize = 50_257;
/// Tokens of English-only Whisper models, including the special ones.
const VOCABULARY_ENGLISH: usize = 51_864;
/// Tokens of multilingual models without Cantonese.
const VOCABULARY_MULTILINGUAL: usize = 51_865;
/// Most layers of any Whisper model.
const LAYERS_MAX: usize = 32;

/// Writes the GGML form of `model` (a complete CTranslate2 `model.bin`) with `vocabulary` (its complete
/// `vocabulary.txt`) to `out`.
///
/// # Errors
/// [`Error::Format`] if the input is not a Whisper model in f16, [`Error::Io`] if `out` fails.
pub fn ggml_from_ctranslate2(model: &[u8], vocabulary: &[u8], out: &mut impl Write) -> Result<()> {
    let model = Model::parse(model)?;
    if model.spec != "WhisperSpec" {
        return Err(unsupported(format!("it holds a {}, not a Whisper model", model.spec)));
    }
    let shape = shape(&model)?;
    let words = words(vocabulary, shape.is_multilingual())?;
    let mut writer = Writer { out, state: shape.text_state as usize };
    writer.header(&shape, &words).map_err(write_failed)?;
    for (side, layers) in [("encoder", shape.audio_layers), ("decoder", shape.text_layers)] {
        writer.side(&model, side, layers)?;
    }
    Ok(())
}

fn unsupported(problem: impl Into<String>) -> Error {
    Error::format("CTranslate2 model", problem)
}

fn write_failed(source: io::Error) -> Error {
    Error::io("write", std::path::Path::new("the converted model"))(source)
}

/// Sizes of the model, read from the shapes of its arrays.
fn shape(model: &Model) -> Result<Hyperparameters> {
    let dims2 = |name: &str| match *model.get(name)?.dims.as_slice() {
        [rows, columns] => Ok((rows, columns)),
        ref other => Err(unsupported(format!("{name} has the shape {other:?}"))),
    };
    let layers = |side: &str| {
        (0..=LAYERS_MAX).take_while(|i| model.has(&format!("{side}/layer_{i}/ffn/linear_0/weight"))).count()
    };
    let (audio_context, audio_state) = dims2("encoder/position_encodings/encodings")?;
    let (text_context, text_state) = dims2("decoder/position_encodings/encodings")?;
    let (vocabulary, _) = dims2("decoder/embeddings/weight")?;
    let mels = match *model.get("encoder/conv1/weight")?.dims.as_slice() {
        [_, mels, 3] => mels,
        ref other => {
            return Err(unsupported(format!("encoder/conv1/weight has the shape {other:?}")));
        }
    };
    let known = [VOCABULARY_ENGLISH, VOCABULARY_MULTILINGUAL].contains(&vocabulary);
    if !known || mels != mel::MELS || audio_state != text_state {
        return Err(unsupported(format!(
            "only models with {VOCABULARY_ENGLISH} or {VOCABULARY_MULTILINGUAL} tokens and {} mels are converted, this \
             one has {vocabulary} and {mels}",
            mel::MELS
        )));
    }
    let number = |value: usize| i32::try_from(value).map_err(|_| unsupported("a dimension is too large"));
    let shape = Hyperparameters {
        vocabulary: number(vocabulary)?,
        audio_context: number(audio_context)?,
        audio_state: number(audio_state)?,
        audio_heads: number(audio_state / HEAD_WIDTH as usize)?,
        audio_layers: number(layers("encoder"))?,
        text_context: number(text_context)?,
        text_state: number(text_state)?,
        text_heads: number(text_state / HEAD_WIDTH as usize)?,
        text_layers: number(layers("decoder"))?,
        mels: number(mels)?,
        // 1: matrices are f16.
        file_type: 1,
    };
    shape.check("CTranslate2 model")?;
    Ok(shape)
}

/// The raw bytes of each token, decoded from GPT-2's printable alphabet.
fn words(vocabulary: &[u8], multilingual: bool) -> Result<Vec<Vec<u8>>> {
    let bad = |problem: String| Error::format("vocabulary.txt", problem);
    let text = std::str::from_utf8(vocabulary).map_err(|error| bad(error.to_string()))?;
    let own = if multilingual { WORDS } else { WORDS - 1 };
    let mut words = Vec::with_capacity(WORDS);
    for (index, line) in text.split('\n').take(own).enumerate() {
        let word = line.chars().map(byte_of).collect::<Option<Vec<u8>>>();
        words.push(word.ok_or_else(|| bad(format!("line {}: not in GPT-2's byte alphabet", index + 1)))?);
    }
    if words.len() != own {
        return Err(bad(format!("{} lines, at least {own} are needed", words.len())));
    }
    if !multilingual {
        words.push(b"<|endoftext|>".to_vec());
    }
    Ok(words)
}

/// GPT-2 writes each byte as one printable character: printable Latin-1 as itself, the other 68
/// bytes in order from U+0100 on.
fn byte_of(letter: char) -> Option<u8> {
    let printable = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    match u32::from(letter) {
        code @ 0..=255 => Some(code as u8).filter(|byte| printable(*byte)),
        code => (0..=255u8).filter(|byte| !printable(*byte)).nth((code - 256) as usize),
    }
}

struct Writer<'w, W> {
    out: &'w mut W,
    state: usize,
}

impl<W: Write> Writer<'_, W> {
    fn header(&mut self, shape: &Hyperparameters, words: &[Vec<u8>]) -> io::Result<()> {
        self.out.write_all(&MAGIC.to_le_bytes())?;
        for value in shape.to_array() {
            self.out.write_all(&value.to_le_bytes())?;
        }
        for value in [mel::MELS, mel::BINS] {
            self.out.write_all(&(value as i32).to_le_bytes())?;
        }
        for weight in mel::filters() {
            self.out.write_all(&weight.to_le_bytes())?;
        }
        self.out.write_all(&(words.len() as i32).to_le_bytes())?;
        for word in words {
            self.out.write_all(&(word.len() as i32).to_le_bytes())?;
            self.out.write_all(word)?;
        }
        Ok(())
    }

    /// Writes the encoder or the decoder.
    fn side(&mut self, model: &Model, side: &str, layers: i32) -> Result<()> {
        let positions = model.get(&format!("{side}/position_encodings/encodings"))?;
        self.tensor(&format!("{side}.positional_embedding"), positions, Form::F32)?;
        let last = if side == "encoder" {
            for conv in ["conv1", "conv2"] {
                let weight = model.get(&format!("encoder/{conv}/weight"))?;
                self.tensor(&format!("encoder.{conv}.weight"), weight, Form::F16)?;
                let bias = model.get(&format!("encoder/{conv}/bias"))?;
                self.tensor(&format!("encoder.{conv}.bias"), bias, Form::Column)?;
            }
            "ln_post"
        } else {
            let embeddings = model.get("decoder/embeddings/weight")?;
            self.tensor("decoder.token_embedding.weight", embeddings, Form::F16)?;
            "ln"
        };
        self.norm(model, &format!("{side}/layer_norm"), &format!("{side}.{last}"))?;
        for layer in 0..layers {
            let from = format!("{side}/layer_{layer}");
            let to = format!("{side}.blocks.{layer}");
            self.norm(model, &format!("{from}/self_attention/layer_norm"), &format!("{to}.attn_ln"))?;
            let parts = [("attn.query", true), ("attn.key", false), ("attn.value", true)];
            self.fused(model, &format!("{from}/self_attention/linear_0"), &to, &parts)?;
            self.fused(model, &format!("{from}/self_attention/linear_1"), &to, &[("attn.out", true)])?;
            if side == "decoder" {
                self.norm(model, &format!("{from}/attention/layer_norm"), &format!("{to}.cross_attn_ln"))?;
                self.fused(model, &format!("{from}/attention/linear_0"), &to, &[("cross_attn.query", true)])?;
                let parts = [("cross_attn.key", false), ("cross_attn.value", true)];
                self.fused(model, &format!("{from}/attention/linear_1"), &to, &parts)?;
                self.fused(model, &format!("{from}/attention/linear_2"), &to, &[("cross_attn.out", true)])?;
            }
            self.norm(model, &format!("{from}/ffn/layer_norm"), &format!("{to}.mlp_ln"))?;
            for (linear, name) in [("linear_0", "mlp.0"), ("linear_1", "mlp.2")] {
                let weight = model.get(&format!("{from}/ffn/{linear}/weight"))?;
                self.tensor(&format!("{to}.{name}.weight"), weight, Form::F16)?;
                let bias = model.get(&format!("{from}/ffn/{linear}/bias"))?;
                self.tensor(&format!("{to}.{name}.bias"), bias, Form::F32)?;
            }
        }
        Ok(())
    }

    fn norm(&mut self, model: &Model, from: &str, to: &str) -> Result<()> {
        self.tensor(&format!("{to}.weight"), model.get(&format!("{from}/gamma"))?, Form::F32)?;
        self.tensor(&format!("{to}.bias"), model.get(&format!("{from}/beta"))?, Form::F32)
    }

    /// Splits an array into parts of the model's width in rows; a part without a bias must have a zero one.
    fn fused(&mut self, model: &Model, from: &str, to: &str, parts: &[(&str, bool)]) -> Result<()> {
        let weight = model.get(&format!("{from}/weight"))?;
        let bias = model.get(&format!("{from}/bias"))?;
        let rows = self.state * parts.len();
        if weight.dims != [rows, self.state] || bias.dims != [rows] {
            return Err(unsupported(format!("{from} has the shapes {:?} and {:?}", weight.dims, bias.dims)));
        }
        let slices = weight.data.chunks_exact(weight.data.len() / parts.len());
        let biases = bias.data.chunks_exact(bias.data.len() / parts.len());
        for ((name, has_bias), (weights, biases)) in parts.iter().zip(slices.zip(biases)) {
            let part = Variable { dims: vec![self.state, self.state], kind: weight.kind, data: weights };
            self.tensor(&format!("{to}.{name}.weight"), &part, Form::F16)?;
            if *has_bias {
                let part = Variable { dims: vec![self.state], kind: bias.kind, data: biases };
                self.tensor(&format!("{to}.{name}.bias"), &part, Form::F32)?;
            } else if biases.chunks_exact(2).any(|half| half != [0, 0] && half != [0, 0x80]) {
                return Err(unsupported(format!("{from}: {name} has a bias, Whisper has none there")));
            }
        }
        Ok(())
    }

    fn tensor(&mut self, name: &str, variable: &Variable, form: Form) -> Result<()> {
        if variable.kind != Kind::F16 {
            return Err(unsupported(format!("{name} is {:?}, only f16 models are converted", variable.kind)));
        }
        let mut dims: Vec<usize> = variable.dims.iter().rev().copied().collect();
        if form == Form::Column {
            dims.insert(0, 1);
        }
        self.raw_tensor(name, &dims, variable.data, form).map_err(write_failed)
    }

    fn raw_tensor(&mut self, name: &str, dims: &[usize], halves: &[u8], form: Form) -> io::Result<()> {
        let kind = i32::from(form == Form::F16);
        for value in [dims.len() as i32, name.len() as i32, kind] {
            self.out.write_all(&value.to_le_bytes())?;
        }
        for dim in dims {
            self.out.write_all(&(*dim as i32).to_le_bytes())?;
        }
        self.out.write_all(name.as_bytes())?;
        if form == Form::F16 {
            return self.out.write_all(halves);
        }
        halves.chunks_exact(2).try_for_each(|half| {
            self.out.write_all(&f32_from_half(u16::from_le_bytes([half[0], half[1]])).to_le_bytes())
        })
    }
}

/// How an array is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Matrices and convolutions, unchanged.
    F16,
    /// Vectors and positional embeddings.
    F32,
    /// A vector as the second dimension of a matrix: the convolutions' biases.
    Column,
}

/// IEEE 754 half precision to single, exact for every value.
fn f32_from_half(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10) & 0x1f;
    let mantissa = u32::from(half) & 0x3ff;
    match (exponent, mantissa) {
        // Zero and the subnormals, which are multiples of 2^-24.
        (0, mantissa) => f32::from_bits(sign | (mantissa as f32 / 16_777_216.0).to_bits()),
        (0x1f, mantissa) => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        (exponent, mantissa) => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_their_known_values() {
        // IEEE 754-2008: one, minus two, largest, smallest normal, smallest subnormal, infinity.
        let cases = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x7c00, f32::INFINITY),
            (0x3555, 0.333_251_95),
        ];
        for (half, value) in cases {
            assert_eq!(f32_from_half(half), value, "{half:#06x}");
        }
        assert!(f32_from_half(0x7e00).is_nan());
        assert!(f32_from_half(0x8000).is_sign_negative());
    }

    #[test]
    fn the_byte_alphabet_is_gpt2s() {
        assert_eq!(byte_of('!'), Some(33));
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('Ń'), Some(173));
        assert_eq!(byte_of('ń'), None);
        assert_eq!(byte_of(' '), None);
        let all: std::collections::BTreeSet<u8> = ('\0'..'\u{200}').filter_map(byte_of).collect();
        assert_eq!(all.len(), 256);
    }

    #[test]
    fn a_short_or_foreign_vocabulary_is_an_error() {
        assert!(words(b"a\nb\n", false).unwrap_err().to_string().contains("lines"));
        assert!(words("a\nb c\n".as_bytes(), false).unwrap_err().to_string().contains("line 2"));
        assert!(words(&[0xff], true).is_err());
    }
}
