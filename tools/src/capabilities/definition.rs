//! Reads definitions of capabilities in JSON.
//!
//! ```json
//! {"name": "trainSchedule", "description": "...", "version": "1.0.0",
//!  "functions": [{"name": "getSchedule", "description": "...", "parameters": {}, "returns": {}}],
//!  "config": {"requiresApproval": false, "rateLimit": {"requests": 100, "period": "minute"}}}
//! ```
//!
//! A function has the fields of a tool's definition (see [`crate::definition`]), and becomes the tool `NAME.FUNCTION`.
//! `config` has the defaults of all functions; its rate limit counts the calls of all functions without one of their
//! own together. An unknown field is an error: a misspelt `requiresApproval` would let calls pass without a question.
//! A single tool in any form that [`crate::definition`] reads, with `endpoint` or `mcp` at its top, and a list of
//! definitions, are read as well.

use std::{collections::BTreeMap, sync::Arc};

use gateway_core::vocab::{RateLimit, ToolSpec};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{
    input::{Function, Origin},
    lift,
};
use crate::{
    definition::{
        self, DefinitionError, Naming, Note,
        fields::{At, Fields, same},
    },
    limits::{
        CAPABILITY_BYTES_MAX, CAPABILITY_FUNCTIONS_MAX, CAPABILITY_NAME_BYTES_MAX, DEFINITION_DEPTH_MAX,
        DESCRIPTION_BYTES_MAX, HEADERS_MAX, LOCAL_NAME_BYTES_MAX, NAME_BYTES_MAX, NOTES_MAX, URL_BYTES_MAX,
        VERSION_BYTES_MAX,
    },
    reply::cut,
    schema::check_depth_within,
    secret::Secret,
    source::About,
};

/// The version of a capability that states none.
const NO_VERSION: &str = "0.0.0";
/// What a function's definition may have; any other field is an error.
const FUNCTION_FIELDS: [&str; 25] = [
    "activationPhrases",
    "always",
    "annotations",
    "approvalMessage",
    "category",
    "clients",
    "description",
    "guidance",
    "inputSchema",
    "mentraExtensions",
    "name",
    "outputSchema",
    "parameters",
    "persistent",
    "progressMessage",
    "rateLimit",
    "replyTemplate",
    "requiresApproval",
    "requiresDisplay",
    "returns",
    "routed",
    "sentenceTemplates",
    "slow",
    "timeoutMs",
    "title",
];
/// Fields of `config`.
const CONFIG_FIELDS: [&str; 8] =
    ["approvalMessage", "category", "clients", "persistent", "rateLimit", "requiresApproval", "slow", "timeoutMs"];
/// Fields of a capability.
const FIELDS: [&str; 7] = ["config", "description", "endpoint", "functions", "mcp", "name", "version"];

/// Why a definition was rejected; nothing of it is used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("capability '{capability}' at '{pointer}': {reason}")]
pub struct CapabilityError {
    /// Its name in the definition; `?` if there is none.
    pub capability: String,
    /// JSON Pointer (RFC 6901) into the definition.
    pub pointer: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

/// What a file defines.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A group of functions.
    Capability(Capability),
    /// A single tool.
    Tool(Box<Single>),
}

/// A group of functions.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Name, version, description, and the rate limit of all functions together.
    pub about: Arc<About>,
    /// At least one.
    pub functions: Vec<Tool>,
    /// Who carries out calls; `None` if the definition does not say.
    pub execution: Option<Execution>,
    /// Parts that could not be used. The functions work without them.
    pub notes: Vec<Note>,
}

/// What a definition of one tool comes to, outside of any capability.
#[derive(Clone, Debug)]
pub struct Single {
    /// The tool's own definition.
    pub tool: Tool,
    /// Who carries out calls; `None` if the definition does not say.
    pub execution: Option<Execution>,
    /// Parts that could not be used. The tool works without them.
    pub notes: Vec<Note>,
}

/// A function as a tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Under its full name.
    pub spec: ToolSpec,
    /// The definition's own name for it.
    pub local_name: String,
    /// Whether its calls count towards the capability's rate limit: it has none of its own.
    pub shares_rate_limit: bool,
}

