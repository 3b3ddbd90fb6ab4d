//! Tools that a model may call.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::session::Session;

/// The reply with which an app reports that it has shown or spoken the answer itself.
const HANDLED: &str = "GIVE_APP_CONTROL_OF_TOOL_RESPONSE";

/// Context of a call.
#[derive(Clone)]
pub struct Call {
    /// The calling user.
    pub user: String,
    /// What was said last, oldest first; empty without the permission `CONVERSATION_HISTORY`.
    pub conversation: Vec<Said>,
    pub(crate) session: Option<Session>,
}

/// Something that the wearer or the assistant said.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Said {
    /// `user` or `assistant`.
    pub role: String,
    /// What was said, as text.
    pub content: String,
}

impl Call {
    /// The wearer's session with the glasses.
    ///
    /// # Errors
    /// The app does not run for this wearer. Tools that draw are only called while it runs.
    pub fn session(&self) -> Result<&Session, ToolError> {
        self.session.as_ref().ok_or_else(|| ToolError::new("I'm not running on your glasses right now."))
    }
}

/// Result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A text to be spoken to the wearer.
    Say(String),
    /// Data for a model, which phrases the answer.
    Data(Value),
    /// The app has shown or spoken the answer itself; the assistant stays silent.
    Handled,
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::Say(text)
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Say(text.to_owned())
    }
}

impl From<Value> for Reply {
    fn from(data: Value) -> Self {
        Self::Data(data)
    }
}

impl Reply {
    fn value(self) -> Value {
        match self {
            Self::Say(text) => text.into(),
            Self::Data(data) => data,
            Self::Handled => HANDLED.into(),
        }
    }
}

/// Why a tool failed, as a sentence for the wearer. `?` converts any error, keeping its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(pub(crate) String);

impl ToolError {
    /// An error with this message.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Outcome of a call.
#[derive(Debug)]
pub(crate) enum Outcome {
    Replied(Reply),
    Refused(ToolError),
    /// The arguments do not match the tool's schema.
    Misfit(String),
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A tool: its definition and its handler.
pub struct Tool {
    pub(crate) name: String,
    description: String,
    schema: Value,
    phrases: BTreeMap<String, Vec<String>>,
    draws: bool,
    read_only: bool,
    run: Arc<dyn Fn(Call, Value) -> Running + Send + Sync>,
}

impl Tool {
    /// A tool whose arguments are the fields of `A`; their doc comments describe them to the model.
    pub fn new<A, R, H, F>(name: &str, description: &str, handler: H) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Into<Reply>,
        H: Fn(Call, A) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let run = move |call: Call, arguments: Value| -> Running {
            match serde_json::from_value::<A>(arguments) {
                Ok(arguments) => {
                    let running = handler(call, arguments);
                    Box::pin(async move {
                        match running.await {
                            Ok(reply) => Outcome::Replied(reply.into()),
                            Err(error) => Outcome::Refused(error),
                        }
                    })
                }
                Err(error) => Box::pin(async move { Outcome::Misfit(error.to_string()) }),
            }
        };
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: schema_of::<A>(),
            phrases: BTreeMap::new(),
            draws: false,
            read_only: false,
            run: Arc::new(run),
        }
    }

    /// Adds an English sentence with which the wearer may call it, with `{argument}` in place of an argument's words,
    /// `[optional]` words and `(this|that)`.
    #[must_use]
    pub fn phrase(self, template: &str) -> Self {
        self.phrase_in("en", template)
    }

    /// As [`phrase`](Self::phrase), in another language, by its tag.
    #[must_use]
    pub fn phrase_in(mut self, language: &str, template: &str) -> Self {
        self.phrases.entry(language.to_owned()).or_default().push(template.to_owned());
        self
    }

    /// Marks it as a tool that draws or listens: the app is started before it is called, and [`Call::session`] is
    /// available.
    #[must_use]
    pub fn draws(mut self) -> Self {
        self.draws = true;
        self
    }

    /// Marks it as read-only: it changes nothing and may be repeated.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    pub(crate) fn run(&self, call: Call, arguments: Value) -> Running {
        let arguments = if arguments.is_object() { arguments } else { Value::Object(Map::new()) };
        (self.run)(call, arguments)
    }

    /// Its definition, as in an app's manifest.
    pub(crate) fn definition(&self) -> Value {
        let mut extensions = json!({"requiresDisplay": self.draws, "activateApp": self.draws});
        if !self.phrases.is_empty() {
            extensions["sentenceTemplates"] = json!(self.phrases);
        }
        let mut definition = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema,
            "mentraExtensions": extensions,
        });
        if self.read_only {
            definition["annotations"] = json!({"readOnlyHint": true});
        }
        definition
    }
}

fn schema_of<A: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(A).to_value();
    if let Some(map) = schema.as_object_mut() {
        map.remove("$schema");
        map.remove("title");
        map.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// The response to a call in the published format.
pub(crate) fn published(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Replied(reply) => json!({"status": "success", "reply": reply.value()}),
        Outcome::Refused(ToolError(message)) | Outcome::Misfit(message) => {
            json!({"status": "error", "message": message})
        }
    }
}

/// The response to a call in the MCP format.
pub(crate) fn mcp(outcome: Outcome) -> Value {
    let failed = |code: &str, message: String| json!({"success": false, "error": {"code": code, "message": message, "retryable": false}});
    match outcome {
        Outcome::Replied(Reply::Handled) => {
            json!({"success": true, "content": "Done.", "mentraExtensions": {"handledDisplay": true}})
        }
        Outcome::Replied(reply) => json!({"success": true, "content": reply.value()}),
        Outcome::Refused(ToolError(message)) => failed("EXECUTION_ERROR", message),
        Outcome::Misfit(message) => failed("INVALID_ARGUMENTS", message),
    }
}
