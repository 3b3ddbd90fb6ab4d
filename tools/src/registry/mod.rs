//! The catalogue of available tools: built-in, and of devices, apps, MCP servers and capabilities.

mod shared;
mod store;
mod tool;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
};

use gateway_core::vocab::ToolSpec;
use thiserror::Error;
use tokio::sync::watch;

use self::shared::Shared;
pub use self::{
    shared::Specs,
    store::{CatalogueStore, StoredSet},
    tool::{Asking, Registered, RunContext, Runner, Snapshot, Words},
};
use crate::{
    limits::{
        CATEGORY_BYTES_MAX, DESCRIPTION_BYTES_MAX, GUIDANCE_BYTES_MAX, LANGUAGE_BYTES_MAX, LANGUAGES_MAX,
        NAME_BYTES_MAX, PROGRESS_BYTES_MAX, REPLY_BYTES_MAX, SNAPSHOTS_MAX, TEMPLATE_BYTES_MAX, TEMPLATES_MAX,
        TOOLS_MAX, TOOLS_PER_SOURCE_MAX,
    },
    mutex::lock,
    permissions::ConfiguredClients,
    phrases,
    schema::Schema,
    secret::Secrets,
    sides,
    source::{Scope, Source},
};

/// Why a registration was rejected. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// A part of a definition is invalid.
    #[error("tool '{tool}' at '{pointer}': {reason}")]
    Invalid {
        /// Full name, cut to the limit.
        tool: String,
        /// JSON Pointer into the definition.
        pointer: String,
        /// Description.
        reason: String,
    },
    /// The name is already offered to the same or a wider audience.
    #[error("tool '{tool}': the name is already used by {by:?}; choose another one")]
    NameTaken {
        /// Full name.
        tool: String,
        /// The source that registered it.
        by: Source,
    },
    /// Too many tools.
    #[error("{count} tools; at most {max} are accepted")]
    TooMany {
        /// The resulting number.
        count: usize,
        /// The most that is accepted.
        max: usize,
    },
}

/// Revisions that are reserved in the store at once, so that few of them are written, and none is used by two runs of
/// the program even if the last write before a power failure is lost.
const REVISIONS_AHEAD: u64 = 1_000;

type Sets = BTreeMap<(Scope, Source), Vec<Arc<Registered>>>;

/// By user and device.
type Snapshots = BTreeMap<(Option<String>, Option<String>), Arc<Snapshot>>;

struct Catalogue {
    revision: u64,
    sets: Sets,
}

/// The catalogue. Readers get an immutable snapshot and never block a writer.
pub struct Registry {
    catalogue: RwLock<Arc<Catalogue>>,
    /// Held by the one who writes: the last revision that is reserved in the store.
    writer: Mutex<u64>,
    /// What the operator has set.
    clients: ConfiguredClients,
    snapshots: Mutex<Snapshots>,
    changes: watch::Sender<u64>,
    store: OnceLock<Arc<dyn CatalogueStore>>,
    secrets: Secrets,
    shared: Arc<Shared>,
    /// Parts of definitions that could not be used, by source.
    reports: Mutex<BTreeMap<Source, Vec<String>>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// An empty catalogue, revision 0.
    pub fn new() -> Self {
        Self::with_clients(ConfiguredClients::new())
    }

    /// The same, in which single tools are for the classes of clients that the operator has set.
    pub fn with_clients(clients: ConfiguredClients) -> Self {
        Self::with_clients_and(clients, Secrets::default())
    }

    /// The same with secrets that are in use already.
    pub(crate) fn with_clients_and(clients: ConfiguredClients, secrets: Secrets) -> Self {
        Self {
            catalogue: RwLock::new(Arc::new(Catalogue { revision: 0, sets: Sets::new() })),
            writer: Mutex::default(),
            clients,
            snapshots: Mutex::new(BTreeMap::new()),
            changes: watch::Sender::new(0),
            store: OnceLock::new(),
            secrets,
            shared: Arc::default(),
            reports: Mutex::default(),
        }
    }

    /// The secrets that are redacted in all definitions on registration, and by the executor in all results.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Stores the unused parts of a source's definitions, in place of the previous ones.
    pub fn report(&self, source: &Source, notes: Vec<String>) {
        let mut reports = lock(&self.reports);
        match notes.is_empty() {
            true => drop(reports.remove(source)),
            false => drop(reports.insert(source.clone(), notes)),
        }
    }

