//! A gateway in a process of its own, to be killed.
//!
//! It is this program once more: with `serve` as its first argument it does what `lorgnette serve` does, by the same code.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
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

use super::ANY_SILENCE;

/// How long a start may take before it counts as failed.
const START_MAX: Duration = Duration::from_secs(60);
/// Ports below those that systems hand out: while the gateway is down, glasses that connect could be given one of these.
const PORTS: Range<u16> = 20_000..30_000;

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
    address: SocketAddr,
}

/// An address of this machine whose port is free for TCP and for UDP.
fn free() -> Result<SocketAddr> {
    // Another one in each process.
    let first = std::process::id() as usize % PORTS.len();
    let ports = PORTS.cycle().skip(first).take(PORTS.len());
    let mut addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let free = addresses.find(|address| TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok());
    free.context("no port is free")
}

impl Place {
    /// Chooses a free port.
    pub fn new(folder: &Path) -> Result<Self> {
        let address = free()?;
        let (data, config) = (folder.join("data"), folder.join("lorgnette.toml"));
        let models = audio::models::default_dir();
        let text = format!(
            "data_dir = {data:?}\nmodels_dir = {models:?}\n[listen]\nweb = \"{address}\"\nquic = \"{address}\"\n\
             {ANY_SILENCE}"
        );
        std::fs::write(&config, text)?;
        Ok(Self { data, config, address })
    }

    /// Where to connect.
    pub fn target(&self, scheme: Scheme) -> Result<Target> {
        Ok(format!("{}://{}", scheme.name(), self.address).parse()?)
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
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
