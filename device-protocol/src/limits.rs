//! Every maximum of the protocol, each with its reason. PROTOCOL.md repeats them in its tables.

/// Bytes of the envelope header: version, flags, kind, length.
pub const HEADER_BYTES: usize = 8;

/// Bytes of one whole envelope, header included. A tool list with its schemas is the largest message; a microcontroller
/// can still hold one such buffer.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one whole envelope that every device can receive: 20 ms of PCM16 at 48 kHz are 1,920. A smaller announced
/// value is raised to this.
pub const DEVICE_FRAME_BYTES_MIN: usize = 2 * 1024;

/// Bytes of the body of one envelope.
pub const BODY_BYTES_MAX: usize = FRAME_BYTES_MAX - HEADER_BYTES;

/// Bytes of one encoded packet of sound: 40 ms of PCM16 at 48 kHz are 3,840.
pub const AUDIO_PACKET_BYTES_MAX: usize = 4 * 1024;

/// Bytes of one whole envelope that carries sound: the packet, the header and at most 64 bytes of other fields.
pub const AUDIO_FRAME_BYTES_MAX: usize = AUDIO_PACKET_BYTES_MAX + HEADER_BYTES + 64;

/// Microseconds of sound in one packet: the longest Opus packet has 120 ms.
pub const PACKET_DURATION_US_MAX: u32 = 120_000;

/// Bytes of a running text (transcript, caption, tool result): about ten minutes of speech in one turn.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Bytes of one text of a display content: no current display shows more than a thousand characters.
pub const DISPLAY_TEXT_BYTES_MAX: usize = 4 * 1024;

/// Bytes of a picture on the display, one bit per pixel: 640 by 200.
pub const BITMAP_BYTES_MAX: usize = 16_000;

/// Bytes of a title or label: one line of a display.
pub const LABEL_BYTES_MAX: usize = 256;

/// Bytes of a device id, model, firmware version, or the name of a gateway, a user or a tool: longer names do not fit a
/// list on a screen.
pub const NAME_BYTES_MAX: usize = 64;

/// Bytes of a language tag: RFC 5646 section 4.4.1 recommends 35.
pub const LANGUAGE_BYTES_MAX: usize = 35;

/// Bytes of a media type such as `image/jpeg`.
pub const MIME_BYTES_MAX: usize = 64;

/// Bytes of an error code of a tool.
pub const CODE_BYTES_MAX: usize = 64;

/// Bytes of a resume token: 32 random bytes are enough, the rest allows for an encrypted one.
pub const TOKEN_BYTES_MAX: usize = 64;

/// Tools that one device offers: a model reads all of them on every turn.
pub const TOOLS_MAX: usize = 32;

/// Bytes of the description of a device tool.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;

/// Bytes of the JSON schema of a tool's arguments.
pub const SCHEMA_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the JSON with the sentence templates that call a tool.
pub const PHRASES_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the sentence spoken after a tool has run.
pub const REPLY_TEMPLATE_BYTES_MAX: usize = 512;

/// Bytes of the JSON arguments of one tool call.
pub const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the JSON data of one tool result.
pub const DATA_BYTES_MAX: usize = 16 * 1024;

/// Bytes of one piece of a photo: on a link of 1 Mbit/s it delays the sound by an eighth of a second.
pub const PHOTO_CHUNK_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a whole photo: a 12 megapixel JPEG is about 4 MiB.
pub const PHOTO_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Photos of a session whose pieces may come interleaved: of each the gateway keeps what has come.
pub const PHOTOS_OPEN_MAX: usize = 2;

/// Bytes of one firmware image: more flash than a device has for it.
pub const IMAGE_BYTES_MAX: u32 = 16 * 1024 * 1024;

/// Bytes of the manifest of a firmware image, without its signature: twice what version 1 of it can have.
pub const MANIFEST_BYTES_MAX: usize = 512;

/// Bytes of one piece of a firmware image: it fits the smallest `frame_bytes_max`, and a page of flash.
pub const FIRMWARE_CHUNK_BYTES_MAX: usize = 1024;

/// Bytes of a firmware image that the gateway sends beyond the last FirmwareProgress: what may lie before speech on the
/// way, a third of a second at 100 kbit/s.
pub const FIRMWARE_WINDOW_BYTES: u32 = 4 * 1024;

/// Bytes of one text message of the JSON form: base64 makes bytes a third longer, JSON escapes make text up to six
/// times longer.
pub const JSON_BYTES_MAX: usize = 6 * FRAME_BYTES_MAX;

/// Control frames that a sender keeps for replay until they are acknowledged.
pub const REPLAY_CONTROL_FRAMES_MAX: usize = 256;

/// Bytes of those control frames. A device may keep less (see PROTOCOL.md, resume).
pub const REPLAY_CONTROL_BYTES_MAX: usize = 256 * 1024;

