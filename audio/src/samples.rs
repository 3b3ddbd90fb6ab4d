//! Sound of a microphone that is kept for a while. It is private, and overwritten before its memory is given back: nobody knows
//! who gets that next.

use std::ops::Deref;

/// Samples that leave nothing behind, neither when they are dropped nor when they need more room.
#[derive(Default)]
pub struct Samples(Vec<i16>);

impl Samples {
    /// Appends these samples.
    pub fn append(&mut self, more: &[i16]) {
        let (length, room) = (self.0.len() + more.len(), self.0.capacity());
        if length > room {
            let mut larger = Vec::with_capacity(length.max(2 * room));
            larger.extend_from_slice(&self.0);
            erase(&mut std::mem::replace(&mut self.0, larger));
        }
        self.0.extend_from_slice(more);
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        erase(&mut self.0);
    }
}

impl Deref for Samples {
    type Target = [i16];

    fn deref(&self) -> &[i16] {
        &self.0
    }
}

impl From<Vec<i16>> for Samples {
    fn from(pcm: Vec<i16>) -> Self {
        Self(pcm)
    }
}

impl From<&[i16]> for Samples {
    fn from(pcm: &[i16]) -> Self {
        Self(pcm.to_vec())
    }
}

/// Overwrites samples that nobody needs any more, and leaves none.
pub fn erase(pcm: &mut Vec<i16>) {
    pcm.clear();
    // What lies behind the last sample as well.
    pcm.resize(pcm.capacity(), 0);
    // Where they are dropped next the compiler would leave it out.
    std::hint::black_box(pcm.as_mut_slice());
    pcm.clear();
}
