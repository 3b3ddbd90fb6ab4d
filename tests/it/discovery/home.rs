//! Two machines with a cable between them: this one, and one for the glasses.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{process::simulator, world::WAIT};

/// Addresses of this machine: of the gateway, and of a stranger.
pub const HERE: &str = "192.0.2.1";
pub const STRANGER: &str = "192.0.2.3";

/// The machine of the glasses. It is there as long as this is.
pub struct Home {
    machine: Child,
    _open: ChildStdin,
}

impl Home {
    /// In a network namespace: makes another one, and the cable.
    pub async fn new() -> Self {
        // It ends with its standard input.
        let mut machine = Command::new("unshare")
            .args(["--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("unshare, of util-linux: apt-get install util-linux");
        let open = machine.stdin.take().expect("piped");
        let mut out = BufReader::new(machine.stdout.take().expect("piped")).lines();
        assert_eq!(out.next_line().await.expect("a line").as_deref(), Some("ready"), "`ip`: apt-get install iproute2");
        let home = Self { machine, _open: open };
        let other = home.id();
        run(&["ip", "link", "set", "lo", "up"]).await;
        run(&["ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", &other]).await;
        for address in [HERE, STRANGER] {
            run(&["ip", "address", "add", &format!("{address}/24"), "dev", "here"]).await;
        }
        run(&["ip", "link", "set", "here", "up"]).await;
        for command in ["ip address add 192.0.2.2/24 dev there", "ip link set there up"] {
            let command: Vec<&str> = command.split(' ').collect();
            run(&[&["nsenter", "--target", &other, "--net"], &command[..]].concat()).await;
        }
        home
    }

    fn id(&self) -> String {
        self.machine.id().expect("it runs").to_string()
    }

    /// Runs the simulator there.
    pub async fn simulator(&self, state: &Path, arguments: &[&str]) -> Simulator {
        let mut child = Command::new("nsenter")
            .args(["--target", &self.id(), "--net"])
            .arg(simulator())
            .args(arguments)
            .arg("--state")
            .arg(state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("nsenter, of util-linux: apt-get install util-linux");
        let out = BufReader::new(child.stdout.take().expect("piped")).lines();
        Simulator { child, out }
    }
}

/// The simulator at work.
pub struct Simulator {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
}

impl Simulator {
    /// What follows these words in a line of its output.
    pub async fn line(&mut self, words: &str) -> String {
        let found = tokio::time::timeout(WAIT, find(&mut self.out, words)).await.expect("the line in time");
        match found {
            Some(line) => line,
            None => panic!("no line `{words}`: {}", self.errors().await),
        }
    }

    async fn errors(&mut self) -> String {
        let mut words = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut words).await.expect("its errors");
        }
        words
    }

    /// Waits for its end: whether it succeeded, and what it said.
    pub async fn ended(mut self) -> (bool, String) {
        let ended = async {
            let mut words = String::new();
            while let Some(line) = self.out.next_line().await.expect("a line") {
                words = words + &line + "\n";
            }
            words += &self.errors().await;
            (self.child.wait().await.expect("a status").success(), words)
        };
        tokio::time::timeout(WAIT, ended).await.expect("it ends in time")
    }
}

async fn find(lines: &mut Lines<impl AsyncBufRead + Unpin>, words: &str) -> Option<String> {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, rest)) = line.split_once(words) {
            return Some(rest.to_owned());
        }
    }
    None
}

async fn run(command: &[&str]) {
    let output: std::io::Result<Output> = Command::new(command[0]).args(&command[1..]).output().await;
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; apt-get install iproute2", command[0]));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
