//! A gateway in a process of its own, to be killed.
//!
//! It is this program once more: with `serve` as its first argument it does what `lorgnette serve` does, by the same code.

use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use firmware_sim::transport::{Scheme, Target};
use gateway::control::{Answer, Request, client};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a start may take before it counts as failed.
const START_MAX: Duration = Duration::from_secs(60);

/// Is the gateway, where this process was started to be one.
pub fn serve() -> Option<ExitCode> {
    let is_gateway = std::env::args().nth(1).is_some_and(|first| first == "serve");
    is_gateway.then(|| gateway::cli::run(gateway::cli::Arguments::parse()))
}

/// Where a gateway has its data and listens: the same at each start.
pub struct Place {
    /// The data folder.
    pub data: PathBuf,
    config: PathBuf,
    web: SocketAddr,
    quic: SocketAddr,
}

impl Place {
    /// Chooses free ports.
    pub fn new(folder: &Path) -> Result<Self> {
        let web = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let quic = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        let (data, config) = (folder.join("data"), folder.join("lorgnette.toml"));
        let models = audio::models::default_dir();
        let text =
            format!("data_dir = {data:?}\nmodels_dir = {models:?}\n[listen]\nweb = \"{web}\"\nquic = \"{quic}\"\n");
        std::fs::write(&config, text)?;
        Ok(Self { data, config, web, quic })
    }

    /// Where to connect.
    pub fn target(&self, scheme: Scheme) -> Result<Target> {
        let address = if scheme == Scheme::Quic { self.quic } else { self.web };
        Ok(format!("{}://{address}", scheme.name()).parse()?)
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.web)
    }

    /// Asks over the control socket, as the command line does.
    pub async fn ask(&self, request: Request) -> Result<Answer> {
        let data = self.data.clone();
        tokio::task::spawn_blocking(move || client::ask(&data, &request)).await?
    }

    /// Starts the gateway and waits until it listens.
    pub async fn start(&self) -> Result<Gateway> {
        let log = OpenOptions::new().create(true).append(true).open(self.data.with_extension("log"))?;
        let began = Instant::now();
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg("--config")
            .arg(&self.config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("its standard output")?).lines();
        let line = timeout(START_MAX, lines.next_line()).await.context("it does not start")??;
        match line {
            Some(line) if line.starts_with("ready in ") => Ok(Gateway { child, start: began.elapsed() }),
            line => bail!("it did not start: {line:?}; see {}", self.data.with_extension("log").display()),
        }
    }
}

/// A running gateway. It ends with this.
pub struct Gateway {
    child: Child,
    /// From the start of the process until it listened.
    pub start: Duration,
}

impl Gateway {
    /// Kills it as `kill -9` does.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}
