//! Part-of-speech tags by an averaged perceptron: words with one usual tag from a list, the others by weighted
//! features of the word and its two neighbours on either side.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;
use serde::de::Error as _;

use super::super::Error;
use super::super::assets::{self, Pairs, Pooled, Table};

const BEFORE: [&str; 2] = ["-START2-", "-START-"];
const AFTER: [&str; 2] = ["-END-", "-END2-"];
/// The tag of an unknown word.
const NOUN: &str = "NN";

pub(super) struct Tagger {
    /// Sorted, so that the later of two equal candidates is the greater one.
    tags: Vec<String>,
    usual: Table<String>,
    vocab: HashSet<Box<str>>,
    weights: Table<Weights>,
}

/// The file; weights are given in tenths.
#[derive(Deserialize)]
struct Model {
    tags: Vec<String>,
    tagdict: Table<String>,
    vocab: HashSet<Box<str>>,
    weights: Table<Weights>,
}

/// Weights of one feature in tenths, by the tag's name.
struct Weights(Vec<(TagName, i16)>);

/// The name of a tag, short enough to be stored inline.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TagName([u8; 6]);

impl TagName {
    fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self(bytes))
    }
}

impl<'de> Deserialize<'de> for Weights {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Pairs(pairs) = Pairs::<f32>::deserialize(deserializer)?;
        let weights = pairs.into_iter().map(|(tag, weight)| {
            let name = TagName::new(&tag).ok_or_else(|| D::Error::custom(format!("tag {tag:?} is too long")))?;
            Ok((name, (weight * 10.0).round() as i16))
        });
        Ok(Self(weights.collect::<Result<_, _>>()?))
    }
}

impl Pooled for Weights {
    type Item = (TagName, i16);
    fn append(self, pool: &mut Vec<Self::Item>) {
        pool.extend(self.0);
    }
}

impl Pooled for String {
    type Item = u8;
    fn append(self, pool: &mut Vec<u8>) {
        pool.extend_from_slice(self.as_bytes());
    }
}

impl Tagger {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        let Model { mut tags, tagdict, vocab, weights } = assets::read_json(dir, assets::TAGGER)?;
        tags.sort();
        Ok(Self { tags, usual: tagdict, vocab, weights })
    }

    /// One tag per word; words are not empty.
    pub(super) fn tag(&self, words: &[&str]) -> Vec<&str> {
        let context = self.context(words);
        let (mut before2, mut before) = (BEFORE[0], BEFORE[1]);
        let mut scorer = Scorer::new(self);
        let mut tags = Vec::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            let usual = self.usual.get(word).and_then(|tag| std::str::from_utf8(tag).ok());
            let tag = match usual {
                Some(tag) => tag,
                None => scorer.tag(at, word, &context, before, before2),
            };
            tags.push(tag);
            (before2, before) = (before, tag);
        }
        tags
    }

    /// The words as features, with two marks at each end.
    fn context(&self, words: &[&str]) -> Vec<String> {
        let known = words.iter().map(|word| {
            let normal = normal(word);
            if self.vocab.contains(normal.as_str()) { normal } else { format!("<{}>", shape(word)) }
        });
        BEFORE.into_iter().map(String::from).chain(known).chain(AFTER.into_iter().map(String::from)).collect()
    }
}

/// Sums of weights for one word.
struct Scorer<'t> {
    tagger: &'t Tagger,
    names: Vec<Option<TagName>>,
    scores: Vec<i32>,
    feature: String,
}

impl<'t> Scorer<'t> {
    fn new(tagger: &'t Tagger) -> Self {
        let names = tagger.tags.iter().map(|tag| TagName::new(tag)).collect();
        Self { tagger, names, scores: vec![0; tagger.tags.len()], feature: String::new() }
    }