    /// The unused parts of definitions, by source; sources without any are omitted.
    pub fn reports(&self) -> Vec<(Source, Vec<String>)> {
        lock(&self.reports).iter().map(|(source, notes)| (source.clone(), notes.clone())).collect()
    }

    /// As [`register_named`](Self::register_named) for a source that knows its tools by their full
    /// names.
    pub fn register(
        &self,
        source: Source,
        scope: Scope,
        specs: Vec<ToolSpec>,
        runner: Arc<dyn Runner>,
    ) -> Result<u64, RegisterError> {
        let named = specs.into_iter().map(with_own_name).collect();
        self.register_named(source, scope, named, runner)
    }

    /// Registers tools, each with its source's own name for it, in place of all previous tools of this source in this
    /// scope. Either all are accepted or none. Returns the new revision.
    pub fn register_named(
        &self,
        source: Source,
        scope: Scope,
        named: Vec<(ToolSpec, String)>,
        runner: Arc<dyn Runner>,
    ) -> Result<u64, RegisterError> {
        if named.len() > TOOLS_PER_SOURCE_MAX {
            return Err(RegisterError::TooMany { count: named.len(), max: TOOLS_PER_SOURCE_MAX });
        }
        let (mut tools, about) = (BTreeMap::new(), runner.about());
        for (spec, local_name) in named {
            let Some(mut spec) = self.secrets.redacted(spec).map(|spec| sides::put(spec, &source)) else {
                continue;
            };
            let schema = check(&spec)?;
            let declared_clients = spec.clients.clone();
            if let Some(classes) = self.clients.get(&spec.name) {
                spec.clients = Some(classes.clone());
            }
            let tool = Arc::new(Registered {
                local_name,
                source: source.clone(),
                output_schema: spec.output_schema.as_ref().and_then(|schema| Schema::compile_any(schema).ok()),
                schema,
                declared_clients,
                about: about.clone(),
                runner: Arc::clone(&runner),
                definition: OnceLock::new(),
                name: spec.name.as_str().into(),
                spec: self.shared.spec(spec),
            });
            let name = tool.spec.name.clone();
            if tools.insert(name.clone(), tool).is_some() {
                return Err(RegisterError::NameTaken { tool: name, by: source });
            }
        }
        let mut writer = lock(&self.writer);
        let old = self.catalogue();
        let key = (scope, source);
        let others = old.sets.iter().filter(|(other, _)| **other != key);
        let mut count = tools.len();
        for ((other_scope, other_source), set) in others {
            count += set.len();
            let wider = *other_scope == Scope::Global || *other_scope == key.0;
            let taken = wider.then(|| {
                set.iter().find(|tool| tools.contains_key(&tool.spec.name)).map(|tool| tool.spec.name.clone())
            });
            if let Some(Some(tool)) = taken {
                let by = other_source.clone();
                return Err(RegisterError::NameTaken { tool, by });
            }
        }
        if count > TOOLS_MAX {
            return Err(RegisterError::TooMany { count, max: TOOLS_MAX });
        }
        let mut sets = old.sets.clone();
        let tools: Vec<_> = tools.into_values().collect();
        self.keep(&key, old.sets.get(&key), &tools);
        sets.insert(key, tools);
        Ok(self.publish(&mut writer, old.revision, sets))
    }

    /// Persists the tools of apps and servers if they have changed.
    fn keep(&self, key: &(Scope, Source), before: Option<&Vec<Arc<Registered>>>, tools: &[Arc<Registered>]) {
        let Some(store) = self.store.get().filter(|_| matches!(key.1, Source::App(_) | Source::Mcp(_))) else {
            return;
        };
        let same = |(old, new): (&Arc<Registered>, &Arc<Registered>)| old.is_declared_like(new);
        if before.is_some_and(|old| old.len() == tools.len() && old.iter().zip(tools).all(same)) {
            return;
        }
        let tools = tools.iter().map(|tool| (tool.declared(), tool.local_name.clone())).collect();
        store.save(StoredSet { source: key.1.clone(), scope: key.0.clone(), tools });
    }

