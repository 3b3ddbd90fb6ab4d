//! The gate: WebRTC's Gaussian-mixture voice detector with a hangover.

use webrtc_vad::{SampleRate, Vad, VadMode};

use crate::frame::{FRAME_SAMPLES, FRAME_US};

/// The detector, marked as `Send`.
struct SendVad(Vad);

// SAFETY: the detector is a plain block of memory on the C heap that nothing else points to: no thread-locals, no
// callbacks, no sharing. All access goes through `&mut`, so moving the owner to another thread moves the only access
// with it.
#[allow(unsafe_code, reason = "the one promise that makes the detector movable; see SAFETY")]
unsafe impl Send for SendVad {}

/// Reports for each 20 ms frame at 16 kHz whether speech-like sound is near.
pub struct Gate {
    vad: SendVad,
    hangover_us: u64,
    /// Time for which the gate stays open without another voiced frame.
    left_us: u64,
}

impl Gate {
    /// A closed gate that stays open for `hangover_us` after each voiced frame. Detector mode 2.
    pub fn new(hangover_us: u64) -> Self {
        let vad = Vad::new_with_rate_and_mode(SampleRate::Rate16kHz, VadMode::Aggressive);
        Self { vad: SendVad(vad), hangover_us, left_us: 0 }
    }

    /// Takes one frame and returns whether the gate is open.
    pub fn push(&mut self, frame: &[i16; FRAME_SAMPLES]) -> bool {
        // A frame of the right length cannot fail; on an error the gate stays open, which loses nothing.
        if self.vad.0.is_voice_segment(frame).unwrap_or(true) {
            self.left_us = self.hangover_us + FRAME_US;
        }
        self.left_us = self.left_us.saturating_sub(FRAME_US);
        self.left_us > 0
    }

    /// Resets the detector.
    pub fn reset(&mut self) {
        *self = Self::new(self.hangover_us);
    }
}
