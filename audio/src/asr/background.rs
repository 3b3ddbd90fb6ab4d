//! Recognition runs behind everything else on the machine: the network, the voice detector and the voice wait for nothing.
#![allow(unsafe_code, reason = "no safe call of the standard library or of rustix sets a thread's slice")]

/// Steps of niceness: the share of a processor that is left where others want it too.
const NICENESS: i32 = 10;
/// Nanoseconds that a recognition thread asks for at a time. A thread that wakes up and asks for less takes the processor at
/// once; otherwise it would wait for the end of the running slice, some milliseconds, on each hop of a turn.
const SLICE_NS: u64 = 100_000_000;

/// Gives the calling thread its place. Linux before 6.12 takes the niceness only.
///
/// `sched_setattr(2)`; slices of ordinary threads: EEVDF, Linux 6.12.
pub(super) fn enter() {
    #[cfg(target_os = "linux")]
    if let Err(error) = set(NICENESS, SLICE_NS) {
        tracing::debug!(%error, "the priority of a recognition thread could not be lowered");
    }
}

#[cfg(target_os = "linux")]
fn set(niceness: i32, slice_ns: u64) -> std::io::Result<()> {
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
        sched_policy: libc::SCHED_OTHER.unsigned_abs(),
        sched_flags: 0,
        sched_nice: niceness,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the call reads `size` bytes of a value that lives throughout it. Thread 0 is the calling one.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_its_place() {
        let thread = std::thread::Builder::new();
        let taken = thread.spawn(|| {
            set(NICENESS, SLICE_NS)?;
            // The 19th field: niceness (proc(5)); the command's name may hold blanks.
            let stat = std::fs::read_to_string("/proc/thread-self/stat")?;
            Ok::<_, std::io::Error>(
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(16).map(str::to_owned)),
            )
        });
        assert_eq!(taken.unwrap().join().unwrap().unwrap(), Some(NICENESS.to_string()));
    }
}
