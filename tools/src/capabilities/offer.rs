//! Definitions as tools that can be called.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolCall, ToolResult, ToolSpec};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::definition::{Capability, CapabilityError, Definition, Execution, Tool};
use crate::{
    apps::{client::Client, post::Post},
    consent::cancelled,
    credentials::{Found, substitute},
    definition::Note,
    registry::{RegisterError, Registered, Registry, RunContext, Runner},
    secret::{Secret, Secrets},
    source::{About, Scope, Source},
    spoken,
    wording::words,
};

/// Why a definition that does not say who carries out its calls is refused.
const NO_EXECUTION: &str = "says nothing about who carries out its calls; add \"endpoint\": {\"url\": \"https://...\"}, an \
                            address that calls are posted to, or \"mcp\": \"NAME\", the MCP server that has tools of \
                            these names";
/// Headers that belong to the connection or to the body, and not to a definition.
const OWN_HEADERS: [&str; 6] = ["connection", "content-length", "content-type", "host", "transfer-encoding", "upgrade"];

/// A definition whose calls can be carried out.
#[derive(Clone)]
pub struct Offer {
    name: String,
    about: Option<Arc<About>>,
    tools: Vec<(ToolSpec, String)>,
    reach: Reach,
    secrets: Vec<Secret>,
    notes: Vec<String>,
}

/// Where its calls go.
#[derive(Clone)]
enum Reach {
    Endpoint {
        url: String,
        headers: HeaderMap,
    },
    Mcp(String),
    /// To handlers, which another runner runs.
    Handlers,
}

impl Offer {
    /// Fills in the variables of a definition; `variable` looks up the environment.
    ///
    /// # Errors
    /// It does not say who carries out its calls, or a variable is not set.
    pub fn new(definition: Definition, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, CapabilityError> {
        let (name, about, tools, execution, notes) = match definition {
            Definition::Capability(it) => (it.about.name.clone(), Some(it.about), it.functions, it.execution, it.notes),
            Definition::Tool(single) => {
                (single.tool.spec.name.clone(), None, vec![single.tool], single.execution, single.notes)
            }
        };
        let refuse = |pointer: String, reason: String| CapabilityError { capability: name.clone(), pointer, reason };
        let mut found = Found::default();
        let reach = match execution {
            None => return Err(refuse(String::new(), NO_EXECUTION.to_owned())),
            Some(Execution::Mcp(server)) => Reach::Mcp(server),
            Some(Execution::Endpoint { url, headers }) => {
                let at = |pointer: &str| format!("/endpoint/{pointer}");
                let filled = substitute(&url, variable, &mut found).map_err(|why| refuse(at("url"), why))?;
                found.address(&filled);
                if Url::parse(&filled).is_err() {
                    return Err(refuse(at("url"), "is no address".to_owned()));
                }
                let headers = fill_headers(&headers, variable, &mut found)
                    .map_err(|(header, why)| refuse(at(&format!("headers/{header}")), why))?;
                Reach::Endpoint { url: filled, headers }
            }
        };
        let tools = tools.into_iter().map(|Tool { spec, local_name, .. }| (spec, local_name)).collect();
        let notes = notes.into_iter().map(|Note { pointer, reason }| format!("'{pointer}': {reason}")).collect();
        Ok(Self { name, about, tools, reach, secrets: found.into_secrets(), notes })
    }

    /// A capability whose calls are carried out by handlers.
    pub fn handled(capability: Capability) -> Self {
        let Capability { about, functions, notes, .. } = capability;
        let tools = functions.into_iter().map(|Tool { spec, local_name, .. }| (spec, local_name)).collect();
        let notes = notes.into_iter().map(|Note { pointer, reason }| format!("'{pointer}': {reason}")).collect();
        let (name, about) = (about.name.clone(), Some(about));
        Self { name, about, tools, reach: Reach::Handlers, secrets: Vec::new(), notes }
    }

    /// The name of the capability, or of the single tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Full names of its tools.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(spec, _)| spec.name.as_str())
    }

    /// The MCP server that carries out its calls.
    pub fn server(&self) -> Option<&str> {
        match &self.reach {
            Reach::Mcp(server) => Some(server),
            Reach::Endpoint { .. } | Reach::Handlers => None,
        }
    }

    /// Values that only its server may see.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Leaves its tools to these classes of clients, at most: those who may call the tools of its MCP server.
    pub fn restrict(&mut self, classes: &[ClientClass]) {
        for (spec, _) in &mut self.tools {
            let both = |own: &Vec<ClientClass>| own.iter().filter(|class| classes.contains(class)).copied().collect();
            spec.clients = Some(spec.clients.as_ref().map_or_else(|| classes.to_vec(), both));
        }
    }

    /// Offers its tools in one scope, and keeps its secrets out of results. They are run by this runner.
    ///
    /// # Errors
    /// A name is taken, or there are too many tools: none of them is offered.
    pub fn register(&self, registry: &Registry, runner: Arc<dyn Runner>, scope: Scope) -> Result<u64, RegisterError> {
        self.secrets.iter().for_each(|secret| registry.secrets().keep(secret));
        let source = Source::Capability(self.name.clone());
        let revision = registry.register_named(source.clone(), scope, self.tools.clone(), runner)?;
        registry.report(&source, self.notes.clone());
        Ok(revision)
    }

