//! Options of a model with the Anthropic Messages protocol, and the envelope of Claude Code accounts.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Anthropic, BASE_URL, Flavour as Backend, KEY_HEADER, OAUTH_BETA, Options, THINKING_TOKENS_MIN};
use crate::{
    oauth::HeaderStyle,
    provider::Provider,
    settings::{Common, Section, TEMPERATURE, TOKENS, TOKENS_MAX, Wrong, between, only_with},
};

/// The options as configured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    thinking_tokens: Option<u32>,
    extra: Map<String, Value>,
    flavour: Option<Flavour>,
    account: Option<String>,
    beta: Option<String>,
    system_first: Vec<String>,
}

/// Envelopes for OAuth bearers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Flavour {
    /// For coding assistant accounts.
    ClaudeCode,
}

impl Section for Settings {
    fn wrong(&self) -> Vec<Wrong> {
        let no_envelope = self.flavour.is_none();
        let only = |option, is_given| only_with("claude_code", option, no_envelope && is_given);
        [
            between("temperature", self.temperature, TEMPERATURE),
            between("max_tokens", self.max_tokens, TOKENS),
            between("thinking_tokens", self.thinking_tokens, THINKING_TOKENS_MIN..=TOKENS_MAX),
            only("account", self.account.is_some()),
            only("beta", self.beta.is_some()),
            only("system_first", !self.system_first.is_empty()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn base_url(&self) -> Option<&'static str> {
        Some(BASE_URL)
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
        options.max_tokens = self.max_tokens.unwrap_or(options.max_tokens);
        options.thinking_tokens = self.thinking_tokens;
        options.extra = self.extra.clone();
        if self.flavour.is_some() {
            options.flavour = Backend::ClaudeCode {
                beta: self.beta.clone().unwrap_or_else(|| OAUTH_BETA.to_owned()),
                system: self.system_first.clone(),
                user_id: self.account.clone(),
            };
        }
        Arc::new(Anthropic::new(options))
    }
}
