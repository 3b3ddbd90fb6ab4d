//! Commands on the gateway, conversation with a model: requests that match the tools' own sentences are answered by the
//! offline engine, at once and without a network; everything else goes to the model.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::ModelEvent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{ChatModel, Matched, Request, Tools, intents};

/// The offline engine in front of another model.
pub struct CommandsFirst {
    engine: intents::Engine,
    model: Arc<dyn ChatModel>,
}

impl CommandsFirst {
    /// Puts the engine in front of this model.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self::with_engine(intents::Engine::new(), model)
    }

    /// Puts this engine in front of this model.
    pub fn with_engine(engine: intents::Engine, model: Arc<dyn ChatModel>) -> Self {
        Self { engine, model }
    }
}

#[async_trait]
impl ChatModel for CommandsFirst {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn answer_on_box(&self, request: &Request) -> Option<Vec<ModelEvent>> {
        self.engine.answer_command(request)
    }

    fn match_command(&self, request: &Request) -> Option<Matched> {
        self.engine.match_command(request)
    }

    fn offers(&self, request: &Request) -> Option<Tools> {
        match self.answer_on_box(request) {
            Some(_) => Some(request.tools.clone()),
            None => self.model.offers(request),
        }
    }

    fn calls_by_programs(&self) -> bool {
        self.model.calls_by_programs()
    }

    fn prepare(&self, tools: &Tools, language: &str) {
        self.engine.prepare(tools, language);
        self.model.prepare(tools, language);
    }

    fn is_ready(&self, tools: &Tools, language: &str) -> bool {
        self.engine.is_ready(tools, language) && self.model.is_ready(tools, language)
    }

    async fn preconnect(&self) -> bool {
        self.model.preconnect().await
    }

    fn close_unused(&self) {
        self.model.close_unused();
    }

    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        self.model.stream(request, events, cancel).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Answer, Scripted};
    use gateway_core::vocab::{Message, Part, Phrases, Role, ToolCall, ToolResult, ToolSpec};
    use serde_json::json;

    fn request(messages: Vec<Message>) -> Request {
        let tool = ToolSpec {
            name: "lamp.on".into(),
            description: "Switches the lamp on.".into(),
            input_schema: json!({"type": "object", "properties": {}}),
            phrases: vec![Phrases { language: "en".into(), templates: vec!["(switch|turn) on the lamp".into()] }],
            ..ToolSpec::default()
        };
        Request { messages, tools: Arc::new([Arc::new(tool)]), ..Request::default() }
    }

    async fn answer(model: &CommandsFirst, request: Request) -> Vec<ModelEvent> {
        if let Some(events) = model.answer_on_box(&request) {
            return events;
        }
        let (events, mut received) = mpsc::channel(16);
        model.stream(request, events, CancellationToken::new()).await;
        let mut out = Vec::new();
        while let Some(event) = received.recv().await {
            out.push(event);
        }
        out
    }

    fn said(events: &[ModelEvent]) -> String {
        events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[tokio::test]
    async fn a_command_stays_on_the_box_and_a_question_goes_to_the_model() {
        let model = CommandsFirst::new(Arc::new(Scripted::list([Answer::text("It is blue.")])));
        let wearer = |text: &str| Message::text(Role::User, text);

        let events = answer(&model, request(vec![wearer("turn on the lamp")])).await;
        let Some(ModelEvent::ToolCall(call)) = events.first() else { panic!("{events:?}") };
        assert_eq!(call.name, "lamp.on");

        let call = ToolCall { ..call.clone() };
        let id = call.id.clone();
        let own = Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] };
        let result = ToolResult::said("The lamp is on.");
        let done = Message { role: Role::Tool, parts: vec![Part::ToolResult { call_id: id, result }] };
        let events = answer(&model, request(vec![wearer("turn on the lamp"), own, done])).await;
        assert_eq!(said(&events), "The lamp is on.");

        let events = answer(&model, request(vec![wearer("what colour is the sky")])).await;
        assert_eq!(said(&events), "It is blue.", "the script had one answer, and nothing took it before");
    }

    #[tokio::test]
    async fn a_picture_that_a_command_returns_stays_on_the_box_and_is_no_command() {
        let scripted = Arc::new(Scripted::list([Answer::text("A heron.")]));
        let model = CommandsFirst::new(scripted.clone());
        // The text beside a picture is not the wearer's.
        let picture = Part::Image { mime: "image/jpeg".into(), data: "/9j/".into() };
        let picture =
            Message { role: Role::User, parts: vec![Part::Text { text: "turn on the lamp".into() }, picture] };
        let taken = |call_id: String| {
            let call = ToolCall { id: call_id.clone(), name: "camera.photo".into(), arguments: json!({}) };
            let result = ToolResult::said("Photo taken.");
            request(vec![
                Message::text(Role::User, "take a photo"),
                Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
                Message { role: Role::Tool, parts: vec![Part::ToolResult { call_id, result }] },
                picture.clone(),
            ])
        };
        let events = answer(&model, taken(format!("{}1", intents::CALL_PREFIX))).await;
        assert_eq!(said(&events), "Photo taken.");
        assert!(scripted.requests().is_empty());

        let of_the_model = taken("c1".into());
        assert_eq!(model.match_command(&of_the_model), None);
        assert_eq!(said(&answer(&model, of_the_model).await), "A heron.");
    }
}
