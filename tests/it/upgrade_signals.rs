//! What the process that is replaced hears while it hands over: signals, and the watchdog of its service manager.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::Output,
};

use tokio::{process::Command, task::JoinHandle, time::timeout};

use crate::{
    process::{Process, binary},
    upgrade::{program, signal, upgrade},
    world::WAIT,
};

/// A gateway and a program that takes its data folder and does `rest` with it.
struct Handing {
    folder: tempfile::TempDir,
    data: PathBuf,
    gateway: Process,
    manager: UnixDatagram,
}

impl Handing {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let socket = folder.path().join("notify");
        let manager = UnixDatagram::bind(&socket).unwrap();
        manager.set_read_timeout(Some(WAIT)).unwrap();
        let environment = [("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "600000")];
        let gateway = Process::start(&data, "", &environment).await;
        Self { folder, data, gateway, manager }
    }

    /// Begins an upgrade to a program that does `rest` once the data folder is its own, and writes a line to `told` there.
    fn upgrade(&self, rest: &str) -> JoinHandle<Output> {
        let told = self.told();
        let made = std::process::Command::new("mkfifo").arg(&told).status().unwrap();
        assert!(made.success());
        let real = format!("{} version --json", binary().display());
        let rest = rest.replace("TOLD", told.to_str().unwrap()).replace("DATA", self.data.to_str().unwrap());
        let script = format!("echo '\"loaded\"' >&0; read line; {rest}");
        let program = program(self.folder.path(), "program", &real, &script);
        let data = self.data.clone();
        tokio::spawn(async move { upgrade(&data, &[program.to_str().unwrap()]).await })
    }

    fn told(&self) -> PathBuf {
        self.folder.path().join("told")
    }

    fn next_message(&self) -> String {
        let mut message = [0; 64];
        let length = tokio::task::block_in_place(|| self.manager.recv(&mut message)).expect("a message");
        String::from_utf8(message[..length].to_vec()).unwrap()
    }
}

/// The next line that the program writes.
async fn line(told: PathBuf) -> String {
    let read = tokio::task::spawn_blocking(move || fs::read_to_string(told));
    timeout(WAIT, read).await.expect("a line in time").unwrap().unwrap().trim().to_owned()
}

fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

/// As a store that takes longer to be brought to a new version than the watchdog waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_is_told_meanwhile_and_an_end_ends_both_processes() {
    let handing = Handing::start().await;
    let upgrading = handing.upgrade("echo $$ > TOLD; exec sleep 1000");
    let pid = line(handing.told()).await;
    // Those of before are read out.
    handing.manager.set_nonblocking(true).unwrap();
    while handing.manager.recv(&mut [0; 64]).is_ok() {}
    handing.manager.set_nonblocking(false).unwrap();
    for _ in 0..3 {
        assert_eq!(handing.next_message(), "WATCHDOG=1");
    }
    assert!(!is_gone(&pid));
    signal(&handing.gateway.id().to_string(), "-TERM").await;
    let stopping = std::iter::repeat_with(|| handing.next_message()).find(|message| message != "WATCHDOG=1");
    assert_eq!(stopping.as_deref(), Some("STOPPING=1"));
    let (status, log) = handing.gateway.ended().await;
    assert!(status.success(), "{status} {log:#?}");
    assert!(is_gone(&pid), "nobody is left on the data folder");
    let output = upgrading.await.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("no gateway runs any more"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_is_asked_for_meanwhile_is_done_by_the_process_that_serves_then() {
    let handing = Handing::start().await;
    // It is sent a signal by the process that it has replaced.
    let rest = "trap 'echo reloaded > TOLD; exit 0' HUP; kill -HUP $PPID; echo '\"serving\"' >&0; \
                while :; do sleep 0.1; done";
    let upgrading = handing.upgrade(rest);
    assert_eq!(line(handing.told()).await, "reloaded");
    let (status, log) = handing.gateway.ended().await;
    assert!(status.success(), "{status} {log:#?}");
    upgrading.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_is_asked_for_meanwhile_is_done_by_the_old_process_where_the_new_one_fails() {
    let handing = Handing::start().await;
    let upgrading = handing.upgrade("kill -HUP $PPID; exit 1");
    let output = upgrading.await.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("the old one serves again"), "{words}");
    // The answer to a second one comes behind that to the first.
    let config = handing.data.with_extension("toml");
    let reloaded = Command::new(binary()).args(["reload", "--config"]).arg(&config).output().await.unwrap();
    assert!(reloaded.status.success());
    let (_, log) = handing.gateway.terminate().await;
    let count = log.iter().filter(|line| line.contains("the configuration was read again")).count();
    assert_eq!(count, 2, "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_after_which_no_process_is_left_says_so() {
    let handing = Handing::start().await;
    let upgrading = handing.upgrade("echo nonsense > DATA/gateway.key; exit 1");
    let (status, log) = handing.gateway.ended().await;
    assert!(!status.success(), "{log:#?}");
    let output = upgrading.await.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("no gateway runs any more"), "{words}");
}
