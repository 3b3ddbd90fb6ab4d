//! Callable tools: how they are run, and the list of them at one time. One file, because a tool has its runner, a runner is
//! given the list, and the list has the tools.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolCall, ToolFlags, ToolResult, ToolSpec, Turn};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::shared::{Shared, Specs};
use crate::{
    call::CallContext,
    caller::Caller,
    canonical::{self, arguments_hash},
    conversation::PastMessage,
    nested::NestedCalls,
    permissions,
    ports::Ports,
    programs::Run,
    schema::Schema,
    source::{About, Source},
};

/// The origin of a call, and the resources available to it.
#[derive(Clone)]
pub struct RunContext {
    /// For whom it is made.
    pub user: String,
    /// The device of the [call](crate::call::CallContext::device).
    pub device: Option<String>,
    /// The session of the [call](crate::call::CallContext::session).
    pub session: Option<String>,
    /// When the call came, before any question about it, in milliseconds since the Unix epoch.
    pub called_wall_ms: i64,
    /// The turn that makes the call; `None` if it belongs to no turn.
    pub turn: Option<Turn>,
    /// The source's own name for the tool; the call carries the full name.
    pub local_name: String,
    /// The tool's effects and requirements.
    pub flags: ToolFlags,
    /// Whether the tool's app was started for this call.
    pub activated: bool,
    /// The timeout of the call; the executor stops waiting after it.
    pub deadline: Duration,
    /// Fires when the call is cancelled. A runner with a server notifies it. The runner's result is trusted: for a tool
    /// that changes something, it must return `CANCELLED` only if it stopped the tool, and otherwise wait for the
    /// tool's own result.
    pub cancel: CancellationToken,
    /// All ports.
    pub ports: Ports,
    /// The tools that are currently offered.
    pub offered: Arc<Snapshot>,
    /// The recent conversation, for an app that declares that it needs it; empty if the call belongs to no turn.
    pub conversation: Arc<[PastMessage]>,
    /// The language of the [call](crate::call::CallContext::language).
    pub language: Option<String>,
    /// The client that made the call, if it can be contacted while the call runs.
    pub caller: Option<Arc<dyn Caller>>,
    /// Id of the call whose program makes this call; `None`: no program makes it.
    pub program: Option<String>,
    /// Makes calls for the program that the tool runs; only for tools that [run programs](Runner::runs_programs).
    pub calls: Option<NestedCalls>,
}

/// A call about which the wearer is to be asked.
pub struct Asking<'a> {
    /// Who makes it.
    pub context: &'a CallContext,
    /// What is to be called, and with what.
    pub call: &'a ToolCall,
    /// The source's own name for the tool.
    pub local_name: &'a str,
    /// As [`RunContext::called_wall_ms`].
    pub called_wall_ms: i64,
    /// All ports.
    pub ports: &'a Ports,
}

/// Words of a source for a question.
pub enum Words {
    /// The question itself.
    Whole(String),
    /// A sentence beside the gateway's question, of what the arguments do not tell; for built-in tools.
    Added(String),
}

/// Runs the calls of one source. Arguments have been checked against the tool's schema.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Runs a call. The future may be dropped at any await point once its deadline has passed, or when all data of the
    /// user are being erased.
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult;

    /// Whether this tool, by the source's own name for it, runs programs that call other tools. It counts for built-in
    /// tools that are not read-only; no other tool gets [`RunContext::calls`]. Such a tool has no effects of its own: if
    /// it is stopped, what was done is what the calls of its program have done.
    fn runs_programs(&self, local_name: &str) -> bool {
        let _ = local_name;
        false
    }

    /// Of a tool that runs programs: the program of this call, and the routine that it is of, as the beginning of the record
    /// of its run.
    fn run_of(&self, call: &ToolCall) -> Option<Run> {
        let _ = call;
        None
    }

    /// Words for the question to the wearer before a call that only the source can find. They are data: limited and
    /// cleaned where they are asked. `None`: the definition's words, or the gateway's, are all.
    async fn words(&self, asking: &Asking<'_>) -> Option<Words> {
        let _ = asking;
        None
    }

    /// What the capability says about itself whose functions it runs; other sources have nothing of the kind.
    fn about(&self) -> Option<Arc<About>> {
        None
    }

    /// Whether it is a placeholder for a source that has not responded yet.
    fn is_waiting(&self) -> bool {
        false
    }
}

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
