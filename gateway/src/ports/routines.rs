//! Routines of users: programs that were kept, each a tool of its user. In memory, and written through.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use chat_models::intents::{collisions, is_understood};
use gateway_core::vocab::{Side, ToolSpec};
use serde::{Deserialize, Serialize};
use tools::{
    code::{
        Engine,
        routine::{Routine, Routines, tool_name},
    },
    ports::Clock,
    programs::{
        Keep, KeptRoutine, LIBRARY, NotKept, OfRoutine, PHRASES_MAX, ProgramStore, ROUTINES_MAX, Run, VERSIONS_MAX,
        WhichRun, check_name, phrase,
    },
    registry::Registry,
    source::{Scope, Source},
};

use super::{runs::StoredRuns, stores::port};
use crate::{
    store::{self, Kind, Store, Write},
    text::quoted,
};

/// The side that a new routine has while its phrases are compared: no app has this name.
const NEW: &str = " new routine";

/// A routine with its versions, stored as one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Unique among the user's routines.
    pub name: String,
    /// The latest versions, oldest first; the last one runs. Never empty.
    pub versions: Vec<Version>,
}

/// A version of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// From 1 on.
    pub number: u32,
    /// When it was kept, in milliseconds since the Unix epoch.
    pub kept_wall_ms: i64,
    /// TypeScript or JavaScript, as it was written.
    pub source: String,
    /// What the wearer says to run it.
    pub phrases: Vec<String>,
    /// The tools that it may call, each with the definition that it had.
    pub tools: BTreeMap<String, String>,
    /// The run that was kept.
    pub run: u64,
    /// The version that it restores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u32>,
}

impl Stored {
    /// The version that runs.
    fn present(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// It as a tool.
    fn routine(&self) -> Option<Routine> {
        let version = self.present()?;
        let of = OfRoutine { name: self.name.clone(), version: version.number };
        let (source, phrases, tools) = (version.source.clone(), version.phrases.clone(), version.tools.clone());
        Some(Routine { of, source, phrases, tools })
    }
}

/// By name.
type OfUser = BTreeMap<String, Stored>;

/// The routines of all users.
pub struct StoredRoutines {
    store: Store,
    /// The runs of which routines are made.
    pub runs: Arc<StoredRuns>,
    clock: Arc<dyn Clock>,
    registry: Arc<Registry>,
    /// Runs them; `None`: programs are switched off.
    engine: Option<Arc<Engine>>,
    language: String,
    kept: Mutex<BTreeMap<String, OfUser>>,
    /// Held by the one who changes them.
    changing: tokio::sync::Mutex<()>,
}

impl StoredRoutines {
    /// Reads what is stored, and offers it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(
        (store, runs): (Store, Arc<StoredRuns>),
        clock: Arc<dyn Clock>,
        (registry, engine): (Arc<Registry>, Option<Arc<Engine>>),
        language: &str,
    ) -> Result<Self, store::Error> {
        let mut kept = BTreeMap::new();
        for user in store.disk().owners(Kind::Routines)? {
            let rows = store.disk().rows(Kind::Routines, &user, b"", ROUTINES_MAX * 2)?;
            let read = rows.iter().filter_map(|(_, value)| serde_json::from_slice::<Stored>(value).ok());
            let routines: OfUser = read
                .filter(|routine| check_name(&routine.name).is_ok() && routine.present().is_some())
                .map(|routine| (routine.name.clone(), routine))
                .collect();
            kept.insert(user, routines);
        }
        let language = language.to_owned();
        let (kept, changing) = (Mutex::new(kept), tokio::sync::Mutex::default());
        let all = Self { store, runs, clock, registry, engine, language, kept, changing };
        let users: Vec<String> = all.kept().keys().cloned().collect();
        for user in users {
            if let Err(why) = all.offer(&user, &all.of(&user)) {
                tracing::warn!(user, why, "the routines of a user cannot be offered");
            }
        }
        Ok(all)
    }

    /// A user's routines, by name.
    pub fn of(&self, user: &str) -> OfUser {
        self.kept().get(user).cloned().unwrap_or_default()
    }

