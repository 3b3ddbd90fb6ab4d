//! `query_logs`: lines of the gateway's log.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::{
    LOGS,
    form::{Inspects, reads, told},
    logs::{LINES_MAX, LINES_USUAL, LogEntry, LogFilter, LogPage, LogQuery, LogScope, Logs},
    moment,
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::Definition,
    registry::RunContext,
    spoken,
};

/// Characters of a condition: no context, source or word of the log is longer.
const TEXT_CHARS_MAX: usize = 200;

pub(super) struct QueryLogs(pub(super) Arc<dyn Logs>);

/// What is asked of an argument that is wrong.
pub(super) fn wrong(why: String) -> Refusal {
    Refusal::arguments(why, "I can't read that.")
}

/// A moment in the arguments.
pub(super) fn moment_of(
    context: &RunContext,
    arguments: &Arguments<'_>,
    property: &str,
) -> Result<Option<i64>, Refusal> {
    let text = arguments.text_optional(property, TEXT_CHARS_MAX)?;
    let now = context.ports.clock.now().wall_ms;
    text.map(|text| moment::parse(&text, now)).transpose().map_err(|why| wrong(format!("'{property}': {why}")))
}

fn query_of(context: &RunContext, arguments: &Arguments<'_>) -> Result<LogQuery, Refusal> {
    let text = |property| arguments.text_optional(property, TEXT_CHARS_MAX);
    let filter = LogFilter {
        level: text("level")?.map(|level| level.parse()).transpose().map_err(wrong)?,
        context: text("context")?,
        source: text("source")?,
        since_wall_ms: moment_of(context, arguments, "since")?,
        before_wall_ms: None,
        text: text("text")?,
    };
    let limit = arguments.integer("limit").map_or(LINES_USUAL, |limit| usize::try_from(limit).unwrap_or(1));
    let cursor = text("cursor")?.map(|cursor| cursor.parse()).transpose().map_err(wrong)?;
    Ok(LogQuery { filter, limit: limit.clamp(1, LINES_MAX), cursor, scope: LogScope::of(context) })
}

fn row(entry: &LogEntry) -> Value {
    json!({
        "timestamp": moment::written(entry.wall_ms),
        "level": entry.level,
        "context": entry.context,
        "message": entry.message,
        "source": entry.source,
    })
}

#[async_trait]
impl Inspects for QueryLogs {
    const CATEGORY: &'static str = LOGS;

    fn definition(&self) -> Definition {
        Definition {
            properties: json!({
                "level": {"type": "string", "enum": ["error", "warn", "info"], "description": "At least this severe."},
                "context": {"type": "string", "description": "The beginning of a context, such as gateway::mcp."},
                "source": {"type": "string", "description": "gateway, device:ID, app:PACKAGE or mcp:SERVER."},
                "since": {"type": "string", "description": "90m, 12h, 30d, or a time in RFC 3339."},
                "limit": {"type": "integer", "minimum": 1, "maximum": LINES_MAX, "description": "Lines; 100 without it."},
                "text": {"type": "string", "description": "Words in the message."},
                "cursor": {"type": "string", "description": "From the page before."},
            }),
            ..reads(
                "query_logs",
                "Read the gateway's log",
                "Returns lines of the gateway's log, newest first. All conditions must hold. A page has at most 30 KiB; `more` \
                 and `cursor` lead to the next one.",
            )
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let LogPage { logs, cursor } = self.0.query(query_of(context, &arguments)?).await?;
        let mut data = json!({"count": logs.len(), "logs": logs.iter().map(row).collect::<Vec<_>>()});
        if let Some(cursor) = cursor {
            data["more"] = true.into();
            data["cursor"] = cursor.to_string().into();
        }
        let say = format!("{} of the log.", spoken::count(logs.len(), "line"));
        Ok(told(data, say))
    }
}
