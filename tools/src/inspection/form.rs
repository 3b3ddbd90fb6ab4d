//! The common form of the tools for an operator's programs: who sees them, that they are for no conversation, and what a
//! reading tool declares.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::Value;

use crate::{
    arguments::{Arguments, Refusal},
    builtin::{BUILT_IN_MS_MAX, Definition, Tool},
    registry::RunContext,
};

/// Read-only, and of no interest to the ledger.
pub(super) const READ_ONLY: ToolFlags = ToolFlags {
    read_only: true,
    idempotent: true,
    destructive: false,
    requires_approval: false,
    always: false,
    persistent: false,
    requires_display: false,
    slow: false,
};

/// What a tool that only reads declares, without arguments.
pub(super) fn reads(name: &'static str, title: &'static str, description: &'static str) -> Definition {
    Definition {
        name,
        title,
        description,
        properties: Value::Object(serde_json::Map::new()),
        required: &[],
        phrases: &[],
        guidance: None,
        flags: READ_ONLY,
    }
}

/// A result for programs, and a sentence for people who read along.
pub(super) fn told(data: Value, say: impl Into<String>) -> ToolResult {
    ToolResult { data: Some(data), say: Some(say.into()), ..ToolResult::default() }
}

/// What differs between these tools.
#[async_trait]
pub(super) trait Inspects: Send + Sync {
    /// Under which heading people find it.
    const CATEGORY: &'static str;

    /// Its name, schema, phrases and effects, from which its registered form is made.
    fn definition(&self) -> Definition;

    /// The question before a call that requires approval.
    fn approval(&self) -> Option<&'static str> {
        None
    }

    /// Longest time of a call in milliseconds.
    fn timeout_ms(&self) -> u32 {
        BUILT_IN_MS_MAX
    }

    /// Carries out a call. The arguments have been checked against the schema.
    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal>;
}

/// A tool of this form.
pub(super) struct ForOperators<T>(pub(super) T);

#[async_trait]
impl<T: Inspects> Tool for ForOperators<T> {
    fn definition(&self) -> Definition {
        self.0.definition()
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        Some(&[ClientClass::Internal])
    }

    fn category(&self) -> Option<&'static str> {
        Some(T::CATEGORY)
    }

    fn is_for_operators(&self) -> bool {
        true
    }

    fn approval(&self) -> Option<&'static str> {
        self.0.approval()
    }

    fn timeout_ms(&self) -> u32 {
        self.0.timeout_ms()
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        self.0.run(context, arguments).await
    }
}
