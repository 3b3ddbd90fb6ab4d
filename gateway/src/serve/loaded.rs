//! What a gateway has before it takes its data folder.

use std::{ffi::OsString, sync::Arc};

use anyhow::{Result, anyhow};

use super::{
    Running,
    data::{Data, LOCK_WAIT},
    engines, known_models,
};
use crate::{
    capabilities::{Evaluator, Prepared as Capabilities},
    clock,
    config::Config,
    device_task::services::Engines,
    mcp::Prepared,
    models::{
        chain::{self, ModelChain},
        metered::Meters,
        tool_selection::BySentences,
    },
    ports::models::OwnModels,
    transport::sockets::Sockets,
    upgrade::TakeOver,
};

/// What a process begins with, other than its configuration.
#[derive(Default)]
pub struct Origin {
    /// Listening sockets that it was given.
    pub sockets: Option<Sockets>,
    /// The connection to the gateway that it replaces.
    pub take_over: Option<TakeOver>,
    /// Its arguments, with which the process that replaces it is started; `None`: it cannot be replaced.
    pub arguments: Option<Vec<OsString>>,
    /// It had the data folder a moment ago, and gave it up for a process that has failed.
    pub had_folder: bool,
}

/// What needs no data folder, so that a gateway that replaces another has it before the other one stops.
pub struct Loaded {
    /// Since when, in microseconds of the gateway's clock.
    pub(super) at_us: u64,
    pub(super) mcp: Prepared,
    pub(super) capabilities: Capabilities,
    pub(super) sockets: Sockets,
    pub(super) engines: Engines,
    pub(super) sentences: Option<Arc<BySentences>>,
    pub(super) models: ModelChain,
    /// Those of them that are counted.
    pub(super) known: Arc<OwnModels>,
}

impl Loaded {
    /// Loads it, with sockets of its own where none are `given`, or others than the configuration names.
    ///
    /// # Errors
    /// A model is missing or damaged, or a port is in use.
    pub async fn load(config: &Config, given: Option<Sockets>) -> Result<Self> {
        let at_us = clock::mono_us();
        let mcp = Prepared::load(&config.mcp, config.folder.as_deref());
        let mut mcp = mcp.map_err(|problems| anyhow!("{}", problems.join("\n")))?;
        let folders = (config.folder.as_deref(), config.data_dir.as_path());
        let evaluator = Evaluator::new(config.models.code.executable.as_deref());
        let capabilities = Capabilities::load(&config.capabilities, folders, &mut mcp, &evaluator).await;
        let capabilities = capabilities.map_err(|problems| anyhow!("{}", problems.join("\n")))?;
        let sockets = match given {
            Some(sockets) => sockets.exchanged(config.listen.web, config.listen.quic).await?,
            None => Sockets::bind(config.listen.web, config.listen.quic).await?,
        };
        let meters = Meters::default();
        let (engines, sentences) = engines::load(config, &meters).await?;
        let models = chain::set_up(&config.models, sentences.clone(), &meters)?;
        let known = known_models::of(config, &engines, &meters);
        Ok(Self { at_us, mcp, capabilities, sockets, engines, sentences, models, known })
    }

    /// Starts a gateway; returns when it listens. No other one may have the data folder any more. `arguments`: those of
    /// this process, if it can be replaced.
    ///
    /// # Errors
    /// Another gateway runs, or the data folder cannot be used.
    pub async fn start(self, config: Config, arguments: Option<Vec<OsString>>) -> Result<Running> {
        let data = Data::open(&config.data_dir, config.store, LOCK_WAIT).await?;
        super::assemble(config, data, self, arguments).await
    }
}
