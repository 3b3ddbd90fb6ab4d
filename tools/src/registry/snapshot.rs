//! The tools offered to one device of one user at one time.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use gateway_core::vocab::{ClientClass, ToolSpec};
use serde_json::json;

use super::{
    runner::Runner,
    shared::{Shared, Specs},
};
use crate::{
    canonical::{self, arguments_hash},
    permissions,
    schema::Schema,
    source::{About, Source},
};

/// A callable tool: its spec together with its runner.
pub struct Registered {
    /// Name, description, schema and phrases.
    pub spec: Arc<ToolSpec>,
    /// A copy of its full name, for fast sorting and lookup among thousands.
    pub(super) name: Arc<str>,
    /// Who provides it.
    pub source: Source,
    /// The source's own name for it. Full names are never split: they contain dots.
    pub local_name: String,
    /// Its compiled schema.
    pub schema: Schema,
    /// The compiled schema of its results, if it has one.
    pub output_schema: Option<Schema>,
    /// The classes of clients that its definition names; the operator may have set others, which the spec has.
    pub(super) declared_clients: Option<Vec<ClientClass>>,
    /// The capability that it is a function of.
    pub about: Option<Arc<About>>,
    /// Runs it.
    pub runner: Arc<dyn Runner>,
    /// Computed when it is asked for.
    pub(super) definition: OnceLock<String>,
}

impl Registered {
    /// Its definition as its source declares it.
    pub(super) fn declared(&self) -> ToolSpec {
        ToolSpec { clients: self.declared_clients.clone(), ..ToolSpec::clone(&self.spec) }
    }

    /// Whether its source declares it like the other one.
    pub(super) fn is_declared_like(&self, other: &Self) -> bool {
        self.local_name == other.local_name
            && self.spec == other.spec
            && self.declared_clients == other.declared_clients
    }

    /// Whether it runs programs that call other tools.
    pub fn is_program(&self) -> bool {
        // Only the gateway's own tools may: what others declare about themselves is not trusted.
        let may = self.source == Source::BuiltIn && !self.spec.flags.read_only;
        may && self.runner.runs_programs(&self.local_name)
    }

    /// Identifies what the tool is and does: its source, its description, the schemas, and whether it changes something or
    /// asks. Stays the same when the gateway is upgraded.
    pub fn definition_id(&self) -> &str {
        self.definition.get_or_init(|| {
            let ToolSpec { description, input_schema, output_schema, flags, .. } = &*self.spec;
            let flags = [flags.read_only, flags.idempotent, flags.destructive, flags.requires_approval];
            let source = self.source.to_string();
            // The gateway's own words may be improved: nobody else writes them.
            let description = (self.source != Source::BuiltIn).then_some(description);
            canonical::digest(&json!([source, self.local_name, description, input_schema, output_schema, flags]))
        })
    }

    /// Identifies the definition across restarts, which the catalogue's revision does not.
    pub(crate) fn definition_hash(&self) -> u64 {
        let definition = serde_json::to_value(&*self.spec).unwrap_or_default();
        arguments_hash(&format!("{} {}", self.source, self.local_name), &definition)
    }
}

/// The tools offered to one device of one user at one time.
pub struct Snapshot {
    /// The catalogue's revision at that time.
    pub revision: u64,
    /// Sorted by full name.
    pub specs: Specs,
    tools: Vec<Arc<Registered>>,
    /// The tools that each class of clients sees, computed on first use.
    views: [OnceLock<Specs>; 3],
    /// Computed on the first lookup of a tool.
    by_name: OnceLock<HashMap<Arc<str>, usize>>,
    shared: Arc<Shared>,
}

impl Snapshot {
    pub(super) fn of(revision: u64, tools: Vec<Arc<Registered>>, shared: Arc<Shared>) -> Self {
        let specs = shared.list(tools.iter().map(|tool| Arc::clone(&tool.spec)).collect());
        Self { revision, specs, tools, views: Default::default(), by_name: OnceLock::new(), shared }
    }

    /// The tool of this full name.
    pub fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        let index = || self.tools.iter().enumerate().map(|(at, tool)| (Arc::clone(&tool.name), at)).collect();
        self.tools.get(*self.by_name.get_or_init(index).get(name)?)
    }

    /// The specs that a class of clients sees, in the same order.
    pub fn for_client(&self, client: ClientClass) -> Specs {
        let view = match client {
            ClientClass::Internal => &self.views[0],
            ClientClass::Copilot => &self.views[1],
            ClientClass::External => &self.views[2],
        };
        let make = || {
            if self.specs.iter().all(|spec| permissions::is_for(spec, client)) {
                return Arc::clone(&self.specs);
            }
            self.shared.list(self.specs.iter().filter(|spec| permissions::is_for(spec, client)).cloned().collect())
        };
        Arc::clone(view.get_or_init(make))
    }

    /// The tools that a client of this class may call, for a user with these switches.
    pub(crate) fn callable(self: Arc<Self>, client: ClientClass, denied: &[String]) -> Arc<Self> {
        if denied.is_empty() && Arc::ptr_eq(&self.for_client(client), &self.specs) {
            return self;
        }
        let may = |spec: &ToolSpec| permissions::is_for(spec, client) && !permissions::is_denied(denied, &spec.name);
        let tools: Vec<_> = self.tools.iter().filter(|tool| may(&tool.spec)).cloned().collect();
        Arc::new(Self::of(self.revision, tools, Arc::clone(&self.shared)))
    }

    /// All tools, in the order of `specs`.
    pub fn tools(&self) -> &[Arc<Registered>] {
        &self.tools
    }
}
