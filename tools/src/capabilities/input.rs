//! What the compiler takes: tools with their sources.

use std::sync::Arc;

use gateway_core::vocab::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::{
    registry::{Registered, Snapshot, Specs},
    sides::is_for_operators,
    source::{About, Source},
};

/// A tool as a function of a module.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its definition, with its full name.
    pub spec: Arc<ToolSpec>,
    /// Its source's own name for it.
    pub local_name: String,
    /// The module that it belongs to.
    pub origin: Origin,
}

/// A source of functions. Those of one source are in one module; a single tool has a module of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A single tool.
    Tool,
    /// An MCP server, by its name in the configuration.
    Mcp(String),
    /// A mini-app, by package.
    App(String),
    /// A pair of glasses, by device id.
    Device(String),
    /// A capability, with what it says about itself.
    Capability(Arc<About>),
}

/// The kinds of sources, as metadata name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A single tool.
    Tool,
    /// An MCP server.
    Mcp,
    /// A capability.
    Sdk,
    /// A mini-app.
    App,
    /// A pair of glasses.
    Device,
}

impl Origin {
    /// Its kind without the names in it, for metadata.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Tool => SourceKind::Tool,
            Self::Mcp(_) => SourceKind::Mcp,
            Self::App(_) => SourceKind::App,
            Self::Device(_) => SourceKind::Device,
            Self::Capability(_) => SourceKind::Sdk,
        }
    }
}

impl Function {
    /// A registered tool; `about`: the capability that it is a function of.
    pub fn of(spec: Arc<ToolSpec>, local_name: String, source: &Source, about: Option<Arc<About>>) -> Self {
        let origin = match source {
            Source::BuiltIn => Origin::Tool,
            Source::Capability(_) => about.map_or(Origin::Tool, Origin::Capability),
            Source::Mcp(name) => Origin::Mcp(name.clone()),
            Source::App(package) => Origin::App(package.clone()),
            Source::Device(id) => Origin::Device(id.clone()),
        };
        Self { spec, local_name, origin }
    }
}

/// The functions of these tools, of which all that are not in the snapshot are left out. A caller passes the tools that
/// it may call, as the executor lists them.
pub fn offered(snapshot: &Snapshot, specs: &Specs) -> Vec<Function> {
    // A program cannot run a program, and it works for a wearer, not for an operator.
    let may = |tool: &&Arc<Registered>| !tool.is_program() && !is_for_operators(&tool.spec);
    let tools = specs.iter().filter_map(|spec| snapshot.find(&spec.name)).filter(may);
    let function = |tool: &Arc<Registered>| {
        Function::of(Arc::clone(&tool.spec), tool.local_name.clone(), &tool.source, tool.about.clone())
    };
    tools.map(function).collect()
}
