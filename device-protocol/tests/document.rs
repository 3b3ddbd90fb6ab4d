//! PROTOCOL.md and the Rust types agree: every table, every number, in both directions.

use std::collections::BTreeMap;
use std::path::Path;

use device_protocol::schema::{ENUMERATIONS, Field, MessageSchema, RECORDS, SETS, ValueSchema};
use device_protocol::{Down, Up, limits};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../PROTOCOL.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Heading of level three -> rows of the table below it, cells trimmed.
fn tables(document: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut tables = BTreeMap::new();
    for section in document.split("\n### ").skip(1) {
        let (heading, rest) = section.split_once('\n').expect("a heading");
        let own = rest.split("\n## ").next().unwrap_or_default();
        let rows = own.lines().filter(|line| line.starts_with('|')).skip(2);
        let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        tables.insert(heading.to_owned(), rows.map(cells).collect());
    }
    tables
}

fn check_fields(name: &str, rows: &[Vec<String>], fields: &[Field]) {
    let documented: Vec<_> = rows.iter().map(|row| row[..3].to_vec()).collect();
    let declared: Vec<_> = fields
        .iter()
        .map(|field| {
            let max = if field.max == 0 { String::new() } else { thousands(field.max) };
            vec![format!("`{}`", field.name), field.wire.to_owned(), max]
        })
        .collect();
    assert_eq!(documented, declared, "table of {name}");
    for row in rows {
        assert!(row[3].ends_with('.'), "meaning of {} in {name}", row[0]);
    }
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn every_table_is_the_declaration() {
    let mut tables = tables(&document());
    let mut take = |heading: &str| tables.remove(heading).unwrap_or_else(|| panic!("no heading `{heading}`"));
    for schema in Up::SCHEMA.iter().chain(Down::SCHEMA) {
        check_fields(schema.name, &take(&format!("{:#06x} `{}`", schema.kind, schema.name)), schema.fields);
    }
    for (name, fields) in RECORDS {
        check_fields(name, &take(&format!("record {name}")), fields);
    }
    let mut check_values = |sort: &str, values: &ValueSchema| {
        let rows = take(&format!("{sort} {} ({})", values.name, values.wire));
        let documented: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let declared: Vec<_> =
            values.names.iter().map(|(number, name)| (number.to_string(), format!("`{name}`"))).collect();
        assert_eq!(documented, declared, "table of {}", values.name);
    };
    ENUMERATIONS.iter().for_each(|values| check_values("enumeration", values));
    SETS.iter().for_each(|values| check_values("set", values));
    assert!(tables.is_empty(), "the document has what the types have not: {:?}", tables.keys());
}

/// `VIEW`, `DISPLAY_KIND`: the name of a type as C has it.
fn in_capitals(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

/// `c/numbers.h` has every kind and every value, and nothing else.
#[test]
fn the_header_for_c_has_the_numbers() {
    let mut declared = Vec::new();
    for (direction, schemas) in [("UP", Up::SCHEMA), ("DOWN", Down::SCHEMA)] {
        let line =
            |schema: &MessageSchema| format!("LG_{direction}_{} {:#06x}", schema.name.to_uppercase(), schema.kind);
        declared.extend(schemas.iter().map(line));
    }
    for (all, is_set) in [(ENUMERATIONS, false), (SETS, true)] {
        for values in all {
            for (number, name) in values.names {
                let number = if is_set { format!("(UINT32_C(1) << {number})") } else { number.to_string() };
                declared.push(format!("LG_{}_{} {number}", in_capitals(values.name), name.to_uppercase()));
            }
        }
    }
    let header = include_str!("../c/numbers.h");
    let written: Vec<&str> = header.lines().filter_map(|line| line.strip_prefix("#define ")).collect();
    assert_eq!(written[0], "LORGNETTE_NUMBERS_H");
    assert_eq!(written[1..], declared);
}

#[test]
fn the_limits_are_the_constants() {
    let document = document();
    let lines = [
        format!("| whole envelope | {} bytes |", thousands(limits::FRAME_BYTES_MAX)),
        format!("| body | {} bytes |", thousands(limits::BODY_BYTES_MAX)),
        format!("| whole envelope with sound | {} bytes |", thousands(limits::AUDIO_FRAME_BYTES_MAX)),
        format!("| sound in one packet | {} ms |", limits::PACKET_DURATION_US_MAX / 1000),
        format!("| sequences that sound may be ahead | {} |", thousands(limits::AUDIO_AHEAD_MAX as usize)),
        format!("| speech under way beyond the last `played` | {} s |", limits::SPEECH_HOLD_MS_MAX / 1000),
        format!("| smallest `frame_bytes_max` | {} bytes |", thousands(limits::DEVICE_FRAME_BYTES_MIN)),
        format!(
            "| heartbeats that a device may ask for | {} to {} s |",
            limits::HEARTBEAT_MS_DEFAULT / 1000,
            limits::HEARTBEAT_MS_MAX / 1000
        ),
        format!("| JSON message | {} bytes |", thousands(limits::JSON_BYTES_MAX)),
        format!("| whole photo | {} MiB |", limits::PHOTO_BYTES_MAX >> 20),
        format!("| photos in transfer at once | {} |", limits::PHOTOS_OPEN_MAX),
        format!("| firmware image | {} MiB |", limits::IMAGE_BYTES_MAX >> 20),
        format!(
            "| firmware beyond the last `firmware_progress` | {} bytes |",
            thousands(limits::FIRMWARE_WINDOW_BYTES as usize)
        ),
        format!("| handshake without pairing | {} s |", limits::HANDSHAKE_MS_MAX / 1000),
        format!("| heartbeats missed | {} |", limits::HEARTBEATS_MISSED_MAX),
        format!(
            "{} control frames, {} audio\npackets, or {} MiB in one second",
            limits::CONTROL_FRAMES_PER_S_MAX,
            limits::AUDIO_PACKETS_PER_S_MAX,
            limits::BYTES_PER_S_MAX >> 20
        ),
        format!("takes nothing for {} s", limits::STALL_MS_MAX / 1000),
        format!(
            "after at most {} control frames or {} s with something new, whichever comes first, and after each {} audio\npackets",
            limits::ACK_CONTROL_FRAMES_MAX,
            limits::ACK_EVERY_MS_MAX / 1000,
            limits::ACK_AUDIO_PACKETS_MAX
        ),
        format!("`last_audio_sequence` until none has come for {} ms", limits::LAST_SOUND_WAIT_MS_MAX),
        format!("sends at most {} ms ahead of what is played", limits::SPEECH_AHEAD_MS_MAX),
        format!("sends `played` at least every {} ms", limits::PLAYED_EVERY_MS_MAX),
        format!("keeps chunks of an unknown speech for {} s", limits::SPEECH_START_WAIT_MS_MAX / 1000),
        format!("at least {} of these open at once", limits::AUDIO_STREAMS_MAX),
        format!(
            "up to {} frames and {} KiB",
            limits::REPLAY_CONTROL_FRAMES_MAX,
            limits::REPLAY_CONTROL_BYTES_MAX >> 10
        ),
        format!("up to the last {} s", limits::REPLAY_AUDIO_US_MAX / 1_000_000),
        format!("for up to {} s", limits::REPLAY_OPEN_AUDIO_US_MAX / 1_000_000),
        format!("ALPN `{}`", str::from_utf8(device_protocol::ALPN).unwrap()),
        format!("Path `{}`, sub-protocol `{}`", device_protocol::PATH, device_protocol::SUBPROTOCOL),
        format!("Sub-protocol `{}`", device_protocol::SUBPROTOCOL_JSON),
    ];
    for line in lines {
        assert!(document.contains(&line), "the document does not say: {line}");
    }
}
