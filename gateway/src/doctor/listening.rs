//! The addresses to listen on: free, or this gateway's own.

use std::{
    fs,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, UdpSocket},
};

use super::Use;
use crate::{config::Config, findings::Findings, transport::sockets::cannot_listen};

pub(super) fn examine(config: &Config, used_by: &Use, findings: &mut Findings) {
    let own: Vec<SocketAddr> = match used_by {
        Use::Gateway(status) => {
            [Some(&status.web), status.quic.as_ref()].into_iter().flatten().filter_map(|own| own.parse().ok()).collect()
        }
        _ => Vec::new(),
    };
    let web = ("TCP", "listen.web", config.listen.web, TcpListener::bind(config.listen.web).map(drop));
    let quic = config.listen.quic.map(|quic| ("UDP", "listen.quic", quic, UdpSocket::bind(quic).map(drop)));
    for (kind, key, address, bound) in [Some(web), quic].into_iter().flatten() {
        match bound {
            Ok(()) => findings.ok("ports", format!("{address} ({kind}) is free")),
            Err(error) if error.kind() == ErrorKind::AddrInUse && own.contains(&address) => {
                findings.ok("ports", format!("{address} ({kind}) is this gateway's"));
            }
            Err(error) => told(kind, key, address, &error, findings),
        }
    }
}

fn told(kind: &str, key: &str, address: SocketAddr, error: &io::Error, findings: &mut Findings) {
    let what = cannot_listen(address, kind, key, error);
    // `cannot listen on A (TCP): why; what to do`
    let (what, remedy) = what
        .split_once("; ")
        .map_or((what.clone(), String::new()), |(what, remedy)| (what.to_owned(), remedy.to_owned()));
    let who = (error.kind() == ErrorKind::AddrInUse).then(|| holder(kind, address)).flatten();
    match who {
        Some((pid, name)) => findings.fault(
            "ports",
            format!("cannot listen on {address} ({kind}): {name} (process {pid}) listens there"),
            format!("stop process {pid}, or change `{key}`"),
        ),
        None => findings.fault("ports", what, remedy),
    }
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
}
