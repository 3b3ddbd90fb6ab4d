//! Model requests and tool calls of one device's conversation.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chat_models::{Request, Tools};
use gateway_core::{
    input::Input,
    vocab::{ClientClass, ErrorCode, Message, ToolCall, Turn},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::executor::{CallContext, Executor};

use super::spawn;
use crate::{
    clock,
    mail::{Address, Mail},
    ranks::Ranks,
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
    models: Ranks,
    executor: Executor,
    mail: Address,
    asked: BTreeMap<Turn, CancellationToken>,
    called: BTreeMap<String, CancellationToken>,
    /// What the last request offered.
    offered: Option<Tools>,
}

/// What a request went out with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The catalogue's revision.
    pub revision: u64,
    /// Tools that were offered.
    pub tools: u32,
    /// Whether the box answers in the model's place.
    pub on_box: bool,
}

impl Work {
    /// Nothing runs yet.
    pub fn new(
        user: String,
        device: String,
        session: String,
        language: String,
        models: Ranks,
        executor: Executor,
        mail: Address,
    ) -> Self {
        let (asked, called) = (BTreeMap::new(), BTreeMap::new());
        Self { user, device, session, language, models, executor, mail, asked, called, offered: None }
    }

    /// Asks the model of this rank, with the tools of this moment.
    pub fn ask_model(&mut self, turn: Turn, rank: u8, messages: Vec<Message>) -> Asked {
        self.asked.retain(|_, cancel| !cancel.is_cancelled());
        let cancel = CancellationToken::new();
        if let Some(old) = self.asked.insert(turn, cancel.clone()) {
            old.cancel();
        }
        let (revision, tools) = self.executor.offered(&self.user, &self.device, ClientClass::Internal);
        tracing::debug!(turn = turn.id, rank, revision, tools = tools.len(), "asking a model");
        self.offered = Some(tools.clone());
        let mut asked = Asked { revision, tools: u32::try_from(tools.len()).unwrap_or(u32::MAX), on_box: false };
        let request = Request {
            system: String::new(),
            messages,
            tools,
            now: clock::now(),
            language: self.language.clone(),
            max_tokens: None,
        };
        let Some(model) = self.models.get(usize::from(rank)).or(self.models.last()).cloned() else {
            return asked;
        };
        asked.on_box = model.is_on_box(&request);
        let (events, mut received) = mpsc::channel(EVENTS_MAX);
        let (mail, stopped) = (self.mail.clone(), cancel.clone());
        spawn("model", async move { model.stream(request, events, cancel).await });
        spawn("model-events", async move {
            while let Some(event) = received.recv().await {
                if stopped.is_cancelled() || mail.send(Mail::Input(Input::Model { turn, event })).await.is_err() {
                    return;
                }
            }
        });
        asked
    }

    /// Whether other tools would be offered now than the last request offered.
    pub fn tools_have_changed(&self) -> bool {
        let (_, now) = self.executor.offered(&self.user, &self.device, ClientClass::Internal);
        self.offered.as_ref().is_some_and(|before| !Arc::ptr_eq(before, &now) && *before != now)
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
            let (user, device) = (context.user.clone(), context.device.clone());
            let mut result = executor.call(context, call).await;
            if result.error.as_ref().is_some_and(|error| error.code == ErrorCode::ToolNotFound) {
                let (_, offered) = executor.offered(&user, &device, ClientClass::Internal);
                tools::alike::name_some(&mut result, &name, &offered);
            }
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
