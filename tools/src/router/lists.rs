//! What is worked out for a list of tools is kept for as long as the list is in use.

use std::sync::{Arc, Mutex, PoisonError};

use gateway_core::vocab::ToolSpec;

use crate::registry::Specs;

/// Lists that are kept. Glasses that are offered the same tools have one list: what differs is what users have installed
/// and switched off, and kinds of glasses.
pub(super) const LISTS_MAX: usize = 64;

/// One value for each list.
pub(super) struct PerList<T> {
    /// Latest used last.
    kept: Mutex<Vec<(Specs, Arc<T>)>>,
}

impl<T> Default for PerList<T> {
    fn default() -> Self {
        Self { kept: Mutex::default() }
    }
}

impl<T> PerList<T> {
    /// The value of this very list, made when there is none yet.
    pub(super) fn get(&self, tools: &Specs, make: impl FnOnce(&[Arc<ToolSpec>]) -> T) -> Arc<T> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        // Most often it is this very list: others are looked into only where it is none of them.
        let known = kept.iter().rposition(|(list, _)| Arc::ptr_eq(list, tools));
        if let Some(place) = known.or_else(|| kept.iter().rposition(|(list, _)| same(list, tools))) {
            let found = kept.remove(place);
            let value = Arc::clone(&found.1);
            kept.push(found);
            return value;
        }
        // Thousands of tools take their time: nobody else waits for it.
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

/// Whether two lists hold the same tools. A revision of the catalogue that leaves a device's list as it was costs
/// nothing, and a list that leaves out what its user has switched off is a list of its own.
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
