//! `system.sessions`, `system.transports`, `system.servers` and `system.limits`: four parts of one state.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::{
    SYSTEM,
    form::{Inspects, reads, told},
    logs::LogScope,
    system::{System, SystemState},
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::Definition,
    registry::RunContext,
};

/// Entries of a list at most, so that a result is not cut: more are counted.
const ENTRIES_MAX: usize = 100;

/// A part of the state.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Sessions,
    Transports,
    Servers,
    Limits,
}

impl Part {
    pub(super) const ALL: [Self; 4] = [Self::Sessions, Self::Transports, Self::Servers, Self::Limits];

    /// Name, title and description of its tool.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Sessions => (
                "system.sessions",
                "List the sessions",
                "Lists the connected glasses: user, name, transport, address, since when, firmware, battery, and the \
                 number of the turn that is under way.",
            ),
            Self::Transports => (
                "system.transports",
                "List the listeners",
                "Lists where the gateway listens, and how many sessions each transport carries.",
            ),
            Self::Servers => (
                "system.servers",
                "List the MCP servers",
                "Lists the MCP servers behind the gateway: state, tools, last failures.",
            ),
            Self::Limits => (
                "system.limits",
                "Show the limits",
                "Tells what is bounded in the gateway: sessions, users, connections, store, queues, and what was dropped or \
                 refused since the start.",
            ),
        }
    }

    fn of(self, state: SystemState) -> Value {
        match self {
            Self::Sessions => listed("sessions", state.sessions),
            Self::Transports => listed("transports", state.transports),
            Self::Servers => listed("servers", state.servers),
            Self::Limits => state.limits,
        }
    }
}

fn listed(name: &str, mut entries: Vec<Value>) -> Value {
    let count = entries.len();
    entries.truncate(ENTRIES_MAX);
    json!({"count": count, name: entries})
}

/// Drops what servers may have said in words of their own, which may repeat those of any wearer: it is the operator's.
fn without_words(servers: &mut [Value]) {
    for server in servers.iter_mut().filter_map(Value::as_object_mut) {
        server.remove("last_failure");
        server.remove("last_words");
    }
}

pub(super) struct SystemList(pub(super) Arc<dyn System>, pub(super) Part);

#[async_trait]
impl Inspects for SystemList {
    const CATEGORY: &'static str = SYSTEM;

    fn definition(&self) -> Definition {
        let (name, title, description) = self.1.words();
        reads(name, title, description)
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let mut state = self.0.state().await?;
        if LogScope::of(context) != LogScope::Everybody {
            without_words(&mut state.servers);
        }
        let data = self.1.of(state);
        Ok(told(data, "Here is the list."))
    }
}
