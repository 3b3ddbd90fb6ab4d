//! How often tasks of users are started again by themselves.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Restarts of one user's task within [`WITHIN`]: one that panics over what is stored would do so for ever.
pub(crate) const RESTARTS_MAX: usize = 5;
/// See [`RESTARTS_MAX`].
const WITHIN: Duration = Duration::from_secs(3_600);

/// The last restarts, by user: at most [`RESTARTS_MAX`] of each.
#[derive(Default)]
pub(crate) struct Restarts(Mutex<Vec<(String, Instant)>>);

impl Restarts {
    /// Whether the task of a user may be started again; if so, it counts.
    pub(crate) fn allow(&self, user: &str) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|(_, at)| at.elapsed() < WITHIN);
        let is_allowed = last.iter().filter(|(other, _)| other == user).count() < RESTARTS_MAX;
        if is_allowed {
            last.push((user.to_owned(), Instant::now()));
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn restarts_are_bounded_for_each_user() {
        let restarts = Restarts::default();
        assert!((0..RESTARTS_MAX).all(|_| restarts.allow("ann")));
        assert!(!restarts.allow("ann") && restarts.allow("bob"));
        tokio::time::advance(WITHIN).await;
        assert!(restarts.allow("ann"));
    }
}
