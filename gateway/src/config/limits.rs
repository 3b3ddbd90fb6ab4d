//! What the section `[limits]` says of connections.

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, handshakes and sessions included. Half of them at most may be on their way into a session, so
    /// that those who are in one keep theirs.
    pub connections_max: usize,
    /// Devices in a session.
    pub sessions_max: usize,
    /// Users with a task of their own.
    pub users_max: usize,
    /// Frames a second from one device, averaged over two seconds.
    pub frames_per_s_max: u32,
    /// Bytes a second from one device, likewise.
    pub bytes_per_s_max: u32,
}
