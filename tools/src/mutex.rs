//! How the mutexes of this crate are locked: also after a panic of their holder, since what they keep is whole between
//! any two statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data a panic cannot leave half changed; a poisoned one is as good as any other.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
