//! Sound on its way from one step to the next. Each buffer takes its memory at once, since what grows leaves copies of sound
//! behind, and when it is needed first: there are many devices to which nobody speaks.

use crate::codec::FRAME_US_MAX;
use crate::frame::{FRAME_SAMPLES, us_to_samples};
use crate::preroll::Preroll;
use crate::samples::erase;
use crate::vad::silero::WINDOW_SAMPLES;

pub(super) struct Buffers {
    decoded_hz: u32,
    /// Sound of the latest packet.
    pub(super) decoded: Vec<i16>,
    /// The same at 16 kHz, as far as it does not fill a frame yet.
    pub(super) partial: Vec<i16>,
    /// Sound of the window that the analyser gets.
    voiced: Vec<i16>,
}

impl Buffers {
    pub(super) fn new(decoded_hz: u32) -> Self {
        Self { decoded_hz, decoded: Vec::new(), partial: Vec::new(), voiced: Vec::new() }
    }

    /// A packet is to be decoded.
    pub(super) fn make_room(&mut self) {
        if self.decoded.capacity() > 0 {
            return;
        }
        self.decoded.reserve_exact(us_to_samples(FRAME_US_MAX, self.decoded_hz) as usize);
        // The samples of 60 ms and the rest of a frame.
        self.partial.reserve_exact(4 * FRAME_SAMPLES - self.partial.len());
    }

    /// A window of sound from this position on.
    pub(super) fn voiced(&mut self, start: u64, recent: &Preroll) -> &[i16] {
        self.voiced.clear();
        // More than the detector ever looks back.
        self.voiced.reserve_exact(4 * WINDOW_SAMPLES);
        recent.copy_from(start, &mut self.voiced);
        self.voiced.get(..WINDOW_SAMPLES).unwrap_or(&self.voiced)
    }

    /// No packet comes for a while. What does not fill a frame stays, and its place in the stream.
    pub(super) fn release(&mut self) {
        for sound in [&mut self.decoded, &mut self.voiced] {
            erase(sound);
            *sound = Vec::new();
        }
    }

    /// Leaves no sound.
    pub(super) fn erase(&mut self) {
        [&mut self.decoded, &mut self.partial, &mut self.voiced].into_iter().for_each(erase);
    }
}
