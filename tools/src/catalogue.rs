//! Persists the tools of apps and servers, so that they are offered after a restart before their servers respond.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolCall, ToolResult};

pub use crate::registry::{CatalogueStore, StoredSet};
use crate::{
    limits::SOURCE_WAIT_MS_MAX,
    ports::PortError,
    registry::{Registry, RunContext, Runner},
    source::{Scope, Source},
};

impl Registry {
    /// Offers the tools of apps and servers that were known when the gateway stopped, and persists their offers from
    /// now on. Tools of sources that are no longer `known`, or not in this scope, are dropped. Revisions continue after those of earlier runs.
    /// Returns the number of restored tools.
    ///
    /// # Errors
    /// The store cannot be read; nothing is persisted in that case.
    pub fn keep_in(
        self: &Arc<Self>,
        store: Arc<dyn CatalogueStore>,
        known: impl Fn(&Source, &Scope) -> bool,
    ) -> Result<usize, PortError> {
        let (mut restored, last) = (0, store.last_revision()?);
        for set in store.load()? {
            if !known(&set.source, &set.scope) {
                store.forget(&set.source, &set.scope);
                continue;
            }
            let (count, source) = (set.tools.len(), set.source.to_string());
            let waiting =
                Waiting { registry: Arc::downgrade(self), source: set.source.clone(), scope: set.scope.clone() };
            match self.register_named(set.source, set.scope, set.tools, Arc::new(waiting)) {
                Ok(_) => restored += count,
                // It was valid for another version of the gateway; its source will register it again.
                Err(error) => tracing::warn!(source, %error, "tools that were kept do not fit any more"),
            }
        }
        self.set_store(store, last);
        Ok(restored)
    }
}

/// Placeholder for a source that has not responded since the start.
struct Waiting {
    registry: Weak<Registry>,
    source: Source,
    scope: Scope,
}

#[async_trait]
impl Runner for Waiting {
    async fn run(&self, mut context: RunContext, call: ToolCall) -> ToolResult {
        let wait = Duration::from_millis(SOURCE_WAIT_MS_MAX).min(context.deadline);
        match tokio::time::timeout(wait, self.source_is_there(&call.name)).await {
            Ok(Some((runner, local_name))) => {
                context.local_name = local_name;
                context.deadline = context.deadline.saturating_sub(wait);
                runner.run(context, call).await
            }
            Ok(None) => ToolResult::failed(
                ErrorCode::ToolNotFound,
                "The tool is not offered any more; nothing was done.",
                false,
            ),
            Err(_elapsed) => {
                let message = format!("{} has not answered since the start; nothing was done.", self.source);
                ToolResult::failed(ErrorCode::AppNotAvailable, message, true)
            }
        }
    }

    fn is_waiting(&self) -> bool {
        true
    }
}

impl Waiting {
    /// The runner of the tool, once its source has registered; `None` if the source does not offer it.
    async fn source_is_there(&self, name: &str) -> Option<(Arc<dyn Runner>, String)> {
        let mut changes = self.registry.upgrade()?.changes();
        loop {
            changes.mark_unchanged();
            let tools = self.registry.upgrade()?.set(&self.source, &self.scope)?;
            let tool = tools.iter().find(|tool| tool.spec.name == name);
            match tool {
                Some(tool) if tool.runner.is_waiting() => {}
                Some(tool) => return Some((Arc::clone(&tool.runner), tool.local_name.clone())),
                None => return None,
            }
            changes.changed().await.ok()?;
        }
    }
}
