//! Ring buffer of the most recent sound.

use std::collections::VecDeque;

/// The last `capacity` samples, addressed by their position in the stream. Its memory is taken with the first one.
pub struct Preroll {
    samples: VecDeque<i16>,
    capacity: usize,
    /// Position just after the newest sample.
    end: u64,
}

impl Preroll {
    /// An empty ring of `capacity` samples at position 0.
    pub fn new(capacity: usize) -> Self {
        Self { samples: VecDeque::new(), capacity, end: 0 }
    }

    /// Appends `pcm`, overwriting the oldest samples.
    pub fn push(&mut self, pcm: &[i16]) {
        self.end += pcm.len() as u64;
        let kept = &pcm[pcm.len().saturating_sub(self.capacity)..];
        let surplus = (self.samples.len() + kept.len()).saturating_sub(self.capacity);
        self.samples.drain(..surplus);
        if self.samples.capacity() == 0 {
            // At once: a buffer that grows leaves copies of private sound in memory that it has given back.
            self.samples.reserve_exact(self.capacity);
        }
        self.samples.extend(kept);
    }

    /// Position of the oldest sample that is kept.
    pub fn start(&self) -> u64 {
        self.end - self.samples.len() as u64
    }

    /// Position just after the newest sample.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends the samples from position `from` on to `out`. Returns the position of the first sample appended, which
    /// is later than `from` if that was overwritten.
    pub fn copy_from(&self, from: u64, out: &mut Vec<i16>) -> u64 {
        let from = from.clamp(self.start(), self.end);
        out.extend(self.samples.range((from - self.start()) as usize..));
        from
    }

    /// Overwrites every sample and frees their memory; keeps the position.
    pub fn erase(&mut self) {
        let mut samples = std::mem::take(&mut self.samples);
        // After muting no sound may remain in memory, whoever gets it next.
        samples.iter_mut().for_each(|sample| *sample = 0);
        std::hint::black_box(samples);
    }
}

#[cfg(test)]
mod tests {
    use super::Preroll;

    #[test]
    fn keeps_the_newest_and_their_positions() {
        let mut ring = Preroll::new(4);
        assert_eq!(ring.samples.capacity(), 0);
        ring.push(&[1]);
        assert_eq!(ring.samples.capacity(), 4, "it is never to grow");
        ring.push(&[2, 3]);
        assert_eq!((ring.start(), ring.end()), (0, 3));
        ring.push(&[4, 5, 6]);
        assert_eq!((ring.start(), ring.end()), (2, 6));
        let mut out = Vec::new();
        assert_eq!(ring.copy_from(0, &mut out), 2);
        assert_eq!(out, [3, 4, 5, 6]);
        ring.push(&[7, 8, 9, 10, 11, 12]);
        out.clear();
        assert_eq!(ring.copy_from(11, &mut out), 11);
        assert_eq!((&out[..], ring.samples.capacity()), (&[12][..], 4));
        ring.erase();
        assert_eq!((ring.start(), ring.end(), ring.samples.capacity()), (12, 12, 0));
        out.clear();
        assert_eq!(ring.copy_from(0, &mut out), 12);
        assert!(out.is_empty());
    }
}
