//! The number of file descriptors that the process may have open, and what a listener says when there are no more.

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Descriptors for all but connections: store, listeners, control socket, pipes of MCP servers, requests to models, apps
/// and tools.
const OTHERS: u64 = 512;

/// How many this many connections need, with everything else.
pub(crate) fn needed(connections_max: usize) -> u64 {
    OTHERS.saturating_add(connections_max as u64)
}

/// Raises the process's own limit to what this many connections need, and warns where the system does not allow it.
/// Without descriptors, nobody is accepted, the store cannot be opened again, and no MCP server starts.
pub(crate) fn allow(connections_max: usize) {
    let needed = needed(connections_max);
    let limit = getrlimit(Resource::Nofile);
    let Some(raised) = raised(limit, needed) else { return };
    let allowed = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }) {
        Ok(()) => raised,
        Err(_) => limit.current.unwrap_or(u64::MAX),
    };
    if allowed < needed {
        tracing::warn!(
            allowed,
            needed,
            "the system allows fewer open files than `limits.connections` may need: raise its limit (`LimitNOFILE=` of a \
             systemd unit, `ulimit -Hn`), or lower `limits.connections`"
        );
    }
}

/// Whether accepting failed because no descriptor is left.
pub(crate) fn are_used_up(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a listener will never accept anything again: it is no listener any more.
pub(crate) fn is_broken(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP))
}

/// The soft limit to set: what is needed, as far as the hard limit allows; `None`: nothing has to be changed.
fn raised(limit: Rlimit, needed: u64) -> Option<u64> {
    let current = limit.current.filter(|current| *current < needed)?;
    Some(limit.maximum.map_or(needed, |maximum| needed.min(maximum)).max(current))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_without_descriptors_is_not_broken() {
        let error = |errno: Errno| std::io::Error::from(errno);
        for passing in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::CONNABORTED, Errno::INTR] {
            assert!(!is_broken(&error(passing)), "{passing}");
        }
        assert!(
            is_broken(&error(Errno::INVAL)) && are_used_up(&error(Errno::MFILE)) && !are_used_up(&error(Errno::INTR))
        );
    }

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed() {
        let of = |current, maximum, needed| raised(Rlimit { current, maximum }, needed);
        assert_eq!(of(Some(1_024), Some(524_288), 1_500), Some(1_500));
        assert_eq!(of(Some(1_024), Some(1_200), 1_500), Some(1_200));
        assert_eq!(of(Some(1_024), Some(1_024), 1_500), Some(1_024), "it cannot be, which is told");
        assert_eq!(of(Some(1_024), None, 1_500), Some(1_500));
        assert_eq!(of(Some(4_096), Some(4_096), 1_500), None);
        assert_eq!(of(None, None, 1_500), None);
    }
}
