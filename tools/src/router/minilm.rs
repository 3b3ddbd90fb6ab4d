//! Sentence embeddings by all-MiniLM-L6-v2 (N. Reimers, I. Gurevych, "Sentence-BERT", 2019; W. Wang et al., "MiniLM",
//! 2020) through rten: English, 384 dimensions, int8 weights.
//!
//! Shapes: inputs `input_ids`, `attention_mask` and `token_type_ids` [1, tokens]; output `last_hidden_state`
//! [1, tokens, 384]. The embedding is the mean over all tokens, including `[CLS]` and `[SEP]`, normalised to length 1.

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::{NdTensor, prelude::*};
use rten_text::{
    TokenId,
    models::{Model as _, WordPiece, WordPieceOptions},
    normalizers::{self, BertOptions, Normalizer as _},
    pre_tokenizers::{self, PreTokenizer as _},
};
use serde::Deserialize;

use super::sentences::{EmbedError, Embedder};

/// Folder of the model's files in the models folder.
pub const FOLDER: &str = "all-minilm-l6-v2";
const MODEL: &str = "model.onnx";
const TOKENIZER: &str = "tokenizer.json";

/// Dimensions of an embedding.
pub const DIMENSIONS: usize = 384;
/// Maximum tokens of a text: longer utterances name the tool among these, and the run time grows with each token.
const TOKENS_MAX: usize = 64;
/// Maximum characters of a text: any text has more than 64 tokens by then, unless it is mostly white space.
const TEXT_CHARS_MAX: usize = 1_000;

/// Why the model cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot load the sentence model {path}: {reason}")]
pub struct LoadError {
    /// File of the model or of its tokenizer.
    pub path: String,
    /// What was wrong.
    pub reason: String,
}

/// The model and its tokenizer, shared by all devices.
pub struct MiniLm {
    words: Words,
    model: Model,
    /// Ids, mask, types.
    inputs: [NodeId; 3],
    output: NodeId,
    options: RunOptions,
}

impl MiniLm {
    /// Loads the model from [`FOLDER`] in the models folder and runs it once as a test.
    ///
    /// # Errors
    /// A file is missing, unreadable, or does not belong to this model.
    pub fn load(models_dir: &Path) -> Result<Self, LoadError> {
        let folder = models_dir.join(FOLDER);
        let failed = |name: &str, reason: &dyn std::fmt::Display| LoadError {
            path: folder.join(name).display().to_string(),
            reason: reason.to_string(),
        };
        let json = fs::read(folder.join(TOKENIZER)).map_err(|error| failed(TOKENIZER, &error))?;
        let words = Words::new(&json).map_err(|reason| failed(TOKENIZER, &reason))?;
        let bytes = fs::read(folder.join(MODEL)).map_err(|error| failed(MODEL, &error))?;
        let model =
            ModelOptions::with_all_ops().prepack_weights(true).load(bytes).map_err(|error| failed(MODEL, &error))?;
        let node = |name| model.node_id(name).map_err(|error| failed(MODEL, &error));
        let inputs = [node("input_ids")?, node("attention_mask")?, node("token_type_ids")?];
        let output = node("last_hidden_state")?;
        // One thread: a sentence is short, and speech recognition needs the other cores.
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        let options = RunOptions::default().with_thread_pool(Some(pool));
        let model = Self { words, model, inputs, output, options };
        model.embed("hello").map_err(|error| failed(MODEL, &error.reason))?;
        Ok(model)
    }

    fn hidden(&self, ids: &[i32]) -> Result<NdTensor<f32, 3>, String> {
        let shape = [1, ids.len()];
        let ids = NdTensor::from_data(shape, ids.to_vec());
        let (mask, types) = (NdTensor::full(shape, 1_i32), NdTensor::full(shape, 0_i32));
        let inputs = [ids.view().into(), mask.view().into(), types.view().into()];
        let inputs = self.inputs.into_iter().zip(inputs).collect();
        let run = self.model.run_n(inputs, [self.output], Some(self.options.clone()));
        let [hidden] = run.map_err(|error| error.to_string())?;
        hidden.try_into().map_err(|_| "its output is no matrix of f32".to_owned())
    }
}

impl Embedder for MiniLm {
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let failed = |reason: String| EmbedError { reason };
        let hidden = self.hidden(&self.words.ids(text).map_err(failed)?).map_err(failed)?;
        let [1, tokens, DIMENSIONS] = hidden.shape() else {
            return Err(failed(format!("its output has the shape {:?}", hidden.shape())));
        };
        let mut sums = vec![0.0; DIMENSIONS];
        for (number, value) in hidden.iter().enumerate() {
            sums[number % DIMENSIONS] += value / tokens as f32;
        }
        let length = sums.iter().map(|x| x * x).sum::<f32>().sqrt();
        if !length.is_finite() || length <= 0.0 {
            return Err(failed(format!("its output has the length {length}")));
        }
        sums.iter_mut().for_each(|x| *x /= length);
        Ok(sums)
    }
}

/// The fields read from `tokenizer.json`; the remaining ones describe what [`Words`] implements.
#[derive(Deserialize)]
struct TokenizerFile {
    model: Vocabulary,
}

#[derive(Deserialize)]
struct Vocabulary {
    vocab: HashMap<String, TokenId>,
}

/// The uncased tokenizer of BERT (J. Devlin et al., 2018). It is assembled from its parts here, since the library's
/// complete tokenizer cannot be shared between threads.
struct Words {
    pieces: WordPiece,
    first: i32,
    last: i32,
}

impl Words {
    fn new(json: &[u8]) -> Result<Self, String> {
        let vocab = serde_json::from_slice::<TokenizerFile>(json).map_err(|error| error.to_string())?.model.vocab;
        let id = |token: &str| vocab.get(token).map(|id| *id as i32).ok_or_else(|| format!("it has no {token}"));
        let (first, last) = (id("[CLS]")?, id("[SEP]")?);
        id("[UNK]")?;
        Ok(Self { pieces: WordPiece::from_vocab(vocab, WordPieceOptions::default()), first, last })
    }

    /// The tokens of a text, at most [`TOKENS_MAX`].
    fn ids(&self, text: &str) -> Result<Vec<i32>, String> {
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let plain = normalizers::Bert::new(BertOptions { lowercase: true, strip_accents: true });
        let (text, _) = plain.normalize(&text).map_err(|error| error.to_string())?;
        let mut ids = vec![self.first];
        let words = pre_tokenizers::Bert::new().pre_tokenize(&text).map_err(|error| error.to_string())?;
        for word in words {
            // The vocabulary has 30,522 words.
            self.pieces
                .encode_with_offsets(word, &mut |_, id| ids.push(id as i32))
                .map_err(|error| format!("{error:?}"))?;
        }
        ids.truncate(TOKENS_MAX - 1);
        ids.push(self.last);
        Ok(ids)
    }
}
