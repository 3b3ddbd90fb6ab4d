//! Effects of the standard library of programs: they are no calls of tools, and belong to the account of a program all
//! the same.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolError, ToolResult};

use super::NestedCalls;
use crate::{port_error::PortError, spoken, wording::words};

/// Records effects that change something, so that a repetition after a restart is told of them. The executor
/// implements it.
#[async_trait]
pub(crate) trait Effects: Debug + Send + Sync {
    /// Records that one is about to begin; when this returns, it is on disk.
    async fn begin(&self, number: usize, name: &str, arguments: &str) -> Result<(), PortError>;
    /// Adds the outcome.
    fn end(&self, number: usize, name: &str, arguments: &str, result: &ToolResult);
    /// Now, in microseconds.
    fn now_us(&self) -> u64;
}

/// An effect that has begun. If it is dropped before its end is told, it is unknown what was done.
#[derive(Debug)]
pub struct Effect {
    calls: NestedCalls,
    effects: Arc<dyn Effects>,
    number: usize,
    name: String,
    /// Redacted and cut.
    arguments: String,
    changes: bool,
    began_us: u64,
    has_ended: bool,
}

impl Effect {
    /// Records it.
    pub(super) async fn begin(
        calls: NestedCalls,
        (number, name, arguments): (usize, &str, String),
        changes: bool,
    ) -> Result<Self, ToolError> {
        let effects = Arc::clone(&calls.0.effects);
        let began_us = effects.now_us();
        let name = name.to_owned();
        let mut effect = Self { calls, effects, number, name, arguments, changes, began_us, has_ended: false };
        if changes && let Err(error) = effect.effects.begin(number, &effect.name, &effect.arguments).await {
            tracing::error!(%error, "an intent could not be written down");
            let message = format!("Nothing was changed: {error}");
            let result = ToolResult::failed(ErrorCode::ExecutionError, message.clone(), false);
            effect.settle(&result, false);
            return Err(ToolError { code: ErrorCode::ExecutionError, message, retryable: false });
        }
        Ok(effect)
    }

    /// It has ended so.
    pub fn end(mut self, failed: Option<ToolError>) {
        let result = ToolResult { error: failed, ..ToolResult::default() };
        if self.changes {
            self.effects.end(self.number, &self.name, &self.arguments, &result);
        }
        self.settle(&result, true);
    }

    fn settle(&mut self, result: &ToolResult, begun: bool) {
        self.has_ended = true;
        let ms = self.effects.now_us().saturating_sub(self.began_us) / 1_000;
        self.calls.end(self.number, result, begun, ms);
    }
}

impl Drop for Effect {
    fn drop(&mut self) {
        if !self.has_ended {
            let message = "Given up in the middle; whether it was done is unknown.";
            self.settle(&ToolResult::failed(ErrorCode::Cancelled, message, false), true);
        }
    }
}

/// The name for people of a tool, or of a function of the standard library.
pub(crate) fn title(name: &str) -> String {
    let known = match name {
        "std.fs.writeFile" => "Write a file",
        "std.fs.appendFile" => "Add to a file",
        "std.fs.remove" => "Remove a file",
        "std.fs.mkdir" => "Make a folder",
        "std.http.request" => "Send a request",
        _ => return spoken::capitalised(&words(name)),
    };
    known.to_owned()
}