    /// Persists changes from now on, and continues after the `last` revision of the programs that ran before.
    pub(crate) fn set_store(&self, store: Arc<dyn CatalogueStore>, last: u64) {
        let mut writer = lock(&self.writer);
        if self.store.set(store).is_err() {
            tracing::warn!("the catalogue is kept in one place already");
        }
        *writer = last;
        let old = self.catalogue();
        self.publish(&mut writer, old.revision.max(last), old.sets.clone());
    }

    /// The tools of a source in a scope.
    pub(crate) fn set(&self, source: &Source, scope: &Scope) -> Option<Vec<Arc<Registered>>> {
        self.catalogue().sets.get(&(scope.clone(), source.clone())).cloned()
    }

    /// Removes a source's tools in a scope permanently: tools of a source that is only unreachable stay registered.
    /// `None` if there were none.
    pub fn unregister(&self, source: &Source, scope: &Scope) -> Option<u64> {
        lock(&self.reports).remove(source);
        let mut writer = lock(&self.writer);
        let old = self.catalogue();
        let mut sets = old.sets.clone();
        sets.remove(&(scope.clone(), source.clone()))?;
        if let Some(store) = self.store.get().filter(|_| matches!(source, Source::App(_) | Source::Mcp(_))) {
            store.forget(source, scope);
        }
        Some(self.publish(&mut writer, old.revision, sets))
    }

    /// Publishes the same tools under a new revision: what a user is offered of them has changed.
    pub fn offers_changed(&self) -> u64 {
        let mut writer = lock(&self.writer);
        let old = self.catalogue();
        self.publish(&mut writer, old.revision, old.sets.clone())
    }

    /// Whether the operator has set the classes of clients of this tool.
    pub fn has_configured_clients(&self, name: &str) -> bool {
        self.clients.contains_key(name)
    }

    /// Tools of which the operator has set the classes of clients, and which nobody is offered at the moment.
    pub fn configured_but_absent(&self) -> Vec<String> {
        let specs = self.specs();
        let is_absent = |name: &&String| !specs.iter().any(|spec| spec.name == **name);
        self.clients.keys().filter(is_absent).cloned().collect()
    }

    /// The tools currently offered to this device of this user, in a deterministic order. Without a device, those of
    /// devices are missing.
    pub fn snapshot(&self, user: &str, device: Option<&str>) -> Arc<Snapshot> {
        self.snapshot_of(Some(user), device)
    }

    /// The tools that are offered to every user on every device.
    pub fn common(&self) -> Arc<Snapshot> {
        self.snapshot_of(None, None)
    }

    fn snapshot_of(&self, user: Option<&str>, device: Option<&str>) -> Arc<Snapshot> {
        let catalogue = self.catalogue();
        let key = (user.map(str::to_owned), device.map(str::to_owned));
        if let Some(kept) = lock(&self.snapshots).get(&key)
            && kept.revision == catalogue.revision
        {
            return Arc::clone(kept);
        }
        // Scopes are sorted from wide to narrow, and among equal names the first stays: the wider scope keeps the name.
        // Each set is already sorted, which the sort takes advantage of.
        let covering = catalogue.sets.iter().filter(|((scope, _), _)| scope.covers(user, device));
        let mut tools: Vec<_> = covering.flat_map(|(_, set)| set).cloned().collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|later, first| later.name == first.name);
        let snapshot = Arc::new(Snapshot::of(catalogue.revision, tools, Arc::clone(&self.shared)));
        let mut snapshots = lock(&self.snapshots);
        if snapshots.len() >= SNAPSHOTS_MAX {
            // Snapshots of other revisions are obsolete.
            let mut left = 1..SNAPSHOTS_MAX;
            snapshots.retain(|_, kept| kept.revision == catalogue.revision && left.next().is_some());
        }
        snapshots.insert(key, Arc::clone(&snapshot));
        snapshot
    }

    /// Whether all users are offered a tool of this name.
    pub(crate) fn has_global(&self, name: &str) -> bool {
        let catalogue = self.catalogue();
        let mut global = catalogue.sets.iter().filter(|((scope, _), _)| *scope == Scope::Global);
        global.any(|(_, set)| set.iter().any(|tool| tool.spec.name == name))
    }

    /// The definitions of all tools in all scopes; a name may occur more than once.
    pub fn specs(&self) -> Specs {
        self.catalogue().sets.values().flatten().map(|tool| Arc::clone(&tool.spec)).collect()
    }

    /// The current revision. It only increases, also from one run of the program to the next if there is a store; it
    /// may leave numbers out.
    pub fn revision(&self) -> u64 {
        self.catalogue().revision
    }

    /// Receives the revision whenever it changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        let catalogue = self.catalogue.read();
        Arc::clone(&catalogue.unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, reserved: &mut u64, old_revision: u64, sets: Sets) -> u64 {
        let revision = old_revision.saturating_add(1);
        if let Some(store) = self.store.get()
            && reserved.saturating_sub(revision) < REVISIONS_AHEAD / 2
        {
            *reserved = revision.saturating_add(REVISIONS_AHEAD);
            store.reserve_revisions(*reserved);
        }
        let new = Arc::new(Catalogue { revision, sets });
        *self.catalogue.write().unwrap_or_else(PoisonError::into_inner) = new;
        self.changes.send_replace(revision);
        revision
    }
}

