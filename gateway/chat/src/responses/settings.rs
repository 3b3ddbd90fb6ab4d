//! Options of a model with the OpenAI Responses protocol, and the envelope of the backend for ChatGPT accounts.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{BASE_URL, CHATGPT_URL, Options, Responses};
use crate::{
    azure,
    oauth::HeaderStyle,
    provider::Provider,
    settings::{Common, Section, TEMPERATURE, TOKENS, Wrong, between, only_with},
};

/// The options as configured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    reasoning_effort: Option<String>,
    azure: bool,
    api_version: Option<String>,
    extra: Map<String, Value>,
    flavour: Option<Flavour>,
    account: Option<String>,
}

/// Envelopes for OAuth bearers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Flavour {
    /// For personal accounts.
    Chatgpt,
}

impl Section for Settings {
    fn wrong(&self) -> Vec<Wrong> {
        let no_envelope = self.flavour.is_none();
        [
            between("temperature", self.temperature, TEMPERATURE),
            between("max_tokens", self.max_tokens, TOKENS),
            only_with("chatgpt", "account", no_envelope && self.account.is_some()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn base_url(&self) -> Option<&'static str> {
        Some(if self.flavour.is_some() { CHATGPT_URL } else { BASE_URL })
    }

    fn wants_login(&self) -> Option<&'static str> {
        self.flavour.map(|_| "flavour")
    }

    fn key_style(&self) -> HeaderStyle {
        azure::key_style(self.azure)
    }

    fn address(&self, base_url: &str) -> String {
        azure::address(base_url, self.api_version.as_deref())
    }

    fn headers(&self) -> Result<Vec<(&'static str, String)>, getrandom::Error> {
        if self.flavour.is_none() {
            return Ok(Vec::new());
        }
        let mut headers = vec![
            ("openai-beta", "responses=experimental".to_owned()),
            ("originator", "lorgnette".to_owned()),
            ("session_id", random_id()?),
        ];
        headers.extend(self.account.clone().map(|account| ("chatgpt-account-id", account)));
        Ok(headers)
    }

    fn provider(&self, common: Common<'_>) -> Arc<dyn Provider> {
        let mut options = Options::new(common.model);
        options.tools = common.tools;
        options.images = common.images;
        options.temperature = self.temperature;
        options.reasoning_effort = self.reasoning_effort.clone();
        options.serial_follow_ups = self.flavour.is_some();
        options.length = self.flavour.is_none();
        options.extra = self.extra.clone();
        if let Some(tokens) = self.max_tokens.filter(|_| options.length) {
            // A request's own limit overwrites this one.
            options.extra.entry("max_output_tokens").or_insert_with(|| tokens.into());
        }
        Arc::new(Responses::new(options))
    }
}

/// A random id of this process, in the form of a UUID.
fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    let number = u128::from_be_bytes(bytes);
    let (a, b, c) = (number >> 96, (number >> 80) & 0xffff, (number >> 64) & 0xfff);
    let (d, e) = ((number >> 48) & 0xfff, number & 0xffff_ffff_ffff);
    Ok(format!("{a:08x}-{b:04x}-4{c:03x}-a{d:03x}-{e:012x}"))
}
