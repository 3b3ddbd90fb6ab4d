//! The addresses to listen on: free, or this gateway's own.

use std::{
    fs,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, UdpSocket},
};

use super::Use;
use crate::{
    config::Config,
    findings::{Findings, Level},
    transport::sockets::cannot_listen,
};

/// An address that the configuration names.
struct Wanted {
    /// TCP or UDP.
    kind: &'static str,
    /// Its key of the configuration.
    key: &'static str,
    address: SocketAddr,
}

pub(super) fn examine(config: &Config, used_by: &Use, findings: &mut Findings) {
    let own = match used_by {
        Use::Gateway(status) => [Some(&status.web), status.quic.as_ref()],
        _ => [None; 2],
    };
    let [own_web, own_quic] = own.map(|own| own.and_then(|own| own.parse().ok()));
    let web = Wanted { kind: "TCP", key: "listen.web", address: config.listen.web };
    judge(&web, own_web, TcpListener::bind(web.address).map(drop), holder, findings);
    if let Some(address) = config.listen.quic {
        let quic = Wanted { kind: "UDP", key: "listen.quic", address };
        judge(&quic, own_quic, UdpSocket::bind(address).map(drop), holder, findings);
    }
}

/// `own`: where the running gateway listens; `bound`: what came of listening there.
fn judge(
    wanted: &Wanted,
    own: Option<SocketAddr>,
    bound: io::Result<()>,
    holder: impl Fn(&str, SocketAddr) -> Option<(u32, String)>,
    findings: &mut Findings,
) {
    let Wanted { kind, key, address } = wanted;
    let Err(error) = bound else { return findings.ok("ports", format!("{address} ({kind}) is free")) };
    let in_use = error.kind() == ErrorKind::AddrInUse;
    match own.filter(|own| in_use && overlap(*own, *address)) {
        Some(own) if own == *address => return findings.ok("ports", format!("{address} ({kind}) is this gateway's")),
        Some(own) => {
            let what =
                format!("this gateway listens on {own} ({kind}), which counts, not {address} of the configuration");
            return findings.add(Level::Note, "ports", what, SOCKET_UNIT);
        }
        None => {}
    }
    match in_use.then(|| holder(kind, *address)).flatten() {
        Some((1, name)) if name == "systemd" => {
            let what = format!("systemd holds port {} ({kind}): its addresses count, not `{key}`", address.port());
            findings.add(Level::Note, "ports", what, SOCKET_UNIT);
        }
        Some((pid, name)) => findings.fault(
            "ports",
            format!("cannot listen on {address} ({kind}): {name} (process {pid}) listens there"),
            format!("stop process {pid}, or change `{key}`"),
        ),
        None => told(wanted, &error, findings),
    }
}

/// What to know of sockets that the gateway does not open itself.
const SOCKET_UNIT: &str = "`systemctl list-sockets` shows whose sockets these are: those of lorgnette.socket are as they \
                           should be, and `systemctl edit lorgnette.socket` changes their addresses; otherwise restart the \
                           gateway, or change `listen.*`";

/// Whether who listens on the one address keeps others from the other one.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let either_is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (either_is_any || one.ip() == other.ip())
}

fn told(wanted: &Wanted, error: &io::Error, findings: &mut Findings) {
    let what = cannot_listen(wanted.address, wanted.kind, wanted.key, error);
    // `cannot listen on A (TCP): why; what to do`
    let (what, remedy) = what
        .split_once("; ")
        .map_or((what.clone(), String::new()), |(what, remedy)| (what.to_owned(), remedy.to_owned()));
    findings.fault("ports", what, remedy);
}

