//! Questions in the words of a tool's source: data, and never the reason why nobody is asked.

use async_trait::async_trait;
use gateway_core::vocab::{ApprovalOutcome, Question, ToolFlags, ToolSpec};
use serde_json::json;

use super::*;
use crate::{
    limits::MESSAGE_BYTES_MAX,
    registry::{self, RunContext, Runner},
    source::{Scope, Source},
    test_support::{World, call, context},
};

#[derive(Clone, Copy)]
enum Words {
    Say(&'static str),
    Add(&'static str),
    None,
    Panic,
    Never,
}

struct Asking(Words);

#[async_trait]
impl Runner for Asking {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> ToolResult {
        ToolResult::said("done")
    }

    async fn words(&self, asking: &registry::Asking<'_>) -> Option<registry::Words> {
        assert_eq!((asking.local_name, &asking.call.arguments["path"]), ("test.tool", &json!("a.txt")));
        match self.0 {
            Words::Say(words) => Some(registry::Words::Whole(words.to_owned())),
            Words::Add(words) => Some(registry::Words::Added(words.to_owned())),
            Words::None => None,
            Words::Panic => panic!("as told"),
            Words::Never => std::future::pending().await,
        }
    }
}

/// The question before a call of a tool that asks.
async fn asked(words: Words) -> Question {
    let world = World::usual();
    *world.consent.lock().unwrap() = ApprovalOutcome::Denied;
    let registry = Registry::new();
    let spec = ToolSpec {
        name: "test.tool".into(),
        description: "Deletes.".into(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        flags: ToolFlags { requires_approval: true, ..ToolFlags::default() },
        approval: Some("Really {path}?".into()),
        ..ToolSpec::default()
    };
    registry.register(Source::Capability("x".into()), Scope::Global, vec![spec], Arc::new(Asking(words))).unwrap();
    let executor = Executor::new(Arc::new(registry), world.ports());
    let result = executor.call(context(), call("test.tool", json!({"path": "a.txt"}))).await;
    assert!(result.is_error(), "nothing runs without an approval: {result:?}");
    let mut asked = world.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    asked.remove(0).question
}

#[tokio::test(start_paused = true)]
async fn words_are_cleaned_and_shown_with_all_arguments() {
    let question = asked(Words::Say("Delete\u{202e} file:\n\u{0}a.txt?")).await;
    assert_eq!(question.said, "Delete file: a.txt?");
    assert_eq!(question.shown, "Delete file: a.txt?\npath: \"a.txt\"");
    let question = asked(Words::Say(Box::leak("x".repeat(10_000).into_boxed_str()))).await;
    assert!(question.said.len() <= MESSAGE_BYTES_MAX && question.shown.ends_with("path: \"a.txt\""), "{question:?}");
}

#[tokio::test(start_paused = true)]
async fn without_words_the_wearer_is_asked_all_the_same() {
    for words in
        [Words::None, Words::Panic, Words::Never, Words::Say(" \u{200b}\n"), Words::Say("?!"), Words::Add("I checked.")]
    {
        assert_eq!(asked(words).await.said, "Really \"a.txt\"?");
    }
}
