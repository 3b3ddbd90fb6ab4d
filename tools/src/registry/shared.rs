//! Interned definitions and lists of them: a hundred pairs of glasses that offer the same tools share one list. Data
//! about a tool or a list can therefore be cached by its address.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use gateway_core::vocab::ToolSpec;
use sha2::{Digest as _, Sha256};

use crate::mutex::lock;

/// Definitions, shared with the catalogue: even lists of thousands are cheap to clone. Equal definitions are one
/// object, and so are equal lists from the catalogue.
pub type Specs = Arc<[Arc<ToolSpec>]>;

/// Unused entries are dropped when there are twice as many entries as were in use after the last cleanup, and at least
/// this many.
const SWEPT_MIN: usize = 256;

/// The interned objects; all references are weak.
#[derive(Default)]
pub(crate) struct Shared {
    /// By the SHA-256 of the definition.
    specs: Mutex<Pool<[u8; 32], ToolSpec>>,
    /// By the addresses of the list's items; the items live at least as long as the list.
    lists: Mutex<Pool<Addresses, List>>,
}

type Addresses = Box<[usize]>;
type List = [Arc<ToolSpec>];

struct Pool<K, T: ?Sized> {
    entries: HashMap<K, Weak<T>>,
    sweep_at: usize,
}

impl<K, T: ?Sized> Default for Pool<K, T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), sweep_at: SWEPT_MIN }
    }
}

impl<K: Eq + std::hash::Hash, T: ?Sized> Pool<K, T> {
    fn get_or_keep(&mut self, key: K, new: impl FnOnce() -> Arc<T>) -> Arc<T> {
        if let Some(known) = self.entries.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| entry.strong_count() > 0);
            self.sweep_at = (self.entries.len() * 2).max(SWEPT_MIN);
        }
        let new = new();
        self.entries.insert(key, Arc::downgrade(&new));
        new
    }
}

impl Shared {
    /// The interned definition equal to this one, or this one if there is none yet.
    pub(crate) fn spec(&self, spec: ToolSpec) -> Arc<ToolSpec> {
        // A definition that cannot be serialised is not interned.
        let Ok(bytes) = serde_json::to_vec(&(&spec, &spec.side)) else {
            return Arc::new(spec);
        };
        lock(&self.specs).get_or_keep(Sha256::digest(&bytes).into(), || Arc::new(spec))
    }

    /// The interned list of the same tools in the same order, or this one if there is none yet.
    pub(crate) fn list(&self, tools: Vec<Arc<ToolSpec>>) -> Specs {
        let key = tools.iter().map(|tool| Arc::as_ptr(tool).addr()).collect();
        lock(&self.lists).get_or_keep(key, || tools.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str) -> ToolSpec {
        ToolSpec { name: name.into(), ..ToolSpec::default() }
    }

    #[test]
    fn what_is_equal_exists_once_and_only_while_it_is_in_use() {
        let shared = Shared::default();
        let (one, other) = (shared.spec(spec("a")), shared.spec(spec("b")));
        assert!(Arc::ptr_eq(&one, &shared.spec(spec("a"))) && !Arc::ptr_eq(&one, &other));
        let list = shared.list(vec![one.clone(), other.clone()]);
        assert!(Arc::ptr_eq(&list, &shared.list(vec![one.clone(), other.clone()])));
        assert!(!Arc::ptr_eq(&list, &shared.list(vec![other, one])));
        for number in 0..10 * SWEPT_MIN {
            let one = shared.spec(spec(&number.to_string()));
            drop(shared.list(vec![one]));
        }
        assert!(lock(&shared.specs).entries.len() <= SWEPT_MIN && lock(&shared.lists).entries.len() <= SWEPT_MIN);
    }
}
