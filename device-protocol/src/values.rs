//! Enumerations and sets inside messages. All may grow: unknown numbers are kept as `Other`, unknown bits are kept.

open_enum! {
    /// Coding of sound. All sound is mono.
    pub enum Codec: u8 {
        /// Signed 16-bit samples, little endian.
        Pcm16 = 0 => "pcm16",
        /// One Opus packet (RFC 6716), without any container.
        Opus = 1 => "opus",
        /// LC3 frames (Bluetooth SIG, version 1.0) of one agreed length and size, one behind the other.
        Lc3 = 2 => "lc3",
    }
}

bit_set! {
    /// Codecs that one side can receive or send: the bit is the number of the [`Codec`].
    pub struct Codecs: u16 {
        /// Signed 16-bit samples.
        PCM16 = 0 => "pcm16",
        /// Opus packets.
        OPUS = 1 => "opus",
        /// LC3 frames.
        LC3 = 2 => "lc3",
    }
}

impl Codecs {
    /// True if this codec is in the set.
    pub const fn has(self, codec: Codec) -> bool {
        self.has_bit(codec.number() as u32)
    }
}

open_enum! {
    /// What the display can draw, as the device states in its capabilities.
    pub enum DisplayKind: u8 {
        /// No display.
        None = 0 => "none",
        /// Lines of text in a fixed grid of characters.
        Text = 1 => "text",
        /// Pixels; the device lays out text itself.
        Pixels = 2 => "pixels",
    }
}

open_enum! {
    /// A button of the glasses.
    pub enum ButtonId: u8 {
        /// The only or the largest one.
        Main = 0 => "main",
        /// Louder.
        VolumeUp = 1 => "volume_up",
        /// Softer.
        VolumeDown = 2 => "volume_down",
        /// Takes photos.
        Camera = 3 => "camera",
        /// On and off.
        Power = 4 => "power",
        /// Switches the microphone.
        Mute = 5 => "mute",
    }
}

bit_set! {
    /// Buttons of the glasses: the bit is the number of the [`ButtonId`].
    pub struct Buttons: u32 {
        /// The only or the largest one.
        MAIN = 0 => "main",
        /// Louder.
        VOLUME_UP = 1 => "volume_up",
        /// Softer.
        VOLUME_DOWN = 2 => "volume_down",
        /// Takes photos.
        CAMERA = 3 => "camera",
        /// On and off.
        POWER = 4 => "power",
        /// Switches the microphone.
        MUTE = 5 => "mute",
    }
}

bit_set! {
    /// What the glasses can sense.
    pub struct Sensors: u32 {
        /// Sends HeadPosition.
        HEAD_POSITION = 0 => "head_position",
        /// Sends Touch.
        TOUCH = 1 => "touch",
        /// Sends Battery.
        BATTERY = 2 => "battery",
        /// Sends Connection.
        CONNECTION = 3 => "connection",
        /// Sends PhotoChunk.
        CAMERA = 4 => "camera",
        /// Detects whether it is worn.
        WEAR = 5 => "wear",
        /// Measures the light around.
        LIGHT = 6 => "light",
        /// Hears wake phrases by itself, and sends Wake.
        WAKE = 7 => "wake",
    }
}

open_enum! {
    /// Action on a button.
    pub enum ButtonAction: u8 {
        /// Short press, already released.
        Press = 0 => "press",
        /// Two short presses.
        DoublePress = 1 => "double_press",
        /// Held for at least 700 ms.
        LongPress = 2 => "long_press",
        /// Pressed (if the device reports both edges).
        Down = 3 => "down",
        /// Released.
        Up = 4 => "up",
    }
}

open_enum! {
    /// A gesture on the temple of the glasses.
    pub enum Gesture: u8 {
        /// One tap.
        Tap = 0 => "tap",
        /// Two taps.
        DoubleTap = 1 => "double_tap",
        /// Finger held.
        LongTap = 2 => "long_tap",
        /// Swipe towards the front.
        SwipeForward = 3 => "swipe_forward",
        /// Swipe towards the ear.
        SwipeBack = 4 => "swipe_back",
        /// Swipe upwards.
        SwipeUp = 5 => "swipe_up",
        /// Swipe downwards.
        SwipeDown = 6 => "swipe_down",
    }
}

