//! The `lorgnette` binary as a separate process: start, requests, kill.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
};

use firmware_sim::Options;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    task::JoinHandle,
};

use crate::world::{WAIT, basics};

/// Words that act on a terminal: they clear it, set its title, make it red (some of it in C1), ring, begin the line again, and
/// turn the direction of writing.
pub const FOR_A_TERMINAL: &str = "wide\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{9d}0;owned\u{9c}\r\u{202e}open";

/// What of a command's output a terminal would act on.
pub fn acted_on(output: &str) -> Vec<char> {
    let acts = |c: &char| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}';
    output.chars().filter(acts).collect()
}

/// Path of the binary: next to the folder of the test executables.
pub fn binary() -> PathBuf {
    let tests = std::env::current_exe().expect("the test's own path");
    let folder = tests.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    let path = folder.join("lorgnette");
    assert!(path.exists(), "{} is not there: run `cargo build -p gateway` first", path.display());
    path
}

/// Path of the simulator's binary.
pub fn simulator() -> PathBuf {
    let path = binary().with_file_name("lorgnette-sim");
    assert!(path.exists(), "{} is not there: run `cargo build -p firmware-sim` first", path.display());
    path
}

/// Runs a command to its end.
pub async fn lorgnette(arguments: &[&str]) -> Output {
    let command = Command::new(binary())
        .args(arguments)
        .env_remove("LORGNETTE_CONFIG")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(WAIT, command).await;
    output.expect("it ends").expect("it runs")
}

/// Standard error of a command that must fail.
pub async fn fails(arguments: &[&str]) -> String {
    let output = lorgnette(arguments).await;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?} succeeded: {words}");
    assert!(!words.contains("panicked"), "{words}");
    words
}

/// Standard output of a command that must succeed.
pub async fn succeeds(arguments: &[&str]) -> String {
    let output = lorgnette(arguments).await;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {words}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Writes the configuration of a gateway with its data in `data`; returns the file.
pub fn configure(data: &Path, settings: &str) -> PathBuf {
    let file = data.with_extension("toml");
    std::fs::write(&file, basics(data) + settings).expect("the configuration");
    file
}

/// A running gateway.
pub struct Process {
    child: Child,
    data: PathBuf,
    pub ready_ms: u64,
    pub web: SocketAddr,
    pub quic: SocketAddr,
    log: JoinHandle<Vec<String>>,
}

impl Process {
    /// Starts a gateway on this data folder and waits until it listens.
    pub async fn start(data: &Path, settings: &str, environment: &[(&str, &str)]) -> Self {
        let file = configure(data, settings);
        Self::run(data, &file, environment).await
    }

    async fn run(data: &Path, file: &Path, environment: &[(&str, &str)]) -> Self {
        Self::spawn(Command::new(binary()), data, file, environment).await
    }

    /// As [`Self::start`], where it may end instead: with this status and log.
    pub async fn try_start(data: &Path) -> Result<Self, (ExitStatus, Vec<String>)> {
        let file = configure(data, "");
        Self::try_spawn(Command::new(binary()), data, &file, &[]).await
    }

    /// As [`Self::start`], with at most so many file descriptors.
    pub async fn start_within(data: &Path, descriptors_max: u64) -> Self {
        let file = configure(data, "");
        let mut command = Command::new("sh");
        // Both limits: the gateway raises the soft one to the hard one.
        command.args(["-c", &format!("ulimit -n {descriptors_max} && exec \"$0\" \"$@\"")]).arg(binary());
        Self::spawn(command, data, &file, &[]).await
    }

    pub async fn spawn(command: Command, data: &Path, file: &Path, environment: &[(&str, &str)]) -> Self {
        let started = Self::try_spawn(command, data, file, environment).await;
        started.unwrap_or_else(|(status, log)| panic!("the gateway did not start: {status} {log:#?}"))
    }

    async fn try_spawn(
        mut command: Command,
        data: &Path,
        file: &Path,
        environment: &[(&str, &str)],
    ) -> Result<Self, (ExitStatus, Vec<String>)> {
        let mut child = command
            .arg("serve")
            .arg("--log-json")
            .arg("--config")
            .arg(file)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the gateway runs");
        let mut errors = BufReader::new(child.stderr.take().expect("piped")).lines();
        let log = tokio::spawn(async move {
            let mut lines = Vec::new();
            while let Ok(Some(line)) = errors.next_line().await {
                lines.push(line);
            }
            lines
        });
        let mut out = BufReader::new(child.stdout.take().expect("piped")).lines();
        let ready = tokio::time::timeout(WAIT, out.next_line()).await.expect("it starts in time");
        let Ok(Some(line)) = ready else {
            let status = tokio::time::timeout(WAIT, child.wait()).await;
            return Err((status.expect("it ends in time").expect("a status"), log.await.expect("its log")));
        };
        // ready in N ms: web ADDRESS quic ADDRESS key KEY
        let mut words = line.split_whitespace();
        let ready_ms = words.nth(2).and_then(|word| word.parse().ok());
        let web = words.nth(2).and_then(|word| word.parse().ok());
        let quic = words.nth(1).and_then(|word| word.parse().ok());
        Ok(Self {
            child,
            data: data.to_path_buf(),
            ready_ms: ready_ms.unwrap_or_else(|| panic!("{line}")),
            web: web.unwrap_or_else(|| panic!("{line}")),
            quic: quic.unwrap_or_else(|| panic!("{line}")),
            log,
        })
    }

    /// The same on a port that was chosen before.
    pub async fn start_at(data: &Path, port: u16) -> Self {
        let file = configure(data, "");
        let text = std::fs::read_to_string(&file).expect("the configuration");
        let fixed = text.replace("listen.web = \"127.0.0.1:0\"", &format!("listen.web = \"127.0.0.1:{port}\""));
        std::fs::write(&file, fixed).expect("the configuration");
        Self::run(data, &file, &[]).await
    }

    /// Kills it as `kill -9` does, and starts it again on the same ports.
    pub async fn killed_and_started_again(self) -> Self {
        let (data, web, quic) = (self.data.clone(), self.web, self.quic);
        self.kill().await;
        let file = configure(&data, "");
        let text = std::fs::read_to_string(&file).expect("the configuration");
        let fixed = text
            .replace("listen.web = \"127.0.0.1:0\"", &format!("listen.web = \"{web}\""))
            .replace("listen.quic = \"127.0.0.1:0\"", &format!("listen.quic = \"{quic}\""));
        std::fs::write(&file, fixed).expect("the configuration");
        Self::run(&data, &file, &[]).await
    }

    /// Options of glasses whose state is next to the data.
    pub fn options(&self) -> Options {
        let target = format!("wss://{}/glasses", self.web).parse().expect("an address");
        let mut options = Options::new(target, &self.data.with_extension("glasses"));
        options.reconnect = false;
        options.profile.echo_cancelled = true;
        options
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Waits until it ends by itself; returns its status and its log.
    pub async fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let status = tokio::time::timeout(WAIT, self.child.wait()).await;
        (status.expect("it ends in time").expect("a status"), self.log.await.expect("its log"))
    }

    /// Kills it as `kill -9` does; returns its log.
    pub async fn kill(mut self) -> Vec<String> {
        self.child.kill().await.expect("killed");
        self.log.await.expect("its log")
    }

    /// Stops it as a service manager does; returns its status and its log.
    pub async fn terminate(self) -> (ExitStatus, Vec<String>) {
        let sent = Command::new("kill").args(["-TERM", &self.id().to_string()]).status().await;
        assert!(sent.expect("kill").success());
        self.ended().await
    }
}