fn with_own_name(spec: ToolSpec) -> (ToolSpec, String) {
    let name = spec.name.clone();
    (spec, name)
}

/// Whether a tool may have this full name.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_allowed)
}

/// Validates a definition and compiles its schema.
pub fn check(spec: &ToolSpec) -> Result<Schema, RegisterError> {
    let invalid = |pointer: String, reason: String| RegisterError::Invalid {
        tool: crate::reply::cut(&spec.name, NAME_BYTES_MAX),
        pointer,
        reason,
    };
    let too_long = |pointer: &str, bytes: usize, max: usize| {
        invalid(pointer.to_owned(), format!("{bytes} bytes; at most {max} are accepted"))
    };
    if !is_name(&spec.name) {
        let reason = format!("must be 1 to {NAME_BYTES_MAX} characters out of letters, digits, '.', '_', '-' and '/'");
        return Err(invalid("/name".into(), reason));
    }
    if spec.description.trim().is_empty() {
        return Err(invalid("/description".into(), "must not be empty".into()));
    }
    let texts = [
        ("/description", Some(&spec.description), DESCRIPTION_BYTES_MAX),
        ("/reply", spec.reply.as_ref(), REPLY_BYTES_MAX),
        ("/guidance", spec.guidance.as_ref(), GUIDANCE_BYTES_MAX),
        ("/approval", spec.approval.as_ref(), REPLY_BYTES_MAX),
        ("/progress", spec.progress.as_ref(), PROGRESS_BYTES_MAX),
        ("/category", spec.category.as_ref(), CATEGORY_BYTES_MAX),
    ];
    for (pointer, text, max) in texts {
        if let Some(text) = text
            && text.len() > max
        {
            return Err(too_long(pointer, text.len(), max));
        }
    }
    let schema = Schema::compile(&spec.input_schema)
        .map_err(|violation| invalid(format!("/input_schema{}", violation.pointer), violation.reason))?;
    if let Some(schema) = &spec.output_schema {
        Schema::compile_any(schema)
            .map_err(|violation| invalid(format!("/output_schema{}", violation.pointer), violation.reason))?;
    }
    let limits = spec.rate_limit.iter().flat_map(|limit| [limit.calls, limit.per_ms]);
    if limits.min() == Some(0) {
        return Err(invalid("/rate_limit".into(), "both numbers must be at least 1".into()));
    }
    if spec.phrases.len() > LANGUAGES_MAX {
        let reason = format!("more than {LANGUAGES_MAX} languages");
        return Err(invalid("/phrases".into(), reason));
    }
    for (at, phrases) in spec.phrases.iter().enumerate() {
        if phrases.language.is_empty() || phrases.language.len() > LANGUAGE_BYTES_MAX {
            let reason = "must be a language tag such as \"en\"".to_owned();
            return Err(invalid(format!("/phrases/{at}/language"), reason));
        }
        if phrases.templates.len() > TEMPLATES_MAX {
            let reason = format!("more than {TEMPLATES_MAX} templates");
            return Err(invalid(format!("/phrases/{at}/templates"), reason));
        }
        for (line, template) in phrases.templates.iter().enumerate() {
            let pointer = format!("/phrases/{at}/templates/{line}");
            if template.len() > TEMPLATE_BYTES_MAX {
                return Err(too_long(&pointer, template.len(), TEMPLATE_BYTES_MAX));
            }
            phrases::check(template, &spec.input_schema).map_err(|reason| invalid(pointer, reason))?;
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests;
