//! A borrowed list: from a slice when sending, from the bytes of the frame when receiving; nothing is allocated.

use core::fmt;

use crate::Error;
use crate::codec::{Reader, Wire, Writer};

/// Items of a message. On the wire: byte length of the list, then each item with its own byte length.
#[derive(Clone, Copy)]
pub struct List<'a, T> {
    source: Source<'a, T>,
}

#[derive(Clone, Copy)]
enum Source<'a, T> {
    Items(&'a [T]),
    /// Validated on reading: every item decodes.
    Encoded {
        bytes: &'a [u8],
        count: usize,
    },
}

impl<'a, T: Wire<'a> + Copy> List<'a, T> {
    /// A list to send.
    pub const fn new(items: &'a [T]) -> Self {
        Self { source: Source::Items(items) }
    }

    pub(crate) const fn encoded(bytes: &'a [u8], count: usize) -> Self {
        Self { source: Source::Encoded { bytes, count } }
    }

    pub(crate) fn get(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error> {
        let (bytes, count) = reader.items::<T>(max)?;
        Ok(Self::encoded(bytes, count))
    }

    pub(crate) fn put(&self, writer: &mut Writer<'_>, max: usize) -> Result<(), Error> {
        writer.items((self.iter(), self.len()), max)
    }

    /// Number of items.
    pub const fn len(&self) -> usize {
        match self.source {
            Source::Items(items) => items.len(),
            Source::Encoded { count, .. } => count,
        }
    }

    /// True if there are no items.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items in order; received ones are decoded during iteration.
    pub fn iter(&self) -> Iter<'a, T> {
        match self.source {
            Source::Items(items) => Iter { items: items.iter(), encoded: Reader::new(&[], 0) },
            Source::Encoded { bytes, .. } => Iter { items: [].iter(), encoded: Reader::new(bytes, 0) },
        }
    }
}

/// Iterator over a [`List`].
#[derive(Clone)]
pub struct Iter<'a, T> {
    items: core::slice::Iter<'a, T>,
    encoded: Reader<'a>,
}

impl<'a, T: Wire<'a> + Copy> Iterator for Iter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if let Some(item) = self.items.next() {
            return Some(*item);
        }
        if self.encoded.is_empty() {
            return None;
        }
        // Validated on reading, so `ok` drops no error.
        self.encoded.record().ok()
    }
}

impl<'a, T: Wire<'a> + Copy> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Wire<'a> + Copy + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Wire<'a> + Copy + Eq> Eq for List<'a, T> {}

impl<'a, T: Wire<'a> + Copy + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Wire<'a> + Copy> Default for List<'a, T> {
    fn default() -> Self {
        Self::new(&[])
    }
}
