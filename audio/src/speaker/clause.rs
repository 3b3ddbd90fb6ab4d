//! Clauses waiting to be spoken, cut into frames at the device's rate.

use std::collections::VecDeque;

use crate::frame::{samples_to_us, us_to_samples};
use crate::resample::Resampler;

/// Source samples converted at a time: 20 ms at 24 kHz. Small, so that no call takes long.
const CHUNK_SAMPLES: usize = 480;

/// One frame (or several), padded with silence at a clause's end.
pub(super) struct Frame {
    pub(super) clause: u16,
    pub(super) pcm: Vec<i16>,
    pub(super) last_of_clause: bool,
    pub(super) last_of_speech: bool,
}

struct Clause {
    number: u16,
    pcm: Vec<i16>,
    used: usize,
    rate_hz: u32,
    last: bool,
    resampler: Resampler,
    /// Zeros still to be fed to flush the filter.
    tail: usize,
}

pub(super) struct Queue {
    clauses: VecDeque<Clause>,
    /// Samples of a frame.
    size: usize,
    /// Converted sound of the first clause that does not fill a frame yet.
    converted: Vec<i16>,
    /// The newest sound returned, as far back as the device's buffer reaches: a fade begins within it.
    sent: VecDeque<i16>,
    sent_max: usize,
}

impl Queue {
    pub(super) fn new(rate_hz: u32, frame_us: u64, lead_us: u64) -> Self {
        let size = us_to_samples(frame_us, rate_hz) as usize;
        Self {
            clauses: VecDeque::new(),
            size,
            converted: Vec::new(),
            sent: VecDeque::new(),
            sent_max: us_to_samples(lead_us, rate_hz) as usize + size,
        }
    }

    pub(super) fn push(&mut self, number: u16, pcm: &[i16], rate_hz: u32, last: bool, resampler: Resampler) {
        let tail = resampler.tail_samples();
        let pcm = pcm.to_vec();
        self.clauses.push_back(Clause { number, pcm, used: 0, rate_hz, last, resampler, tail });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.clauses.len()
    }

    /// Queued sound at the source rate, in microseconds.
    pub(super) fn queued_us(&self) -> u64 {
        let waiting = |clause: &Clause| samples_to_us((clause.pcm.len() - clause.used) as u64, clause.rate_hz);
        self.clauses.iter().map(waiting).sum()
    }

    /// The next frames in one, at most so many, and how many they are. They never span two clauses.
    pub(super) fn pop_frames(&mut self, most: u64) -> Option<(Frame, u64)> {
        let mut all = self.pop_frame()?;
        let mut frames = 1;
        while frames < most
            && !all.last_of_clause
            && let Some(next) = self.pop_frame()
        {
            all.pcm.extend(next.pcm);
            (all.last_of_clause, all.last_of_speech) = (next.last_of_clause, next.last_of_speech);
            frames += 1;
        }
        Some((all, frames))
    }

    /// The next frame. A frame never spans two clauses, so each clause ends at the end of a packet.
    pub(super) fn pop_frame(&mut self) -> Option<Frame> {
        let size = self.size;
        let clause = self.clauses.front_mut()?;
        while self.converted.len() < size && clause.convert_some(&mut self.converted) {}
        let (number, last) = (clause.number, clause.last);
        let ends = clause.is_spent() && self.converted.len() <= size;
        let mut pcm: Vec<i16> = self.converted.drain(..size.min(self.converted.len())).collect();
        pcm.resize(size, 0);
        if ends {
            self.clauses.pop_front();
        }
        self.sent.extend(&pcm);
        let surplus = self.sent.len().saturating_sub(self.sent_max);
        self.sent.drain(..surplus);
        Some(Frame { clause: number, pcm, last_of_clause: ends, last_of_speech: ends && last })
    }

    /// All that was returned was played.
    pub(super) fn forget_sent(&mut self) {
        self.sent = VecDeque::new();
    }

    /// A frame that begins `back` samples before the end of the returned sound and ramps to silence.
    pub(super) fn fade_frame(&self, back: u64) -> Vec<i16> {
        let size = self.size;
        let start = self.sent.len().saturating_sub(usize::try_from(back).unwrap_or(usize::MAX));
        let mut pcm: Vec<i16> = self.sent.iter().skip(start).take(size).copied().collect();
        pcm.resize(size, 0);
        for (at, sample) in pcm.iter_mut().enumerate() {
            *sample = (i64::from(*sample) * (size - at) as i64 / size as i64) as i16;
        }
        pcm
    }
}

impl Clause {
    fn is_spent(&self) -> bool {
        self.used == self.pcm.len() && self.tail == 0
    }

    /// Converts the next chunk; returns false if there is none.
    fn convert_some(&mut self, out: &mut Vec<i16>) -> bool {
        if self.used < self.pcm.len() {
            let end = (self.used + CHUNK_SAMPLES).min(self.pcm.len());
            self.resampler.push(&self.pcm[self.used..end], out);
            self.used = end;
            return true;
        }
        if self.tail > 0 {
            let zeros = [0; CHUNK_SAMPLES];
            let count = self.tail.min(CHUNK_SAMPLES);
            self.resampler.push(&zeros[..count], out);
            self.tail -= count;
            return true;
        }
        false
    }
}
