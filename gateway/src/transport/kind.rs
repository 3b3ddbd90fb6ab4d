//! Kinds of connections, and their differences.

/// Properties of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Name in logs and records.
    pub label: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Whether sound arrives in the order in which it was sent.
    pub ordered: bool,
    /// Whether nobody on the way can read or change what it carries.
    pub encrypted: bool,
    /// Whether the peer is a pair of glasses: apps run on nothing else.
    pub is_glasses: bool,
}

impl Transport {
    /// WebSocket without TLS.
    pub(crate) const WS: Self =
        Self { label: "ws", name: "WebSocket", ordered: true, encrypted: false, is_glasses: true };
    /// WebSocket over TLS.
    pub(crate) const WSS: Self = Self { label: "wss", encrypted: true, ..Self::WS };
    /// UDP with TLS 1.3; sound comes in datagrams, which may overtake each other.
    pub const QUIC: Self = Self { label: "quic", name: "QUIC", ordered: false, encrypted: true, is_glasses: true };
    /// In-process: `lorgnette ask`.
    pub const TEXT: Self =
        Self { label: "text", name: "control socket", ordered: true, encrypted: false, is_glasses: false };

    /// The one that logs and records call so.
    pub fn labelled(label: &str) -> Option<Self> {
        [Self::WS, Self::WSS, Self::QUIC, Self::TEXT].into_iter().find(|transport| transport.label == label)
    }
}
