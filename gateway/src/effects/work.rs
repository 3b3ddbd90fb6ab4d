//! Model requests and tool calls of one device's conversation.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chat_models::{ChatModel, Request};
use gateway_core::{
    input::Input,
    vocab::{Clarity, ClientClass, Message, Role, ToolCall, Turn},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::executor::{CallContext, Executor};

use super::spawn;
use crate::{
    clock,
    mail::{Address, Mail, Weighed},
};

/// Events of a model that may wait for the device's task.
const EVENTS_MAX: usize = 64;
/// For tools that set no time of their own.
const TOOL_MS_DEFAULT: u64 = 30_000;

/// What runs for one device.
pub struct Work {
    user: String,
    device: String,
    session: String,
    language: String,
    model: Arc<dyn ChatModel>,
    executor: Executor,
    mail: Address,
    asked: BTreeMap<Turn, CancellationToken>,
    called: BTreeMap<String, CancellationToken>,
}

impl Work {
    /// Nothing runs yet.
    pub fn new(
        user: String,
        device: String,
        session: String,
        language: String,
        model: Arc<dyn ChatModel>,
        executor: Executor,
        mail: Address,
    ) -> Self {
        Self { user, device, session, language, model, executor, mail, asked: BTreeMap::new(), called: BTreeMap::new() }
    }

    /// Asks the model, with the tools of this moment.
    pub fn ask_model(&mut self, turn: Turn, messages: Vec<Message>) {
        self.asked.retain(|_, cancel| !cancel.is_cancelled());
        let cancel = CancellationToken::new();
        if let Some(old) = self.asked.insert(turn, cancel.clone()) {
            old.cancel();
        }
        let (revision, tools) = self.executor.offered(&self.user, &self.device, ClientClass::Internal);
        tracing::debug!(turn = turn.id, revision, tools = tools.len(), "asking the model");
        let request = Request {
            system: String::new(),
            messages,
            tools,
            now: clock::now(),
            language: self.language.clone(),
            max_tokens: None,
        };
        let (events, mut received) = mpsc::channel(EVENTS_MAX);
        let (model, mail, stopped) = (self.model.clone(), self.mail.clone(), cancel.clone());
        spawn("model", async move { model.stream(request, events, cancel).await });
        spawn("model-events", async move {
            while let Some(event) = received.recv().await {
                if stopped.is_cancelled() || mail.send(Mail::Input(Input::Model { turn, event })).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Has a text weighed: whether it is a command to a tool, where the model has commands at all.
    pub fn weigh(&self, utterance: u32, revision: u16, text: &str) {
        let (_, tools) = self.executor.offered(&self.user, &self.device, ClientClass::Internal);
        let request = Request {
            system: String::new(),
            messages: vec![Message::text(Role::User, text)],
            tools,
            now: clock::now(),
            language: self.language.clone(),
            max_tokens: None,
        };
        let (model, mail) = (self.model.clone(), self.mail.clone());
        spawn("weigh", async move {
            let considered = model.consider(&request);
            let clarity = considered.as_ref().map_or(Clarity::Clear, |considered| considered.clarity);
            let vocabulary = considered.map(|considered| considered.vocabulary).unwrap_or_default().into();
            drop(mail.send(Mail::Weighed(Weighed { utterance, revision, clarity, vocabulary })).await);
        });
    }

    /// Whatever the model still says in this turn is not wanted.
    pub fn cancel_model(&mut self, turn: Turn) {
        if let Some(cancel) = self.asked.remove(&turn) {
            cancel.cancel();
        }
    }

    /// Runs a tool to its one result.
    pub fn run_tool(&mut self, turn: Turn, call: ToolCall) {
        let cancel = CancellationToken::new();
        self.called.retain(|_, cancel| !cancel.is_cancelled());
        self.called.insert(call.id.clone(), cancel.clone());
        let context = CallContext {
            user: self.user.clone(),
            device: self.device.clone(),
            session: self.session.clone(),
            turn,
            cancel,
            default_timeout: Duration::from_millis(TOOL_MS_DEFAULT),
            client: ClientClass::Internal,
            caller: None,
        };
        let (executor, mail) = (self.executor.clone(), self.mail.clone());
        spawn("tool", async move {
            let call_id = call.id.clone();
            let began_us = clock::mono_us();
            let name = call.name.clone();
            let result = executor.call(context, call).await;
            tracing::info!(
                tool = name,
                ms = (clock::mono_us() - began_us) / 1000,
                error = result.error.as_ref().map(|error| tracing::field::debug(error.code)),
                "tool executed"
            );
            drop(mail.send(Mail::Input(Input::Tool { turn, call_id, result })).await);
        });
    }

    /// The turn was interrupted: stops the call where that is safe.
    pub fn cancel_tool(&mut self, call_id: &str) {
        if let Some(cancel) = self.called.get(call_id) {
            cancel.cancel();
        }
    }

    /// A call came to its result.
    pub fn tool_done(&mut self, call_id: &str) {
        self.called.remove(call_id);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        for cancel in self.asked.values().chain(self.called.values()) {
            cancel.cancel();
        }
    }
}
