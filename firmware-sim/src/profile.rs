//! Properties of the glasses: display, speaker, codecs and names.

use device_protocol::up::{Capabilities, Screen};
use device_protocol::{Buttons, ChannelBinding, Codecs, DisplayKind, Sensors};

use crate::{picture, tools};

/// The properties sent in Hello.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Serial number; not trusted.
    pub device_id: String,
    /// Maker and model.
    pub model: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Revision of the hardware.
    pub hardware: u16,
    /// Bytes of the largest image that can be stored; 0: the firmware is not updated.
    pub image_bytes_max: u32,
    /// Language of the wearer (RFC 5646).
    pub language: String,
    /// Codecs offered, both ways.
    pub codecs: Codecs,
    /// Microseconds and bytes of LC3 frames.
    pub lc3: (u16, u16),
    /// Rate of the microphone in hertz; 0: none.
    pub microphone_hz: u32,
    /// Rate of the speaker in hertz; 0: none.
    pub speaker_hz: u32,
    /// Columns and rows of the display as sent to the gateway, 0: not sent; `None`: no display.
    pub display: Option<(u16, u16)>,
    /// Whether speech is shown while it is spoken.
    pub captions: bool,
    /// True if the microphone does not pick up the speaker.
    pub echo_cancelled: bool,
    /// Whether the glasses hear wake phrases by themselves.
    pub hears_wake: bool,
    /// Whether device tools are offered.
    pub offer_tools: bool,
    /// Bytes of the largest frame that these glasses can receive; 0: any.
    pub frame_bytes_max: u32,
    /// Requested milliseconds between two heartbeats; 0: no request.
    pub heartbeat_ms: u32,
    /// The channel binding of the handshake.
    pub binding: ChannelBinding,
    /// Content of the camera's photos: media type and file. `None`: a drawing.
    pub sight: Option<(String, Vec<u8>)>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            device_id: "simulator".to_owned(),
            model: "Lorgnette simulator".to_owned(),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
            hardware: 0,
            image_bytes_max: 0,
            language: "en-US".to_owned(),
            codecs: Codecs::OPUS,
            lc3: (0, 0),
            microphone_hz: 16_000,
            speaker_hz: 24_000,
            display: Some((40, 6)),
            captions: false,
            echo_cancelled: false,
            hears_wake: false,
            offer_tools: true,
            frame_bytes_max: 0,
            heartbeat_ms: 0,
            binding: ChannelBinding::Exporter,
            sight: None,
        }
    }
}

impl Profile {
    pub(crate) fn capabilities(&self) -> Capabilities {
        let (columns, rows) = self.display.unwrap_or((0, 0));
        Capabilities {
            codecs_up: self.codecs,
            codecs_down: self.codecs,
            audio_up_hz: self.microphone_hz,
            audio_down_hz: self.speaker_hz,
            display: Screen {
                // A character cell is drawn as two by four dots, so there are pixels.
                kind: if self.display.is_some() { DisplayKind::Pixels } else { DisplayKind::None },
                width_px: columns * picture::CELL_WIDTH_PX,
                height_px: rows * picture::CELL_HEIGHT_PX,
                columns,
                rows,
                colour_bits: u8::from(self.display.is_some()),
                captions: self.captions,
            },
            speakers: u8::from(self.speaker_hz > 0),
            buttons: Buttons::MAIN | Buttons::VOLUME_UP | Buttons::VOLUME_DOWN | Buttons::MUTE,
            sensors: Sensors::BATTERY
                | Sensors::CONNECTION
                | Sensors::CAMERA
                | if self.hears_wake { Sensors::WAKE } else { Sensors::EMPTY },
            echo_cancelled: self.echo_cancelled,
            tools: if self.offer_tools { tools::COUNT } else { 0 },
            frame_bytes_max: self.frame_bytes_max,
            heartbeat_ms: self.heartbeat_ms,
            image_bytes_max: self.image_bytes_max,
            hardware: self.hardware,
            lc3_frame_us: self.lc3.0,
            lc3_frame_bytes: self.lc3.1,
        }
    }
}
