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
}

pub(super) fn run(config: Checked, arguments: &Arguments) -> Result<()> {
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
