//! The signed and hashed bytes equal those of the vectors, whose signatures tests/python verifies.

use device_protocol::auth::{EXPORTER_LABEL, Handshake, NO_BINDING, pairing_code};
use serde_json::Value;

fn bytes(case: &Value, name: &str) -> Vec<u8> {
    let hex = case[name].as_str().unwrap_or_else(|| panic!("no {name}"));
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).expect("two digits")).collect()
}

fn array<const N: usize>(case: &Value, name: &str) -> [u8; N] {
    bytes(case, name).try_into().expect("the length of the field")
}

#[test]
fn messages_and_codes_are_those_of_the_vectors() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../vectors/v1/handshake.json")).unwrap();
    let tls: Vec<Value> = serde_json::from_str(include_str!("../vectors/v1/handshake.tls.json")).unwrap();
    assert_eq!((cases.len(), tls.len()), (3, 3));
    for case in cases.iter().chain(&tls) {
        let handshake = Handshake {
            device_key: array(case, "device_key"),
            gateway_key: array(case, "gateway_key"),
            nonce_commitment: array(case, "nonce_commitment"),
            gateway_nonce: array(case, "gateway_nonce"),
            binding: array(case, "binding"),
        };
        let nonce = array(case, "device_nonce");
        assert_eq!(handshake.gateway_proof()[..], bytes(case, "gateway_message"));
        assert_eq!(handshake.device_proof(&nonce)[..], bytes(case, "device_message"));
        assert_eq!(handshake.pairing_transcript(&nonce)[..], bytes(case, "pairing_message"));
        let code = pairing_code(&array(case, "pairing_digest"));
        assert_eq!(str::from_utf8(&code).unwrap(), case["pairing_code"].as_str().unwrap());
    }
    let leading_zero = cases.iter().any(|case| case["pairing_code"].as_str().unwrap().starts_with('0'));
    assert!(leading_zero, "no vector shows that the code keeps its zeros");
    assert_eq!(array::<32>(&cases[0], "binding"), NO_BINDING);
    assert!(tls.iter().all(|case| array::<32>(case, "binding") != NO_BINDING));
}

#[test]
fn the_proof_of_an_invitation_is_that_of_the_vector() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../vectors/v1/handshake.invitation.json")).unwrap();
    assert_eq!(cases.len(), 1);
    for case in &cases {
        let handshake = Handshake {
            device_key: array(case, "device_key"),
            gateway_key: array(case, "gateway_key"),
            nonce_commitment: array(case, "nonce_commitment"),
            gateway_nonce: array(case, "gateway_nonce"),
            binding: array(case, "binding"),
        };
        let transcript = handshake.invitation_transcript(&array(case, "device_nonce"), &array(case, "invitation_code"));
        assert_eq!(transcript[..], bytes(case, "invitation_message"));
    }
}

/// Each input changes what is signed: nothing can be swapped or left out.
#[test]
fn every_part_is_signed() {
    let base = Handshake {
        device_key: [1; 32],
        gateway_key: [2; 32],
        nonce_commitment: [3; 32],
        gateway_nonce: [4; 32],
        binding: [5; 32],
    };
    let nonce = [6; 32];
    let others = [
        Handshake { device_key: [9; 32], ..base },
        Handshake { gateway_key: [9; 32], ..base },
        Handshake { nonce_commitment: [9; 32], ..base },
        Handshake { gateway_nonce: [9; 32], ..base },
        Handshake { binding: [9; 32], ..base },
        Handshake { device_key: [2; 32], gateway_key: [1; 32], ..base },
    ];
    for other in others {
        assert_ne!(other.gateway_proof(), base.gateway_proof());
        assert_ne!(other.device_proof(&nonce), base.device_proof(&nonce));
    }
    assert_ne!(base.device_proof(&[9; 32]), base.device_proof(&nonce));
    assert_ne!(base.pairing_transcript(&[9; 32]), base.pairing_transcript(&nonce));
    let gateway = base.gateway_proof();
    assert!(!base.device_proof(&nonce).starts_with(&gateway[..24]), "one proof could pass for the other");
}

#[test]
fn codes_are_six_digits() {
    let mut digest = [0; 32];
    assert_eq!(&pairing_code(&digest), b"000000");
    digest[..4].copy_from_slice(&999_999u32.to_be_bytes());
    assert_eq!(&pairing_code(&digest), b"999999");
    digest[..4].copy_from_slice(&1_000_007u32.to_be_bytes());
    assert_eq!(&pairing_code(&digest), b"000007");
    digest[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(&pairing_code(&digest), b"967295");
    assert_eq!(EXPORTER_LABEL, b"EXPORTER-lorgnette-auth-1");
}
