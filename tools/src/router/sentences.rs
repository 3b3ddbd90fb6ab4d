//! Tools by meaning: what a tool says of itself and what the wearer says are points of one space, near to one another
//! where they mean the same.
//!
//! Points are made by an [`Embedder`], in milliseconds each: [`Sentences::learn`] and [`Sentences::rank`] belong on a
//! compute thread. Points of tools are made ahead and kept by the content of their sentence, so that a tool that
//! comes again under another revision costs nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gateway_core::vocab::ToolSpec;
use sha2::{Digest as _, Sha256};

use super::{index, lists::PerList};
use crate::registry::Specs;

/// Points that are kept: some 1.5 KB each. Where there are more tools, words alone choose.
pub const TOOLS_MAX: usize = 4_096;
/// Characters of a sentence: what a tool is for stands at its beginning.
const SENTENCE_CHARS_MAX: usize = 500;
/// What a place in a ranking is damped by, so that being first in one of them is not all.
const FUSION_K: f32 = 60.0;

/// Makes points of texts.
pub trait Embedder: Send + Sync {
    /// The point of a text: a vector of length 1, of as many numbers as every other. Takes milliseconds.
    ///
    /// # Errors
    /// [`EmbedError`].
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

/// Why a text has no point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sentence embedding: {reason}")]
pub struct EmbedError {
    /// What went wrong.
    pub reason: String,
}

/// SHA-256 of a sentence.
type Key = [u8; 32];

/// The points of all tools, shared by all devices.
pub struct Sentences {
    embedder: Arc<dyn Embedder>,
    points: Mutex<HashMap<Key, Arc<[f32]>>>,
    keys: PerList<Vec<Key>>,
}

impl Sentences {
    /// Knows no tools yet.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, points: Mutex::default(), keys: PerList::default() }
    }

    /// Forgets tools that are not among these, and returns the sentences that are still to be learnt, so many that no
    /// more than [`TOOLS_MAX`] are known then.
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

    /// Makes the point of a sentence and keeps it.
    ///
    /// # Errors
    /// [`EmbedError`]; nothing is kept then.
    pub fn learn(&self, sentence: &str) -> Result<(), EmbedError> {
        let point = self.embedder.embed(sentence)?;
        let mut points = self.points();
        if points.len() < TOOLS_MAX {
            points.insert(key(sentence), point.into());
        }
        Ok(())
    }

    /// Places in the list whose tools mean what the words mean, best first, with cosines above 0. Empty for words
    /// without a letter or a digit; `None` while tools of the list are unknown.
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

    /// Nothing that can panic runs under this lock.
    fn points(&self) -> MutexGuard<'_, HashMap<Key, Arc<[f32]>>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One ranking out of several, by places alone: scores of words and cosines have no common measure.
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

/// What a tool says of itself: the words of its name, and what it does.
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

/// Of two vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
#[path = "sentences_tests.rs"]
mod tests;
