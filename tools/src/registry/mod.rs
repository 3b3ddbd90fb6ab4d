//! Which tools there are: built-in, of devices, later of apps and MCP servers, in one catalogue.

mod runner;
mod shared;
mod snapshot;
mod store;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
};

use gateway_core::vocab::ToolSpec;
use thiserror::Error;
use tokio::sync::watch;

use self::shared::Shared;
pub use self::{
    runner::{RunContext, Runner},
    shared::Specs,
    snapshot::{Registered, Snapshot},
    store::{CatalogueStore, StoredSet},
};
use crate::{
    limits::{
        CATEGORY_BYTES_MAX, DESCRIPTION_BYTES_MAX, GUIDANCE_BYTES_MAX, LANGUAGE_BYTES_MAX, LANGUAGES_MAX,
        NAME_BYTES_MAX, REPLY_BYTES_MAX, SNAPSHOTS_MAX, TEMPLATE_BYTES_MAX, TEMPLATES_MAX, TOOLS_MAX,
        TOOLS_PER_SOURCE_MAX,
    },
    phrases,
    schema::Schema,
    secret::Secrets,
    sides,
    source::{Scope, Source},
};

/// Why tools were not taken. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// Part of a definition is wrong.
    #[error("tool '{tool}' at '{pointer}': {reason}")]
    Invalid {
        /// Full name, cut to the limit.
        tool: String,
        /// JSON Pointer into the definition.
        pointer: String,
        /// In words.
        reason: String,
    },
    /// The name is already offered to the same or a wider audience.
    #[error("tool '{tool}': the name is already used by {by:?}; choose another one")]
    NameTaken {
        /// Full name.
        tool: String,
        /// Who has it.
        by: Source,
    },
    /// Too many tools.
    #[error("{count} tools; at most {max} are accepted")]
    TooMany {
        /// How many there would be.
        count: usize,
        /// The limit.
        max: usize,
    },
}

type Sets = BTreeMap<(Scope, Source), Vec<Arc<Registered>>>;

struct Catalogue {
    revision: u64,
    sets: Sets,
}

