//! What the wire form promises: exact errors, skipped kinds, maximums, lists.

use device_protocol::*;

fn stamp(sequence: u32) -> Stamp {
    Stamp {
        sequence,
        turn: 7,
        time_us: 1_234_567,
    }
}

fn bytes_of<'a, M: Message<'a>>(message: M) -> Vec<u8> {
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let length = encode(&Frame::new(stamp(3), message), &mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

fn offer(name: &str) -> up::ToolOffer<'_> {
    up::ToolOffer {
        name,
        description: "Sets the brightness.",
        schema: "{}",
        phrases: "",
        reply_template: "",
        flags: ToolFlags::IDEMPOTENT,
    }
}

#[test]
fn audio_has_the_bytes_of_the_document() {
    let audio = up::Audio {
        codec: Codec::Opus,
        rate_hz: 16_000,
        duration_us: 20_000,
        payload: &[0xaa, 0xbb],
    };
    let bytes = bytes_of(Up::Audio(audio));
    // Version, flags, kind, length; then sequence, turn, time, codec, rate, duration, payload.
    let expected = [
        1, 0, 0x01, 0x20, 17, 0, 0, 0, // envelope
        3, 7, 252, 0x87, 0xd6, 0x12, 0x00, // stamp
        1, 251, 0x80, 0x3e, 251, 0x20, 0x4e, 2, 0xaa, 0xbb,
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn a_list_is_read_where_it_lies() {
    let tools = [offer("brightness"), offer("volume")];
    let message = Up::ToolList(up::ToolList {
        revision: 1,
        tools: List::new(&tools),
    });
    let bytes = bytes_of(message);
    let Ok(Decoded::Frame(frame)) = decode_up(&bytes) else {
        panic!("does not decode")
    };
    assert_eq!(frame.message, message);
    let Up::ToolList(list) = frame.message else {
        panic!("another kind")
    };
    assert_eq!(list.tools.len(), 2);
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["brightness", "volume"]);
    let inside = bytes.as_ptr_range().contains(&names[0].as_ptr());
    assert!(inside, "the name was copied");
}