open_enum! {
    /// How the wearer holds the head.
    pub enum Posture: u8 {
        /// Straight ahead.
        Level = 0 => "level",
        /// Looks up: many glasses then show the dashboard.
        Up = 1 => "up",
        /// Looks down.
        Down = 2 => "down",
    }
}

open_enum! {
    /// Kind of the network link.
    pub enum LinkKind: u8 {
        /// The device does not tell.
        Unknown = 0 => "unknown",
        /// Wi-Fi of the glasses.
        WiFi = 1 => "wifi",
        /// Bluetooth to a phone.
        Bluetooth = 2 => "bluetooth",
        /// Mobile network.
        Cellular = 3 => "cellular",
        /// Cable: development boards and simulators.
        Wired = 4 => "wired",
    }
}

open_enum! {
    /// Playback state of one speech.
    pub enum PlayState: u8 {
        /// The sound of the speech is heard.
        Playing = 0 => "playing",
        /// The last sample of the ended speech was played.
        Finished = 1 => "finished",
        /// Stopped before its end: by a hush, a mute or a full buffer.
        Stopped = 2 => "stopped",
        /// Waits for late chunks.
        Starved = 3 => "starved",
    }
}

open_enum! {
    /// Why the microphone stream ended.
    pub enum MicEnd: u8 {
        /// The wearer switched it off, or released the talk button.
        Released = 0 => "released",
        /// Switched off: no sound leaves the device.
        Muted = 1 => "muted",
        /// The device saves power; it resumes without a request.
        PowerSave = 2 => "power_save",
        /// The microphone or the coder failed.
        Failed = 3 => "failed",
    }
}

open_enum! {
    /// The wearer's answer to an approval.
    pub enum Choice: u8 {
        /// The wearer refuses.
        No = 0 => "no",
        /// Yes, for this call only.
        Yes = 1 => "yes",
        /// Dismissed without an answer; counts as no.
        Dismissed = 2 => "dismissed",
        /// Expired; counts as no.
        Expired = 3 => "expired",
    }
}

bit_set! {
    /// Effects of a device tool.
    pub struct ToolFlags: u16 {
        /// Changes nothing.
        READ_ONLY = 0 => "read_only",
        /// Destroys or publishes something: the gateway asks for approval first.
        DESTRUCTIVE = 1 => "destructive",
        /// A second identical call has no further effect.
        IDEMPOTENT = 2 => "idempotent",
        /// Takes long: the gateway announces the wait.
        SLOW = 3 => "slow",
    }
}

open_enum! {
    /// The gateway's state in the conversation.
    pub enum ListeningState: u8 {
        /// Waits for the wake word.
        Idle = 0 => "idle",
        /// Considers what is said next as addressed to it: after the wake word, and for a while after an answer.
        Wake = 1 => "wake",
        /// Detects speech.
        Listening = 2 => "listening",
        /// Works on the answer.
        Thinking = 3 => "thinking",
        /// Speaks the answer.
        Speaking = 4 => "speaking",
        /// Muted on purpose.
        Muted = 5 => "muted",
    }
}

open_enum! {
    /// What to do with a view.
    pub enum DisplayAction: u8 {
        /// Show; the previous content returns when this ends.
        Show = 0 => "show",
        /// Replace the previous content permanently.
        Replace = 1 => "replace",
        /// Empty the view; the content is ignored.
        Clear = 2 => "clear",
    }
}

open_enum! {
    /// One of the two views.
    pub enum View: u8 {
        /// Visible straight ahead.
        Main = 0 => "main",
        /// Visible on looking up.
        Dashboard = 1 => "dashboard",
    }
}

