//! Keeps the store's thread alive: a panic in a write or in the receiver of its answer does not end it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Error;

/// Receives the result of a job.
pub(super) type Reply = Box<dyn FnOnce(Result<u64, Error>) + Send>;

/// Runs work on the disk. A panic becomes [`Error::Unknown`], and the thread goes on.
pub(super) fn caught<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        tracing::error!("a write to the store panicked; the store goes on");
        Err(Error::Unknown)
    })
}

/// Answers a job; a panic of the receiver does not end the thread. If the store is lost, the process ends, so that its
/// supervisor starts another one.
pub(super) fn answer(reply: Reply, result: Result<u64, Error>) {
    let is_lost = matches!(result, Err(Error::Lost(_)));
    if catch_unwind(AssertUnwindSafe(|| reply(result))).is_err() {
        tracing::error!("the receiver of an answer of the store panicked");
    }
    if is_lost {
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_write_is_answered_as_unknown() {
        assert!(matches!(caught::<u64>(|| panic!("on purpose")), Err(Error::Unknown)));
        assert!(matches!(caught(|| Ok(7)), Ok(7)));
    }
}
