//! Options of a model with Gemini's `generateContent`, and the envelope of Cloud Code accounts.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{BASE_URL, CLOUD_CODE_URL, Flavour as Backend, Gemini, KEY_HEADER, Options};
use crate::{
    oauth::HeaderStyle,
    provider::Provider,
    settings::{Common, Section, TEMPERATURE, TOKENS, TOKENS_MAX, Wrong, between, only_with},
};

/// Smallest thinking budget: the same as Anthropic's, so that the models are interchangeable.
const THINKING_TOKENS_MIN: u32 = 1024;

/// The options as configured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    thinking_tokens: Option<u32>,
    extra: Map<String, Value>,
    flavour: Option<Flavour>,
    project: Option<String>,
}

/// Envelopes for OAuth bearers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Flavour {
    /// For coding assistant accounts.
    CloudCode,
}

impl Section for Settings {
    fn wrong(&self) -> Vec<Wrong> {
        let no_envelope = self.flavour.is_none();
        [
            between("temperature", self.temperature, TEMPERATURE),
            between("max_tokens", self.max_tokens, TOKENS),
            between("thinking_tokens", self.thinking_tokens, THINKING_TOKENS_MIN..=TOKENS_MAX),
            only_with("cloud_code", "project", no_envelope && self.project.is_some()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn base_url(&self) -> Option<&'static str> {
        Some(if self.flavour.is_some() { CLOUD_CODE_URL } else { BASE_URL })
    }

    fn wants_login(&self) -> Option<&'static str> {
        self.flavour.map(|_| "flavour")
    }

    fn key_style(&self) -> HeaderStyle {
        HeaderStyle::Named(KEY_HEADER)
    }

    fn provider(&self, common: Common<'_>) -> Arc<dyn Provider> {
        let mut options = Options::new(common.model);
        options.tools = common.tools;
        options.images = common.images;
        options.temperature = self.temperature;
        options.max_tokens = self.max_tokens;
        options.thinking_tokens = self.thinking_tokens;
        options.extra = self.extra.clone();
        if self.flavour.is_some() {
            options.flavour = Backend::CloudCode { project: self.project.clone() };
        }
        Arc::new(Gemini::new(options))
    }
}
