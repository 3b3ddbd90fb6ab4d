//! Protocol Buffers, as far as ONNX needs them: messages are written, and read strictly.
//!
//! Source: "Encoding" of the Protocol Buffers documentation, without groups, which no ONNX file has.

/// A message under construction.
#[derive(Clone, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn int(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(super) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Int(u64),
    Wide([u8; 8]),
    Bytes(&'a [u8]),
    Narrow([u8; 4]),
}

impl<'a> Value<'a> {
    pub(super) fn int(self) -> Result<u64, String> {
        if let Self::Int(value) = self {
            Ok(value)
        } else {
            Err("a whole number is stored as something else".to_owned())
        }
    }

    pub(super) fn float(self) -> Result<f32, String> {
        if let Self::Narrow(bytes) = self {
            Ok(f32::from_le_bytes(bytes))
        } else {
            Err("a number is stored as something else".to_owned())
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], String> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err("a part is stored as a number".to_owned()) }
    }

    pub(super) fn text(self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "a name is no text".to_owned())
    }
}

/// The fields of a message, in its order: each with its number. Ends behind the first error.
#[derive(Clone)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// All numbers of a packed field.
    pub(super) fn packed(bytes: &'a [u8]) -> impl Iterator<Item = Result<u64, String>> {
        let mut rest = Self(bytes);
        std::iter::from_fn(move || (!rest.0.is_empty()).then(|| rest.varint()))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or("it is truncated")?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if *first < 0x80 {
                return Ok(value);
            }
        }
        Err("it has a number of more than 64 bits".to_owned())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (first, rest) = self.0.split_first_chunk().ok_or("it is truncated")?;
        self.0 = rest;
        Ok(*first)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), String> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Int(self.varint()?),
            1 => Value::Wide(self.array()?),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let (bytes, rest) = self.0.split_at_checked(length).ok_or("it is truncated")?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Narrow(self.array()?),
            other => return Err(format!("it has a field of the kind {other}: it is no ONNX file")),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let inner = Message::default().text(1, "name").int(2, u64::MAX);
        let bytes = Message::default().int(1, 300).float(2, -1.5).message(3, &inner).0;
        let fields: Vec<_> = Fields(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(fields[0], (1, Value::Int(300)));
        assert_eq!(fields[1].1.float(), Ok(-1.5));
        let inner: Vec<_> = Fields(fields[2].1.bytes().unwrap()).collect::<Result<_, _>>().unwrap();
        assert_eq!((inner[0].1.text(), inner[1].1.int()), (Ok("name"), Ok(u64::MAX)));
        assert_eq!(Fields::packed(&[1, 0xac, 2]).collect::<Result<Vec<_>, _>>(), Ok(vec![1, 300]));
        for kept in [1, 4, 7, bytes.len() - 1] {
            assert!(Fields(&bytes[..kept]).any(|field| field.is_err()), "{kept}");
        }
        // A length far beyond the file, a group, a number without an end.
        for wrong in [&[0x12, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0x0b], &[0x08, 0xff]] {
            assert!(Fields(wrong).all(|field| field.is_err()), "{wrong:?}");
        }
        assert!(Fields::packed(&[0xff; 12]).next().unwrap().is_err());
    }
}
