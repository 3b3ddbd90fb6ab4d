//! The built-in tools: one file per tool, which declares everything about it and registers itself.

mod app_list;
mod app_start;
mod app_stop;
mod apps;
mod calculator_evaluate;
mod clock_date;
mod clock_time;
mod conversation_new;
mod conversation_search;
mod device_status;
mod facts;
mod help_show;
mod languages;
mod memory_create;
mod memory_delete;
mod memory_get;
mod memory_list;
mod memory_restore;
mod memory_search;
mod memory_update;
mod note_add;
mod note_clear;
mod note_delete;
mod note_list;
mod note_search;
mod notes;
mod personality_get;
mod photo_delete;
mod prompt_add;
mod prompt_delete;
mod prompt_list;
mod reminder_cancel;
mod reminder_list;
mod reminder_set;
mod schedule;
mod skill_list;
mod skill_read;
mod timer_cancel;
mod timer_extend;
mod timer_list;
mod timer_set;

#[cfg(feature = "fuzzing")]
pub(crate) use calculator_evaluate::calculation;

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, Content, ErrorCode, Phrases, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};

use crate::{
    arguments::{Arguments, Refusal},
    permissions::ConfiguredClients,
    programs::Run,
    registry::{Asking, RegisterError, Registry, RunContext, Runner, Words},
    secret::Secrets,
    sides,
    source::{Scope, Source},
};

/// A built-in tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, schema, phrases and effects, from which its registered form is made.
    fn definition(&self) -> Definition;
    /// The classes of clients that see it; absent: all.
    fn clients(&self) -> Option<&'static [ClientClass]> {
        None
    }
    /// Its category, for people who browse.
    fn category(&self) -> Option<&'static str> {
        None
    }
    /// Whether it is for an operator's programs, and not for conversations ([`sides::is_for_operators`]).
    fn is_for_operators(&self) -> bool {
        false
    }
    /// The question before a call that requires approval.
    fn approval(&self) -> Option<&'static str> {
        None
    }
    /// Shown while a call runs, where the title does not say it well: text with `{property}` of its arguments.
    fn progress(&self) -> Option<&'static str> {
        None
    }
    /// A sentence for that question, of what the arguments do not tell.
    async fn more_to_ask(&self, asking: &Asking<'_>) -> Option<String> {
        let _ = asking;
        None
    }
    /// Whether it runs programs that call other tools ([`Runner::runs_programs`]).
    fn runs_programs(&self) -> bool {
        false
    }
    /// The program that a call with these arguments runs.
    fn program(&self, arguments: &Value) -> Option<String> {
        let _ = arguments;
        None
    }
    /// Longest time of a call in milliseconds. By default that of one commit to a memory card.
    fn timeout_ms(&self) -> u32 {
        BUILT_IN_MS_MAX
    }
    /// Runs it. The arguments have been checked against the schema.
    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal>;
}

/// The declaration of a built-in tool, in a form that is convenient to write.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Full name.
    pub name: &'static str,
    /// Display name.
    pub title: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// Properties of the arguments, as JSON Schema.
    pub properties: Value,
    /// Names of the required properties.
    pub required: &'static [&'static str],
    /// English sentence templates; the first one serves as example in help.
    pub phrases: &'static [&'static str],
    /// Advice for a model.
    pub guidance: Option<&'static str>,
    /// Its effects and requirements.
    pub flags: ToolFlags,
}

/// For tools that only look something up; other sets of flags are derived from it.
const READ_ONLY: ToolFlags = ToolFlags {
    read_only: true,
    idempotent: true,
    destructive: false,
    requires_approval: false,
    always: true,
    persistent: false,
    requires_display: false,
    slow: false,
};

/// Changes what is stored for the wearer.
const CHANGES: ToolFlags = ToolFlags { read_only: false, idempotent: false, persistent: true, ..READ_ONLY };

/// For the wearer's own assistant only: conversations and instructions are not for other clients.
const WEARER_ONLY: Option<&[ClientClass]> = Some(&[ClientClass::Internal]);
/// Also for clients with a key from the wearer: facts are meant to be used by them.
const WITH_KEY: Option<&[ClientClass]> = Some(&[ClientClass::Internal, ClientClass::External]);
/// Also for the wearer's assistants on other machines, which should behave alike.
const ASSISTANTS: Option<&[ClientClass]> = Some(&[ClientClass::Internal, ClientClass::Copilot]);

/// Timeout of most built-in tools in milliseconds: their slowest operation is one commit to a memory card.
pub(crate) const BUILT_IN_MS_MAX: u32 = 10_000;

