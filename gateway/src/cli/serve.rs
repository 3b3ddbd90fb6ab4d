//! `lorgnette serve`.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::{clock, config::Checked, serve, telemetry};

/// Run the gateway.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Log as JSON lines.
    #[arg(long)]
    log_json: bool,
    /// Only these ways in, of those that the configuration allows.
    #[arg(long, value_delimiter = ',')]
    only: Vec<WayIn>,
}

/// A way into the gateway. The control socket, which `lorgnette mcp` uses, is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum WayIn {
    /// Glasses over WebSocket.
    Websocket,
    /// Glasses over QUIC.
    Quic,
    /// The page to talk from a browser.
    Page,
    /// MCP over HTTP.
    Mcp,
}

impl Arguments {
    fn narrow(&self, config: Checked) -> Checked {
        if self.only.is_empty() {
            return config;
        }
        let wanted = |way| self.only.contains(&way);
        let mut config = config;
        config.websocket &= wanted(WayIn::Websocket);
        config.quic = config.quic.filter(|_| wanted(WayIn::Quic));
        config.try_page &= wanted(WayIn::Page);
        config.mcp.http &= wanted(WayIn::Mcp);
        config
    }
}

pub(super) fn run(config: Checked, arguments: &Arguments) -> Result<()> {
    let config = arguments.narrow(config);
    telemetry::start(arguments.log_json);
    let began_us = clock::mono_us();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let running = serve::start(config).await?;
        let key: String = running.public_key.iter().map(|byte| format!("{byte:02x}")).collect();
        // The one line that scripts wait for.
        println!(
            "ready in {} ms: web {} quic {} key {key}",
            (clock::mono_us() - began_us) / 1000,
            running.web,
            running.quic.map_or_else(|| "off".to_owned(), |address| address.to_string()),
        );
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        running.stop().await;
        Ok(())
    })
}
