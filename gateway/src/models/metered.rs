//! Counts what models do: each has a meter under its name.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use audio::meter::{Meter, Running};
use chat_models::{ChatModel, Matched, Request, Tools};
use gateway_core::vocab::ModelEvent;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;
use tools::router::sentences::{EmbedError, Embedder};

/// Name of the offline engine's meter.
pub(crate) const OFFLINE: &str = "offline";
/// The model that selects tools.
pub(crate) const SELECTING: &str = "router.model";
/// Events that may wait between a model and the caller.
const EVENTS_MAX: usize = 1;
/// A request that is given up after so long without any event has failed: the model hangs. A conversation waits twice as long
/// (`model_fall_back_ms`), of which the selection of tools takes a part; before that it is given up by its wearer.
const SILENT: Duration = Duration::from_secs(4);

/// The name of the chat model of this rank.
pub(crate) fn name_of(rank: usize) -> String {
    match rank {
        0 => "model".to_owned(),
        rank => format!("fallback.{rank}"),
    }
}

/// Meters by the names of their models. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Meters(Arc<Mutex<BTreeMap<String, Arc<Meter>>>>);

impl Meters {
    /// The meter of this name, which is made where there is none.
    pub(crate) fn of(&self, name: &str) -> Arc<Meter> {
        let mut meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        meters.entry(name.to_owned()).or_default().clone()
    }

    /// Puts the meter of a loaded model under this name.
    pub(crate) fn put(&self, name: &str, meter: Arc<Meter>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), meter);
    }
}

/// A chat model whose answers are counted.
pub(crate) struct Metered {
    model: Arc<dyn ChatModel>,
    /// Counts answers that the gateway gives itself.
    on_box: Option<Arc<Meter>>,
    /// Counts streamed answers, from the request to their end.
    streamed: Option<Arc<Meter>>,
}

impl Metered {
    /// Counts the streamed answers of a model at a server.
    pub(crate) fn served(model: Arc<dyn ChatModel>, meter: Arc<Meter>) -> Self {
        Self { model, on_box: None, streamed: Some(meter) }
    }

    /// Counts the answers that a model's own engine gives in its place.
    pub(crate) fn on_box(model: Arc<dyn ChatModel>, meter: Arc<Meter>) -> Self {
        Self { model, on_box: Some(meter), streamed: None }
    }

    /// Counts all answers of an engine.
    pub(crate) fn engine(model: Arc<dyn ChatModel>, meter: Arc<Meter>) -> Self {
        Self { model, on_box: Some(meter.clone()), streamed: Some(meter) }
    }
}

#[async_trait]
impl ChatModel for Metered {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn answer_on_box(&self, request: &Request) -> Option<Vec<ModelEvent>> {
        let Some(meter) = &self.on_box else { return self.model.answer_on_box(request) };
        let running = meter.begin();
        let answer = self.model.answer_on_box(request)?;
        running.end(true);
        Some(answer)
    }

    fn tools_max(&self) -> usize {
        self.model.tools_max()
    }

    fn offers(&self, request: &Request) -> Option<Tools> {
        self.model.offers(request)
    }

    fn calls_by_programs(&self) -> bool {
        self.model.calls_by_programs()
    }

    fn prepare(&self, tools: &Tools, language: &str) {
        self.model.prepare(tools, language);
    }

    fn is_ready(&self, tools: &Tools, language: &str) -> bool {
        self.model.is_ready(tools, language)
    }

    async fn preconnect(&self) -> bool {
        self.model.preconnect().await
    }

    fn close_unused(&self) {
        self.model.close_unused();
    }

    fn match_command(&self, request: &Request) -> Option<Matched> {
        self.model.match_command(request)
    }

    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        let Some(meter) = &self.streamed else { return self.model.stream(request, events, cancel).await };
        let (inner, from_model) = mpsc::channel(EVENTS_MAX);
        let (running, began, given_up) = (meter.begin(), Instant::now(), cancel.clone());
        let streamed = self.model.stream(request, inner, cancel);
        let ((), unheard) = tokio::join!(streamed, hand_on(from_model, events, running));
        if let Some(running) = unheard
            && given_up.is_cancelled()
            && began.elapsed() >= SILENT
        {
            running.end(false);
        }
    }
}

