//! Every maximum of the kit, each with its reason.

/// Bytes of a request: a call's arguments have at most 64 KiB, a webhook far less.
pub(crate) const REQUEST_BYTES_MAX: usize = 256 * 1024;
/// Milliseconds in which a request must arrive.
pub(crate) const REQUEST_MS_MAX: u64 = 10_000;
/// Connections at once: one gateway and a few people with browsers.
pub(crate) const CONNECTIONS_MAX: usize = 128;
/// Sessions at once: one per wearer.
pub(crate) const SESSIONS_MAX: usize = 64;
/// Bytes of one message of the gateway: transcripts and settings are short, sound comes in small pieces.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Messages queued for the socket, as during a reconnect: older ones are stale.
pub(crate) const WAITING_MAX: usize = 64;
/// Transcripts queued for the app; a slow one misses the oldest.
pub(crate) const TRANSCRIPTS_MAX: usize = 64;
/// Languages subscribed to at once.
pub(crate) const LANGUAGES_MAX: usize = 8;
/// Milliseconds for the socket's handshake and acknowledgement; the gateway allows the same.
pub(crate) const ACK_MS_MAX: u64 = 5_000;
/// Milliseconds before each attempt to reconnect. The gateway starts a new session for an app that stays away, so
/// retrying indefinitely would only lead to two sessions.
pub(crate) const RECONNECT_MS: [u64; 4] = [1_000, 2_000, 4_000, 8_000];
/// Milliseconds that speaking may take before it fails.
pub(crate) const SPEAK_MS_MAX: u64 = 60_000;
/// Bytes of one spoken text: two minutes.
pub(crate) const SPEAK_BYTES_MAX: usize = 2 * 1024;
/// Bytes of a response of the storage, which holds at most 1 MB in total.
pub(crate) const STORAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Milliseconds for a request to the storage.
pub(crate) const STORAGE_MS_MAX: u64 = 10_000;
