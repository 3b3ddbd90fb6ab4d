//! The golden vectors: the bytes of every released version, both ways. Vectors are only added, never changed.
//!
//! `frames/` encode to exactly their bytes and decode to exactly their JSON; `newer/` come from later versions and only
//! decode; `bad/` give exactly their error. `every_frame_has_its_bytes` writes the bytes of new frames; tests/python
//! checks them against an independent implementation of PROTOCOL.md.
#![cfg(feature = "json")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use device_protocol::json::{self, JsonError};
use device_protocol::{Decoded, Down, Up, decode_down, decode_up, encode, limits, peek};
use serde_json::{Value, json};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/v1").join(name)
}

fn files(folder_name: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(folder_name)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    paths.sort();
    paths
}

/// The bytes of a `.hex` file: lines that start with `#` are notes.
fn read_hex(path: &Path) -> Vec<u8> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).expect("two digits")).collect()
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Bytes of a frame in the JSON form.
fn to_bytes(frame: &Value) -> Result<Vec<u8>, JsonError> {
    let text = frame.to_string();
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let down = frame["kind_number"].as_u64().expect("kind_number") >= 0x8000;
    let length = if down {
        let Decoded::Frame(frame) = json::decode_down(&text)? else { panic!("an unknown kind: {text}") };
        encode(&frame.to_borrowed(), &mut buffer)?
    } else {
        let Decoded::Frame(frame) = json::decode_up(&text)? else { panic!("an unknown kind: {text}") };
        encode(&frame.to_borrowed(), &mut buffer)?
    };
    buffer.truncate(length);
    Ok(buffer)
}

/// A frame in the JSON form; unknown kinds with their stamp only.
fn to_json(bytes: &[u8]) -> Result<Value, device_protocol::Error> {
    let down = peek(bytes)?.is_some_and(|header| header.is_down());
    let (text, skipped) = if down {
        match decode_down(bytes)? {
            Decoded::Frame(frame) => (json::encode(&frame).unwrap(), None),
            Decoded::Skipped { kind, stamp } => (String::new(), Some((kind, stamp))),
        }
    } else {
        match decode_up(bytes)? {
            Decoded::Frame(frame) => (json::encode(&frame).unwrap(), None),
            Decoded::Skipped { kind, stamp } => (String::new(), Some((kind, stamp))),
        }
    };
    Ok(match skipped {
        None => serde_json::from_str(&text).unwrap(),
        Some((kind, stamp)) => json!({
            "kind_number": kind, "sequence": stamp.sequence, "turn": stamp.turn, "time_us": stamp.time_us,
        }),
    })
}

#[test]
fn frames_encode_to_and_decode_from_exactly_their_bytes() {
    let paths = files("frames", "json");
    for path in &paths {
        let frame = &read_json(path)["frame"];
        let bytes = read_hex(&path.with_extension("hex"));
        assert_eq!(to_bytes(frame).unwrap(), bytes, "encoding of {}", path.display());
        assert_eq!(to_json(&bytes).unwrap(), *frame, "decoding of {}", path.display());
    }
    assert_eq!(paths.len(), files("frames", "hex").len());
}

#[test]
fn every_kind_has_a_vector() {
    let seen: BTreeSet<u64> =
        files("frames", "json").iter().map(|path| read_json(path)["frame"]["kind_number"].as_u64().unwrap()).collect();
    let kinds: BTreeSet<u64> = Up::SCHEMA.iter().chain(Down::SCHEMA).map(|schema| u64::from(schema.kind)).collect();
    assert_eq!(seen, kinds);
}

#[test]
fn frames_of_later_versions_decode() {
    let paths = files("newer", "hex");
    assert!(!paths.is_empty());
    for path in paths {
        let frame = &read_json(&path.with_extension("json"))["frame"];
        assert_eq!(to_json(&read_hex(&path)).as_ref(), Ok(frame), "{}", path.display());
    }
}

#[test]
fn bad_frames_give_exactly_their_error() {
    let paths = files("bad", "hex");
    assert!(!paths.is_empty());
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let expected = text.lines().find_map(|line| line.strip_prefix("# error: ")).expect("a line `# error:`");
        let error = to_json(&read_hex(&path)).unwrap_err();
        assert_eq!(error.to_string(), expected, "{}", path.display());
    }
}

/// Fields of messages that were appended to version 1.
const APPENDED: [&str; 12] = [
    "bitmap",
    "countdown_ms",
    "binding",
    "invitation",
    "audio_lost",
    "audio_held_us",
    "audio_bitrate",
    "audio_frame_ms",
    "audio_loss_percent",
    "audio_missing",
    "sound_until_us",
    "audio_missing_bits",
];

/// A body cut at any byte is an error, unless it ends exactly before an appended field: then it is a complete message
/// of an older sender.
#[test]
fn every_truncation_is_an_error() {
    for path in files("frames", "hex") {
        let whole = read_hex(&path);
        let frame = to_json(&whole).unwrap();
        let appended = APPENDED.iter().filter(|field| frame.get(**field).is_some()).count();
        let mut older = 0;
        for end in 0..whole.len() {
            assert!(to_json(&whole[..end]).is_err(), "{} cut to {end} bytes", path.display());
            // The same with an envelope whose length matches.
            if end >= limits::HEADER_BYTES {
                let mut bytes = whole[..end].to_vec();
                bytes[4..8].copy_from_slice(&((end - limits::HEADER_BYTES) as u32).to_le_bytes());
                if let Ok(cut) = to_json(&bytes) {
                    // Trailing fields with their default value are omitted again.
                    let again = to_bytes(&cut).unwrap();
                    assert!(again.len() <= bytes.len(), "{} with a body of {end} bytes", path.display());
                    assert_eq!(to_json(&again), Ok(cut), "{} with a body of {end} bytes", path.display());
                    older += 1;
                }
            }
        }
        assert_eq!(older, appended, "{}", path.display());
    }
}

/// Any single bit flipped: an error or another message, never a panic, and what decodes encodes again.
#[test]
fn every_flipped_bit_is_survived() {
    for path in files("frames", "hex") {
        let whole = read_hex(&path);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(frame) = to_json(&bytes)
                && frame.get("kind").is_some()
            {
                to_bytes(&frame).unwrap_or_else(|error| panic!("{} bit {bit}: {error}", path.display()));
            }
        }
    }
}

/// Running this test writes the bytes of a new frame; the test fails once, so that they are reviewed.
#[test]
fn every_frame_has_its_bytes() {
    let mut written = Vec::new();
    for path in files("frames", "json") {
        let target = path.with_extension("hex");
        if target.exists() {
            continue;
        }
        let value = read_json(&path);
        let bytes = to_bytes(&value["frame"]).unwrap();
        let (header, body) = bytes.split_at(limits::HEADER_BYTES);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let mut text = format!(
            "# {}: {}\n{}\n",
            value["frame"]["kind"].as_str().unwrap(),
            value["note"].as_str().unwrap(),
            hex(header)
        );
        for line in body.chunks(32) {
            text += &hex(line);
            text.push('\n');
        }
        fs::write(&target, text).unwrap();
        written.push(target);
    }
    assert!(written.is_empty(), "written, look at them and run again: {written:?}");
}
