//! Definitions and results of a server as its JSON, for `tests/fuzz` only.

use std::collections::BTreeMap;

use gateway_core::vocab::{ToolResult, ToolSpec};

use super::convert;
use crate::mcp::config::{Approval, Reach, Server};

/// A tool as a server lists it; `None`: the bytes are no such JSON.
pub(crate) fn tool(json: &[u8]) -> Option<ToolSpec> {
    let tool = serde_json::from_slice(json).ok()?;
    let server = Server {
        name: "files".into(),
        reach: Reach::Http { url: "https://mcp.example/".into(), headers: BTreeMap::new() },
        allow: None,
        deny: Vec::new(),
        clients: None,
        users: Vec::new(),
        approval: Approval::default(),
        timeout_ms: None,
        phrases: BTreeMap::new(),
        secrets: Vec::new(),
    };
    Some(convert::spec(&server, &tool, &mut Vec::new()))
}

/// What a server answers to a call; `None`: the bytes are no such JSON.
pub(crate) fn result(json: &[u8]) -> Option<ToolResult> {
    serde_json::from_slice(json).ok().map(convert::result)
}
