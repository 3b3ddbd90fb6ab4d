//! Words in no lexicon: a small network reads them letter by letter (CTC: repeats collapse, blanks drop).

use std::collections::HashMap;
use std::path::Path;

use rten::{Model, NodeId};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use serde::Deserialize;

use super::super::acoustic::{load_model, on_one_thread};
use super::super::{Error, assets};

/// Longest word length accepted from the alphabet's file; the real one has 24.
const LETTERS_MAX: usize = 64;

pub(super) struct Oov {
    model: Model,
    input: NodeId,
    output: NodeId,
    letters: HashMap<char, i32>,
    phonemes: Vec<char>,
    letters_max: usize,
}

#[derive(Deserialize)]
struct Alphabet {
    r#in: Vec<char>,
    out: Vec<char>,
    maxlen: usize,
}

impl Oov {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        let alphabet: Alphabet = assets::read_json(dir, assets::OOV_ALPHABET)?;
        let model = load_model(dir, assets::OOV)?;
        let node = |name| model.node_id(name).map_err(|error| assets::damaged(dir, assets::OOV, error));
        let (input, output) = (node("chars")?, node("ids")?);
        // Id 0 is the blank.
        let letters = alphabet.r#in.into_iter().zip(1..).collect();
        let letters_max = alphabet.maxlen.min(LETTERS_MAX);
        Ok(Self { model, input, output, letters, phonemes: alphabet.out, letters_max })
    }

    /// The phonemes of `word`; empty if it has no letter of the alphabet. Letters past the network's window are not
    /// read.
    pub(super) fn read(&self, word: &str) -> Result<String, Error> {
        let known = word.chars().filter_map(|c| self.letters.get(&c).copied());
        let letters: Vec<i32> = known.take(self.letters_max).collect();
        if letters.is_empty() {
            return Ok(String::new());
        }
        let letters = NdTensor::from_data([1, letters.len()], letters);
        let [ids] = self
            .model
            .run_n(vec![(self.input, letters.view().into())], [self.output], Some(on_one_thread()))
            .map_err(|error| failed(error.to_string()))?;
        let ids: Tensor<i32> = ids.try_into().map_err(|_| failed("ids are not integers".to_owned()))?;
        let mut phonemes = String::new();
        let mut before = 0;
        for id in ids.iter().copied() {
            if id != before && id != 0 {
                phonemes.extend(usize::try_from(id - 1).ok().and_then(|id| self.phonemes.get(id)));
            }
            before = id;
        }
        Ok(phonemes)
    }
}

fn failed(reason: String) -> Error {
    Error::Model { model: "unknown-word", reason }
}
