//! Ranks tools by meaning: the description of a tool and the wearer's utterance are embedded in one vector space, in
//! which similar meanings are close to each other.
//!
//! Vectors are computed by an [`Embedder`], in milliseconds each: [`Sentences::learn`] and [`Sentences::rank`] belong
//! on a compute thread. Vectors of tools are computed in advance and cached by the content of their sentence, so that a
//! tool that is registered again under another revision costs nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gateway_core::vocab::ToolSpec;
use sha2::{Digest as _, Sha256};

use super::{index, lists::PerList};
use crate::registry::Specs;

/// Maximum cached vectors: about 1.5 KB each. If there are more tools, they are selected by words only.
pub const TOOLS_MAX: usize = 4_096;
/// Maximum characters of a sentence: the purpose of a tool is stated at the beginning.
const SENTENCE_CHARS_MAX: usize = 500;
/// Damping constant for ranks, so that the first place in a single ranking does not dominate.
const FUSION_K: f32 = 60.0;

/// Computes embeddings of texts.
pub trait Embedder: Send + Sync {
    /// The embedding of a text: a vector of length 1, always of the same dimension. Takes milliseconds.
    ///
    /// # Errors
    /// [`EmbedError`].
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

/// Why a text could not be embedded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sentence embedding: {reason}")]
pub struct EmbedError {
    /// What went wrong.
    pub reason: String,
}

/// SHA-256 of a sentence.
type Key = [u8; 32];

/// The vectors of all tools, shared by all devices.
pub struct Sentences {
    embedder: Arc<dyn Embedder>,
    points: Mutex<HashMap<Key, Arc<[f32]>>>,
    keys: PerList<Vec<Key>>,
}

impl Sentences {
    /// An empty cache.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, points: Mutex::default(), keys: PerList::default() }
    }

    /// Removes tools that are not among these, and returns the sentences that are still to be embedded, up to a total
    /// of [`TOOLS_MAX`].
    pub fn settle(&self, tools: &[Arc<ToolSpec>]) -> Vec<String> {
        let mut wanted = HashSet::new();
        let mut missing = Vec::new();
        let known: HashSet<Key> = self.points().keys().copied().collect();
        for tool in tools {
            let sentence = sentence(tool);
            let key = key(&sentence);
            if wanted.len() < TOOLS_MAX && wanted.insert(key) && !known.contains(&key) {
                missing.push(sentence);
            }
        }
        self.points().retain(|key, _| wanted.contains(key));
        missing
    }

    /// Computes and stores the vector of a sentence.
    ///
    /// # Errors
    /// [`EmbedError`]; nothing is stored in that case.
    pub fn learn(&self, sentence: &str) -> Result<(), EmbedError> {
        let point = self.embedder.embed(sentence)?;
        let mut points = self.points();
        if points.len() < TOOLS_MAX {
            points.insert(key(sentence), point.into());
        }
        Ok(())
    }

    /// Positions of the tools in the list that are closest in meaning to the words, best first, with cosines above 0.
    /// Empty for words without a letter or a digit; `None` while vectors of the list are missing.
    ///
    /// # Errors
    /// [`EmbedError`].
    pub fn rank(&self, tools: &Specs, words: &str) -> Result<Option<Vec<(usize, f32)>>, EmbedError> {
        if !words.contains(char::is_alphanumeric) {
            return Ok(Some(Vec::new()));
        }
        let keys = self.keys.get(tools, |tools| tools.iter().map(|tool| key(&sentence(tool))).collect());
        let known: Option<Vec<Arc<[f32]>>> = {
            let points = self.points();
            keys.iter().map(|key| points.get(key).cloned()).collect()
        };
        let Some(known) = known else { return Ok(None) };
        let point = self.embedder.embed(words)?;
        Ok(Some(index::sorted(known.iter().map(|tool| cosine(tool, &point)).collect())))
    }

    /// No code that can panic runs under this lock.
    fn points(&self) -> MutexGuard<'_, HashMap<Key, Arc<[f32]>>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Combines several rankings by ranks only: word scores and cosines are not comparable.
///
/// Source: G. Cormack, C. Clarke, S. Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
/// Learning Methods", SIGIR 2009.
pub fn fused(tools: usize, rankings: [&[(usize, f32)]; 2]) -> Vec<(usize, f32)> {
    let mut scores = vec![0.0; tools];
    for ranking in rankings {
        for (place, (at, _)) in ranking.iter().enumerate() {
            if let Some(score) = scores.get_mut(*at) {
                *score += 1.0 / (FUSION_K + 1.0 + place as f32);
            }
        }
    }
    index::sorted(scores)
}

/// The sentence that is embedded for a tool: the words of its name, and its description.
fn sentence(tool: &ToolSpec) -> String {
    let mut sentence = String::new();
    let mut last_lower = false;
    for letter in tool.name.chars() {
        if letter.is_uppercase() && last_lower {
            sentence.push(' ');
        }
        last_lower = letter.is_lowercase();
        sentence.extend(if letter.is_alphanumeric() { letter } else { ' ' }.to_lowercase());
    }
    sentence.push_str(": ");
    sentence.extend(tool.description.chars().take(SENTENCE_CHARS_MAX));
    sentence
}

fn key(sentence: &str) -> Key {
    Sha256::digest(sentence.as_bytes()).into()
}

/// The cosine of two vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
#[path = "sentences_tests.rs"]
mod tests;
