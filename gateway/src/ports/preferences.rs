//! Users' choices where tools of several sides understand the same sentences: in memory, and written through.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use gateway_core::vocab::{Preference, Side};

use crate::store::{self, Kind, Store, Write};

/// Choices kept per user, the latest ones: every sentence scans them.
const PREFERENCES_MAX: usize = 128;
/// Key of a user's only row.
const KEY: &[u8] = b"";

/// All users' choices.
pub struct Preferences {
    store: Store,
    kept: RwLock<BTreeMap<String, Arc<[Preference]>>>,
}

impl Preferences {
    /// Reads them all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(store: Store) -> Result<Self, store::Error> {
        let mut kept = BTreeMap::new();
        for user in store.disk().owners(Kind::Preferences)? {
            let rows = store.disk().rows(Kind::Preferences, &user, KEY, 1)?;
            let read = rows.first().and_then(|(_, value)| serde_json::from_slice::<Vec<Preference>>(value).ok());
            kept.insert(user, read.unwrap_or_default().into());
        }
        Ok(Self { store, kept: RwLock::new(kept) })
    }

    /// A user's choices, the oldest first.
    pub fn of(&self, user: &str) -> Arc<[Preference]> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).get(user).cloned().unwrap_or_default()
    }

    /// Stores a choice, replacing an earlier one between these two sides. It applies at once; if the store rejects it,
    /// the user is asked again after a restart.
    pub fn keep(&self, user: &str, new: Preference) {
        self.change(user, |kept| {
            kept.retain(|old| {
                let same = old.side == new.side && old.over == new.over;
                let opposite = old.side == new.over && old.over == new.side;
                !same && !opposite
            });
            kept.push(new);
            kept.drain(..kept.len().saturating_sub(PREFERENCES_MAX));
        });
    }

    /// Forgets a user's choices about a side, or all; returns how many.
    pub fn forget(&self, user: &str, about: Option<&Side>) -> usize {
        self.change(user, |kept| {
            kept.retain(|old| about.is_some_and(|side| !side.covers(&old.side) && !side.covers(&old.over)));
        })
    }

    /// Drops the cached choices of a user who was erased from the store.
    pub fn erase(&self, user: &str) {
        self.kept.write().unwrap_or_else(PoisonError::into_inner).remove(user);
    }

    /// Applies a change; returns by how many the choices decreased.
    fn change(&self, user: &str, change: impl FnOnce(&mut Vec<Preference>)) -> usize {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let mut list = kept.get(user).map(|list| list.to_vec()).unwrap_or_default();
        let before = list.len();
        change(&mut list);
        let fewer = before.saturating_sub(list.len());
        let (kind, owner, key) = (Kind::Preferences, user.to_owned(), KEY.to_vec());
        let write = match serde_json::to_vec(&list) {
            Ok(value) if !list.is_empty() => Write::PutRow { kind, owner, key, value },
            _ => Write::RemoveRow { kind, owner, key },
        };
        // Under the lock, so that writes have the order of the changes.
        let tell = |error: store::Error| tracing::warn!(%error, "a choice between tools could not be kept");
        if let Err(error) = self.store.submit(write, move |written| _ = written.map_err(tell)) {
            tell(error);
        }
        kept.insert(user.to_owned(), list.into());
        fewer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str) -> Side {
        Side::App(name.into())
    }

    fn over(side: &Side, over: &Side) -> Preference {
        Preference { side: side.clone(), over: over.clone() }
    }

    #[tokio::test]
    async fn choices_are_kept_replaced_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let preferences = Preferences::load(store.clone()).unwrap();
        let (lists, todo, notes) = (app("lists"), app("todo"), Side::BuiltIn(Some("notes".into())));
        preferences.keep("ann", over(&lists, &todo));
        preferences.keep("ann", over(&notes, &todo));
        preferences.keep("ann", over(&todo, &lists));
        preferences.keep("ann", over(&todo, &lists));
        store.settled().await.unwrap();
        for preferences in [&preferences, &Preferences::load(store.clone()).unwrap()] {
            assert_eq!(*preferences.of("ann"), [over(&notes, &todo), over(&todo, &lists)]);
            assert!(preferences.of("bob").is_empty());
        }
        assert_eq!(preferences.forget("ann", Some(&Side::default())), 1, "all that is built in");
        assert_eq!(*preferences.of("ann"), [over(&todo, &lists)]);
        assert_eq!(preferences.forget("ann", Some(&notes)), 0);
        assert_eq!(preferences.forget("ann", None), 1);
        store.settled().await.unwrap();
        assert!(Preferences::load(store).unwrap().of("ann").is_empty());
    }

    #[tokio::test]
    async fn the_latest_stay() {
        let folder = tempfile::tempdir().unwrap();
        let preferences = Preferences::load(Store::open(folder.path(), 16).unwrap()).unwrap();
        for number in 0..PREFERENCES_MAX + 1 {
            preferences.keep("ann", over(&app(&number.to_string()), &Side::default()));
        }
        let kept = preferences.of("ann");
        assert_eq!((kept.len(), &kept[0].side), (PREFERENCES_MAX, &app("1")));
    }
}
