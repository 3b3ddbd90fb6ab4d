//! What the listener counts.

/// Counts since the listener was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets decoded.
    pub packets: u64,
    /// Frames of 20 ms processed, concealed ones included.
    pub frames: u64,
    /// Packets given up as lost.
    pub lost: u64,
    /// Lost or undecodable packets that were concealed.
    pub concealed: u64,
    /// Packets that arrived too late.
    pub late: u64,
    /// Packets that arrived twice.
    pub duplicate: u64,
    /// Packets refused because too many were held.
    pub overflow: u64,
    /// Packets that could not be decoded.
    pub decode_errors: u64,
    /// Those of them in a row, up to the last packet.
    pub undecodable: u32,
    /// Packets dropped undecoded because the microphone was muted.
    pub muted: u64,
    /// Frames for which the gate was open.
    pub gate_open_frames: u64,
    /// Windows processed by Silero.
    pub silero_windows: u64,
    /// Windows on which Silero failed.
    pub silero_failures: u64,
    /// Utterances opened.
    pub utterances: u64,
}
