//! Access to private parsers, for `tests/fuzz` only.

use gateway_core::vocab::{ToolResult, ToolSpec};

use crate::{builtin, mcp};

/// An MCP server's definition of a tool.
pub fn mcp_tool(json: &[u8]) -> Option<ToolSpec> {
    mcp::client::fuzzing::tool(json)
}

/// An MCP server's result of a call.
pub fn mcp_result(json: &[u8]) -> Option<ToolResult> {
    mcp::client::fuzzing::result(json)
}

/// What the calculator makes of a text.
pub fn calculation(text: &str) -> Option<String> {
    builtin::calculation(text)
}
