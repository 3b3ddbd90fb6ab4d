//! Stored records about tools: calls, users' switches, and the last known tools of apps and servers.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use tools::{
    catalogue::{CatalogueStore, StoredSet},
    journal,
    ledger::{Ledger, Record},
    permissions::Switches,
    ports::PortError,
    registry::Registry,
    source::{Scope, Source},
};

use super::stores::port;
use crate::store::{self, Kind, Store, Write};

/// Calls kept per user: months for an ordinary wearer.
const RECORDS_MAX: u64 = 10_000;
/// Switches of one user: every call scans them.
const SWITCHES_MAX: usize = 256;
/// Sets of tools that are read back: more than there are sources.
const SETS_MAX: usize = 1_000;

/// The [`Ledger`] of all users: a row for each finished call of a persistent tool.
pub struct StoredLedger(pub Store);

impl StoredLedger {
    /// A user's calls since a time, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn records(&self, user: &str, since_wall_ms: i64) -> Result<Vec<Record>, store::Error> {
        let limit = usize::try_from(RECORDS_MAX).unwrap_or(usize::MAX);
        let rows = self.0.disk().rows_backwards(Kind::Ledger, user, b"", limit)?;
        let records = rows.iter().filter_map(|(_, value)| serde_json::from_slice::<Record>(value).ok());
        // Not cut at the first older one: a wall clock may have jumped.
        Ok(records.filter(|record| record.wall_ms >= since_wall_ms).collect())
    }
}

impl Ledger for StoredLedger {
    fn record(&self, record: Record) {
        let Ok(value) = serde_json::to_vec(&record) else { return };
        let write = Write::AppendRowWithin { kind: Kind::Ledger, owner: record.user, value, rows_max: RECORDS_MAX };
        let submitted = self.0.submit(write, |written| {
            if let Err(error) = written {
                tracing::warn!(%error, "a call could not be recorded");
            }
        });
        if let Err(error) = submitted {
            tracing::warn!(%error, "a call could not be recorded");
        }
    }
}

/// Tools that users have switched off: in memory, and written through.
pub struct StoredSwitches {
    store: Store,
    off: RwLock<BTreeMap<String, Arc<[String]>>>,
    registry: Arc<Registry>,
}

impl StoredSwitches {
    /// Reads them all. Changes are reported to the registry.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(store: Store, registry: Arc<Registry>) -> Result<Self, store::Error> {
        let mut off = BTreeMap::new();
        for user in store.disk().owners(Kind::Switches)? {
            off.insert(user.clone(), read_switches(&store, &user)?);
        }
        Ok(Self { store, off: RwLock::new(off), registry })
    }

    /// Switches a tool, or all with a prefix (`com.example.*`), on or off for a user. Returns whether anything changed.
    ///
    /// # Errors
    /// The store rejected it, or there are too many.
    pub async fn set(&self, user: &str, switch: &str, on: bool) -> Result<bool, String> {
        let before = self.denied(user);
        if before.iter().any(|other| other == switch) != on {
            return Ok(false);
        }
        if !on && before.len() >= SWITCHES_MAX {
            return Err(format!("{SWITCHES_MAX} tools are switched off; use `*` for all whose names begin alike"));
        }
        let (kind, owner, key) = (Kind::Switches, user.to_owned(), switch.as_bytes().to_vec());
        let write = match on {
            true => Write::RemoveRow { kind, owner, key },
            false => Write::PutRow { kind, owner, key, value: Vec::new() },
        };
        self.store.write(write).await.map_err(|error| error.to_string())?;
        let now = read_switches(&self.store, user).map_err(|error| error.to_string())?;
        self.off.write().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned(), now);
        self.registry.offers_changed();
        Ok(true)
    }

    /// Drops the cached switches of a user who was erased from the store.
    pub fn erase(&self, user: &str) {
        self.off.write().unwrap_or_else(PoisonError::into_inner).remove(user);
        self.registry.offers_changed();
    }
}

fn read_switches(store: &Store, user: &str) -> Result<Arc<[String]>, store::Error> {
    // A damaged row still says what is switched off.
    let keys = store.disk().keys(Kind::Switches, user, SWITCHES_MAX)?;
    Ok(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect())
}

impl Switches for StoredSwitches {
    fn denied(&self, user: &str) -> Arc<[String]> {
        self.off.read().unwrap_or_else(PoisonError::into_inner).get(user).cloned().unwrap_or_default()
    }
}

/// The last known tools of apps and servers, and the revision.
pub(crate) struct StoredCatalogue(pub Store);

/// The owner of all sets: a source's name may be longer than an owner's.
const OWNER: &str = "sources";
/// The one row of the revision: the last one that is reserved.
const REVISION: (&str, &[u8]) = ("revision", b"reserved");

