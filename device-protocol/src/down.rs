//! From the gateway to the device.

use crate::limits::{
    ARGUMENTS_BYTES_MAX, AUDIO_PACKET_BYTES_MAX, BITMAP_BYTES_MAX, DISPLAY_TEXT_BYTES_MAX, FIRMWARE_CHUNK_BYTES_MAX,
    LABEL_BYTES_MAX, MANIFEST_BYTES_MAX, NAME_BYTES_MAX, TEXT_BYTES_MAX,
};
pub use crate::link::{AudioFormat, Challenge, Continued, Goodbye, Heartbeat, PairingCode, Reject, Resumed, Welcome};
#[cfg(feature = "json")]
pub use crate::link::{GoodbyeOwned, RejectOwned, WelcomeOwned};
use crate::values::{Choice, Codec, DisplayAction, Layout, ListeningState, Sound, ToolState, View, WarningCode};

direction! {
    /// Every message from the gateway to the device.
    pub enum Down<'a>, owned DownOwned, down true {
        /// The gateway proves its identity.
        0x8001 "challenge" Challenge(Challenge, Challenge),
        /// Pairing is open.
        0x8002 "pairing_code" PairingCode(PairingCode, PairingCode),
        /// The session is open.
        0x8003 "welcome" Welcome(Welcome<'a>, WelcomeOwned),
        /// The handshake is refused.
        0x8004 "reject" Reject(Reject<'a>, RejectOwned),
        /// Sign of life.
        0x8005 "heartbeat" Heartbeat(Heartbeat, Heartbeat),
        /// Acknowledges received frames.
        0x8006 "ack" Ack(Ack, Ack),
        /// End of the session.
        0x8007 "goodbye" Goodbye(Goodbye<'a>, GoodbyeOwned),
        /// State of the conversation.
        0x9001 "listening" Listening(Listening, Listening),
        /// Recognised text.
        0x9002 "transcript" Transcript(Transcript<'a>, TranscriptOwned),
        /// Content for the display.
        0x9003 "display" Display(Display<'a>, DisplayOwned),
        /// A speech begins.
        0x9004 "speech_start" SpeechStart(SpeechStart<'a>, SpeechStartOwned),
        /// A speech is complete.
        0x9005 "speech_end" SpeechEnd(SpeechEnd, SpeechEnd),
        /// Stop speaking now.
        0x9006 "hush" Hush(Hush, Hush),
        /// Progress of a tool.
        0x9007 "tool_activity" ToolActivity(ToolActivity<'a>, ToolActivityOwned),
        /// A question to the wearer.
        0x9008 "approval_request" ApprovalRequest(ApprovalRequest<'a>, ApprovalRequestOwned),
        /// The question is settled.
        0x9009 "approval_settled" ApprovalSettled(ApprovalSettled, ApprovalSettled),
        /// Run a device tool.
        0x900a "tool_call" ToolCall(ToolCall<'a>, ToolCallOwned),
        /// Stop a device tool.
        0x900b "tool_cancel" ToolCancel(ToolCancel, ToolCancel),
        /// Make a short sound.
        0x900c "chime" Chime(Chime, Chime),
        /// A diagnostic for the device's log.
        0x900d "warning" Warning(Warning<'a>, WarningOwned),
        /// The text of a clause.
        0x900e "clause" Clause(Clause<'a>, ClauseOwned),
        /// New firmware is offered.
        0x900f "firmware_offer" FirmwareOffer(FirmwareOffer<'a>, FirmwareOfferOwned),
        /// A piece of the firmware.
        0x9010 "firmware_chunk" FirmwareChunk(FirmwareChunk<'a>, FirmwareChunkOwned),
        /// The offer is withdrawn.
        0x9011 "firmware_cancel" FirmwareCancel(FirmwareCancel, FirmwareCancel),
        /// A packet of speech.
        0xa001 "speech_chunk" SpeechChunk(SpeechChunk<'a>, SpeechChunkOwned),
    }
}

message! {
    /// Acknowledges received frames: the device need not keep them any longer.
    pub struct Ack {
        /// Last control sequence received without a gap.
        control: u32,
        /// Highest audio sequence received.
        audio: u32,
        /// Bits per second of Opus that the device should send from now on; 0: as it likes. Appended; default: 0.
        audio_bitrate: u32 = 0,
        /// Milliseconds of a packet that it should send, 10, 20, 40 or 60; 0: as in `audio_up` of Welcome. Appended;
        /// default: 0.
        audio_frame_ms: u16 = 0,
        /// Percent of its packets that are expected to be lost (`OPUS_SET_PACKET_LOSS_PERC`). Appended; default: 0.
        audio_loss_percent: u8 = 0,
        /// How many sequences behind `audio` are missing: the device should send these packets again; 0: none. Appended;
        /// default: 0.
        audio_missing: u32 = 0,
        /// Capture time before which the gateway has dealt with all sound: the device need not keep it for a gateway that
        /// is restarted; 0: nothing is said of it. Appended; default: 0.
        sound_until_us: u64 = 0,
        /// Bit i, from the lowest: the sequence `audio + audio_missing + 1 + i` is missing, too, and should be sent again.
        /// Appended; default: 0.
        audio_missing_bits: u64 = 0,
    }
}

message! {
    /// State of the conversation.
    pub struct Listening {
        /// What the indicator of the glasses shows.
        state: ListeningState,
    }
}

message! {
    /// Text recognised so far; a higher revision of the same utterance replaces a lower one. The final one carries the
    /// turn that it begins, if it begins one.
    pub struct Transcript<'a>, owned TranscriptOwned {
        /// Number of the utterance in this session.
        utterance: u32,
        /// Counts up by one within the utterance, from 1.
        revision: u32,
        /// True: the last revision.
        is_final: bool,
        /// True if the gateway considers it addressed to it.
        addressed: bool,
        /// UTF-8.
        text: text[TEXT_BYTES_MAX],
    }
}

message! {
    /// Content for the display. A view shows the content of highest priority, and among equals the latest.
    pub struct Display<'a>, owned DisplayOwned {
        /// What to do.
        action: DisplayAction,
        /// Where to draw: each view has content of its own.
        view: View,
        /// 0 to 255, more is more urgent.
        priority: u8,
        /// Milliseconds to show it; 0: until it is replaced or cleared.
        duration_ms: u32,
        /// Increases within the view; a revision lower than the shown one is stale and ignored.
        revision: u32,
        /// Texts, and how they are laid out.
        content: record[Content<'a>, ContentOwned],
        /// The picture for the layout `bitmap`. Appended; default: none.
        bitmap: option[Bitmap<'a>, BitmapOwned] = None,
        /// Milliseconds from arrival until the event on a card is due: the device shows the time left in place of
        /// `second`; 0: no countdown. Appended; default: 0.
        countdown_ms: u32 = 0,
    }
}

message! {
    /// A picture with one bit per pixel.
    pub struct Bitmap<'a>, owned BitmapOwned {
        /// Pixels per row.
        width_px: u16,
        /// Rows.
        height_px: u16,
        /// Row by row from the top; each row begins a new byte, its first pixel in the highest bit; 1 is lit.
        pixels: bytes[BITMAP_BYTES_MAX],
    }
}

impl Bitmap<'_> {
    /// How many bytes a row of so many pixels takes: one bit each, rounded up to whole bytes.
    pub fn row_bytes(width_px: u16) -> usize {
        usize::from(width_px).div_ceil(8)
    }

    /// Whether a pixel is lit; `None` outside the picture, and past the end of the bytes.
    pub fn pixel(&self, x: u16, y: u16) -> Option<bool> {
        if x >= self.width_px || y >= self.height_px {
            return None;
        }
        let at = usize::from(y) * Self::row_bytes(self.width_px) + usize::from(x / 8);
        self.pixels.get(at).map(|byte| byte >> (7 - x % 8) & 1 == 1)
    }
}

message! {
    /// Texts and their layout. A device that does not know the layout shows `first` and below it `second`.
    pub struct Content<'a>, owned ContentOwned {
        /// How the texts are laid out.
        layout: Layout,
        /// First text, by the layout.
        first: text[DISPLAY_TEXT_BYTES_MAX],
        /// Second text, by the layout.
        second: text[DISPLAY_TEXT_BYTES_MAX],
        /// Progress in thousandths.
        permille: u16,
    }
}

impl<'a> Content<'a> {
    /// No content: sent with [`DisplayAction::Clear`].
    pub const EMPTY: Self = Self::text_wall("");

    const fn new(layout: Layout, first: &'a str, second: &'a str) -> Self {
        Self { layout, first, second, permille: 0 }
    }

    /// One text that fills the view.
    pub const fn text_wall(text: &'a str) -> Self {
        Self::new(Layout::TextWall, text, "")
    }

    /// A title and a text.
    pub const fn reference_card(title: &'a str, text: &'a str) -> Self {
        Self::new(Layout::ReferenceCard, title, text)
    }

    /// Two texts of equal rank.
    pub const fn double_text(top: &'a str, bottom: &'a str) -> Self {
        Self::new(Layout::DoubleText, top, bottom)
    }

    /// Texts left and right.
    pub const fn dashboard(left: &'a str, right: &'a str) -> Self {
        Self::new(Layout::Dashboard, left, right)
    }

    /// For a picture: a description for devices that cannot draw it.
    pub const fn bitmap(text: &'a str) -> Self {
        Self::new(Layout::Bitmap, text, "")
    }

    /// A label and a progress bar of `permille` thousandths.
    pub const fn progress(label: &'a str, permille: u16) -> Self {
        Self { layout: Layout::Progress, first: label, second: "", permille }
    }
}

message! {
    /// Announces a speech: how its chunks are coded, and what is said in it.
    pub struct SpeechStart<'a>, owned SpeechStartOwned {
        /// Number of the speech in this session, from 1.
        speech: u32,
        /// Codec of all its chunks.
        codec: Codec,
        /// Sample rate of all its chunks in hertz.
        rate_hz: u32,
        /// The text, as far as known; empty: unknown.
        text: text[TEXT_BYTES_MAX],
    }
}

message! {
    /// The text of a clause of a speech, for a transcript or captions. It is sent with the `speech_start` for the first
    /// clause, and before the sound of every other one.
    pub struct Clause<'a>, owned ClauseOwned {
        /// Number of the speech, unique in the session.
        speech: u32,
        /// Its clause, from 0.
        clause: u16,
        /// What is said in it.
        text: text[TEXT_BYTES_MAX],
    }
}

message! {
    /// One packet of a speech; the stamp holds its planned playout time.
    pub struct SpeechChunk<'a>, owned SpeechChunkOwned {
        /// Number of the speech, unique in the session.
        speech: u32,
        /// Clause that the packet belongs to, from 0.
        clause: u16,
        /// Microseconds from the beginning of the speech to the first sample of this packet.
        position_us: u64,
        /// Length in microseconds, at most 120,000.
        duration_us: u32,
        /// One packet of the speech's codec.
        payload: bytes[AUDIO_PACKET_BYTES_MAX],
    }
}

message! {
    /// The speech is complete: no chunk follows.
    pub struct SpeechEnd {
        /// Number of the speech, unique in the session.
        speech: u32,
        /// Sequence of its last chunk, which may still be in transit on QUIC; 0: there was none.
        last_audio_sequence: u32,
        /// Length of the whole speech in microseconds.
        duration_us: u64,
    }
}

message! {
    /// Stop a speech at once; later chunks of it are dropped.
    pub struct Hush {
        /// The speech; 0: all.
        speech: u32,
        /// Milliseconds of the fade to silence.
        fade_ms: u16,
    }
}

message! {
    /// Progress of a tool, for a hint on the display.
    pub struct ToolActivity<'a>, owned ToolActivityOwned {
        /// Number of the call in this session; the same as in its ToolCall.
        call: u32,
        /// Text for the wearer.
        label: text[LABEL_BYTES_MAX],
        /// Whether it runs, and how it has ended.
        state: ToolState,
    }
}

message! {
    /// A question that the wearer answers with yes or no, by button, touch or voice.
    pub struct ApprovalRequest<'a>, owned ApprovalRequestOwned {
        /// Title, one line.
        approval: u32,
        /// One line.
        title: text[LABEL_BYTES_MAX],
        /// The action to approve.
        message: text[DISPLAY_TEXT_BYTES_MAX],
        /// Milliseconds until it expires, which counts as no.
        expires_ms: u32,
    }
}

message! {
    /// The question is settled, by this device, by voice, by another device or by timeout: remove it from the display.
    pub struct ApprovalSettled {
        /// Number of the question, as in [`ApprovalRequest`].
        approval: u32,
        /// How it was settled.
        choice: Choice,
    }
}

message! {
    /// Run a device tool and answer with one ToolResult.
    pub struct ToolCall<'a>, owned ToolCallOwned {
        /// Number of the call in this session.
        call: u32,
        /// Name as offered.
        name: text[NAME_BYTES_MAX],
        /// JSON object that fits the schema.
        arguments: text[ARGUMENTS_BYTES_MAX],
        /// Milliseconds from arrival after which the gateway no longer waits.
        deadline_ms: u32,
    }
}

message! {
    /// Stop a device tool if that is safe; its ToolResult is sent in any case.
    pub struct ToolCancel {
        /// Number of the call, as in [`ToolCall`].
        call: u32,
    }
}

message! {
    /// A diagnostic for the device's log and its firmware developer: something was not accepted as sent. The session
    /// goes on.
    pub struct Warning<'a>, owned WarningOwned {
        /// Kind of warning.
        code: WarningCode,
        /// Name of the tool concerned; empty: none.
        name: text[NAME_BYTES_MAX],
        /// Reason in words.
        message: text[LABEL_BYTES_MAX],
    }
}

message! {
    /// Make a short sound.
    pub struct Chime {
        /// The sound to play.
        sound: Sound,
    }
}

message! {
    /// New firmware for this model. Sent only to a device whose `image_bytes_max` is not 0.
    pub struct FirmwareOffer<'a>, owned FirmwareOfferOwned {
        /// Number of the offer in this session, from 1.
        update: u32,
        /// The manifest ([`Release`](crate::firmware::Release)), as it is signed.
        manifest: bytes[MANIFEST_BYTES_MAX],
        /// Ed25519 signature of the maker over the manifest.
        signature: array[64],
        /// Bytes of the image in each chunk but the last, which may have fewer.
        chunk_bytes: u16,
    }
}

message! {
    /// A piece of the image, in order.
    pub struct FirmwareChunk<'a>, owned FirmwareChunkOwned {
        /// Number of the offer.
        update: u32,
        /// Place of its first byte in the image.
        offset: u32,
        /// Bytes of the image from there on.
        payload: bytes[FIRMWARE_CHUNK_BYTES_MAX],
    }
}

message! {
    /// The offer is withdrawn. The device keeps what it has stored: the image may be offered again.
    pub struct FirmwareCancel {
        /// Number of the offer.
        update: u32,
    }
}
