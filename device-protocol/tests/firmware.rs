//! The golden manifests: their bytes are those that an independent implementation signed.

use device_protocol::firmware::{Manifest, Release};
use device_protocol::limits::MANIFEST_BYTES_MAX;
use serde_json::Value;

fn bytes(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("hexadecimal digits").as_bytes();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).expect("two digits")).collect()
}

#[test]
fn golden_manifests_are_read_and_written() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../vectors/v1/firmware.json")).unwrap();
    assert!(cases.len() > 1);
    for case in cases {
        let (manifest, fields) = (bytes(&case["manifest"]), &case["fields"]);
        let release = Release::parse(&manifest).unwrap();
        let text = |name: &str| fields[name].as_str().unwrap_or_default();
        let number = |name: &str| fields[name].as_u64().unwrap();
        let expected = Manifest {
            model: text("model"),
            hardware_min: number("hardware_min").try_into().unwrap(),
            hardware_max: number("hardware_max").try_into().unwrap(),
            version: text("version"),
            version_min: text("version_min"),
            downgrade: fields["downgrade"] == true,
            size: number("size").try_into().unwrap(),
            hash: bytes(&fields["hash"]).try_into().unwrap(),
        };
        assert_eq!(release.manifest, expected, "{}", case["note"]);
        let mut buffer = [0; MANIFEST_BYTES_MAX];
        let length = release.write(&mut buffer).unwrap();
        assert_eq!(buffer[..length], manifest);
    }
}
