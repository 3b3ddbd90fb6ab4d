//! From the device to the gateway.

use crate::limits::{
    AUDIO_PACKET_BYTES_MAX, CODE_BYTES_MAX, DATA_BYTES_MAX, DESCRIPTION_BYTES_MAX, LABEL_BYTES_MAX, MIME_BYTES_MAX,
    NAME_BYTES_MAX, PHOTO_CHUNK_BYTES_MAX, PHRASES_BYTES_MAX, REPLY_TEMPLATE_BYTES_MAX, SCHEMA_BYTES_MAX,
    TEXT_BYTES_MAX, TOOLS_MAX,
};
pub use crate::link::{Capabilities, Goodbye, Heartbeat, Hello, Proof, Resume, Screen};
#[cfg(feature = "json")]
pub use crate::link::{GoodbyeOwned, HelloOwned, ResumeOwned};
use crate::values::{
    ButtonAction, ButtonId, Choice, Codec, Gesture, LinkKind, MicEnd, PlayState, Posture, ToolFlags, UpdateAnswer,
    UpdateFailure, UpdateOutcome,
};

direction! {
    /// Every message from the device to the gateway.
    pub enum Up<'a>, owned UpOwned, down false {
        /// The device's identity and capabilities.
        0x0001 "hello" Hello(Hello<'a>, HelloOwned),
        /// The device proves its identity.
        0x0002 "proof" Proof(Proof, Proof),
        /// Sign of life.
        0x0003 "heartbeat" Heartbeat(Heartbeat, Heartbeat),
        /// Acknowledges received frames.
        0x0004 "ack" Ack(Ack, Ack),
        /// End of the session.
        0x0005 "goodbye" Goodbye(Goodbye<'a>, GoodbyeOwned),
        /// The microphone stream pauses.
        0x1001 "audio_end" AudioEnd(AudioEnd, AudioEnd),
        /// Playback progress of a speech.
        0x1002 "played" Played(Played, Played),
        /// A button.
        0x1003 "button" Button(Button, Button),
        /// A touch.
        0x1004 "touch" Touch(Touch, Touch),
        /// The head's position.
        0x1005 "head_position" HeadPosition(HeadPosition, HeadPosition),
        /// The battery's state.
        0x1006 "battery" Battery(Battery, Battery),
        /// The radio link's state.
        0x1007 "connection" Connection(Connection, Connection),
        /// The microphone switch.
        0x1008 "mute" Mute(Mute, Mute),
        /// The wearer's answer to an approval.
        0x1009 "approval_answer" ApprovalAnswer(ApprovalAnswer, ApprovalAnswer),
        /// The tools of the device.
        0x100a "tool_list" ToolList(ToolList<'a>, ToolListOwned),
        /// The result of a device tool.
        0x100b "tool_result" ToolResult(ToolResult<'a>, ToolResultOwned),
        /// A piece of a photo.
        0x100c "photo_chunk" PhotoChunk(PhotoChunk<'a>, PhotoChunkOwned),
        /// A typed request.
        0x100d "text_input" TextInput(TextInput<'a>, TextInputOwned),
        /// The answer to an offer of firmware.
        0x100e "firmware_answer" FirmwareAnswer(FirmwareAnswer, FirmwareAnswer),
        /// Progress of a firmware transfer.
        0x100f "firmware_progress" FirmwareProgress(FirmwareProgress, FirmwareProgress),
        /// The outcome of a firmware update.
        0x1010 "firmware_report" FirmwareReport(FirmwareReport<'a>, FirmwareReportOwned),
        /// A wake phrase was heard by the device itself.
        0x1011 "wake" Wake(Wake<'a>, WakeOwned),
        /// Microphone sound.
        0x2001 "audio" Audio(Audio<'a>, AudioOwned),
    }
}

message! {
    /// Acknowledges received frames: the gateway need not keep them any longer.
    pub struct Ack {
        /// Last control sequence received without a gap.
        control: u32,
        /// Highest audio sequence received.
        audio: u32,
        /// Audio sequences up to that one that have not come, in the whole session (RFC 3550, section 6.4.1: the
        /// cumulative number of packets lost). Appended; default: 0.
        audio_lost: u32 = 0,
        /// Microseconds since `audio` came; 0: the device does not measure it. Appended; default: 0.
        audio_held_us: u64 = 0,
    }
}

message! {
    /// One packet of microphone sound; the stamp holds the capture time of its first sample.
    pub struct Audio<'a>, owned AudioOwned {
        /// Codec of the payload.
        codec: Codec,
        /// Sample rate in hertz (of an Opus packet: that of its coder).
        rate_hz: u32,
        /// Length in microseconds, at most 120,000.
        duration_us: u32,
        /// One packet of that codec.
        payload: bytes[AUDIO_PACKET_BYTES_MAX],
    }
}

message! {
    /// The microphone stream pauses until the next Audio; the gateway ends the utterance.
    pub struct AudioEnd {
        /// Sequence of the last Audio, which may still be in transit on QUIC; 0: there was none.
        last_audio_sequence: u32,
        /// Why the microphone stopped.
        reason: MicEnd,
    }
}

message! {
    /// Playback progress; the stamp holds the time at which `played_us` was reached.
    pub struct Played {
        /// Number of the speech, unique in the session.
        speech: u32,
        /// Clause of the last sample played.
        clause: u16,
        /// Position in the speech up to which it was played, in microseconds: concealed packets count, silence while
        /// starved does not.
        played_us: u64,
        /// Playback state.
        state: PlayState,
    }
}

message! {
    /// A button was used.
    pub struct Button {
        /// The button, by what it is for.
        button: ButtonId,
        /// What was done with it.
        action: ButtonAction,
    }
}

message! {
    /// A gesture of the wearer's finger on the glasses.
    pub struct Touch {
        /// What the finger did.
        gesture: Gesture,
    }
}

message! {
    /// The head's position; sent when the posture changes, at most ten times a second.
    pub struct HeadPosition {
        /// Whether the wearer looks straight ahead, up or down.
        posture: Posture,
        /// Hundredths of a degree, up is positive.
        pitch_cdeg: i16,
        /// Hundredths of a degree from where the session began, right is positive.
        yaw_cdeg: i16,
    }
}

message! {
    /// The battery's state; sent on each change of a percent or of charging.
    pub struct Battery {
        /// 0 to 100; 255: not known.
        percent: u8,
        /// True on a charger.
        charging: bool,
    }
}

message! {
    /// The radio; sent on change, at most once a second.
    pub struct Connection {
        /// Kind of the link.
        link: LinkKind,
        /// Signal strength in dBm; 0: not known.
        rssi_dbm: i16,
    }
}

message! {
    /// The microphone switch of the device.
    pub struct Mute {
        /// True: no sound leaves the device.
        muted: bool,
    }
}

message! {
    /// The wearer's answer to an ApprovalRequest.
    pub struct ApprovalAnswer {
        /// Number of the request.
        approval: u32,
        /// Yes or no.
        choice: Choice,
    }
}

message! {
    /// All tools of the device; replaces the previous list.
    pub struct ToolList<'a>, owned ToolListOwned {
        /// Increases with each list.
        revision: u32,
        /// The tools; together they must fit one frame.
        tools: list[ToolOffer<'a>, ToolOfferOwned, TOOLS_MAX],
    }
}

message! {
    /// One tool that the device runs.
    pub struct ToolOffer<'a>, owned ToolOfferOwned {
        /// Name: ASCII letters, digits, `_`, `-`, `.` and `/`; case-sensitive.
        name: text[NAME_BYTES_MAX],
        /// Its purpose, for the model.
        description: text[DESCRIPTION_BYTES_MAX],
        /// JSON schema of the arguments, an object.
        schema: text[SCHEMA_BYTES_MAX],
        /// JSON object: language tag to a list of sentence templates that call the tool; empty: none.
        phrases: text[PHRASES_BYTES_MAX],
        /// Sentence spoken after success, with `{field}` for fields of the result's data; empty: the content is spoken.
        reply_template: text[REPLY_TEMPLATE_BYTES_MAX],
        /// What a call does to the world.
        flags: ToolFlags,
    }
}

message! {
    /// Result of a device tool: exactly one for each ToolCall, also after a ToolCancel.
    pub struct ToolResult<'a>, owned ToolResultOwned {
        /// Number of the call that it answers.
        call: u32,
        /// True after success.
        ok: bool,
        /// Result or error in words.
        content: text[TEXT_BYTES_MAX],
        /// Result as JSON; empty: none.
        data: text[DATA_BYTES_MAX],
        /// Error code, such as `unknown_tool`, `invalid_arguments`, `cancelled` or `failed`; empty after success.
        error: text[CODE_BYTES_MAX],
    }
}

message! {
    /// One piece of a photo, in order.
    pub struct PhotoChunk<'a>, owned PhotoChunkOwned {
        /// Number of the photo in this session.
        photo: u32,
        /// The ToolCall that requested it; 0: the wearer pressed the button.
        call: u32,
        /// Piece, from 0.
        index: u16,
        /// True with the last piece.
        last: bool,
        /// Media type, such as `image/jpeg`.
        mime: text[MIME_BYTES_MAX],
        /// Bytes of the photo's file.
        payload: bytes[PHOTO_CHUNK_BYTES_MAX],
    }
}

message! {
    /// A typed request: counts as addressed to the gateway.
    pub struct TextInput<'a>, owned TextInputOwned {
        /// What was typed.
        text: text[TEXT_BYTES_MAX],
    }
}

message! {
    /// Answer to a FirmwareOffer. A device that withdraws from a transfer later answers again.
    pub struct FirmwareAnswer {
        /// Number of the offer.
        update: u32,
        /// Whether the device takes the image, or why not.
        answer: UpdateAnswer,
        /// Bytes of this very image that the device has stored: the gateway sends from there. 0 unless accepted.
        offset: u32,
    }
}

message! {
    /// Progress of a firmware transfer: the gateway may send the window beyond it.
    pub struct FirmwareProgress {
        /// Number of the offer.
        update: u32,
        /// Bytes of the image that are stored so that a loss of power keeps them.
        offset: u32,
    }
}

message! {
    /// Outcome of the device's last update; sent when the image is verified, and at the beginning of each new session.
    pub struct FirmwareReport<'a>, owned FirmwareReportOwned {
        /// SHA-256 of the image.
        image: array[32],
        /// How the update has ended.
        outcome: UpdateOutcome,
        /// Why it failed or was rolled back.
        failure: UpdateFailure,
        /// Version of the running firmware.
        version: text[NAME_BYTES_MAX],
        /// The same for a person who reads a log.
        message: text[LABEL_BYTES_MAX],
    }
}

message! {
    /// The device has heard a wake phrase; the stamp holds the capture time of the phrase's end.
    pub struct Wake<'a>, owned WakeOwned {
        /// Its words, such as `hey mentra`.
        phrase: text[NAME_BYTES_MAX],
        /// Probability that it was said, in thousandths; 0: not known.
        score_permille: u16,
    }
}
