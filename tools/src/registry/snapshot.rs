//! What one device of one user is offered at one moment.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use gateway_core::vocab::{ClientClass, ToolSpec};

use super::{
    runner::Runner,
    shared::{Shared, Specs},
};
use crate::{permissions, schema::Schema, source::Source};

/// A tool that can be called: its spec and what runs it are one object.
pub struct Registered {
    /// What it declares.
    pub spec: Arc<ToolSpec>,
    /// Its full name again, near at hand for sorting and finding among thousands.
    pub(super) name: Arc<str>,
    /// Who provides it.
    pub source: Source,
    /// What it is called there. Names are never taken apart: they contain dots.
    pub local_name: String,
    /// Its compiled schema.
    pub schema: Schema,
    /// The compiled schema of its results, where it has one.
    pub output_schema: Option<Schema>,
    /// Runs it.
    pub runner: Arc<dyn Runner>,
}

/// The tools that one device of one user is offered at one moment.
pub struct Snapshot {
    /// The catalogue's revision that it was taken from.
    pub revision: u64,
    /// Sorted by full name.
    pub specs: Specs,
    tools: Vec<Arc<Registered>>,
    /// What each class of clients sees, made when it is first asked for.
    views: [OnceLock<Specs>; 3],
    /// Made when the first tool is looked up.
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

    /// The same without what `keep` refuses.
    pub(crate) fn only(&self, keep: impl Fn(&ToolSpec) -> bool) -> Self {
        let tools: Vec<_> = self.tools.iter().filter(|tool| keep(&tool.spec)).cloned().collect();
        Self::of(self.revision, tools, Arc::clone(&self.shared))
    }

    /// All tools, in the order of `specs`.
    pub fn tools(&self) -> &[Arc<Registered>] {
        &self.tools
    }
}
