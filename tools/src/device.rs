//! Tools that the glasses offer: their definitions are validated before use.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::{ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};

use crate::{
    definition::{self, Hints, Naming, Report},
    limits::{DEFINITION_BYTES_MAX, NAME_BYTES_MAX, TOOLS_PER_DEVICE_MAX},
    registry::{self, RegisterError, Registry, RunContext, Runner},
    reply::cut,
    source::{Scope, Source},
};

/// A tool as the glasses offer it, as received.
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
    /// Its declared effects.
    pub hints: Hints,
    /// Maximum duration of a call; `None`: the gateway's default.
    pub timeout_ms: Option<u32>,
}

/// A problem with an offered tool: it was rejected, or a part of it could not be used. The other tools are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Its name, cut to the limit.
    pub tool: String,
    /// Whether it was rejected.
    pub left_out: bool,
    /// Description.
    pub reason: String,
}

/// Maximum milliseconds of a device tool: enough for a photo over a weak link.
const DEVICE_MS_MAX: u32 = 30_000;

/// Registers the device's tools for its own sessions, in place of its previous ones. Problems of single tools are
/// returned and do not affect the others.
pub fn register(registry: &Registry, device: &str, offers: Vec<Offer>) -> Result<(u64, Vec<Remark>), RegisterError> {
    let mut remarks = Vec::new();
    let mut specs = Vec::new();
    let mut names = BTreeSet::new();
    for (at, offer) in offers.into_iter().enumerate() {
        let tool = cut(&offer.name, NAME_BYTES_MAX);
        let checked = if at >= TOOLS_PER_DEVICE_MAX {
            Err(format!("only {TOOLS_PER_DEVICE_MAX} tools are taken of one device"))
        } else if registry.has_global(&offer.name) {
            Err("the name belongs to a tool that everybody is offered".to_owned())
        } else if !names.insert(offer.name.clone()) {
            Err("the name was offered twice".to_owned())
        } else {
            spec(offer)
        };
        match checked {
            Ok((spec, report)) => {
                specs.push(spec);
                let lost = (!report.is_empty()).then(|| report.to_string());
                remarks.extend(lost.map(|reason| Remark { tool, left_out: false, reason }));
            }
            Err(reason) => remarks.push(Remark { tool, left_out: true, reason }),
        }
    }
    let source = Source::Device(device.to_owned());
    let runner = Arc::new(DeviceRunner { device: device.to_owned() });
    let revision = registry.register(source.clone(), Scope::Device(device.to_owned()), specs, runner)?;
    let told = |remark: &Remark| {
        let what = if remark.left_out { "was left out" } else { "was taken, but" };
        format!("tool '{}' {what}: {}", remark.tool, remark.reason)
    };
    registry.report(&source, remarks.iter().map(told).collect());
    Ok((revision, remarks))
}

/// Removes the device's tools, for example when its session ends.
pub fn unregister(registry: &Registry, device: &str) -> Option<u64> {
    registry.unregister(&Source::Device(device.to_owned()), &Scope::Device(device.to_owned()))
}

/// Parses an offer like any other definition; returns the tool, and the parts that could not be used.
///
/// # Errors
/// Why it was rejected.
pub fn spec(offer: Offer) -> Result<(ToolSpec, Report), String> {
    let Offer { name, description, schema_json, phrases_json, reply, hints, timeout_ms } = offer;
    let definition = json!({
        "name": name,
        "description": description,
        "inputSchema": parsed("schema", &schema_json)?,
        "sentenceTemplates": parsed("phrases", &phrases_json)?,
        "replyTemplate": crate::arguments::clean(&reply),
        "timeoutMs": timeout_ms.map(|ms| ms.min(DEVICE_MS_MAX)),
        // The glasses' own tools are always offered.
        "always": true,
    });
    let (mut spec, _, report) = definition::read(&definition, Naming::AsIs)
        .map_err(|error| format!("at '{}': {}", error.pointer, error.reason))?;
    if spec.name != name {
        return Err("at '/name': only letters, digits, '.', '_', '-' and '/' are accepted".to_owned());
    }
    spec.flags = ToolFlags { always: true, ..hints.flags() };
    match registry::check(&spec) {
        Ok(_) => Ok((spec, report)),
        Err(RegisterError::Invalid { pointer, reason, .. }) => Err(format!("at '{pointer}': {reason}")),
        Err(other) => Err(other.to_string()),
    }
}

/// Parses a part that is sent as JSON; empty means absent.
fn parsed(what: &str, json: &str) -> Result<Option<Value>, String> {
    if json.len() > DEFINITION_BYTES_MAX {
        return Err(format!("{what}: {} bytes; at most {DEFINITION_BYTES_MAX} are accepted", json.len()));
    }
    if json.trim().is_empty() {
        return Ok(None);
    }
    // The parser itself rejects more than 128 levels.
    serde_json::from_str(json).map(Some).map_err(|error| format!("{what}: not JSON: {error}"))
}

struct DeviceRunner {
    device: String,
}

#[async_trait]
impl Runner for DeviceRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        context.ports.device.call(&self.device, context.turn, call, context.deadline, context.cancel).await
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
