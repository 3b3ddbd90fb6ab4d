//! A table of the store. A checksum of key and value follows each value. Rows whose checksum is wrong are omitted from
//! reads, counted, and each logged once.

use std::{
    collections::BTreeSet,
    ops::Bound::Included,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use heed::{Database, RoTxn, RwTxn, types::Bytes};
use rkyv::{
    Archive, Deserialize, Serialize,
    api::high::{HighDeserializer, HighSerializer, HighValidator},
    bytecheck::CheckBytes,
    rancor,
    ser::allocator::ArenaHandle,
    util::AlignedVec,
};

use super::{
    Error,
    keys::{id_in_words, id_of, owner_of},
};

/// Bytes of the checksum behind a value.
const CHECKSUM_BYTES: usize = 4;
/// Damaged rows that are remembered, so that each is logged once: one page of a broken disk has far fewer.
const DAMAGED_MAX: usize = 1_024;

/// A row as it is read: key and value.
pub(super) type Pair<'t> = (&'t [u8], &'t [u8]);

/// Damaged rows that were found since the start, by table and key.
#[derive(Clone, Default)]
pub(super) struct Damage(Arc<Mutex<DamagedRows>>);

/// Tables and keys.
type DamagedRows = BTreeSet<(&'static str, Vec<u8>)>;

impl Damage {
    fn rows(&self) -> MutexGuard<'_, DamagedRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> usize {
        self.rows().len()
    }

    pub(super) fn note(&self, table: &'static str, key: &[u8]) {
        let mut rows = self.rows();
        if rows.len() < DAMAGED_MAX && rows.insert((table, key.to_vec())) {
            let id = id_in_words(key);
            tracing::error!(
                table,
                id,
                "a record of the store is damaged and left out; `lorgnette check --store` lists all"
            );
        }
    }
}

fn checksum(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(value);
    hasher.finalize().to_le_bytes()
}

/// Appends the checksum to a value.
pub(super) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, &checksum(key, value)].concat()
}

/// Removes the checksum; `None`: the row is damaged.
pub(super) fn unseal<'t>(key: &[u8], stored: &'t [u8]) -> Option<&'t [u8]> {
    let (value, sum) = stored.split_last_chunk::<CHECKSUM_BYTES>()?;
    (*sum == checksum(key, value)).then_some(value)
}

/// A record of this form.
pub(super) fn decode<T>(value: &[u8]) -> Option<T>
where
    T: Archive,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>> + Deserialize<T, HighDeserializer<rancor::Error>>,
{
    rkyv::from_bytes::<T, rancor::Error>(value).ok()
}

/// An LMDB table in which each value carries its checksum.
#[derive(Clone)]
pub(super) struct Table {
    /// The raw LMDB table: values with their checksums.
    pub(super) raw: Database<'static, Bytes, Bytes>,
    pub(super) name: &'static str,
    damage: Damage,
}

impl Table {
    pub(super) fn new(raw: Database<'static, Bytes, Bytes>, name: &'static str, damage: &Damage) -> Self {
        Self { raw, name, damage: damage.clone() }
    }

