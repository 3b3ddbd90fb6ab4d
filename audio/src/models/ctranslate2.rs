//! Reader for CTranslate2's `model.bin`, format 6.
//!
//! Little endian. `u32 format; str spec; u32 revision; u32 count`, then per variable `str name;
//! u8 rank; u32 dims[rank]; u8 type; u32 bytes; data`, then `u32 count` aliases of `str alias; str
//! name`. A `str` is a u16 length that includes a trailing NUL, then the bytes. Arrays are row-major.
//! Source: `src/models/model.cc` of OpenNMT/CTranslate2.

use std::collections::BTreeMap;

use super::{Error, Result};

/// The supported version of the binary format.
const FORMAT: u32 = 6;
/// More variables than the largest Whisper has (about 1,300); bounds a wrong count.
const VARIABLES_MAX: u32 = 4_096;
/// More dimensions than any variable of Whisper has (three).
const RANK_MAX: u8 = 4;
/// Names are at most about 60 bytes.
const NAME_BYTES_MAX: usize = 256;

/// Element types, by their number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F32,
    I8,
    I16,
    I32,
    F16,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }
}

/// One variable; its data borrows from the file's buffer.
#[derive(Debug)]
pub(super) struct Variable<'a> {
    pub(super) dims: Vec<usize>,
    pub(super) kind: Kind,
    pub(super) data: &'a [u8],
}

/// The parts of a file, which stay in its bytes: the kind of model, and the variables by name.
#[derive(Debug)]
pub(super) struct Model<'a> {
    pub(super) spec: &'a str,
    variables: BTreeMap<&'a str, Variable<'a>>,
}

impl<'a> Model<'a> {
    /// Parses a whole file.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { bytes, at: 0 };
        let format = reader.u32("the format version")?;
        if format != FORMAT {
            return Err(reader.error(format!("format version {format}, only {FORMAT} is supported")));
        }
        let spec = reader.string("the model kind")?;
        reader.u32("the revision")?;
        let count = reader.u32("the number of variables")?;
        if count > VARIABLES_MAX {
            return Err(reader.error(format!("{count} variables, at most {VARIABLES_MAX} are allowed")));
        }
        let mut variables = BTreeMap::new();
        for _ in 0..count {
            let name = reader.string("a variable's name")?;
            let variable = reader.variable(name)?;
            if variables.insert(name, variable).is_some() {
                return Err(reader.error(format!("variable {name} is there twice")));
            }
        }
        let aliases = reader.u32("the number of aliases")?;
        if aliases > VARIABLES_MAX {
            return Err(reader.error(format!("{aliases} aliases, at most {VARIABLES_MAX} are allowed")));
        }
        for _ in 0..aliases {
            reader.string("an alias")?;
            reader.string("an alias's target")?;
        }
        if reader.at != bytes.len() {
            return Err(reader.error(format!("{} bytes follow the end", bytes.len() - reader.at)));
        }
        Ok(Self { spec, variables })
    }

    /// The variable of this name.
    pub(super) fn get(&self, name: &str) -> Result<&Variable<'a>> {
        self.variables.get(name).ok_or_else(|| Error::format(WHAT, format!("variable {name} is missing")))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }
}

