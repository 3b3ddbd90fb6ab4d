//! The version of the stored forms.
//!
//! | version | form |
//! |---|---|
//! | 1 | values without a checksum |
//! | 2 | a checksum behind each value |

use super::{Error, opened::Opened};

/// The version that this program writes.
pub(crate) const SCHEMA: u32 = 2;
/// Its keys: stored twice, since nothing else can be read without it.
const KEYS: [&str; 2] = ["schema", "schema-again"];

/// The version of an open store; `None`: nothing was ever stored in it.
pub(super) fn version(opened: &Opened) -> Result<Option<u32>, Error> {
    let txn = opened.env.read_txn()?;
    let [first, again] = KEYS.map(|key| opened.meta.get(&txn, key));
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    match (first?.map(number), again?.map(number)) {
        // One of them may be damaged.
        (Some(SCHEMA), _) | (_, Some(SCHEMA)) => Ok(Some(SCHEMA)),
        (first, again) => Ok(first.or(again)),
    }
}

/// Marks a store as of the present version.
pub(super) fn mark(opened: &Opened) -> Result<(), Error> {
    let mut txn = opened.env.write_txn()?;
    for key in KEYS {
        opened.meta.put(&mut txn, key, &SCHEMA.to_le_bytes())?;
    }
    Ok(txn.commit()?)
}