/// Who carries out the calls of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// An HTTP server: `{function, parameters, userId}` is posted to it.
    Endpoint {
        /// URL of the server.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, Secret>,
    },
    /// An MCP server, by its name in the configuration.
    Mcp(String),
}

impl Definition {
    /// What the compiler takes.
    pub fn functions(&self) -> Vec<Function> {
        match self {
            Self::Tool(single) => vec![single.tool.function(Origin::Tool)],
            Self::Capability(capability) => {
                let origin = || Origin::Capability(Arc::clone(&capability.about));
                capability.functions.iter().map(|tool| tool.function(origin())).collect()
            }
        }
    }
}

impl Tool {
    fn function(&self, origin: Origin) -> Function {
        Function { spec: Arc::new(self.spec.clone()), local_name: self.local_name.clone(), origin }
    }
}

/// Reads a file: a capability, a single tool, or a list of these.
///
/// # Errors
/// It is no JSON, or a definition in it is invalid or too large.
pub fn read_text(text: &str) -> Result<Vec<Definition>, CapabilityError> {
    let refuse = |reason: String| CapabilityError { capability: "?".to_owned(), pointer: String::new(), reason };
    if text.len() > CAPABILITY_BYTES_MAX {
        let bytes = text.len();
        return Err(refuse(format!("{bytes} bytes; at most {CAPABILITY_BYTES_MAX} are accepted: make several files")));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| refuse(format!("is no JSON: {error}")))?;
    let Some(items) = value.as_array() else {
        return read(&value).map(|definition| vec![definition]);
    };
    if items.is_empty() || items.len() > CAPABILITY_FUNCTIONS_MAX {
        let count = items.len();
        return Err(refuse(format!("{count} definitions; a file has 1 to {CAPABILITY_FUNCTIONS_MAX}")));
    }
    let below =
        |at: usize, error: CapabilityError| CapabilityError { pointer: format!("/{at}{}", error.pointer), ..error };
    items.iter().enumerate().map(|(at, item)| read(item).map_err(|error| below(at, error))).collect()
}

/// Reads one definition: a capability if it has `functions`, otherwise a single tool.
///
/// # Errors
/// A part of it is invalid or too large.
pub fn read(value: &Value) -> Result<Definition, CapabilityError> {
    let name = value.get("name").and_then(Value::as_str).unwrap_or("?");
    let capability = cut(name, CAPABILITY_NAME_BYTES_MAX);
    // Depth is checked first: everything after it may recurse. A function is two levels below its capability.
    check_depth_within(value, DEFINITION_DEPTH_MAX + 2).map_err(|violation| CapabilityError {
        capability: capability.clone(),
        pointer: violation.pointer,
        reason: violation.reason,
    })?;
    if value.get("functions").is_some() {
        return read_capability(&capability, value).map_err(in_words).map(Definition::Capability);
    }
    read_single(value).map_err(in_words).map(|single| Definition::Tool(Box::new(single)))
}

fn read_single(value: &Value) -> Result<Single, DefinitionError> {
    let execution = match value.as_object() {
        Some(_) => {
            let name = value.get("function").unwrap_or(value).get("name").and_then(Value::as_str).unwrap_or("?");
            execution(&mut Fields::new(&cut(name, NAME_BYTES_MAX), "", value)?)?
        }
        None => None,
    };
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| !same(key, "endpoint") && !same(key, "mcp"));
    }
    let at = if value.get("function").is_some_and(Value::is_object) { "/function" } else { "" };
    value.pointer_mut(at).into_iter().for_each(lift_required);
    let (spec, local_name, report) = definition::read(&value, Naming::AsIs)?;
    Ok(Single { tool: Tool { spec, local_name, shares_rate_limit: false }, execution, notes: report.notes })
}

fn in_words(error: DefinitionError) -> CapabilityError {
    CapabilityError { capability: error.tool, pointer: error.pointer, reason: error.reason }
}