impl From<Definition> for ToolSpec {
    fn from(definition: Definition) -> Self {
        Self {
            name: definition.name.to_owned(),
            title: Some(definition.title.to_owned()),
            description: definition.description.to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": definition.properties,
                "required": definition.required,
                "additionalProperties": false,
            }),
            phrases: (!definition.phrases.is_empty())
                .then(|| Phrases {
                    language: "en".to_owned(),
                    templates: definition.phrases.iter().map(ToString::to_string).collect(),
                })
                .into_iter()
                .chain(languages::of(definition.name))
                .collect(),
            // Every built-in result has its own text.
            reply: None,
            guidance: definition.guidance.map(ToOwned::to_owned),
            flags: definition.flags,
            ..Self::default()
        }
    }
}

/// A tool's entry in the inventory.
struct BuiltIn(&'static dyn Tool);

inventory::collect!(BuiltIn);

impl Registry {
    /// A catalogue of all built-in tools.
    pub fn with_built_ins() -> Result<Self, RegisterError> {
        Self::with_built_ins_for(ConfiguredClients::new())
    }

    /// The same, in which single tools are for the classes of clients that the operator has set.
    pub fn with_built_ins_for(clients: ConfiguredClients) -> Result<Self, RegisterError> {
        Self::with_built_ins_and(Vec::new(), clients, Secrets::default())
    }

    /// The same with further tools, which are built in but not always there, and the secrets that they use.
    pub fn with_built_ins_and(
        more: Vec<Arc<dyn Tool>>,
        clients: ConfiguredClients,
        secrets: Secrets,
    ) -> Result<Self, RegisterError> {
        let registry = Self::with_clients_and(clients, secrets);
        let (specs, runner) = with(more);
        registry.register(Source::BuiltIn, Scope::Global, specs, runner)?;
        Ok(registry)
    }
}

/// Specs of all built-in tools, sorted by name, and their runners.
pub fn all() -> (Vec<ToolSpec>, Arc<dyn Runner>) {
    with(Vec::new())
}

/// The same with further tools.
fn with(more: Vec<Arc<dyn Tool>>) -> (Vec<ToolSpec>, Arc<dyn Runner>) {
    let mut specs = Vec::new();
    let mut tools = BTreeMap::new();
    let always = inventory::iter::<BuiltIn>.into_iter().map(|BuiltIn(tool)| Handle::Always(*tool));
    for tool in always.chain(more.into_iter().map(Handle::Given)) {
        let definition = tool.definition();
        let clients = tool.clients().map(<[ClientClass]>::to_vec);
        let (approval, progress) = (tool.approval().map(ToOwned::to_owned), tool.progress().map(ToOwned::to_owned));
        let side = if tool.is_for_operators() { sides::operators() } else { sides::built_in(definition.name) };
        let (name, timeout_ms) = (definition.name, Some(tool.timeout_ms()));
        let category = tool.category().map(ToOwned::to_owned);
        specs.push(ToolSpec { clients, approval, progress, side, timeout_ms, category, ..ToolSpec::from(definition) });
        tools.insert(name, tool);
    }
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    (specs, Arc::new(BuiltIns(tools)))
}

/// A built-in tool that is always there, or one that the gateway gives.
enum Handle {
    Always(&'static dyn Tool),
    Given(Arc<dyn Tool>),
}

impl Deref for Handle {
    type Target = dyn Tool;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Always(tool) => *tool,
            Self::Given(tool) => tool.as_ref(),
        }
    }
}

struct BuiltIns(BTreeMap<&'static str, Handle>);

#[async_trait]
impl Runner for BuiltIns {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let Some(tool) = self.0.get(call.name.as_str()) else {
            let message = format!("No built-in tool is named '{}'.", call.name);
            return ToolResult::failed(ErrorCode::ToolNotFound, message, false);
        };
        tool.run(&context, Arguments(&call.arguments)).await.unwrap_or_else(Refusal::into_result)
    }

    async fn words(&self, asking: &Asking<'_>) -> Option<Words> {
        self.0.get(asking.local_name)?.more_to_ask(asking).await.map(Words::Added)
    }

    fn runs_programs(&self, local_name: &str) -> bool {
        self.0.get(local_name).is_some_and(|tool| tool.runs_programs())
    }

    fn run_of(&self, call: &ToolCall) -> Option<Run> {
        let source = self.0.get(call.name.as_str())?.program(&call.arguments)?;
        Some(Run { source, ..Run::default() })
    }
}

/// A result with the same text for model and wearer, and a card on the display.
fn told(say: impl Into<String>, title: &str, text: impl Into<String>, data: Value) -> ToolResult {
    let mut result = ToolResult::said(say);
    result.show = Some(Content::Card { title: title.to_owned(), text: text.into() });
    result.data = Some(data);
    result
}

#[cfg(test)]
mod apps_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod tests;