fn key_of(source: &Source, scope: &Scope) -> Vec<u8> {
    let name = serde_json::to_vec(&(source, scope)).unwrap_or_default();
    journal::key(&[&name]).to_vec()
}

impl StoredCatalogue {
    fn submit(&self, write: Write) {
        let tell = |error: store::Error| tracing::warn!(%error, "the catalogue of tools could not be kept");
        if let Err(error) = self.0.submit(write, move |written| _ = written.map_err(tell)) {
            tell(error);
        }
    }
}

impl CatalogueStore for StoredCatalogue {
    fn load(&self) -> Result<Vec<StoredSet>, PortError> {
        let rows = self.0.disk().rows(Kind::Catalogue, OWNER, b"", SETS_MAX).map_err(port)?;
        Ok(rows.iter().filter_map(|(_, value)| serde_json::from_slice(value).ok()).collect())
    }

    fn save(&self, set: StoredSet) {
        let key = key_of(&set.source, &set.scope);
        let value = serde_json::to_vec(&set).unwrap_or_default();
        self.submit(Write::PutRow { kind: Kind::Catalogue, owner: OWNER.to_owned(), key, value });
    }

    fn last_revision(&self) -> Result<u64, PortError> {
        let (owner, key) = REVISION;
        match self.0.disk().row(Kind::Catalogue, owner, key) {
            Ok(row) => Ok(row.and_then(|row| row.try_into().ok()).map_or(0, u64::from_be_bytes)),
            // The store has logged it. A gateway without the number works like a new one.
            Err(store::Error::Damaged { .. }) => Ok(0),
            Err(error) => Err(port(error)),
        }
    }

    fn reserve_revisions(&self, last: u64) {
        let (owner, key) = REVISION;
        let (kind, value) = (Kind::Catalogue, last.to_be_bytes().to_vec());
        self.submit(Write::PutRow { kind, owner: owner.to_owned(), key: key.to_vec(), value });
    }

    fn forget(&self, source: &Source, scope: &Scope) {
        let key = key_of(source, scope);
        self.submit(Write::RemoveRow { kind: Kind::Catalogue, owner: OWNER.to_owned(), key });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn switches_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let registry = Arc::<Registry>::default();
        let load = || StoredSwitches::load(store.clone(), registry.clone()).unwrap();
        let switches = load();
        assert_eq!(switches.set("ann", "a.*", false).await, Ok(true));
        assert_eq!(registry.revision(), 1, "what ann is offered is another list now");
        assert_eq!(switches.set("ann", "a.*", false).await, Ok(false));
        assert_eq!(switches.set("ann", "b", true).await, Ok(false));
        assert_eq!(registry.revision(), 1);
        for switches in [&switches, &load()] {
            assert_eq!(*switches.denied("ann"), ["a.*".to_owned()]);
            assert!(switches.denied("bob").is_empty());
        }
        assert_eq!(switches.set("ann", "a.*", true).await, Ok(true));
        assert_eq!(registry.revision(), 2);
        assert!(load().denied("ann").is_empty());
        assert_eq!(switches.set("ann", "a.*", false).await, Ok(true));
        switches.erase("ann");
        assert_eq!(registry.revision(), 4);
    }

    #[tokio::test]
    async fn the_catalogue_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let catalogue = StoredCatalogue(store.clone());
        let set = |name: &str| StoredSet { source: Source::Mcp(name.into()), scope: Scope::Global, tools: vec![] };
        let long = "x".repeat(200);
        catalogue.save(set("a"));
        catalogue.save(set(&long));
        catalogue.forget(&Source::Mcp("a".into()), &Scope::Global);
        store.settled().await.unwrap();
        assert_eq!(catalogue.load(), Ok(vec![set(&long)]));
    }

    #[tokio::test]
    async fn no_revision_is_used_by_two_runs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let mut before = 0;
        for changes in [0, 3, 2_500, 1] {
            let registry = Arc::new(Registry::with_built_ins().unwrap());
            registry.keep_in(Arc::new(StoredCatalogue(store.clone())), |_, _| true).unwrap();
            assert!(registry.revision() > before, "{} after {before}", registry.revision());
            for _ in 0..changes {
                let last = registry.revision();
                assert_eq!(registry.offers_changed(), last + 1);
            }
            before = registry.revision();
            store.settled().await.unwrap();
        }
        // It is neither a set of tools nor a user's.
        assert_eq!(StoredCatalogue(store.clone()).load(), Ok(vec![]));
        store.erase(store::Scope::User { user: "revision".into(), devices: true }).await.unwrap();
        assert!(StoredCatalogue(store).last_revision().unwrap() >= before);
    }
}