    /// Removes a routine with all of its versions. Returns whether there was one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn remove(&self, user: &str, name: &str) -> Result<bool, NotKept> {
        let _changing = self.changing.lock().await;
        let mut routines = self.of(user);
        if routines.remove(name).is_none() {
            return Ok(false);
        }
        let (kind, owner, key) = (Kind::Routines, user.to_owned(), name.as_bytes().to_vec());
        self.change(user, routines, Write::RemoveRow { kind, owner, key }).await?;
        Ok(true)
    }

    /// Makes an earlier version the present one again, as a new version.
    ///
    /// # Errors
    /// There is none, its phrases are taken by now, or the store failed.
    pub async fn restore(
        &self,
        user: &str,
        device: Option<&str>,
        name: &str,
        number: u32,
    ) -> Result<KeptRoutine, NotKept> {
        let _changing = self.changing.lock().await;
        let routines = self.of(user);
        let found = routines.get(name).and_then(|routine| routine.versions.iter().find(|one| one.number == number));
        let Some(version) = found.cloned() else {
            return refuse(format!("there is no version {number} of a routine {name}"));
        };
        let version = Version { restores: Some(number), kept_wall_ms: self.clock.now().wall_ms, ..version };
        self.put(user, device, routines, name, version).await
    }

    /// Drops the routines of a user who was erased from the store.
    pub fn erase(&self, user: &str) {
        self.kept().remove(user);
        self.registry.unregister(&Source::BuiltIn, &Scope::User(user.to_owned()));
        self.runs.erase(user);
    }

    async fn keep_run(&self, user: &str, device: Option<&str>, keep: Keep) -> Result<KeptRoutine, NotKept> {
        if self.engine.is_none() {
            return refuse("programs are switched off; `enabled = true` in [code] switches them on");
        }
        check_name(&keep.name).map_err(NotKept::Refused)?;
        if keep.phrases.len() > PHRASES_MAX {
            return refuse(format!("{} phrases; at most {PHRASES_MAX} are accepted", keep.phrases.len()));
        }
        let mut phrases = keep.phrases.iter().map(|text| phrase(text)).collect::<Result<Vec<_>, _>>();
        if let Ok(phrases) = &mut phrases {
            let mut seen = std::collections::BTreeSet::new();
            phrases.retain(|phrase| seen.insert(phrase.clone()));
        }
        let phrases = phrases.map_err(NotKept::Refused)?;
        // What was recorded a moment ago is on its way to the disk.
        self.store.settled().await.map_err(failed)?;
        let Some(run) = self.runs.find(user, &keep.run).map_err(failed)? else {
            return refuse(match keep.run {
                WhichRun::Number(id) => {
                    format!("there is no run {id}; `lorgnette code runs --user {}` shows them", quoted(user))
                }
                WhichRun::Last { .. } => "no program ran in this conversation yet".to_owned(),
            });
        };
        let tools = self.frozen(user, device, &run).map_err(NotKept::Refused)?;
        let _changing = self.changing.lock().await;
        let routines = self.of(user);
        let before = routines.get(&keep.name).and_then(Stored::present);
        let phrases = match before {
            Some(before) if phrases.is_empty() => before.phrases.clone(),
            _ => phrases,
        };
        if phrases.is_empty() {
            return refuse("a new routine needs a phrase, such as \"run my morning summary\"");
        }
        let (kept_wall_ms, run_id) = (self.clock.now().wall_ms, run.id);
        let version =
            Version { number: 0, kept_wall_ms, source: run.source, phrases, tools, run: run_id, restores: None };
        self.put(user, device, routines, &keep.name, version).await
    }

    /// The tools that a run has called, with their definitions; an error if it cannot be kept.
    fn frozen(&self, user: &str, device: Option<&str>, run: &Run) -> Result<BTreeMap<String, String>, String> {
        if let Some(error) = &run.error {
            let line = error.line.map_or_else(String::new, |line| format!(" in line {line}"));
            return Err(format!("this program failed{line}; only one that ran to its end can be kept"));
        }
        let offered = self.registry.snapshot(user, device);
        let tools = run.called();
        let is_same = |(tool, definition): &(&String, &String)| {
            *definition == LIBRARY || offered.find(tool).is_some_and(|tool| tool.definition_id() == *definition)
        };
        match tools.iter().find(|called| !is_same(called)) {
            Some((tool, _)) => Err(format!("{tool} is gone or has changed since this program ran; run it again")),
            None => Ok(tools),
        }
    }

    /// Adds a version, offers it, and stores it.
    async fn put(
        &self,
        user: &str,
        device: Option<&str>,
        mut routines: OfUser,
        name: &str,
        version: Version,
    ) -> Result<KeptRoutine, NotKept> {
        if !routines.contains_key(name) && routines.len() >= ROUTINES_MAX {
            return refuse(format!(
                "{ROUTINES_MAX} routines are kept already; `lorgnette code routine remove` drops one"
            ));
        }
        self.check_phrases(user, device, name, &version.phrases).map_err(NotKept::Refused)?;
        let routine =
            routines.entry(name.to_owned()).or_insert_with(|| Stored { name: name.to_owned(), versions: Vec::new() });
        let number = routine.present().map_or(1, |last| last.number.saturating_add(1));
        routine.versions.push(Version { number, ..version });
        let over = routine.versions.len().saturating_sub(VERSIONS_MAX);
        routine.versions.drain(..over);
        let Some(Routine { of, phrases, tools, .. }) = routine.routine() else {
            return refuse("it has no version");
        };
        let value = serde_json::to_vec(routine).map_err(|error| NotKept::Refused(error.to_string()))?;
        let (kind, owner, key) = (Kind::Routines, user.to_owned(), name.as_bytes().to_vec());
        self.change(user, routines, Write::PutRow { kind, owner, key, value }).await?;
        Ok(KeptRoutine { of, phrases, tools: tools.into_keys().collect() })
    }

    /// Offers these routines of a user in place of the present ones, and stores the change.
    async fn change(&self, user: &str, routines: OfUser, write: Write) -> Result<(), NotKept> {
        self.offer(user, &routines).map_err(NotKept::Refused)?;
        if let Err(error) = self.store.write(write).await {
            if let Err(why) = self.offer(user, &self.of(user)) {
                tracing::warn!(user, why, "the routines of a user cannot be offered");
            }
            return Err(failed(error));
        }
        self.kept().insert(user.to_owned(), routines);
        Ok(())
    }

    /// Refuses phrases that other tools of the user, or other routines, understand, and those that the assistant itself
    /// does.
    fn check_phrases(&self, user: &str, device: Option<&str>, name: &str, phrases: &[String]) -> Result<(), String> {
        if let Some(own) = phrases.iter().find(|phrase| gateway_core::is_command(phrase)) {
            return Err(format!("the phrase \"{own}\" is taken: the assistant itself understands it"));
        }
        let tool = tool_name(name);
        let snapshot = self.registry.snapshot(user, device);
        let mut specs: Vec<Arc<ToolSpec>> = snapshot.specs.iter().filter(|spec| spec.name != tool).cloned().collect();
        let side = Side::App(NEW.to_owned());
        let of = OfRoutine { name: name.to_owned(), version: 0 };
        let new = Routine { of, source: String::new(), phrases: phrases.to_vec(), tools: BTreeMap::new() };
        let new = Arc::new(ToolSpec { side: side.clone(), ..new.spec(&self.language) });
        if let Some(weak) = phrases.iter().find(|phrase| !is_understood(&new, &self.language, phrase)) {
            return Err(format!(
                "the phrase \"{weak}\" would run nothing: it needs a word with a meaning of its own, such as \"run my \
                 morning summary\""
            ));
        }
        specs.push(new);
        match collisions(&specs, &self.language, &side).first() {
            None => Ok(()),
            Some(taken) => Err(format!("the phrase \"{}\" is taken: {} understands it", taken.sentence, taken.other)),
        }
    }

    /// Registers these routines in place of the user's present ones.
    fn offer(&self, user: &str, routines: &OfUser) -> Result<(), String> {
        let scope = Scope::User(user.to_owned());
        let Some(engine) = self.engine.clone() else { return Ok(()) };
        let routines: Vec<Routine> = routines.values().filter_map(Stored::routine).collect();
        if routines.is_empty() {
            self.registry.unregister(&Source::BuiltIn, &scope);
            return Ok(());
        }
        let specs = routines.iter().map(|routine| routine.spec(&self.language)).collect();
        let runner = Arc::new(Routines::new(engine, routines));
        self.registry.register(Source::BuiltIn, scope, specs, runner).map(drop).map_err(|error| error.to_string())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, OfUser>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(error: store::Error) -> NotKept {
    NotKept::Port(port(error))
}

fn refuse<T>(why: impl Into<String>) -> Result<T, NotKept> {
    Err(NotKept::Refused(why.into()))
}

#[async_trait]
impl ProgramStore for StoredRoutines {
    fn record(&self, user: &str, run: Run) {
        self.runs.record(user, run);
    }

    async fn called(&self, user: &str, run: &WhichRun) -> Option<Vec<String>> {
        // What was recorded a moment ago is on its way to the disk.
        self.store.settled().await.ok()?;
        self.runs.find(user, run).ok()?.map(|run| run.called().into_keys().collect())
    }

    async fn keep(&self, user: &str, device: Option<&str>, keep: Keep) -> Result<KeptRoutine, NotKept> {
        self.keep_run(user, device, keep).await
    }
}

#[cfg(test)]
#[path = "routines_tests.rs"]
mod tests;
