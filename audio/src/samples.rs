//! Sound of a microphone that is kept for a while. It is private, and overwritten before its memory is given back: nobody knows
//! who gets that next.

use std::ops::{Deref, DerefMut};

/// Sound in any form that leaves nothing behind, neither when it is dropped nor when it needs more room.
#[derive(Default)]
pub struct SoundBuffer<T: Copy + Default>(Vec<T>);

/// Decoded sound, 16 bits each.
pub type Samples = SoundBuffer<i16>;

/// A coded packet.
pub type Packet = SoundBuffer<u8>;

impl<T: Copy + Default> SoundBuffer<T> {
    /// Appends these samples.
    pub fn append(&mut self, more: &[T]) {
        self.make_room(more.len());
        self.0.extend_from_slice(more);
    }

    /// Appends what comes, as many as it says.
    pub(crate) fn extend(&mut self, more: impl ExactSizeIterator<Item = T>) {
        self.make_room(more.len());
        self.0.extend(more);
    }

    /// Moves all behind the first `count` to the beginning.
    pub(crate) fn drop_first(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
    }

    /// Leaves nothing in it. The memory stays its own.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn make_room(&mut self, more: usize) {
        let (length, room) = (self.0.len() + more, self.0.capacity());
        if length > room {
            let mut larger = Vec::with_capacity(length.max(2 * room));
            larger.extend_from_slice(&self.0);
            erase(&mut std::mem::replace(&mut self.0, larger));
        }
    }
}

impl<T: Copy + Default> Drop for SoundBuffer<T> {
    fn drop(&mut self) {
        erase(&mut self.0);
    }
}

impl<T: Copy + Default> Deref for SoundBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for SoundBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> From<Vec<T>> for SoundBuffer<T> {
    fn from(sound: Vec<T>) -> Self {
        Self(sound)
    }
}

impl<T: Copy + Default> From<&[T]> for SoundBuffer<T> {
    fn from(sound: &[T]) -> Self {
        Self(sound.to_vec())
    }
}

/// Overwrites sound that nobody needs any more, and leaves none.
pub fn erase<T: Copy + Default>(sound: &mut Vec<T>) {
    sound.clear();
    // What lies behind the last sample as well.
    sound.resize(sound.capacity(), T::default());
    // Where it is dropped next the compiler would leave it out.
    std::hint::black_box(sound.as_mut_slice());
    sound.clear();
}
