//! Summaries of old turns of a conversation, by the model that answers: a separate request, for which no wearer waits.

use std::{pin::pin, sync::Arc, time::Duration};

use chat_models::{ChatModel, Request};
use gateway_core::{
    user::summary::{INSTRUCTIONS, TOKENS_MAX, transcript},
    vocab::{Message, ModelEvent, Role, Usage, tokens_of},
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::clock;

/// How long a request that was given up may take to end.
const CANCELLED_MAX: Duration = Duration::from_secs(1);
/// Events that may be queued.
const EVENTS_MAX: usize = 64;

/// The outcome of a summary request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summed {
    /// The summary; `None` if the model failed or took too long.
    pub text: Option<String>,
    /// Its usage as reported by the model; estimated if the request was abandoned midway.
    pub usage: Usage,
}

/// Asks the model for a summary, and waits so long for it.
pub(super) async fn summarise(
    wait: Duration,
    model: Arc<dyn ChatModel>,
    language: String,
    messages: Vec<Message>,
) -> Summed {
    let transcript = transcript(&messages);
    let asked = tokens_of(INSTRUCTIONS).saturating_add(tokens_of(&transcript));
    let request = Request {
        system: Some(INSTRUCTIONS.to_owned()),
        messages: vec![Message::text(Role::User, transcript)],
        now: clock::now(),
        language,
        max_tokens: Some(TOKENS_MAX),
        ..Request::default()
    };
    let (events, mut received) = mpsc::channel(EVENTS_MAX);
    let cancel = CancellationToken::new();
    let asking = model.stream(request, events, cancel.clone());
    let mut text = String::new();
    let reading = async {
        while let Some(event) = received.recv().await {
            match event {
                ModelEvent::Text(more) | ModelEvent::Question { text: more, .. } => text.push_str(&more),
                ModelEvent::Done { usage, .. } => return Some(Ok(usage)),
                ModelEvent::Failed { kind, .. } => {
                    tracing::warn!(?kind, "old turns could not be summed up");
                    return Some(Err(()));
                }
                ModelEvent::Thinking { .. }
                | ModelEvent::ToolCall(_)
                | ModelEvent::Chosen(_)
                | ModelEvent::NotUnderstood { .. } => {}
            }
        }
        None
    };
    let ended = {
        let mut both = pin!(async { tokio::join!(asking, reading).1 });
        match timeout(wait, both.as_mut()).await {
            Ok(ended) => ended,
            Err(_elapsed) => {
                cancel.cancel();
                // Not dropped at once: how it ends is counted.
                timeout(CANCELLED_MAX, both).await.ok().flatten()
            }
        }
    };
    match ended {
        Some(Ok(usage)) => Summed { text: Some(text).filter(|text| !text.trim().is_empty()), usage },
        // A provider that rejects the request uses nothing.
        Some(Err(())) if text.is_empty() => Summed::default(),
        _ => Summed { text: None, usage: Usage { input: asked, cached: 0, output: tokens_of(&text) } },
    }
}

#[cfg(test)]
mod tests {
    use chat_models::scripted::{Answer, Scripted, Step};
    use gateway_core::vocab::FailureKind;

    use super::*;

    const WAIT: Duration = Duration::from_secs(60);

    fn conversation() -> Vec<Message> {
        vec![Message::text(Role::User, "Note milk."), Message::text(Role::Assistant, "Noted.")]
    }

    #[tokio::test]
    async fn the_model_is_given_one_text() {
        let usage = Usage { input: 90, cached: 0, output: 8 };
        let echoes = Scripted::by(move |request, _| {
            assert!(request.tools.is_empty() && request.system.is_some());
            Answer::text(request.messages[0].plain_text()).then(Step::Took(usage))
        });
        let summed = summarise(WAIT, Arc::new(echoes), "en".into(), conversation()).await;
        assert_eq!(summed.usage, usage);
        assert_eq!(summed.text.unwrap().trim(), "Wearer: Note milk.\nAssistant: Noted.");
    }

    #[tokio::test]
    async fn a_model_that_fails_or_hangs_gives_none() {
        let with = |answer: Answer| Arc::new(Scripted::list([answer]));
        let fails = with(Answer::fail(FailureKind::Transient, ""));
        assert_eq!(summarise(WAIT, fails, "en".into(), conversation()).await, Summed::default());
        let given_up = summarise(Duration::ZERO, with(Answer::hang()), "en".into(), conversation()).await;
        assert!(given_up.text.is_none() && given_up.usage.input > 50, "it was asked all the same: {given_up:?}");
    }
}
