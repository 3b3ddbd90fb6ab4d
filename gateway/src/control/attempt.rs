//! Sentences as the offline engine takes them: tried, run, explained.

use std::{sync::Arc, time::Duration};

use chat_models::intents::{Decision, Engine};
use gateway_core::vocab::{ClientClass, Message, Phrases, Role, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tools::{
    alike::likeness,
    call::CallContext,
    permissions::{Switches as _, is_denied},
};

use super::{Answer, admin::Admin, devices::device_of, names::check_name};
use crate::{clock, device_task::services::Services};

/// Bytes of a sentence: a minute of fast speech.
const SENTENCE_BYTES_MAX: usize = 2_000;
/// Time limit for a tool that sets none.
const TRY_MS: u64 = 30_000;
/// Templates shown for a sentence that fits none: the most similar ones.
const PHRASES_MAX: usize = 8;

/// The result for a sentence.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// No tool.
    Said {
        /// This would be spoken.
        said: String,
        /// Phrases that would have led to a tool of an app: its full name and a template; best match first.
        phrases: Vec<(String, String)>,
        /// Tools that it would have led to if the user had not switched them off.
        off: Vec<String>,
    },
    /// What is called.
    Calls(Vec<TriedCall>),
}

/// A call that a sentence leads to.
#[derive(Debug, Serialize, Deserialize)]
pub struct TriedCall {
    /// Full name of the tool.
    pub tool: String,
    /// As they were read from the sentence.
    pub arguments: Value,
    /// The result, if it was run.
    pub result: Option<ToolResult>,
}

/// Runs the offline engine on a sentence; with `gone`, which interrupts them, also the calls that it leads to.
pub(super) async fn attempt(
    admin: &Admin,
    text: &str,
    user: &str,
    device: Option<&str>,
    gone: Option<&CancellationToken>,
) -> Result<Answer, String> {
    if text.trim().is_empty() || text.len() > SENTENCE_BYTES_MAX {
        return Err(format!("a sentence has 1 to {SENTENCE_BYTES_MAX} bytes"));
    }
    // If the user's glasses are connected, tools may use their display and ask questions there.
    let services = &admin.services;
    let device = device.map(str::to_owned).or_else(|| device_of(&services.roster, user));
    let request = request(services, text, user, device.as_deref());
    let calls = match Engine::new().decide(&request) {
        Decision::Say(said) | Decision::Ask(said, _) => {
            let all = services.registry.snapshot(user, device.as_deref()).for_client(ClientClass::Internal);
            let off = match Engine::new().decide(&chat_models::Request { tools: all, ..request }) {
                Decision::Say(_) | Decision::Ask(..) => Vec::new(),
                Decision::Calls(calls) => calls.into_iter().map(|call| call.name).collect(),
            };
            return Ok(Answer::Tried { tried: Tried::Said { said, phrases: phrases(admin, user, text), off } });
        }
        Decision::Calls(calls) => calls,
    };
    let mut tried = Vec::new();
    for call in calls {
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        let result = match gone {
            Some(gone) => Some(execute(services, user, device.clone(), call, gone).await),
            None => None,
        };
        tried.push(TriedCall { tool, arguments, result });
    }
    Ok(Answer::Tried { tried: Tried::Calls(tried) })
}

/// A user's sentence as the engine receives it.
fn request(services: &Services, text: &str, user: &str, device: Option<&str>) -> chat_models::Request {
    chat_models::Request {
        messages: vec![Message::text(Role::User, text)],
        tools: services.executor.offered(user, device, ClientClass::Internal).1,
        now: clock::now(),
        zone: Some(clock::zone()),
        language: services.settings.language.clone(),
        scene: Arc::new(services.assistant.scenes.of(user)),
        ..chat_models::Request::default()
    }
}

/// The offline engine's result for a user's sentence, and why.
pub(super) fn explain(services: &Services, text: &str, user: &str) -> Result<Answer, String> {
    check_name(user)?;
    if text.trim().is_empty() || text.len() > SENTENCE_BYTES_MAX {
        return Err(format!("a sentence has 1 to {SENTENCE_BYTES_MAX} bytes"));
    }
    let device = device_of(&services.roster, user);
    let all = services.registry.snapshot(user, device.as_deref()).for_client(ClientClass::Internal);
    let explanation = Engine::new().explain(&request(services, text, user, device.as_deref()), &all);
    Ok(Answer::Explained { explanation: Box::new(explanation) })
}

/// Templates of the apps' tools in the spoken language, the most similar first. If any is similar to the sentence,
/// only similar ones.
fn phrases(admin: &Admin, user: &str, text: &str) -> Vec<(String, String)> {
    let base = |tag: &str| tag.split('-').next().unwrap_or_default().to_lowercase();
    let heard = |spoken: &&Phrases| base(&spoken.language) == base(&admin.services.settings.language);
    let (apps, denied) = (admin.installed.list_for(user), admin.switches.denied(user));
    let tools = apps.iter().flat_map(|app| &app.tools).filter(|tool| !is_denied(&denied, &tool.spec.name));
    let mut all: Vec<(usize, String, String)> = tools
        .flat_map(|tool| {
            let templates = tool.spec.phrases.iter().filter(heard).flat_map(|spoken| &spoken.templates);
            templates.map(|template| (likeness(text, &words_of(template)), tool.spec.name.clone(), template.clone()))
        })
        .collect();
    all.sort_by_key(|(likeness, ..)| std::cmp::Reverse(*likeness));
    let any = all.first().is_some_and(|(likeness, ..)| *likeness > 0);
    let shown = all.into_iter().filter(|(likeness, ..)| !any || *likeness > 0).take(PHRASES_MAX);
    shown.map(|(_, tool, template)| (tool, template)).collect()
}

/// A template without its slots.
fn words_of(template: &str) -> String {
    let mut parts = template.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('}').map_or("", |(_, rest)| rest))
}

async fn execute(
    services: &Services,
    user: &str,
    device: Option<String>,
    call: ToolCall,
    gone: &CancellationToken,
) -> ToolResult {
    let context = CallContext {
        session: None,
        user: user.to_owned(),
        device,
        turn: None,
        cancel: gone.clone(),
        default_timeout: Duration::from_millis(TRY_MS),
        conversation: Arc::default(),
        language: Some(services.settings.language.clone()),
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    };
    services.executor.call(context, call).await
}
