//! The JSON form is equivalent to the binary form, for arbitrary messages drawn from the schema.
#![cfg(feature = "json")]

mod draw;

use device_protocol::json::{self, Description, DownOwned, JsonError, UpOwned, describe};
use device_protocol::{Decoded, Down, Error, Frame, Message, Stamp, Up, decode_down, decode_up, encode, limits, up};
use proptest::prelude::*;
use serde_json::{Value, json};

fn binary<'a, M: Message<'a>>(frame: &Frame<M>) -> Vec<u8> {
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let length = encode(frame, &mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

/// True where the drawn message fits one frame; two of its longest texts may not.
fn fits<'a, M: Message<'a>>(frame: &Frame<M>) -> bool {
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    match encode(frame, &mut buffer) {
        Ok(_) => true,
        Err(Error::FrameTooLong { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn up_survives_both_forms(kind in 0..Up::SCHEMA.len(), entropy in prop::collection::vec(any::<u8>(), 0..1200)) {
        let drawn = draw::message(&Up::SCHEMA[kind], &entropy);
        let Ok(Decoded::Frame(owned)) = json::decode_up(&drawn.to_string()) else {
            panic!("{drawn} does not decode: {:?}", json::decode_up(&drawn.to_string()));
        };
        prop_assume!(fits(&owned.to_borrowed()));
        let bytes = binary(&owned.to_borrowed());
        let Ok(Decoded::Frame(frame)) = decode_up(&bytes) else { panic!("{:?}", decode_up(&bytes)) };
        prop_assert_eq!(frame, owned.to_borrowed());
        prop_assert_eq!(&UpOwned::from_borrowed(&frame.message).unwrap(), &owned.message);
        let text = json::encode(&frame).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), drawn);
        let Ok(Decoded::Frame(again)) = json::decode_up(&text) else { panic!("{text}") };
        prop_assert_eq!(binary(&again.to_borrowed()), bytes);
    }

    #[test]
    fn down_survives_both_forms(kind in 0..Down::SCHEMA.len(), entropy in prop::collection::vec(any::<u8>(), 0..1200)) {
        let drawn = draw::message(&Down::SCHEMA[kind], &entropy);
        let Ok(Decoded::Frame(owned)) = json::decode_down(&drawn.to_string()) else {
            panic!("{drawn} does not decode: {:?}", json::decode_down(&drawn.to_string()));
        };
        prop_assume!(fits(&owned.to_borrowed()));
        let bytes = binary(&owned.to_borrowed());
        let Ok(Decoded::Frame(frame)) = decode_down(&bytes) else { panic!("{:?}", decode_down(&bytes)) };
        prop_assert_eq!(frame, owned.to_borrowed());
        prop_assert_eq!(&DownOwned::from_borrowed(&frame.message).unwrap(), &owned.message);
        let text = json::encode(&frame).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), drawn);
        let Ok(Decoded::Frame(again)) = json::decode_down(&text) else { panic!("{text}") };
        prop_assert_eq!(binary(&again.to_borrowed()), bytes);
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = json::decode_up(&text);
        let _ = json::decode_down(&text);
    }

    /// Right syntax, wrong values: every field in turn has an invalid value.
    #[test]
    fn wrong_values_are_errors(
        kind in 0..Up::SCHEMA.len(),
        entropy in prop::collection::vec(any::<u8>(), 0..100),
        wrong in prop_oneof![
            Just(Value::Null), Just(json!(-1)), Just(json!(1.5)), Just(json!({})), Just(json!([[]])), Just(json!(u64::MAX)),
        ],
    ) {
        let schema = &Up::SCHEMA[kind];
        for field in schema.fields {
            let mut drawn = draw::message(schema, &entropy);
            // Skips values that are valid for the type.
            let allowed = match &wrong {
                Value::Null => field.wire.starts_with("option"),
                Value::Number(_) => matches!(field.wire, "u64" | "i16" | "i32"),
                _ => false,
            };
            drawn[field.name] = wrong.clone();
            let decoded = json::decode_up(&drawn.to_string());
            prop_assert!(allowed || decoded.is_err(), "{} took {wrong}", field.name);
        }
    }
}

const STAMP: &str = r#""sequence":1,"turn":0,"time_us":5"#;

#[test]
fn one_message_reads_as_documented() {
    let frame = Frame::new(Stamp { sequence: 1, turn: 0, time_us: 5 }, Up::Mute(up::Mute { muted: true }));
    let text = r#"{"kind":"mute","kind_number":4104,"sequence":1,"turn":0,"time_us":5,"muted":true}"#;
    assert_eq!(json::encode(&frame).unwrap(), text);
}

#[test]
fn errors_name_the_field() {
    let cases = [
        ("{", "not JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "`message` is not an object"),
        (r#"{"kind":"mute","sequence":1,"turn":0}"#, "field `time_us` is missing"),
        (&format!(r#"{{"kind":"mute",{STAMP}}}"#), "field `muted` is missing"),
        (&format!(r#"{{"kind":"mute",{STAMP},"muted":1}}"#), "field `muted` is not true or false"),
        (
            &format!(r#"{{"kind":"proof",{STAMP},"nonce":"AAAA","signature":""}}"#),
            "field `nonce` is not 32 bytes in base64",
        ),
        (&format!(r#"{{"kind":"welcome","kind_number":32771,{STAMP}}}"#), "kind 0x8003 belongs to the other direction"),
    ];
    for (text, expected) in cases {
        assert_eq!(json::decode_up(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn a_text_beyond_its_maximum_is_refused() {
    let long = "a".repeat(limits::TEXT_BYTES_MAX + 1);
    let text = format!(r#"{{"kind":"text_input",{STAMP},"text":"{long}"}}"#);
    let expected =
        JsonError::TooLong { field: "text", length: limits::TEXT_BYTES_MAX + 1, max: limits::TEXT_BYTES_MAX };
    assert_eq!(json::decode_up(&text), Err(expected));
    let text = " ".repeat(limits::JSON_BYTES_MAX + 1);
    assert!(matches!(json::decode_up(&text), Err(JsonError::MessageTooLong { .. })));
}

#[test]
fn names_and_kinds_of_later_versions_are_no_errors() {
    let text = format!(r#"{{"kind":"gaze","kind_number":4351,{STAMP},"x":1}}"#);
    assert_eq!(
        json::decode_up(&text),
        Ok(Decoded::Skipped { kind: 0x10ff, stamp: Stamp { sequence: 1, turn: 0, time_us: 5 } })
    );
    let text = format!(r#"{{"kind":"touch",{STAMP},"gesture":"wink","pressure":3}}"#);
    let Ok(Decoded::Frame(frame)) = json::decode_up(&text) else { panic!("does not decode") };
    assert_eq!(frame.message, UpOwned::Touch(up::Touch { gesture: device_protocol::Gesture::Other(255) }));
}

#[test]
fn bytes_are_described_for_a_person() {
    let frame = Frame::new(Stamp { sequence: 1, turn: 0, time_us: 5 }, Up::Mute(up::Mute { muted: true }));
    let bytes = binary(&frame);
    let head = "version   1\nflags     0x00\nkind      0x1008 mute\ndirection device to gateway\nclass     control\n\
                length    4 (frame of 12 bytes)\n";
    let body = "{\n  \"kind\": \"mute\",\n  \"kind_number\": 4104,\n  \"sequence\": 1,\n  \
                \"turn\": 0,\n  \"time_us\": 5,\n  \"muted\": true\n}";
    assert_eq!(describe(&bytes), Description { head: head.to_owned(), body: Ok(body.to_owned()) });
    let error = |bytes: &[u8]| describe(bytes).body.expect_err("it is wrong");
    assert_eq!(error(&bytes[..11]), "frame ends after 11 bytes, its envelope needs 12");
    let mut bad = bytes.clone();
    bad[11] = 2;
    assert_eq!(error(&bad), "field `muted` at byte 11 has a value that its type does not have");
    assert_eq!(describe(&bad).head, head);
    assert_eq!(error(&[]), "no envelope: 0 of the 8 bytes of its header");
    assert_eq!(error(&[9]), "envelope version 9 is unknown, this side speaks version 1");
}

#[test]
fn no_field_hides_the_frame_fields() {
    for schema in Up::SCHEMA.iter().chain(Down::SCHEMA) {
        for field in schema.fields {
            let taken = ["kind", "kind_number", "sequence", "turn", "time_us"].contains(&field.name);
            assert!(!taken, "{} of {}", field.name, schema.name);
        }
    }
}
