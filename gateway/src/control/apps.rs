//! What can be asked about mini-apps.

use std::{sync::Arc, time::Duration};

use chat_models::intents::{Decision, Engine};
use gateway_core::{
    app_life::StopReason,
    vocab::{ClientClass, Message, Phrases, Role, ToolCall, Turn},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use tools::{
    apps::{
        faults::Fault,
        import::{self, Given},
        manifest::App,
    },
    executor::CallContext,
};

use super::Answer;
use crate::{clock, gate::Gate};

/// Bytes of a key: more than any made by a person or a program.
const KEY_BYTES_MAX: usize = 256;
/// Bytes of a sentence: a minute of fast speech.
const SENTENCE_BYTES_MAX: usize = 2_000;
/// How long a tool that sets no time of its own may take when it is tried.
const TRY_MS: u64 = 30_000;
/// How long an app may take to start: as long as the host gives it, and a little more.
const START_MS_MAX: u64 = 12_000;
/// Templates that are shown where a sentence fits none: a screen of them.
const PHRASES_MAX: usize = 24;

/// What can be asked.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// Install an app from the text of its manifest, or install it anew.
    Add { manifest: String, package: Option<String>, url: Option<String>, api_key: Option<String> },
    /// What is installed.
    List,
    /// Remove an app.
    Remove { package: String },
    /// What went wrong with an app lately.
    Logs { package: String },
    /// Start an app for a user and wait until it runs.
    Start { package: String, user: String },
    /// Stop it and wait until it is gone.
    Stop { package: String, user: String },
    /// Stop it where it runs, and start it.
    Restart { package: String, user: String },
    /// Give one of its settings a value.
    Set { package: String, user: String, key: String, value: Value },
    /// What a sentence would lead to; with `run`, call that.
    Try { text: String, user: String, device: Option<String>, run: bool },
}

/// An installed app, for people.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Its package.
    pub package: String,
    /// Its name.
    pub name: String,
    /// Where its server answers.
    pub public_url: String,
    /// Full names of its tools.
    pub tools: Vec<String>,
    /// What went wrong lately: how often.
    pub faults: usize,
}

/// What was said of a sentence.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// No tool.
    Said {
        /// This would be said.
        said: String,
        /// What would have led to a tool of an app: its full name and a template.
        phrases: Vec<(String, String)>,
    },
    /// These calls.
    Calls(Vec<TriedCall>),
}

/// A call that a sentence leads to.
#[derive(Debug, Serialize, Deserialize)]
pub struct TriedCall {
    /// Full name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What became of it, if it was run.
    pub result: Option<gateway_core::vocab::ToolResult>,
}

/// For the log.
pub(super) fn name(wish: &Wish) -> &'static str {
    match wish {
        Wish::Add { .. } => "apps add",
        Wish::List => "apps list",
        Wish::Remove { .. } => "apps remove",
        Wish::Logs { .. } => "apps logs",
        Wish::Start { .. } => "apps start",
        Wish::Stop { .. } => "apps stop",
        Wish::Restart { .. } => "apps restart",
        Wish::Set { .. } => "apps set",
        Wish::Try { .. } => "apps try",
    }
}

pub(super) async fn carry_out(gate: &Gate, wish: Wish) -> Result<Answer, String> {
    match wish {
        Wish::Add { manifest, package, url, api_key } => add(gate, &manifest, package, url, api_key).await,
        Wish::List => Ok(Answer::Apps { apps: gate.installed.list().iter().map(|app| listed(gate, app)).collect() }),
        Wish::Remove { package } => match gate.installed.remove(&package).await {
            Ok(true) => Ok(Answer::Done { message: format!("removed {package}") }),
            Ok(false) => Err(not_installed(&package)),
            Err(error) => Err(error.to_string()),
        },
        Wish::Logs { package } => match gate.installed.get(&package) {
            Some(_) => Ok(Answer::Faults { faults: faults(gate, &package) }),
            None => Err(not_installed(&package)),
        },
        Wish::Start { package, user } => match start(gate, &user, &package).await? {
            true => Ok(Answer::Done { message: format!("started {package} for {user}") }),
            false => Ok(Answer::Done { message: format!("{package} was running for {user}") }),
        },
        Wish::Restart { package, user } => {
            gate.apps.stop(&user, &package, StopReason::User).await;
            start(gate, &user, &package).await?;
            Ok(Answer::Done { message: format!("started {package} for {user} anew") })
        }
        Wish::Stop { package, user } => match gate.apps.stop(&user, &package, StopReason::User).await {
            true => Ok(Answer::Done { message: format!("stopped {package} for {user}") }),
            false => Err(format!("{package} does not run for {user}")),
        },
        Wish::Set { package, user, key, value } => {
            gate.apps.set(&user, &package, &key, value).await?;
            Ok(Answer::Done { message: format!("set `{key}` of {package} for {user}") })
        }
        Wish::Try { text, user, device, run } => attempt(gate, &text, &user, device.as_deref(), run).await,
    }
}

