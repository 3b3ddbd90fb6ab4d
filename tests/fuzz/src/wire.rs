//! Frames of glasses, in both directions and both forms.

use device_protocol::json::{self, ToJson, describe};
use device_protocol::{Decoded, Frame, Message, decode_down, decode_up, encode, first_frame, limits};

/// What decodes is the same after encoding in both forms.
pub fn peer_bytes(bytes: &[u8]) {
    let _ = describe(bytes);
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let _ = json::decode_up(text);
    let _ = json::decode_down(text);
    // As a stream, one envelope after another.
    let mut rest = bytes;
    while let Ok(Some(frame)) = first_frame(rest) {
        one(frame);
        rest = &rest[frame.len()..];
    }
    one(rest);
}

fn one(bytes: &[u8]) {
    if let Ok(Decoded::Frame(frame)) = decode_up(bytes) {
        let encoded = binary(&frame);
        assert_eq!(decode_up(&encoded), Ok(Decoded::Frame(frame)));
        if let Ok(Decoded::Frame(owned)) = json::decode_up(&text(&frame)) {
            assert_eq!(owned.to_borrowed(), frame);
        } else {
            panic!("the JSON form does not decode");
        }
    }
    if let Ok(Decoded::Frame(frame)) = decode_down(bytes) {
        let encoded = binary(&frame);
        assert_eq!(decode_down(&encoded), Ok(Decoded::Frame(frame)));
        if let Ok(Decoded::Frame(owned)) = json::decode_down(&text(&frame)) {
            assert_eq!(owned.to_borrowed(), frame);
        } else {
            panic!("the JSON form does not decode");
        }
    }
}

fn binary<'a, M: Message<'a>>(frame: &Frame<M>) -> Vec<u8> {
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let length = encode(frame, &mut buffer).expect("what decoded can be encoded");
    buffer.truncate(length);
    buffer
}

fn text<'a, M: Message<'a> + ToJson>(frame: &Frame<M>) -> String {
    json::encode(frame).expect("a frame that decoded has a JSON form")
}
