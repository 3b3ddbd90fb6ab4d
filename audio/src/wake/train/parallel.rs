//! The same work many times, on all threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Error;

/// Does `work` for each index below `count`; its arguments are the number of the thread and the index. The results are in
/// the order of the indices, whatever the number of threads.
///
/// # Errors
/// The first error of a thread; a thread cannot be started, or panics.
pub fn all<T: Send>(
    threads: usize,
    count: usize,
    work: &(dyn Fn(usize, usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(count));
    let run = |thread: usize| -> Result<(), Error> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            let result = work(thread, index)?;
            made.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        let spawn = |thread| {
            let run = &run;
            std::thread::Builder::new().name(format!("wake-{thread}")).spawn_scoped(scope, move || run(thread))
        };
        let threads: Vec<_> = (0..threads.max(1)).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| {
            let thread = thread.map_err(|source| Error::Io { action: "start a thread", source })?;
            thread.join().unwrap_or_else(|_| Err(crate::wake::Error::run(&"a thread panicked").into()))
        })
    })?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, result)| result).collect())
}
