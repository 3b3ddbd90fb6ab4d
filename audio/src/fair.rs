//! A queue that serves those who wait in it in turn, so that nobody's many jobs delay another's one.

use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// Whose jobs they are: one device's, usually.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u64);

impl Owner {
    /// All who have no name of their own.
    pub const NOBODY: Self = Self(0);

    /// The one with this name, the same in this process.
    pub fn of(name: &str) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        name.hash(&mut hasher);
        // Those that are counted have the lower half.
        Self(hasher.finish() | 1 << 63)
    }

    /// One that nobody else is, in this process.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Items by owner. Those of one owner stay in order; owners take turns. The caller bounds its length.
#[derive(Debug)]
pub struct FairQueue<T> {
    /// Owners that wait, the next one first; none without an item.
    owners: VecDeque<(Owner, VecDeque<T>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { owners: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.owners.iter().map(|(_, items)| items.len()).sum()
    }

    /// Number of this owner's items.
    pub fn len_of(&self, owner: Owner) -> usize {
        self.owners.iter().find(|(other, _)| *other == owner).map_or(0, |(_, items)| items.len())
    }

    /// Number of items that are counted.
    pub fn count(&self, is_counted: impl Fn(&T) -> bool) -> usize {
        self.owners.iter().flat_map(|(_, items)| items).filter(|item| is_counted(item)).count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Appends an item to those of its owner. An owner that had none comes last.
    pub fn push(&mut self, owner: Owner, item: T) {
        match self.owners.iter_mut().find(|(other, _)| *other == owner) {
            Some((_, items)) => items.push_back(item),
            None => self.owners.push_back((owner, VecDeque::from([item]))),
        }
    }

    /// Takes the oldest item of the next owner that need not wait. An owner with fewer items in work, as `in_work` counts them,
    /// comes before one with more. `in_work` gives `None` for an item that has to wait.
    pub fn pop(&mut self, in_work: impl Fn(Owner, &T) -> Option<usize>) -> Option<(Owner, T)> {
        let items_in_work = |index: usize| {
            let (owner, items) = &self.owners[index];
            items.iter().enumerate().find_map(|(at, item)| in_work(*owner, item).map(|count| (count, index, at)))
        };
        let (_, next, at) = (0..self.owners.len()).filter_map(items_in_work).min()?;
        let (owner, mut items) = self.owners.remove(next)?;
        let item = items.remove(at)?;
        if !items.is_empty() {
            self.owners.push_back((owner, items));
        }
        Some((owner, item))
    }

    /// Takes the newest item that `gives_way`, of the owner that has most.
    pub fn pop_newest(&mut self, gives_way: impl Fn(&T) -> bool) -> Option<T> {
        self.displace(0, gives_way)
    }

    /// Makes room for another item of `owner`: takes the newest item that `gives_way` of the owner that has most, if that
    /// one still has as many as `owner` afterwards.
    pub fn make_room(&mut self, owner: Owner, gives_way: impl Fn(&T) -> bool) -> Option<T> {
        self.displace(self.len_of(owner) + 2, gives_way)
    }

    fn displace(&mut self, count_min: usize, gives_way: impl Fn(&T) -> bool) -> Option<T> {
        let can = |index: &usize| self.owners[*index].1.iter().any(&gives_way);
        let most = (0..self.owners.len()).filter(can).max_by_key(|index| self.owners[*index].1.len())?;
        let items = &mut self.owners[most].1;
        if items.len() < count_min {
            return None;
        }
        let newest = items.iter().rposition(&gives_way)?;
        let item = items.remove(newest);
        if items.is_empty() {
            self.owners.remove(most);
        }
        item
    }

    /// The first item that `is_wanted`, in its place.
    pub fn find(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.owners.iter_mut().flat_map(|(_, items)| items).find(|item| is_wanted(item))
    }

    /// Takes the first item that `is_wanted`.
    pub fn remove(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let (owner, item) = self.owners.iter().enumerate().find_map(|(owner, (_, items))| {
            let item = items.iter().position(&is_wanted)?;
            Some((owner, item))
        })?;
        let items = &mut self.owners[owner].1;
        let item = items.remove(item);
        if items.is_empty() {
            self.owners.remove(owner);
        }
        item
    }

    /// Takes all items.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.owners).into_iter().flat_map(|(_, items)| items)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// What happens to a queue.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u64),
        Pop,
        MakeRoom(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let owner = || prop_oneof![4 => Just(1_u64), 1 => 2..6_u64];
        let step =
            prop_oneof![3 => owner().prop_map(Step::Push), 2 => Just(Step::Pop), 1 => owner().prop_map(Step::MakeRoom)];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn nobody_is_passed_twice_by_another(steps in steps()) {
            let mut queue = FairQueue::default();
            let mut waiting = BTreeMap::<u64, VecDeque<usize>>::new();
            // By owner that waits: how often each other one was served since it waits.
            let mut passed = BTreeMap::<u64, BTreeMap<u64, usize>>::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(owner) => {
                        queue.push(Owner(owner), number);
                        waiting.entry(owner).or_default().push_back(number);
                        passed.entry(owner).or_default();
                    }
                    Step::Pop => {
                        let Some((Owner(owner), item)) = queue.pop(|_, _| Some(0)) else {
                            prop_assert!(waiting.is_empty());
                            continue;
                        };
                        let own = waiting.get_mut(&owner).unwrap();
                        prop_assert_eq!(own.pop_front(), Some(item), "an owner's items stay in order");
                        passed.remove(&owner);
                        if own.is_empty() {
                            waiting.remove(&owner);
                        } else {
                            passed.insert(owner, BTreeMap::new());
                        }
                        for (other, by) in &mut passed {
                            let count = by.entry(owner).or_default();
                            *count += usize::from(*other != owner);
                            prop_assert!(*count <= 1, "{other} was passed twice by {owner}");
                        }
                    }
                    Step::MakeRoom(owner) => {
                        let own = waiting.get(&owner).map_or(0, VecDeque::len);
                        let most = waiting.values().map(VecDeque::len).max().unwrap_or(0);
                        let displaced = queue.make_room(Owner(owner), |_| true);
                        prop_assert_eq!(displaced.is_some(), most >= own + 2);
                        if let Some(item) = displaced {
                            let (from, items) = waiting.iter_mut().find(|(_, items)| items.back() == Some(&item)).unwrap();
                            prop_assert!(items.len() == most && *from != owner);
                            items.pop_back();
                        }
                    }
                }
                prop_assert_eq!(queue.len(), waiting.values().map(VecDeque::len).sum::<usize>());
            }
            let mut rest: Vec<usize> = queue.drain().collect();
            rest.sort_unstable();
            let mut expected: Vec<usize> = waiting.into_values().flatten().collect();
            expected.sort_unstable();
            prop_assert_eq!(rest, expected);
        }
    }

