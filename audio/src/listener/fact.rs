//! What the listener reports.

/// What the listener detected. Times are capture times in microseconds on the device's clock, whose zero is the
/// beginning of its session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    /// Speech began.
    SpeechStarted {
        /// Number of the utterance; the next one has the next number.
        utterance: u32,
        /// Where the voice began.
        at_us: u64,
        /// Voice since then.
        voiced_us: u64,
    },
    /// First sign of a pause.
    Paused {
        /// The open utterance.
        utterance: u32,
        /// Where the voice stopped.
        at_us: u64,
        /// Silence since then.
        silence_us: u64,
    },
    /// Voice again in the same utterance.
    Resumed {
        /// The open utterance.
        utterance: u32,
        /// Where the voice went on.
        at_us: u64,
    },
    /// The pause goes on; reported for each window of 32 ms, and every 100 ms for a device that stopped sending.
    Silence {
        /// The open utterance.
        utterance: u32,
        /// Where the voice stopped.
        at_us: u64,
        /// Silence since then.
        silence_us: u64,
        /// End-of-turn score (0 to 1) of this pause, once [`Listener::note_score`](super::Listener::note_score) has set it.
        score: Option<f32>,
    },
    /// The utterance ends, with or without a pause: the device ended its stream, or the longest utterance is reached.
    /// The caller should close it now.
    Ended {
        /// The open utterance.
        utterance: u32,
        /// End of the voice.
        at_us: u64,
    },
}
