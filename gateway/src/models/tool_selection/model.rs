//! Tool selection by a cheap model, if configured (`router.model`): it gets the tools' names and descriptions, and
//! names those that fit. It has a deadline; if it fails, all tools are offered.

use std::{sync::Arc, time::Duration};

use chat_models::{ChatModel, Request};
use gateway_core::vocab::{Message, ModelEvent, Role};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tools::{
    registry::Specs,
    router::{
        Choice, Query, Router,
        asked::{self, INSTRUCTIONS, TOKENS_MAX},
    },
};

use crate::clock;

/// Deadline in milliseconds: it delays every answer.
const WAIT_MS_MAX: u64 = 1_500;
/// Longest answer in bytes that is read.
const ANSWER_BYTES_MAX: usize = 8 * 1024;
/// Events that may be queued.
const EVENTS_MAX: usize = 16;

/// Asks a cheap model, and waits for its answer no longer than `wait`.
pub(crate) struct ByModel {
    model: Arc<dyn ChatModel>,
    wait: Duration,
}

impl ByModel {
    /// Selection by this model, with the deadline.
    pub(super) fn new(model: Arc<dyn ChatModel>) -> Self {
        Self { model, wait: Duration::from_millis(WAIT_MS_MAX) }
    }

    /// The tools to offer, at most `tools_max`.
    pub(super) async fn choose(&self, router: &Router, tools: &Specs, said: &Query, tools_max: usize) -> Choice {
        if router.has_few(tools) {
            return router.choose(tools, said, tools_max);
        }
        let ranked = router.rank(tools, said);
        let answer = timeout(self.wait, self.ask(asked::question(tools, &ranked, said))).await;
        match answer.ok().flatten().and_then(|answer| asked::ranking(tools, &answer)) {
            Some(chosen) => router.assemble(tools, said, &chosen, true, tools_max),
            None => {
                tracing::debug!(model = self.model.name(), "no choice: all are offered");
                router.assemble(tools, said, &ranked, false, tools_max)
            }
        }
    }

    async fn ask(&self, question: String) -> Option<String> {
        let request = Request {
            system: Some(INSTRUCTIONS.to_owned()),
            messages: vec![Message::text(Role::User, question)],
            now: clock::now(),
            max_tokens: Some(TOKENS_MAX),
            ..Request::default()
        };
        let (events, mut received) = mpsc::channel(EVENTS_MAX);
        let cancel = CancellationToken::new();
        // If the caller stops waiting, the request is cancelled.
        let _stops = cancel.clone().drop_guard();
        let reading = async {
            let mut text = String::new();
            while let Some(event) = received.recv().await {
                match event {
                    ModelEvent::Text(more) if text.len() + more.len() <= ANSWER_BYTES_MAX => text.push_str(&more),
                    ModelEvent::Done { .. } => return Some(text),
                    ModelEvent::Text(_) | ModelEvent::Question { .. } | ModelEvent::Failed { .. } => return None,
                    ModelEvent::Thinking { .. }
                    | ModelEvent::ToolCall(_)
                    | ModelEvent::Chosen(_)
                    | ModelEvent::NotUnderstood { .. } => {}
                }
            }
            None
        };
        let asking = self.model.stream(request, events, cancel);
        tokio::join!(asking, reading).1
    }
}

#[cfg(test)]
mod tests {
    use chat_models::scripted::{Answer, Scripted};
    use gateway_core::vocab::{FailureKind, ToolFlags, ToolSpec};
    use tools::router::Reason;

    use super::*;

    fn tools() -> Specs {
        let flags = ToolFlags { always: true, ..ToolFlags::default() };
        let mut tools = vec![ToolSpec { name: "clock".into(), flags, ..ToolSpec::default() }];
        tools.extend((0..40).map(|number| ToolSpec {
            name: format!("x.{number:02}"),
            description: format!("Does thing {number}.\nMore."),
            ..ToolSpec::default()
        }));
        tools.into_iter().map(Arc::new).collect()
    }

    async fn chosen(answer: Answer) -> (Reason, Vec<String>) {
        let wait = if answer == Answer::hang() { Duration::ZERO } else { Duration::from_secs(60) };
        let model = Arc::new(Scripted::list([answer]));
        let selector = ByModel { model: model.clone(), wait };
        let said = Query { now: "Go".into(), ..Query::default() };
        let choice = selector.choose(&Router::default(), &tools(), &said, 20).await;
        let told = model.requests()[0].messages[0].plain_text();
        assert!(told.contains("- x.07: Does thing 7.") && told.ends_with("The user says: \"Go\""), "{told}");
        assert!(!told.contains("clock"), "what is always on is no question");
        (choice.reason, choice.tools.iter().map(|tool| tool.name.clone()).collect())
    }

    #[tokio::test]
    async fn what_the_model_names_is_offered() {
        let (reason, names) = chosen(Answer::text("Sure: [\"x.07\", \"nothing\", \"x.02\"]")).await;
        assert_eq!((reason, names), (Reason::Words, vec!["clock".into(), "x.07".into(), "x.02".into()]));
        let (_, names) = chosen(Answer::text("[]")).await;
        assert_eq!(names, ["clock"]);
    }

    #[tokio::test]
    async fn when_it_fails_all_are_offered() {
        let fails = Answer::fail(FailureKind::Transient, "");
        for answer in [Answer::text("none of them"), Answer::text("[1]"), fails, Answer::hang()] {
            let (reason, names) = chosen(answer).await;
            assert_eq!((reason, names.len()), (Reason::Doubt, 20));
        }
    }
}
