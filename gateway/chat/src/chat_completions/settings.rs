//! Options of a model with the chat completions protocol.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ChatCompletions, Options};
use crate::{
    azure,
    oauth::HeaderStyle,
    provider::Provider,
    settings::{Common, Section, TEMPERATURE, TOKENS, Wrong, between},
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
}

impl Section for Settings {
    fn wrong(&self) -> Vec<Wrong> {
        let temperature = between("temperature", self.temperature, TEMPERATURE);
        temperature.into_iter().chain(between("max_tokens", self.max_tokens, TOKENS)).collect()
    }

    fn base_url(&self) -> Option<&'static str> {
        None
    }

    fn key_style(&self) -> HeaderStyle {
        azure::key_style(self.azure)
    }

    fn address(&self, base_url: &str) -> String {
        azure::address(base_url, self.api_version.as_deref())
    }

    fn provider(&self, common: Common<'_>) -> Arc<dyn Provider> {
        let mut options = Options::new(common.model);
        options.tools = common.tools;
        options.images = common.images;
        options.temperature = self.temperature;
        options.extra = self.extra.clone();
        if let Some(tokens) = self.max_tokens {
            // A request's own limit overwrites this one.
            options.extra.entry(options.max_tokens_field.clone()).or_insert_with(|| tokens.into());
        }
        if let Some(effort) = &self.reasoning_effort {
            options.extra.insert("reasoning_effort".into(), effort.clone().into());
        }
        Arc::new(ChatCompletions::new(options))
    }
}
