//! The section `[firmware]`.

use std::collections::BTreeMap;

use device_protocol::limits::NAME_BYTES_MAX;
use ed25519_dalek::VerifyingKey;
use serde::Deserialize;
use toml::Spanned;

use crate::{
    problems::{Problems, unwritten},
    text::is_plain,
};

/// Models with a maker: more than a household or a workshop has.
const MAKERS_MAX: usize = 64;

/// `[firmware]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawFirmware {
    rate_kib_s: Spanned<u32>,
    stop_percent: Spanned<u8>,
    makers: Vec<RawMaker>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMaker {
    model: Spanned<String>,
    key: Spanned<String>,
}

impl Default for RawFirmware {
    fn default() -> Self {
        Self { rate_kib_s: unwritten(64), stop_percent: unwritten(20), makers: Vec::new() }
    }
}

/// How firmware is given to devices, and who may sign it.
#[derive(Clone, Debug)]
pub struct FirmwareSettings {
    /// Bytes of an image that one device is sent in a second, at most.
    pub rate_bytes_s: u32,
    /// Percent of the devices that have finished: when more of them report failure or roll-back, a roll-out stops.
    pub stop_percent: u8,
    /// Ed25519 public keys of the makers, by model.
    pub makers: BTreeMap<String, [u8; 32]>,
}

impl RawFirmware {
    /// Checks the section.
    pub(crate) fn check(self, problems: &mut Problems<'_>) -> FirmwareSettings {
        let rate_kib_s = problems.between(&self.rate_kib_s, "firmware.rate_kib_s", 1..=150);
        let stop_percent = problems.between(&self.stop_percent, "firmware.stop_percent", 0..=100);
        if self.makers.len() > MAKERS_MAX {
            problems.nowhere(format!("`firmware.makers` has more than {MAKERS_MAX} models"));
        }
        let mut makers = BTreeMap::new();
        for maker in self.makers {
            let (model, span) = (maker.model.get_ref().clone(), maker.model.span());
            if model.is_empty() || model.len() > NAME_BYTES_MAX || !is_plain(&model) {
                problems.at(
                    span,
                    format!(
                        "`firmware.makers.model` must have 1 to {NAME_BYTES_MAX} bytes: what the glasses say in `model`"
                    ),
                );
            } else if makers.contains_key(&model) {
                problems.at(span, format!("`firmware.makers` has `{model}` twice; each model has one key"));
            }
            match public_key(maker.key.get_ref()) {
                Some(key) => drop(makers.insert(model, key)),
                None => problems.at(
                    maker.key.span(),
                    "`firmware.makers.key` must be an Ed25519 public key in 64 hexadecimal digits, as the maker publishes it",
                ),
            }
        }
        FirmwareSettings { rate_bytes_s: rate_kib_s * 1_024, stop_percent, makers }
    }
}

/// A public key from its hexadecimal digits; `None`: it is none.
fn public_key(text: &str) -> Option<[u8; 32]> {
    let key = super::from_hex(text)?;
    VerifyingKey::from_bytes(&key).is_ok().then_some(key)
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    #[test]
    fn a_key_that_is_none_is_refused() {
        let maker = |key: &str| format!("[[firmware.makers]]\nmodel = \"Example One\"\nkey = \"{key}\"\n");
        let key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        let config = check(&maker(key), "x.toml").unwrap();
        assert_eq!(config.firmware.makers["Example One"][..2], [0x3d, 0x40]);
        for wrong in ["", "3d40", &key.replace('3', "x"), &format!("{key}00")] {
            let problems = check(&maker(wrong), "x.toml").unwrap_err();
            assert_eq!((problems.len(), problems[0].line), (1, Some(3)), "{problems:?}");
        }
        let twice = maker(key) + &maker(key);
        assert!(check(&twice, "x.toml").unwrap_err()[0].what.contains("twice"));
        assert!(check("[firmware]\nrate_kib_s = 0\n", "x.toml").is_err());
    }
}
