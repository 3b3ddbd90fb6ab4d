//! Text to phonemes: expand addresses, split into sentences, normalise figures, split into words, tag them, look them
//! up, guess unknown ones.

mod abbreviations;
mod addresses;
mod amounts;
mod extra;
mod figures;
mod lexicon;
mod normalize;
mod numbers;
mod oov;
mod phonemize;
mod readings;
mod rule;
mod sentences;
mod stress;
mod tagger;
mod token;
mod tokenize;

use std::collections::HashMap;
use std::path::Path;

use super::{Error, assets};
use lexicon::Lexicon;
use normalize::Normalizer;
use oov::Oov;
use phonemize::Phonemizer;
use tagger::Tagger;
use tokenize::Tokenizer;

/// Most phonemes of one run of the network; longer sentences are cut at clause marks.
const PHONEMES_MAX: usize = 400;

/// The text front end of a voice.
pub(super) struct FrontEnd {
    normalizer: Normalizer,
    phonemizer: Phonemizer,
    vocab: HashMap<char, i32>,
}

impl FrontEnd {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        let vocab: HashMap<char, i32> = assets::read_json(dir, assets::VOCAB)?;
        Ok(Self {
            normalizer: Normalizer::load(dir)?,
            phonemizer: Phonemizer::new(
                Tokenizer::load(dir)?,
                Tagger::load(dir)?,
                Lexicon::load(dir)?,
                Oov::load(dir)?,
            )?,
            vocab,
        })
    }

    /// The ids of each stretch that is synthesised at once.
    pub(super) fn phoneme_ids(&self, text: &str) -> Result<Vec<Vec<i32>>, Error> {
        let mut stretches = Vec::new();
        for sentence in sentences::split(&addresses::in_words(text), self.normalizer.titles()) {
            let phonemes = self.phonemizer.phonemize(&self.normalizer.normalize(sentence))?;
            for stretch in sentences::split_phonemes(&phonemes, PHONEMES_MAX) {
                let ids: Vec<i32> = stretch.chars().filter_map(|phoneme| self.vocab.get(&phoneme).copied()).collect();
                // A stretch of punctuation only is not spoken.
                if stretch.chars().any(char::is_alphabetic) && !ids.is_empty() {
                    stretches.push(ids);
                }
            }
        }
        Ok(stretches)
    }
}
