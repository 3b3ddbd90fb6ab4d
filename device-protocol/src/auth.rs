//! The exact bytes that both sides sign and hash. Signing (Ed25519, RFC 8032) and hashing (SHA-256) are left to the
//! caller.
//!
//! Order of the handshake: the device commits to a nonce (Hello), the gateway signs over that commitment and its own
//! nonce (Challenge), the device reveals its nonce and signs over everything (Proof). Since neither nonce can be chosen
//! after the other is known, comparing six digits of a hash over everything is enough: a man in the middle succeeds
//! with one in a million for each try (short authentication strings with a commitment, as in RFC 6189 section 4.4). The
//! channel binding is the TLS exporter (RFC 8446 section 7.5), so that a proof relayed over another TLS connection
//! fails.

/// Label of the TLS exporter; the context is present and empty, the output has 32 bytes.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-lorgnette-auth-1";

/// Channel binding without TLS (plain `ws://`).
pub const NO_BINDING: [u8; 32] = [0; 32];

const GATEWAY_LABEL: &[u8; 24] = b"lorgnette-auth-1 gateway";
const DEVICE_LABEL: &[u8; 23] = b"lorgnette-auth-1 device";
const PAIRING_LABEL: &[u8; 19] = b"lorgnette-pairing-1";
const INVITATION_LABEL: &[u8; 22] = b"lorgnette-invitation-1";

/// Bytes of the code of an invitation: it cannot be guessed.
pub const INVITATION_CODE_BYTES: usize = 16;

/// Bytes that the gateway signs.
pub const GATEWAY_PROOF_BYTES: usize = GATEWAY_LABEL.len() + 5 * 32;
/// Bytes that the device signs.
pub const DEVICE_PROOF_BYTES: usize = DEVICE_LABEL.len() + 6 * 32;
/// Bytes hashed for the pairing code.
pub const PAIRING_BYTES: usize = PAIRING_LABEL.len() + 5 * 32;
/// Bytes hashed to show that a device knows the code of an invitation.
pub const INVITATION_BYTES: usize = INVITATION_LABEL.len() + INVITATION_CODE_BYTES + 5 * 32;

/// Values known to both sides once the Challenge is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Ed25519 public key of the device, from Hello.
    pub device_key: [u8; 32],
    /// Ed25519 public key of the gateway, from Challenge.
    pub gateway_key: [u8; 32],
    /// SHA-256 of the device's nonce, from Hello.
    pub nonce_commitment: [u8; 32],
    /// Nonce of the gateway, from Challenge.
    pub gateway_nonce: [u8; 32],
    /// TLS exporter of *this* side's connection, or [`NO_BINDING`].
    pub binding: [u8; 32],
}

impl Handshake {
    /// The message signed in Challenge.
    pub fn gateway_proof(&self) -> [u8; GATEWAY_PROOF_BYTES] {
        join(&[
            GATEWAY_LABEL,
            &self.device_key,
            &self.gateway_key,
            &self.nonce_commitment,
            &self.gateway_nonce,
            &self.binding,
        ])
    }

    /// The message signed in Proof. The gateway first checks that SHA-256 of `device_nonce` equals the commitment.
    pub fn device_proof(&self, device_nonce: &[u8; 32]) -> [u8; DEVICE_PROOF_BYTES] {
        join(&[
            DEVICE_LABEL,
            &self.device_key,
            &self.gateway_key,
            &self.nonce_commitment,
            &self.gateway_nonce,
            device_nonce,
            &self.binding,
        ])
    }

    /// The bytes hashed with SHA-256 for [`pairing_code`].
    pub fn pairing_transcript(&self, device_nonce: &[u8; 32]) -> [u8; PAIRING_BYTES] {
        join(&[PAIRING_LABEL, &self.device_key, &self.gateway_key, &self.gateway_nonce, device_nonce, &self.binding])
    }

    /// The bytes whose SHA-256 is `invitation` of Proof: it shows that the device knows the code, and does not give it away.
    pub fn invitation_transcript(
        &self,
        device_nonce: &[u8; 32],
        code: &[u8; INVITATION_CODE_BYTES],
    ) -> [u8; INVITATION_BYTES] {
        join(&[
            INVITATION_LABEL,
            code,
            &self.device_key,
            &self.gateway_key,
            &self.gateway_nonce,
            device_nonce,
            &self.binding,
        ])
    }
}

/// The six ASCII digits of a SHA-256 of [`Handshake::pairing_transcript`]: its first four bytes as a big-endian number,
/// modulo one million, with leading zeros.
pub fn pairing_code(digest: &[u8; 32]) -> [u8; 6] {
    let [a, b, c, d, ..] = *digest;
    let mut rest = u32::from_be_bytes([a, b, c, d]) % 1_000_000;
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Concatenates the parts, whose constant lengths add up to `N`.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let sources = parts.iter().flat_map(|part| part.iter());
    for (target, source) in bytes.iter_mut().zip(sources) {
        *target = *source;
    }
    bytes
}
