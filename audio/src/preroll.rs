//! The most recent sound.

use std::collections::VecDeque;

use crate::packed::Packed;

/// The last `capacity` samples, addressed by their position in the stream. They are packed: each of many devices that hear
/// nothing has them.
pub struct Preroll {
    pieces: VecDeque<Packed>,
    capacity: usize,
    /// Position of the first sample of the oldest piece.
    first: u64,
    /// Position just after the newest sample.
    end: u64,
}

impl Preroll {
    /// An empty one for `capacity` samples, at position 0.
    pub fn new(capacity: usize) -> Self {
        Self { pieces: VecDeque::new(), capacity, first: 0, end: 0 }
    }

    /// Appends `pcm`, and drops the oldest samples.
    pub fn push(&mut self, pcm: &[i16]) {
        self.end += pcm.len() as u64;
        let kept = &pcm[pcm.len().saturating_sub(self.capacity)..];
        if kept.len() < pcm.len() {
            self.pieces.clear();
            self.first = self.end - kept.len() as u64;
        }
        self.pieces.push_back(Packed::new(kept));
        while let Some(oldest) = self.pieces.front()
            && self.first + oldest.length() as u64 + self.capacity as u64 <= self.end
        {
            self.first += oldest.length() as u64;
            self.pieces.pop_front();
        }
    }

    /// Position of the oldest sample that is kept.
    pub fn start(&self) -> u64 {
        self.first.max(self.end.saturating_sub(self.capacity as u64))
    }

    /// Position just after the newest sample.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends the samples from position `from` on to `out`. Returns the position of the first sample appended, which
    /// is later than `from` if that was dropped.
    pub fn copy_from(&self, from: u64, out: &mut Vec<i16>) -> u64 {
        let from = from.clamp(self.start(), self.end);
        out.reserve((self.end - from) as usize);
        let mut end = self.first;
        for piece in &self.pieces {
            let start = end;
            end += piece.length() as u64;
            if end > from {
                out.extend(piece.samples().skip(from.saturating_sub(start) as usize));
            }
        }
        from
    }

    /// Erases all sound and frees its memory; keeps the position.
    pub fn erase(&mut self) {
        self.pieces = VecDeque::new();
        self.first = self.end;
    }
}

#[cfg(test)]
mod tests {
    use super::Preroll;

    #[test]
    fn keeps_the_newest_and_their_positions() {
        let mut ring = Preroll::new(4);
        ring.push(&[1]);
        ring.push(&[2, 3]);
        assert_eq!((ring.start(), ring.end()), (0, 3));
        ring.push(&[4, 5, 6]);
        assert_eq!((ring.start(), ring.end()), (2, 6));
        let mut out = Vec::new();
        assert_eq!(ring.copy_from(0, &mut out), 2);
        assert_eq!(out, [3, 4, 5, 6]);
        ring.push(&[7, 8, 9, 10, 11, 12]);
        assert_eq!((ring.start(), ring.pieces.len()), (8, 1));
        out.clear();
        assert_eq!(ring.copy_from(11, &mut out), 11);
        assert_eq!(out, [12]);
        ring.erase();
        assert_eq!((ring.start(), ring.end(), ring.pieces.capacity()), (12, 12, 0));
        out.clear();
        assert_eq!(ring.copy_from(0, &mut out), 12);
        assert!(out.is_empty());
    }

    #[test]
    fn it_keeps_no_more_than_a_piece_too_much() {
        let (mut ring, mut out) = (Preroll::new(1_000), Vec::new());
        for piece in 0_u64..50 {
            let pcm: Vec<i16> = (0..320).map(|sample| (piece * 320 + sample) as i16).collect();
            ring.push(&pcm);
            assert!(ring.pieces.len() <= 4);
            assert_eq!(ring.end() - ring.start(), 1_000.min(320 * (piece + 1)));
            out.clear();
            let from = ring.copy_from(0, &mut out);
            let expected: Vec<i16> = (from..ring.end()).map(|sample| sample as i16).collect();
            assert_eq!(out, expected);
        }
    }
}
