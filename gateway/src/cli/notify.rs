//! The protocol of `sd_notify(3)`: datagrams to the socket that the service manager names in `NOTIFY_SOCKET`.

use std::{
    env,
    ffi::OsString,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

use crate::health::Problem;

/// Messages per watchdog interval: a delay of less than half of it causes no restart.
const MESSAGES_PER_INTERVAL: u32 = 3;

/// The service manager, if there is one.
pub(super) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// From the environment. If the manager cannot be reached, that is logged.
    pub(super) fn from_env() -> Self {
        Self::from(|name| env::var_os(name), std::process::id())
    }

    fn from(var: impl Fn(&str) -> Option<OsString>, pid: u32) -> Self {
        let socket = var("NOTIFY_SOCKET").and_then(|name| {
            let opened = address(&name).and_then(|address| Ok((UnixDatagram::unbound()?, address)));
            opened.inspect_err(|error| tracing::warn!(%error, ?name, "NOTIFY_SOCKET cannot be used")).ok()
        });
        // Nothing waits for the manager.
        let socket = socket.filter(|(socket, _)| socket.set_nonblocking(true).is_ok());
        let number = |value: OsString| value.to_str()?.parse::<u64>().ok();
        let is_ours = var("WATCHDOG_PID").is_none_or(|own| number(own) == Some(pid.into()));
        let interval = var("WATCHDOG_USEC").and_then(number).filter(|us| *us > 0 && is_ours && socket.is_some());
        Self { socket, watchdog: interval.map(|us| Duration::from_micros(us) / MESSAGES_PER_INTERVAL) }
    }

    /// The manager's watchdog interval; `None`: it has none.
    pub(super) fn watchdog_every(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells that the gateway listens: units that come after it are started.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Another process is the gateway from now on.
    pub(super) fn replaced_by(&self, pid: u32) {
        self.tell(&format!("MAINPID={pid}\nREADY=1"));
    }

    /// Tells that the gateway stops on purpose, and may take a while.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Tells that the gateway works; without it the service manager restarts the gateway after a time.
    pub(super) fn works(&self) {
        self.tell("WATCHDOG=1");
    }

    /// Tells that the gateway works, unless one of its problems may be repaired by a restart; a full disk is no such problem.
    pub(super) fn works_but_for(&self, problems: &[Problem]) {
        match problems.iter().find(|problem| problem.is_repaired_by_restart) {
            None => self.works(),
            Some(Problem { part, why, .. }) => tracing::error!(part, why, "the watchdog is not told that all is well"),
        }
    }

    fn tell(&self, message: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(message.as_bytes(), address)
        {
            tracing::warn!(%error, message, "the service manager was not told");
        }
    }
}

/// A path, or after `@` an abstract name.
fn address(name: &OsString) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor an abstract name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(variables: &[(&str, &str)]) -> ServiceManager {
        let find = |name: &str| variables.iter().find(|(other, _)| *other == name);
        ServiceManager::from(|name| find(name).map(|(_, value)| OsString::from(value)), 7)
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut message = [0; 64];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_is_told_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("lorgnette-test-{}", std::process::id());
        let by_name = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        for (socket, name) in [
            (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
            (UnixDatagram::bind_addr(&by_name).unwrap(), format!("@{name}")),
        ] {
            let manager = manager(&[("NOTIFY_SOCKET", &name)]);
            manager.ready();
            manager.works();
            manager.stopping();
            assert_eq!([heard(&socket), heard(&socket), heard(&socket)], ["READY=1", "WATCHDOG=1", "STOPPING=1"]);
            assert_eq!(manager.watchdog_every(), None);
        }
    }

    #[test]
    fn the_watchdog_is_told_nothing_while_there_is_a_problem_that_a_restart_may_repair() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = manager(&[("NOTIFY_SOCKET", path.to_str().unwrap())]);
        let problem =
            |is_repaired_by_restart| Problem { part: "store".into(), why: "it hangs".into(), is_repaired_by_restart };
        let (told, untold) = (&["WATCHDOG=1", "STOPPING=1"][..], &["STOPPING=1"][..]);
        for (problems, messages) in [
            (vec![], told),
            (vec![problem(false)], told),
            (vec![problem(true)], untold),
            (vec![problem(false), problem(true)], untold),
        ] {
            manager.works_but_for(&problems);
            // Behind it, so that nothing is waited for that does not come.
            manager.stopping();
            for message in messages {
                assert_eq!(heard(&socket), *message, "{problems:?}");
            }
        }
    }

    #[test]
    fn the_watchdog_is_that_of_this_process() {
        let every = |more: &[(&str, &str)]| manager(&[&[("NOTIFY_SOCKET", "@x")], more].concat()).watchdog_every();
        let third = Some(Duration::from_secs(10));
        assert_eq!(every(&[("WATCHDOG_USEC", "30000000")]), third);
        assert_eq!(every(&[("WATCHDOG_USEC", "30000000"), ("WATCHDOG_PID", "7")]), third);
        for other in [("WATCHDOG_PID", "8"), ("WATCHDOG_PID", "x")] {
            assert_eq!(every(&[("WATCHDOG_USEC", "30000000"), other]), None);
        }
        assert_eq!((every(&[("WATCHDOG_USEC", "0")]), every(&[("WATCHDOG_USEC", "-")])), (None, None));
        assert_eq!(manager(&[("WATCHDOG_USEC", "30000000")]).watchdog_every(), None, "nobody to tell");
    }

    #[test]
    fn without_a_manager_nothing_is_told() {
        for name in [None, Some(("NOTIFY_SOCKET", "relative")), Some(("NOTIFY_SOCKET", "/nowhere/at/all"))] {
            let variables: Vec<_> = name.into_iter().collect();
            manager(&variables).ready();
        }
    }
}
