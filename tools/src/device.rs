//! Tools that the glasses offer: their word is checked before it is believed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use gateway_core::vocab::{Phrases, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    limits::{
        DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, REPLY_BYTES_MAX, SCHEMA_BYTES_MAX, TEMPLATE_BYTES_MAX, TEMPLATES_MAX,
        TOOLS_PER_DEVICE_MAX,
    },
    registry::{self, RegisterError, Registry, Scope, Source},
    reply::cut,
    runner::{RunContext, Runner},
};

/// A tool as the glasses offer it, straight from the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Name, for example `display.brightness`.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of type object; empty: no arguments.
    pub schema_json: String,
    /// `{"en": ["...", "..."]}`: templates by language; may be empty.
    pub phrases_json: String,
    /// How to say the result; may be empty.
    pub reply: String,
    /// What it may do and needs. `always` and `persistent` are the gateway's to decide and ignored.
    pub flags: ToolFlags,
    /// Longest time that a call may take; 0: the gateway's default.
    pub timeout_ms: u32,
}

/// Why an offered tool was left out. The others are taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("device tool '{tool}' was left out: {reason}")]
pub struct LeftOut {
    /// Its name, cut to the limit.
    pub tool: String,
    /// In words.
    pub reason: String,
}

/// Milliseconds that a device tool may take: a photo over a weak link.
const DEVICE_MS_MAX: u32 = 30_000;

/// Offers the device's tools to its own sessions, in place of what it offered before. What is
/// wrong with single tools is told and does not keep the others out.
pub fn register(registry: &Registry, device: &str, offers: Vec<Offer>) -> Result<(u64, Vec<LeftOut>), RegisterError> {
    let mut left_out = Vec::new();
    let mut specs = Vec::new();
    let mut names = BTreeSet::new();
    // A name that everybody knows is not for a device to redefine.
    let taken = registry.snapshot("", "");
    for (at, offer) in offers.into_iter().enumerate() {
        let tool = cut(&offer.name, NAME_BYTES_MAX);
        let checked = if at >= TOOLS_PER_DEVICE_MAX {
            Err(format!("only {TOOLS_PER_DEVICE_MAX} tools are taken of one device"))
        } else if taken.find(&offer.name).is_some() {
            Err("the name belongs to a tool that everybody is offered".to_owned())
        } else if !names.insert(offer.name.clone()) {
            Err("the name was offered twice".to_owned())
        } else {
            spec(offer)
        };
        match checked {
            Ok(spec) => specs.push(spec),
            Err(reason) => left_out.push(LeftOut { tool, reason }),
        }
    }
    let revision = registry.register(
        Source::Device(device.to_owned()),
        Scope::Device(device.to_owned()),
        specs,
        Arc::new(DeviceRunner { device: device.to_owned() }),
    )?;
    Ok((revision, left_out))
}

/// Takes back the device's tools, as when its session ends.
pub fn unregister(registry: &Registry, device: &str) -> Option<u64> {
    registry.unregister(&Source::Device(device.to_owned()), &Scope::Device(device.to_owned()))
}

/// Turns an offer into a definition.
pub fn spec(offer: Offer) -> Result<ToolSpec, String> {
    for (what, text, max) in [
        ("description", &offer.description, DESCRIPTION_BYTES_MAX),
        ("schema", &offer.schema_json, SCHEMA_BYTES_MAX),
        ("phrases", &offer.phrases_json, TEMPLATES_MAX * TEMPLATE_BYTES_MAX),
        ("reply", &offer.reply, REPLY_BYTES_MAX),
    ] {
        if text.len() > max {
            let bytes = text.len();
            return Err(format!("{what}: {bytes} bytes; at most {max} are accepted"));
        }
    }
    let printable = |text: &str| crate::arguments::clean(text);
    let reply = printable(&offer.reply);
    let spec = ToolSpec {
        description: printable(&offer.description),
        input_schema: schema(&offer.schema_json)?,
        phrases: phrases(&offer.phrases_json)?,
        reply: (!reply.is_empty()).then_some(reply),
        guidance: None,
        flags: ToolFlags { always: true, persistent: false, ..offer.flags },
        timeout_ms: (offer.timeout_ms > 0).then_some(offer.timeout_ms.min(DEVICE_MS_MAX)),
        name: offer.name,
        ..ToolSpec::default()
    };
    match registry::check(&spec) {
        Ok(_) => Ok(spec),
        Err(RegisterError::Invalid { pointer, reason, .. }) => Err(format!("at '{pointer}': {reason}")),
        Err(other) => Err(other.to_string()),
    }
}

fn schema(json: &str) -> Result<Value, String> {
    if json.trim().is_empty() {
        return Ok(serde_json::json!({
            "type": "object", "properties": {}, "additionalProperties": false
        }));
    }
    // The parser refuses more than 128 levels by itself.
    serde_json::from_str(json).map_err(|error| format!("schema: not JSON: {error}"))
}

fn phrases(json: &str) -> Result<Vec<Phrases>, String> {
    if json.trim().is_empty() {
        return Ok(Vec::new());
    }
    let value: Value = serde_json::from_str(json).map_err(|error| format!("phrases: not JSON: {error}"))?;
    let by_language = BTreeMap::<String, Vec<String>>::deserialize(&value)
        .map_err(|error| format!("phrases: a language tag and its templates are needed: {error}"))?;
    Ok(by_language.into_iter().map(|(language, templates)| Phrases { language, templates }).collect())
}

struct DeviceRunner {
    device: String,
}

#[async_trait]
impl Runner for DeviceRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        // The glasses cannot take back what they have begun: what changes something is waited for.
        let cancel = if context.flags.read_only { context.cancel } else { CancellationToken::new() };
        context.ports.device.call(&self.device, &call.name, call.arguments, context.deadline, cancel).await
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
