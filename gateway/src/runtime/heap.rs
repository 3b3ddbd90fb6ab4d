//! Gives memory back to the system. glibc keeps what is freed below something that is still in use, in a heap for each
//! thread: what loading the models took stays, and so does what the busiest moment took.

/// Gives all whole pages back that hold nothing; malloc_trim(3). Other C libraries do it by themselves.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "a call of the C library; see SAFETY")]
pub(crate) fn trim() {
    // SAFETY: it takes no pointer, may be called from any thread, and changes nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn trim() {}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Resident memory without files, in KiB.
    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }

    #[test]
    fn what_is_free_between_what_is_in_use_is_given_back() {
        let mut pages: Vec<Box<[u8]>> = (0..16_384).map(|_| vec![1; 4_000].into_boxed_slice()).collect();
        let mut number = 0;
        pages.retain(|_| {
            number += 1;
            number % 1_024 == 0
        });
        let kept = resident_kib();
        trim();
        assert!(resident_kib() + 32 * 1_024 < kept, "{kept} KiB before, {} behind it", resident_kib());
        assert_eq!(pages.len(), 16);
    }
}
