//! A model's section as configured.

use std::{collections::BTreeMap, path::PathBuf};

use chat_models::kinds::Kind;
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;

use super::oauth::OAuth;
use crate::problems::{listed, unwritten};

/// The kind of a model as configured: the box, or a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelKind {
    /// The embedded intent engine.
    Offline,
    /// A provider's protocol.
    Provider(Kind),
}

/// The name of the embedded engine.
pub(super) const OFFLINE: &str = "offline";

impl ModelKind {
    /// As `kind` has it in the configuration.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Offline => OFFLINE,
            Self::Provider(kind) => kind.name(),
        }
    }

    /// Whether its section may contain options of this provider.
    pub(super) fn passes_to(self, kind: Kind) -> bool {
        self == Self::Offline || self == Self::Provider(kind)
    }

    /// The options that its section may have, in addition to the common ones.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Offline => &[],
            Self::Provider(kind) => kind.options(),
        }
    }
}

impl<'de> Deserialize<'de> for ModelKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = String::deserialize(deserializer)?;
        if given == OFFLINE {
            return Ok(Self::Offline);
        }
        let known = Kind::ALL.iter().find(|kind| kind.name() == given);
        known.map(|kind| Self::Provider(*kind)).ok_or_else(|| {
            let names = listed([OFFLINE].into_iter().chain(Kind::ALL.iter().map(|kind| kind.name())));
            D::Error::custom(format!("unknown variant `{given}`, expected one of {names}"))
        })
    }
}

/// The common part of every model's section. Other keys are options of its provider.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(crate) struct RawModel {
    pub(super) kind: Spanned<ModelKind>,
    pub(super) base_url: Option<Spanned<String>>,
    pub(super) model: String,
    pub(super) tools: bool,
    pub(super) images: bool,
    pub(super) price: Spanned<RawPrice>,
    pub(super) commands_offline: bool,
    pub(super) key_env: Option<String>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) login: Option<Spanned<String>>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) oauth: Option<Spanned<OAuth>>,
}

impl Default for RawModel {
    fn default() -> Self {
        Self {
            kind: unwritten(ModelKind::Offline),
            base_url: None,
            model: String::new(),
            tools: true,
            images: false,
            price: unwritten(RawPrice::default()),
            commands_offline: false,
            key_env: None,
            key_file: None,
            login: None,
            headers: BTreeMap::new(),
            oauth: None,
        }
    }
}

/// Price per million tokens, as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawPrice {
    pub(super) input: f64,
    pub(super) cached: Option<f64>,
    pub(super) output: f64,
}
