//! What a frame says, for a person: the work of `lorgnette wire decode`.

use alloc::format;
use alloc::string::{String, ToString};

use crate::limits::HEADER_BYTES;
use crate::{Class, Decoded, Down, Frame, Header, Message, Up, decode_down, decode_up, peek};

use super::{ToJson, encode_pretty};

/// Describes the bytes of one envelope: header, kind, direction, and the message as JSON or an exact error.
pub fn describe(bytes: &[u8]) -> String {
    let header = match peek(bytes) {
        Ok(Some(header)) => header,
        Ok(None) => {
            return format!("error: {} bytes are no envelope, its header alone has {HEADER_BYTES}\n", bytes.len());
        }
        Err(error) => return format!("error: {error}\n"),
    };
    let body = if header.is_down() { decode_down(bytes).map(show) } else { decode_up(bytes).map(show) };
    format!("{}{}\n", head(&header), body.unwrap_or_else(|error| format!("error: {error}")))
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
