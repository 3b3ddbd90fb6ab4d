//! Modules that are compiled already, by the tools that they are for.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Bundle, compile, offered};
use crate::registry::{Snapshot, Specs};

/// Bundles that are kept: more than users speak at the same time. One for a thousand tools has about 2 MiB.
const BUNDLES_MAX: usize = 16;

/// Bundles by their tools, the latest first.
#[derive(Default)]
pub struct Cache(Mutex<VecDeque<Entry>>);

/// A bundle, with what it was compiled of: as long as an entry holds these, nothing else has their addresses.
struct Entry {
    snapshot: Arc<Snapshot>,
    specs: Specs,
    bundle: Arc<Bundle>,
}

impl Cache {
    /// The modules of these tools of a snapshot: all that are offered, without those that are switched off.
    pub fn bundle(&self, snapshot: &Arc<Snapshot>, specs: &Specs) -> Arc<Bundle> {
        let is_it = |entry: &Entry| Arc::ptr_eq(&entry.snapshot, snapshot) && Arc::ptr_eq(&entry.specs, specs);
        if let Some(known) = self.lock().iter().find(|entry| is_it(entry)) {
            return Arc::clone(&known.bundle);
        }
        let bundle = Arc::new(compile(&offered(snapshot, specs)));
        let mut entries = self.lock();
        // Those of earlier revisions are not asked for again.
        entries.retain(|entry| entry.snapshot.revision >= snapshot.revision && !is_it(entry));
        entries.truncate(BUNDLES_MAX - 1);
        entries.push_front(Entry {
            snapshot: Arc::clone(snapshot),
            specs: Arc::clone(specs),
            bundle: Arc::clone(&bundle),
        });
        bundle
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::ClientClass;

    use super::*;
    use crate::{executor::Executor, registry::Registry, test_support::World};

    #[test]
    fn equal_tools_are_compiled_once_until_they_change() {
        let registry = Arc::new(Registry::with_built_ins().unwrap());
        let executor = Executor::new(registry.clone(), World::usual().ports());
        let cache = Cache::default();
        let bundle = |user: &str| {
            let (_, specs) = executor.offered(user, None, ClientClass::Internal);
            cache.bundle(&registry.snapshot(user, None), &specs)
        };
        let first = bundle("ada");
        assert!(first.module("@capabilities/timer-set").is_some() && Arc::ptr_eq(&first, &bundle("ada")));
        // Some tools less: another bundle, and the first one stays.
        let snapshot = registry.snapshot("ada", None);
        let fewer: Specs = snapshot.specs.iter().filter(|spec| spec.name != "timer.set").cloned().collect();
        assert!(cache.bundle(&snapshot, &fewer).module("@capabilities/timer-set").is_none());
        assert!(Arc::ptr_eq(&first, &bundle("ada")));
        for at in 0..2 * BUNDLES_MAX {
            bundle(&at.to_string());
        }
        assert_eq!(cache.lock().len(), BUNDLES_MAX);
        registry.offers_changed();
        assert!(!Arc::ptr_eq(&first, &bundle("ada")));
        assert_eq!(cache.lock().len(), 1);
    }
}
