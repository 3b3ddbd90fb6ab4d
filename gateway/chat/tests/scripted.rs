//! The scripted model fulfils the contract of every chat model.

use std::{sync::Arc, time::Duration};

use chat_models::{
    ChatModel, Request,
    scripted::{Answer, Scripted, Step},
};
use gateway_core::vocab::{FailureKind, Message, ModelEvent, Role, StopReason, ToolCall, Usage};
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

fn request(text: &str) -> Request {
    Request { messages: vec![Message::text(Role::User, text)], tools: Arc::from([]), ..Request::default() }
}

async fn ask(model: &Scripted, text: &str) -> Vec<ModelEvent> {
    let (sender, mut receiver) = mpsc::channel(16);
    model.stream(request(text), sender, CancellationToken::new()).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    events
}

fn done(stop: StopReason) -> ModelEvent {
    ModelEvent::Done { stop, usage: Usage::default() }
}

#[tokio::test(start_paused = true)]
async fn answers_in_order_with_delays_and_remembers_requests() {
    let call = ToolCall { id: "c1".into(), name: "timer.set".into(), arguments: json!({"seconds": 5}) };
    let model = Scripted::list([
        Answer::call("c1", "timer.set", json!({"seconds": 5})).after(Duration::from_secs(3)),
        Answer::text("Done").then(Step::Stop(StopReason::Length)),
        Answer::text("half").then(Step::Fail(FailureKind::Transient, "cut".into())),
    ]);
    let start = Instant::now();
    assert_eq!(ask(&model, "one").await, [ModelEvent::ToolCall(call), done(StopReason::ToolCalls)]);
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!(ask(&model, "two").await, [ModelEvent::Text("Done".into()), done(StopReason::Length)]);
    assert_eq!(
        ask(&model, "three").await,
        [ModelEvent::Text("half".into()), ModelEvent::Failed { kind: FailureKind::Transient, message: "cut".into() }]
    );
    assert!(matches!(ask(&model, "four").await[..], [ModelEvent::Failed { kind: FailureKind::Bug, .. }]));
    let asked: Vec<String> = model.requests().iter().map(|request| request.messages[0].plain_text()).collect();
    assert_eq!(asked, ["one", "two", "three", "four"]);
}

#[tokio::test(start_paused = true)]
async fn hangs_until_cancelled_and_then_says_nothing() {
    let model = Arc::new(Scripted::by(|_, count| match count {
        0 => Answer::text("well").then(Step::Hang),
        _ => Answer::text("again"),
    }));
    let (sender, mut receiver) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let running = tokio::spawn({
        let (model, cancel) = (model.clone(), cancel.clone());
        async move { model.stream(request("x"), sender, cancel).await }
    });
    assert_eq!(receiver.recv().await, Some(ModelEvent::Text("well".into())));
    assert!(tokio::time::timeout(Duration::from_secs(3600), receiver.recv()).await.is_err());
    cancel.cancel();
    running.await.expect("ends when cancelled");
    assert_eq!(receiver.recv().await, None);
    assert_eq!(ask(&model, "y").await.len(), 2);
}
