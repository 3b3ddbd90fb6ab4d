//! Handshake and liveness: the messages with sequence 0, which are never replayed.

use crate::limits::{LABEL_BYTES_MAX, LANGUAGE_BYTES_MAX, NAME_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::values::{
    Buttons, ChannelBinding, Codec, Codecs, DisplayKind, GoodbyeReason, ListeningState, PairingMethod, RejectCode,
    Sensors,
};

message! {
    /// First frame of a device: its identity and its capabilities.
    pub struct Hello<'a>, owned HelloOwned {
        /// Ed25519 public key of the device.
        device_key: array[32],
        /// SHA-256 of the nonce that Proof reveals: neither side can choose its nonce to fit the other's.
        nonce_commitment: array[32],
        /// Name that the maker gave this device, such as a serial number. Not trusted: the key is the identity.
        device_id: text[NAME_BYTES_MAX],
        /// Maker and model.
        model: text[NAME_BYTES_MAX],
        /// Version of the firmware.
        firmware: text[NAME_BYTES_MAX],
        /// Language that the wearer chose (RFC 5646), such as `en-GB`; empty: unknown.
        language: text[LANGUAGE_BYTES_MAX],
        /// What the device can do.
        capabilities: record[Capabilities],
        /// The session to resume.
        resume: option[Resume<'a>, ResumeOwned],
        /// The channel binding of the proofs. Appended; default: `exporter`.
        binding: ChannelBinding = ChannelBinding::Exporter,
    }
}

message! {
    /// Capabilities of a device.
    pub struct Capabilities {
        /// Codecs that the device can send.
        codecs_up: Codecs,
        /// Codecs that the device can play.
        codecs_down: Codecs,
        /// Sample rate of the microphone in hertz; 0: no microphone.
        audio_up_hz: u32,
        /// Preferred sample rate for playback in hertz; 0: no speaker.
        audio_down_hz: u32,
        /// What it can show, and its size.
        display: record[Screen],
        /// Speakers: 0 none, 1 one ear, 2 both. Sound is always mono.
        speakers: u8,
        /// Those that the device has.
        buttons: Buttons,
        /// What the device can sense.
        sensors: Sensors,
        /// True if the microphone signal does not contain the speaker's sound.
        echo_cancelled: bool,
        /// Number of device tools that a ToolList will offer.
        tools: u16,
        /// Bytes of the largest envelope that the device can receive; 0: any. Appended; default: 0.
        frame_bytes_max: u32 = 0,
        /// Milliseconds between two heartbeats that the device asks for; 0: the gateway chooses. Appended; default: 0.
        heartbeat_ms: u32 = 0,
        /// Bytes of the largest firmware image that the device can store; 0: it is not updated by the gateway. Appended;
        /// default: 0.
        image_bytes_max: u32 = 0,
        /// Revision of the hardware, by the maker's own count. Appended; default: 0.
        hardware: u16 = 0,
        /// Microseconds of the LC3 frames that the device sends and plays, 7,500 or 10,000; 0: none. Appended; default: 0.
        lc3_frame_us: u16 = 0,
        /// Bytes of one LC3 frame, 20 to 120; 0: none. Appended; default: 0.
        lc3_frame_bytes: u16 = 0,
    }
}

message! {
    /// The display of a device.
    pub struct Screen {
        /// Kind of content that it can show.
        kind: DisplayKind,
        /// Width in pixels; 0: unknown.
        width_px: u16,
        /// Height in pixels; 0: unknown.
        height_px: u16,
        /// Characters per line; 0: unknown, or of different widths.
        columns: u16,
        /// Lines; 0: unknown.
        rows: u16,
        /// Bits of colour or brightness per pixel.
        colour_bits: u8,
        /// True if the device shows what is being said while it is said. Appended; default: false.
        captions: bool = false,
    }
}

message! {
    /// Requests the session of a lost link.
    pub struct Resume<'a>, owned ResumeOwned {
        /// Token of the last Welcome.
        token: bytes[TOKEN_BYTES_MAX],
        /// Last control sequence received without a gap.
        control_received: u32,
        /// Highest audio sequence received.
        audio_received: u32,
    }
}

message! {
    /// The gateway proves its identity, over the commitment of the device.
    pub struct Challenge {
        /// Nonce of the gateway.
        nonce: array[32],
        /// Ed25519 public key of the gateway.
        gateway_key: array[32],
        /// Signature over [`gateway_proof`](crate::auth::Handshake::gateway_proof).
        signature: array[64],
    }
}

