//! `clear_logs`: deletes lines of the gateway's log for good, after a question.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::{ToolFlags, ToolResult};
use serde_json::json;

use super::{
    LOGS,
    form::{Inspects, READ_ONLY, reads, told},
    logs::{LogFilter, LogScope, Logs},
    query_logs::{moment_of, wrong},
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::Definition,
    registry::RunContext,
};

/// Milliseconds of a call: what is left is copied into a new file, which an SD card may take its time for.
const CLEAR_MS_MAX: u32 = 60_000;

pub(super) struct ClearLogs(pub(super) Arc<dyn Logs>);

#[async_trait]
impl Inspects for ClearLogs {
    const CATEGORY: &'static str = LOGS;

    fn definition(&self) -> Definition {
        Definition {
            properties: json!({
                "before": {"type": "string", "description": "Older than this: 90m, 12h, 30d, or a time in RFC 3339."},
                "level": {"type": "string", "enum": ["error", "warn", "info"],
                    "description": "At least this severe, as in query_logs."},
            }),
            flags: ToolFlags {
                read_only: false,
                destructive: true,
                requires_approval: true,
                persistent: true,
                ..READ_ONLY
            },
            ..reads(
                "clear_logs",
                "Delete lines of the gateway's log",
                "Deletes lines of the gateway's log for good, after a question: those for which all conditions hold, or all \
                 lines without any. Returns their number.",
            )
        }
    }

    fn approval(&self) -> Option<&'static str> {
        Some("Shall I delete lines of the gateway's log for good?")
    }

    fn timeout_ms(&self) -> u32 {
        CLEAR_MS_MAX
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let level = arguments.text_optional("level", 16)?.map(|level| level.parse()).transpose().map_err(wrong)?;
        let before_wall_ms = moment_of(context, &arguments, "before")?;
        let cleared =
            self.0.clear(LogFilter { level, before_wall_ms, ..LogFilter::default() }, LogScope::of(context)).await?;
        let say = format!("Deleted {cleared} lines of the log.");
        Ok(told(json!({"cleared": cleared}), say))
    }
}
