//! Guarantees of the wire form: exact bytes, exact errors, skipped kinds, maximums, no panics.

use device_protocol::limits::{
    AUDIO_FRAME_BYTES_MAX, AUDIO_PACKET_BYTES_MAX, BODY_BYTES_MAX, FRAME_BYTES_MAX, SCHEMA_BYTES_MAX, TEXT_BYTES_MAX,
    TOOLS_MAX,
};
use device_protocol::*;
use proptest::prelude::*;

fn stamp(sequence: u32) -> Stamp {
    Stamp { sequence, turn: 7, time_us: 1_234_567 }
}

fn try_bytes<'a, M: Message<'a>>(message: M) -> Result<Vec<u8>, Error> {
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    let length = encode(&Frame::new(stamp(3), message), &mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

fn bytes_of<'a, M: Message<'a>>(message: M) -> Vec<u8> {
    try_bytes(message).unwrap()
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

fn transcript(text: &str) -> Down<'_> {
    Down::Transcript(down::Transcript { utterance: 1, revision: 2, is_final: true, addressed: false, text })
}

/// Kind, length and body as given.
fn envelope(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bytes.extend(kind.to_le_bytes());
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn audio_has_the_bytes_of_the_document() {
    let audio = up::Audio { codec: Codec::Opus, rate_hz: 16_000, duration_us: 20_000, payload: &[0xaa, 0xbb] };
    let expected = [
        1, 0, 0x01, 0x20, 17, 0, 0, 0, // version, flags, kind, length
        3, 7, 252, 0x87, 0xd6, 0x12, 0x00, // sequence, turn, time
        1, 251, 0x80, 0x3e, 251, 0x20, 0x4e, 2, 0xaa, 0xbb, // codec, rate, duration, payload
    ];
    assert_eq!(bytes_of(Up::Audio(audio)), expected);
}

#[test]
fn a_list_is_read_where_it_lies() {
    let tools = [offer("brightness"), offer("volume")];
    let message = Up::ToolList(up::ToolList { revision: 1, tools: List::new(&tools) });
    let bytes = bytes_of(message);
    let Ok(Decoded::Frame(frame)) = decode_up(&bytes) else { panic!("does not decode") };
    assert_eq!(frame.message, message);
    let Up::ToolList(list) = frame.message else { panic!("another kind") };
    assert_eq!(list.tools.len(), 2);
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["brightness", "volume"]);
    assert!(bytes.as_ptr_range().contains(&names[0].as_ptr()), "the name was copied");
}

#[test]
fn one_tool_too_many_is_refused_both_ways() {
    let tools = [offer("a"); TOOLS_MAX + 1];
    let list = |tools| Up::ToolList(up::ToolList { revision: 1, tools });
    let error = try_bytes(list(List::new(&tools))).unwrap_err();
    assert!(matches!(error, Error::TooLong { field: "tools", length: 33, max: 32, .. }), "{error}");
    let bytes = bytes_of(list(List::new(&tools[..TOOLS_MAX])));
    assert!(decode_up(&bytes).is_ok());
    // One more item of the same bytes after the last.
    let item = bytes.len() - (bytes.len() - 8 - 7 - 1 - 3) / TOOLS_MAX;
    let mut body = bytes[8..].to_vec();
    body.extend(&bytes[item..]);
    let listed = u16::from_le_bytes([body[9], body[10]]) + (bytes.len() - item) as u16;
    body[9..11].copy_from_slice(&listed.to_le_bytes());
    let error = decode_up(&envelope(0x100a, &body)).unwrap_err();
    assert_eq!(error, Error::TooLong { field: "tools", offset: 16, length: 33, max: 32 });
}

#[test]
fn maximums_hold_both_ways() {
    let longest = "x".repeat(TEXT_BYTES_MAX);
    let bytes = bytes_of(transcript(&longest));
    assert!(matches!(decode_down(&bytes), Ok(Decoded::Frame(_))));
    let over = "x".repeat(TEXT_BYTES_MAX + 1);
    let expected = Error::TooLong { field: "text", offset: 19, length: TEXT_BYTES_MAX + 1, max: TEXT_BYTES_MAX };
    assert_eq!(try_bytes(transcript(&over)), Err(expected));
    let mut body = bytes[8..].to_vec();
    body[12..14].copy_from_slice(&(TEXT_BYTES_MAX as u16 + 1).to_le_bytes());
    body.push(b'x');
    assert_eq!(decode_down(&envelope(0x9002, &body)), Err(expected));
}

#[test]
fn the_longest_audio_fits_its_maximum() {
    let payload = [7; AUDIO_PACKET_BYTES_MAX];
    let message = down::SpeechChunk {
        speech: u32::MAX,
        clause: u16::MAX,
        position_us: u64::MAX,
        duration_us: u32::MAX,
        payload: &payload,
    };
    let stamp = Stamp { sequence: u32::MAX, turn: u32::MAX, time_us: u64::MAX };
    let mut buffer = [0; AUDIO_FRAME_BYTES_MAX];
    assert!(encode(&Frame::new(stamp, Down::from(message)), &mut buffer).is_ok());
}

#[test]
fn a_frame_beyond_the_largest_is_refused() {
    let schema = " ".repeat(SCHEMA_BYTES_MAX);
    let tools = [up::ToolOffer { schema: &schema, ..offer("a") }; TOOLS_MAX];
    let error = try_bytes(Up::ToolList(up::ToolList { revision: 1, tools: List::new(&tools) })).unwrap_err();
    assert!(matches!(error, Error::FrameTooLong { max: BODY_BYTES_MAX, .. }), "{error}");
    let header = [1, 0, 1, 0x10, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(peek(&header), Err(Error::FrameTooLong { length: 0xffff_ffff, max: BODY_BYTES_MAX }));
}

#[test]
fn a_small_buffer_is_told_what_is_needed() {
    let frame = Frame::new(stamp(3), transcript("hello"));
    let needed = bytes_of(frame.message).len();
    let mut buffer = [0; 64];
    for size in 0..needed {
        assert_eq!(encode(&frame, &mut buffer[..size]), Err(Error::BufferTooSmall { size, needed }));
    }
    assert_eq!(encode(&frame, &mut buffer[..needed]), Ok(needed));
}

#[test]
fn a_length_that_lies_is_an_error_at_its_byte() {
    // A text of 2^63 bytes, and one that ends after the body.
    for length in [&[253, 0, 0, 0, 0, 0, 0, 0, 0x80][..], &[5, b'a']] {
        let mut body = vec![1, 0, 0];
        body.extend(length);
        let expected = Error::Truncated { field: "text", offset: 11 };
        assert_eq!(decode_up(&envelope(0x100d, &body)), Err(expected));
    }
    let not_text = [1, 0, 0, 2, 0xc3, 0x28];
    assert_eq!(decode_up(&envelope(0x100d, &not_text)), Err(Error::NotText { field: "text", offset: 11 }));
    let not_u32 = [253, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    let expected = Error::Malformed { field: "sequence", offset: 8 };
    assert_eq!(decode_up(&envelope(0x100d, &not_u32)), Err(expected));
}

#[test]
fn unknown_kinds_are_skipped_and_counted() {
    for (kind, class) in
        [(0x00ff, Class::Link), (0x1fff, Class::Control), (0x2fff, Class::Audio), (0x7001, Class::Reserved)]
    {
        let bytes = envelope(kind, &[9, 4, 251, 0x00, 0x01, 1, 2, 3]);
        let expected = Decoded::Skipped { kind, stamp: Stamp { sequence: 9, turn: 4, time_us: 256 } };
        assert_eq!(decode_up(&bytes), Ok(expected));
        assert_eq!(Class::of_kind(kind), class);
    }
}

#[test]
fn the_other_direction_is_refused() {
    assert_eq!(decode_up(&bytes_of(transcript("a"))), Err(Error::WrongDirection { kind: 0x9002 }));
    let mute = bytes_of(Up::Mute(up::Mute { muted: true }));
    assert_eq!(decode_down(&mute), Err(Error::WrongDirection { kind: 0x1008 }));
}

#[test]
fn unknown_versions_are_refused_from_the_first_byte_on() {
    assert_eq!(peek(&[2]), Err(Error::UnknownVersion { found: 2 }));
    let error = decode_up(b"GET /glasses").unwrap_err();
    assert!(error.is_version());
}

#[test]
fn flags_and_trailing_bytes_of_a_body_are_ignored() {
    let mut bytes = bytes_of(transcript("hello"));
    let plain = bytes.clone();
    bytes[1] = 0xff;
    bytes[4] += 3;
    bytes.extend([1, 2, 3]);
    assert_eq!(decode_down(&bytes), decode_down(&plain));
}

#[test]
fn envelopes_follow_each_other_in_a_stream() {
    let first = bytes_of(transcript("one"));
    let second = bytes_of(transcript("two, longer"));
    let stream = [first.clone(), second.clone()].concat();
    assert_eq!(decode_down(&stream), Err(Error::TrailingBytes { count: second.len() }));
    for end in 0..stream.len() {
        let found = first_frame(&stream[..end]).unwrap();
        assert_eq!(found, (end >= first.len()).then_some(&first[..]), "{end} bytes");
    }
    assert_eq!(first_frame(&stream[first.len()..]), Ok(Some(&second[..])));
}

#[test]
fn every_kind_says_its_class_and_direction() {
    for schema in Up::SCHEMA {
        assert_eq!(schema.kind & DOWN_BIT, 0, "{}", schema.name);
        assert_eq!(Up::kind_name(schema.kind), Some(schema.name));
    }
    for schema in Down::SCHEMA {
        assert_eq!(schema.kind & DOWN_BIT, DOWN_BIT, "{}", schema.name);
        assert_eq!(Down::kind_name(schema.kind), Some(schema.name));
    }
    let all: Vec<_> = Up::SCHEMA.iter().chain(Down::SCHEMA).collect();
    let link = ["hello", "proof", "challenge", "pairing_code", "welcome", "reject", "heartbeat", "ack", "goodbye"];
    for schema in &all {
        let expected = match schema.name {
            "audio" | "speech_chunk" => Class::Audio,
            name if link.contains(&name) => Class::Link,
            _ => Class::Control,
        };
        assert_eq!(Class::of_kind(schema.kind), expected, "{}", schema.name);
        assert_eq!(all.iter().filter(|other| other.kind == schema.kind).count(), 1, "{}", schema.name);
    }
}

#[test]
fn known_numbers_are_not_others() {
    for number in 0..=u8::MAX {
        assert_eq!(Gesture::from_number(number).number(), number);
        assert_eq!(matches!(Gesture::from_number(number), Gesture::Other(_)), number > 6);
    }
    assert_eq!(Gesture::Other(1).name(), Some("double_tap"));
    assert!(Codecs::OPUS.with(Codecs::PCM16).has(Codec::Opus));
    assert!(!Codecs::PCM16.has(Codec::Opus));
    assert!(!Codecs(u16::MAX).has(Codec::Other(200)), "a number beyond the mask has no bit");
}

fn never_panics(bytes: &[u8]) {
    let _ = peek(bytes);
    if let Ok(Decoded::Frame(frame)) = decode_up(bytes) {
        again(&frame);
        if let Up::ToolList(list) = frame.message {
            assert_eq!(list.tools.iter().count(), list.tools.len());
        }
    }
    if let Ok(Decoded::Frame(frame)) = decode_down(bytes) {
        again(&frame);
    }
}

/// What was decoded can be encoded, whatever the input bytes were.
fn again<'a, M: Message<'a>>(frame: &Frame<M>) {
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    encode(frame, &mut buffer).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        never_panics(&bytes);
    }

    #[test]
    fn random_bodies_never_panic(index in any::<prop::sample::Index>(), body in prop::collection::vec(any::<u8>(), 0..300)) {
        let kinds: Vec<u16> = Up::SCHEMA.iter().chain(Down::SCHEMA).map(|schema| schema.kind).collect();
        never_panics(&envelope(*index.get(&kinds), &body));
    }
}
