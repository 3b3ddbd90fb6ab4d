//! Which of this machine's addresses lead to a listener.

use std::net::IpAddr;

use if_addrs::get_if_addrs;

/// Addresses that are told of one listener: a machine has few, and each makes an invitation longer.
const TOLD_MAX: usize = 4;

/// The addresses of this machine on which a listener can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    listens: IpAddr,
    loopback: bool,
}

impl Reach {
    /// Of a listener on this address; `loopback`: also from this machine itself. `None`: from nowhere.
    pub(crate) fn of(listens: IpAddr, loopback: bool) -> Option<Self> {
        (loopback || !listens.is_loopback()).then_some(Self { listens, loopback })
    }

    /// Whether this address of the machine leads to the listener.
    pub(crate) fn covers(&self, own: IpAddr) -> bool {
        if own.is_loopback() && !self.loopback {
            return false;
        }
        match self.listens {
            // The system takes connections over IPv4 there, too.
            IpAddr::V6(listens) if listens.is_unspecified() => true,
            IpAddr::V4(listens) if listens.is_unspecified() => own.is_ipv4(),
            listens => listens == own,
        }
    }

    /// Whether this machine has a covered address at this moment.
    pub(crate) fn is_there(&self) -> bool {
        get_if_addrs().unwrap_or_default().iter().any(|interface| self.covers(interface.ip()))
    }

    /// The covered addresses at this moment, IPv4 first, at most [`TOLD_MAX`]. Those that hold within one link only are left
    /// out: another machine would have to know the link.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let own = get_if_addrs().unwrap_or_default();
        let mut found: Vec<IpAddr> = own.iter().map(if_addrs::Interface::ip).filter(|ip| self.covers(*ip)).collect();
        found.retain(|ip| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local()));
        found.sort_unstable();
        found.dedup();
        found.truncate(TOLD_MAX);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_listener_is_reached_where_it_listens() {
        assert_eq!(Reach::of(ip("127.0.0.1"), false), None);
        for (listens, covered, others) in [
            ("0.0.0.0", vec!["192.0.2.1"], vec!["127.0.0.1", "2001:db8::1"]),
            ("::", vec!["192.0.2.1", "2001:db8::1", "fe80::1"], vec!["127.0.0.1", "::1"]),
            ("192.0.2.1", vec!["192.0.2.1"], vec!["192.0.2.2", "127.0.0.1"]),
        ] {
            let reach = Reach::of(ip(listens), false).unwrap();
            assert!(covered.iter().all(|own| reach.covers(ip(own))), "{listens}");
            assert!(!others.iter().any(|own| reach.covers(ip(own))), "{listens}");
        }
        let here = Reach::of(ip("127.0.0.1"), true).unwrap();
        assert!(here.covers(ip("127.0.0.1")) && !here.covers(ip("192.0.2.1")));
        assert_eq!(here.addresses(), [ip("127.0.0.1")]);
    }
}
