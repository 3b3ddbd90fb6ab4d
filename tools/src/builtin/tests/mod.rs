//! Tests of the built-in tools through the executor, on a virtual clock.

mod calculator;
mod clock;
mod device;
mod every_tool;
mod notes;
mod reminders;
mod timers;

use std::sync::Arc;

use gateway_core::vocab::{Content, ErrorCode, ToolResult};
use serde_json::Value;

use crate::{
    executor::Executor,
    test_support::{World, call, context},
};

struct Fixture {
    world: Arc<World>,
    executor: Executor,
}

impl Fixture {
    fn new(world: Arc<World>) -> Self {
        let executor = world.executor();
        Self { world, executor }
    }

    fn usual() -> Self {
        Self::new(World::usual())
    }

    async fn run(&self, name: &str, arguments: Value) -> ToolResult {
        self.executor.call(context(), call(name, arguments)).await
    }

    /// The spoken text; the call must succeed.
    async fn say(&self, name: &str, arguments: Value) -> String {
        let result = self.run(name, arguments.clone()).await;
        assert!(!result.is_error(), "{name} {arguments}: {result:?}");
        assert!(result.show.is_some() && result.data.is_some() && !result.content.is_empty());
        result.say.expect("words")
    }

    /// The error code and the spoken text; the call must fail.
    async fn fail(&self, name: &str, arguments: Value) -> (ErrorCode, String) {
        let result = self.run(name, arguments.clone()).await;
        let error = result.error.unwrap_or_else(|| panic!("{name} {arguments} went well"));
        (error.code, result.say.expect("words"))
    }

    fn timers(&self) -> usize {
        let entries = self.world.entries.lock().unwrap();
        entries.iter().filter(|(_, entry)| entry.kind.is_timer()).count()
    }

    fn reminders(&self) -> usize {
        let entries = self.world.entries.lock().unwrap();
        entries.iter().filter(|(_, entry)| !entry.kind.is_timer()).count()
    }
}

fn shown(result: &ToolResult) -> (&str, &str) {
    match &result.show {
        Some(Content::Card { title, text }) => (title, text),
        other => panic!("{other:?}"),
    }
}
