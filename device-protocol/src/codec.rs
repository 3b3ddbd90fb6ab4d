//! Encoding of single values: the only module that depends on bincode.
//!
//! Bincode 2.0.1, standard configuration (little endian, varint): below 251 one byte; 251 and a `u16`; 252 and a `u32`;
//! 253 and a `u64`. `u8` and booleans are one byte, signed integers are zigzag coded first, arrays are bare bytes, text
//! and byte strings carry their length. Another codec can be used by changing this file alone.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer as Sink;
use bincode::error::{DecodeError, EncodeError};
use bincode::{BorrowDecode, Encode};

use crate::Error;
use crate::limits::{FRAME_BYTES_MAX, HEADER_BYTES};

type Config = Configuration<LittleEndian, Varint, Limit<FRAME_BYTES_MAX>>;
const CONFIG: Config = bincode::config::standard().with_limit::<FRAME_BYTES_MAX>();

/// A value with a wire form.
pub trait Wire<'a>: Sized {
    /// Appends the wire form.
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error>;
    /// Reads one value and advances.
    fn get(reader: &mut Reader<'a>) -> Result<Self, Error>;
}

/// A bounded cursor over the body of one frame; it tracks the offset and the field for exact errors.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes` in the frame.
    base: usize,
    field: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`, which begin at offset `base` of the frame.
    pub(crate) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base, field: "body" }
    }

    /// Sets the name of the next field, for errors.
    pub(crate) fn enter(&mut self, field: &'static str) {
        self.field = field;
    }

    /// True at the end of the body: an appended field then takes its default.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Bytes that are not read.
    pub(crate) fn left(&self) -> usize {
        self.rest().len()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn offset(&self) -> usize {
        self.base + self.at
    }

    pub(crate) fn read<T: BorrowDecode<'a, ()>>(&mut self) -> Result<T, Error> {
        match bincode::borrow_decode_from_slice(self.rest(), CONFIG) {
            Ok((value, used)) => {
                self.at += used;
                Ok(value)
            }
            Err(error) => Err(self.explain(&error)),
        }
    }

    fn explain(&self, error: &DecodeError) -> Error {
        let (field, offset) = (self.field, self.offset());
        match error {
            DecodeError::UnexpectedEnd { .. } => Error::Truncated { field, offset },
            DecodeError::Utf8 { .. } => Error::NotText { field, offset },
            // The length exceeds any frame, so the rest of the body is certainly shorter.
            DecodeError::LimitExceeded | DecodeError::OutsideUsizeRange(_) => Error::Truncated { field, offset },
            _ => Error::Malformed { field, offset },
        }
    }

    pub(crate) fn text(&mut self, max: usize) -> Result<&'a str, Error> {
        let offset = self.offset();
        let text: &'a str = self.read()?;
        self.check_length(text.len(), max, offset)?;
        Ok(text)
    }

    pub(crate) fn bytes(&mut self, max: usize) -> Result<&'a [u8], Error> {
        let offset = self.offset();
        let bytes: &'a [u8] = self.read()?;
        self.check_length(bytes.len(), max, offset)?;
        Ok(bytes)
    }

    fn check_length(&self, length: usize, max: usize, offset: usize) -> Result<(), Error> {
        if length > max {
            return Err(Error::TooLong { field: self.field, offset, length, max });
        }
        Ok(())
    }

    /// A reader over the next length-prefixed block; advances past it.
    pub(crate) fn block(&mut self) -> Result<Reader<'a>, Error> {
        let block: &'a [u8] = self.read()?;
        let base = self.offset() - block.len();
        Ok(Reader { bytes: block, at: 0, base, field: self.field })
    }

    /// A nested record: its byte length, then its fields; bytes after the known fields are ignored.
    pub(crate) fn record<T: Wire<'a>>(&mut self) -> Result<T, Error> {
        T::get(&mut self.block()?)
    }

    pub(crate) fn option<T: Wire<'a>>(&mut self) -> Result<Option<T>, Error> {
        // One byte, 0 or 1, exactly like a boolean.
        if self.read::<bool>()? { self.record().map(Some) } else { Ok(None) }
    }

    /// The bytes of a list's items, each checked to decode, and their number.
    pub(crate) fn items<T: Wire<'a>>(&mut self, max: usize) -> Result<(&'a [u8], usize), Error> {
        let offset = self.offset();
        let block = self.block()?;
        let mut items = block;
        let mut count = 0usize;
        while !items.is_empty() {
            items.record::<T>()?;
            count += 1;
            if count > max {
                return Err(Error::TooLong { field: block.field, offset, length: count, max });
            }
        }
        Ok((block.bytes, count))
    }
}

/// Writes into a borrowed buffer, or only counts bytes.
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
    counting: bool,
    field: &'static str,
}

impl Sink for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let end = self.at + bytes.len();
        if !self.counting
            && let Some(place) = self.buffer.get_mut(self.at..end)
        {
            place.copy_from_slice(bytes);
        }
        // Past the end only the count advances, so that the error can state the needed size.
        self.at = end;
        Ok(())
    }
}

impl<'b> Writer<'b> {
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, at: 0, counting: false, field: "body" }
    }

    /// A writer that only counts: for the lengths of nested records.
    pub(crate) fn counter() -> Writer<'static> {
        Writer { buffer: &mut [], at: 0, counting: true, field: "body" }
    }

    /// Bytes written, including those that did not fit.
    pub(crate) fn written(&self) -> usize {
        self.at
    }

    pub(crate) fn enter(&mut self, field: &'static str) {
        self.field = field;
    }

    pub(crate) fn write_value<T: Encode>(&mut self, value: T) -> Result<(), Error> {
        let (field, offset) = (self.field, HEADER_BYTES + self.at);
        bincode::encode_into_writer(value, self, CONFIG).map_err(|_| Error::Malformed { field, offset })
    }

    pub(crate) fn text(&mut self, text: &str, max: usize) -> Result<(), Error> {
        self.check_length(text.len(), max)?;
        self.write_value(text)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8], max: usize) -> Result<(), Error> {
        self.check_length(bytes.len(), max)?;
        self.write_value(bytes)
    }

    fn check_length(&self, length: usize, max: usize) -> Result<(), Error> {
        if length > max {
            return Err(Error::TooLong { field: self.field, offset: HEADER_BYTES + self.at, length, max });
        }
        Ok(())
    }

    pub(crate) fn record<'a, T: Wire<'a>>(&mut self, record: &T) -> Result<(), Error> {
        let mut counter = Self::counter();
        record.put(&mut counter)?;
        self.write_value(counter.at)?;
        record.put(self)
    }

    pub(crate) fn option<'a, T: Wire<'a>>(&mut self, value: &Option<T>) -> Result<(), Error> {
        self.write_value(value.is_some())?;
        match value {
            Some(record) => self.record(record),
            None => Ok(()),
        }
    }

    /// A list: the byte length of all items, then the items.
    pub(crate) fn items<'a, T: Wire<'a>>(
        &mut self,
        (items, count): (impl Iterator<Item = T> + Clone, usize),
        max: usize,
    ) -> Result<(), Error> {
        self.check_length(count, max)?;
        let mut counter = Self::counter();
        for item in items.clone() {
            counter.record(&item)?;
        }
        self.write_value(counter.at)?;
        for item in items {
            self.record(&item)?;
        }
        Ok(())
    }
}

macro_rules! primitive {
    ($($type:ty),*) => {$(
        impl<'a> Wire<'a> for $type {
            fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                writer.write_value(*self)
            }
            fn get(reader: &mut Reader<'a>) -> Result<Self, Error> {
                reader.read()
            }
        }
    )*};
}

primitive!(u8, u16, u32, u64, i16, i32, bool, [u8; 32], [u8; 64]);
