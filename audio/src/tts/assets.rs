//! The voice's files: bounded reading, gzip, JSON, and a compact table for large word lists.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};

use super::Error;

pub(super) const ACOUSTIC: &str = "hibari.onnx";
pub(super) const VOCAB: &str = "vocab.json";
pub(super) const NORMALIZE: &str = "normalize.json";
pub(super) const TOKENIZER: &str = "tokenizer_exceptions.json";
pub(super) const TAGGER: &str = "tagger.json.gz";
pub(super) const LEXICON_GOLD: &str = "lexicon_us_gold.json.gz";
pub(super) const LEXICON_SILVER: &str = "lexicon_us_silver.json.gz";
pub(super) const OOV: &str = "oov.onnx";
pub(super) const OOV_ALPHABET: &str = "oov.json";

/// Largest file and largest unpacked file accepted: four times the largest real one (7.9 MB), so that a wrong or
/// malicious file cannot exhaust memory.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Reads a whole file of the voice.
pub(super) fn read(dir: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let path = dir.join(name);
    let file = File::open(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    read_bounded(file, &path)
}

/// Reads and unpacks a `.gz` file of the voice.
fn read_gz(dir: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let packed = read(dir, name)?;
    read_bounded(GzDecoder::new(packed.as_slice()), &dir.join(name))
}

fn read_bounded(source: impl Read, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    source
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::TooLarge { path: path.to_owned(), bytes_max: FILE_BYTES_MAX });
    }
    Ok(bytes)
}

/// Reads a JSON file of the voice, unpacking it when its name ends in `.gz`.
pub(super) fn read_json<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<T, Error> {
    let bytes = if name.ends_with(".gz") { read_gz(dir, name)? } else { read(dir, name)? };
    serde_json::from_slice(&bytes).map_err(|error| damaged(dir, name, error))
}

/// The error for a file with wrong content.
pub(super) fn damaged(dir: &Path, name: &str, reason: impl fmt::Display) -> Error {
    Error::Damaged { path: dir.join(name), reason: reason.to_string() }
}

/// A JSON object as (key, value) pairs in the order of the file.
#[derive(Debug)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<V>(std::marker::PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
            type Value = Pairs<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor(std::marker::PhantomData))
    }
}

/// A value that a [`Table`] stores: it is appended to the table's pool and read back from its range there.
pub(super) trait Pooled: Sized {
    /// The element of the pool.
    type Item;
    /// Appends the value.
    fn append(self, pool: &mut Vec<Self::Item>);
}

/// A read-only map from text to a slice of a common pool. All keys share one allocation and all values another, because
/// the word lists hold hundreds of thousands of short strings.
pub(super) struct Table<V: Pooled> {
    keys: String,
    pool: Vec<V::Item>,
    /// Sorted by key.
    entries: Vec<Entry>,
}

struct Entry {
    key: u32,
    value: u32,
    value_len: u16,
    key_len: u16,
}

impl<V: Pooled> Table<V> {
    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&[V::Item]> {
        let found = self.entries.binary_search_by(|entry| self.key(entry).cmp(key)).ok()?;
        let entry = self.entries.get(found)?;
        self.pool.get(entry.value as usize..entry.value as usize + entry.value_len as usize)
    }

    fn key(&self, entry: &Entry) -> &str {
        self.keys.get(entry.key as usize..entry.key as usize + entry.key_len as usize).unwrap_or_default()
    }
}

impl<'de, V: Pooled + Deserialize<'de>> Deserialize<'de> for Table<V> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableVisitor<V>(std::marker::PhantomData<V>);
        impl<'de, V: Pooled + Deserialize<'de>> Visitor<'de> for TableVisitor<V> {
            type Value = Table<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut table = Table { keys: String::new(), pool: Vec::new(), entries: Vec::new() };
                // Offsets fit u32 because the file is bounded far below that.
                while let Some((key, value)) = map.next_entry::<std::borrow::Cow<'de, str>, V>()? {
                    let start = table.pool.len();
                    value.append(&mut table.pool);
                    table.entries.push(Entry {
                        key: table.keys.len() as u32,
                        value: start as u32,
                        value_len: u16::try_from(table.pool.len() - start).map_err(A::Error::custom)?,
                        key_len: u16::try_from(key.len()).map_err(A::Error::custom)?,
                    });
                    table.keys.push_str(&key);
                }
                table.keys.shrink_to_fit();
                table.pool.shrink_to_fit();
                let mut entries = std::mem::take(&mut table.entries);
                entries.sort_by(|a, b| table.key(a).cmp(table.key(b)));
                entries.shrink_to_fit();
                table.entries = entries;
                Ok(table)
            }
        }
        deserializer.deserialize_map(TableVisitor(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Numbers(Vec<u8>);
    impl Pooled for Numbers {
        type Item = u8;
        fn append(self, pool: &mut Vec<u8>) {
            pool.extend(self.0);
        }
    }

    #[test]
    fn table_finds_what_the_object_held() {
        let table: Table<Numbers> = serde_json::from_str(r#"{"b": [1, 2], "a": [], "é": [3]}"#).unwrap();
        assert_eq!(table.get("b"), Some([1, 2].as_slice()));
        assert_eq!(table.get("a"), Some([].as_slice()));
        assert_eq!(table.get("é"), Some([3].as_slice()));
        assert_eq!(table.get("c"), None);
        assert_eq!(table.get(""), None);
    }

    #[test]
    fn a_bomb_is_refused() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join(TAGGER)).unwrap();
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        for _ in 0..=FILE_BYTES_MAX >> 16 {
            packer.write_all(&[b' '; 1 << 16]).unwrap();
        }
        packer.finish().unwrap();
        let error = read_json::<serde_json::Value>(dir.path(), TAGGER).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
}
