//! How the system shares the processors among threads: what somebody waits for goes before recognition.
#![allow(unsafe_code, reason = "no safe call of the standard library or of rustix sets a thread's slice")]

use std::io;

/// How a thread is scheduled.
///
/// A thread that wakes up and asks for a shorter slice than the running one takes the processor at once; otherwise it would
/// wait for the end of the running slice, some milliseconds, on each hop of a turn. Slices of ordinary threads: EEVDF, Linux
/// 6.12; before it, only the niceness counts. `sched_setattr(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Short work that somebody waits for: network, detection. What such a thread starts is scheduled as usual.
    Responsive,
    /// Long work behind everything else.
    Background,
}

impl Scheduling {
    /// Schedules the calling thread so. What the system does not grant is left as it was: a slower turn, not an error.
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
            // Nobody may lower the niceness of a gateway that was started with a greater one.
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

/// Steps of niceness of background threads: the share of a processor that is left where others want it too.
#[cfg(target_os = "linux")]
const BACKGROUND_NICENESS: i32 = 10;
/// Nanoseconds that a background thread asks for at a time: the most that Linux gives.
#[cfg(target_os = "linux")]
const BACKGROUND_SLICE_NS: u64 = 100_000_000;
/// The same of a responsive thread: the least that Linux gives.
#[cfg(target_os = "linux")]
const RESPONSIVE_SLICE_NS: u64 = 100_000;

/// The calling thread's niceness, -20 to 19.
#[cfg(target_os = "linux")]
fn niceness() -> i32 {
    // SAFETY: the call takes no pointer. It fails for no thread that exists, and 0, the calling one, does.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Runs it on a thread of its own: what a thread is given stays with it.
    fn on_a_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        std::thread::Builder::new().spawn(work).unwrap().join().unwrap()
    }

    #[test]
    fn a_background_thread_is_at_least_as_nice_as_before() {
        let (first, second) = on_a_thread(|| {
            Scheduling::Background.set().unwrap();
            let first = niceness();
            // SAFETY: no pointer; a thread may always be made nicer.
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