    /// What carries out its calls; `None`: handlers.
    pub fn runner(&self, client: &Client) -> Option<Arc<dyn Runner>> {
        let about = self.about.clone();
        Some(match &self.reach {
            Reach::Handlers => return None,
            Reach::Mcp(server) => Arc::new(ServerRunner { server: server.clone(), about }),
            Reach::Endpoint { url, headers } => {
                let secrets = Secrets::default();
                self.secrets.iter().for_each(|secret| secrets.keep(secret));
                let post = Post::new(url, headers.clone(), secrets, client.http().clone());
                Arc::new(EndpointRunner { name: spoken::capitalised(&words(&self.name)), post, about })
            }
        })
    }
}

/// The headers with their variables filled in; an error has the header's name.
fn fill_headers(
    given: &BTreeMap<String, Secret>,
    variable: &dyn Fn(&str) -> Option<String>,
    found: &mut Found,
) -> Result<HeaderMap, (String, String)> {
    let mut headers = HeaderMap::new();
    for (name, text) in given {
        let wrong = |why: &str| (name.clone(), why.to_owned());
        let value = substitute(text.expose(), variable, found).map_err(|why| (name.clone(), why))?;
        found.entry(name, &value);
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("is no name of a header"))?;
        if OWN_HEADERS.contains(&key.as_str()) {
            return Err(wrong("is set by the gateway itself; leave it out"));
        }
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong("has a value that no header may have"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Posts calls to an HTTP server.
struct EndpointRunner {
    /// For messages and speech.
    name: String,
    post: Post,
    about: Option<Arc<About>>,
}

/// Body of the request that carries out a function on its server, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Posted<'a> {
    function: &'a str,
    parameters: &'a Value,
    user_id: &'a str,
}

#[async_trait]
impl Runner for EndpointRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let none = Value::Object(Map::new());
        let posted = Posted {
            function: &context.local_name,
            parameters: if call.arguments.is_object() { &call.arguments } else { &none },
            user_id: &context.user,
        };
        // Texts and values that were parsed from JSON always serialise to JSON.
        let body = serde_json::to_string(&posted).unwrap_or_default();
        let mut answer = String::new();
        let Some(result) = self.post.call(&context, &self.name, body, &mut answer).await else {
            return cancelled();
        };
        if let Some(error) = &result.error {
            self.post.secrets().redact(&mut answer);
            tracing::warn!(tool = call.name, code = ?error.code, "a call of a capability failed");
            tracing::debug!(tool = call.name, error = error.message, answer, "its answer");
        }
        result
    }

    fn about(&self) -> Option<Arc<About>> {
        self.about.clone()
    }
}

/// Calls the tools of an MCP server under other definitions.
struct ServerRunner {
    server: String,
    about: Option<Arc<About>>,
}

#[async_trait]
impl Runner for ServerRunner {
    async fn run(&self, context: RunContext, mut call: ToolCall) -> ToolResult {
        let source = Source::Mcp(self.server.clone());
        // What is offered to the user has the server's tools only if the server is for the user.
        let offered = context.offered.clone();
        let of_server = || offered.tools().iter().filter(|tool| tool.source == source);
        let Some(tool) = of_server().find(|tool| tool.local_name == context.local_name) else {
            return self.absent(&context, of_server().next().is_some());
        };
        if let Err(refused) = self.check(&context, tool, &call) {
            return *refused;
        }
        call.name.clone_from(&tool.spec.name);
        tool.runner.run(context, call).await
    }

    fn about(&self) -> Option<Arc<About>> {
        self.about.clone()
    }
}

impl ServerRunner {
    /// The result if the server has no such tool.
    fn absent(&self, context: &RunContext, has_others: bool) -> ToolResult {
        let (server, tool) = (&self.server, &context.local_name);
        let (code, message) = match has_others {
            true => {
                (ErrorCode::ToolNotFound, format!("The MCP server '{server}' has no tool '{tool}'; nothing was done."))
            }
            false => (
                ErrorCode::AppNotAvailable,
                format!(
                    "The MCP server '{server}' is not connected, and none of its tools are known; nothing was done."
                ),
            ),
        };
        let mut result = ToolResult::failed(code, message, !has_others);
        result.say = Some(match has_others {
            true => format!("{server} can't do that."),
            false => format!("{server} isn't running right now."),
        });
        result
    }

    /// Another definition of a tool must not weaken what holds for it.
    fn check(&self, context: &RunContext, tool: &Registered, call: &ToolCall) -> Result<(), Box<ToolResult>> {
        if tool.spec.flags.requires_approval && !context.flags.requires_approval {
            let message = format!(
                "The wearer is asked before '{}' of the MCP server '{}' is called, and this function does not ask; its \
                 definition needs \"requiresApproval\": true. Nothing was done.",
                tool.local_name, self.server
            );
            return Err(Box::new(ToolResult::failed(ErrorCode::PermissionDenied, message, false)));
        }
        let own = context.offered.find(&call.name).and_then(|function| function.spec.clients.as_ref());
        let is_wider =
            |theirs: &Vec<ClientClass>| own.is_none_or(|own| own.iter().any(|class| !theirs.contains(class)));
        if let Some(theirs) = tool.spec.clients.as_ref().filter(|theirs| is_wider(theirs)) {
            let theirs = serde_json::to_string(theirs).unwrap_or_default();
            let message = format!(
                "'{}' of the MCP server '{}' is for fewer clients than this function; its definition needs \"clients\": \
                 {theirs}. Nothing was done.",
                tool.local_name, self.server
            );
            return Err(Box::new(ToolResult::failed(ErrorCode::PermissionDenied, message, false)));
        }
        tool.schema.check(&call.arguments).map_err(|violation| {
            let message = format!("The arguments do not fit the tool of '{}': {violation}.", self.server);
            Box::new(ToolResult::failed(ErrorCode::InvalidArguments, message, false))
        })
    }
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
