//! One message in two versions: appended fields and ignored trailing bytes.
#![allow(dead_code)] // not every table of these messages is read

use crate::Error;
use crate::codec::{Reader, Wire, Writer};

message! {
    /// In the first version.
    pub struct Old {
        /// In both versions.
        level: u32,
        /// A nested record, in the first version.
        part: record[OldPart],
        /// After the record, to check that its length is used.
        end: u8,
    }
}

message! {
    /// In the first version.
    pub struct OldPart {
        /// In both versions.
        rate: u16,
    }
}

message! {
    /// In a later version: two fields appended.
    pub struct New<'a>, owned NewOwned {
        /// In both versions.
        level: u32,
        /// A nested record, in the later version.
        part: record[NewPart],
        /// After the record.
        end: u8,
        /// Appended first.
        label: text[16] = "none",
        /// Appended in a still later version.
        gain: u16 = 100,
    }
}

message! {
    /// In a later version: one field appended.
    pub struct NewPart {
        /// In both versions.
        rate: u16,
        /// Appended.
        channels: u8 = 1,
    }
}

const OLD: Old = Old { level: 300, part: OldPart { rate: 7 }, end: 9 };
const OLD_BYTES: [u8; 6] = [251, 0x2c, 0x01, 1, 7, 9];

fn put<'a, T: Wire<'a>>(value: &T, buffer: &mut [u8; 64]) -> usize {
    let mut writer = Writer::new(buffer);
    value.put(&mut writer).unwrap();
    writer.written()
}

#[test]
fn older_firmware_gives_the_defaults() {
    let mut buffer = [0; 64];
    let length = put(&OLD, &mut buffer);
    assert_eq!(buffer[..length], OLD_BYTES);
    let new = New::get(&mut Reader::new(&buffer[..length], 8)).unwrap();
    let part = NewPart { rate: 7, channels: 1 };
    assert_eq!(new, New { level: 300, part, end: 9, label: "none", gain: 100 });
}

#[test]
fn newer_firmware_is_read_as_far_as_it_is_known() {
    let part = NewPart { rate: 7, channels: 2 };
    let new = New { level: 300, part, end: 9, label: "left", gain: 50 };
    let mut buffer = [0; 64];
    let length = put(&new, &mut buffer);
    assert_eq!(Old::get(&mut Reader::new(&buffer[..length], 8)), Ok(OLD));
}

#[test]
fn what_says_nothing_at_the_end_is_left_out() {
    let part = NewPart { rate: 7, channels: 1 };
    for (label, gain, bytes) in [("none", 100, 0), ("left", 100, 5), ("none", 50, 6), ("left", 50, 6)] {
        let new = New { level: 300, part, end: 9, label, gain };
        let mut buffer = [0; 64];
        let length = put(&new, &mut buffer);
        assert_eq!(length, OLD_BYTES.len() + bytes, "{label} {gain}");
        assert_eq!(New::get(&mut Reader::new(&buffer[..length], 8)), Ok(new));
    }
}

#[test]
fn a_body_may_end_between_appended_fields_but_not_inside_one() {
    let part = NewPart { rate: 7, channels: 2 };
    let new = New { level: 300, part, end: 9, label: "left", gain: 50 };
    let mut buffer = [0; 64];
    let length = put(&new, &mut buffer);
    let gain_bytes = 1;
    let between = New::get(&mut Reader::new(&buffer[..length - gain_bytes], 8)).unwrap();
    assert_eq!((between.label, between.gain), ("left", 100));
    let inside = New::get(&mut Reader::new(&buffer[..length - gain_bytes - 1], 8));
    assert_eq!(inside, Err(Error::Truncated { field: "label", offset: 8 + OLD_BYTES.len() + 1 }));
    let before = New::get(&mut Reader::new(&OLD_BYTES[..5], 8));
    assert_eq!(before, Err(Error::Truncated { field: "end", offset: 8 + 5 }));
}

#[test]
fn the_table_of_fields_names_what_was_appended() {
    let appended: [bool; 5] = core::array::from_fn(|index| New::FIELDS[index].appended);
    assert_eq!(appended, [false, false, false, true, true]);
}

#[cfg(feature = "json")]
#[test]
fn json_of_older_firmware_gives_the_defaults() {
    use crate::json::{Fields, Owned};

    let value = serde_json::from_str(r#"{"level": 300, "part": {"rate": 7}, "end": 9}"#).unwrap();
    let new = NewOwned::from_json(Fields::new(&value).unwrap()).unwrap();
    let part = NewPart { rate: 7, channels: 1 };
    assert_eq!(new.to_borrowed(), New { level: 300, part, end: 9, label: "none", gain: 100 });
}
