//! Tools that a measurement puts into the gateway: one whose answer is long, and one before which the wearer is asked.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use firmware_sim::{Event, Glasses, Seen};
use gateway_core::vocab::{Phrases, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::json;
use tokio::time::timeout;
use tools::registry::{RunContext, Runner};
use tools::source::{Scope, Source};

use super::TestGateway;

/// Typed, it has an answer of about a quarter of a minute.
pub const RECITE: &str = "recite the lighthouse";
/// Typed, it makes a tool ask whether it may.
pub const WIPE: &str = "wipe the bench list";
const RECITES: &str = "com.example.bench.recite";
const WIPES: &str = "com.example.bench.wipe";
/// None of its words is one that stops an answer.
const RECITED: &str = "The lighthouse on the northern cape is built of grey stone. Its keeper climbs the stairs \
    every evening, lights the lamp, and writes the weather into a book. Ships from many countries pass by in the dark, \
    and their crews know the place by its two short flashes.";
/// How long the first sound may take.
const SOUND_MAX: Duration = Duration::from_secs(20);

struct Planted;

#[async_trait]
impl Runner for Planted {
    async fn run(&self, _context: RunContext, call: ToolCall) -> ToolResult {
        ToolResult::said(if call.name == RECITES { RECITED } else { "The bench list is empty now." })
    }
}

fn spec(name: &str, request: &str, flags: ToolFlags) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("Does this: {request}."),
        input_schema: json!({"type": "object", "properties": {}}),
        phrases: vec![Phrases { language: "en".to_owned(), templates: vec![request.to_owned()] }],
        approval: flags.requires_approval.then(|| "Wipe the bench list?".to_owned()),
        flags,
        ..ToolSpec::default()
    }
}

/// Puts both tools into this gateway.
pub fn plant(gateway: &TestGateway) -> Result<()> {
    let reads = ToolFlags { read_only: true, ..ToolFlags::default() };
    let asks = ToolFlags { persistent: true, requires_approval: true, ..ToolFlags::default() };
    let specs = vec![spec(RECITES, RECITE, reads), spec(WIPES, WIPE, asks)];
    let registry = &gateway.running.services().registry;
    registry.register(Source::Mcp("bench".to_owned()), Scope::Global, specs, Arc::new(Planted))?;
    Ok(())
}

/// Types a request and waits for the first sound of what is said to it: that event, and the number of the next one.
pub async fn sounds(glasses: &Glasses, request: &str) -> Result<(Event, u64)> {
    let mark = glasses.log().mark();
    glasses.text(request).await?;
    let sound = glasses.log().find(mark, |event| matches!(event.seen, Seen::FirstSound { .. }));
    timeout(SOUND_MAX, sound).await.with_context(|| format!("nothing is said to {request:?}"))
}