open_enum! {
    /// Layout of the texts of a content.
    pub enum Layout: u8 {
        /// `first` fills the view.
        TextWall = 0 => "text_wall",
        /// `first` is the title, `second` the text below.
        ReferenceCard = 1 => "reference_card",
        /// `first` above, `second` below, of equal rank.
        DoubleText = 2 => "double_text",
        /// `first` left, `second` right.
        Dashboard = 3 => "dashboard",
        /// `first` is the label, `permille` the progress.
        Progress = 4 => "progress",
        /// The picture of the display message; `first` describes it.
        Bitmap = 5 => "bitmap",
    }
}

open_enum! {
    /// State of a tool call.
    pub enum ToolState: u8 {
        /// Running.
        Started = 0 => "started",
        /// Done.
        Finished = 1 => "finished",
        /// Ended with an error.
        Failed = 2 => "failed",
        /// Stopped before its end.
        Cancelled = 3 => "cancelled",
    }
}

open_enum! {
    /// A short sound stored on the device.
    pub enum Sound: u8 {
        /// The wake word was recognised.
        Wake = 0 => "wake",
        /// The request was understood, or is done without a word.
        Done = 1 => "done",
        /// The request failed.
        Error = 2 => "error",
        /// A timer or reminder is due.
        Alarm = 3 => "alarm",
        /// Something needs the wearer's attention.
        Attention = 4 => "attention",
        /// The answer takes a while.
        Working = 5 => "working",
    }
}

open_enum! {
    /// Method of pairing an unknown device.
    pub enum PairingMethod: u8 {
        /// The glasses show the code that they computed, the operator types it at the gateway.
        Code = 0 => "code",
        /// No display: the operator opens pairing for two minutes and confirms the fingerprint of the device key.
        Fingerprint = 1 => "fingerprint",
    }
}

open_enum! {
    /// Binds the proofs of a handshake to its TLS connection (section 6). Without TLS both variants are 32 zero bytes.
    pub enum ChannelBinding: u8 {
        /// The TLS exporter: 32 bytes that only the two ends of this connection know.
        Exporter = 0 => "exporter",
        /// SHA-256 of the gateway's TLS certificate, for a TLS library without an exporter.
        Certificate = 1 => "certificate",
    }
}

open_enum! {
    /// What the gateway did not accept as sent.
    pub enum WarningCode: u16 {
        /// No code of this version.
        Unspecified = 0 => "unspecified",
        /// A device tool is not in the accepted list and will not be called.
        ToolLeftOut = 1 => "tool_left_out",
        /// A device tool is accepted except for a part of it.
        ToolChanged = 2 => "tool_changed",
        /// Sound was dropped.
        SoundDropped = 3 => "sound_dropped",
        /// A wake phrase that the device hears is none of the gateway's, and will never be taken.
        WakePhraseUnknown = 4 => "wake_phrase_unknown",
    }
}

open_enum! {
    /// Answer to an offer of firmware.
    pub enum UpdateAnswer: u8 {
        /// The device stores what it is sent.
        Accepted = 0 => "accepted",
        /// Not wanted; no reason of this version.
        NotWanted = 1 => "not_wanted",
        /// Not now: the wearer needs the device.
        Busy = 2 => "busy",
        /// Not now: the battery is low.
        Battery = 3 => "battery",
        /// The image is larger than the device can store.
        TooLarge = 4 => "too_large",
        /// The image is for another model or another revision of the hardware.
        OtherModel = 5 => "other_model",
        /// The image is not newer than what runs, or needs a newer version before it.
        Version = 6 => "version",
        /// The manifest cannot be read.
        BadManifest = 7 => "bad_manifest",
        /// The manifest is not signed by the maker.
        BadSignature = 8 => "bad_signature",
        /// The image was tried before and did not work.
        KnownBad = 9 => "known_bad",
        /// A chunk did not follow the one before it, or was outside of the window.
        BadChunk = 10 => "bad_chunk",
        /// The flash cannot be written.
        Storage = 11 => "storage",
    }
}

open_enum! {
    /// Outcome of a firmware update.
    pub enum UpdateOutcome: u8 {
        /// The whole image is stored and verified; the device starts it when it suits the wearer.
        Verified = 0 => "verified",
        /// The image runs.
        Applied = 1 => "applied",
        /// The image is not used.
        Failed = 2 => "failed",
        /// The image did not work, and the version before it runs again.
        RolledBack = 3 => "rolled_back",
    }
}