fn read_capability(capability: &str, value: &Value) -> Result<Capability, DefinitionError> {
    let mut fields = Fields::new(capability, "", value)?;
    only_known(&fields, &FIELDS, "a capability")?;
    let missing = |field: &str, reason: &str| DefinitionError {
        tool: capability.to_owned(),
        pointer: format!("/{field}"),
        reason: reason.to_owned(),
    };
    let name = fields.take("name").ok_or_else(|| missing("name", "a capability needs a name, such as \"trains\""))?;
    check_name(&name, CAPABILITY_NAME_BYTES_MAX)?;
    let version = fields.take("version");
    version.as_ref().map(check_version).transpose()?;
    let description = fields.take("description").map(|at| at.text_within(DESCRIPTION_BYTES_MAX)).transpose()?;
    let config = fields.object("config")?;
    let (defaults, rate_limit) = config.map(defaults).transpose()?.unwrap_or_default();
    let execution = execution(&mut fields)?;

    let functions = fields.take("functions").ok_or_else(|| missing("functions", "must be a list of functions"))?;
    let items = functions.list(CAPABILITY_FUNCTIONS_MAX)?;
    if items.is_empty() {
        return Err(functions.error("must have at least one function"));
    }
    let name = name.text()?;
    let (mut tools, mut notes) = (Vec::<Tool>::new(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        let tool = read_function(&name, at, item, &defaults, &mut notes)?;
        if let Some(other) = tools.iter().position(|other| other.local_name == tool.local_name) {
            let reason = format!("/functions/{other} has the same name; choose another one");
            return Err(DefinitionError { tool: name, pointer: format!("{}/name", item.pointer), reason });
        }
        tools.push(tool);
    }
    notes.truncate(NOTES_MAX);
    let about = About {
        name,
        version: version.and_then(|at| at.text().ok()).unwrap_or_else(|| NO_VERSION.to_owned()),
        description: description.unwrap_or_default(),
        rate_limit,
    };
    Ok(Capability { about: Arc::new(about), functions: tools, execution, notes })
}

/// The defaults of functions, and the rate limit of all together.
fn defaults(mut config: Fields<'_>) -> Result<(Map<String, Value>, Option<RateLimit>), DefinitionError> {
    only_known(&config, &CONFIG_FIELDS, "`config`")?;
    let rate_limit = config.take("rateLimit").map(|at| definition::rate_limit(&at)).transpose()?;
    let mut defaults = Map::new();
    for key in CONFIG_FIELDS {
        if let Some(value) = config.take(key).filter(|_| key != "rateLimit") {
            defaults.insert(key.to_owned(), value.value.clone());
        }
    }
    Ok((defaults, rate_limit))
}

fn read_function(
    capability: &str,
    at: usize,
    item: &At<'_>,
    defaults: &Map<String, Value>,
    notes: &mut Vec<Note>,
) -> Result<Tool, DefinitionError> {
    let mut fields = item.object()?;
    only_known(&fields, &FUNCTION_FIELDS, "a function")?;
    let name = fields.take("name").ok_or_else(|| item.error("a function needs a `name`"))?;
    check_name(&name, LOCAL_NAME_BYTES_MAX)?;
    let mut whole = defaults.clone();
    // A question that the function states itself is asked, whatever the default.
    if own(item.value, "approvalMessage").is_some() && own(item.value, "requiresApproval").is_none() {
        whole.remove("requiresApproval");
    }
    let mut function = item.value.clone();
    lift_required(&mut function);
    let given: Vec<String> = whole.keys().cloned().collect();
    whole.insert("function".to_owned(), function);
    let pointer = |inner: &str| match inner.strip_prefix("/function") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/functions/{at}{rest}"),
        _ => match inner.split('/').nth(1).is_some_and(|key| given.iter().any(|given| given == key)) {
            true => format!("/config{inner}"),
            false => format!("/functions/{at}{inner}"),
        },
    };
    let (spec, local_name, report) =
        definition::read(&whole.into(), Naming::Capability(capability)).map_err(|error| DefinitionError {
            tool: cut(&format!("{capability}.{}", error.tool), NAME_BYTES_MAX),
            pointer: pointer(&error.pointer),
            reason: error.reason,
        })?;
    let found = report.notes.into_iter().map(|note| Note { pointer: pointer(&note.pointer), reason: note.reason });
    notes.extend(found);
    Ok(Tool { spec, local_name, shares_rate_limit: own(item.value, "rateLimit").is_none() })
}