/// The catalogue. Readers take an immutable copy and never hold up a writer.
pub struct Registry {
    catalogue: RwLock<Arc<Catalogue>>,
    writer: Mutex<()>,
    snapshots: Mutex<BTreeMap<(String, String), Arc<Snapshot>>>,
    changes: watch::Sender<u64>,
    store: OnceLock<Arc<dyn CatalogueStore>>,
    secrets: Secrets,
    shared: Arc<Shared>,
    /// What could not be carried over, by source.
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
        Self {
            catalogue: RwLock::new(Arc::new(Catalogue { revision: 0, sets: Sets::new() })),
            writer: Mutex::new(()),
            snapshots: Mutex::new(BTreeMap::new()),
            changes: watch::Sender::new(0),
            store: OnceLock::new(),
            secrets: Secrets::default(),
            shared: Arc::default(),
            reports: Mutex::default(),
        }
    }

    /// The secrets that are blotted out of all definitions on the way in, and by the executor out of all results.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Keeps what could not be carried over from the definitions of a source, in place of what was kept before.
    pub fn report(&self, source: &Source, notes: Vec<String>) {
        let mut reports = lock(&self.reports);
        match notes.is_empty() {
            true => drop(reports.remove(source)),
            false => drop(reports.insert(source.clone(), notes)),
        }
    }

    /// What could not be carried over, by source; sources without losses are left out.
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

    /// Offers tools, each with the name that its source knows it by, in place of all that this
    /// source has offered in this scope before. All or none are taken. Returns the new revision.
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
        let mut tools = BTreeMap::new();
        for (spec, local_name) in named {
            let Some(spec) = self.secrets.blotted(spec).map(|spec| sides::put(spec, &source)) else {
                continue;
            };
            let schema = check(&spec)?;
            let tool = Arc::new(Registered {
                local_name,
                source: source.clone(),
                output_schema: spec.output_schema.as_ref().and_then(|schema| Schema::compile_any(schema).ok()),
                schema,
                runner: Arc::clone(&runner),
                name: spec.name.as_str().into(),
                spec: self.shared.spec(spec),
            });
            let name = tool.spec.name.clone();
            if tools.insert(name.clone(), tool).is_some() {
                return Err(RegisterError::NameTaken { tool: name, by: source });
            }
        }
        let _writer = lock(&self.writer);
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
        Ok(self.publish(old.revision, sets))
    }

    /// Keeps what apps and servers offer, where it is not what they offered before.
    fn keep(&self, key: &(Scope, Source), before: Option<&Vec<Arc<Registered>>>, tools: &[Arc<Registered>]) {
        let Some(store) = self.store.get().filter(|_| matches!(key.1, Source::App(_) | Source::Mcp(_))) else {
            return;
        };
        let same =
            |(old, new): (&Arc<Registered>, &Arc<Registered>)| old.local_name == new.local_name && old.spec == new.spec;
        if before.is_some_and(|old| old.len() == tools.len() && old.iter().zip(tools).all(same)) {
            return;
        }
        let tools = tools.iter().map(|tool| (ToolSpec::clone(&tool.spec), tool.local_name.clone())).collect();
        store.save(StoredSet { source: key.1.clone(), scope: key.0.clone(), tools });
    }

    pub(crate) fn set_store(&self, store: Arc<dyn CatalogueStore>) {
        if self.store.set(store).is_err() {
            tracing::warn!("the catalogue is kept in one place already");
        }
    }

    /// What a source offers in a scope.
    pub(crate) fn set(&self, source: &Source, scope: &Scope) -> Option<Vec<Arc<Registered>>> {
        self.catalogue().sets.get(&(scope.clone(), source.clone())).cloned()
    }

    /// Takes back what a source has offered in a scope, for good: what only does not answer at the
    /// moment stays registered. `None` when there was nothing.
    pub fn unregister(&self, source: &Source, scope: &Scope) -> Option<u64> {
        lock(&self.reports).remove(source);
        let _writer = lock(&self.writer);
        let old = self.catalogue();
        let mut sets = old.sets.clone();
        sets.remove(&(scope.clone(), source.clone()))?;
        if let Some(store) = self.store.get().filter(|_| matches!(source, Source::App(_) | Source::Mcp(_))) {
            store.forget(source, scope);
        }
        Some(self.publish(old.revision, sets))
    }

    /// The tools that this device of this user is offered now, in a deterministic order.
    pub fn snapshot(&self, user: &str, device: &str) -> Arc<Snapshot> {
        let catalogue = self.catalogue();
        let key = (user.to_owned(), device.to_owned());
        if let Some(kept) = lock(&self.snapshots).get(&key)
            && kept.revision == catalogue.revision
        {
            return Arc::clone(kept);
        }
        // Scopes are sorted from wide to narrow, and of equal names the first one stays: the wider
        // one keeps the name. Each set is sorted already, which this sort makes use of.
        let covering = catalogue.sets.iter().filter(|((scope, _), _)| scope.covers(user, device));
        let mut tools: Vec<_> = covering.flat_map(|(_, set)| set).cloned().collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|later, first| later.name == first.name);
        let snapshot = Arc::new(Snapshot::of(catalogue.revision, tools, Arc::clone(&self.shared)));
        let mut snapshots = lock(&self.snapshots);
        if snapshots.len() >= SNAPSHOTS_MAX {
            // Those of other revisions are of no use any more.
            let mut left = 1..SNAPSHOTS_MAX;
            snapshots.retain(|_, kept| kept.revision == catalogue.revision && left.next().is_some());
        }
        snapshots.insert(key, Arc::clone(&snapshot));
        snapshot
    }

    /// The list of these very tools that others have, or this one from now on.
    pub fn share(&self, tools: Vec<Arc<ToolSpec>>) -> Specs {
        self.shared.list(tools)
    }

    /// What all tools declare, whoever may call them; more than one may have a name.
    pub fn specs(&self) -> Specs {
        self.catalogue().sets.values().flatten().map(|tool| Arc::clone(&tool.spec)).collect()
    }

    /// The current revision; it only grows.
    pub fn revision(&self) -> u64 {
        self.catalogue().revision
    }

    /// Tells the revision whenever it changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        let catalogue = self.catalogue.read();
        Arc::clone(&catalogue.unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, old_revision: u64, sets: Sets) -> u64 {
        let revision = old_revision + 1;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks a definition and compiles its schema.
pub fn check(spec: &ToolSpec) -> Result<Schema, RegisterError> {
    let invalid = |pointer: String, reason: String| RegisterError::Invalid {
        tool: crate::reply::cut(&spec.name, NAME_BYTES_MAX),
        pointer,
        reason,
    };
    let too_long = |pointer: &str, bytes: usize, max: usize| {
        invalid(pointer.to_owned(), format!("{bytes} bytes; at most {max} are accepted"))
    };
    let name_ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if spec.name.is_empty() || spec.name.len() > NAME_BYTES_MAX || !spec.name.chars().all(name_ok) {
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
        .map_err(|misfit| invalid(format!("/input_schema{}", misfit.pointer), misfit.reason))?;
    if let Some(schema) = &spec.output_schema {
        Schema::compile_any(schema)
            .map_err(|misfit| invalid(format!("/output_schema{}", misfit.pointer), misfit.reason))?;
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