async fn start(gate: &Gate, user: &str, package: &str) -> Result<bool, String> {
    gate.apps.start(user, package, Duration::from_millis(START_MS_MAX)).await
}

fn not_installed(package: &str) -> String {
    format!("no app `{package}` is installed; `lorgnette apps list` shows them")
}

fn faults(gate: &Gate, package: &str) -> Vec<Fault> {
    gate.installed.client().faults().of(package)
}

fn listed(gate: &Gate, app: &App) -> Listed {
    Listed {
        package: app.package.clone(),
        name: app.name.clone(),
        public_url: app.public_url.clone(),
        tools: app.tools.iter().map(|tool| tool.spec.name.clone()).collect(),
        faults: faults(gate, &app.package).len(),
    }
}

async fn add(
    gate: &Gate,
    manifest: &str,
    package: Option<String>,
    url: Option<String>,
    api_key: Option<String>,
) -> Result<Answer, String> {
    let mut given = Given { package, public_url: url, api_key_sha256: String::new() };
    let (mut app, notes) = import::read(manifest, &given).map_err(|problems| lines(&problems))?;
    let before = gate.installed.get(&app.package);
    let (hash, told) = match (api_key, before) {
        (Some(key), _) => (hash_of(&key)?, "its key is the one that was given".to_owned()),
        (None, Some(before)) => (before.api_key_sha256.clone(), "its key is the same as before".to_owned()),
        (None, None) => {
            let key = new_key()?;
            (hash_of(&key)?, format!("its key, which is shown only now: {key}"))
        }
    };
    given.api_key_sha256.clone_from(&hash);
    app.api_key_sha256 = hash;
    let app = gate.installed.add(app).await.map_err(|error| error.to_string())?;
    let mut message = format!("installed {} ({}) at {}\n{told}", app.name, app.package, app.public_url);
    for tool in &app.tools {
        message.push_str(&format!("\ntool {}", tool.spec.name));
    }
    for note in notes {
        message.push_str(&format!("\nnote: {note}"));
    }
    Ok(Answer::Done { message })
}

fn lines(problems: &[import::Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    format!("the manifest has {} problem(s):{}", problems.len(), lines.concat())
}

fn new_key() -> Result<String, String> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| format!("no key could be made: {error}"))?;
    Ok(hex(&key))
}

fn hash_of(key: &str) -> Result<String, String> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!("a key has 1 to {KEY_BYTES_MAX} visible characters"));
    }
    Ok(hex(&Sha256::digest(key.as_bytes())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As if the sentence had been said, to the offline engine.
async fn attempt(gate: &Gate, text: &str, user: &str, device: Option<&str>, run: bool) -> Result<Answer, String> {
    if text.trim().is_empty() || text.len() > SENTENCE_BYTES_MAX {
        return Err(format!("a sentence has 1 to {SENTENCE_BYTES_MAX} bytes"));
    }
    // Glasses of this user's that are there can be drawn on, and asked.
    let device = device.map_or_else(|| super::tools::device_of(gate, user), str::to_owned);
    let request = chat_models::Request {
        system: String::new(),
        messages: vec![Message::text(Role::User, text)],
        tools: Arc::clone(&gate.registry.snapshot(user, &device).specs),
        now: clock::now(),
        language: gate.config.language.clone(),
        max_tokens: None,
        watch: chat_models::Watch::default(),
    };
    let calls = match Engine::new().decide(&request) {
        Decision::Say(said) => {
            return Ok(Answer::Tried { tried: Tried::Said { said, phrases: phrases(gate) } });
        }
        Decision::Calls(calls) => calls,
    };
    let mut tried = Vec::new();
    for call in calls {
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        let result = if run { Some(execute(gate, user, &device, call).await) } else { None };
        tried.push(TriedCall { tool, arguments, result });
    }
    Ok(Answer::Tried { tried: Tried::Calls(tried) })
}

/// Templates of the apps' tools in the language that is heard.
fn phrases(gate: &Gate) -> Vec<(String, String)> {
    let base = |tag: &str| tag.split('-').next().unwrap_or_default().to_lowercase();
    let heard = |spoken: &&Phrases| base(&spoken.language) == base(&gate.config.language);
    let apps = gate.installed.list();
    let all = apps.iter().flat_map(|app| &app.tools).flat_map(|tool| {
        let templates = tool.spec.phrases.iter().filter(heard).flat_map(|spoken| &spoken.templates);
        templates.map(|template| (tool.spec.name.clone(), template.clone()))
    });
    all.take(PHRASES_MAX).collect()
}

async fn execute(gate: &Gate, user: &str, device: &str, call: ToolCall) -> gateway_core::vocab::ToolResult {
    let context = CallContext {
        session: String::new(),
        user: user.to_owned(),
        device: device.to_owned(),
        turn: Turn::default(),
        cancel: CancellationToken::new(),
        default_timeout: Duration::from_millis(TRY_MS),
        client: ClientClass::Internal,
        caller: None,
        stay: None,
    };
    gate.executor.call(context, call).await
}