/// A function's own field, at its top or among its extensions.
fn own<'a>(function: &'a Value, field: &str) -> Option<&'a Value> {
    let places = [Some(function), function.get("mentraExtensions")];
    let mut fields = places.into_iter().flatten().filter_map(Value::as_object).flatten();
    fields.find(|(key, value)| same(key, field) && !value.is_null()).map(|(_, value)| value)
}

fn lift_required(function: &mut Value) {
    for (key, schema) in function.as_object_mut().into_iter().flatten() {
        if ["parameters", "inputSchema", "returns", "outputSchema"].iter().any(|field| same(key, field)) {
            lift::required(schema);
        }
    }
}

fn execution(fields: &mut Fields<'_>) -> Result<Option<Execution>, DefinitionError> {
    let (endpoint, server) = (fields.take("endpoint"), fields.take("mcp"));
    if let (Some(_), Some(server)) = (&endpoint, &server) {
        return Err(server.error("there is an `endpoint` as well; only one of them can carry out calls"));
    }
    if let Some(server) = server {
        check_name(&server, CAPABILITY_NAME_BYTES_MAX)?;
        return Ok(Some(Execution::Mcp(server.text()?)));
    }
    let Some(endpoint) = endpoint else { return Ok(None) };
    let mut fields = endpoint.object()?;
    only_known(&fields, &["url", "headers"], "`endpoint`")?;
    let url = fields.take("url").ok_or_else(|| endpoint.error("needs a `url`"))?;
    let address = url.text_within(URL_BYTES_MAX)?;
    let is_http = address.starts_with("https://") || address.starts_with("http://");
    if !is_http || address.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(url.error("must be an address that begins with https:// or http://"));
    }
    let mut headers = BTreeMap::new();
    if let Some(given) = fields.take("headers") {
        let entries = given.entries()?;
        if entries.len() > HEADERS_MAX {
            return Err(given.error(format!("{} headers; at most {HEADERS_MAX} are accepted", entries.len())));
        }
        for (name, value) in entries {
            let text = value.text_within(URL_BYTES_MAX)?;
            let token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || !name.chars().all(token) || text.contains(char::is_control) {
                return Err(value.error("must be a header: a name of letters, digits and '-', and one line of text"));
            }
            headers.insert(name.to_owned(), Secret::new(text));
        }
    }
    Ok(Some(Execution::Endpoint { url: address, headers }))
}

/// Refuses fields that are not known, with the one that was probably meant.
fn only_known(fields: &Fields<'_>, known: &[&str], what: &str) -> Result<(), DefinitionError> {
    let unknown = fields.entries().find(|(key, _)| !known.iter().any(|field| same(key, field)));
    unknown.map_or(Ok(()), |(_, at)| Err(at.error(format!("{what} has no such field; known are {}", known.join(", ")))))
}

/// Names appear in files, modules and full names of tools.
fn check_name(at: &At<'_>, bytes_max: usize) -> Result<(), DefinitionError> {
    let name = at.text_within(bytes_max)?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(legal) {
        return Err(at.error("must begin with a letter and have only letters, digits, '_', '-' and '.'"));
    }
    Ok(())
}

/// A version is a folder's name as well.
fn check_version(at: &At<'_>) -> Result<(), DefinitionError> {
    let version = at.text_within(VERSION_BYTES_MAX)?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !version.starts_with(|c: char| c.is_ascii_digit()) || !version.chars().all(legal) {
        return Err(at.error("must be a version such as \"1.0.0\""));
    }
    Ok(())
}

#[cfg(test)]
#[path = "definition_tests.rs"]
pub(crate) mod tests;
