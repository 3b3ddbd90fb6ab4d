//! Human-readable descriptions of frames, for `lorgnette wire decode`.

use alloc::format;
use alloc::string::{String, ToString};

use crate::limits::HEADER_BYTES;
use crate::{Class, Decoded, Down, Frame, Header, Message, Up, decode_down, decode_up, peek};

use super::{ToJson, encode_pretty};

/// Description of one envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Header, kind and direction, one per line; empty if there is no header.
    pub head: String,
    /// The message as JSON, or the exact error.
    pub body: Result<String, String>,
}

/// Describes the bytes of one envelope.
pub fn describe(bytes: &[u8]) -> Description {
    let none = |error| Description { head: String::new(), body: Err(error) };
    let header = match peek(bytes) {
        Ok(Some(header)) => header,
        Ok(None) => {
            return none(format!("no envelope: {} of the {HEADER_BYTES} bytes of its header", bytes.len()));
        }
        Err(error) => return none(error.to_string()),
    };
    let body = if header.is_down() { decode_down(bytes).map(show) } else { decode_up(bytes).map(show) };
    Description { head: head(&header), body: body.map_err(|error| error.to_string()) }
}

fn head(header: &Header) -> String {
    let Header { flags, kind, length } = *header;
    let (direction, name) = if header.is_down() {
        ("gateway to device", Down::kind_name(kind))
    } else {
        ("device to gateway", Up::kind_name(kind))
    };
    let class = match header.class() {
        Class::Link => "link",
        Class::Control => "control",
        Class::Audio => "audio",
        Class::Reserved => "reserved",
    };
    format!(
        "version   {}\nflags     {flags:#04x}\nkind      {kind:#06x} {}\ndirection {direction}\nclass     {class}\n\
         length    {length} (frame of {} bytes)\n",
        crate::VERSION,
        name.unwrap_or("(unknown)"),
        header.frame_bytes(),
    )
}

fn show<'a, M: Message<'a> + ToJson>(decoded: Decoded<M>) -> String {
    match decoded {
        Decoded::Frame(frame) => pretty(&frame),
        Decoded::Skipped { stamp, .. } => format!(
            "skipped: a kind of a later version; sequence {}, turn {}, time_us {}",
            stamp.sequence, stamp.turn, stamp.time_us
        ),
    }
}

fn pretty<'a, M: Message<'a> + ToJson>(frame: &Frame<M>) -> String {
    encode_pretty(frame).unwrap_or_else(|error| error.to_string())
}
