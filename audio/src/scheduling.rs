//! Thread scheduling: latency-critical threads run before recognition.
#![allow(unsafe_code, reason = "no safe call of the standard library or of rustix sets a thread's slice")]

use std::io;

/// Scheduling class of a thread.
///
/// A thread that wakes up and requests a shorter slice than the running one gets the processor at once; otherwise it
/// would wait for the end of the running slice, some milliseconds, on each hop of a turn. Slices of ordinary threads
/// need EEVDF, Linux 6.12; before it only the niceness has an effect. See `sched_setattr(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Short, latency-critical work: network, detection. Threads started by such a thread are scheduled as usual.
    Responsive,
    /// Long work with lower priority than everything else.
    Background,
}

impl Scheduling {
    /// Applies this class to the calling thread. Settings that the system refuses stay as they were: the cost is
    /// latency, not an error.
    pub fn apply(self) {
        #[cfg(target_os = "linux")]
        if let Err(error) = self.set() {
            tracing::debug!(%error, scheduling = ?self, "a thread is scheduled as any other");
        }
    }

    #[cfg(target_os = "linux")]
    fn set(self) -> io::Result<()> {
        let own = niceness();
        let (flags, niceness, slice_ns) = match self {
            Self::Responsive => (libc::SCHED_FLAG_RESET_ON_FORK, own, RESPONSIVE_SLICE_NS),
            // An unprivileged process cannot lower the niceness it was started with.
            Self::Background => (0, own.max(BACKGROUND_NICENESS), BACKGROUND_SLICE_NS),
        };
        let attributes = libc::sched_attr {
            size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
            sched_policy: libc::SCHED_OTHER.unsigned_abs(),
            sched_flags: flags.unsigned_abs().into(),
            sched_nice: niceness,
            sched_priority: 0,
            sched_runtime: slice_ns,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the call reads `size` bytes of a value that lives throughout it. Thread 0 is the calling one.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Niceness of background threads: their share of a processor under contention. At 3 it is a third beside one busy thread
/// of another program; at 10 it was a tenth, and a sentence took many seconds there. That responsive threads run first is
/// the work of the slices.
#[cfg(target_os = "linux")]
const BACKGROUND_NICENESS: i32 = 3;
/// Slice of a background thread in nanoseconds: the longest that Linux grants.
#[cfg(target_os = "linux")]
const BACKGROUND_SLICE_NS: u64 = 100_000_000;
/// Slice of a responsive thread in nanoseconds: the shortest that Linux grants.
#[cfg(target_os = "linux")]
const RESPONSIVE_SLICE_NS: u64 = 100_000;

/// The calling thread's niceness, -20 to 19.
#[cfg(target_os = "linux")]
fn niceness() -> i32 {
    // SAFETY: the call takes no pointer. It fails only for a thread that does not exist; 0, the calling one, does.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Runs `work` on a new thread, because scheduling stays with the thread.
    fn on_a_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        std::thread::Builder::new().spawn(work).unwrap().join().unwrap()
    }

    #[test]
    fn a_background_thread_is_at_least_as_nice_as_before() {
        let (first, second) = on_a_thread(|| {
            Scheduling::Background.set().unwrap();
            let first = niceness();
            // SAFETY: no pointer is passed; a thread may always raise its niceness.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) }, 0);
            Scheduling::Background.set().unwrap();
            (first, niceness())
        });
        assert!(first >= BACKGROUND_NICENESS);
        assert_eq!(second, 19);
    }

    #[test]
    fn what_a_responsive_thread_starts_is_scheduled_as_usual() {
        let niceness_of_child = on_a_thread(|| {
            let before = niceness();
            Scheduling::Responsive.set().unwrap();
            assert_eq!(niceness(), before);
            on_a_thread(|| Scheduling::Background.set().map(|()| niceness()))
        });
        assert!(niceness_of_child.unwrap() >= BACKGROUND_NICENESS);
    }
}