message! {
    /// The device reveals its nonce and proves its identity.
    pub struct Proof {
        /// The nonce whose SHA-256 was in Hello.
        nonce: array[32],
        /// Signature over [`device_proof`](crate::auth::Handshake::device_proof).
        signature: array[64],
        /// SHA-256 of [`invitation_transcript`](crate::auth::Handshake::invitation_transcript): the device knows the code of
        /// an invitation. Appended; default: zeros, no invitation.
        invitation: array[32] = [0; 32],
    }
}

message! {
    /// The device is unknown and pairing is open. The code itself is never sent: both sides compute it
    /// ([`pairing_transcript`](crate::auth::Handshake::pairing_transcript)), the glasses show theirs, and the operator
    /// types it at the gateway.
    pub struct PairingCode {
        /// How the operator confirms.
        method: PairingMethod,
        /// Seconds until pairing closes.
        expires_s: u16,
        /// Tries left at the gateway.
        tries_left: u8,
    }
}

message! {
    /// Requested format of sound.
    pub struct AudioFormat {
        /// How the sound is coded.
        codec: Codec,
        /// Sample rate in hertz.
        rate_hz: u32,
        /// Length of one packet in milliseconds.
        frame_ms: u16,
        /// Microseconds of one frame, of LC3; 0: another codec. Appended; default: 0.
        lc3_frame_us: u16 = 0,
        /// Bytes of one frame, of LC3; 0: another codec. Appended; default: 0.
        lc3_frame_bytes: u16 = 0,
    }
}

message! {
    /// Receive state of the gateway for a resumed session.
    pub struct Resumed {
        /// Last control sequence received without a gap: the device replays from the next one.
        control_received: u32,
        /// Highest audio sequence received: the device replays from the next one.
        audio_received: u32,
    }
}

message! {
    /// What a gateway that was restarted has kept of the session that the device asks for.
    pub struct Continued {
        /// Last control sequence that it has dealt with: the device sends the later ones again, with new sequences.
        control_received: u32,
        /// Capture time, on the device's clock, of the last sound that it has dealt with: the device sends later sound
        /// again, with new sequences.
        sound_until_us: u64,
    }
}

message! {
    /// The session is open.
    pub struct Welcome<'a>, owned WelcomeOwned {
        /// Number of the session in the gateway's records.
        session: u32,
        /// Token for Resume; empty: the session cannot be resumed.
        resume_token: bytes[TOKEN_BYTES_MAX],
        /// Milliseconds for which the session outlives a lost link.
        resume_ms: u32,
        /// Set if the requested session is resumed; otherwise a new session starts, with sequences from 1.
        resumed: option[Resumed],
        /// Name of the gateway, for people.
        gateway_name: text[NAME_BYTES_MAX],
        /// Name of the user that the device belongs to.
        user_name: text[NAME_BYTES_MAX],
        /// Milliseconds between two heartbeats of either side.
        heartbeat_ms: u32,
        /// Format of microphone sound that the gateway requests.
        audio_up: record[AudioFormat],
        /// Format of the speech that the gateway will send.
        audio_down: record[AudioFormat],
        /// Wall clock in milliseconds since 1970-01-01 UTC.
        wall_ms: u64,
        /// Zone of the wearer in seconds east of UTC.
        zone_offset_s: i32,
        /// State of the conversation.
        listening: ListeningState,
        /// Set if the gateway was restarted and goes on in a new session. Appended; default: none.
        continued: option[Continued] = None,
    }
}

message! {
    /// The handshake is refused; the gateway closes the connection after it.
    pub struct Reject<'a>, owned RejectOwned {
        /// Reason, for programs.
        code: RejectCode,
        /// The reason in words, for a log.
        message: text[LABEL_BYTES_MAX],
        /// Milliseconds before the next attempt; 0: the device's own back-off.
        retry_after_ms: u32,
    }
}

message! {
    /// Liveness signal, sent by each side every `heartbeat_ms`. Round trip of the receiver: now - echo_us - held_us.
    pub struct Heartbeat {
        /// Time of the peer's last heartbeat (its stamp); 0: none received yet.
        echo_us: u64,
        /// Microseconds between that heartbeat and this one, on the sender's clock.
        held_us: u64,
    }
}

message! {
    /// End of the session; the sender closes the connection after it.
    pub struct Goodbye<'a>, owned GoodbyeOwned {
        /// Reason, for programs.
        reason: GoodbyeReason,
        /// The reason in words, for a log.
        message: text[LABEL_BYTES_MAX],
        /// Milliseconds before the next attempt; 0: the device's own back-off. Devices send 0.
        retry_after_ms: u32,
    }
}
