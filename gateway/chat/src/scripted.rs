//! A model for tests: it answers from a list or a function, on tokio's (pausable) clock.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{FailureKind, ModelEvent, StopReason, ToolCall, Usage};
use serde_json::Value;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{ChatModel, Request};

/// One step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Emits this text.
    Text(String),
    /// Calls a tool.
    Call(ToolCall),
    /// Waits on tokio's clock.
    Wait(Duration),
    /// Never continues; only cancellation ends it.
    Hang,
    /// Ends with `Failed`.
    Fail(FailureKind, String),
    /// Reports this token usage; without this step none is reported.
    Took(Usage),
    /// Ends with `Done` and this reason instead of the one implied by the steps.
    Stop(StopReason),
}

/// The steps of one answer; `Done` follows unless a step ended it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer(pub Vec<Step>);

impl Answer {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Step::Text(text.into())])
    }

    /// An answer that calls one tool.
    pub fn call(id: &str, name: &str, arguments: Value) -> Self {
        Self::default().then_call(id, name, arguments)
    }

    /// An answer that never arrives.
    pub fn hang() -> Self {
        Self(vec![Step::Hang])
    }

    /// An answer that fails at once.
    pub fn fail(kind: FailureKind, message: impl Into<String>) -> Self {
        Self(vec![Step::Fail(kind, message.into())])
    }

    /// Prepends a delay.
    pub fn after(mut self, delay: Duration) -> Self {
        self.0.insert(0, Step::Wait(delay));
        self
    }

    /// Adds a tool call.
    pub fn then_call(mut self, id: &str, name: &str, arguments: Value) -> Self {
        self.0.push(Step::Call(ToolCall { id: id.into(), name: name.into(), arguments }));
        self
    }

    /// Adds any step.
    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }
}

type Script = dyn Fn(&Request, usize) -> Answer + Send + Sync;

enum Source {
    List(Mutex<VecDeque<Answer>>),
    Function(Box<Script>),
}

/// A scripted model. It stores every request for inspection by tests.
pub struct Scripted {
    source: Source,
    requests: Mutex<Vec<Request>>,
}

impl Scripted {
    /// Gives these answers in order; a request beyond them fails with [`FailureKind::Bug`].
    pub fn list(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::new(Source::List(Mutex::new(answers.into_iter().collect())))
    }

    /// Calls `answer` for every request; its second argument counts requests from 0.
    pub fn by(answer: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(Source::Function(Box::new(answer)))
    }

    /// Adds an answer to the end of the list; no effect on a scripted function.
    pub fn push(&self, answer: Answer) {
        if let Source::List(list) = &self.source {
            lock(list).push_back(answer);
        }
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }

    fn new(source: Source) -> Self {
        Self { source, requests: Mutex::new(Vec::new()) }
    }

    fn answer(&self, request: Request) -> Answer {
        let mut requests = lock(&self.requests);
        let answer = match &self.source {
            Source::List(list) => lock(list)
                .pop_front()
                .unwrap_or_else(|| Answer::fail(FailureKind::Bug, "the script has no answer to this request")),
            Source::Function(answer) => answer(&request, requests.len()),
        };
        requests.push(request);
        answer
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        let answer = self.answer(request);
        cancel.run_until_cancelled(play(answer, &events)).await;
    }
}

async fn play(answer: Answer, events: &mpsc::Sender<ModelEvent>) {
    let (mut stop, mut usage) = (StopReason::End, Usage::default());
    for step in answer.0 {
        let event = match step {
            Step::Text(text) => ModelEvent::Text(text),
            Step::Call(call) => {
                stop = StopReason::ToolCalls;
                ModelEvent::ToolCall(call)
            }
            Step::Wait(delay) => {
                sleep(delay).await;
                continue;
            }
            Step::Hang => pending().await,
            Step::Fail(kind, message) => {
                let _ = events.send(ModelEvent::Failed { kind, message }).await;
                return;
            }
            Step::Took(tokens) => {
                usage = tokens;
                continue;
            }
            Step::Stop(reason) => {
                stop = reason;
                break;
            }
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
    let done = ModelEvent::Done { stop, usage };
    let _ = events.send(done).await;
}

/// Ignores poisoning, so that a panic of one test thread does not hide the recorded requests.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