open_enum! {
    /// Why a firmware update failed.
    pub enum UpdateFailure: u8 {
        /// It did not fail.
        None = 0 => "none",
        /// The SHA-256 of the whole image is wrong.
        Hash = 1 => "hash",
        /// The flash failed.
        Storage = 2 => "storage",
        /// The image did not start.
        Boot = 3 => "boot",
        /// The image started and did not pass its own test.
        SelfTest = 4 => "self_test",
    }
}

open_enum! {
    /// Why a handshake was refused.
    pub enum RejectCode: u16 {
        /// No reason of this version.
        Unspecified = 0 => "unspecified",
        /// The envelope version is unknown.
        UnsupportedVersion = 1 => "unsupported_version",
        /// A frame could not be decoded.
        Malformed = 2 => "malformed",
        /// A frame that is not allowed in this state.
        UnexpectedMessage = 3 => "unexpected_message",
        /// The signature or the revealed nonce is wrong.
        BadProof = 4 => "bad_proof",
        /// The device is not paired, and nobody confirmed it in time.
        NotPaired = 5 => "not_paired",
        /// Pairing was refused, or ran out of tries; or no open invitation has this code.
        PairingFailed = 6 => "pairing_failed",
        /// The operator revoked the device: do not try again.
        Revoked = 7 => "revoked",
        /// No codec or rate in common.
        NoCommonFormat = 8 => "no_common_format",
        /// The gateway's limit of sessions is reached: try again later. Or the device has connected again since.
        Busy = 9 => "busy",
        /// Too many attempts: try again later.
        RateLimited = 10 => "rate_limited",
        /// The handshake took too long.
        Timeout = 11 => "timeout",
        /// The gateway shuts down: try again later.
        ShuttingDown = 12 => "shutting_down",
        /// The gateway failed: try again later.
        Internal = 13 => "internal",
    }
}

open_enum! {
    /// Why a session ends. After `ShuttingDown`, and in some cases after `Replaced`, the token stays good; after any other reason
    /// nothing is replayed.
    pub enum GoodbyeReason: u16 {
        /// No reason of this version.
        Unspecified = 0 => "unspecified",
        /// The wearer took the glasses off or switched them off.
        PowerOff = 1 => "power_off",
        /// The gateway shuts down.
        ShuttingDown = 2 => "shutting_down",
        /// A newer connection of the same device took over.
        Replaced = 3 => "replaced",
        /// The operator revoked the device: do not try again.
        Revoked = 4 => "revoked",
        /// A frame could not be decoded.
        Malformed = 5 => "malformed",
        /// A sequence was skipped, or ran out.
        BadSequence = 6 => "bad_sequence",
        /// A frame that is not allowed in this state.
        UnexpectedMessage = 7 => "unexpected_message",
        /// Too many frames or bytes in too short a time.
        Flooding = 8 => "flooding",
        /// The peer accepts its frames too slowly.
        TooSlow = 9 => "too_slow",
        /// No heartbeat.
        Silent = 10 => "silent",
        /// Sound in a codec or rate that was not agreed.
        BadFormat = 11 => "bad_format",
        /// This side failed.
        Internal = 12 => "internal",
    }
}

/// Close code (WebSocket status, QUIC application error code) in answer to a Goodbye. QUIC uses 0.
pub const CLOSE_NORMAL: u16 = 1000;

/// Higher numbers share one close code, so that the two ranges do not overlap.
const CLOSE_NUMBER_MAX: u16 = 99;

impl RejectCode {
    /// Close code after a Reject: 4100 plus the number.
    pub const fn close_code(self) -> u16 {
        close_code(4100, self.number())
    }
}

impl GoodbyeReason {
    /// Close code after a Goodbye: 4200 plus the number.
    pub const fn close_code(self) -> u16 {
        close_code(4200, self.number())
    }
}

const fn close_code(base: u16, number: u16) -> u16 {
    if number > CLOSE_NUMBER_MAX { base + CLOSE_NUMBER_MAX } else { base + number }
}
