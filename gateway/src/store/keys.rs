//! The keys of records and rows: whose they are, and under which number.

use super::{Error, names::NAME_BYTES_MAX};

/// `[length][user]`: no user's keys are a prefix of another's.
pub(super) fn user_prefix(user: &str) -> Result<Vec<u8>, Error> {
    match u8::try_from(user.len()) {
        Ok(length) if user.len() <= NAME_BYTES_MAX => {
            let mut key = Vec::with_capacity(user.len() + 9);
            key.push(length);
            key.extend_from_slice(user.as_bytes());
            Ok(key)
        }
        _ => Err(Error::NameTooLong(user.to_owned())),
    }
}

/// `[length][user][id big endian]`: a user's records in the order of their ids.
pub(super) fn user_key(user: &str, id: u64) -> Result<Vec<u8>, Error> {
    let mut key = user_prefix(user)?;
    key.extend_from_slice(&id.to_be_bytes());
    Ok(key)
}

/// The number at the end of a key, or in a counter.
pub(super) fn id_of(key: &[u8]) -> u64 {
    key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The owner in a key; `None`: there is none whose name [`user_prefix`] takes.
pub(super) fn owner_of(key: &[u8]) -> Option<&str> {
    let (length, rest) = key.split_first()?;
    let length = Some(usize::from(*length)).filter(|length| *length <= NAME_BYTES_MAX)?;
    std::str::from_utf8(rest.get(..length)?).ok()
}

/// A key for people: the owner and a number or a text, or a text alone.
pub(super) fn id_in_words(key: &[u8]) -> String {
    let owned = owner_of(key).map(|owner| (owner, key.get(1 + owner.len()..).unwrap_or_default()));
    match owned {
        Some((owner, rest)) => match <[u8; 8]>::try_from(rest) {
            Ok(number) => format!("{} {}", owner.escape_debug(), u64::from_be_bytes(number)),
            Err(_) => format!("{} {}", owner.escape_debug(), rest.escape_ascii()),
        },
        None => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_in_a_key_has_a_key() {
        for length in 0..=u8::MAX {
            let key = [vec![length], vec![b'k'; 255]].concat();
            let owner = owner_of(&key);
            assert_eq!(owner.map(str::len), Some(usize::from(length)).filter(|length| *length <= NAME_BYTES_MAX));
            assert!(owner.is_none_or(|owner| user_prefix(owner).is_ok()));
        }
        assert_eq!((owner_of(b""), owner_of(b"\x04ann"), owner_of(b"\x02\xff\xff")), (None, None, None));
    }

    #[test]
    fn a_row_is_named_without_what_is_in_it() {
        let words = [
            (&b"\x03ann\0\0\0\0\0\0\0\x07"[..], "ann 7"),
            (b"\x03annapp\0key", r"ann app\x00key"),
            (b"aabb", "aabb"),
            (b"\x04\x1bnn!x", r"\u{1b}nn! x"),
        ];
        for (key, wanted) in words {
            assert_eq!(id_in_words(key), wanted);
        }
    }
}