    fn tag(&mut self, at: usize, word: &str, context: &[String], before: &str, before2: &str) -> &'t str {
        // The word itself is at `at + 2` in the context.
        let near = |offset: usize| context.get(at + offset).map_or("", String::as_str);
        self.scores.fill(0);
        self.add("b", &[]);
        self.add("s3=", &[last3(word)]);
        self.add("p1=", &[word.char_indices().nth(1).map_or(word, |(end, _)| &word[..end])]);
        self.add("w=", &[near(2)]);
        self.add("sh=", &[&shape(word)]);
        self.add(if at == 0 { "i0" } else { "i+" }, &[]);
        self.add("t-1=", &[before]);
        self.add("t-2=", &[before2]);
        self.add("t-12=", &[before, ",", before2]);
        self.add("w-1=", &[near(1)]);
        self.add("s3-1=", &[last3(near(1))]);
        self.add("w-2=", &[near(0)]);
        self.add("w+1=", &[near(3)]);
        self.add("s3+1=", &[last3(near(3))]);
        self.add("w+2=", &[near(4)]);
        let best = self.tagger.tags.iter().zip(&self.scores).max_by_key(|(_, score)| **score);
        best.map_or(NOUN, |(tag, _)| tag)
    }

    fn add(&mut self, name: &str, parts: &[&str]) {
        self.feature.clear();
        self.feature.push_str(name);
        parts.iter().for_each(|part| self.feature.push_str(part));
        for (tag, weight) in self.tagger.weights.get(&self.feature).unwrap_or_default() {
            if let Some(at) = self.names.iter().position(|name| *name == Some(*tag)) {
                self.scores[at] += i32::from(*weight);
            }
        }
    }
}

fn last3(word: &str) -> &str {
    word.char_indices().nth_back(2).map_or(word, |(start, _)| &word[start..])
}

/// The word as the vocabulary lists it.
fn normal(word: &str) -> String {
    let first = word.chars().next().unwrap_or_default();
    if first != '-' && word.contains('-') {
        "!HYPHEN".to_owned()
    } else if word.chars().all(char::is_numeric) && word.chars().count() == 4 {
        "!YEAR".to_owned()
    } else if first.is_numeric() {
        "!DIGITS".to_owned()
    } else {
        word.to_lowercase()
    }
}

/// The outline of a word: small, capital, digits, signs.
fn shape(word: &str) -> String {
    let mut chars = word.chars();
    if word.chars().all(char::is_alphabetic) {
        let first_upper = chars.next().is_some_and(char::is_uppercase);
        let rest_lower = chars.clone().all(char::is_lowercase) && chars.clone().next().is_some();
        let all_upper = word.chars().all(char::is_uppercase);
        let outline = match (first_upper, all_upper, rest_lower) {
            _ if word.chars().all(char::is_lowercase) => "x",
            (_, true, _) if word.chars().count() > 1 => "XX",
            (_, true, _) => "X1",
            (true, _, true) => "Xx",
            _ => "xX",
        };
        return outline.to_owned();
    }
    if word.chars().all(char::is_numeric) {
        return "d".to_owned();
    }
    let mut outline = String::new();
    for c in chars.take(4) {
        let _ = outline.write_char(if c.is_numeric() {
            'd'
        } else if c.is_alphabetic() {
            'x'
        } else {
            c
        });
    }
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines() {
        for (word, outline) in [
            ("word", "x"),
            ("NASA", "XX"),
            ("I", "X1"),
            ("Anna", "Xx"),
            ("iPhone", "xX"),
            ("1998", "d"),
            ("B12x9", "xddx"),
            ("'s", "'x"),
        ] {
            assert_eq!(shape(word), outline, "{word}");
        }
        assert_eq!(normal("state-of-the-art"), "!HYPHEN");
        assert_eq!(normal("1998"), "!YEAR");
        assert_eq!(normal("3rd"), "!DIGITS");
        assert_eq!(last3("é"), "é");
        assert_eq!(last3("cafés"), "fés");
    }
}