/// Microseconds of sound that a device keeps for replay: a sentence, and the time in which a roaming Wi-Fi station is
/// back. 40 kB in Opus.
pub const REPLAY_AUDIO_US_MAX: u64 = 10_000_000;

/// Microseconds of sound with which a gateway that says so has not dealt, and which a device may keep for it: several
/// restarts in a row. 90 kB in Opus at 24 kbit/s.
pub const REPLAY_OPEN_AUDIO_US_MAX: u64 = 30_000_000;

/// Most times real time at which a device replays kept sound.
pub const REPLAY_SPEED_MAX: u64 = 4;

/// Milliseconds for which the gateway keeps the session of a lost link: time to pass through a lift or a cellar.
pub const RESUME_MS_MAX: u32 = 120_000;

/// Milliseconds between two heartbeats, if the Welcome names no other.
pub const HEARTBEAT_MS_DEFAULT: u32 = 5_000;

/// Milliseconds between two heartbeats that a device may ask for: after three missed ones the gateway knows that it is
/// gone.
pub const HEARTBEAT_MS_MAX: u32 = 60_000;

/// Heartbeats without any frame from the peer after which the link counts as lost.
pub const HEARTBEATS_MISSED_MAX: u32 = 3;

/// Milliseconds from the opened connection to the Welcome, excluding pairing.
pub const HANDSHAKE_MS_MAX: u32 = 10_000;

/// Milliseconds of sound that the gateway sends ahead of playback: bridges a Wi-Fi scan, and little is discarded when
/// the wearer interrupts.
pub const SPEECH_AHEAD_MS_MAX: u32 = 600;

/// Milliseconds of sound that the gateway sends beyond the last Played: what a device must be able to buffer.
pub const SPEECH_HOLD_MS_MAX: u32 = 1_000;

/// Milliseconds between two Played messages while sound is played.
pub const PLAYED_EVERY_MS_MAX: u32 = 200;

/// Milliseconds for which speech chunks wait for their SpeechStart, which may come later on QUIC.
pub const SPEECH_START_WAIT_MS_MAX: u32 = 1_000;

/// Unidirectional QUIC streams that may be open at once for sound that does not fit a datagram.
pub const AUDIO_STREAMS_MAX: u32 = 32;

/// Control frames that a peer may send in one second: a button held down repeats thirty times.
pub const CONTROL_FRAMES_PER_S_MAX: u32 = 200;

/// Audio packets that a peer may send in one second: real time is 100 packets of 10 ms; a replay, four times real time
/// of 20 ms packets.
pub const AUDIO_PACKETS_PER_S_MAX: u32 = 200;

/// Audio sequences that one packet may be ahead of all before it: at 100 packets a second, all that may be lost in the
/// 15 s after which a link counts as lost, plus a third. A single packet further ahead is ignored (RFC 3550, appendix
/// A.1).
pub const AUDIO_AHEAD_MAX: u32 = 2_048;

/// Bytes that a peer may send in one second: sound, and a photo of 8 MiB in four seconds.
pub const BYTES_PER_S_MAX: u32 = 2 * 1024 * 1024;

/// Milliseconds for which a peer may accept no data before it is closed.
pub const STALL_MS_MAX: u32 = 5_000;

/// Milliseconds for which a side waits for sound that was announced as the last but has not arrived (QUIC).
pub const LAST_SOUND_WAIT_MS_MAX: u32 = 200;

/// Milliseconds until received frames are acknowledged.
pub const ACK_EVERY_MS_MAX: u32 = 1_000;

/// Control frames until received frames are acknowledged: a sixteenth of those kept for replay.
pub const ACK_CONTROL_FRAMES_MAX: u32 = 16;

/// Audio packets until received frames are acknowledged: one second of 20 ms packets.
pub const ACK_AUDIO_PACKETS_MAX: u32 = 20;

// Invariants between the limits, checked at compile time.
const _: () = assert!(ARGUMENTS_BYTES_MAX + 1024 <= BODY_BYTES_MAX);
const _: () = assert!(TEXT_BYTES_MAX + DATA_BYTES_MAX + 1024 <= BODY_BYTES_MAX);
const _: () = assert!(MANIFEST_BYTES_MAX + 256 <= DEVICE_FRAME_BYTES_MIN);
const _: () = assert!(FIRMWARE_CHUNK_BYTES_MAX + 256 <= DEVICE_FRAME_BYTES_MIN);
const _: () = assert!(PHOTO_CHUNK_BYTES_MAX + 1024 <= BODY_BYTES_MAX);
const _: () = assert!(2 * DISPLAY_TEXT_BYTES_MAX + BITMAP_BYTES_MAX + 1024 <= BODY_BYTES_MAX);