/// The process that listens on an address, and its name, where /proc shows it.
fn holder(kind: &str, address: SocketAddr) -> Option<(u32, String)> {
    let tables = if kind == "TCP" { ["tcp", "tcp6"] } else { ["udp", "udp6"] };
    let inode =
        tables.iter().find_map(|table| inode(&fs::read_to_string(format!("/proc/net/{table}")).ok()?, address))?;
    let wanted = format!("socket:[{inode}]");
    for process in fs::read_dir("/proc").ok()?.filter_map(Result::ok) {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // Those of other users cannot be read.
        let Ok(open) = fs::read_dir(process.path().join("fd")) else { continue };
        let has_it =
            open.filter_map(Result::ok).any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.to_str() == Some(&wanted)));
        if has_it {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some((pid, name.trim().to_owned()));
        }
    }
    None
}

/// The inode of the socket that is bound to the port, in a table of /proc/net: columns `local_address` (`ADDRESS:PORT`,
/// hexadecimal), `st` (0A: listens; 07: a UDP socket) and `inode`.
fn inode(table: &str, address: SocketAddr) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let port = columns.get(1)?.rsplit(':').next()?;
        let is_it = u16::from_str_radix(port, 16) == Ok(address.port()) && matches!(*columns.get(3)?, "0A" | "07");
        is_it.then(|| columns.get(9)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_listens_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (pid, name) = holder("TCP", address).unwrap();
        assert!(pid == std::process::id() && !name.is_empty(), "{pid} {name}");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(holder("UDP", socket.local_addr().unwrap()).unwrap().0, std::process::id());
        drop(listener);
        assert_eq!(holder("TCP", address), None);
    }

    fn judged(own: Option<&str>, error: ErrorKind, holder: Option<(u32, &str)>) -> (Level, String, String) {
        let mut findings = Findings::default();
        let wanted = Wanted { kind: "TCP", key: "listen.web", address: "[::]:8460".parse().unwrap() };
        let own = own.map(|own| own.parse().unwrap());
        let holder = |_: &str, _| holder.map(|(pid, name)| (pid, name.to_owned()));
        judge(&wanted, own, Err(error.into()), holder, &mut findings);
        let found = findings.0.remove(0);
        (found.level, found.what, found.remedy.unwrap_or_default())
    }

    #[test]
    fn sockets_of_a_service_manager_are_no_fault() {
        let systemd = Some((1, "systemd"));
        let (level, what, remedy) = judged(Some("127.0.0.1:8460"), ErrorKind::AddrInUse, systemd);
        assert!(level == Level::Note && what.contains("listens on 127.0.0.1:8460 (TCP), which counts"), "{what}");
        assert!(remedy.contains("systemctl edit lorgnette.socket"), "{remedy}");
        let (level, what, _) = judged(None, ErrorKind::AddrInUse, systemd);
        assert!(level == Level::Note && what.contains("systemd holds port 8460 (TCP)"), "{what}");
        assert_eq!(judged(Some("[::]:8460"), ErrorKind::AddrInUse, systemd).0, Level::Ok);
        // The first process of a container is a program like any other.
        for (own, holder) in [(None, (1, "nginx")), (Some("127.0.0.1:9000"), (7, "systemd"))] {
            let (level, what, remedy) = judged(own, ErrorKind::AddrInUse, Some(holder));
            assert!(level == Level::Fault && what.contains(holder.1), "{what}");
            assert!(remedy.contains(&format!("stop process {}", holder.0)), "{remedy}");
        }
        let (level, what, _) = judged(Some("[::]:8460"), ErrorKind::AddrNotAvailable, None);
        assert!(level == Level::Fault && what.contains("no such address"), "{what}");
    }

    #[test]
    fn an_address_keeps_others_from_the_same_one_and_from_all_of_its_port() {
        let table =
            [("127.0.0.1:1", "[::]:1", true), ("0.0.0.0:1", "192.0.2.1:1", true), ("127.0.0.1:1", "[::]:2", false)];
        for (one, other, expected) in table.into_iter().chain([("127.0.0.1:1", "192.0.2.1:1", false)]) {
            assert_eq!(overlap(one.parse().unwrap(), other.parse().unwrap()), expected, "{one} {other}");
        }
    }
}
