//! What kinds of connections there are, and in what they differ.

/// What a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// In logs and records.
    pub label: &'static str,
    /// For people.
    pub name: &'static str,
    /// Whether sound arrives in the order in which it was sent.
    pub ordered: bool,
    /// Whether glasses are at the other end: apps run on nothing else.
    pub is_glasses: bool,
}

impl Transport {
    /// WebSocket without TLS.
    pub const WS: Self = Self { label: "ws", name: "WebSocket", ordered: true, is_glasses: true };
    /// WebSocket within TLS.
    pub const WSS: Self = Self { label: "wss", ..Self::WS };
    /// QUIC.
    pub const QUIC: Self = Self { label: "quic", name: "QUIC", ordered: false, is_glasses: true };
    /// Within the process: `lorgnette ask`.
    pub const TEXT: Self = Self { label: "text", name: "control socket", ordered: true, is_glasses: false };
}