    pub(super) fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.raw.put(txn, key, &seal(key, value))?)
    }

    pub(super) fn put_record<T>(&self, txn: &mut RwTxn<'_>, key: &[u8], record: &T) -> Result<(), Error>
    where
        T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, rancor::Error>>,
    {
        let value = rkyv::to_bytes::<rancor::Error>(record).map_err(|_| self.damaged())?;
        self.put(txn, key, &value)
    }

    pub(super) fn delete(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> Result<bool, Error> {
        Ok(self.raw.delete(txn, key)?)
    }

    /// The value of a key without its checksum; `None`: there is no such row.
    ///
    /// # Errors
    /// It is damaged, or the store cannot be read.
    pub(super) fn get<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<&'t [u8]>, Error> {
        let Some(stored) = self.raw.get(txn, key)? else { return Ok(None) };
        unseal(key, stored).map(Some).ok_or_else(|| self.note(key))
    }

    /// A record; none where it is damaged.
    pub(super) fn get_record<T>(&self, txn: &RoTxn<'_>, key: &[u8]) -> Result<Option<T>, Error>
    where
        T: Archive,
        T::Archived:
            for<'a> CheckBytes<HighValidator<'a, rancor::Error>> + Deserialize<T, HighDeserializer<rancor::Error>>,
    {
        match self.get(txn, key) {
            Ok(Some(value)) => Ok(self.record(key, value)),
            Ok(None) | Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A record that was read; none where it is damaged.
    pub(super) fn record<T>(&self, key: &[u8], value: &[u8]) -> Option<T>
    where
        T: Archive,
        T::Archived:
            for<'a> CheckBytes<HighValidator<'a, rancor::Error>> + Deserialize<T, HighDeserializer<rancor::Error>>,
    {
        decode(value).or_else(|| {
            self.note(key);
            None
        })
    }

    /// Records that a row is damaged, and returns the error.
    pub(super) fn note(&self, key: &[u8]) -> Error {
        self.damage.note(self.name, key);
        self.damaged()
    }

    fn damaged(&self) -> Error {
        Error::Damaged { database: self.name }
    }

    /// All undamaged rows in the order of their keys, as below.
    pub(super) fn iter<'t>(
        &'t self,
        txn: &'t RoTxn<'_>,
    ) -> Result<impl Iterator<Item = Result<Pair<'t>, Error>>, Error> {
        Ok(self.whole(self.raw.iter(txn)?))
    }

    pub(super) fn prefix<'t>(
        &'t self,
        txn: &'t RoTxn<'_>,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<Pair<'t>, Error>> + use<'t>, Error> {
        Ok(self.whole(self.raw.prefix_iter(txn, prefix)?))
    }

    /// From the last one backwards.
    pub(super) fn prefix_backwards<'t>(
        &'t self,
        txn: &'t RoTxn<'_>,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<Pair<'t>, Error>> + use<'t>, Error> {
        Ok(self.whole(self.raw.rev_prefix_iter(txn, prefix)?))
    }

    /// Those from the first key to the last one.
    pub(super) fn range<'t>(
        &'t self,
        txn: &'t RoTxn<'_>,
        (first, last): (&[u8], &[u8]),
    ) -> Result<impl Iterator<Item = Result<Pair<'t>, Error>> + use<'t>, Error> {
        Ok(self.whole(self.raw.range(txn, &(Included(first), Included(last)))?))
    }

    fn whole<'t>(
        &'t self,
        rows: impl Iterator<Item = heed::Result<Pair<'t>>>,
    ) -> impl Iterator<Item = Result<Pair<'t>, Error>> {
        rows.filter_map(|row| match row {
            Ok((key, stored)) => match unseal(key, stored) {
                Some(value) => Some(Ok((key, value))),
                None => {
                    self.note(key);
                    None
                }
            },
            Err(error) => Some(Err(error.into())),
        })
    }

    /// The next number of rows with a prefix: at least `from`, and behind all rows that can be read. A damaged row does not
    /// count, since one flipped bit in its key makes a huge number. Where it stands is left out, so that it is not
    /// overwritten before it is set aside.
    pub(super) fn next_number(&self, txn: &RoTxn<'_>, prefix: &[u8], from: u64) -> Result<u64, Error> {
        let (mut next, mut damaged) = (from.max(1), Vec::new());
        for row in self.raw.rev_prefix_iter(txn, prefix)? {
            let (key, stored) = row?;
            if key.len() != prefix.len() + size_of::<u64>() {
                continue;
            }
            let number = id_of(key);
            // With so many damaged ones, more than a bit was changed: each append need not look at all of them.
            if unseal(key, stored).is_some() || damaged.len() >= DAMAGED_MAX {
                next = next.max(number.saturating_add(1));
                break;
            }
            self.note(key);
            damaged.push(number);
        }
        for taken in damaged.into_iter().rev() {
            if taken == next {
                next = taken.saturating_add(1);
            }
        }
        Ok(next)
    }

    /// All keys with a prefix, damaged rows included.
    pub(super) fn keys(&self, txn: &RoTxn<'_>, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.raw.prefix_iter(txn, prefix)?.map(|row| Ok(row?.0.to_vec())).collect()
    }

    /// All owners of rows, damaged rows included, unless nobody can be the owner by their keys.
    pub(super) fn owners(&self, txn: &RoTxn<'_>) -> Result<Vec<String>, Error> {
        let mut out: Vec<String> = Vec::new();
        for row in self.raw.iter(txn)? {
            let (key, _) = row?;
            match owner_of(key) {
                Some(owner) if out.last().is_some_and(|last| last == owner) => {}
                Some(owner) => out.push(owner.to_owned()),
                None => {
                    self.note(key);
                }
            }
        }
        Ok(out)
    }

    /// Removes all rows with a prefix, and returns their number.
    pub(super) fn clear(&self, txn: &mut RwTxn<'_>, prefix: &[u8]) -> Result<u64, Error> {
        let keys = self.keys(txn, prefix)?;
        for key in &keys {
            self.raw.delete(txn, key)?;
        }
        Ok(keys.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_of_key_or_value_is_found() {
        let stored = seal(b"key", b"value");
        assert_eq!(stored, b"value\xe6\xf3\x55\xc6", "as gateways before this one have written it");
        assert_eq!(unseal(b"key", &stored), Some(&b"value"[..]));
        for at in 0..stored.len() * 8 {
            let mut flipped = stored.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(unseal(b"key", &flipped), None, "bit {at}");
        }
        assert_eq!(unseal(b"kez", &stored), None);
        assert_eq!(unseal(b"key", b"abc"), None);
        assert_eq!(unseal(b"key", &seal(b"key", b"")), Some(&b""[..]));
    }
}
