//! A model's answer on its way to the device's task.

use std::{future::Future, sync::Arc};

use chat_models::{ChatModel, Request};
use gateway_core::vocab::ModelEvent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::runtime::spawn;

/// Events that may wait for the device's task. They do not go through its mailbox: a model server that delivers a long
/// answer at once would fill it, and results that come only once would find no place.
const EVENTS_MAX: usize = 64;

/// The answer to one request. Dropped, it cancels the request, and what is still sent is dropped with its channel.
pub(super) struct StreamedAnswer {
    events: mpsc::Receiver<ModelEvent>,
    cancel: CancellationToken,
}

impl StreamedAnswer {
    /// Sends the model the request as soon as that is ready; `None`: no model need be asked any more.
    pub(super) fn begin(
        model: Arc<dyn ChatModel>,
        request: impl Future<Output = Option<Request>> + Send + 'static,
    ) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let cancel = CancellationToken::new();
        let stopped = cancel.clone();
        spawn("model", async move {
            let Some(Some(request)) = stopped.run_until_cancelled(request).await else { return };
            model.stream(request, sender, stopped).await;
        });
        Self { events, cancel }
    }

    /// The next event; pending for ever behind the last one. Cancel safe.
    pub(super) async fn next(&mut self) -> ModelEvent {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }
}

impl Drop for StreamedAnswer {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[cfg(test)]
mod tests {
    use chat_models::scripted::{Answer, Scripted, Step};
    use futures_util::FutureExt as _;
    use gateway_core::vocab::StopReason;
    use tokio::task::yield_now;

    use super::*;

    /// More than a device's mailbox has places.
    const TEXTS: usize = 4 * crate::mailbox::WAITING_MAX;

    fn begin(steps: Vec<Step>) -> StreamedAnswer {
        let model = Arc::new(Scripted::list([Answer(steps)]));
        StreamedAnswer::begin(model, async { Some(Request::default()) })
    }

    #[tokio::test]
    async fn an_answer_that_comes_at_once_waits_beside_the_mailbox_and_arrives_whole() {
        let texts: Vec<String> = (0..TEXTS).map(|number| format!("{number} ")).collect();
        let mut answer = begin(texts.iter().cloned().map(Step::Text).collect());
        // The device's task is busy: the model waits for it, and so does its server.
        while answer.events.len() < EVENTS_MAX {
            yield_now().await;
        }
        for text in texts {
            assert_eq!(answer.next().await, ModelEvent::Text(text));
        }
        assert!(matches!(answer.next().await, ModelEvent::Done { stop: StopReason::End, .. }));
        // The model has ended.
        while !answer.events.is_closed() {
            yield_now().await;
        }
        assert!(answer.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_is_dropped_is_cancelled() {
        let answer = begin(vec![Step::Text("So".to_owned()), Step::Hang]);
        let cancelled = answer.cancel.clone();
        drop(answer);
        cancelled.cancelled().await;
        let model = Arc::new(Scripted::list(Vec::<Answer>::new()));
        let unasked = StreamedAnswer::begin(model.clone(), async { None });
        while !unasked.events.is_closed() {
            yield_now().await;
        }
        assert!(model.requests().is_empty());
    }
}
