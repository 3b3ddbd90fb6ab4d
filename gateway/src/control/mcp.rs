//! Requests about the MCP servers behind the gateway.

use std::time::Duration;

use tools::mcp::client::{FailedCall, State, Status};

use super::{Answer, McpServer, reply::done};
use crate::{mcp::Mcp, units::number_of};

/// Last output lines of a failed server: the end of a traceback.
const WORDS_MAX: usize = 3;

pub(super) fn list(mcp: &Mcp) -> Answer {
    Answer::McpServers { servers: servers(mcp) }
}

pub(super) fn servers(mcp: &Mcp) -> Vec<McpServer> {
    let pool = mcp.pool();
    let told = |status: Status| {
        let seconds = |(text, ago): (String, Duration)| (text, ago.as_secs());
        let words_of = |(call, ago): &(FailedCall, Duration)| (format!("{}: {}", call.tool, call.why), ago.as_secs());
        let failed = status.last_down.is_some() || status.last_failure.is_some();
        let words = pool.words(&status.name).filter(|_| failed).unwrap_or_default();
        let (state, detail) = match status.state {
            State::Up(version) => ("up", version),
            State::Down(why) => ("down", why),
            State::Starting => ("starting", "no answer yet".to_owned()),
        };
        McpServer {
            name: status.name,
            state: state.to_owned(),
            detail,
            for_s: status.since.as_secs(),
            tools: status.tools,
            last_down: status.last_down.map(seconds),
            last_failure: status.last_failure.as_ref().map(words_of),
            last_failed: status.last_failure.map(|(call, _)| (call.tool, call.code)),
            last_words: words.into_iter().rev().take(WORDS_MAX).rev().map(|(_, line)| line).collect(),
        }
    };
    pool.statuses().into_iter().map(told).collect()
}

pub(super) async fn restart(mcp: &Mcp, name: &str) -> Result<Answer, String> {
    let status = mcp.pool().restart(name).await.ok_or_else(|| unknown(name))?;
    match status.state {
        State::Up(version) => Ok(done(format!("{name} is up: {}, MCP {version}", number_of(status.tools, "tool")))),
        State::Down(why) => Err(format!("{name} is down: {why}; `lorgnette mcp logs {name}` shows what it said")),
        State::Starting => Err(format!("{name} has not answered yet; `lorgnette mcp list` shows how it goes on")),
    }
}

pub(super) fn logs(mcp: &Mcp, name: &str) -> Result<Answer, String> {
    let lines = mcp.pool().words(name).ok_or_else(|| unknown(name))?;
    Ok(Answer::Lines { lines: lines.into_iter().map(|(ago, line)| (ago.as_secs(), line)).collect() })
}

fn unknown(name: &str) -> String {
    format!("no MCP server is called `{name}`; `lorgnette mcp list` shows them, the section [mcp.servers] names them")
}
