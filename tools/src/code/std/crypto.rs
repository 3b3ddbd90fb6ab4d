//! `crypto`: digests, random bytes, and what needs a secret that programs do not see.

use ring::{
    aead, digest, hkdf, hmac,
    rand::{SecureRandom as _, SystemRandom},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    policy::StdPolicy,
    values::{content, error, from_base64, read, to_base64, unknown},
};
use crate::{code::HostError, secret::Secret};

/// Random bytes of one call.
const RANDOM_BYTES_MAX: usize = 1024;
/// What keys for encryption are derived for: the same secret may be used for other things.
const PURPOSE: &[&[u8]] = &[b"lorgnette std encrypt v1"];

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Sha256,
    Sha512,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hash {
    algorithm: Algorithm,
    text: Option<String>,
    bytes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithSecret {
    secret: String,
    text: Option<String>,
    bytes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    secret: String,
    sealed: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    count: usize,
}

/// Carries out a function of `crypto`. All bytes are in base64.
pub(super) fn call(policy: &StdPolicy, user: &str, name: &str, arguments: Value) -> Result<Value, HostError> {
    let function = format!("crypto.{name}");
    let bytes = match name {
        "hash" => {
            let Hash { algorithm, text, bytes } = read(&function, arguments)?;
            let algorithm = match algorithm {
                Algorithm::Sha256 => &digest::SHA256,
                Algorithm::Sha512 => &digest::SHA512,
            };
            digest::digest(algorithm, &content(text, bytes)?).as_ref().to_vec()
        }
        "hmac" => {
            let WithSecret { secret, text, bytes } = read(&function, arguments)?;
            let key = policy.for_crypto(user, &secret)?;
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
            hmac::sign(&key, &content(text, bytes)?).as_ref().to_vec()
        }
        "encrypt" => {
            let WithSecret { secret, text, bytes } = read(&function, arguments)?;
            seal(policy.for_crypto(user, &secret)?, content(text, bytes)?)?
        }
        "decrypt" => {
            let Sealed { secret, sealed } = read(&function, arguments)?;
            open(policy.for_crypto(user, &secret)?, from_base64(&sealed)?)?
        }
        "randomBytes" => {
            let Count { count } = read(&function, arguments)?;
            if count > RANDOM_BYTES_MAX {
                let message = format!("{function}: {count} bytes, {RANDOM_BYTES_MAX} are the maximum");
                return Err(error("invalid_arguments", message));
            }
            random(count)?
        }
        _ => return Err(unknown(&function)),
    };
    Ok(to_base64(&bytes).into())
}

fn random(count: usize) -> Result<Vec<u8>, HostError> {
    let mut bytes = vec![0; count];
    SystemRandom::new().fill(&mut bytes).map_err(|_| failed())?;
    Ok(bytes)
}

fn failed() -> HostError {
    error("failed", "the gateway's cryptography failed")
}

/// The key of a secret for ChaCha20-Poly1305.
fn key(secret: &Secret) -> Result<aead::LessSafeKey, HostError> {
    let pseudorandom = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(secret.expose().as_bytes());
    let material = pseudorandom.expand(PURPOSE, &aead::CHACHA20_POLY1305).map_err(|_| failed())?;
    Ok(aead::LessSafeKey::new(aead::UnboundKey::from(material)))
}

/// A random nonce, then what is sealed with it, then its tag.
fn seal(secret: &Secret, mut content: Vec<u8>) -> Result<Vec<u8>, HostError> {
    let mut sealed = random(aead::NONCE_LEN)?;
    let nonce = aead::Nonce::try_assume_unique_for_key(&sealed).map_err(|_| failed())?;
    key(secret)?.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut content).map_err(|_| failed())?;
    sealed.append(&mut content);
    Ok(sealed)
}

fn open(secret: &Secret, mut sealed: Vec<u8>) -> Result<Vec<u8>, HostError> {
    let wrong = || error("not_authentic", "this was not encrypted with this secret, or was changed since");
    let (nonce, content) = sealed.split_at_mut_checked(aead::NONCE_LEN).ok_or_else(wrong)?;
    let nonce = aead::Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
    let opened = key(secret)?.open_in_place(nonce, aead::Aad::empty(), content).map_err(|_| wrong())?;
    Ok(opened.to_vec())
}