const WHAT: &str = "CTranslate2 model";

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, problem: impl std::fmt::Display) -> Error {
        Error::format(WHAT, format!("at byte {}: {problem}", self.at))
    }

    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len()).ok_or_else(|| {
            self.error(format!("{what} needs {count} bytes, {} are left", self.bytes.len() - self.at))
        })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(self.take(1, what)?[0])
    }

    fn u16(&mut self, what: &str) -> Result<u16> {
        let bytes = self.take(2, what)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        let bytes = self.take(4, what)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self, what: &str) -> Result<&'a str> {
        let length = usize::from(self.u16(what)?);
        if length > NAME_BYTES_MAX {
            return Err(self.error(format!("{what} of {length} bytes, at most {NAME_BYTES_MAX} are allowed")));
        }
        let text = self.take(length, what)?.strip_suffix(&[0]);
        text.and_then(|text| std::str::from_utf8(text).ok())
            .ok_or_else(|| self.error(format!("{what} is no NUL-terminated text")))
    }

    fn variable(&mut self, name: &str) -> Result<Variable<'a>> {
        let rank = self.u8("a rank")?;
        if rank > RANK_MAX {
            return Err(self.error(format!("{name} has rank {rank}, at most {RANK_MAX} is allowed")));
        }
        let mut dims = Vec::with_capacity(usize::from(rank));
        for _ in 0..rank {
            dims.push(self.u32("a dimension")? as usize);
        }
        let kind = match self.u8("a type")? {
            0 => Kind::F32,
            1 => Kind::I8,
            2 => Kind::I16,
            3 => Kind::I32,
            4 => Kind::F16,
            other => return Err(self.error(format!("{name} has the unknown type {other}"))),
        };
        let length = self.u32("a length")? as usize;
        let product = dims.iter().try_fold(kind.bytes(), |product, dim| product.checked_mul(*dim));
        if product != Some(length) {
            return Err(self.error(format!("{name} of shape {dims:?} says that it has {length} bytes")));
        }
        Ok(Variable { dims, kind, data: self.take(length, name)? })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string(text: &str) -> Vec<u8> {
        let mut out = (text.len() as u16 + 1).to_le_bytes().to_vec();
        out.extend_from_slice(text.as_bytes());
        out.push(0);
        out
    }

    /// A file with one f16 variable of the stated shape and length, and `data` bytes of data.
    fn file(count: u32, dims: &[u32], length: u32, data: usize) -> Vec<u8> {
        let mut out = 6u32.to_le_bytes().to_vec();
        out.extend(string("WhisperSpec"));
        out.extend(3u32.to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(string("w"));
        out.push(dims.len() as u8);
        dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
        out.push(4);
        out.extend(length.to_le_bytes());
        out.extend(vec![7; data]);
        out.extend(1u32.to_le_bytes());
        out.extend(string("alias"));
        out.extend(string("w"));
        out
    }

    #[test]
    fn reads_a_small_file() {
        let bytes = file(1, &[2, 3], 12, 12);
        let model = Model::parse(&bytes).unwrap();
        assert_eq!(model.spec, "WhisperSpec");
        let variable = model.get("w").unwrap();
        assert_eq!((variable.dims.as_slice(), variable.kind, variable.data.len()), (&[2, 3][..], Kind::F16, 12));
        assert!(model.get("v").unwrap_err().to_string().contains("variable v is missing"));
    }

    #[test]
    fn lying_headers_are_errors() {
        let cases: [(&str, Vec<u8>, &str); 6] = [
            ("count", file(u32::MAX, &[1], 2, 2), "variables, at most"),
            ("one more variable than there is", file(2, &[1], 2, 2), "at byte"),
            ("length", file(1, &[2, 3], u32::MAX, 12), "says that it has"),
            ("dims overflow", file(1, &[u32::MAX, u32::MAX, u32::MAX, u32::MAX], 2, 2), "says that it has"),
            ("data beyond the end", file(1, &[0x4000_0000], 0x8000_0000, 12), "are left"),
            ("rank", file(1, &[1; 9], 2, 2), "has rank 9"),
        ];
        for (case, bytes, expected) in cases {
            let message = Model::parse(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{case}: {message}");
        }
        let mut trailing = file(1, &[1], 2, 2);
        trailing.push(0);
        assert!(Model::parse(&trailing).unwrap_err().to_string().contains("follow the end"));
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        let bytes = file(1, &[2, 3], 12, 12);
        for length in 0..bytes.len() {
            assert!(Model::parse(&bytes[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), valid in any::<bool>()) {
            if valid {
                let good = file(1, &[2, 3], 12, 12);
                bytes.splice(0..0, good.iter().take(40).copied());
            }
            let _ = Model::parse(&bytes);
        }
    }
}
