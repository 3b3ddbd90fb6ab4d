//! A cache of values computed from lists of tools.

use std::sync::{Arc, Mutex, PoisonError};

use gateway_core::vocab::ToolSpec;

use crate::registry::Specs;

/// Maximum cached lists. Glasses with the same tools share one list; lists differ by the user's installed and
/// switched-off tools, and by the kind of glasses.
pub(super) const LISTS_MAX: usize = 64;

/// One value per list.
pub(super) struct PerList<T> {
    /// Most recently used last.
    kept: Mutex<Vec<(Specs, Arc<T>)>>,
}

impl<T> Default for PerList<T> {
    fn default() -> Self {
        Self { kept: Mutex::default() }
    }
}

impl<T> PerList<T> {
    /// The value of exactly this list, computed if there is none yet.
    pub(super) fn get(&self, tools: &Specs, make: impl FnOnce(&[Arc<ToolSpec>]) -> T) -> Arc<T> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        // In most cases it is the identical list: the contents of others are only compared if none is identical.
        let known = kept.iter().rposition(|(list, _)| Arc::ptr_eq(list, tools));
        if let Some(place) = known.or_else(|| kept.iter().rposition(|(list, _)| same(list, tools))) {
            let found = kept.remove(place);
            let value = Arc::clone(&found.1);
            kept.push(found);
            return value;
        }
        // Computed without the lock: thousands of tools take a while.
        drop(kept);
        let value = Arc::new(make(tools));
        let mut kept = lock();
        if kept.len() >= LISTS_MAX {
            kept.remove(0);
        }
        kept.push((Arc::clone(tools), Arc::clone(&value)));
        value
    }
}

/// Whether two lists contain the same tools. A revision of the catalogue that leaves a device's list unchanged costs
/// nothing. A list without its user's switched-off tools is a list of its own.
fn same(a: &Specs, b: &Specs) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(count: usize) -> Specs {
        (0..count).map(|_| Arc::new(ToolSpec::default())).collect()
    }

    #[test]
    fn a_value_is_kept_for_the_list_and_not_for_its_copy_alone() {
        let (kept, list) = (PerList::default(), tools(2 * LISTS_MAX));
        let first = kept.get(&list, <[_]>::len);
        let copy: Specs = list.to_vec().into();
        assert!(Arc::ptr_eq(&first, &kept.get(&copy, <[_]>::len)));
        for count in 1..=LISTS_MAX {
            kept.get(&list[..count].into(), <[_]>::len);
        }
        assert_eq!(kept.kept.lock().unwrap().len(), LISTS_MAX);
        assert!(!Arc::ptr_eq(&first, &kept.get(&list, <[_]>::len)), "the one that was not used for longest went");
    }
}
