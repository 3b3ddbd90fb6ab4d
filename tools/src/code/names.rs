//! Names of the tools that let a model write programs.

/// Name of the tool that lists modules.
pub const API: &str = "code.api";
/// Name of the tool that runs programs.
pub const RUN: &str = "code.run";
/// Name of the tool that keeps programs.
pub const KEEP: &str = "code.keep";

/// Whether a tool of this name is one of those that write programs.
pub fn is_code(tool: &str) -> bool {
    matches!(tool, API | RUN)
}
