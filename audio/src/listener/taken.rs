//! Sound that is taken out of a listener.

use super::Listener;
use crate::frame::RATE_HZ;
use crate::samples::Samples;

/// Most sound kept for the tap: two seconds. It is taken after every packet, and before a packet there may be a gap that is filled with
/// up to a second of silence.
const TAPPED_SAMPLES_MAX: usize = 2 * RATE_HZ as usize;

impl Listener {
    /// The last samples, at most so many, mono at 16 kHz, and the capture time of their end in microseconds. With gaps filled and
    /// lost packets concealed; none while the microphone is muted.
    pub fn last_sound(&self, samples: usize) -> (Samples, u64) {
        let (end, mut pcm) = (self.recent.end(), Vec::with_capacity(samples));
        self.recent.copy_from(end.saturating_sub(samples as u64), &mut pcm);
        (pcm.into(), self.timeline.capture_us(end))
    }

    /// Turns the tap on or off: while on, sound is kept for [`take_tapped`](Self::take_tapped).
    pub fn set_tapped(&mut self, tapped: bool) {
        match (tapped, &self.tap) {
            (true, None) => self.tap = Some(Samples::default()),
            (false, Some(_)) => self.tap = None,
            _ => {}
        }
    }

    /// Sound since the last call, mono at 16 kHz, with lost packets concealed. Empty while the tap is off. Sound beyond
    /// two seconds that was not taken is dropped.
    pub fn take_tapped(&mut self) -> Samples {
        self.tap.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn keep(&mut self, samples: &[i16]) {
        if let Some(tap) = &mut self.tap
            && tap.len() + samples.len() <= TAPPED_SAMPLES_MAX
        {
            tap.append(samples);
        }
    }
}