/// Hands events on, until the last one or until nobody wants them any more. Returns a request of which there was none.
async fn hand_on(
    mut from: mpsc::Receiver<ModelEvent>,
    to: mpsc::Sender<ModelEvent>,
    running: Running<'_>,
) -> Option<Running<'_>> {
    let mut is_silent = true;
    while let Some(event) = from.recv().await {
        is_silent = false;
        let end = match &event {
            ModelEvent::Done { .. } => Some(true),
            ModelEvent::Failed { .. } => Some(false),
            _ => None,
        };
        if let Some(is_well) = end {
            running.end(is_well);
            // The caller may have gone.
            let _gone = to.send(event).await;
            return None;
        }
        // Dropping the receiver tells the model.
        if to.send(event).await.is_err() {
            return None;
        }
    }
    is_silent.then_some(running)
}

/// Sentence embeddings that are counted.
pub(crate) struct MeteredEmbedder<E> {
    pub(crate) embedder: E,
    pub(crate) meter: Arc<Meter>,
}

impl<E: Embedder> Embedder for MeteredEmbedder<E> {
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.meter.measure(|| self.embedder.embed(text))
    }
}

#[cfg(test)]
mod tests {
    use chat_models::{
        intents,
        scripted::{Answer, Scripted, Step},
    };
    use gateway_core::{
        conversation,
        vocab::{FailureKind, Message, Role},
    };

    use super::*;

    async fn ask(model: &Metered) -> Vec<ModelEvent> {
        let (events, mut received) = mpsc::channel(8);
        let asked = model.stream(Request::default(), events, CancellationToken::new());
        let reading = async {
            let mut all = Vec::new();
            while let Some(event) = received.recv().await {
                all.push(event);
            }
            all
        };
        tokio::join!(asked, reading).1
    }

    #[tokio::test]
    async fn answers_are_counted_by_their_end_and_handed_on() {
        let answers = [Answer::text("Good day."), Answer::fail(FailureKind::Transient, "overloaded")];
        let meter = Arc::<Meter>::default();
        let model = Metered::served(Arc::new(Scripted::list(answers)), meter.clone());
        let events = ask(&model).await;
        assert!(matches!(events.as_slice(), [ModelEvent::Text(_), .., ModelEvent::Done { .. }]), "{events:?}");
        assert_eq!((meter.read().count, meter.read().failed), (1, 0));
        let events = ask(&model).await;
        assert!(matches!(events.as_slice(), [ModelEvent::Failed { .. }]), "{events:?}");
        assert_eq!((meter.read().count, meter.read().failed), (1, 1));
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_is_not_counted_and_ends() {
        let meter = Arc::<Meter>::default();
        let model = Metered::served(Arc::new(Scripted::list([Answer::text("Good day.")])), meter.clone());
        let (events, received) = mpsc::channel(1);
        drop(received);
        model.stream(Request::default(), events, CancellationToken::new()).await;
        assert_eq!((meter.read().count, meter.read().failed), (0, 0));
        let cancel = CancellationToken::new();
        cancel.cancel();
        let model = Metered::served(Arc::new(Scripted::list([Answer::hang()])), meter.clone());
        let (events, _received) = mpsc::channel(1);
        model.stream(Request::default(), events, cancel).await;
        assert_eq!((meter.read().count, meter.read().failed), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_hangs_until_it_is_given_up_has_failed() {
        let (short, patience) = (Duration::from_millis(1), conversation::Config::default().model_fall_back_ms);
        assert_eq!(SILENT * 2, Duration::from_millis(patience.into()));
        for (answer, after, failed) in [
            (Answer::hang(), SILENT - short, 0),
            (Answer::hang(), SILENT, 1),
            // It has begun.
            (Answer::text("Good day.").then(Step::Hang), SILENT * 2, 0),
        ] {
            let meter = Arc::<Meter>::default();
            let model = Metered::served(Arc::new(Scripted::list([answer])), meter.clone());
            let (events, _received) = mpsc::channel(1);
            let cancel = CancellationToken::new();
            let given_up = async {
                tokio::time::advance(after).await;
                cancel.cancel();
            };
            tokio::join!(model.stream(Request::default(), events, cancel.clone()), given_up);
            assert_eq!((meter.read().count, meter.read().failed), (0, failed), "{after:?}");
        }
    }

    #[tokio::test]
    async fn the_engine_on_the_box_is_counted() {
        let meters = Meters::default();
        let model = Metered::engine(Arc::new(intents::Engine::new()), meters.of(OFFLINE));
        let request = Request { messages: vec![Message::text(Role::User, "what can I say")], ..Request::default() };
        assert!(model.answer_on_box(&request).is_some());
        assert_eq!(meters.of(OFFLINE).read().count, 1);
        let own = Arc::<Meter>::default();
        meters.put(OFFLINE, own.clone());
        assert!(Arc::ptr_eq(&meters.of(OFFLINE), &own));
        assert_eq!((name_of(0), name_of(2)), ("model".to_owned(), "fallback.2".to_owned()));
    }
}