    #[test]
    fn whoever_has_less_in_work_comes_first() {
        let mut queue = FairQueue::default();
        let (busy, other) = (Owner::unique(), Owner::unique());
        queue.push(busy, 'a');
        queue.push(busy, 'b');
        queue.push(other, 'c');
        assert_eq!(queue.pop(|owner, _| Some(usize::from(owner == busy))), Some((other, 'c')));
        assert_eq!(queue.remove(|item| *item == 'b'), Some('b'));
        assert_eq!(queue.pop(|_, _| Some(9)), Some((busy, 'a')));
        assert!(queue.is_empty() && queue.pop(|_, _| Some(0)).is_none() && queue.pop_newest(|_| true).is_none());
    }

    #[test]
    fn only_what_gives_way_is_displaced() {
        let mut queue = FairQueue::default();
        let (many, few) = (Owner::unique(), Owner::unique());
        ['A', 'b', 'C'].into_iter().for_each(|item| queue.push(many, item));
        queue.push(few, 'd');
        let gives_way = |item: &char| item.is_lowercase();
        assert_eq!((queue.count(gives_way), queue.find(gives_way)), (2, Some(&mut 'b')));
        assert_eq!(queue.make_room(few, gives_way), Some('b'));
        assert_eq!(queue.make_room(Owner::unique(), gives_way), None, "whoever has most has none that does");
        assert_eq!(queue.pop_newest(gives_way), Some('d'));
        assert_eq!(queue.pop_newest(gives_way), None);
        assert_eq!(queue.drain().collect::<String>(), "AC");
    }
}
